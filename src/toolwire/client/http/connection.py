"""One connection and its answers."""

from __future__ import annotations

from asyncio import BufferedProtocol, get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from toolwire.client.http.body import Body, body_of
from toolwire.client.http.exchange import HttpLimits, broken, not_done, not_http, silent
from toolwire.client.http.head import (
    MAX_BEFORE_BODY,
    MAX_HEAD,
    Head,
    Unreadable,
    begins_like_http,
    end_of_head,
    read_head,
)
from toolwire.platform import input_check

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, BaseTransport, Future, TimerHandle, Transport

    from toolwire.errors import ConnectionFailed

_MOST_HELD = 262144
"""Unread bytes at which reading pauses."""
_JOINED = 65536
"""A shorter body is sent in one packet with its head; a longer one is not worth the copy."""


class HttpAnswer:
    """The answer to one request, read by iterating; aborted when the server is idle too long."""

    _before_body = 0
    _head: Head | None = None
    _body: Body | None = None
    _held = 0
    _paused = False
    _error: ConnectionFailed | None = None
    _waiter: Future[None] | None = None
    _unsent = 0
    untouched = True
    """No byte has arrived yet."""
    lost = False
    """The connection closed before the end of the answer."""

    def __init__(
        self,
        wire: Transport,
        method: str,
        host: str,
        limits: HttpLimits,
        begun: float,
        loop: AbstractEventLoop,
    ) -> None:
        self._wire = wire
        self._method = method
        self._host = host
        self._limits = limits
        self._begun = begun
        self._loop = loop
        self._received = bytearray()
        """The head received so far."""
        self._pieces: list[bytes] = []
        self._heard = loop.time()

    async def head(self) -> Head:
        """Waits for the head."""
        while self._head is None:
            if self._error is not None:
                raise self._error
            await self._arrival()
        return self._head

    @property
    def at_end(self) -> bool:
        """Whether the body was read to its end."""
        return self._body is not None and self._body.ended and not self._pieces

    def __aiter__(self) -> HttpAnswer:
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
        """Whether it is complete and the connection can be reused."""
        head, body = self._head, self._body
        whole = body is not None and body.ended and not body.surplus and self._error is None
        # Content-Length and Transfer-Encoding together: do not reuse the connection.
        return whole and head is not None and head.keeps and not (head.lengths and head.codings)

    def idle_time(self, most: float) -> float:
        """Seconds the connection may idle; one less than the server's own limit."""
        idle = None if self._head is None else self._head.idle
        return most if idle is None else min(most, idle - 1.0)

    def feed(self, data: bytes) -> None:
        """Process received bytes."""
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
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def end(self, error: Exception | None = None) -> None:
        """Process the end of the connection, which may be the body's end."""
        body = self._body
        if body is None or not body.ended:
            if body is not None and body.ends_with_connection and error is None:
                body.ended = True
                self._wake()
                return
            self.lost = self._error is None
            self.fail(broken(self._host, begun=self._head is not None), error)

    def fail(self, why: ConnectionFailed, cause: Exception | None = None) -> None:
        """Abort; bytes received so far can still be read."""
        if self._error is None:
            why.__cause__ = cause
            self._error = why
            self._wake()
        self._wire.abort()

    def _read_head(self, data: bytes) -> bytes:
        """Parses the head; returns the bytes after it."""
        # Blank lines and interim answers could continue without end.
        if self._before_body > MAX_BEFORE_BODY:
            raise Unreadable(f"more than {MAX_BEFORE_BODY} bytes came before its answer")
        self._before_body += len(data)
        held = self._received
        looked_at = len(held)
        if held:
            held += data
        received = held or data.lstrip(b"\r\n")
        while True:
            if not begins_like_http(received):
                raise Unreadable(f"it began with {bytes(received[:40])!r}")
            size = end_of_head(received, looked_at)
            if (size or len(received)) > MAX_HEAD:
                raise Unreadable(f"its head is longer than {MAX_HEAD} bytes")
            if not size:
                if received is not held:
                    self._received = bytearray(received)
                return b""
            head = read_head(bytes(received[:size]))
            received = bytes(received[size:])
            if head.status == 101:
                raise Unreadable("it switches to another protocol")
            if head.status >= 200:
                break
            # Interim answers, such as 100 and 103.
            looked_at = 0
        held.clear()
        self._body = body_of(head, self._method)
        self._head = head
        return received

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

    def due(self) -> float | None:
        """When it has to be checked; None if there is no limit, or it is over."""
        limits = self._limits
        if self._error is not None or (self._body is not None and self._body.ended):
            return None
        due = [self._heard + limits.read] if limits.read else []
        if limits.total:
            due.append(self._begun + limits.total)
        return min(due) if due else None

    def check(self) -> None:
        """Aborts it if the server was idle too long."""
        limits, now = self._limits, self._loop.time()
        unsent = self._wire.get_write_buffer_size()
        if self._pieces or unsent != self._unsent:
            # The reader is slow, or the server is still receiving the request.
            self._heard = now
            self._unsent = unsent
        if limits.total and now >= self._begun + limits.total:
            self.fail(not_done(self._host, limits))
        elif limits.read and now >= self._heard + limits.read:
            self.fail(silent(self._host, limits))


