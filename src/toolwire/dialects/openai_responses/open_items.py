"""Items of a stream that are still open: which one an event belongs to, what came of it."""

from collections.abc import Hashable, Sequence

from toolwire.dialects.openai_responses.items import continued, message_part, reasoning_part
from toolwire.dialects.openai_responses.shapes import NULL, StreamEvent, member
from toolwire.events import (
    CitationAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
)
from toolwire.messages import Origin, Part, Refusal, Text
from toolwire.wire.json_access import JsonObject, parse

TEXT_DONE = frozenset({"response.output_text.done", "response.refusal.done"})
_TEXT_DIFFERS = Notice("text_differs", "the final text differs from the streamed one and is used")


class ItemIndex:
    """One per answer. Ids may change during a stream: an output index decides first."""

    def __init__(self) -> None:
        self._by_name: dict[str, Hashable] = {}
        self._named: dict[Hashable, set[Hashable]] = {}
        self.shared = False
        """Whether a server sent one index for two open items: then only their ids differ."""

    def of(self, event: StreamEvent) -> Hashable:
        """The key of the open item that an event belongs to."""
        key = event.output_index
        if key is None or self.shared:
            name = event.item_id
            if name in self._by_name:
                return self._by_name[name]
            return name or 0 if key is None else key
        return key

    def of_item(self, event: StreamEvent, item: JsonObject) -> Hashable:
        """The key of an item that begins or ends."""
        key = event.output_index
        if key is not None and not self.shared:
            return key
        names = (event.item_id, member(item, "id"), member(item, "call_id"))
        known = next((self._by_name[name] for name in names if name in self._by_name), None)
        if known is not None:
            return known
        return next(filter(None, names), 0) if key is None else key

    def listed(self, number: int, item: JsonObject) -> Hashable:
        """The key of an item in a list. Items may be missing there, so ids decide first."""
        names = (member(item, "id"), member(item, "call_id"))
        return next((self._by_name[name] for name in names if name in self._by_name), number)

    def added(self, event: StreamEvent, item: JsonObject, done: set[Hashable]) -> Hashable:
        """The key of an item that begins."""
        key = self.of_item(event, item)
        names = names_of(item)
        own, call = member(item, "id"), member(item, "call_id")
        before = self._named.get(key)
        if before and names and before.isdisjoint(names) and key not in done:
            self.shared = True
            key = (key, own or call)
        self._named[key] = names
        for name in (event.item_id, own, call):
            if name:
                self._by_name[name] = key
        return key

    def add_id(self, key: Hashable, name: str | None) -> None:
        """Records another id of an item."""
        if name:
            self._by_name[name] = key


def names_of(item: JsonObject) -> set[Hashable]:
    """The ids of an item, each with the type of the item."""
    kind, own, call = member(item, "type"), member(item, "id"), member(item, "call_id")
    names: set[Hashable] = {(kind, own)} if own else set()
    if call:
        names.add((kind, call))
    return names


