"""Frames of a recorded stream: where each is, when it came, and which parts it carries."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from toolwire import dialects
from toolwire.collect import Collector
from toolwire.errors import ToolwireError
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    RefusalDelta,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.gateway.capture import Tape
from toolwire.ids import new_id
from toolwire.messages import Message, Origin

_BLANK = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)+")
_EVENT = re.compile(rb"^event: ?([^\r\n]*)", re.MULTILINE)


class ShownFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One frame of a stream."""

    i: int
    at: float
    """Seconds after the request's arrival."""
    start: int
    end: int
    event: str
    parts: list[str]
    """Keys of the parts that it carries a piece of."""


class ReadStream(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded stream as it was understood."""

    frames: list[ShownFrame]
    message: Message | None = None
    finished: Finished | None = None


class _PartNumbers:
    """Numbers the parts of an answer as their events come."""

    def __init__(self) -> None:
        self._counts = {"text": 0, "thinking": 0, "call": 0}
        self._current = ""
        self._calls: dict[str, str] = {}

    def key(self, event: ModelEvent) -> str:
        match event:
            case TextDelta() | RefusalDelta():
                return self._run("text")
            case ThinkingDelta():
                return self._run("thinking")
            case TextEnded() | ThinkingEnded():
                ended, self._current = self._current, ""
                return ended
            case ToolCallStarted():
                self._current = ""
                self._calls[event.id] = self._next("call")
                return self._calls[event.id]
            case ToolCallDelta() | ToolCallEnded():
                return self._calls.get(event.id, "")
            case _:
                return ""

    def _run(self, kind: str) -> str:
        if not self._current.startswith(f"answer:{kind}:"):
            self._current = self._next(kind)
        return self._current

    def _next(self, kind: str) -> str:
        self._counts[kind] += 1
        return f"answer:{kind}:{self._counts[kind]}"


def read_stream(dialect: str, tape: Tape) -> ReadStream:
    """The frames of a recorded answer of server-sent events."""
    data = tape.data
    codec = dialects.get(dialect)
    options = dialects.DecodeOptions(new_id=new_id, origin=Origin(codec.family))
    framing, decoder = codec.frames(), codec.decoder(options)
    numbers, collector = _PartNumbers(), Collector()
    ends, times = _arrivals(tape)
    frames: list[ShownFrame] = []
    finished: Finished | None = None
    broken = False
    for start, end in _blocks(data):
        keys: list[str] = []
        try:
            for frame in () if broken else framing.feed(data[start:end]):
                for event in decoder.feed(frame):
                    if isinstance(event, Notice):
                        continue
                    if isinstance(event, Finished):
                        finished = event
                    collector.add(event)
                    key = numbers.key(event)
                    if key and key not in keys:
                        keys.append(key)
        except ToolwireError:
            broken = True
        name = _EVENT.search(data, start, end)
        frames.append(
            ShownFrame(
                i=len(frames),
                at=round(times[min(bisect_left(ends, end), len(times) - 1)], 6),
                start=start,
                end=end,
                event=name[1].decode("utf-8", "replace") if name else "",
                parts=keys,
            )
        )
    return ReadStream(frames=frames, message=collector.message(), finished=finished)


def read_whole(dialect: str, data: bytes) -> Message | None:
    """The message of an answer that was not streamed."""
    codec = dialects.get(dialect)
    options = dialects.DecodeOptions(new_id=new_id, origin=Origin(codec.family))
    collector = Collector()
    try:
        for event in codec.decode_whole(data, options):
            if not isinstance(event, Notice):
                collector.add(event)
    except ToolwireError:
        return None
    return collector.message()


def _blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """The places of the frames, each with the blank line that ends it."""
    start = 0
    for found in _BLANK.finditer(data):
        yield start, found.end()
        start = found.end()
    if start < len(data):
        yield start, len(data)


def _arrivals(tape: Tape) -> tuple[list[int], list[float]]:
    ends: list[int] = []
    times: list[float] = []
    at = 0
    for seconds, piece in tape.pieces:
        at += len(piece)
        ends.append(at)
        times.append(seconds)
    return ends or [0], times or [0.0]
