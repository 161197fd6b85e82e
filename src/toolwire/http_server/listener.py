"""Sockets: connections with limits, one request after the other, and their end."""

import asyncio
import logging
from contextlib import suppress

import msgspec

from toolwire.http_server.exchange import Answering, Asked, ClientGone, Handle
from toolwire.wire.http1 import (
    ReceivedBody,
    RefusedRequest,
    RequestHead,
    end_of_head,
    read_head,
    write_head,
)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_MOST_AHEAD = 262144
"""Bytes of a next request that are read while one is answered."""
_LINGER = 1.0
"""Seconds in which a refused client may read why."""
_log = logging.getLogger(__name__)


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may take."""

    connections: int = 256
    body_bytes: int = 32 * 1024 * 1024
    request_seconds: float = 60.0
    """For a whole request to arrive, from its first byte."""
    idle_seconds: float = 75.0
    """For the next request on an open connection."""
    write_seconds: float = 60.0
    """For a client to read what was written before it counts as gone."""


class HttpListener:
    """Accepts connections until it is closed."""

    def __init__(self, handle: Handle, limits: HttpLimits | None = None) -> None:
        self.handle = handle
        self.limits = limits or HttpLimits()
        self.open: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listens; returns the port, which 0 leaves to the system. OSError if it cannot."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port)
        return self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Stops listening, cancels what is being answered, and closes every connection."""
        if self._server is not None:
            self._server.close()
        tasks = [one.task for one in self.open if one.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for one in tuple(self.open):
            one.abort()


class _Connection(asyncio.Protocol):
    """One client: reads a request, has it answered, reads the next."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._limits = listener.limits
        self._received = bytearray()
        self._looked_at = 0
        self._head: RequestHead | None = None
        self._body: ReceivedBody | None = None
        self._answering: Answering | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._refused = False
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a TCP server
        self._transport = transport
        self._listener.open.add(self)
        if len(self._listener.open) > self._limits.connections:
            self._refuse(503, "too many connections")
        else:
            self._wait(self._limits.idle_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.open.discard(self)
        self._cancel_timer()
        self._transport = None
        self._writable.set()
        if self._answering is not None:
            self._answering.gone.set()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._received += data
        if self.task is None:
            self._advance()
        elif len(self._received) > _MOST_AHEAD and self._transport is not None:
            self._transport.pause_reading()

    def _advance(self) -> None:
        """Reads on, and starts the answer once a request is complete."""
        try:
            if self._head is None:
                self._read_head()
            if self._head is not None and self._body is not None:
                surplus = self._body.feed(self._received)
                self._received = bytearray(surplus)
                if self._body.ended:
                    self._answer(Asked(head=self._head, body=self._body.content))
        except RefusedRequest as refused:
            self._refuse(refused.status, str(refused))

    def _read_head(self) -> None:
        if self._looked_at == 0:
            # Line ends between two requests, which old clients send after a body.
            while self._received.startswith(b"\r\n"):
                del self._received[:2]
            if not self._received:
                return
            self._wait(self._limits.request_seconds)
        end = end_of_head(self._received, self._looked_at)
        self._looked_at = len(self._received)
        if not end:
            return
        self._head = read_head(bytes(self._received[:end]))
        self._body = ReceivedBody(self._head.length, self._limits.body_bytes)
        del self._received[:end]
        if self._head.waits and not self._body.ended and not self._received:
            self._write(_CONTINUE)

    def _answer(self, asked: Asked) -> None:
        self._cancel_timer()
        self._answering = Answering(asked.head, self)
        self.task = asyncio.ensure_future(self._handled(asked, self._answering))

    async def _handled(self, asked: Asked, answering: Answering) -> None:
        try:
            await self._listener.handle(asked, answering)
        except ClientGone:
            pass
        except Exception:
            _log.exception("a request failed")
            if not answering.begun:
                with suppress(ClientGone):
                    answering.keeps = False
                    await answering.whole(500)
        finally:
            self.task = None
            self._answering = None
            self._next(answering)

    def _next(self, answering: Answering) -> None:
        if self._transport is None:
            return
        if not answering.ended:
            # The client must not take a cut answer for a whole one.
            self._transport.abort()
        elif not answering.keeps:
            self._transport.close()
        else:
            self._head = self._body = None
            self._looked_at = 0
            self._transport.resume_reading()
            self._wait(self._limits.idle_seconds)
            self._advance()

    async def write(self, data: bytes) -> None:
        """Writes for the handler."""
        if self._transport is None or self._transport.is_closing():
            raise ClientGone
        self._transport.write(data)
        if self._writable.is_set():
            return
        try:
            async with asyncio.timeout(self._limits.write_seconds):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
            raise ClientGone from None
        if self not in self._listener.open:
            raise ClientGone

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _refuse(self, status: int, words: str) -> None:
        """Answers, and reads a moment longer: closing at once could destroy the answer."""
        self._refused = True
        body = f"{words}\n".encode()
        fields = (
            ("content-type", "text/plain; charset=utf-8"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        )
        self._write(write_head(status, fields) + body)
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()
        self._wait(_LINGER)

    def _wait(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._late)

    def _late(self) -> None:
        if self._refused or self._looked_at == 0:
            self.abort()
        else:
            self._refuse(408, "the request did not arrive in time")

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abort(self) -> None:
        """Closes it at once."""
        if self._transport is not None:
            self._transport.abort()
