"""Half surrogate pairs: servers that count in UTF-16 cut a character between two frames."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from toolwire.errors import ToolwireError
from toolwire.events import (
    ModelEvent,
    Notice,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from toolwire.wire.sse import Frame

_HALVES = re.compile(
    rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?<!\\)(?P<even>(?:\\\\)*)(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_SURROGATE = re.compile(rb"\\u[dD]")
_LONE = re.compile("[\ud800-\udfff]")
_UNKNOWN = rb"\ufffd"
_LEFT_OUT = Notice("half_character", "half a character was left out")
_Delta: TypeAlias = TextDelta | ThinkingDelta | RefusalDelta | ToolCallDelta
_Feed: TypeAlias = Callable[[Frame], Sequence[ModelEvent]]


class PairJoiner:
    """One per response: joins a character whose halves are in two frames.

    JSON decoders refuse such text, so this runs only after one has.
    """

    cut: _Delta | Notice | None = None
    """The delta that ended with half a character; the next frame may contain the other half. A
    notice if it had nothing else.
    """

    _first = b""
    _joined = False

    def join(self, data: bytes) -> bytes:
        """The frame's JSON with whole characters only; an unpaired half is U+FFFD."""
        first, self._first = self._first, b""

        def whole(found: re.Match[bytes]) -> bytes:
            nonlocal first
            half = found["half"]
            if half is None:
                return found[0]
            if half[3:4] in b"cdefCDEF":
                if not first or data[found.start() - 1 : found.start()] != b'"':
                    return found["even"] + _UNKNOWN
                joined, first, self._joined = first + half, b"", True
                return joined
            if data[found.end() : found.end() + 1] == b'"' and not self._first:
                # The last character of its string: the other half is in the next frame.
                self._first = half
                return found["even"]
            return found["even"] + _UNKNOWN

        return _HALVES.sub(whole, data)

    def repaired(
        self, feed: _Feed, frame: Frame, *, streamed: bool = True
    ) -> Sequence[ModelEvent] | None:
        """The events of a frame with half characters; None for a frame without any.

        Only text that is `streamed` goes on in the next frame.
        """
        data = self.join(frame.data) if streamed else whole_characters(frame.data)
        if data == frame.data:
            return None
        events = feed(Frame(data, frame.event, frame.cut))
        if self._first:
            last = events[-1] if events else None
            self.cut = last if isinstance(last, _Delta) else _LEFT_OUT
        return events

    def resume(self, feed: _Feed, frame: Frame) -> Sequence[ModelEvent]:
        """The events of a frame after half a character, which is U+FFFD without its other half."""
        cut, first = self.cut, self._first
        self.cut, self._joined = None, False
        try:
            events = feed(frame)
        except ToolwireError:
            self.cut = cut
            raise
        if self._joined or cut is None:
            return events
        if not events and self._first is first:
            # Nothing of a text: a comment, a count of tokens.
            self.cut = cut
            return events
        if self._first is first:
            self._first = b""
        return [_unknown(cut), *events]

    def mark(self) -> list[ModelEvent]:
        """U+FFFD for half a character at the end of the stream."""
        cut, self.cut, self._first = self.cut, None, b""
        return [] if cut is None else [_unknown(cut)]


def _unknown(cut: _Delta | Notice) -> ModelEvent:
    if isinstance(cut, Notice):
        return cut
    if isinstance(cut, ToolCallDelta):
        return ToolCallDelta(cut.id, "\ufffd")
    return type(cut)("\ufffd")


def whole_characters(body: bytes) -> bytes:
    """A complete JSON text whose half surrogate pairs, which JSON decoders reject, are U+FFFD."""
    if _SURROGATE.search(body) is None:
        return body
    return _HALVES.sub(
        lambda found: found[0] if found["half"] is None else found["even"] + _UNKNOWN, body
    )


def without_halves(value: Any) -> Any:
    """A JSON value whose texts contain only whole characters."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return {without_halves(key): without_halves(inner) for key, inner in members.items()}
    if isinstance(value, list | tuple):
        return [without_halves(inner) for inner in cast(list[Any], value)]
    return value
