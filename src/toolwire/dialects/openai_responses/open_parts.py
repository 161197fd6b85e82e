"""The parts of an answer that are still open: the part of a message, the reasoning item."""

from collections.abc import Hashable, Sequence

from toolwire.dialects.openai_responses.items import continued, message_part, thought
from toolwire.events import (
    CitationAdded,
    ModelEvent,
    RefusalDelta,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
)
from toolwire.messages import Origin, Part, Refusal, Text
from toolwire.wire.json_access import JsonObject


class OpenText:
    """The message part that deltas go to. What an item says beyond its words comes at its end."""

    __slots__ = ("_ended", "_interrupted", "cited", "item", "last_word", "part", "refused", "seen")

    def __init__(self) -> None:
        self.item: Hashable = None
        self.part = -1
        self.seen = 0
        self.cited = 0
        self.last_word: object = None
        """The open part as the server finished it."""
        self.refused = False
        # Parts of the open item that are over: their numbers on the wire need not begin at 0.
        self._ended = 0
        self._interrupted: set[Hashable] = set()

    def open(self, item: Hashable, part: int, events: list[ModelEvent]) -> None:
        """Makes this part the open one; the part before it ends."""
        if item != self.item:
            self.leave(events)
        elif part != self.part:
            before = message_part(self.last_word)
            self._rest_of(before, events)
            events.append(TextEnded(kept=continued(before).kept if before is not None else None))
            self._ended += 1
            self._reset()
        self.item, self.part = item, part

    def leave(self, events: list[ModelEvent]) -> None:
        """Something else begins inside an item: the item's own words on it will come too late."""
        if self.item is not None:
            self._interrupted.add(self.item)
            events.append(TextEnded())
        self._close()

    def tell_rest(self, events: list[ModelEvent]) -> None:
        """What the server finished but did not stream of the open part."""
        part = message_part(self.last_word)
        self._rest_of(part, events)
        if part is not None:
            self.seen, self.cited = len(part.text), len(getattr(part, "citations", ()))

    def end(self, item: Hashable, parts: Sequence[Part], events: list[ModelEvent]) -> None:
        """The item's own end: what was not streamed of it, and what it said beyond words."""
        if item != self.item:
            self.leave(events)
        if item in self._interrupted:
            if self.item is not None:
                events.append(TextEnded())
        else:
            for part in parts[self._ended :]:
                if isinstance(part, Text | Refusal):
                    self._rest_of(part, events)
                    events.append(TextEnded(part.seal, part.kept))
                    self._reset()
        self._close()

    def _rest_of(self, part: Text | Refusal | None, events: list[ModelEvent]) -> None:
        if isinstance(part, Refusal):
            self.refused = True
            if len(part.text) > self.seen:
                events.append(RefusalDelta(part.text[self.seen :]))
        elif part is not None:
            if len(part.text) > self.seen:
                events.append(TextDelta(part.text[self.seen :]))
            events += [CitationAdded(source) for source in part.citations[self.cited :]]

    def _reset(self) -> None:
        self.seen = self.cited = 0
        self.last_word = None

    def _close(self) -> None:
        self.item = None
        self.part = -1
        self._ended = 0
        self._reset()


class OpenReasoning:
    """The reasoning item that deltas go to."""

    __slots__ = ("_interrupted", "item", "streamed")

    def __init__(self) -> None:
        self.item: Hashable = None
        self.streamed: list[str] = []
        self._interrupted: set[Hashable] = set()

    def leave(self) -> None:
        """Something else begins before the item's end."""
        if self.streamed:
            self._interrupted.add(self.item)
            self.streamed.clear()

    def open(self, item: Hashable, events: list[ModelEvent]) -> None:
        """Makes this item the open one."""
        if self.streamed and item != self.item:
            self.leave()
            events.append(ThinkingEnded())
        self.item = item

    def end(
        self, item: Hashable, source: JsonObject, origin: Origin, events: list[ModelEvent]
    ) -> None:
        """The item's own end, with the seal."""
        self.open(item, events)
        text = "".join(self.streamed)
        part = thought(source, origin)
        if item in self._interrupted:
            part = thought(source, origin, text)
        elif part.text != text:
            if part.text.startswith(text):
                events.append(ThinkingDelta(part.text[len(text) :]))
            else:
                part = thought(source, origin, text)
        events.append(ThinkingEnded(part.seal, part.kept))
        self.streamed.clear()
