"""Folds a stream of events into a message."""

from collections.abc import Iterable
from typing import Any

from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
    ServerBlockAdded,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import Citation, Message, Part, Refusal, Text, Thinking, ToolCall


class _OpenCall:
    __slots__ = ("arguments", "ended", "started")

    def __init__(self, started: ToolCallStarted) -> None:
        self.started = started
        self.arguments: list[str] = []
        self.ended: ToolCallEnded | None = None

    def call(self) -> ToolCall:
        started, ended = self.started, self.ended
        arguments = "".join(self.arguments)
        if ended is not None and ended.arguments is not None:
            arguments = ended.arguments
        return ToolCall(
            id=started.id,
            name=started.name,
            arguments=arguments,
            kind=started.kind,
            namespace=started.namespace,
            complete=ended is not None and ended.complete,
            made_id=started.made_id,
            seal=ended.seal if ended else None,
            kept=ended.kept if ended and ended.kept else started.kept,
        )


class Collector:
    """One per answer. `message()` works at any time, after a failure too."""

    def __init__(self) -> None:
        self._parts: list[Part | _OpenCall] = []
        self._calls: dict[str, _OpenCall] = {}
        self._kind: type[TextDelta | ThinkingDelta | RefusalDelta] | None = None
        self._text: list[str] = []
        self._citations: list[Citation] = []
        self.notices: list[Notice] = []
        self.finished: Finished | None = None

    def add(self, event: ModelEvent) -> None:
        """Adds an event."""
        if type(event) is self._kind:
            same: Any = event
            self._text.append(same.text)
            return
        if type(event) is Finished:
            # Every answer has one: last in the match, it would be compared with all others.
            self._close_text()
            self.finished = event
            return
        match event:
            case TextDelta() | ThinkingDelta() | RefusalDelta():
                self._close_text()
                self._kind = type(event)
                self._text.append(event.text)
            case CitationAdded():
                if self._kind is not TextDelta:
                    self._close_text()
                    self._kind = TextDelta
                self._citations.append(event.citation)
            case TextEnded():
                self._end_text(event)
            case ThinkingEnded():
                if self._kind is not ThinkingDelta:
                    self._close_text()
                self._parts.append(Thinking("".join(self._text), event.seal, event.kept))
                self._reset_text()
            case ToolCallStarted():
                self._close_text()
                call = self._calls[event.id] = _OpenCall(event)
                self._parts.append(call)
            case ToolCallDelta():
                self._calls[event.id].arguments.append(event.arguments)
            case ToolCallEnded():
                self._calls[event.id].ended = event
            case MediaAdded():
                self._close_text()
                self._parts.append(event.media)
            case ServerBlockAdded():
                self._close_text()
                self._parts.append(event.block)
            case Notice():
                self.notices.append(event)
            case Finished():
                raise AssertionError(event)

    def add_all(self, events: Iterable[ModelEvent]) -> None:
        """Adds several events."""
        for event in events:
            self.add(event)

    def message(self) -> Message:
        """Returns the message so far; calls without an end are incomplete."""
        parts = [part.call() if isinstance(part, _OpenCall) else part for part in self._parts]
        open_part = self._open_part()
        if open_part is not None:
            parts.append(open_part)
        return Message(role="assistant", parts=tuple(parts))

    def _open_part(self) -> Part | None:
        kind = self._kind
        if kind is None:
            return None
        text = "".join(self._text)
        if kind is TextDelta:
            return Text(text, tuple(self._citations))
        return Thinking(text) if kind is ThinkingDelta else Refusal(text)

    def _close_text(self) -> None:
        part = self._open_part()
        if part is not None:
            self._parts.append(part)
            self._reset_text()

    def _reset_text(self) -> None:
        self._kind = None
        self._text.clear()
        self._citations.clear()

    def _end_text(self, event: TextEnded) -> None:
        if self._kind is ThinkingDelta:
            self._close_text()
        text = "".join(self._text) if event.text is None else event.text
        if self._kind is RefusalDelta:
            self._parts.append(Refusal(text, event.seal, event.kept))
        else:
            self._parts.append(Text(text, tuple(self._citations), seal=event.seal, kept=event.kept))
        self._reset_text()
