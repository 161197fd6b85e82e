"""Where lines begin in large files, noted now and then: a second read need not count again."""

import os
import threading
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict

import msgspec

STEP = 1 << 20
"""Bytes between two notes; smaller files are not worth one."""
_KEPT = 32
# A change within one tick of the system's clock leaves no trace in a file's times.
_TICK = 50_000_000

_Version = tuple[int, int, int]


class LineIndex(msgspec.Struct, frozen=True, kw_only=True):
    """What one read of a whole file learned."""

    ends: int
    """Of lines, in the whole file."""
    before: "array[int]"
    """How many of them lie before each step."""
    digest: str
    """Of the contents; empty if it was not taken."""

    def place(self, line: int) -> tuple[int, int]:
        """A byte before the start of a line, and how many lines end before that byte."""
        step = max(bisect_left(self.before, line) - 1, 0)
        return step * STEP, self.before[step]


class LineIndexes:
    """The files read last, each known as long as it does not change."""

    def __init__(self, tick: int = _TICK) -> None:
        self._tick = tick
        self._known: OrderedDict[tuple[int, int], tuple[_Version, LineIndex]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, found: os.stat_result) -> LineIndex | None:
        """What is known of a file as it is now."""
        with self._lock:
            version, index = self._known.get((found.st_dev, found.st_ino), (None, None))
            return index if version == _version(found) else None

    def keep(self, found: os.stat_result, begun: int, index: LineIndex) -> None:
        """Remember a file that was so when reading it began, at that time in nanoseconds."""
        if found.st_size <= STEP or begun - max(found.st_mtime_ns, found.st_ctime_ns) < self._tick:
            return
        with self._lock:
            self._known[found.st_dev, found.st_ino] = (_version(found), index)
            self._known.move_to_end((found.st_dev, found.st_ino))
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    def forget(self) -> None:
        """Know nothing any more."""
        with self._lock:
            self._known.clear()


INDEXES = LineIndexes()
"""Of this process: what a file holds is the same for every session."""


def now() -> int:
    """The time that the times of files are compared with."""
    return time.time_ns()


def _version(found: os.stat_result) -> _Version:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
