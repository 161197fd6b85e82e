"""Content parts of chat messages, read."""

from typing import Any, cast

from toolwire.dialects.openai_chat.leftovers import gather, take_cache
from toolwire.dialects.openai_chat.media import read_address
from toolwire.dialects.openai_chat.thoughts import part_text
from toolwire.dialects.openai_chat.wire import NAME
from toolwire.messages import (
    Media,
    MediaKind,
    Origin,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

AnyPart = Text | Media | Thinking | Refusal | ServerBlock
ORIGIN = Origin(NAME)


def read_content(rest: JsonObject, words: list[str]) -> list[AnyPart]:
    """Takes the content out of a message; the words tell what it was if not plain text."""
    if "content" not in rest:
        words.append("absent")
        return []
    content = rest["content"]
    if content is None or isinstance(content, str | list):
        del rest["content"]
    match content:
        case None:
            words.append("null")
        case "":
            words.append("empty")
        case str():
            return [Text(content)]
        case list():
            words.append("list")
            return [read_part(part) for part in cast(list[Any], content)]
        case _:
            words.append("absent")
    return []


def read_part(value: Any) -> AnyPart:
    """One part; what is not understood is kept whole."""
    if isinstance(value, dict):
        part = cast(JsonObject, value)
        found: AnyPart | None = None
        match part.get("type"):
            case "text":
                found = _text(part)
            case "image_url" | "video_url" | "document_url" as kind:
                found = _address(part, kind)
            case "input_audio":
                found = _audio(part)
            case "file":
                found = _file(part)
            case "thinking":
                found = _thinking(part)
            case "refusal":
                found = _refusal(part)
            case _:
                pass
        if found is not None:
            return found
        return ServerBlock(origin=ORIGIN, kind=str(part.get("type", "part")), data=dump(part))
    return ServerBlock(origin=ORIGIN, kind="part", data=dump(value))


def _text(part: JsonObject) -> Text | None:
    text = part.get("text")
    if not isinstance(text, str):
        return None
    rest = _without(part, "type", "text")
    cache = take_cache(rest)
    return Text(text, cache=cache, kept=gather(rest))


_ADDRESSED = {
    "image_url": MediaKind.IMAGE,
    "video_url": MediaKind.VIDEO,
    "document_url": MediaKind.DOCUMENT,
}


def _address(part: JsonObject, member: str) -> Media | None:
    rest = _without(part, "type", member)
    value = part.get(member)
    words = [] if member == "image_url" else [member]
    inner: JsonObject = {}
    if isinstance(value, dict):
        inner = dict(cast(JsonObject, value))
        value = inner.pop("url", None)
    else:
        words.append("bare")
    if not isinstance(value, str):
        return None
    mime, base64, url = read_address(value)
    name = _take_text(rest, "document_name") if member == "document_url" else ""
    cache = take_cache(rest)
    return Media(
        kind=_ADDRESSED[member],
        mime=mime,
        base64=base64,
        url=url,
        name=name,
        cache=cache,
        kept=gather(rest, inner, words),
    )


def _audio(part: JsonObject) -> Media | None:
    value = part.get("input_audio")
    if not isinstance(value, dict):
        return None
    inner = dict(cast(JsonObject, value))
    data = inner.pop("data", None)
    if not isinstance(data, str):
        return None
    sound = inner.get("format")
    if sound in ("wav", "mp3"):
        del inner["format"]
    mime = f"audio/{sound}" if isinstance(sound, str) else ""
    rest = _without(part, "type", "input_audio")
    cache = take_cache(rest)
    kept = gather(rest, inner, ["input_audio"] if "format" in inner or not mime else [])
    return Media(kind=MediaKind.AUDIO, mime=mime, base64=data, cache=cache, kept=kept)


def _file(part: JsonObject) -> Media | None:
    value = part.get("file")
    if not isinstance(value, dict):
        return None
    inner = dict(cast(JsonObject, value))
    name = _take_text(inner, "filename")
    file_id = _take_text(inner, "file_id")
    data = _take_text(inner, "file_data")
    words = ["file_id"] if file_id else []
    mime, base64, url = read_address(data)
    if url and not url.startswith(("http://", "https://", "data:")):
        words.append("bare")
        base64, url = url, ""
        mime = "application/pdf" if name.lower().endswith(".pdf") else ""
    if url:
        words.append("file")
    rest = _without(part, "type", "file")
    cache = take_cache(rest)
    return Media(
        kind=MediaKind.DOCUMENT,
        mime=mime,
        base64=base64,
        url=url,
        file_id=file_id,
        name=name,
        cache=cache,
        kept=gather(rest, inner, words),
    )


def _thinking(part: JsonObject) -> Thinking | None:
    value = part.get("thinking")
    pieces = cast(list[Any], value) if isinstance(value, list) else []
    if not isinstance(value, str | list) or not all(isinstance(piece, dict) for piece in pieces):
        return None
    text = part_text(value if isinstance(value, str) else pieces)
    return Thinking(text, Seal(origin=ORIGIN, data=dump(part)))


def _refusal(part: JsonObject) -> Refusal | None:
    text = part.get("refusal")
    if not isinstance(text, str):
        return None
    return Refusal(text, kept=gather(_without(part, "type", "refusal"), words=["part"]))


def _without(source: JsonObject, *keys: str) -> JsonObject:
    return {key: value for key, value in source.items() if key not in keys}


def _take_text(rest: JsonObject, key: str) -> str:
    value = rest.get(key)
    if isinstance(value, str) and value:
        del rest[key]
        return value
    return ""
