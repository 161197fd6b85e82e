"""HTTP/1.1 connection pool on plain asyncio, without heavy imports."""

from __future__ import annotations

from asyncio import BaseEventLoop, SelectorEventLoop, get_running_loop, sleep, timeout_at
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolwire.client.http.body import Inflater
from toolwire.client.http.connection import Connection, HttpAnswer
from toolwire.client.http.exchange import (
    Address,
    HttpLimits,
    Incoming,
    Outgoing,
    broken,
    insecure,
    no_connection,
    not_done,
    not_http,
    unreachable,
    untrusted,
)
from toolwire.client.http.head import Head, Unreadable, write_request
from toolwire.client.redact import secrets_of
from toolwire.errors import BadInput, ConnectionFailed, ToolwireError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_LOOPBACK = frozenset({"127.0.0.1", "::1"})


def is_exposed(request: Outgoing, address: Address) -> bool:
    """Whether the request would carry a credential unencrypted."""
    if address.scheme != "http" or request.insecure:
        return False
    return bool(address.login) or _has_secrets(request.url, request.headers)


@lru_cache(maxsize=64)
def _has_secrets(url: str, headers: tuple[tuple[str, str], ...]) -> bool:
    return bool(secrets_of(url, headers))


def exposed(host: str) -> BadInput:
    """The error for a credential that would leave this machine unencrypted."""
    return BadInput(
        f"refusing to send a credential to {host} over http, where others can read it; use https, "
        "or set allow_insecure_http = true for this provider"
    )


