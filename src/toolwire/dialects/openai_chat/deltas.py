"""Members of a chat message, streamed or whole → events."""

from typing import Any

from msgspec import Raw

from toolwire.dialects import DecodeOptions
from toolwire.dialects.openai_chat.media import SpokenAudio, read_citation, read_image
from toolwire.dialects.openai_chat.shapes import (
    UNREADABLE,
    Delta,
    Fragment,
    details_text,
    merge_details,
    part_text,
    read_part,
    thinking_part,
)
from toolwire.events import (
    CitationAdded,
    MediaAdded,
    ModelEvent,
    RefusalDelta,
    ServerBlockAdded,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
)
from toolwire.messages import CallKind, Origin, Seal, ServerBlock
from toolwire.request import JsonObject
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.json_access import dump

# A handle that no index of the `tool_calls` list can be.
_LEGACY_CALL = -1


class _Thoughts:
    """One per answer. Emits reasoning as it arrives, then seals what the server wants back."""

    def __init__(self, origin: Origin, *, whole: bool = False) -> None:
        self._origin = origin
        self._whole = whole
        self._plain_seen = False
        self._members: dict[str, list[str]] = {}
        self._details: list[JsonObject] = []
        self._parts: list[str] = []
        self.open = False

    def add(self, delta: Delta, events: list[ModelEvent]) -> None:
        """Adds the reasoning of one delta, from any of its members."""
        text = ""
        if isinstance(delta.reasoning, str) and delta.reasoning:
            text = self._plain("reasoning", delta.reasoning)
        if delta.reasoning_content:
            text = self._plain("reasoning_content", delta.reasoning_content)
        if delta.reasoning_details:
            self.open = True
            if not text and not self._plain_seen:
                text = details_text(delta.reasoning_details)
            if self._whole:
                self._details.extend(delta.reasoning_details)
            else:
                merge_details(self._details, delta.reasoning_details)
        if text:
            events.append(ThinkingDelta(text))

    def add_part(self, text: str, events: list[ModelEvent]) -> None:
        """Adds reasoning from a part of the content list (Mistral)."""
        self.open = True
        self._parts.append(text)
        if text:
            events.append(ThinkingDelta(text))

    def end(self, events: list[ModelEvent]) -> None:
        """Seals the reasoning since the last seal; called when something else begins."""
        if not self.open:
            return
        self.open = False
        sealed: JsonObject = {name: "".join(texts) for name, texts in self._members.items()}
        if self._details:
            sealed["reasoning_details"] = self._details
        if self._parts:
            sealed = thinking_part("".join(self._parts)) | sealed
        self._members = {}
        self._details = []
        self._parts = []
        events.append(ThinkingEnded(Seal(origin=self._origin, data=dump(sealed))))

    def _plain(self, member: str, text: str) -> str:
        self.open = self._plain_seen = True
        self._members.setdefault(member, []).append(text)
        return text


class _TagSplitter:
    """Separates thinking from text between tags, which may be split anywhere."""

    def __init__(self, tag: str) -> None:
        self._opening = f"<{tag}>"
        self._closing = f"</{tag}>"
        self._inside = False
        self._held = ""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """The pieces decided so far, each with whether it is thinking."""
        text = self._held + text
        self._held = ""
        pieces: list[tuple[bool, str]] = []
        while text:
            tag = self._closing if self._inside else self._opening
            before, found, after = text.partition(tag)
            if not found:
                held = _overlap(text, tag)
                before, self._held = text[: len(text) - held], text[len(text) - held :]
            if before:
                pieces.append((self._inside, before))
            if found:
                self._inside = not self._inside
            text = after
        return pieces

    def flush(self) -> list[tuple[bool, str]]:
        """Text that could have begun a tag but did not."""
        held, self._held = self._held, ""
        return [(self._inside, held)] if held else []


