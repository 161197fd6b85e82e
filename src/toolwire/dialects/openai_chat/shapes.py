"""Wire shapes of Chat Completions, every member optional or null; odd members are converted."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Raw

from toolwire.dialects.losses import NESTED
from toolwire.messages import CacheMark, Kept, Origin
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, encode, parse_object, text, text_or_empty

NAME = "openai-chat"
ORIGIN = Origin(NAME)

REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Members in which compatible servers send thinking and want it back."""


class Function(msgspec.Struct, gc=False):
    """A piece of a function call; some servers write the arguments as an object."""

    name: str | None = None
    arguments: str | dict[str, Raw] | list[Raw] | None = None


class Custom(msgspec.Struct, gc=False):
    """A piece of a call of a freeform tool."""

    name: str | None = None
    input: str | dict[str, Raw] | list[Raw] | None = None


class Fragment(msgspec.Struct, gc=False):
    """A piece of a call, or a whole one."""

    index: int | None = None
    function: Function | None = None
    id: str | None = None
    custom: Custom | None = None
    type: str | None = None
    extra_content: dict[str, Any] | None = None


class Audio(msgspec.Struct, gc=False):
    """A piece of spoken output."""

    id: str | None = None
    data: str | None = None
    transcript: str | None = None
    expires_at: int | None = None


class Delta(msgspec.Struct, gc=False):
    """More of the message; the message of a whole answer has the same members."""

    content: str | list[Raw] | dict[str, Raw] | None = None
    tool_calls: list[Fragment] | None = None
    reasoning_content: str | None = None
    reasoning: str | dict[str, Any] | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    function_call: Function | None = None
    annotations: list[Raw] | None = None
    audio: Audio | None = None
    images: list[dict[str, Any]] | None = None
    extra_content: dict[str, Any] | None = None


class WireChoice(msgspec.Struct, gc=False):
    """One of the answers; beside a `delta`, `message` is the sum so far."""

    delta: Delta | None = None
    index: int | None = None
    finish_reason: str | None = None
    message: Raw = Raw(b"")
    usage: dict[str, Any] | None = None
    error: Any = None


class Groq(msgspec.Struct, gc=False):
    """Groq's own members."""

    usage: dict[str, Any] | None = None
    error: Any = None


class PromptProgress(msgspec.Struct, gc=False):
    """Progress of llama.cpp through the prompt."""

    total: int = 0
    processed: int = 0


class Chunk(msgspec.Struct, gc=False):
    """The members decoded from every frame of a stream."""

    choices: list[WireChoice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    x_groq: Groq | None = None
    prompt_progress: PromptProgress | None = None


class NamedChunk(Chunk, gc=False):
    """A frame with the answer's id and model, or a whole answer."""

    id: str | None = None
    model: str | None = None


class ContentPart(msgspec.Struct, gc=False):
    """One part of a message whose content is a list."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    thinking: str | list[dict[str, Any]] | None = None
    image_url: str | dict[str, Any] | None = None


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not JSON of the expected shape."""

read_chunk = msgspec.json.Decoder(NamedChunk).decode
read_next_chunk = msgspec.json.Decoder(Chunk).decode
read_delta = msgspec.json.Decoder(Delta).decode
read_part = msgspec.json.Decoder(ContentPart).decode


def pack(outer: JsonObject, inner: JsonObject | None = None) -> Kept | None:
    """The members that our values do not carry, of an object and of the one nested in it."""
    nested = {NESTED + key: value for key, value in (inner or {}).items()}
    fields = outer | nested
    return Kept(dialect=NAME, fields=dump(fields)) if fields else None


def unpack(kept: Kept | None) -> tuple[JsonObject, JsonObject]:
    """The outer and the nested members; none of another dialect."""
    if kept is None or kept.dialect != NAME or kept.fields == "{}":
        return {}, {}
    outer: JsonObject = {}
    inner: JsonObject = {}
    for key, value in parse_object(kept.fields, "kept members").items():
        if key.startswith(NESTED):
            inner[key.removeprefix(NESTED)] = value
        else:
            outer[key] = value
    return outer, inner


def take_text(rest: JsonObject, key: str) -> str:
    """Takes a text that is not empty out of `rest`."""
    value = rest.get(key)
    if not (isinstance(value, str) and value):
        return ""
    del rest[key]
    return value


def take_word(rest: JsonObject, key: str, path: str) -> str:
    """Takes a text out of `rest`; BadInput for any other value than null."""
    text(rest.get(key), f"{path}.{key}" if path else key)
    return take_text(rest, key)


def take_flag(rest: JsonObject, key: str) -> bool | None:
    """Takes true or false out of `rest`."""
    return rest.pop(key) if isinstance(rest.get(key), bool) else None


def take_cache(rest: JsonObject) -> CacheMark | None:
    """Takes `cache_control` out of `rest` if a mark can carry all of it."""
    match rest.get("cache_control"):
        case {"type": "ephemeral", "ttl": str(ttl), **others} if ttl and not others:
            del rest["cache_control"]
            return CacheMark(ttl)
        case {"type": "ephemeral", **others} if not others:
            del rest["cache_control"]
            return CacheMark()
        case _:
            return None


def cache_control(mark: CacheMark) -> JsonObject:
    """The mark as OpenRouter and LiteLLM expect it."""
    return {"type": "ephemeral", "ttl": mark.ttl} if mark.ttl else {"type": "ephemeral"}


def thinking_part(text: str) -> JsonObject:
    """Thinking as a part of the content list."""
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def part_text(thinking: str | list[dict[str, Any]] | None) -> str:
    """The text of a thinking part."""
    if isinstance(thinking, str):
        return thinking
    return "".join(text_or_empty(piece.get("text")) for piece in thinking or ())


def details_text(details: list[JsonObject]) -> str:
    """The text of reasoning details; encrypted ones have none."""
    return "".join(
        text_or_empty(item.get("text")) or text_or_empty(item.get("summary")) for item in details
    )


def merge_details(into: list[JsonObject], pieces: list[JsonObject]) -> None:
    """Merges pieces of one index and type into one item: text joined, the rest replaced."""
    for piece in pieces:
        match = next((item for item in reversed(into) if _same_item(item, piece)), None)
        if match is None:
            into.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in ("text", "summary") and isinstance(value, str):
                match[key] = text_or_empty(match.get(key)) + value
            elif value is not None or key not in match:
                match[key] = value


def _same_item(item: JsonObject, piece: JsonObject) -> bool:
    index = piece.get("index")
    return (
        index is not None
        and item.get("index") == index
        and item.get("type") == piece.get("type")
        and not (item.get("id") and piece.get("id") and item["id"] != piece["id"])
    )


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
    "error": _same,
}
_CHUNK: "dict[str, Callable[[Any], Any]]" = {
    "choices": _choices,
    "id": _word,
    "model": _word,
    "usage": _object,
    "error": _same,
    "x_groq": _one({"usage": _object, "error": _same}),
}
