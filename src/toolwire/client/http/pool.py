"""HTTP/1.1 on bare asyncio: a pool of connections, and nothing that has to be loaded for it."""

from __future__ import annotations

from asyncio import get_running_loop, sleep, timeout_at
from collections.abc import Callable
from typing import TYPE_CHECKING

from toolwire.client.http.address import Address
from toolwire.client.http.clear_text import exposed, is_exposed, is_this_machine, names_this_machine
from toolwire.client.http.compression import decompressed
from toolwire.client.http.connection import Answer, Connection
from toolwire.client.http.errors import insecure, no_connection, not_done, unreachable, untrusted
from toolwire.client.http.exchange import Incoming, Outgoing
from toolwire.client.http.head import write_request
from toolwire.client.http.limits import Limits
from toolwire.errors import BadInput, ConnectionFailed, ToolwireError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from ssl import SSLContext

KEEP_IDLE = 30.0
_NEXT_ADDRESS = 0.25
"""How long one address of a name gets before the next is tried beside it."""
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class PlainHttp:
    """Straight connections; belongs to the event loop that first uses it."""

    def __init__(self, limits: Limits, certificates: Callable[[], SSLContext]) -> None:
        self._limits = limits
        self._certificates = certificates
        self._loop: AbstractEventLoop | None = None
        self._open: set[Connection] = set()
        self._idle: dict[tuple[str, str, int], list[Connection]] = {}
        self._sweeping: TimerHandle | None = None

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
        # Sockets are closed when the event loop comes round.
        await sleep(0)

    async def send(self, request: Outgoing, address: Address) -> tuple[Connection, Answer]:
        """The connection, and the answer, whose head is there."""
        loop = self._come_here()
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
                return resting, await self._ask(resting, request, head, begun)
            except ConnectionFailed:
                # Closed just before it heard us, or just after: nobody knows. A model asked twice
                # may have to be paid twice, so that is for the caller to decide and to tell.
                if not resting.unanswered or request.method not in _REPEATABLE:
                    raise
        connection = await self._connect(loop, address, begun)
        # The name may stand for another address by now.
        if guarded and not is_this_machine(connection.peer):
            connection.drop()
            raise exposed(address.shown)
        return connection, await self._ask(connection, request, head, begun)

    def put_back(self, connection: Connection, address: Address) -> None:
        """Keep a connection for the next request, or drop it in the middle of an answer."""
        if connection.rest(KEEP_IDLE) and connection in self._open:
            self._idle.setdefault(_origin(address), []).append(connection)
            if self._sweeping is None:
                self._sweeping = get_running_loop().call_later(KEEP_IDLE, self._sweep)

    async def _ask(
        self, connection: Connection, request: Outgoing, head: bytes, begun: float
    ) -> Answer:
        answer = connection.send(request.method, head, request.body, begun)
        try:
            await answer.head()
        except BaseException:
            connection.rest(0)
            raise
        return answer

    async def _connect(self, loop: AbstractEventLoop, address: Address, begun: float) -> Connection:
        limits = self._limits
        made = Connection(address.shown, limits, self._open.discard)
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
                    happy_eyeballs_delay=None if _is_number(address.host) else _NEXT_ADDRESS,
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
            if connection.is_fresh(now):
                return connection
            connection.drop()
        return None

    def _sweep(self) -> None:
        """Close what nobody has used for long."""
        now = get_running_loop().time()
        for origin, waiting in list(self._idle.items()):
            kept = [connection for connection in waiting if connection.is_fresh(now)]
            for connection in set(waiting).difference(kept):
                connection.drop()
            self._idle[origin] = kept
            if not kept:
                del self._idle[origin]
        self._sweeping = None
        if self._idle:
            self._sweeping = get_running_loop().call_later(KEEP_IDLE, self._sweep)

    def _come_here(self) -> AbstractEventLoop:
        loop = get_running_loop()
        if self._loop is not loop:
            # Connections of an event loop that is gone cannot even be closed.
            self._loop, self._sweeping = loop, None
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
        self._connection, answer = await self._http.send(self._request, self._address)
        head = await answer.head()
        chunks = decompressed(answer, head.headers, self._address.shown)
        return Incoming(status=head.status, headers=head.headers, chunks=chunks)

    async def __aexit__(self, *_: object) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._http.put_back(connection, self._address)


def _origin(address: Address) -> tuple[str, str, int]:
    return (address.scheme, address.host, address.port)


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
