"""The pipes of a running command's outputs, read into spools as the event loop finds them ready."""

import asyncio
import fcntl
import os
import sys
import termios
from collections import deque
from collections.abc import Callable, Mapping

from toolwire.tools.shell.spool import Spool

FLOOD = 1 << 14
"""Bytes of which only the end is shown; also the most that is shown at once."""


class LiveTail:
    """The last bytes of several outputs in the order they came, but for a flood, which comes first.

    Of a flood only the end is read, when it is shown.
    """

    def __init__(self) -> None:
        self._pieces: deque[tuple[Spool, bytes]] = deque()
        self._size = 0
        self._flood: Spool | None = None

    def note(self, spool: Spool, size: int) -> None:
        """So many bytes have come to an output's spool."""
        if size >= FLOOD or spool is self._flood:
            self._flood = spool
            self._pieces = deque(piece for piece in self._pieces if piece[0] is not spool)
            self._size = sum(len(data) for _, data in self._pieces)
            return
        # A spool with little memory has less than came.
        data = spool.last(size)
        self._pieces.append((spool, data))
        self._size += len(data)
        while self._size > FLOOD:
            self._size -= len(self._pieces.popleft()[1])

    def take(self) -> bytes:
        """The bytes received since the last call."""
        end = b"" if self._flood is None else self._flood.last(FLOOD)
        news = end + b"".join(data for _, data in self._pieces)
        self._pieces.clear()
        self._size, self._flood = 0, None
        return news


_SIZE = 1 << 20
_FLOOD_PAUSE = 0.001


class OutputPipes:
    """Reads until each pipe is closed; `received` is called with every piece."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pipes: Mapping[int, Spool],
        received: Callable[[Spool, int], None],
    ) -> None:
        self._loop = loop
        self._pipes = dict(pipes)
        self._received = received
        self.last = loop.time()
        """When something was read."""
        for reading in self._pipes:
            os.set_blocking(reading, False)
            loop.add_reader(reading, self._follow, reading)

    def read_into(self, later: Spool) -> None:
        """Take what comes from now on into another spool."""
        for reading in self._pipes:
            self._pipes[reading] = later

    def read_what_is_there(self) -> None:
        """What was written before now; a child that goes on writing cannot hold us."""
        for reading in tuple(self._pipes):
            waiting = int.from_bytes(
                fcntl.ioctl(reading, termios.FIONREAD, bytes(4)), sys.byteorder
            )
            while waiting > 0:
                got = self._read(reading, waiting)
                if not got:
                    break
                waiting -= got

    def close(self) -> None:
        """Stop reading."""
        for reading in tuple(self._pipes):
            self._shut(reading)

    def abandon(self) -> None:
        """Close the pipes of an event loop that is closed."""
        for reading in self._pipes:
            os.close(reading)
        self._pipes.clear()

    def _follow(self, reading: int) -> None:
        """Read what comes; a flood only from time to time, when much of it has come together."""
        if self._floods(reading):
            self._loop.remove_reader(reading)
            self._loop.call_later(_FLOOD_PAUSE, self._follow_flood, reading)

    def _follow_flood(self, reading: int) -> None:
        if reading not in self._pipes:
            return
        if self._floods(reading):
            self._loop.call_later(_FLOOD_PAUSE, self._follow_flood, reading)
        elif reading in self._pipes:
            self._loop.add_reader(reading, self._follow, reading)

    def _floods(self, reading: int) -> bool:
        return self._read(reading) >= FLOOD and not self._pipes[reading].whole

    def _read(self, reading: int, most: int = _SIZE) -> int:
        spool = self._pipes[reading]
        try:
            got = spool.take(reading, most)
        except BlockingIOError:
            return 0
        if not got:
            self._shut(reading)
            return 0
        self.last = self._loop.time()
        self._received(spool, got)
        return got

    def _shut(self, reading: int) -> None:
        self._loop.remove_reader(reading)
        os.close(reading)
        del self._pipes[reading]


def wide_pipe() -> tuple[int, int]:
    """A pipe for an output: a wider one means fewer turns for much of it; a system may refuse."""
    reading, writing = os.pipe()
    if sys.platform == "linux":
        try:
            fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _SIZE)
        except OSError:
            return reading, writing
    return reading, writing
