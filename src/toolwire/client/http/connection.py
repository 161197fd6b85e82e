"""One connection, and the answers that come back on it."""

from __future__ import annotations

import select
import sys
from asyncio import BufferedProtocol, Transport, get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from toolwire.client.http.body import Body, body_of
from toolwire.client.http.errors import broken, not_done, not_http, silent
from toolwire.client.http.head import (
    MAX_BEFORE_BODY,
    MAX_HEAD,
    Head,
    Unreadable,
    begins_like_http,
    end_of_head,
    read_head,
)
from toolwire.client.http.limits import Limits

if TYPE_CHECKING:
    from asyncio import BaseTransport, Future, TimerHandle

    from toolwire.errors import ConnectionFailed

_MOST_HELD = 262144
"""With more than that unread, the server has to wait."""
_JOINED = 65536
"""A shorter body travels in one packet with its head; a longer one is not worth the copy."""
_READ_AT_ONCE = 65536


class Answer:
    """What comes back for one request, read by iterating; breaks off what is silent too long."""

    def __init__(
        self, wire: Transport, method: str, host: str, limits: Limits, begun: float
    ) -> None:
        self._wire = wire
        self._method = method
        self._host = host
        self._limits = limits
        self._begun = begun
        self._loop = get_running_loop()
        self._received = bytearray()
        """The head as far as it came."""
        self._before_body = 0
        self._head: Head | None = None
        self._body: Body | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        self._paused = False
        self._error: ConnectionFailed | None = None
        self._waiter: Future[None] | None = None
        self._heard = self._loop.time()
        self._unsent = 0
        self._timer: TimerHandle | None = None
        self.untouched = True
        """Nothing has come yet."""
        self.lost = False
        """The connection ended before the answer did."""
        self._look_later()

    async def head(self) -> Head:
        """Waits for it."""
        while self._head is None:
            if self._error is not None:
                raise self._error
            await self._arrival()
        return self._head

    def __aiter__(self) -> Answer:
        return self

    async def __anext__(self) -> bytes:
        pieces = self._pieces
        while not pieces:
            if self._error is not None:
                raise self._error
            if self._body is not None and self._body.ended:
                raise StopAsyncIteration
            waiter = self._waiter
            if waiter is None or waiter.done():
                waiter = self._waiter = self._loop.create_future()
            await waiter
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._held = 0
        if self._paused:
            self._paused = False
            self._wire.resume_reading()
        return piece

    def is_over(self) -> bool:
        """Whether it came whole, and the connection is fit for another."""
        head, body = self._head, self._body
        whole = body is not None and body.ended and not body.surplus and self._error is None
        # Both ways to say a length: one of them is a lie that the next reader may believe.
        return whole and head is not None and head.keeps and not (head.lengths and head.codings)

    def idle_time(self, most: float) -> float:
        """For how long the server keeps the connection, a second less if it says so."""
        said = self._head.headers.get("keep-alive", "") if self._head is not None else ""
        for member in said.split(","):
            name, _, value = member.strip().partition("=")
            if name == "timeout" and value.isdecimal():
                return min(most, int(value[:9]) - 1.0)
        return most

    def feed(self, data: bytes) -> None:
        """More from the server."""
        self._heard = self._loop.time()
        body = self._body
        try:
            if body is None:
                self.untouched = False
                data = self._read_head(data)
                body = self._body
                if body is None:
                    return
            if body.ended:
                body.surplus = body.surplus or bool(data)
            elif data and (piece := body.feed(data)):
                self._pieces.append(piece)
                self._held += len(piece)
                if self._held > _MOST_HELD and not self._paused:
                    self._paused = True
                    self._wire.pause_reading()
        except Unreadable as error:
            self.fail(not_http(self._host, str(error)))
            return
        if body.ended:
            self._look_no_more()
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def end(self, error: Exception | None = None) -> None:
        """Nothing more can come: the connection's end, which may be the body's."""
        body = self._body
        if body is None or not body.ended:
            if body is not None and body.ends_with_connection and error is None:
                body.ended = True
                self._look_no_more()
                self._wake()
                return
            self.lost = self._error is None
            self.fail(broken(self._host, begun=self._head is not None), error)

    def fail(self, why: ConnectionFailed, cause: Exception | None = None) -> None:
        """Break off; what came until now can still be read."""
        if self._error is None:
            why.__cause__ = cause
            self._error = why
            self._look_no_more()
            self._wake()
        self._wire.abort()

    def _read_head(self, data: bytes) -> bytes:
        """Takes the head; returns what came after it."""
        received, looked_at = self._received, len(self._received)
        # Blank lines and answers on the way to the answer could go on for ever.
        if self._before_body > MAX_BEFORE_BODY:
            raise Unreadable(f"more than {MAX_BEFORE_BODY} bytes came before its answer")
        self._before_body += len(data)
        received += data if looked_at else data.lstrip(b"\r\n")
        while True:
            if not begins_like_http(received):
                raise Unreadable(f"it began with {bytes(received[:40])!r}")
            size = end_of_head(received, looked_at)
            if max(size, len(received) if not size else 0) > MAX_HEAD:
                raise Unreadable(f"its head is longer than {MAX_HEAD} bytes")
            if not size:
                return b""
            head = read_head(bytes(received[:size]))
            del received[:size]
            if head.status == 101:
                raise Unreadable("it changes to another protocol")
            if head.status >= 200:
                break
            # Answers on the way to the answer, such as 100 and 103.
            looked_at = 0
        rest = bytes(received)
        received.clear()
        self._body = body_of(head, self._method)
        self._head = head
        return rest

    def _arrival(self) -> Future[None]:
        if self._waiter is None or self._waiter.done():
            self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def _look_later(self) -> None:
        """A timer that is set anew for every piece is a tenth of what reading a stream costs."""
        limits = self._limits
        due: list[float] = []
        if limits.read:
            due.append(self._heard + limits.read)
        if limits.total:
            due.append(self._begun + limits.total)
        if due:
            self._timer = self._loop.call_at(min(due), self._look)

    def _look_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        limits, now = self._limits, self._loop.time()
        unsent = self._wire.get_write_buffer_size()
        if self._pieces or unsent != self._unsent:
            # The wait is the reader's own, or the server is still taking the request.
            self._heard = now
            self._unsent = unsent
        if limits.total and now >= self._begun + limits.total:
            self.fail(not_done(self._host, limits))
        elif limits.read and now >= self._heard + limits.read:
            self.fail(silent(self._host, limits))
        else:
            self._look_later()


