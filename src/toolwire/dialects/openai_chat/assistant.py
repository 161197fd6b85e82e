"""An assistant's message in a chat request, written."""

from toolwire.dialects.arguments import as_text
from toolwire.dialects.kept import own_seal
from toolwire.dialects.openai_chat.citations import write_citation
from toolwire.dialects.openai_chat.leftovers import Leftovers, scatter
from toolwire.dialects.openai_chat.media import write_image
from toolwire.dialects.openai_chat.whole import write_thinking
from toolwire.dialects.openai_chat.wire import NAME, REASONING
from toolwire.dialects.openai_chat.write_parts import write_media, write_text
from toolwire.dialects.openai_chat.writing import Writing
from toolwire.messages import (
    CallKind,
    Media,
    Message,
    Refusal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import parse


def write_assistant(message: Message, path: str, to: Writing) -> JsonObject | None:
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
        self._left = scatter(message.kept)
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
        content = _content(self._content, self._left)
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
            self._content.append(write_text(part, place, to))

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
        left = scatter(part.kept)
        if "part" in left.words:
            self._content.append({**left.outer, "type": "refusal", "refusal": part.text})
        else:
            self._refusal += part.text

    def _media(self, part: Media, place: str) -> None:
        left = scatter(part.kept)
        if "images" in left.words:
            self._written.setdefault("images", []).append(write_image(part))
        elif "audio" in left.words and part.file_id:
            self._written["audio"] = {**left.inner, "id": part.file_id}
        elif self._to.verbatim:
            found = write_media(part, place, self._to)
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
        left = scatter(call.kept)
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


def _content(parts: list[JsonObject], left: Leftovers) -> object:
    if "list" in left.words:
        return parts
    if not parts:
        return "" if "empty" in left.words else None
    # Many servers take only a string from an assistant.
    if all(part.keys() == {"type", "text"} and part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts
