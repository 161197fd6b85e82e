"""Frames of a streamed answer → events; a whole answer is decoded item by item."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, TypeAlias, cast

import msgspec

from toolwire.dialects import DecodeOptions
from toolwire.dialects.failures import find_error, unreadable
from toolwire.dialects.openai_responses.ends import finished, last_response, read_response, usage_in
from toolwire.dialects.openai_responses.errors import provider_error
from toolwire.dialects.openai_responses.items import decode_item
from toolwire.dialects.openai_responses.media import citation
from toolwire.dialects.openai_responses.open_items import (
    TEXT_DONE,
    ItemIndex,
    OpenReasoning,
    OpenText,
    final_part,
    names_of,
)
from toolwire.dialects.openai_responses.shapes import (
    CALLS,
    NULL,
    StreamEvent,
    WireResponse,
    coerced,
    member,
    stream_event,
)
from toolwire.errors import BadInput, IncompleteStream
from toolwire.events import (
    CitationAdded,
    MediaAdded,
    ModelEvent,
    RefusalDelta,
    ServerBlockAdded,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    Usage,
)
from toolwire.messages import CallKind, Media, ServerBlock, Thinking, ToolCall
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.json_access import JsonObject, encode, object_or_empty, parse, parse_object
from toolwire.wire.sse import Frame
from toolwire.wire.surrogates import PairJoiner

_read = stream_event.decode
_NOTHING: tuple[ModelEvent, ...] = ()
_Method: TypeAlias = Callable[[Any, StreamEvent, Frame], Sequence[ModelEvent]]
"""Decodes an event that is not a text delta."""

_DELTAS = ("_text.delta", "refusal.delta", "call_arguments.delta", "call_input.delta")


class AnswerDecoder:
    """One per answer. Items are identified by output index: ids may change during a stream."""

    def __init__(self, options: DecodeOptions) -> None:
        self._origin = options.origin
        self._calls = ToolCallTracker(options.new_id, options.names)
        self._text = OpenText()
        self._reasoning = OpenReasoning()
        self._final_arguments: dict[Hashable, str] = {}
        self._first_arguments: dict[Hashable, str] = {}
        """Arguments in the event that opened a call; most servers stream them again."""
        self._index = ItemIndex()
        self._done: set[Hashable] = set()
        self._held: dict[Hashable, list[tuple[StreamEvent, Frame]]] = {}
        """Events of messages that began while another message is open, by item."""
        self._finished = False
        self._usage: Usage | None = None
        self._pairs = PairJoiner()

    def feed(self, frame: Frame) -> Sequence[ModelEvent]:
        """The events of one frame."""
        if self._pairs.cut is not None:
            return self._pairs.resume(self.feed, frame)
        try:
            event = _read(frame.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._lenient(frame, error)
        kind = event.type
        delta = event.delta
        if kind == "response.output_text.delta":
            text = self._text
            if not delta or event.output_index != text.item or event.content_index != text.part:
                return self._message_event(event, frame)
            text.streamed.append(delta)
            return (TextDelta(delta),)
        if kind == "response.function_call_arguments.delta" or (
            kind == "response.custom_tool_call_input.delta"
        ):
            key = event.output_index
            if key is None or key in self._done or self._index.shared:
                return self._arguments_delta(event)
            try:
                return self._calls.append(key, delta or "")
            except KeyError:
                # The event that opened the item is missing; the one at its end is whole.
                return _NOTHING
        if kind == "response.reasoning_summary_text.delta" or (
            kind == "response.reasoning_text.delta"
        ):
            reasoning = self._reasoning
            if not delta or not reasoning.streamed or event.output_index != reasoning.item:
                return self._reasoning_delta(event)
            reasoning.streamed.append(delta)
            return (ThinkingDelta(delta),)
        return self._other(event, frame)

    def close(self) -> Sequence[ModelEvent]:
        """No events; raises if the end of the answer did not arrive."""
        if not self._finished:
            raise IncompleteStream("the stream ended before response.completed")
        return _NOTHING

    def pending(self) -> Sequence[ModelEvent]:
        """Finished text and arguments that were not streamed as deltas; messages held back."""
        events = self._pairs.mark()
        self._text.emit_rest(events)
        self._interrupt_text(events)
        self._emit_first_arguments(events)
        for key, last in self._final_arguments.items():
            if key in self._calls:
                events += self._calls.end(key, arguments=last, complete=False)
        return events

    def usage(self) -> Usage | None:
        """The counts of a response that failed: the format has none before its last event."""
        return self._usage

    def _emit_first_arguments(self, events: list[ModelEvent]) -> None:
        for key, text in self._first_arguments.items():
            if self._calls.silent(key):
                events += self._calls.append(key, text)

    def whole(self, response: WireResponse) -> list[ModelEvent]:
        """The events of everything in a response object that was not streamed, and its end."""
        events: list[ModelEvent] = []
        streamed = frozenset(self._done)
        output = response.output or []
        for number, raw in enumerate(output):
            item = parse(bytes(raw), "item")
            if not isinstance(item, dict):
                continue
            item = cast(JsonObject, item)
            key = self._index.listed(number, item)
            events += self._release(key)
            released = key in self._done and key not in streamed
            if not released and key not in streamed and names_of(item).isdisjoint(streamed):
                cut = response.status == "incomplete" and number == len(output) - 1
                events += self._whole_item(key, bytes(raw), item, cut=cut)
        self._text.emit_rest(events)
        self._interrupt_text(events)
        if self._reasoning.streamed:
            events.append(ThinkingEnded())
        self._emit_first_arguments(events)
        for key, last in self._final_arguments.items():
            if key in self._calls:
                events += self._calls.end(key, arguments=last)
        events += self._calls.end_all(cut=response.status == "incomplete")
        calls = len(self._calls) > 0
        events.append(finished(response, calls=calls, refused=self._text.refused))
        self._finish()
        return events

    def _waits(self, key: Hashable, event: StreamEvent, frame: Frame) -> bool:
        """Holds an event of a message back while another message is open: they may take turns."""
        if self._text.item is None or self._text.item == key:
            return False
        self._held.setdefault(key, []).append((event, frame))
        return True

    def _release(self, key: Hashable) -> list[ModelEvent]:
        """The events of a message that was held back."""
        events: list[ModelEvent] = []
        for event, frame in self._held.pop(key, ()):
            events += self._OTHER[event.type or ""](self, event, frame)
        return events

    def _interrupt_text(self, events: list[ModelEvent]) -> None:
        """Ends the open message, and those that wait for it, before their items end."""
        self._text.interrupt(events)
        for key in list(self._held):
            events += self._release(key)
            self._text.interrupt(events)

    def _finish(self) -> None:
        self._finished = True
        self._text = OpenText()
        self._reasoning = OpenReasoning()
        self._calls = ToolCallTracker(str)

    def _other(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        if self._finished:
            return _NOTHING
        try:
            if event.type is None and frame.event.startswith("response."):
                # Some servers send the event's type only in the frame.
                named = {"type": frame.event, **parse_object(frame.data, "event")}
                return self.feed(Frame(encode(named), frame.event, frame.cut))
            if event.type is None:
                return self._untyped(frame, is_response=event.object == "response")
            method = self._OTHER.get(event.type)
            return _NOTHING if method is None else method(self, event, frame)
        except (BadInput, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise unreadable(frame, error, "event") from error

    def _untyped(self, frame: Frame, *, is_response: bool) -> Sequence[ModelEvent]:
        """The events of a body that is not a stream: a whole answer, or an error."""
        value = parse(frame.data, "body")
        if is_response and not value.get("error"):
            return self.whole(read_response(frame.data))
        if find_error(value):
            raise provider_error(value, frame.data)
        return _NOTHING

    def _lenient(self, frame: Frame, error: Exception) -> Sequence[ModelEvent]:
        """The events of a frame that does not decode: an end mark, odd member types, or broken."""
        if frame.data.strip() == b"[DONE]" or self._finished:
            return _NOTHING
        streamed = b'.delta"' in frame.data
        repaired = self._pairs.repaired(self.feed, frame, streamed=streamed)
        if repaired is not None:
            return repaired
        try:
            value = parse(frame.data, "event")
        except BadInput:
            raise unreadable(frame, error, "event") from error
        match value:
            case {"type": "error"} | {"error": {}}:
                raise provider_error(value, frame.data) from error
            case {"object": "response"} if "type" not in value:
                return self._other(StreamEvent(object="response"), frame)
            case {"type": str(kind)} if (
                kind.startswith("response.") and (coerced_event := coerced(value)) != value
            ):
                return self.feed(Frame(encode(coerced_event), frame.event, frame.cut))
            case {"type": str(kind)} if kind not in self._OTHER and not kind.endswith(_DELTAS):
                return _NOTHING
            case _:
                raise unreadable(frame, error, "event") from error

    def _error(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        raise provider_error(parse(frame.data, "error"), frame.data)

    def _failed(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        response = parse(bytes(event.response), "response")
        self._usage = usage_in(response)
        raise provider_error(response, frame.data)

    def _ended(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        return self.whole(last_response(event))

    def _message_event(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        """The events of a delta, an annotation or the end of a part; it may open the part."""
        key, part = self._index.of(event), event.content_index or 0
        text = self._text
        if self._finished or key in self._done or self._waits(key, event, frame):
            return _NOTHING
        source = citation(parse(bytes(event.annotation), "annotation"))
        final = final_part(event)
        if event.delta is None and source is None and final is None:
            return _NOTHING
        if event.type in TEXT_DONE and key == text.item and text.streamed:
            return _NOTHING
        events: list[ModelEvent] = []
        self._reasoning.interrupt()
        if key != text.item or part != text.part:
            self._index.add_id(key, event.item_id)
            text.open(key, part, events)
        if final is not None:
            text.final_part = final
        elif source is not None:
            text.cited += 1
            events.append(CitationAdded(source))
        elif event.delta:
            refused = event.type == "response.refusal.delta"
            text.refused = text.refused or refused
            text.streamed.append(event.delta)
            events.append(RefusalDelta(event.delta) if refused else TextDelta(event.delta))
        return events

    def _reasoning_delta(self, event: StreamEvent) -> Sequence[ModelEvent]:
        key = self._index.of(event)
        if self._finished or not event.delta or key in self._done:
            return _NOTHING
        events: list[ModelEvent] = []
        self._interrupt_text(events)
        self._index.add_id(key, event.item_id)
        self._reasoning.open(key, events)
        self._reasoning.streamed.append(event.delta)
        events.append(ThinkingDelta(event.delta))
        return events

    def _arguments_delta(self, event: StreamEvent) -> Sequence[ModelEvent]:
        key = self._index.of(event)
        if self._finished or key in self._done or key not in self._calls:
            return _NOTHING
        return self._calls.append(key, event.delta or "")

    def _arguments_done(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        last = event.arguments if event.arguments is not None else event.input
        if last is not None:
            self._final_arguments[self._index.of(event)] = last
        return _NOTHING

    def _item_added(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        item = object_or_empty(parse(bytes(event.item), "item"))
        key = self._index.added(event, item, self._done)
        again = self._begins_again(key, item)
        if again:
            self._done.discard(key)
        kind = CALLS.get(member(item, "type"))
        if kind is None or (key in self._calls and not again) or not member(item, "name"):
            return _NOTHING
        given = member(item, "arguments" if kind is CallKind.JSON else "input")
        if given:
            self._first_arguments[key] = given
        return self._start(key, item, kind)

    def _begins_again(self, key: Hashable, item: JsonObject) -> bool:
        # Some servers send one output index for all items; only their ids differ.
        if key not in self._done:
            return False
        names = names_of(item)
        return bool(names) and names.isdisjoint(self._done)

    def _start(self, key: Hashable, item: JsonObject, kind: CallKind) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        self._interrupt_text(events)
        self._reasoning.interrupt()
        events += self._calls.start(
            key,
            member(item, "name"),
            member(item, "call_id"),
            kind=kind,
            namespace=member(item, "namespace"),
        )
        return events

    def _item_done(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        if event.item == NULL:
            return _NOTHING
        item = parse_object(bytes(event.item), "item")
        key = self._index.of_item(event, item)
        if key in self._done:
            if not self._begins_again(key, item):
                return _NOTHING
            key = (key, len(self._done))
        if member(item, "type") == "message" and self._waits(key, event, frame):
            return _NOTHING
        events = self._whole_item(key, bytes(event.item), item)
        while self._held and self._text.item is None:
            events += self._release(next(iter(self._held)))
        return events

    def _whole_item(
        self, key: Hashable, raw: bytes, item: JsonObject, *, cut: bool = False
    ) -> list[ModelEvent]:
        """The events of a finished item: what was not streamed of it, and its end."""
        self._done.add(key)
        self._done |= names_of(item)
        parts = decode_item(item, raw.decode(), self._origin)
        events: list[ModelEvent] = []
        if self._text.item is not None and self._text.item != key:
            self._interrupt_text(events)
        match parts[0]:
            case Thinking():
                self._reasoning.end(key, item, self._origin, events)
                return events
            case ToolCall() as call:
                complete = call.complete and not (cut and item.get("status") != "completed")
                return self._end_call(key, item, call, complete, events)
            case _:
                self._reasoning.interrupt()
        match parts[0]:
            case ServerBlock() if self._text.item == key:
                # Text of it was emitted already; the unknown rest is dropped.
                self._text.interrupt(events)
            case ServerBlock() as block:
                events.append(ServerBlockAdded(block))
            case Media() as media:
                events.append(MediaAdded(media))
            case _:
                self._text.end(key, parts, events)
        return events

    def _end_call(
        self,
        key: Hashable,
        item: JsonObject,
        call: ToolCall,
        complete: bool,
        events: list[ModelEvent],
    ) -> list[ModelEvent]:
        if key not in self._calls:
            events += self._start(key, item, call.kind)
            events += self._calls.append(key, call.arguments)
        last = call.arguments or self._final_arguments.pop(key, None)
        if not last:
            self._emit_first_arguments(events)
        events += self._calls.end(
            key, arguments=last, complete=complete, seal=call.seal, kept=call.kept
        )
        return events

    _OTHER: ClassVar[dict[str, _Method]] = {
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.output_text.delta": _message_event,
        "response.refusal.delta": _message_event,
        "response.content_part.done": _message_event,
        "response.output_text.done": _message_event,
        "response.refusal.done": _message_event,
        "response.output_text.annotation.added": _message_event,
        "response.output_text_annotation.added": _message_event,
        "response.function_call_arguments.done": _arguments_done,
        "response.custom_tool_call_input.done": _arguments_done,
        "response.completed": _ended,
        "response.incomplete": _ended,
        "response.cancelled": _ended,
        "response.failed": _failed,
        "error": _error,
    }
