"""One client's connection: reads a request, has it answered, reads the next."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from toolwire.http_server.exchange import Answering, Asked, ClientGone, Ends, Refusal, plain_refusal
from toolwire.wire.http1 import (
    HeadReader,
    ReceivedBody,
    RefusedRequest,
    RequestHead,
    end_of_head,
    write_head,
)

if TYPE_CHECKING:
    from toolwire.http_server.listener import HttpListener

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_MOST_AHEAD = 262144
"""Bytes of a next request that are read while one is answered."""
_MOST_JOINED = 65536
"""Bytes that are collected before they are written."""
_LINGER = 1.0
"""Seconds in which a refused client may read why."""
_log = logging.getLogger(__name__)


class Connection(asyncio.Protocol):
    """One client; its requests are answered one at a time."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._limits = listener.limits
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._looked_at = 0
        self._heads = HeadReader()
        self._head: RequestHead | None = None
        self._body: ReceivedBody | None = None
        self._pending = 0
        """What this connection adds to the listener's pending bytes."""
        self._answering: Answering | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._joined: list[bytes] = []
        self._joined_size = 0
        self._flushes = False
        """Whether it is written to at the end of this turn of the loop."""
        self._writable = asyncio.Event()
        self._writable.set()
        self._refused = False
        self.address = ""
        self._ends = Ends()
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        listener = self._listener
        # Any stream transport: uvloop's classes are not those of asyncio.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.write_bytes)
        self.address, _ = _address(transport.get_extra_info("peername"))
        self._ends = Ends(self.address, *_address(transport.get_extra_info("sockname")))
        listener.open.add(self)
        if self.address not in listener.proxies:
            listener.by_address[self.address] += 1
        if len(listener.open) > self._limits.connections:
            self._refuse(plain_refusal(503, "too many connections"))
        elif listener.by_address[self.address] > self._limits.connections_per_address:
            self._refuse(plain_refusal(503, "too many connections from this address"))
        elif listener.draining:
            self.abort()
        else:
            self._wait(self._limits.idle_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        listener = self._listener
        listener.open.discard(self)
        if self.address not in listener.proxies:
            listener.by_address[self.address] -= 1
            if listener.by_address[self.address] <= 0:
                del listener.by_address[self.address]
        self._count(0)
        self._cancel_timer()
        self._transport = None
        self._joined.clear()
        self._received = bytearray()
        self._head = self._body = None
        self._writable.set()
        answering = self._answering
        if answering is not None:
            answering.leave()
            if answering.when_gone is not None and not answering.ended:
                answering.when_gone()
            elif listener.cancels and self.task is not None:
                self.task.cancel()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    @property
    def full(self) -> bool:
        """Whether the client reads slowly."""
        return not self._writable.is_set()

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
            if self._head is None and self._read_head():
                return
            if self._head is not None and self._body is not None and not self._refused:
                surplus = self._body.feed(self._received)
                self._received = bytearray(surplus)
                if self._body.ended:
                    self._answer(self._head, self._body.content)
                else:
                    self._wait(self._limits.silence_seconds)
                    self._count(self._body.size)
        except RefusedRequest as refused:
            self._refuse(plain_refusal(refused.status, str(refused)))

    def _read_head(self) -> bool:
        """Reads a head if it is complete; whether that was all, because the body is there too."""
        received = self._received
        if self._looked_at == 0:
            # Line ends between two requests, which old clients send after a body.
            while received.startswith(b"\r\n"):
                del received[:2]
            if not received:
                return True
        end = end_of_head(received, self._looked_at)
        if not end:
            if self._looked_at == 0:
                self._wait(self._limits.head_seconds)
            self._looked_at = len(received)
            return True
        self._looked_at = len(received)
        head = self._head = self._heads.read(bytes(received[:end]))
        refusal = self._listener.check(head, self._ends)
        if refusal is not None:
            self._refuse(refusal)
            return True
        length = head.length
        if length is not None and length <= min(len(received) - end, self._limits.body_bytes):
            body = bytes(received[end : end + length])
            del received[: end + length]
            self._answer(head, body)
            return True
        del received[:end]
        self._body = ReceivedBody(length, self._limits.body_bytes)
        if head.waits and not self._body.ended and not received:
            self._write(_CONTINUE)
        return False

    def _count(self, size: int) -> None:
        """Counts the body's bytes among those of all connections."""
        self._listener.pending += size - self._pending
        self._pending = size
        if size and self._listener.pending > self._limits.pending_bytes:
            raise RefusedRequest(503, "too many bodies are being received; try again")

    def _answer(self, head: RequestHead, body: bytes) -> None:
        if self._pending:
            self._count(0)
        self._head = self._body = None
        asked = Asked.of(head, body, self.address)
        self._answering = Answering(head, self)
        if self._listener.draining:
            self._answering.keeps = False
        # Unnamed tasks are numbered: a text for each request that no one reads.
        self.task = self._loop.create_task(self._handled(asked, self._answering), name="request")

    async def _handled(self, asked: Asked, answering: Answering) -> None:
        try:
            await self._listener.handle(asked, answering)
        except ClientGone:
            pass
        except RefusedRequest as refused:
            if not answering.begun:
                with suppress(ClientGone):
                    await answering.refuse(plain_refusal(refused.status, str(refused)))
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
            self._listener.settled()

    def _next(self, answering: Answering) -> None:
        if self._transport is None:
            return
        if answering.is_cut or (answering.ended and not self._keeps(answering)):
            self._close()
        elif not answering.ended:
            # The client must not take a cut answer for a whole one.
            self._flush()
            self._transport.abort()
        else:
            self._flush_soon()
            self._looked_at = 0
            self._transport.resume_reading()
            self._wait(self._limits.idle_seconds)
            if self._received:
                self._advance()

    def _keeps(self, answering: Answering) -> bool:
        return answering.keeps and not self._listener.draining

    def put(self, data: bytes, *, held: bool = False) -> None:
        """Writes for the handler, joined with what else is written in this turn of the loop.

        What is `held` waits for what is written next, or for the end of the answer.
        """
        if self._transport is None or self._transport.is_closing():
            raise ClientGone
        self._joined.append(data)
        self._joined_size += len(data)
        if self._joined_size >= _MOST_JOINED:
            self._flush()
        elif not held:
            self._flush_soon()

    async def drained(self) -> None:
        """Waits while the client reads slowly."""
        try:
            async with asyncio.timeout(self._limits.write_seconds):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
            raise ClientGone from None
        if self not in self._listener.open:
            raise ClientGone

    def _flush_soon(self) -> None:
        if not self._flushes and self._joined:
            self._flushes = True
            self._listener.flush_soon(self.flush)

    def flush(self) -> None:
        """Writes what was put off to the end of this turn of the loop."""
        self._flushes = False
        self._flush()

    def _flush(self) -> None:
        joined = self._joined
        if not joined:
            return
        if self._transport is not None:
            self._listener.before_write()
            self._transport.write(joined[0] if len(joined) == 1 else b"".join(joined))
        joined.clear()
        self._joined_size = 0

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.write(data)

    def _refuse(self, refusal: Refusal) -> None:
        """Answers, and reads a moment longer: closing at once could destroy the answer."""
        self._refused = True
        self._count(0)
        self._received = bytearray()
        self._head = self._body = None
        fields = (*refusal.fields, ("content-length", str(len(refusal.body))))
        self._write(write_head(refusal.status, (*fields, ("connection", "close"))) + refusal.body)
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()
        self._wait(_LINGER)

    def close_idle(self) -> None:
        """Closes it unless a request is arriving or being answered."""
        if self.task is None and self._looked_at == 0 and not self._refused:
            self._close()

    def _close(self) -> None:
        """Closes it once the client has read what was written, for which it has a limited time."""
        if self._transport is not None:
            self._refused = True
            self._flush()
            self._transport.close()
            self._wait(self._limits.write_seconds)

    def _wait(self, seconds: float) -> None:
        """Sets the deadline; the timer is moved only if it would fire too late."""
        deadline = self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() <= deadline:
            return
        self._cancel_timer()
        self._timer = self._loop.call_at(self._deadline, self._late)

    def _late(self) -> None:
        self._timer = None
        if self.task is not None:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._late)
        elif self._refused or self._looked_at == 0:
            self.abort()
        else:
            self._refuse(plain_refusal(408, "the request did not arrive in time"))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abort(self) -> None:
        """Closes it at once."""
        if self._transport is not None:
            self._transport.abort()


def _address(name: object) -> tuple[str, int]:
    """The IP address and port of a socket's name; a socket in the file system has none."""
    if not isinstance(name, tuple):
        return "", 0
    host, port, *_ = cast(tuple[str, int], name)
    # A client of an IPv6 socket that speaks IPv4 has one address, not two.
    return host.removeprefix("::ffff:") if "." in host else host, port
