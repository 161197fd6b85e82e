"""Deadlines of many answers on one timer of the event loop."""

import asyncio
from collections.abc import Callable

_EARLY = 0.001


class Deadlines:
    """Calls when a time has come; most are moved or removed before.

    A timer for each would cost more than the look at all of them when the first one is due.
    """

    def __init__(self) -> None:
        self._due: dict[object, tuple[float, Callable[[], object]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, owner: object, seconds: float, call: Callable[[], object]) -> None:
        """Calls after so many seconds, instead of the owner's earlier deadline."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        self._due[owner] = (due, call)
        timer = self._timer
        if timer is None or timer.when() > due:
            if timer is not None:
                timer.cancel()
            self._timer = loop.call_at(due, self._look)

    def remove(self, owner: object) -> None:
        """Removes the owner's deadline, if it has one."""
        self._due.pop(owner, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        # The timer's clock may be a little behind its own deadline.
        now = loop.time() + _EARLY
        late = [owner for owner, (due, _) in self._due.items() if due <= now]
        for owner in late:
            # One call may remove the deadline of another.
            found = self._due.pop(owner, None)
            if found is not None:
                found[1]()
        if self._due and self._timer is None:
            self._timer = loop.call_at(min(due for due, _ in self._due.values()), self._look)
