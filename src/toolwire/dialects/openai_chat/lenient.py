"""Chunks whose members have unexpected types: each is converted or left out."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from toolwire.dialects.openai_chat.shapes import NamedChunk, read_chunk
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, encode

_any = msgspec.json.Decoder().decode


def read_lenient(data: bytes) -> NamedChunk:
    """A chunk, or a whole answer, with the members that can be converted."""
    value = _any(data)
    if not isinstance(value, dict):
        return read_chunk(data)
    return read_chunk(encode(_fitted(cast(JsonObject, value), _CHUNK)))


def _fitted(source: JsonObject, members: "dict[str, Callable[[Any], Any]]") -> JsonObject:
    return {key: fit(source[key]) for key, fit in members.items() if key in source}


def _word(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return dump(value) if isinstance(value, int | float) and value is not False else None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:9])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _object(value: Any) -> JsonObject | None:
    return cast(JsonObject, value) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        return [value]
    return cast(list[Any], value) if isinstance(value, list) else None


def _objects(value: Any) -> list[JsonObject] | None:
    found = _list(value)
    return None if found is None else [item for item in found if isinstance(item, dict)]


def _json(value: Any) -> Any:
    """Text, an object or a list as it is; any other value as JSON text."""
    return value if value is None or type(value) in (str, dict, list) else dump(value)


def _content(value: Any) -> Any:
    return value if type(value) in (dict, list) else _word(value)


def _thought(value: Any) -> Any:
    return _object(value) or _word(value)


def _same(value: Any) -> Any:
    return value


def _each(members: "dict[str, Callable[[Any], Any]]") -> Callable[[Any], Any]:
    def fit(value: Any) -> list[JsonObject] | None:
        found = _objects(value)
        return None if found is None else [_fitted(item, members) for item in found]

    return fit


def _one(members: "dict[str, Callable[[Any], Any]]") -> Callable[[Any], Any]:
    def fit(value: Any) -> JsonObject | None:
        found = _object(value)
        return None if found is None else _fitted(found, members)

    return fit


_FUNCTION = {"name": _word, "arguments": _json}
_FRAGMENT = {
    "index": _number,
    "id": _word,
    "type": _word,
    "function": _one(_FUNCTION),
    "custom": _one({"name": _word, "input": _json}),
    "extra_content": _object,
}
_AUDIO = {"id": _word, "data": _word, "transcript": _word, "expires_at": _number}
_DELTA = {
    "content": _content,
    "tool_calls": _each(_FRAGMENT),
    "reasoning_content": _word,
    "reasoning": _thought,
    "reasoning_details": _objects,
    "refusal": _word,
    "function_call": _one(_FUNCTION),
    "annotations": _list,
    "audio": _one(_AUDIO),
    "images": _objects,
    "extra_content": _object,
}


def _delta(value: Any) -> Any:
    # Not an object: left as it is, and rejected by the decoder.
    return _fitted(cast(JsonObject, value), _DELTA) if isinstance(value, dict) else value


def _choices(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    items = cast(list[Any], value)
    fit = _one(_CHOICE)
    return [fit(item) or item for item in items]


_CHOICE = {
    "delta": _delta,
    "message": _delta,
    "index": _number,
    "finish_reason": _word,
    "usage": _object,
}
_CHUNK: "dict[str, Callable[[Any], Any]]" = {
    "choices": _choices,
    "id": _word,
    "model": _word,
    "usage": _object,
    "error": _same,
    "x_groq": _one({"usage": _object, "error": _same}),
}
