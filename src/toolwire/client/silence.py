"""Notices that nothing comes any more, without a timer set anew for every piece that does."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from aiohttp import ClientResponse, StreamReader

_LOOKS = 8
"""How often the body is looked at within the time limit: the silence found is at most that part of
it longer.
"""


class Silence:
    """Breaks off a body whose server has said nothing for too long; `end` it when done reading.

    aiohttp's own limit sets a timer for every piece, a tenth of what reading a live stream costs.
    """

    def __init__(self, response: ClientResponse, limit: float | None) -> None:
        self.taken = 0
        """Bytes the reader has; while more are there, the wait is the reader's own."""
        self._content: StreamReader = response.content
        self._loop = get_running_loop()
        self._seen = 0
        self._since = 0.0
        self._limit = limit or 0.0
        self._timer: TimerHandle | None = None
        connection = response.connection
        if limit and connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = None
            self._since = self._loop.time()
            self._look_later()

    def end(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._limit / _LOOKS, self._look)

    def _look(self) -> None:
        content = self._content
        now = self._loop.time()
        if content.total_bytes != self._seen or content.total_bytes != self.taken:
            self._seen = content.total_bytes
            self._since = now
        elif now - self._since >= self._limit:
            from aiohttp import SocketTimeoutError  # noqa: PLC0415 - start-up time

            self._timer = None
            content.set_exception(SocketTimeoutError("nothing came for too long"))
            return
        self._look_later()
