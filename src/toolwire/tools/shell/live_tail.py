"""What the outputs of a command said since it was last shown on the screen."""

from collections import deque

from toolwire.tools.shell.spool import Spool

FLOOD = 1 << 14
"""Bytes of which nobody sees more than the end; as much is told at once."""


class LiveTail:
    """The last bytes of several outputs in the order they came, but for a flood, which comes first.

    Of a flood only the end is ever looked at, when it is told.
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

    def told(self) -> bytes:
        """What has come since this was last asked."""
        end = b"" if self._flood is None else self._flood.last(FLOOD)
        news = end + b"".join(data for _, data in self._pieces)
        self._pieces.clear()
        self._size, self._flood = 0, None
        return news
