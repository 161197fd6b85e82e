"""What the user sent, in the order in which it is handled."""

import asyncio
from collections import deque


class LineQueue:
    """Lines to handle now, and those that wait for the end of a turn.

    A stopped turn holds those that wait: they are sent by `release`, or after the next turn.
    """

    def __init__(self) -> None:
        self._now: deque[str] = deque()
        self._later: deque[str] = deque()
        self._changed = asyncio.Event()
        self._held = False

    def send(self, line: str) -> None:
        """Adds a line to handle next; an empty one only wakes the reader."""
        self._now.append(line)
        self._changed.set()

    def keep(self, line: str) -> None:
        """Adds a line for after the turn."""
        self._later.append(line)
        self._changed.set()

    def hold(self) -> None:
        """Lets lines for after the turn wait: it was stopped."""
        self._held = True

    def release(self) -> None:
        """Lets lines that were held go on."""
        self._held = False
        self._changed.set()

    @property
    def held(self) -> bool:
        """Whether lines wait after a stop."""
        return self._held

    def take_back(self) -> list[str]:
        """Removes and returns all lines that were not handled yet."""
        found = [line for line in (*self._now, *self._later) if line]
        self._now.clear()
        self._later.clear()
        return found

    async def next(self) -> str:
        """The next line; waits for one."""
        while True:
            if self._now:
                return self._now.popleft()
            if self._later and not self._held:
                return self._later.popleft()
            self._changed.clear()
            await self._changed.wait()
