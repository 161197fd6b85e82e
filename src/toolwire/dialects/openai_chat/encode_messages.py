"""Chat messages and their parts, written."""

from base64 import b64decode
from collections.abc import Sequence

import msgspec

from toolwire.dialects.arguments import as_text
from toolwire.dialects.kept import own_seal, shared
from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_chat.media import write_address, write_citation, write_image
from toolwire.dialects.openai_chat.shapes import (
    NAME,
    REASONING,
    Leftovers,
    cache_control,
    merge_details,
    unpack,
)
from toolwire.dialects.quirks import Quirks
from toolwire.messages import (
    CacheMark,
    CallKind,
    Media,
    MediaKind,
    Message,
    Part,
    Refusal,
    ResultPart,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject, ModelRequest
from toolwire.wire.json_access import parse
from toolwire.wire.names import ToolNames

_ATTACHED = "The result is attached below."
_SOUNDS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


class Writing(msgspec.Struct, frozen=True):
    """One request on its way out."""

    quirks: Quirks
    names: ToolNames
    losses: Losses
    verbatim: bool
    """The request came in this format: it goes out as it came, nothing fitted or added."""

    def name(self, name: str, namespace: str = "") -> str:
        """The tool name to send."""
        return name if self.verbatim else self.names.wire_name(name, namespace)

    def mark(self, target: JsonObject, cache: CacheMark | None, path: str) -> None:
        """Writes a cache mark where the server reads one."""
        if cache is None:
            return
        if self.verbatim or self.quirks.cache_marks:
            target["cache_control"] = cache_control(cache)
        else:
            self.losses.add(f"{path}.cache", "cache mark", "the server caches by itself")


def encode_messages(request: ModelRequest, to: Writing) -> list[JsonObject]:
    """The whole conversation, instructions first."""
    written: list[JsonObject] = []
    if request.system:
        parts = _parts(request.system, "system", to)
        written.append({"role": to.quirks.system_role, "content": _content(parts, Leftovers())})
    for number, message in enumerate(request.messages):
        path = f"messages[{number}]"
        match message.role:
            case "system":
                written.append(_spoken(message, _system_role(message, to), path, to))
            case "assistant":
                found = _write_assistant(message, path, to)
                if found is not None:
                    written.append(found)
            case "user":
                written.extend(_user(message, path, to))
    if to.quirks.assistant_between_results_and_user and not to.verbatim:
        return _with_assistant_between(written)
    return written


def _system_role(message: Message, to: Writing) -> str:
    if to.verbatim:
        return "developer" if "developer" in unpack(message.kept).words else "system"
    return to.quirks.system_role


def _spoken(message: Message, role: str, path: str, to: Writing) -> JsonObject:
    left = unpack(message.kept)
    return _whole(left, role, _content(_parts(message.parts, path, to), left))


def _whole(left: Leftovers, role: str, content: object) -> JsonObject:
    written: JsonObject = {"role": role, **left.outer}
    if content is not None or "null" in left.words:
        written["content"] = content
    return written


def _user(message: Message, path: str, to: Writing) -> list[JsonObject]:
    written: list[JsonObject] = []
    media: list[JsonObject] = []
    others: list[tuple[int, Part]] = []
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            place = f"{path}.parts[{number}]"
            written.append(_result(part, place, media, to))
            if others:
                to.losses.add(place, "order", "results stand before the other words of a turn")
        else:
            others.append((number, part))
    if not others and not media and message.parts:
        return written
    left = unpack(message.kept)
    parts = [*media, *_placed_parts(others, path, to)]
    return [*written, _whole(left, "user", _content(parts, left))]


def _result(result: ToolResult, path: str, media: list[JsonObject], to: Writing) -> JsonObject:
    left = unpack(result.kept)
    words = left.words
    written: JsonObject = {"role": "function" if "function" in words else "tool"}
    if "no_id" not in words or not to.verbatim:
        written["tool_call_id"] = result.call_id
    if "named" in words:
        written["name"] = to.name(result.name)
    parts = result.parts if to.verbatim else _without_media(result.parts, path, media, to)
    content = _content(_parts(parts, path, to), left)
    if not to.verbatim:
        content = _told(result, content, bool(media), path, to)
        to.mark(written, result.cache, path)
    return {**_whole(left, "tool", content), **written}


def _told(result: ToolResult, content: object, attached: bool, path: str, to: Writing) -> object:
    if result.is_error:
        to.losses.add(f"{path}.is_error", "error flag", "chat results have only their text")
    if content:
        return content
    if result.is_error:
        return "Error"
    return _ATTACHED if attached and any(isinstance(p, Media) for p in result.parts) else ""


def _without_media(
    parts: Sequence[ResultPart], path: str, media: list[JsonObject], to: Writing
) -> list[ResultPart]:
    """The parts a tool message can hold; media is put aside for a user message."""
    kept: list[ResultPart] = []
    for number, part in enumerate(parts):
        if not isinstance(part, Media):
            kept.append(part)
            continue
        place = f"{path}.parts[{number}]"
        found = _write_media(part, place, to)
        if found is not None:
            media.append(found)
            to.losses.add(place, f"{part.kind} in a result", "sent in a user message after it")
    return kept


def _parts(parts: Sequence[Part], path: str, to: Writing) -> list[JsonObject]:
    return _placed_parts(list(enumerate(parts)), path, to)


def _placed_parts(parts: list[tuple[int, Part]], path: str, to: Writing) -> list[JsonObject]:
    written: list[JsonObject] = []
    for number, part in parts:
        place = f"{path}[{number}]" if path == "system" else f"{path}.parts[{number}]"
        match part:
            case Text():
                if part.citations:
                    to.losses.add(f"{place}.citations", "citations", "requests carry none")
                if part.text or to.verbatim:
                    written.append(_write_text(part, place, to))
            case Media():
                found = _write_media(part, place, to)
                if found is not None:
                    written.append(found)
            case ServerBlock():
                if part.origin.dialect == NAME:
                    written.append(parse(part.data, "part"))
            case Thinking() | Refusal() | ToolCall() | ToolResult():
                to.losses.add(place, type(part).__name__, "only an assistant says it")
    return written


def _content(parts: list[JsonObject], left: Leftovers) -> object:
    """A string where it says all, else a list; None for a message without content."""
    if "list" in left.words:
        return parts
    if not parts:
        return None if left.words & {"absent", "null"} else ""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        return parts[0]["text"]
    return parts


def _with_assistant_between(messages: list[JsonObject]) -> list[JsonObject]:
    written: list[JsonObject] = []
    for message in messages:
        if message["role"] == "user" and written and written[-1]["role"] == "tool":
            written.append({"role": "assistant", "content": "I have the results."})
        written.append(message)
    return written


def _write_assistant(message: Message, path: str, to: Writing) -> JsonObject | None:
    """One message: its words, its thinking where it is wanted back, its calls.

    None where all it said was lost: an empty message would only confuse the model.
    """
    written = _Assistant(message, path, to).write()
    lost = written == {"role": "assistant", "content": ""} and message.parts and not to.verbatim
    return None if lost else written


class _Assistant:
    """Gathers the members of one message."""

    def __init__(self, message: Message, path: str, to: Writing) -> None:
        self._message = message
        self._path = path
        self._to = to
        self._left = unpack(message.kept)
        self._written: JsonObject = {}
        self._content: list[JsonObject] = []
        self._calls: list[JsonObject] = []
        self._refusal = ""

    def write(self) -> JsonObject:
        """The message as it goes out."""
        for number, part in enumerate(self._message.parts):
            place = f"{self._path}.parts[{number}]"
            match part:
                case Text():
                    self._text(part, place)
                case Thinking():
                    self._thinking(part, place)
                case Refusal():
                    self._refuse(part)
                case ToolCall():
                    self._call(part, place)
                case Media():
                    self._media(part, place)
                case ServerBlock():
                    self._block(part)
                case ToolResult():
                    self._to.losses.add(place, "tool result", "only a user's message holds it")
        return self._assemble()

    def _assemble(self) -> JsonObject:
        written: JsonObject = {"role": "assistant", **self._left.outer}
        words = self._left.words
        content = _assistant_content(self._content, self._left)
        if content is None and not self._calls and "content" not in written:
            # Without calls a message must say something, if only nothing.
            content = None if words & {"absent", "null"} else ""
        if content is not None or not words & {"absent"}:
            written["content"] = content
        written |= self._written
        if self._refusal:
            written["refusal"] = self._refusal
        if self._calls:
            written["tool_calls"] = self._calls
            field = self._to.quirks.reasoning_field
            replay = self._to.quirks.reasoning_replay
            asked = field and replay != "never" and not self._to.verbatim
            if asked and not any(name in written for name in REASONING):
                # DeepSeek and Kimi want the member beside calls even when it is empty.
                written[field] = ""
        return written

    def _text(self, part: Text, place: str) -> None:
        to = self._to
        if self._calls and part.text:
            to.losses.add(place, "order", "a chat message holds its text before its calls")
        self._written.update(own_seal(part.seal, NAME))
        if part.citations:
            if to.verbatim:
                citations = [write_citation(citation) for citation in part.citations]
                self._written.setdefault("annotations", []).extend(citations)
            else:
                to.losses.add(f"{place}.citations", "citations", "requests carry none")
        if part.text or to.verbatim:
            self._content.append(_write_text(part, place, to))

    def _thinking(self, part: Thinking, place: str) -> None:
        to = self._to
        sealed = own_seal(part.seal, NAME)
        replay = to.quirks.reasoning_replay
        calls = bool(self._message.calls)
        wanted = replay == "always" or (replay == "with_tools" and calls)
        if "reasoning_details" in sealed and replay != "never":
            wanted = True
        if sealed and (to.verbatim or wanted):
            if sealed.get("type") == "thinking":
                self._content.append(sealed)
            else:
                write_thinking(self._written, part)
        elif to.quirks.reasoning_field and wanted and not to.verbatim:
            field = to.quirks.reasoning_field
            self._written[field] = self._written.get(field, "") + part.text
        elif part.text:
            to.losses.add(place, "thinking", "the server does not want it back here")

    def _refuse(self, part: Refusal) -> None:
        left = unpack(part.kept)
        if "part" in left.words:
            self._content.append({**left.outer, "type": "refusal", "refusal": part.text})
        else:
            self._refusal += part.text

    def _media(self, part: Media, place: str) -> None:
        left = unpack(part.kept)
        if "images" in left.words:
            self._written.setdefault("images", []).append(write_image(part))
        elif "audio" in left.words and part.file_id:
            self._written["audio"] = {**left.inner, "id": part.file_id}
        elif self._to.verbatim:
            found = _write_media(part, place, self._to)
            if found is not None:
                self._content.append(found)
        else:
            self._to.losses.add(place, str(part.kind), "an assistant's chat message holds none")

    def _block(self, part: ServerBlock) -> None:
        if part.origin.dialect != NAME:
            return
        if part.kind == "tool_call":
            self._calls.append(parse(part.data, "tool call"))
        else:
            self._content.append(parse(part.data, "part"))

    def _call(self, call: ToolCall, place: str) -> None:
        left = unpack(call.kept)
        if "function_call" in left.words and self._to.verbatim:
            self._written["function_call"] = _inner(call, "arguments", left, place, self._to)
            return
        entry: JsonObject = dict(left.outer) if self._to.verbatim else {}
        words = left.words if self._to.verbatim else frozenset[str]()
        if "no_id" not in words:
            entry["id"] = call.id
        member = "custom" if call.kind is CallKind.FREEFORM else "function"
        if "typeless" not in words:
            entry["type"] = member
        if "index" in words:
            entry["index"] = len(self._calls)
        text = "input" if member == "custom" else "arguments"
        entry[member] = _inner(call, text, left, place, self._to)
        entry |= own_seal(call.seal, NAME)
        self._to.mark(entry, call.cache, place)
        self._calls.append(entry)


def _inner(call: ToolCall, member: str, left: Leftovers, place: str, to: Writing) -> JsonObject:
    name = to.name(call.name, call.namespace)
    if not to.verbatim:
        freeform = call.kind is CallKind.FREEFORM
        return {
            "name": name,
            member: call.arguments if freeform else as_text(call, place, to.losses),
        }
    inner = dict(left.inner)
    if "no_name" not in left.words:
        inner["name"] = name
    if "object" in left.words:
        inner[member] = parse(call.arguments, "arguments")
    elif "no_arguments" not in left.words:
        inner[member] = call.arguments
    return inner


def _assistant_content(parts: list[JsonObject], left: Leftovers) -> object:
    if "list" in left.words:
        return parts
    if not parts:
        return "" if "empty" in left.words else None
    # Many servers take only a string from an assistant.
    if all(part.keys() == {"type", "text"} and part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def write_thinking(message: JsonObject, part: Thinking) -> None:
    """Thinking in the members it came in, or in the one most clients read."""
    sealed = own_seal(part.seal, NAME)
    members = {name: sealed[name] for name in REASONING if name in sealed}
    if part.text and not members:
        members["reasoning_content"] = part.text
    details: list[JsonObject] | None = members.pop("reasoning_details", None)
    for name, text in members.items():
        message[name] = message.get(name, "") + text
    if details:
        merged: list[JsonObject] = message.setdefault("reasoning_details", [])
        if merged:
            merge_details(merged, details)
        else:
            merged.extend(details)


def _write_text(text: Text, path: str, to: Writing) -> JsonObject:
    """A text part."""
    part: JsonObject = {**unpack(text.kept).outer, "type": "text", "text": text.text}
    to.mark(part, text.cache, path)
    return part


def _write_media(media: Media, path: str, to: Writing) -> JsonObject | None:
    """A media part; None, and a loss, where the format has none for it."""
    left = unpack(media.kept)
    part = _typed(media, left, path, to)
    if part is not None:
        part = left.outer | part
        to.mark(part, media.cache, path)
    return part


def _typed(media: Media, left: Leftovers, path: str, to: Writing) -> JsonObject | None:
    words = left.words
    if "document_url" in words:
        part = _addressed("document_url", media, left)
        return part | {"document_name": media.name} if media.name else part
    if "video_url" in words:
        return _addressed("video_url", media, left)
    if "input_audio" in words:
        return {"type": "input_audio", "input_audio": {**left.inner, "data": media.base64}}
    if words & {"file", "file_id"}:
        return _file(media, left)
    if media.kind is MediaKind.IMAGE and (to.verbatim or media.base64 or media.url):
        return _addressed("image_url", media, left)
    if media.kind is MediaKind.AUDIO and media.mime in _SOUNDS and (to.verbatim or media.base64):
        sound = {**left.inner, "data": media.base64, "format": _SOUNDS[media.mime]}
        return {"type": "input_audio", "input_audio": sound}
    if media.kind is MediaKind.DOCUMENT and (to.verbatim or media.base64):
        return _document(media, left, path, to)
    _report(media, path, to)
    return None


def _addressed(member: str, media: Media, left: Leftovers) -> JsonObject:
    address = write_address(media)
    if "bare" in left.words:
        return {"type": member, member: address}
    return {"type": member, member: {**left.inner, **shared(media.kept, NAME), "url": address}}


def _document(media: Media, left: Leftovers, path: str, to: Writing) -> JsonObject:
    if to.verbatim or not media.mime.startswith("text/"):
        file = _file(media, left)
        if not to.verbatim:
            file["file"].setdefault("filename", "document.pdf")
        return file
    # The file part is for PDF; plain text can be told as such.
    to.losses.add(path, f"{media.mime} document", "sent as text")
    try:
        text = b64decode(media.base64).decode("utf-8", "replace")
    except ValueError:
        text = media.base64
    return {"type": "text", "text": f"{media.name}\n{text}" if media.name else text}


def _file(media: Media, left: Leftovers) -> JsonObject:
    file = dict(left.inner)
    if media.base64:
        file["file_data"] = media.base64 if "bare" in left.words else write_address(media)
    elif media.url:
        file["file_data"] = media.url
    if media.file_id:
        file["file_id"] = media.file_id
    if media.name:
        file["filename"] = media.name
    return {"type": "file", "file": file}


def _report(media: Media, path: str, to: Writing) -> None:
    what = f"{media.mime or media.kind} {_source(media)}"
    to.losses.add(path, what, "chat messages have no part for it")


def _source(media: Media) -> str:
    if media.base64:
        return "bytes"
    return "address" if media.url else "file id"
