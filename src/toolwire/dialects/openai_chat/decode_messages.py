"""A client's chat messages → values."""

from itertools import groupby
from typing import Any, cast

import msgspec

from toolwire.dialects.openai_chat.media import citation_of, read_address, read_image
from toolwire.dialects.openai_chat.shapes import (
    NAME,
    ORIGIN,
    REASONING,
    details_text,
    pack,
    part_text,
    take_cache,
    take_text,
    take_word,
)
from toolwire.errors import BadInput
from toolwire.messages import (
    CallKind,
    Kept,
    Media,
    MediaKind,
    Message,
    Part,
    Refusal,
    Role,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject, Source
from toolwire.wire.json_access import check_type, dump, obj, objects_in, seq

_AnyPart = Text | Media | Thinking | Refusal | ServerBlock
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


_ADDRESSED = {
    "image_url": MediaKind.IMAGE,
    "video_url": MediaKind.VIDEO,
    "document_url": MediaKind.DOCUMENT,
}


def decode_messages(value: Any, source: Source) -> tuple[Message, ...]:
    """The conversation; neighbouring tool messages become one message of results."""
    raw = [obj(item, f"messages[{number}]") for number, item in enumerate(seq(value, "messages"))]
    calls = _Calls(raw)
    messages: list[Message] = []
    for is_results, group in groupby(enumerate(raw), _is_result):
        if is_results:
            numbered = list(group)
            results = (_result(item, calls, source, f"messages[{n}]") for n, item in numbered)
            messages.append(Message(role="user", parts=tuple(results)))
            source.add(messages[-1], [item for _, item in numbered])
            continue
        for number, item in group:
            messages.append(_message(item, calls, source, f"messages[{number}]"))
            source.add(messages[-1], [item])
    return tuple(messages)


def _is_result(numbered: tuple[int, JsonObject]) -> bool:
    return numbered[1].get("role") in ("tool", "function")


class _Calls:
    """The calls so far: pairs results with them and gives an id to those without one."""

    def __init__(self, messages: list[JsonObject]) -> None:
        self._taken = {
            call.get("id")
            for message in messages
            for call in objects_in(message.get("tool_calls"))
            if isinstance(call.get("id"), str)
        }
        self._number = 0
        self._by_id: dict[str, ToolCall] = {}
        self._open: list[ToolCall] = []

    def new_id(self) -> str:
        """A new positional id."""
        while True:
            self._number += 1
            name = f"call_{self._number}"
            if name not in self._taken:
                return name

    def add(self, call: ToolCall) -> None:
        """Adds a call without a result yet."""
        self._by_id[call.id] = call
        self._open.append(call)

    def answered(self, call_id: str, name: str) -> ToolCall | None:
        """The call of a result: by id, else by name, else the first without a result."""
        found = self._by_id.get(call_id) if call_id else None
        if found is None and not call_id:
            named = (call for call in self._open if not name or call.name == name)
            found = next(named, None)
        if found in self._open:
            self._open.remove(found)
        return found


def _message(item: JsonObject, calls: _Calls, source: Source, path: str) -> Message:
    rest = dict(item)
    role = rest.pop("role", None)
    if not isinstance(role, str):
        raise BadInput(f"{path}.role: expected a string")
    parts: list[Part] = list(_read_content(rest, source, path))
    if role == "assistant":
        parts = _assistant(rest, parts, calls, path)
    canonical = _ROLES.get(role)
    if canonical is None:
        canonical = "user"
        rest["role"] = role
    return Message(role=canonical, parts=tuple(parts), kept=pack(rest))


def _assistant(rest: JsonObject, content: list[Part], calls: _Calls, path: str) -> list[Part]:
    parts = [*_reasoning(rest), *_with_citations(rest, content)]
    refusal = take_text(rest, "refusal")
    if refusal:
        parts.append(Refusal(refusal))
    return [*parts, *_generated_media(rest), *_calls(rest, calls, path)]


def _reasoning(rest: JsonObject) -> list[Part]:
    sealed: JsonObject = {}
    for name in REASONING:
        value = rest.get(name)
        if value and isinstance(value, list if name == "reasoning_details" else str):
            sealed[name] = rest.pop(name)
    if not sealed:
        return []
    details = objects_in(sealed.get("reasoning_details"))
    text = sealed.get("reasoning_content") or sealed.get("reasoning") or details_text(details)
    return [Thinking(text, Seal(origin=ORIGIN, data=dump(sealed)))]


def _with_citations(rest: JsonObject, content: list[Part]) -> list[Part]:
    """The content, its last text with the citations and the signature beside it."""
    last = next((n for n, part in reversed([*enumerate(content)]) if isinstance(part, Text)), None)
    if last is None:
        return content
    text = cast(Text, content[last])
    annotations = _all_objects(rest.get("annotations"))
    if annotations:
        del rest["annotations"]
        citations = tuple(citation_of(item, dump(item)) for item in annotations)
        text = msgspec.structs.replace(text, citations=citations)
    if isinstance(rest.get("extra_content"), dict):
        data = dump({"extra_content": rest.pop("extra_content")})
        text = msgspec.structs.replace(text, seal=Seal(origin=ORIGIN, data=data))
    return [*content[:last], text, *content[last + 1 :]]


def _generated_media(rest: JsonObject) -> list[Part]:
    parts: list[Part] = []
    audio = rest.get("audio")
    if isinstance(audio, dict):
        inner = dict(cast(JsonObject, audio))
        name = inner.pop("id", None)
        if isinstance(name, str) and name:
            del rest["audio"]
            kept = pack({}, inner) or Kept(dialect=NAME)
            parts.append(Media(kind=MediaKind.AUDIO, file_id=name, kept=kept))
    images = _all_objects(rest.get("images"))
    if images and all(map(_plain_image, images)):
        del rest["images"]
        parts.extend(map(read_image, images))
    return parts


def _plain_image(image: JsonObject) -> bool:
    match image:
        case {"type": "image_url", "image_url": {"url": str(url), **inner}, **outer}:
            return bool(url) and not inner and outer.keys() <= {"index"}
        case _:
            return False


def _calls(rest: JsonObject, calls: _Calls, path: str) -> list[Part]:
    parts: list[Part] = []
    entries = rest.get("tool_calls")
    if entries and isinstance(entries, list):
        del rest["tool_calls"]
        for number, entry in enumerate(cast(list[Any], entries)):
            call = _call(entry, number, calls, f"{path}.tool_calls[{number}]")
            unknown = ServerBlock(origin=ORIGIN, kind="tool_call", data=dump(entry))
            parts.append(call or unknown)
    legacy = rest.get("function_call")
    if isinstance(legacy, dict) and legacy:
        del rest["function_call"]
        parts.append(_wrapped({"function": legacy}, "function", {}, calls, path))
    return parts


def _call(value: Any, number: int, calls: _Calls, path: str) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    check_type(value, path)
    entry = cast(JsonObject, value)
    member = "custom" if entry.get("type") == "custom" else "function"
    if not isinstance(entry.get(member), dict):
        return None
    rest = {key: value for key, value in entry.items() if key != member}
    if rest.get("type") == member:
        del rest["type"]
    if rest.get("index") == number and not isinstance(rest.get("index"), bool):
        del rest["index"]
    return _wrapped(entry, member, rest, calls, path)


def _wrapped(
    entry: JsonObject, member: str, rest: JsonObject, calls: _Calls, path: str
) -> ToolCall:
    inner = dict(cast(JsonObject, entry[member]))
    call_id = take_word(rest, "id", path)
    name = take_word(inner, "name", f"{path}.{member}")
    if inner.get("name") == "":
        del inner["name"]
    seal = None
    if isinstance(rest.get("extra_content"), dict):
        seal = Seal(origin=ORIGIN, data=dump({"extra_content": rest.pop("extra_content")}))
    cache = take_cache(rest)
    arguments = _arguments(inner, "input" if member == "custom" else "arguments")
    call = ToolCall(
        id=call_id or calls.new_id(),
        name=name,
        arguments=arguments,
        kind=CallKind.FREEFORM if member == "custom" else CallKind.JSON,
        made_id=not call_id,
        cache=cache,
        seal=seal,
        kept=pack(rest, inner),
    )
    calls.add(call)
    return call


def _arguments(inner: JsonObject, member: str) -> str:
    value = inner.get(member)
    if isinstance(value, str):
        return cast(str, inner.pop(member))
    return dump(inner.pop(member)) if isinstance(value, dict | list) else ""


def _result(item: JsonObject, calls: _Calls, source: Source, path: str) -> ToolResult:
    rest = {key: value for key, value in item.items() if key != "role"}
    name = take_word(rest, "name", path)
    call_id = take_word(rest, "tool_call_id", path)
    call = calls.answered(call_id, name)
    parts = tuple(
        part
        if isinstance(part, Text | Media | ServerBlock)
        else ServerBlock(origin=ORIGIN, kind="part", data=dump(item["content"][number]))
        for number, part in enumerate(_read_content(rest, source, path))
    )
    return ToolResult(
        call_id=call_id or (call.id if call else ""),
        name=name or (call.name if call else ""),
        parts=parts,
        kind=call.kind if call else CallKind.JSON,
        kept=pack(rest),
    )


def _all_objects(value: Any) -> list[JsonObject]:
    """The list if it contains only objects, else an empty one."""
    found = objects_in(value)
    return found if isinstance(value, list) and len(found) == len(cast(list[Any], value)) else []


def _read_content(rest: JsonObject, source: Source, path: str) -> list[_AnyPart]:
    """Takes the content out of `rest`, unless it is neither text nor a list."""
    content = rest.get("content")
    if content is None or isinstance(content, str | list):
        rest.pop("content", None)
    if isinstance(content, list):
        numbered = enumerate(cast(list[Any], content))
        return [_read_part(part, source, f"{path}.content[{n}]") for n, part in numbered]
    return [Text(content)] if content and isinstance(content, str) else []


def _read_part(value: Any, source: Source, path: str) -> _AnyPart:
    """One part; a server block if its shape is unknown."""
    if isinstance(value, dict):
        check_type(value, path)
        part = cast(JsonObject, value)
        found: _AnyPart | None = None
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
        if isinstance(found, Media):
            source.add(found, part)
        if found is not None:
            return found
        return ServerBlock(origin=ORIGIN, kind=part.get("type") or "part", data=dump(part))
    return ServerBlock(origin=ORIGIN, kind="part", data=dump(value))


def _text(part: JsonObject) -> Text | None:
    text = part.get("text")
    if not isinstance(text, str):
        return None
    rest = _without(part, "type", "text")
    cache = take_cache(rest)
    return Text(text, cache=cache, kept=pack(rest))


def _address(part: JsonObject, member: str) -> Media | None:
    rest = _without(part, "type", member)
    value = part.get(member)
    inner: JsonObject = {}
    if isinstance(value, dict):
        inner = dict(cast(JsonObject, value))
        value = inner.pop("url", None)
    if not isinstance(value, str):
        return None
    mime, base64, url = read_address(value)
    name = take_text(rest, "document_name") if member == "document_url" else ""
    cache = take_cache(rest)
    return Media(
        kind=_ADDRESSED[member],
        mime=mime,
        base64=base64,
        url=url,
        name=name,
        cache=cache,
        kept=pack(rest, inner),
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
    kept = pack(rest, inner)
    return Media(kind=MediaKind.AUDIO, mime=mime, base64=data, cache=cache, kept=kept)


def _file(part: JsonObject) -> Media | None:
    value = part.get("file")
    if not isinstance(value, dict):
        return None
    inner = dict(cast(JsonObject, value))
    name = take_text(inner, "filename")
    file_id = take_text(inner, "file_id")
    data = take_text(inner, "file_data")
    mime, base64, url = read_address(data)
    if url and not url.startswith(("http://", "https://", "data:")):
        base64, url = url, ""
        mime = "application/pdf" if name.lower().endswith(".pdf") else ""
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
        kept=pack(rest, inner),
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
    return Refusal(text, kept=pack(_without(part, "type", "refusal")))


def _without(source: JsonObject, *keys: str) -> JsonObject:
    return {key: value for key, value in source.items() if key not in keys}
