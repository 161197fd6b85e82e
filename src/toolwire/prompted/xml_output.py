"""Events on their way out, neighbours of one kind joined."""

from toolwire.events import ModelEvent, TextDelta, ThinkingDelta, ToolCallDelta


class Output:
    """Collects events until they are taken."""

    def __init__(self) -> None:
        self._events: list[ModelEvent] = []
        self._pieces: list[str] = []
        self._open: type[TextDelta] | type[ThinkingDelta] | str = ""

    def text(self, piece: str) -> None:
        """More text."""
        self._join(TextDelta, piece)

    def thinking(self, piece: str) -> None:
        """More reasoning."""
        self._join(ThinkingDelta, piece)

    def arguments(self, call_id: str, piece: str) -> None:
        """More arguments of a call."""
        self._join(call_id, piece)

    def add(self, event: ModelEvent) -> None:
        """An event that stands for itself."""
        self._end_piece()
        self._events.append(event)

    def move_to(self, other: "Output") -> None:
        """Give everything to another output."""
        for event in self.take():
            match event:
                case TextDelta():
                    other.text(event.text)
                case ThinkingDelta():
                    other.thinking(event.text)
                case _:
                    other.add(event)

    def take(self) -> list[ModelEvent]:
        """All events since the last time."""
        self._end_piece()
        events, self._events = self._events, []
        return events

    def _join(self, kind: type[TextDelta] | type[ThinkingDelta] | str, piece: str) -> None:
        if not piece:
            return
        if kind != self._open:
            self._end_piece()
            self._open = kind
        self._pieces.append(piece)

    def _end_piece(self) -> None:
        if not self._pieces:
            return
        joined = "".join(self._pieces)
        self._pieces.clear()
        kind, self._open = self._open, ""
        if isinstance(kind, str):
            self._events.append(ToolCallDelta(kind, joined))
        else:
            self._events.append(kind(joined))
