"""Requests as the console shows them: the last ones in memory, with what was recorded of each."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from toolwire.client.redact import secrets_of
from toolwire.errors import ErrorKind
from toolwire.gateway.capture import Capture, Level, set_capture
from toolwire.gateway.parts import GatewayRefusal

if TYPE_CHECKING:
    from toolwire.gateway.answering import ModelCall
    from toolwire.gateway.record import RequestRecord
    from toolwire.http_server.exchange import Asked

ROWS = 2_000
"""Requests in memory; older ones are read from the ledger."""
SHAPES = 500
"""Of them, those whose shape or bytes are kept."""
MOST_BYTES = 64 * 1024 * 1024
"""Of all recorded bodies together."""
_MICRO = 1_000_000


class Watched:
    """One request in memory."""

    # Thousands stay in memory.
    __slots__ = ("_seen", "begun", "call", "cancelled", "capture", "n", "record", "running")

    def __init__(self, record: RequestRecord, call: ModelCall, capture: Capture | None) -> None:
        self.record = record
        self.call: ModelCall | None = call
        self.capture = capture
        self.begun = time.perf_counter()
        self.n = 0
        """Number of its last change."""
        self.running = True
        self.cancelled = False
        self._seen: tuple[object, ...] = ()

    @property
    def level(self) -> Level:
        """What is recorded of it."""
        if self.capture is None:
            return "off"
        return self.capture.level

    @property
    def phase(self) -> str:
        """How far it is."""
        record = self.record
        if not self.running:
            return "done"
        if record.first_event is not None:
            return "streaming" if record.streamed else "held"
        return "held" if record.deployment else "waiting" if record.route else "admitted"

    @property
    def seconds(self) -> float:
        """How long it took, or takes so far."""
        return time.perf_counter() - self.begun if self.running else self.record.duration

    def changed(self) -> bool:
        """Whether something that a list shows has changed since the last call."""
        record = self.record
        seen = (
            *(self.phase, record.deployment, record.status, record.retries, record.losses),
            *(record.reattached, record.error),
        )
        different, self._seen = seen != self._seen, seen
        return different

    def cancel(self) -> bool:
        """Ends the request with an error; whether it was still running."""
        if not self.running or self.call is None:
            return False
        self.cancelled = True
        words = "the request was cancelled in the console"
        self.call.interrupt(
            GatewayRefusal(ErrorKind.BAD_REQUEST, words, status=499, should_retry=False)
        )
        return True


class Changes:
    """Who waits for a change."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Wakes all that wait."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Waits for the next change, at most so long."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            async with asyncio.timeout(seconds):
                await waiting
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(waiting)


class Watch:
    """The last requests, and who waits for changes of them."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._rows: OrderedDict[str, Watched] = OrderedDict()
        self._captures: OrderedDict[str, Watched] = OrderedDict()
        self._forgotten = 0
        """The last change of a request that is no longer in memory."""
        self._running: dict[str, Watched] = {}
        self._bytes = 0
        self.changes = Changes()
        self.seen = 0
        """Requests since the start."""
        self.n = int(clock() * _MICRO)
        """Number of the last change; it grows over restarts too."""

    def begin(
        self, record: RequestRecord, asked: Asked, body: bytes, call: ModelCall, level: Level
    ) -> Watched:
        """Takes note of a request, and records it in this task; `body` is decompressed."""
        watched = Watched(record, call, None)
        if level != "off":
            capture = watched.capture = Capture(level, watched.begun)
            capture.method = asked.method
            if level == "full":
                capture.target, capture.fields = asked.head.target, tuple(asked.head.fields)
                capture.body = body
                capture.secrets = secrets_of(f"http://x{asked.head.target}", asked.head.fields)
            self._captures[record.id] = watched
        set_capture(watched.capture)
        self.seen += 1
        self._rows[record.id] = self._running[record.id] = watched
        self._change(watched)
        while len(self._rows) > ROWS:
            self._forget(next(iter(self._rows.values())))
        return watched

    def ended(self, record: RequestRecord) -> None:
        """A reader of records: the request is over."""
        watched = self._running.pop(record.id, None)
        if watched is None:
            return
        watched.running, watched.call = False, None
        set_capture(None)
        if watched.capture is not None:
            watched.capture.status = record.status
            self._bytes += watched.capture.size
            self._shrink()
        self._change(watched)

    def _forget(self, watched: Watched) -> None:
        self._rows.pop(watched.record.id, None)
        self._forgotten = max(self._forgotten, watched.n)
        self._drop(watched)

    def _shrink(self) -> None:
        while self._captures and (self._bytes > MOST_BYTES or len(self._captures) > SHAPES):
            self._drop(next(iter(self._captures.values())))

    def _drop(self, watched: Watched) -> None:
        """Frees what was recorded of a request."""
        if self._captures.pop(watched.record.id, None) is not None and watched.capture is not None:
            if not watched.running:
                self._bytes -= watched.capture.size
            watched.capture = None

    def _change(self, watched: Watched) -> None:
        watched.n = self.n = max(self.n + 1, int(self._clock() * _MICRO))
        self.changes.notify()

    def find(self, request: str) -> Watched | None:
        """A request in memory."""
        return self._rows.get(request)

    @property
    def running(self) -> tuple[Watched, ...]:
        """Those that are being answered."""
        return tuple(self._running.values())

    def newest(self) -> Iterator[Watched]:
        """All in memory, the newest first."""
        return reversed(self._rows.values())

    def poll(self) -> None:
        """Takes note of what has changed in running requests."""
        for watched in self.running:
            if watched.changed():
                self._change(watched)

    def since(self, n: int) -> tuple[list[Watched], bool]:
        """The requests that changed after `n`, each once, and whether some may be missing."""
        found = [watched for watched in self._rows.values() if watched.n > n]
        return sorted(found, key=lambda one: one.n), self._forgotten > n
