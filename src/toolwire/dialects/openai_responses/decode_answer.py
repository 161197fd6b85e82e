"""Frames of a streamed answer → events; whole answers take the same way, item by item."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, TypeAlias, cast

import msgspec

from toolwire.dialects import DecodeOptions
from toolwire.dialects.failures import unreadable
from toolwire.dialects.openai_responses.ends import finished, last_response, read_response
from toolwire.dialects.openai_responses.errors import is_error, provider_error
from toolwire.dialects.openai_responses.item_index import ItemIndex, names_of, tidied
from toolwire.dialects.openai_responses.items import decode_item, message_part
from toolwire.dialects.openai_responses.media import citation
from toolwire.dialects.openai_responses.open_parts import OpenReasoning, OpenText
from toolwire.dialects.openai_responses.shapes import (
    CALLS,
    NULL,
    StreamEvent,
    WireResponse,
    member,
    members,
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
)
from toolwire.messages import CallKind, Media, ServerBlock, Thinking, ToolCall
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.json_access import JsonObject, encode, parse, parse_object
from toolwire.wire.sse import Frame
from toolwire.wire.surrogates import PairMender

_read = stream_event.decode


_NOTHING: tuple[ModelEvent, ...] = ()


_Rare: TypeAlias = Callable[[Any, StreamEvent, Frame], Sequence[ModelEvent]]
"""What the reader does with an event that is no piece of text."""


_DELTAS = ("_text.delta", "refusal.delta", "call_arguments.delta", "call_input.delta")


class AnswerDecoder:
    """One per answer. Items are told apart by their place: their ids may change on the way."""

    def __init__(self, reading: DecodeOptions) -> None:
        self._origin = reading.origin
        self._calls = ToolCallTracker(reading.new_id, reading.names)
        self._words = OpenText()
        self._thoughts = OpenReasoning()
        self._last_words: dict[Hashable, str] = {}
        self._given: dict[Hashable, str] = {}
        """Arguments that came with a call's beginning; most servers stream them again."""
        self._places = ItemIndex()
        self._done: set[Hashable] = set()
        self._finished = False
        self._mender = PairMender()

    def feed(self, frame: Frame) -> Sequence[ModelEvent]:
        """The events of one frame."""
        try:
            event = _read(frame.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._odd(frame, error)
        kind = event.type
        delta = event.delta
        if kind == "response.output_text.delta":
            words = self._words
            if not delta or event.output_index != words.item or event.content_index != words.part:
                return self._say(event, TextDelta)
            words.seen += len(delta)
            return (TextDelta(delta),)
        if kind == "response.function_call_arguments.delta" or (
            kind == "response.custom_tool_call_input.delta"
        ):
            place = event.output_index
            if place is None or place in self._done or self._places.shared:
                return self._argue(event)
            try:
                return self._calls.append(place, delta or "")
            except KeyError:
                # The item's beginning was lost; its end has the whole call.
                return _NOTHING
        if kind == "response.reasoning_summary_text.delta" or (
            kind == "response.reasoning_text.delta"
        ):
            thoughts = self._thoughts
            if not delta or not thoughts.streamed or event.output_index != thoughts.item:
                return self._think(event)
            thoughts.streamed.append(delta)
            return (ThinkingDelta(delta),)
        return self._other(event, frame)

    def close(self) -> Sequence[ModelEvent]:
        """Nothing more; raises if the answer's own end was not seen."""
        if not self._finished:
            raise IncompleteStream("the stream ended before response.completed")
        return _NOTHING

    def pending(self) -> Sequence[ModelEvent]:
        """What the server had finished, or given at once, and not streamed."""
        events: list[ModelEvent] = []
        self._words.tell_rest(events)
        self._tell_given(events)
        for place, last in self._last_words.items():
            if place in self._calls:
                events += self._calls.end(place, arguments=last, complete=False)
        return events

    def _tell_given(self, events: list[ModelEvent]) -> None:
        for place, text in self._given.items():
            if self._calls.silent(place):
                events += self._calls.append(place, text)

    def whole(self, response: WireResponse) -> list[ModelEvent]:
        """Everything in a response object that was not streamed, and its end."""
        events: list[ModelEvent] = []
        streamed = frozenset(self._done)
        output = response.output or []
        for number, raw in enumerate(output):
            item = parse(bytes(raw), "item")
            if not isinstance(item, dict):
                continue
            item = cast(JsonObject, item)
            place = self._places.listed(number, item)
            if place not in streamed and names_of(item).isdisjoint(streamed):
                cut = response.status == "incomplete" and number == len(output) - 1
                events += self._whole_item(place, bytes(raw), item, cut=cut)
        if self._words.item is not None:
            self._words.tell_rest(events)
            self._words.leave(events)
        if self._thoughts.streamed:
            events.append(ThinkingEnded())
        self._tell_given(events)
        for place, last in self._last_words.items():
            if place in self._calls:
                events += self._calls.end(place, arguments=last)
        events += self._calls.end_all(cut=response.status == "incomplete")
        calls = len(self._calls) > 0
        events.append(finished(response, calls=calls, refused=self._words.refused))
        self._finish()
        return events

    def _finish(self) -> None:
        self._finished = True
        self._words = OpenText()
        self._thoughts = OpenReasoning()
        self._calls = ToolCallTracker(str)

    # Frames that are not words

    def _other(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        if self._finished:
            return _NOTHING
        try:
            if event.type is None and frame.event.startswith("response."):
                # A server that names the event only in its frame.
                named = {"type": frame.event, **parse_object(frame.data, "event")}
                return self.feed(Frame(encode(named), frame.event, frame.cut))
            if event.type is None:
                return self._untyped(frame, is_response=event.object == "response")
            rare = self._RARE.get(event.type)
            return _NOTHING if rare is None else rare(self, event, frame)
        except (BadInput, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise unreadable(frame, error, "event") from error

    def _untyped(self, frame: Frame, *, is_response: bool) -> Sequence[ModelEvent]:
        """A body that is no stream: an error object, or the answer in one piece."""
        value = parse(frame.data, "body")
        if is_response and not value.get("error"):
            return self.whole(read_response(frame.data))
        if is_error(value):
            raise provider_error(value, frame.data)
        return _NOTHING

    def _odd(self, frame: Frame, error: Exception) -> Sequence[ModelEvent]:
        """A frame that does not fit: the end mark, an event of another shape, or broken."""
        if frame.data.strip() == b"[DONE]" or self._finished:
            return _NOTHING
        mended = self._mender.mend(frame.data)
        if mended != frame.data:
            return self.feed(Frame(mended, frame.event, frame.cut))
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
                kind.startswith("response.") and (tidy := tidied(value)) != value
            ):
                return self.feed(Frame(encode(tidy), frame.event, frame.cut))
            case {"type": str(kind)} if kind not in self._RARE and not kind.endswith(_DELTAS):
                return _NOTHING
            case _:
                raise unreadable(frame, error, "event") from error

    def _error(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        raise provider_error(parse(frame.data, "error"), frame.data)

    def _failed(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        raise provider_error(parse(bytes(event.response), "response"), frame.data)

    def _ended(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        return self.whole(last_response(event))

    # Words

    def _say(
        self, event: StreamEvent, kind: type[TextDelta | RefusalDelta]
    ) -> Sequence[ModelEvent]:
        """Words of a part that may not be the open one."""
        item, part, delta = self._places.of(event), event.content_index or 0, event.delta
        if self._finished or item in self._done:
            return _NOTHING
        words = self._words
        events: list[ModelEvent] = []
        self._thoughts.leave()
        if item != words.item or part != words.part:
            self._places.note(item, event.item_id)
            words.open(item, part, events)
        if delta:
            words.refused = words.refused or kind is RefusalDelta
            words.seen += len(delta)
            events.append(kind(delta))
        return events

    def _refused(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        return self._say(event, RefusalDelta)

    def _text_done(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        """The words of a part that had no deltas; of any other they are known."""
        refused = event.refusal != NULL
        text = parse(bytes(event.refusal if refused else event.text), "text")
        place = self._places.of(event)
        said = place == self._words.item and self._words.seen
        if not text or said or place in self._done:
            return _NOTHING
        event.delta = None
        events = self._say(event, TextDelta)
        key = "refusal" if refused else "text"
        self._words.last_word = {"type": "refusal" if refused else "output_text", key: text}
        return events

    def _part_done(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        source = parse(bytes(event.part), "part")
        if message_part(source) is None or self._places.of(event) in self._done:
            return _NOTHING
        # It may be a part that had no deltas, so this can be its beginning.
        event.delta = None
        events = self._say(event, TextDelta)
        self._words.last_word = source
        return events

    def _annotated(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        found = citation(parse(bytes(event.annotation), "annotation"))
        if found is None or self._places.of(event) in self._done:
            return _NOTHING
        event.delta = None
        events = self._say(event, TextDelta)
        self._words.cited += 1
        return [*events, CitationAdded(found)]

    def _think(self, event: StreamEvent) -> Sequence[ModelEvent]:
        place = self._places.of(event)
        if self._finished or not event.delta or place in self._done:
            return _NOTHING
        events: list[ModelEvent] = []
        self._words.leave(events)
        self._places.note(place, event.item_id)
        self._thoughts.open(place, events)
        self._thoughts.streamed.append(event.delta)
        events.append(ThinkingDelta(event.delta))
        return events

    # Items

    def _argue(self, event: StreamEvent) -> Sequence[ModelEvent]:
        place = self._places.of(event)
        if self._finished or place in self._done or place not in self._calls:
            return _NOTHING
        return self._calls.append(place, event.delta or "")

    def _arguments_done(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        last = event.arguments if event.arguments is not None else event.input
        if last is not None:
            self._last_words[self._places.of(event)] = last
        return _NOTHING

    def _item_added(self, event: StreamEvent, frame: Frame) -> Sequence[ModelEvent]:
        item = members(parse(bytes(event.item), "item"))
        place = self._places.added(event, item, self._done)
        again = self._begins_again(place, item)
        if again:
            self._done.discard(place)
        kind = CALLS.get(member(item, "type"))
        if kind is None or (place in self._calls and not again) or not member(item, "name"):
            return _NOTHING
        given = member(item, "arguments" if kind is CallKind.JSON else "input")
        if given:
            self._given[place] = given
        return self._start(place, item, kind)

    def _begins_again(self, place: Hashable, item: JsonObject) -> bool:
        # A server may give one place to all items; then only their ids tell them apart.
        if place not in self._done:
            return False
        names = names_of(item)
        return bool(names) and names.isdisjoint(self._done)

    def _start(self, place: Hashable, item: JsonObject, kind: CallKind) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        self._words.leave(events)
        self._thoughts.leave()
        events += self._calls.start(
            place,
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
        place = self._places.of_item(event, item)
        if place in self._done:
            if not self._begins_again(place, item):
                return _NOTHING
            place = (place, len(self._done))
        return self._whole_item(place, bytes(event.item), item)

    def _whole_item(
        self, place: Hashable, raw: bytes, item: JsonObject, *, cut: bool = False
    ) -> list[ModelEvent]:
        """The last word on an item: what was not streamed of it, and its end."""
        self._done.add(place)
        self._done |= names_of(item)
        parts = decode_item(item, raw.decode(), self._origin)
        events: list[ModelEvent] = []
        if self._words.item is not None and self._words.item != place:
            self._words.leave(events)
        match parts[0]:
            case Thinking():
                self._thoughts.end(place, item, self._origin, events)
                return events
            case ToolCall() as call:
                complete = call.complete and not (cut and item.get("status") != "completed")
                return self._end_call(place, item, call, complete, events)
            case _:
                self._thoughts.leave()
        match parts[0]:
            case ServerBlock() if self._words.item == place:
                # Words of it are out already: they stay, what is unknown beside them is not.
                self._words.leave(events)
            case ServerBlock() as block:
                events.append(ServerBlockAdded(block))
            case Media() as media:
                events.append(MediaAdded(media))
            case _:
                self._words.end(place, parts, events)
        return events

    def _end_call(
        self,
        place: Hashable,
        item: JsonObject,
        call: ToolCall,
        complete: bool,
        events: list[ModelEvent],
    ) -> list[ModelEvent]:
        if place not in self._calls:
            events += self._start(place, item, call.kind)
            events += self._calls.append(place, call.arguments)
        last = call.arguments or self._last_words.pop(place, None)
        if not last:
            self._tell_given(events)
        events += self._calls.end(
            place, arguments=last, complete=complete, seal=call.seal, kept=call.kept
        )
        return events

    _RARE: ClassVar[dict[str, _Rare]] = {
        "response.refusal.delta": _refused,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.content_part.done": _part_done,
        "response.output_text.done": _text_done,
        "response.refusal.done": _text_done,
        "response.function_call_arguments.done": _arguments_done,
        "response.custom_tool_call_input.done": _arguments_done,
        "response.output_text.annotation.added": _annotated,
        "response.output_text_annotation.added": _annotated,
        "response.completed": _ended,
        "response.incomplete": _ended,
        "response.cancelled": _ended,
        "response.failed": _failed,
        "error": _error,
    }
