"""Answers held to a JSON Schema: read, validated, and requested again with what is wrong."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from toolwire.agent.admission import complaints, violations_text
from toolwire.errors import BadInput, InvalidOutput
from toolwire.request import JsonObject, OutputFormat
from toolwire.wire.json_access import dump, parse

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


def _as_it_is(value: Any) -> Any:
    return value


class OutputSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON Schema that the final answer of a turn has to fit."""

    schema: JsonObject
    name: str = "answer"
    retries: int = 2
    """How often an answer that does not fit is requested again."""
    convert: Callable[[Any], Any] = _as_it_is
    """Makes the caller's object of a valid JSON value; a ValueError counts as a violation."""

    def check(self, what: str) -> None:
        """Raises BadInput, naming `what`, if the schema cannot be used."""
        complaints(self.schema, {}, what=what)

    @property
    def format(self) -> OutputFormat:
        """The format of a request, for servers that hold an answer to a schema themselves."""
        return OutputFormat(kind="json_schema", schema=self.schema, name=self.name)

    @property
    def instructions(self) -> str:
        """The end of the system prompt: also servers that enforce a schema enforce only a part."""
        return (
            "Your final answer must be one JSON value that is valid against this JSON Schema, "
            "without any other text and without a code fence:\n" + dump(self.schema)
        )

    def added_to(self, system: str) -> str:
        """Returns a system prompt that ends with the instructions."""
        return f"{system}\n\n{self.instructions}".lstrip()

    def read(self, text: str) -> Any:
        """Returns the object of an answer; InvalidOutput says what does not fit."""
        value = _value(text)
        problems = complaints(self.schema, value, root="answer")
        if problems:
            raise InvalidOutput(violations_text(problems))
        try:
            return self.convert(value)
        except ValueError as error:
            raise InvalidOutput(str(error)) from error

    def correction(self, error: InvalidOutput) -> str:
        """Returns the message that requests the answer again."""
        return (
            f"Your answer cannot be used:\n{error}\n"
            "Answer again with one JSON value that fits the JSON Schema, and nothing else."
        )


def json_text(text: str) -> str:
    """Returns an answer without the code fence around the whole of it."""
    fenced = _FENCED.fullmatch(text.strip())
    return (fenced[1] if fenced else text).strip()


def _value(text: str) -> Any:
    if not text.strip():
        raise InvalidOutput("the answer is empty")
    try:
        return parse(json_text(text), "the answer")
    except BadInput as error:
        raise InvalidOutput(str(error)) from error
