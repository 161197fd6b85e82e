"""What a person types, line by line, while other things go on."""

import asyncio
import threading
from collections.abc import Callable
from typing import TextIO


class Lines:
    """Reads a terminal in a thread of its own. A line goes to whoever waits for one, else to
    `unasked`: words said while a turn is under way. A command of the chat waits for its end.
    """

    def __init__(self, source: TextIO, unasked: Callable[[str], None]) -> None:
        self._source = source
        self._unasked = unasked
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[str | None] | None = None
        self._early: list[str | None] = []
        self._busy = False
        threading.Thread(target=self._read, daemon=True, name="typing").start()

    async def next(self) -> str | None:
        """The next line without its end; None when the person left (Ctrl-D)."""
        if self._early:
            return self._early.pop(0)
        self._waiting = self._loop.create_future()
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def working(self, busy: bool) -> None:
        """Whether a turn is under way: lines nobody waits for are then told to it."""
        self._busy = busy

    def _read(self) -> None:
        for line in self._source:
            self._loop.call_soon_threadsafe(self._take, line.rstrip("\r\n"))
        self._loop.call_soon_threadsafe(self._take, None)

    def _take(self, line: str | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(line)
        elif line is not None and self._busy and not line.startswith("/"):
            self._unasked(line)
        else:
            self._early.append(line)
