"""Values → chat messages and their parts."""

from collections.abc import Sequence

import msgspec

from toolwire.dialects.losses import Losses, own_seal
from toolwire.dialects.openai_chat.media import write_image, write_media
from toolwire.dialects.openai_chat.shapes import (
    NAME,
    REASONING,
    cache_control,
    merge_details,
    unpack,
)
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.tools import as_text
from toolwire.messages import (
    CacheMark,
    CallKind,
    Kept,
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
from toolwire.request import NO_SOURCE, JsonObject, ModelRequest, Source
from toolwire.wire.json_access import parse
from toolwire.wire.names import ToolNames

_ATTACHED = "The result is attached below."


class Target(msgspec.Struct, frozen=True):
    """The server that a request is written for."""

    quirks: Quirks
    names: ToolNames
    losses: Losses
    source: Source = NO_SOURCE
    """What a request of this format was decoded from."""

    verbatim: bool = False
    """No quirk of the server is known: all of the source that is unchanged goes out as received."""

    def name(self, name: str, namespace: str = "") -> str:
        """The tool name to send."""
        return name if self.verbatim else self.names.wire_name(name, namespace)

    def mark(self, target: JsonObject, cache: CacheMark | None, path: str) -> None:
        """Writes a cache mark where the server reads one."""
        if self.takes_mark(cache):
            if cache is not None:
                target["cache_control"] = cache_control(cache)
        else:
            self.losses.add(f"{path}.cache", "cache mark", "the server caches by itself")

    def takes_mark(self, cache: CacheMark | None) -> bool:
        """Whether a value with this mark may be sent with it."""
        return cache is None or self.quirks.cache_marks or self.verbatim


def encode_messages(request: ModelRequest, to: Target) -> list[JsonObject]:
    """The whole conversation, instructions first."""
    written: list[JsonObject] = []
    if request.system:
        parts = _parts(request.system, "system", to)
        written.append({"role": to.quirks.system_role, "content": _content(parts)})
    for number, message in enumerate(request.messages):
        written.extend(_received(message, to) or _message(message, f"messages[{number}]", to))
    if to.quirks.assistant_between_results_and_user:
        return _with_assistant_between(written)
    return written


def _received(message: Message, to: Target) -> list[JsonObject] | None:
    """The wire messages that it was decoded from, unless a quirk concerns them."""
    wire: list[JsonObject] | None = to.source.wire(message)
    if wire is None or to.verbatim:
        return wire
    if message.role == "system" and wire[0].get("role") != to.quirks.system_role:
        return None
    if message.calls and to.quirks.reasoning_field:
        return None
    if any(item.get("role") == "function" or item.get("function_call") for item in wire):
        return None
    return wire if all(_is_taken(part, to) for part in message.parts) else None


def _is_taken(part: Part, to: Target) -> bool:
    match part:
        case Thinking():
            return False
        case ToolCall():
            return to.takes_mark(part.cache) and to.name(part.name) == part.name
        case ToolResult():
            named = not part.name or to.name(part.name) == part.name
            return named and all(_is_taken(inner, to) for inner in part.parts)
        case Text() | Media():
            return to.takes_mark(part.cache)
        case Refusal() | ServerBlock():
            return True


def _message(message: Message, path: str, to: Target) -> list[JsonObject]:
    match message.role:
        case "system":
            content = _content(_parts(message.parts, path, to))
            return [_whole(message.kept, to.quirks.system_role, content)]
        case "assistant":
            found = _write_assistant(message, path, to)
            return [] if found is None else [found]
        case "user":
            plain = _plain_text(message)
            return _user(message, path, to) if plain is None else [plain]


def _plain_text(message: Message) -> JsonObject | None:
    """A message that is nothing but text, as most are."""
    if len(message.parts) != 1 or message.kept is not None:
        return None
    [part] = message.parts
    if type(part) is not Text or part.citations or part.cache is not None or part.kept is not None:
        return None
    return {"role": message.role, "content": part.text}


def _whole(kept: Kept | None, role: str, content: object) -> JsonObject:
    outer, _ = unpack(kept)
    return {"role": role, "content": content, **outer}


def _user(message: Message, path: str, to: Target) -> list[JsonObject]:
    written: list[JsonObject] = []
    media: list[JsonObject] = []
    others: list[tuple[int, Part]] = []
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            at = f"{path}.parts[{number}]"
            written.append(_result(part, at, media, to))
            if others:
                to.losses.add(at, "order", "results precede the other parts of a turn")
        else:
            others.append((number, part))
    if not others and not media and message.parts:
        return written
    content = _content([*media, *_numbered_parts(others, path, to)])
    return [*written, _whole(message.kept, "user", content)]


def _result(result: ToolResult, path: str, media: list[JsonObject], to: Target) -> JsonObject:
    parts = _without_media(result.parts, path, media, to)
    content = _content(_parts(parts, path, to))
    written = _whole(result.kept, "tool", _result_content(result, content, bool(media), path, to))
    written["tool_call_id"] = result.call_id
    to.mark(written, result.cache, path)
    return written


def _result_content(
    result: ToolResult, content: object, attached: bool, path: str, to: Target
) -> object:
    if result.is_error:
        to.losses.add(f"{path}.is_error", "error flag", "chat results have only their text")
    if content:
        return content
    if result.is_error:
        return "Error"
    return _ATTACHED if attached and any(isinstance(p, Media) for p in result.parts) else ""


def _without_media(
    parts: Sequence[ResultPart], path: str, media: list[JsonObject], to: Target
) -> list[ResultPart]:
    """The parts that a tool message can contain; media goes into `media`, for a user message."""
    others: list[ResultPart] = []
    for number, part in enumerate(parts):
        if not isinstance(part, Media):
            others.append(part)
            continue
        at = f"{path}.parts[{number}]"
        found = _write_media(part, at, to)
        if found is None:
            others.append(Text(part.placeholder))
        else:
            media.append(found)
            to.losses.add(at, f"{part.kind} in a result", "sent in a user message after it")
    return others


def _parts(parts: Sequence[Part], path: str, to: Target) -> list[JsonObject]:
    return _numbered_parts(list(enumerate(parts)), path, to)


def _numbered_parts(parts: list[tuple[int, Part]], path: str, to: Target) -> list[JsonObject]:
    written: list[JsonObject] = []
    for number, part in parts:
        at = f"{path}[{number}]" if path == "system" else f"{path}.parts[{number}]"
        match part:
            case Text():
                if part.citations:
                    to.losses.add(f"{at}.citations", "citations", "requests carry none")
                if part.text:
                    written.append(_write_text(part, at, to))
            case Media():
                found = _write_media(part, at, to)
                written.append(found or {"type": "text", "text": part.placeholder})
            case ServerBlock():
                if part.origin.dialect == NAME:
                    written.append(parse(part.data, "part"))
            case Thinking() | Refusal() | ToolCall() | ToolResult():
                to.losses.add(at, type(part).__name__, "only an assistant message contains it")
    return written


def _content(parts: list[JsonObject]) -> object:
    """A string where it is enough, else a list."""
    if not parts:
        return ""
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


def _write_assistant(message: Message, path: str, to: Target) -> JsonObject | None:
    """One message: its text, the thinking that the server wants back, its calls.

    None if all of it was lost: an empty message would only confuse the model.
    """
    written = _Assistant(message, path, to).write()
    lost = written == {"role": "assistant", "content": ""} and message.parts
    return None if lost else written


class _Assistant:
    """Builds the members of one message."""

    def __init__(self, message: Message, path: str, to: Target) -> None:
        self._message = message
        self._path = path
        self._to = to
        self._written: JsonObject = {}
        self._content: list[JsonObject] = []
        self._calls: list[JsonObject] = []
        self._refusal = ""

    def write(self) -> JsonObject:
        """The message in its wire form."""
        for number, part in enumerate(self._message.parts):
            at = f"{self._path}.parts[{number}]"
            match part:
                case Text():
                    self._text(part, at)
                case Thinking():
                    self._thinking(part, at)
                case Refusal():
                    self._refusal += part.text
                case ToolCall():
                    self._call(part, at)
                case Media():
                    self._media(part, at)
                case ServerBlock():
                    self._block(part)
                case ToolResult():
                    self._to.losses.add(at, "tool result", "only a user message contains it")
        return self._assemble()

    def _assemble(self) -> JsonObject:
        content = _assistant_content(self._content)
        if content is None and not self._calls:
            # Without calls a message must have content, even an empty one.
            content = ""
        written = _whole(self._message.kept, "assistant", content) | self._written
        if self._refusal:
            written["refusal"] = self._refusal
        if self._calls:
            written["tool_calls"] = self._calls
            field = self._to.quirks.reasoning_field
            replay = self._to.quirks.reasoning_replay
            if field and replay != "never" and not any(name in written for name in REASONING):
                # DeepSeek and Kimi want the member beside calls even when it is empty.
                written[field] = ""
        return written

    def _text(self, part: Text, at: str) -> None:
        to = self._to
        if self._calls and part.text:
            to.losses.add(at, "order", "in a chat message, text precedes calls")
        self._written.update(own_seal(part.seal, NAME))
        if part.citations:
            to.losses.add(f"{at}.citations", "citations", "requests carry none")
        if part.text:
            self._content.append(_write_text(part, at, to))

    def _thinking(self, part: Thinking, at: str) -> None:
        to = self._to
        sealed = own_seal(part.seal, NAME)
        replay = to.quirks.reasoning_replay
        calls = bool(self._message.calls)
        replayed = replay == "always" or (replay == "with_tools" and calls)
        if "reasoning_details" in sealed and replay != "never":
            replayed = True
        if sealed and replayed:
            if sealed.get("type") == "thinking":
                self._content.append(sealed)
            else:
                write_thinking(self._written, part)
        elif to.quirks.reasoning_field and replayed:
            field = to.quirks.reasoning_field
            self._written[field] = self._written.get(field, "") + part.text
        elif part.text:
            to.losses.add(at, "thinking", "the server does not want it back here")

    def _media(self, part: Media, at: str) -> None:
        wire = _received_part(part, self._to)
        _, inner = unpack(part.kept)
        answered = part.kept is not None and part.kept.dialect == NAME
        if wire is not None:
            self._content.append(wire)
        elif answered and part.kind is MediaKind.IMAGE and (part.base64 or part.url):
            self._written.setdefault("images", []).append(write_image(part))
        elif answered and part.kind is MediaKind.AUDIO and part.file_id:
            self._written["audio"] = {**inner, "id": part.file_id}
        else:
            self._to.losses.add(at, str(part.kind), "an assistant's chat message cannot contain it")

    def _block(self, part: ServerBlock) -> None:
        if part.origin.dialect != NAME:
            return
        if part.kind == "tool_call":
            self._calls.append(parse(part.data, "tool call"))
        else:
            self._content.append(parse(part.data, "part"))

    def _call(self, call: ToolCall, at: str) -> None:
        to = self._to
        member, text = "function", "arguments"
        arguments = call.arguments
        if call.kind is CallKind.FREEFORM:
            member, text = "custom", "input"
        else:
            arguments = as_text(call, at, to.losses)
        inner = {"name": to.name(call.name, call.namespace), text: arguments}
        entry: JsonObject = {"id": call.id, "type": member, member: inner}
        entry |= own_seal(call.seal, NAME)
        to.mark(entry, call.cache, at)
        self._calls.append(entry)


def _assistant_content(parts: list[JsonObject]) -> object:
    if not parts:
        return None
    # Many servers take only a string from an assistant.
    if all(part.keys() == {"type", "text"} and part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def write_thinking(message: JsonObject, part: Thinking) -> None:
    """Writes thinking into the members it was received in, or the one that most clients read."""
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


def _write_text(text: Text, path: str, to: Target) -> JsonObject:
    outer, _ = unpack(text.kept)
    part: JsonObject = {**outer, "type": "text", "text": text.text}
    to.mark(part, text.cache, path)
    return part


def _received_part(media: Media, to: Target) -> JsonObject | None:
    return to.source.wire(media) if to.takes_mark(media.cache) else None


def _write_media(media: Media, path: str, to: Target) -> JsonObject | None:
    """A media part; None, with a loss, if the format has none for it."""
    part = _received_part(media, to)
    if part is not None:
        return part
    outer, inner = unpack(media.kept)
    part = write_media(media, inner, path, to.losses)
    if part is not None:
        part = outer | part
        to.mark(part, media.cache, path)
    return part
