"""How far a download is: bytes, speed, what remains."""

from collections import deque
from collections.abc import Callable

import msgspec

_WINDOW = 5.0
"""Seconds the speed is taken over: long enough to be calm, short enough to be true."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of a download."""

    done: int
    total: int
    speed: float
    """Bytes a second."""
    source: str

    @property
    def remaining(self) -> float | None:
        """Seconds to go, None while that cannot be said."""
        return (self.total - self.done) / self.speed if self.speed > 0 else None


Report = Callable[[Progress], None]


class Meter:
    """Turns counts of bytes into progress; what an earlier run fetched does not count as speed."""

    def __init__(self, total: int, report: Report, clock: Callable[[], float]) -> None:
        self._total = total
        self._report = report
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._source = ""

    def start(self, source: str, done: int) -> None:
        """A source begins, or begins again, at this byte."""
        self._source = source
        self._seen.clear()
        self.at(done)

    def at(self, done: int) -> None:
        """So many bytes are there now."""
        now = self._clock()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW:
            self._seen.popleft()
        first, before = self._seen[0]
        speed = (done - before) / (now - first) if now > first else 0.0
        self._report(
            Progress(done=done, total=self._total, speed=max(speed, 0.0), source=self._source)
        )