def _overlap(text: str, tag: str) -> int:
    """Length of the longest suffix of the text that is a prefix of the tag."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0


class AnswerDeltas:
    """One per answer. Decodes the deltas of one choice."""

    _audio: SpokenAudio | None = None
    _extra: dict[str, Any] | None = None
    refused = False
    _received = False

    def __init__(self, options: DecodeOptions, *, whole: bool = False) -> None:
        self._origin = options.origin
        self._calls = ToolCallTracker(options.new_id, options.names)
        self._thoughts = _Thoughts(options.origin, whole=whole)
        tag = options.quirks.think_tag
        self._tags = _TagSplitter(tag) if tag else None

    @property
    def has_content(self) -> bool:
        """Whether any content was received."""
        return self._received or self.has_calls or self._thoughts.open

    @property
    def has_calls(self) -> bool:
        """Whether the model called a tool."""
        return len(self._calls) > 0

    def add(self, delta: Delta, events: list[ModelEvent], *, whole: bool = False) -> None:
        """The events of one delta, or of a whole message."""
        if whole:
            # Each entry is a call, whatever its id or index.
            for number, fragment in enumerate(delta.tool_calls or ()):
                fragment.index = number
        if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
            self._thoughts.add(delta, events)
        content = delta.content
        if content:
            if isinstance(content, str):
                self._text(content, events)
            elif isinstance(content, list):
                self._parts(content, events)
            else:
                # Cloudflare gives structured output as an object, not as its text.
                self._text(dump(content), events)
        if delta.refusal:
            self._thoughts.end(events)
            self.refused = True
            events.append(RefusalDelta(delta.refusal))
        if delta.annotations:
            self._citations(delta.annotations, events)
        if delta.images:
            self._thoughts.end(events)
            events.extend(MediaAdded(read_image(image)) for image in delta.images)
        if delta.extra_content:
            self._extra = (self._extra or {}) | delta.extra_content
        if delta.tool_calls:
            self._flush(events)
            self._fragments(delta.tool_calls, events)
        call = delta.function_call
        if call and (call.name or call.arguments):
            self._flush(events)
            events.extend(self._calls.fragment(_LEGACY_CALL, None, call.name, call.arguments))
        if delta.audio:
            self._audio = self._audio or SpokenAudio()
            self._audio.add(delta.audio)
        if events:
            self._received = True

    def settle(self, events: list[ModelEvent]) -> None:
        """Flushes at a finish reason, of which some servers send one with each delta."""
        self._flush(events)
        spoken = self._audio.take() if self._audio is not None else None
        if spoken is not None:
            events.append(MediaAdded(spoken))
        if events:
            self._received = True

    def end(self, events: list[ModelEvent], *, cut: bool) -> None:
        """Ends the choice and its calls."""
        self.settle(events)
        events.extend(self._calls.end_all(cut=cut))

    def flush(self, events: list[ModelEvent]) -> None:
        """Emits what was held back because more could have followed."""
        self._flush(events)
        events.extend(self._calls.flush())

    def _text(self, text: str, events: list[ModelEvent]) -> None:
        if self._thoughts.open:
            self._thoughts.end(events)
        if self._calls.waiting:
            events.extend(self._calls.flush())
        if self._tags is None:
            events.append(TextDelta(text))
        else:
            _emit(self._tags.feed(text), events)

    def _flush(self, events: list[ModelEvent]) -> None:
        self._thoughts.end(events)
        if self._tags is not None:
            _emit(self._tags.flush(), events)
        if self._extra is not None:
            seal = Seal(origin=self._origin, data=dump({"extra_content": self._extra}))
            events.append(TextEnded(seal))
            self._extra = None

    def _parts(self, parts: list[Raw], events: list[ModelEvent]) -> None:
        for raw in parts:
            try:
                part = read_part(raw)
            except UNREADABLE:
                self._unknown_part("part", raw, events)
                continue
            if part.type == "text" and part.text is not None:
                if part.text:
                    self._text(part.text, events)
            elif part.type == "thinking" and part.thinking is not None:
                self._thoughts.add_part(part_text(part.thinking), events)
            elif part.type == "refusal" and part.refusal:
                self._thoughts.end(events)
                self.refused = True
                events.append(RefusalDelta(part.refusal))
            elif part.type == "image_url" and part.image_url:
                self._thoughts.end(events)
                events.append(MediaAdded(read_image({"image_url": part.image_url})))
            else:
                self._unknown_part(part.type or "part", raw, events)

    def _unknown_part(self, kind: str, raw: Raw, events: list[ModelEvent]) -> None:
        self._thoughts.end(events)
        data = bytes(raw).decode()
        events.append(ServerBlockAdded(ServerBlock(origin=self._origin, kind=kind, data=data)))

    def _citations(self, annotations: list[Raw], events: list[ModelEvent]) -> None:
        self._thoughts.end(events)
        for raw in annotations:
            citation = read_citation(raw)
            if citation is not None:
                events.append(CitationAdded(citation))

    def more(self, delta: Delta) -> list[ModelEvent] | None:
        """The fast path for a delta that only continues the text or one call; else None."""
        fragments = delta.tool_calls
        content = delta.content
        if (
            delta.reasoning_content
            or delta.reasoning
            or delta.reasoning_details
            or delta.refusal
            or delta.annotations
            or delta.audio
            or delta.images
            or delta.extra_content
            or delta.function_call
            or self._thoughts.open
        ):
            return None
        if content:
            if fragments or self._tags is not None or type(content) is not str:
                return None
            self._received = True
            return [TextDelta(content)]
        if not fragments or len(fragments) > 1:
            return None if fragments else []
        fragment = fragments[0]
        function = fragment.function
        if (
            function is None
            or function.name
            or type(function.arguments) is not str
            or fragment.id
            or fragment.custom
            or fragment.extra_content
            or fragment.index not in self._calls
        ):
            return None
        return self._calls.append(fragment.index, function.arguments)

    def _fragments(self, fragments: list[Fragment], events: list[ModelEvent]) -> None:
        named = False
        for fragment in fragments:
            self._fragment(fragment, events, named=named)
            called = fragment.function or fragment.custom
            named = named or (called is not None and bool(called.name))

    def _fragment(self, fragment: Fragment, events: list[ModelEvent], *, named: bool) -> None:
        function, custom = fragment.function, fragment.custom
        kind = CallKind.JSON
        name = arguments = None
        if function is not None:
            name, arguments = function.name, function.arguments
        if custom is not None and not name and (fragment.type != "function" or function is None):
            # Snowflake sends an empty `custom` beside every function, and the other way round.
            name, arguments, kind = custom.name, custom.input or arguments, CallKind.FREEFORM
        index = fragment.index
        if not (name or arguments or fragment.id) and (index is None or index not in self._calls):
            return
        # A second name in one list, without index or id: a second call.
        anew = named and bool(name) and index is None and not fragment.id
        events.extend(self._calls.fragment(index, fragment.id, name, arguments, kind, anew=anew))
        if fragment.extra_content:
            self._seal_call(fragment, fragment.extra_content)

    def _seal_call(self, fragment: Fragment, extra: dict[str, Any]) -> None:
        seal = Seal(origin=self._origin, data=dump({"extra_content": extra}))
        index, vendor_id = fragment.index, fragment.id
        for handle in ((index, vendor_id), index, vendor_id, len(self._calls) - 1):
            if handle in self._calls:
                self._calls.attach(handle, seal)
                return


def _emit(pieces: list[tuple[bool, str]], events: list[ModelEvent]) -> None:
    for thinking, text in pieces:
        events.append(ThinkingDelta(text) if thinking else TextDelta(text))
