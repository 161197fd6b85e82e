"""HTTP through a proxy, with aiohttp; loaded only if the environment sets one."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from toolwire import __version__
from toolwire.client.http.exchange import (
    HttpLimits,
    Incoming,
    Outgoing,
    broken,
    insecure,
    no_connection,
    not_done,
    not_http,
    reason_of,
    silent,
    unreachable,
    untrusted,
)
from toolwire.client.http.pool import decompressed
from toolwire.client.redact import hide_in_url
from toolwire.errors import BadInput, ConnectionFailed, ToolwireError

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from aiohttp import ClientResponse, StreamReader

_CHECKS = 8
"""Checks of the body per time limit: an idle server is found at most that fraction late."""


class IdleTimer:
    """Aborts a body whose server is idle for too long; `end` it when done reading.

    aiohttp's own limit sets a timer for every chunk, a tenth of the cost of reading a live stream.
    """

    def __init__(self, response: ClientResponse, limit: float | None) -> None:
        self.taken = 0
        """Bytes the reader has; while more are buffered, the reader is the slow side."""
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
            self._set_timer()

    def end(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self._timer = self._loop.call_later(self._limit / _CHECKS, self._check)

    def _check(self) -> None:
        content = self._content
        now = self._loop.time()
        if content.total_bytes != self._seen or content.total_bytes != self.taken:
            self._seen = content.total_bytes
            self._since = now
        elif now - self._since >= self._limit:
            from aiohttp import SocketTimeoutError  # noqa: PLC0415 - start-up time

            self._timer = None
            content.set_exception(SocketTimeoutError("no data for too long"))
            return
        self._set_timer()


if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from ssl import SSLContext

    from aiohttp import ClientResponse, ClientSession

KEEP_IDLE = 30.0


class ProxiedHttp:
    """Connections through proxies; bound to the event loop that first uses it."""

    def __init__(self, limits: HttpLimits, certificates: Callable[[], SSLContext]) -> None:
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
            # No effect after a complete body: the connection is already back in the pool.
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
                # A redirect would send the credentials to another host.
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
        silence = IdleTimer(response, self._limits.read)
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
            # Compressed streams are delayed: the compressor buffers its input.
            headers={"accept-encoding": "identity", "user-agent": f"toolwire/{__version__}"},
            # trust_env also reads logins from ~/.netrc, which conflict with the authorization
            # header.
            trust_env=False,
            # It would inflate a chunk in one piece, without a size limit.
            auto_decompress=False,
        )


def _unsendable(request: Outgoing) -> BadInput:
    for name, value in request.headers:
        if any(sign in name + value for sign in "\r\n\0"):
            return BadInput(f"the header {name!r} contains a line break; a key was copied with one")
    return BadInput(f"{hide_in_url(request.url)} is not a valid address")


def showable(error: BaseException) -> BaseException | None:
    """An aiohttp error as a printable cause; None if it would show a secret."""
    from aiohttp import ClientResponseError, ConnectionTimeoutError, InvalidURL  # noqa: PLC0415 - start-up time

    # These print the URL, including a key in its query.
    telling = (ClientResponseError, ConnectionTimeoutError, InvalidURL)
    return None if isinstance(error, telling) else error


def failure(
    error: BaseException, host: str, limits: HttpLimits, *, begun: bool = False
) -> ToolwireError:
    """Our error for an aiohttp error; `begun` once the head was received."""
    import aiohttp  # noqa: PLC0415 - start-up time

    match error:
        case aiohttp.InvalidURL():
            return BadInput(f"{host}: the address cannot be read")
        case aiohttp.ConnectionTimeoutError():
            return no_connection(host, limits)
        case aiohttp.SocketTimeoutError():
            return silent(host, limits)
        case TimeoutError():
            return not_done(host, limits)
        case aiohttp.ClientConnectorCertificateError():
            return untrusted(host, error.certificate_error)
        case aiohttp.ClientSSLError():
            return insecure(host, error.os_error)
        case aiohttp.ClientHttpProxyError():
            return ConnectionFailed(
                f"the proxy answered {error.status} {error.message} for {host}", lasting=True
            )
        case aiohttp.ClientProxyConnectionError():
            reason = reason_of(error.os_error)
            return ConnectionFailed(f"cannot reach the proxy for {host}: {reason}")
        case aiohttp.ClientConnectorError():
            return unreachable(host, error.os_error)
        case aiohttp.ClientResponseError():
            return not_http(host, error.message)
        case _:
            return broken(host, begun=begun)