class Connection(BufferedProtocol):
    """A connection: one request at a time, the next after a complete answer.

    It reads into a buffer that stays: asyncio would allocate 256 KB for every chunk, a third of the
    cost of reading a live stream.
    """

    def __init__(
        self,
        host: str,
        limits: HttpLimits,
        gone: Callable[[Connection], None],
        send_soon: Callable[[Connection, bytes], None],
        room: memoryview | None = None,
    ) -> None:
        """`room`: a buffer that other connections of the event loop read into as well."""
        self._host = host
        self._limits = limits
        self._gone = gone
        self._send_soon = send_soon
        self._lost = False
        self._answer: HttpAnswer | None = None
        self._expires = 0.0
        self._room = memoryview(bytearray(limits.read_bytes)) if room is None else room
        self._timer: TimerHandle | None = None
        self._has_input: Callable[[], bool] | None = None
        self.unanswered = False
        """The server closed it without answering the last request."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Store the transport."""
        # Not by its class: those of other event loops, such as uvloop's, are not asyncio's.
        self._wire = cast("Transport", transport)
        # Not looked up for each answer: that asks the system for the process every time.
        self._loop = get_running_loop()

    @property
    def peer(self) -> str:
        """The numeric address of the server."""
        name: object = self._wire.get_extra_info("peername")
        return str(cast("tuple[object, ...]", name)[0]) if isinstance(name, tuple) else ""

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer for the next chunk."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the received bytes to the answer."""
        if self._answer is None:
            # Unrequested bytes must not be taken for the next answer.
            self.drop()
        else:
            self._answer.feed(bytes(self._room[:nbytes]))

    def eof_received(self) -> None:
        """End the answer: the server sends no more."""
        if self._answer is not None:
            self._answer.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer and notify the pool."""
        self._lost = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._gone(self)
        if self._answer is not None:
            self._answer.end(exc)

    def send(self, method: str, head: bytes, body: bytes, begun: float) -> HttpAnswer:
        """Send a request, soon if it is short; returns its pending answer."""
        wire = self._wire
        if len(body) <= _JOINED:
            self._send_soon(self, head + body if body else head)
        else:
            wire.write(head)
            wire.write(body)
        answer = self._answer = HttpAnswer(
            wire, method, self._host, self._limits, begun, self._loop
        )
        if self._lost:
            answer.end()
        elif self._timer is None:
            self._set_timer(answer)
        return answer

    def write(self, data: bytes) -> None:
        """Send what was put off, unless the request was given up meanwhile."""
        if not self._wire.is_closing():
            self._wire.write(data)

    def _set_timer(self, answer: HttpAnswer) -> None:
        """One timer for all answers: one for each, or for each chunk, costs more than reading."""
        due = answer.due()
        if due is not None:
            self._timer = self._loop.call_at(due, self._check)

    def _check(self) -> None:
        self._timer = None
        answer = self._answer
        if answer is None:
            return
        due = answer.due()
        if due is not None and due <= self._loop.time():
            answer.check()
        self._set_timer(answer)

    def release(self, most: float) -> bool:
        """Detach the last answer; returns whether the connection can be reused."""
        answer, self._answer = self._answer, None
        if answer is not None:
            idle = answer.idle_time(most)
            if answer.is_over() and idle > 0 and self._is_idle():
                self._expires = self._loop.time() + idle
                return True
            self.unanswered = answer.lost and answer.untouched
            answer.end()
        self.drop()
        return False

    def is_reusable(self, now: float) -> bool:
        """Whether an idle connection is still open."""
        if now >= self._expires or not self._is_idle():
            return False
        # The close may not have reached the event loop yet.
        if self._has_input is None:
            self._has_input = input_check(self._wire.get_extra_info("socket").fileno())
        return not self._has_input()

    def drop(self) -> None:
        """Close at once."""
        if not self._lost:
            self._wire.abort()

    def _is_idle(self) -> bool:
        wire = self._wire
        return not (self._lost or wire.is_closing() or wire.get_write_buffer_size())
