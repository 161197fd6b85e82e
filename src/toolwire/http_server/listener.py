"""Sockets: connections with limits, one request after the other, and their end."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Container, Sequence
from ssl import SSLContext
from typing import Any, TypeAlias

import msgspec

from toolwire.http_server.connection import Connection
from toolwire.http_server.exchange import Ends, Handle, Refusal
from toolwire.wire.http1 import RequestHead


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may take."""

    connections: int = 256
    connections_per_address: int = 256
    body_bytes: int = 32 * 1024 * 1024
    pending_bytes: int = 512 * 1024 * 1024
    """Of all bodies that are arriving at one time."""
    head_seconds: float = 10.0
    """For a head to arrive, from its first byte."""
    silence_seconds: float = 30.0
    """Between two pieces of a body."""
    idle_seconds: float = 75.0
    """For the next request on an open connection."""
    write_seconds: float = 60.0
    """For a client to read what was written before it counts as gone."""
    write_bytes: int = 256 * 1024
    """Unsent bytes at which the handler waits."""


Check: TypeAlias = Callable[[RequestHead, Ends], Refusal | None]
"""Looks at a head and the ends of its connection before the body is read."""


def no_check(head: RequestHead, ends: Ends) -> Refusal | None:
    """Lets every request in."""
    return None


def _nothing() -> None:
    pass


class HttpListener:
    """Accepts connections until it is closed."""

    def __init__(
        self,
        handle: Handle,
        limits: HttpLimits | None = None,
        *,
        check: Check = no_check,
        cancels: bool = False,
        proxies: Container[str] = frozenset[str](),
        before_write: Callable[[], None] = _nothing,
    ) -> None:
        self.handle = handle
        self.limits = limits or HttpLimits()
        self.check = check
        self.cancels = cancels
        """Whether a handler is cancelled when its client has gone."""
        self.proxies = proxies
        """Addresses that many clients share, which the limit per address does not count."""
        self.before_write = before_write
        """Called before anything goes out that handlers have written."""
        self.open: set[Connection] = set()
        self.by_address: Counter[str] = Counter()
        self.pending = 0
        """Bytes of the bodies that are arriving."""
        self.draining = False
        self._servers: list[asyncio.Server] = []
        self._settled = asyncio.Event()
        self._flushing: list[Callable[[], None]] = []

    async def start(
        self, host: str, port: int, *, tls: SSLContext | None = None, shared: bool = False
    ) -> int:
        """Listens; returns the port, which 0 leaves to the system. OSError if it cannot.

        A `shared` port may be listened on by other processes too.
        """
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(self),
            host,
            port,
            reuse_port=shared or None,
            backlog=1024,
            **self._encrypted(tls),
        )
        self._servers.append(server)
        return server.sockets[0].getsockname()[1]

    async def adopt(self, sockets: Sequence[socket.socket], tls: SSLContext | None = None) -> None:
        """Listens on sockets that are bound already."""
        loop = asyncio.get_running_loop()
        for one in sockets:
            server = await loop.create_server(
                lambda: Connection(self), sock=one, backlog=1024, **self._encrypted(tls)
            )
            self._servers.append(server)

    def _encrypted(self, tls: SSLContext | None) -> dict[str, Any]:
        if tls is None:
            return {}
        seconds = self.limits.head_seconds
        return {"ssl": tls, "ssl_handshake_timeout": seconds, "ssl_shutdown_timeout": seconds}

    @property
    def busy(self) -> int:
        """How many requests are being answered."""
        return sum(one.task is not None for one in self.open)

    async def drain(self) -> None:
        """Stops listening, closes idle connections, and waits until every answer has ended."""
        self.stop()
        while self.busy:
            self._settled.clear()
            await self._settled.wait()

    def stop(self) -> None:
        """Stops listening; connections close with their answer."""
        self.draining = True
        for server in self._servers:
            server.close()
        for one in tuple(self.open):
            one.close_idle()

    def flush_soon(self, flush: Callable[[], None]) -> None:
        """Writes at the end of this turn of the loop, after the work of all connections.

        Each write may wake a process that then takes this one's core and cache.
        """
        self._flushing.append(flush)
        if len(self._flushing) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        flushing, self._flushing = self._flushing, []
        for flush in flushing:
            flush()

    def settled(self) -> None:
        """Called by a connection whose answer has ended."""
        self._settled.set()

    async def aclose(self) -> None:
        """Stops listening, cancels what is being answered, and closes every connection."""
        for server in self._servers:
            server.close()
        tasks = [one.task for one in self.open if one.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for one in tuple(self.open):
            one.abort()
