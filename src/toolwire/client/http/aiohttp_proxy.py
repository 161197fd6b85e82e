"""HTTP through a proxy, by aiohttp: loaded only where the environment names one."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from toolwire import __version__
from toolwire.client.http.compression import decompressed
from toolwire.client.http.errors import failure, showable
from toolwire.client.http.exchange import Incoming, Outgoing
from toolwire.client.http.limits import Limits
from toolwire.client.redact import hide_in_url
from toolwire.errors import BadInput

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from aiohttp import ClientResponse, StreamReader

_LOOKS = 8
"""How often the body is looked at within the time limit: the silence found is at most that part of
it longer.
"""


class Silence:
    """Breaks off a body whose server has said nothing for too long; `end` it when done reading.

    aiohttp's own limit sets a timer for every piece, a tenth of what reading a live stream costs.
    """

    def __init__(self, response: ClientResponse, limit: float | None) -> None:
        self.taken = 0
        """Bytes the reader has; while more are there, the wait is the reader's own."""
        self._content: StreamReader = response.content
        self._loop = get_running_loop()
        self._seen = 0
        self._since = 0.0
        self._limit = limit or 0.0
        self._timer: TimerHandle | None = None
        connection = response.connection
        if limit and connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = None
            self._since = self._loop.time()
            self._look_later()

    def end(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._limit / _LOOKS, self._look)

    def _look(self) -> None:
        content = self._content
        now = self._loop.time()
        if content.total_bytes != self._seen or content.total_bytes != self.taken:
            self._seen = content.total_bytes
            self._since = now
        elif now - self._since >= self._limit:
            from aiohttp import SocketTimeoutError  # noqa: PLC0415 - start-up time

            self._timer = None
            content.set_exception(SocketTimeoutError("nothing came for too long"))
            return
        self._look_later()


if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from ssl import SSLContext

    from aiohttp import ClientResponse, ClientSession

KEEP_IDLE = 30.0


class ProxiedHttp:
    """Connections that go through proxies; belongs to the event loop that first uses it."""

    def __init__(self, limits: Limits, certificates: Callable[[], SSLContext]) -> None:
        self._limits = limits
        self._certificates = certificates
        self._session: ClientSession | None = None
        self._loop: AbstractEventLoop | None = None

    async def aclose(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @asynccontextmanager
    async def open(self, request: Outgoing, host: str, proxy: str) -> AsyncGenerator[Incoming]:
        """Send; leaving the context before the body's end drops the connection."""
        response = await self._send(request, host, proxy)
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            async with aclosing(self._chunks(response, host)) as chunks:
                content = decompressed(chunks, headers, host)
                yield Incoming(status=response.status, headers=headers, chunks=content)
        finally:
            # Nothing happens where the body was read to its end: the connection is back already.
            response.close()

    async def _send(self, request: Outgoing, host: str, proxy: str) -> ClientResponse:
        from aiohttp import ClientError  # noqa: PLC0415 - start-up time
        from yarl import URL  # noqa: PLC0415 - start-up time

        session = self._here()
        try:
            return await session.request(
                request.method,
                URL(request.url, encoded=True),
                headers=request.headers,
                data=request.body or None,
                # A redirect would carry the credentials to wherever it points.
                allow_redirects=False,
                proxy=proxy,
            )
        except (ClientError, TimeoutError, OSError) as error:
            raise failure(error, host, self._limits) from showable(error)
        except ValueError:
            raise _unsendable(request) from None

    async def _chunks(self, response: ClientResponse, host: str) -> AsyncGenerator[bytes]:
        from aiohttp import ClientError  # noqa: PLC0415 - start-up time

        read = response.content.readany
        silence = Silence(response, self._limits.read)
        try:
            while chunk := await read():
                silence.taken += len(chunk)
                yield chunk
        except (ClientError, TimeoutError, OSError) as error:
            raise failure(error, host, self._limits, begun=True) from showable(error)
        finally:
            silence.end()

    def _here(self) -> ClientSession:
        loop = get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._session = self._new_session()
            self._loop = loop
        return self._session

    def _new_session(self) -> ClientSession:
        from aiohttp import (  # noqa: PLC0415 - start-up time
            ClientSession,
            ClientTimeout,
            DummyCookieJar,
            TCPConnector,
        )

        limits = self._limits
        return ClientSession(
            # No limit on connections: waiting in a queue would count as time to connect.
            connector=TCPConnector(limit=0, keepalive_timeout=KEEP_IDLE, ssl=self._certificates()),
            timeout=ClientTimeout(
                total=limits.total, connect=limits.connect, sock_read=limits.read
            ),
            cookie_jar=DummyCookieJar(),
            # Compressed streams come late: the compressor waits for more to compress.
            headers={"accept-encoding": "identity", "user-agent": f"toolwire/{__version__}"},
            # aiohttp's own reading of the environment also takes logins from ~/.netrc, which then
            # clash with the authorization header.
            trust_env=False,
            # It would inflate a piece whole, however much that is.
            auto_decompress=False,
        )


def _unsendable(request: Outgoing) -> BadInput:
    for name, value in request.headers:
        if any(sign in name + value for sign in "\r\n\0"):
            return BadInput(f"the header {name!r} holds a line break; a key was copied with one")
    return BadInput(f"{hide_in_url(request.url)} is no address to send to")
