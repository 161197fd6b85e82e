"""The life of a gateway process: starting, ready, draining; and how late its loop is."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum

from toolwire.gateway.metrics import Sample

_INTERVAL = 0.5
_KEPT = 120
"""Measurements of the loop's delay; the greatest of them is shown."""


class State(StrEnum):
    """Whether new requests should come here."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Lifecycle:
    """The state of the process, for `/readyz` and for the end of the program."""

    def __init__(self, problem: Callable[[], str] = str) -> None:
        self.state = State.STARTING
        self._problem = problem
        """Why requests would fail, such as a store that cannot be written; empty if they work."""
        self.notes: Callable[[], str] = str
        """What is wrong without making requests fail, for `/readyz`; empty for nothing."""
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()

    def not_ready(self) -> str:
        """Why no requests should be sent here; empty if they may."""
        return self._problem() if self.state is State.READY else self.state.value

    def stop(self) -> None:
        """The first call lets requests end, the second does not wait for them."""
        if self._stopping.is_set():
            self._at_once.set()
        self.state = State.DRAINING
        self._stopping.set()

    async def stopping(self) -> None:
        """Waits for the first call of `stop`."""
        await self._stopping.wait()

    async def drained(self, drain: Awaitable[object], seconds: float) -> bool:
        """Waits for requests to end, for a time or until `stop` is called again."""
        ending = asyncio.ensure_future(drain)
        cut = asyncio.ensure_future(self._at_once.wait())
        try:
            await asyncio.wait({ending, cut}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return ending.done()
        finally:
            for task in (ending, cut):
                task.cancel()
            await asyncio.gather(ending, cut, return_exceptions=True)


class LoopLag:
    """How much later than planned the event loop ran, lately."""

    def __init__(self) -> None:
        self._seen: list[float] = []

    async def measure(self) -> None:
        """Measures until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _INTERVAL
            await asyncio.sleep(_INTERVAL)
            self._seen = [*self._seen[1 - _KEPT :], max(0.0, loop.time() - due)]

    def samples(self) -> Iterable[Sample]:
        """The greatest delay of the last minute."""
        yield Sample("toolwire_loop_lag_seconds", "gauge", round(max(self._seen, default=0.0), 6))