class OpenText:
    """The message part that receives deltas. Ids and other members arrive when the item ends."""

    __slots__ = (
        "_ended",
        "_final_text",
        "_interrupted",
        "cited",
        "final_part",
        "item",
        "part",
        "refused",
        "streamed",
    )

    def __init__(self) -> None:
        self.item: Hashable = None
        self.part = -1
        self.streamed: list[str] = []
        self.cited = 0
        self.final_part: object = None
        """The open part as the server sent it when it was done."""
        self.refused = False
        # How many parts of the open item ended: their indexes on the wire need not begin at 0.
        self._ended = 0
        self._final_text: str | None = None
        self._interrupted: set[Hashable] = set()

    def open(self, item: Hashable, part: int, events: list[ModelEvent]) -> None:
        """Makes this part the open one; the part before it ends."""
        if item != self.item:
            self.interrupt(events)
        elif part != self.part:
            before = message_part(self.final_part)
            self._emit_rest_of(before, events)
            kept = continued(before).kept if before is not None else None
            events.append(TextEnded(None, kept, self._final_text))
            self._ended += 1
            self._reset()
        self.item, self.part = item, part

    def interrupt(self, events: list[ModelEvent]) -> None:
        """Ends the open part before its item ends: another item begins."""
        if self.item is not None:
            self._interrupted.add(self.item)
            events.append(TextEnded(text=self._final_text))
        self._close()

    def emit_rest(self, events: list[ModelEvent]) -> None:
        """Emits what the server finished but did not stream of the open part."""
        part = message_part(self.final_part)
        self._emit_rest_of(part, events)
        if part is not None:
            self.streamed, self.cited = [part.text], len(getattr(part, "citations", ()))

    def end(self, item: Hashable, parts: Sequence[Part], events: list[ModelEvent]) -> None:
        """Ends the item: emits what was not streamed of it, and its seal."""
        if item != self.item:
            self.interrupt(events)
        if item in self._interrupted:
            if self.item is not None:
                events.append(TextEnded())
        else:
            for part in parts[self._ended :]:
                if isinstance(part, Text | Refusal):
                    self._emit_rest_of(part, events)
                    events.append(TextEnded(part.seal, part.kept, self._final_text))
                    self._reset()
        self._close()

    def _emit_rest_of(self, part: Text | Refusal | None, events: list[ModelEvent]) -> None:
        if part is None:
            return
        streamed = "".join(self.streamed)
        if not part.text.startswith(streamed):
            # A shorter text is one that the server left out or cut in its summary.
            if not streamed.startswith(part.text):
                events.append(_TEXT_DIFFERS)
                self._final_text = part.text
        elif len(part.text) > len(streamed):
            kind = RefusalDelta if isinstance(part, Refusal) else TextDelta
            events.append(kind(part.text[len(streamed) :]))
        if isinstance(part, Refusal):
            self.refused = True
        else:
            events += [CitationAdded(source) for source in part.citations[self.cited :]]

    def _reset(self) -> None:
        self.streamed = []
        self.cited = 0
        self.final_part = self._final_text = None

    def _close(self) -> None:
        self.item = None
        self.part = -1
        self._ended = 0
        self._reset()


class OpenReasoning:
    """The reasoning item that receives deltas."""

    __slots__ = ("_interrupted", "item", "streamed")

    def __init__(self) -> None:
        self.item: Hashable = None
        self.streamed: list[str] = []
        self._interrupted: set[Hashable] = set()

    def interrupt(self) -> None:
        """Another item begins before the item ends."""
        if self.streamed:
            self._interrupted.add(self.item)
            self.streamed.clear()

    def open(self, item: Hashable, events: list[ModelEvent]) -> None:
        """Makes this item the open one."""
        if self.streamed and item != self.item:
            self.interrupt()
            events.append(ThinkingEnded())
        self.item = item

    def end(
        self, item: Hashable, source: JsonObject, origin: Origin, events: list[ModelEvent]
    ) -> None:
        """Ends the item, with its seal."""
        self.open(item, events)
        text = "".join(self.streamed)
        part = reasoning_part(source, origin)
        if item in self._interrupted:
            part = reasoning_part(source, origin, text)
        elif part.text != text:
            if part.text.startswith(text):
                events.append(ThinkingDelta(part.text[len(text) :]))
            else:
                part = reasoning_part(source, origin, text)
        events.append(ThinkingEnded(part.seal, part.kept))
        self.streamed.clear()


def final_part(event: StreamEvent) -> JsonObject | None:
    """The part of a message as it is when it is done."""
    if event.type in TEXT_DONE:
        refused = event.refusal != NULL
        text = parse(bytes(event.refusal if refused else event.text), "text")
        kind, name = ("refusal", "refusal") if refused else ("output_text", "text")
        return {"type": kind, name: text} if text else None
    part = parse(bytes(event.part), "part")
    return None if message_part(part) is None else part