class Connection(BufferedProtocol):
    """A connection: one request at a time, the next after a whole answer.

    It reads into memory of its own: asyncio would else take 256 KB anew for every piece that comes,
    which costs a third of reading a live stream.
    """

    def __init__(self, host: str, limits: Limits, gone: Callable[[Connection], None]) -> None:
        self._host = host
        self._limits = limits
        self._gone = gone
        self._lost = False
        self._answer: Answer | None = None
        self._expires = 0.0
        self._room = memoryview(bytearray(_READ_AT_ONCE))
        self.unanswered = False
        """The server closed it without a word on the last request."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Keep the way to the server."""
        assert isinstance(transport, Transport)  # noqa: S101 - what TCP and TLS give
        self._wire = transport

    @property
    def peer(self) -> str:
        """The address it leads to, in numbers."""
        name: object = self._wire.get_extra_info("peername")
        return str(cast("tuple[object, ...]", name)[0]) if isinstance(name, tuple) else ""

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next piece goes."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Hand it to the answer."""
        if self._answer is None:
            # Whatever is said unasked must not be taken for the next answer.
            self.drop()
        else:
            self._answer.feed(bytes(self._room[:nbytes]))

    def eof_received(self) -> None:
        """Nothing more can come."""
        if self._answer is not None:
            self._answer.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._lost = True
        self._gone(self)
        if self._answer is not None:
            self._answer.end(exc)

    def send(self, method: str, head: bytes, body: bytes, begun: float) -> Answer:
        """Send a request; its answer is still to come."""
        wire = self._wire
        if len(body) <= _JOINED:
            wire.write(head + body if body else head)
        else:
            wire.write(head)
            wire.write(body)
        answer = self._answer = Answer(wire, method, self._host, self._limits, begun)
        if self._lost:
            answer.end()
        return answer

    def rest(self, most: float) -> bool:
        """Forget the last answer; whether the connection can be used again."""
        answer, self._answer = self._answer, None
        if answer is not None:
            idle = answer.idle_time(most)
            if answer.is_over() and idle > 0 and self._is_at_rest():
                self._expires = get_running_loop().time() + idle
                return True
            self.unanswered = answer.lost and answer.untouched
            answer.end()
        self.drop()
        return False

    def is_fresh(self, now: float) -> bool:
        """Whether a resting connection is still good: the server has not closed it meanwhile."""
        if now >= self._expires or not self._is_at_rest():
            return False
        # Its end may have come without the event loop having looked.
        return not _has_something_to_read(self._wire.get_extra_info("socket").fileno())

    def drop(self) -> None:
        """Close at once."""
        if not self._lost:
            self._wire.abort()

    def _is_at_rest(self) -> bool:
        wire = self._wire
        return not (self._lost or wire.is_closing() or wire.get_write_buffer_size())


def _has_something_to_read(socket: int) -> bool:
    if sys.platform == "win32":
        return bool(select.select([socket], [], [], 0)[0])
    asked = select.poll()
    asked.register(socket, select.POLLIN)
    return bool(asked.poll(0))