async def names_this_machine(loop: AbstractEventLoop, address: Address) -> bool:
    """Whether the host resolves only to addresses of this machine."""
    if address.host in _LOOPBACK:
        return True
    from socket import SOCK_STREAM  # noqa: PLC0415 - start-up time

    try:
        found = await loop.getaddrinfo(address.host, address.port, type=SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(is_this_machine(str(one[4][0])) for one in found)


def is_this_machine(number: str) -> bool:
    """Whether a numeric address is one of this machine."""
    if number in _LOOPBACK:
        return True
    from ipaddress import IPv6Address, ip_address  # noqa: PLC0415 - start-up time

    try:
        found = ip_address(number.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    # Connecting to 0.0.0.0 reaches this machine too.
    return found.is_loopback or found.is_unspecified


if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from ssl import SSLContext

_ROOM = 65536
KEEP_IDLE = 30.0
_NEXT_ADDRESS = 0.25
"""Delay before the next address of a name is tried in parallel."""
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class PlainHttp:
    """Direct connections; bound to the event loop that first uses it."""

    def __init__(self, limits: HttpLimits, certificates: Callable[[], SSLContext]) -> None:
        self._limits = limits
        self._certificates = certificates
        self._loop: AbstractEventLoop | None = None
        self._open: set[Connection] = set()
        self._idle: dict[tuple[str, str, int], list[Connection]] = {}
        self._sweeping: TimerHandle | None = None
        self._unsent: list[tuple[Connection, bytes]] = []
        self._room: memoryview | None = None
        """What all connections read into, one after the other; None if each has its own."""

    def open(self, request: Outgoing, address: Address) -> _Exchange:
        """Send; leaving the context before the body's end drops the connection."""
        return _Exchange(self, request, address)

    async def aclose(self) -> None:
        """Close every connection."""
        connections, self._open = self._open, set()
        self._idle.clear()
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        if self._loop is not get_running_loop():
            return
        for connection in connections:
            connection.drop()
        # Sockets are closed in the next iteration of the event loop.
        await sleep(0)

    async def send(
        self, request: Outgoing, address: Address
    ) -> tuple[Connection, HttpAnswer, Head]:
        """The connection, the answer and its head, once that is received."""
        loop = self._bind_loop()
        begun = loop.time()
        head = write_request(request, address)
        guarded = is_exposed(request, address)
        if guarded and not await names_this_machine(loop, address):
            raise exposed(address.shown)
        resting = self._resting(address, begun)
        if resting is not None and guarded and not is_this_machine(resting.peer):
            resting.drop()
            resting = None
        if resting is not None:
            try:
                return await self._ask(resting, request, head, begun)
            except ConnectionFailed:
                # The server may or may not have received the request. A second one may cost
                # twice, so the caller decides and reports it.
                if not resting.unanswered or request.method not in _REPEATABLE:
                    raise
        connection = await self._connect(loop, address, begun)
        # The name may resolve to another address by now.
        if guarded and not is_this_machine(connection.peer):
            connection.drop()
            raise exposed(address.shown)
        return await self._ask(connection, request, head, begun)

    def put_back(self, connection: Connection, address: Address) -> None:
        """Return a connection to the pool, or close it in the middle of an answer."""
        if connection.release(KEEP_IDLE) and connection in self._open:
            self._idle.setdefault(_origin(address), []).append(connection)
            if self._sweeping is None:
                self._sweeping = get_running_loop().call_later(KEEP_IDLE, self._sweep)

    async def _ask(
        self, connection: Connection, request: Outgoing, head: bytes, begun: float
    ) -> tuple[Connection, HttpAnswer, Head]:
        answer = connection.send(request.method, head, request.body, begun)
        try:
            return connection, answer, await answer.head()
        except BaseException:
            connection.release(0)
            raise

    def _send_soon(self, connection: Connection, data: bytes) -> None:
        """Sends at the end of this turn of the loop, after the work on other requests.

        Each write may wake a process that then takes this one's core and cache.
        """
        self._unsent.append((connection, data))
        if len(self._unsent) == 1:
            get_running_loop().call_soon(self._send_all)

    def _send_all(self) -> None:
        unsent, self._unsent = self._unsent, []
        for connection, data in unsent:
            connection.write(data)

    async def _connect(self, loop: AbstractEventLoop, address: Address, begun: float) -> Connection:
        limits = self._limits
        gone = self._open.discard
        made = Connection(address.shown, limits, gone, self._send_soon, self._room)
        self._open.add(made)
        within = [limit for limit in (limits.connect, limits.total) if limit]
        patience = timeout_at(begun + min(within) if within else None)
        try:
            async with patience:
                await loop.create_connection(
                    lambda: made,
                    address.host,
                    address.port,
                    ssl=self._certificates() if address.scheme == "https" else None,
                    **_in_parallel(loop, address.host),
                )
        except BaseException as error:
            self._open.discard(made)
            if patience.expired() and isinstance(error, TimeoutError):
                late = no_connection if limits.connect == min(within) else not_done
                raise late(address.shown, limits) from error
            if isinstance(error, OSError | UnicodeError):
                raise _refused(error, address.shown) from error
            raise
        return made

    def _resting(self, address: Address, now: float) -> Connection | None:
        waiting = self._idle.get(_origin(address))
        while waiting:
            connection = waiting.pop()
            if connection.is_reusable(now):
                return connection
            connection.drop()
        return None

    def _sweep(self) -> None:
        """Close connections idle for too long."""
        now = get_running_loop().time()
        for origin, waiting in list(self._idle.items()):
            kept = [connection for connection in waiting if connection.is_reusable(now)]
            for connection in set(waiting).difference(kept):
                connection.drop()
            self._idle[origin] = kept
            if not kept:
                del self._idle[origin]
        self._sweeping = None
        if self._idle:
            self._sweeping = get_running_loop().call_later(KEEP_IDLE, self._sweep)

    def _bind_loop(self) -> AbstractEventLoop:
        loop = get_running_loop()
        if self._loop is not loop:
            # Connections of a closed event loop cannot be closed.
            self._loop, self._sweeping, self._unsent = loop, None, []
            # Other kinds of loops may wait for bytes of several connections with a buffer for each.
            shares = isinstance(loop, SelectorEventLoop)
            self._room = memoryview(bytearray(_ROOM)) if shares else None
            self._open, self._idle = set(), {}
        return loop


class _Exchange:
    """One request and its answer, for as long as the context lasts."""

    def __init__(self, http: PlainHttp, request: Outgoing, address: Address) -> None:
        self._http = http
        self._request = request
        self._address = address
        self._connection: Connection | None = None

    async def __aenter__(self) -> Incoming:
        self._connection, answer, head = await self._http.send(self._request, self._address)
        chunks = decompressed(answer, head.headers, self._address.shown)
        return Incoming(status=head.status, headers=head.headers, chunks=chunks)

    async def __aexit__(self, *_: object) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._http.put_back(connection, self._address)


def _origin(address: Address) -> tuple[str, str, int]:
    return (address.scheme, address.host, address.port)


def _in_parallel(loop: AbstractEventLoop, host: str) -> dict[str, Any]:
    """The option to try a name's addresses in parallel, where the event loop knows it."""
    known = isinstance(loop, BaseEventLoop) and not _is_number(host)
    return {"happy_eyeballs_delay": _NEXT_ADDRESS} if known else {}


def _is_number(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _refused(error: OSError | UnicodeError, host: str) -> ToolwireError:
    import ssl  # noqa: PLC0415 - start-up time

    if isinstance(error, UnicodeError):
        return BadInput(f"{host}: the address cannot be read")
    if isinstance(error, ssl.SSLCertVerificationError):
        return untrusted(host, error)
    if isinstance(error, ssl.SSLError):
        return insecure(host, error)
    return unreachable(host, error)


def decompressed(
    chunks: AsyncIterator[bytes], headers: Mapping[str, str], host: str
) -> AsyncIterator[bytes]:
    """The chunks, decompressed if the headers name a coding."""
    coding = headers.get("content-encoding", "").strip().lower()
    return chunks if coding in ("", "identity") else _inflated(chunks, coding, host)


async def _inflated(chunks: AsyncIterator[bytes], coding: str, host: str) -> AsyncGenerator[bytes]:
    try:
        inflater = Inflater(coding)
        async for chunk in chunks:
            for number, piece in enumerate(inflater.feed(chunk)):
                if number:
                    # A few bytes may inflate to gigabytes: let a cancellation through.
                    await sleep(0)
                yield piece
    except Unreadable as error:
        raise not_http(host, str(error)) from error
    if not inflater.is_whole():
        raise broken(host, begun=True)
