"""Calls in Gemma's notation: bare keys, and texts between quote tokens."""

import json
import re
from collections.abc import Callable
from typing import Any

from toolwire.prompted.leaked.cursor import Cursor, Format, Spelled, Steps

_DEEPEST = 50
_key = re.compile(r"\s*([\w.$-]+)\s*:\s*").match
_scalar = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null").match
_blanks = re.compile(r"\s*").match
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class _NoValue(Exception):
    """Text that is not in the notation."""


class _Notation:
    """Reads one value; each character is read once."""

    def __init__(self, text: str, quote: str) -> None:
        self._text = text
        self._quote = quote
        self._at = 0

    def whole(self) -> Any:
        """The value of the complete text."""
        value = self._value(_DEEPEST)
        self._skip()
        if self._at != len(self._text):
            raise _NoValue
        return value

    def _value(self, depth: int) -> Any:
        if not depth:
            raise _NoValue
        self._skip()
        if self._taken("{"):
            return self._object(depth)
        if self._taken("["):
            return self._list(depth)
        if self._taken(self._quote):
            end = self._text.find(self._quote, self._at)
            if end < 0:
                raise _NoValue
            text = self._text[self._at : end]
            self._at = end + len(self._quote)
            return text
        found = _scalar(self._text, self._at)
        if found is None:
            raise _NoValue
        self._at = found.end()
        return json.loads(found[0])

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._skip()
        if self._taken("}"):
            return members
        while True:
            key = _key(self._text, self._at)
            if key is None or key[1] in members:
                raise _NoValue
            self._at = key.end()
            members[key[1]] = self._value(depth - 1)
            if self._closes("}"):
                return members

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self._skip()
        if self._taken("]"):
            return items
        while True:
            items.append(self._value(depth - 1))
            if self._closes("]"):
                return items

    def _closes(self, bracket: str) -> bool:
        self._skip()
        if self._taken(bracket):
            return True
        if not self._taken(","):
            raise _NoValue
        return False

    def _skip(self) -> None:
        found = _blanks(self._text, self._at)
        self._at = found.end() if found else self._at

    def _taken(self, literal: str) -> bool:
        found = self._text.startswith(literal, self._at)
        self._at += len(literal) if found else 0
        return found


def _reader(opener: str, closer: str, quote: str) -> Callable[[Cursor], Steps[None]]:
    def read(cursor: Cursor) -> Steps[None]:
        yield from cursor.expect(opener)
        yield from cursor.expect("call:")
        name = yield from cursor.name()
        if (yield from cursor.peek()) != "{":
            raise cursor.fail("expected {")
        cursor.sure = True
        text = yield from cursor.until(closer)
        try:
            arguments = _dump(_Notation(text, quote).whole())
        except (_NoValue, ValueError) as error:
            raise cursor.fail("its arguments are broken") from error
        yield (Spelled(name, arguments),)

    return read


def _format(name: str, models: str, opener: str, closer: str, quote: str) -> Format:
    return Format(
        name=name,
        models=models,
        openers=(opener,),
        read=_reader(opener, closer, quote),
        closers=(closer,),
    )


FORMATS = (
    _format("gemma", "Gemma 4", "<|tool_call>", "<tool_call|>", '<|"|>'),
    _format(
        "functiongemma",
        "FunctionGemma",
        "<start_function_call>",
        "<end_function_call>",
        "<escape>",
    ),
)
