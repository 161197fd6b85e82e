"""What of an answer is still open: a part of a message, a reasoning item."""

from collections.abc import Hashable, Sequence

from toolwire.dialects.openai_responses.items import continued, message_part, reasoning_part
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
    """The message part that receives deltas. Ids and other members arrive when the item ends."""

    __slots__ = ("_ended", "_interrupted", "cited", "final_part", "item", "part", "refused", "seen")

    def __init__(self) -> None:
        self.item: Hashable = None
        self.part = -1
        self.seen = 0
        self.cited = 0
        self.final_part: object = None
        """The open part as the server sent it when it was done."""
        self.refused = False
        # How many parts of the open item ended: their indexes on the wire need not begin at 0.
        self._ended = 0
        self._interrupted: set[Hashable] = set()

    def open(self, item: Hashable, part: int, events: list[ModelEvent]) -> None:
        """Makes this part the open one; the part before it ends."""
        if item != self.item:
            self.interrupt(events)
        elif part != self.part:
            before = message_part(self.final_part)
            self._emit_rest_of(before, events)
            events.append(TextEnded(kept=continued(before).kept if before is not None else None))
            self._ended += 1
            self._reset()
        self.item, self.part = item, part

    def interrupt(self, events: list[ModelEvent]) -> None:
        """Ends the open part before its item ends: another item begins."""
        if self.item is not None:
            self._interrupted.add(self.item)
            events.append(TextEnded())
        self._close()

    def emit_rest(self, events: list[ModelEvent]) -> None:
        """Emits what the server finished but did not stream of the open part."""
        part = message_part(self.final_part)
        self._emit_rest_of(part, events)
        if part is not None:
            self.seen, self.cited = len(part.text), len(getattr(part, "citations", ()))

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
                    events.append(TextEnded(part.seal, part.kept))
                    self._reset()
        self._close()

    def _emit_rest_of(self, part: Text | Refusal | None, events: list[ModelEvent]) -> None:
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
        self.final_part = None

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
