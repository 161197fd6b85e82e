"""Which printed calls are taken: those of an offered tool whose arguments fit its schema."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from toolwire.prompted.leaked.cursor import Field, Spelled
from toolwire.prompted.leaked.field_values import read_field
from toolwire.request import JsonObject, ToolChoice, ToolSpec
from toolwire.schema import Profile, convert
from toolwire.wire.names import ToolNames

_decode = msgspec.json.Decoder().decode
_LONGEST_REASON = 300


class Fitted(msgspec.Struct, frozen=True):
    """A call that may be passed on."""

    tool: ToolSpec
    arguments: str


class Refused(Exception):
    """A printed call that is not taken; the text says why."""


class Gate:
    """Knows the tools of one request."""

    def __init__(self, tools: Iterable[object], choice: ToolChoice | None = None) -> None:
        only = choice.names if choice is not None else ()
        barred = choice is not None and choice.mode == "none"
        offered = [
            tool
            for tool in tools
            if isinstance(tool, ToolSpec) and not barred and (not only or tool.name in only)
        ]
        names = ToolNames(offered)
        self._tools: dict[str, ToolSpec] = {}
        for tool in offered:
            # The model may have seen a name as it was sent, or as it was meant.
            self._tools.setdefault(tool.name, tool)
            self._tools[names.wire_name(tool.name, tool.namespace)] = tool
        self._schemas: dict[tuple[str, str], _Schema] = {}

    def __bool__(self) -> bool:
        return bool(self._tools)

    def fit(self, spelled: Spelled) -> Fitted:
        """The call, its arguments in JSON; raises Refused."""
        tool = self._tools.get(spelled.name)
        if tool is None:
            raise Refused(f'no tool "{spelled.name}" is offered')
        schema = self._schema(tool)
        text = spelled.arguments
        if spelled.fields is not None:
            text = _joined(spelled.fields, schema.clean)
        try:
            value = _decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise Refused(f'the arguments of "{tool.name}" are not JSON: {error}') from error
        reason = schema.misfit(value)
        if reason:
            raise Refused(f'the arguments do not fit "{tool.name}": {reason[:_LONGEST_REASON]}')
        return Fitted(tool, text)

    def _schema(self, tool: ToolSpec) -> "_Schema":
        key = (tool.namespace, tool.name)
        if key not in self._schemas:
            self._schemas[key] = _Schema(tool.parameters)
        return self._schemas[key]


class _Schema:
    """A tool's schema, compiled for the first call of it."""

    def __init__(self, schema: JsonObject) -> None:
        self.clean = convert(schema, Profile.GEMINI_JSON).schema
        self._takes_none = not schema
        self._validator: Any = None
        self._unusable = ""
        for form in (schema, self.clean):
            try:
                self._validator = _compiled(form)
                return
            except ValueError as error:
                # Type words of other worlds (`dict`, `OBJECT`): the clean form says the same.
                self._unusable = str(error)

    def misfit(self, value: Any) -> str:
        """Why the arguments do not fit; empty when they do."""
        if not isinstance(value, dict):
            return "they are no object"
        if self._takes_none:
            return "it takes none" if value else ""
        if self._validator is None:
            return f"its schema cannot be checked: {self._unusable}"
        error = next(iter(self._validator.iter_errors(value)), None)
        return str(error.message) if error is not None else ""


def _compiled(schema: JsonObject) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - most answers print no call

    def refuse(address: str) -> Any:
        raise ValueError(f"{address} is not fetched")

    return jsonschema_rs.validator_for(schema, retriever=refuse)


def _joined(fields: tuple[Field, ...], schema: JsonObject) -> str:
    """Tagged arguments as one JSON object, each value of the kind its schema asks for."""
    values: dict[str, msgspec.Raw] = {}
    properties = schema.get("properties")
    known = cast(JsonObject, properties) if isinstance(properties, dict) else {}
    for field in fields:
        if field.name in values:
            raise Refused(f'the argument "{field.name}" is given twice')
        try:
            values[field.name] = msgspec.Raw(read_field(field, known.get(field.name), schema))
        except (ValueError, RecursionError) as error:
            raise Refused(f'the argument "{field.name}" is unreadable: {error}') from error
    return msgspec.json.encode(values).decode()
