"""Requests as the console shows them: the last ones in memory, with what was recorded of each."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from toolwire.client.redact import secrets_of
from toolwire.errors import ErrorKind
from toolwire.gateway.capture import Capture, Level, set_capture
from toolwire.gateway.parts import GatewayRefusal
from toolwire.gateway.record import RequestRecord

if TYPE_CHECKING:
    from toolwire.gateway.answering import ModelCall
    from toolwire.http_server.exchange import Asked

ROWS = 2_000
"""Requests in memory; older ones are read from the ledger."""
SHAPES = 500
"""Of them, those whose shape or bytes are kept."""
MOST_BYTES = 64 * 1024 * 1024
"""Of all recorded bodies together."""
_MICRO = 1_000_000
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(RequestRecord).decode


class Watched:
    """One request in memory."""

    # Thousands stay in memory, where dozens of values each would push out what is in use.
    __slots__ = (
        *("_packed", "_record", "_seen", "begun", "call", "cancelled", "capture", "id", "n"),
        "running",
    )

    def __init__(self, record: RequestRecord, call: ModelCall, capture: Capture | None) -> None:
        self.id = record.id
        self._record: RequestRecord | None = record
        self._packed = b""
        """The record of a request that has ended."""
        self.call: ModelCall | None = call
        self.capture = capture
        self.begun = time.perf_counter()
        self.n = 0
        """Number of its last change."""
        self.running = True
        self.cancelled = False
        self._seen: tuple[object, ...] = ()

    @property
    def record(self) -> RequestRecord:
        """What is known of it."""
        return self._record or _unpack(self._packed)

    def end(self, record: RequestRecord) -> None:
        """Takes its record at its end."""
        self.running, self.call = False, None
        self._packed, self._record, self._seen = _pack(record), None, ()

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
        self._rows: dict[str, Watched] = {}
        self._order: deque[Watched] = deque()
        """The same, the oldest first."""
        self._captured: deque[Watched] = deque()
        """Those of which more than the record is kept."""
        self._forgotten = 0
        """The last change of a request that is no longer in memory."""
        self._running: dict[str, Watched] = {}
        self._bytes = 0
        self.changes = Changes()
        self.seen = 0
        """Requests since the start."""
        self.n = int(clock() * _MICRO)
        """Number of the last change: its Unix time in microseconds, or one more than before.

        Pages that come back after a restart ask for what ended since.
        """

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
            self._captured.append(watched)
        set_capture(watched.capture)
        self.seen += 1
        self._rows[watched.id] = self._running[watched.id] = watched
        self._order.append(watched)
        self._change(watched)
        if len(self._order) > ROWS:
            oldest = self._order.popleft()
            del self._rows[oldest.id]
            self._forgotten = max(self._forgotten, oldest.n)
            if self._captured and self._captured[0] is oldest:
                self._free(self._captured.popleft())
        return watched

    def ended(self, record: RequestRecord) -> None:
        """A reader of records: the request is over."""
        watched = self._running.pop(record.id, None)
        if watched is None:
            return
        watched.end(record)
        set_capture(None)
        capture = watched.capture
        if capture is not None:
            capture.end(record.status)
            if capture.level == "full":
                self._bytes += capture.size
        while len(self._captured) > SHAPES or (self._bytes > MOST_BYTES and self._captured):
            self._free(self._captured.popleft())
        self._change(watched)

    def _free(self, watched: Watched) -> None:
        """Frees what was recorded of a request."""
        capture, watched.capture = watched.capture, None
        if capture is not None and capture.level == "full" and not watched.running:
            self._bytes -= capture.size

    def _change(self, watched: Watched) -> None:
        now = int(self._clock() * _MICRO)
        watched.n = self.n = now if now > self.n else self.n + 1
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
        return reversed(self._order)

    def poll(self) -> None:
        """Takes note of what has changed in running requests."""
        for watched in self.running:
            if watched.changed():
                self._change(watched)

    def since(self, n: int) -> tuple[list[Watched], bool]:
        """The requests that changed after `n`, each once, and whether some may be missing."""
        found = [watched for watched in self._order if watched.n > n]
        return sorted(found, key=lambda one: one.n), self._forgotten > n
