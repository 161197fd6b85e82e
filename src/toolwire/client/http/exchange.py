"""Values of an HTTP exchange: address, request, response, limits, and errors without secrets."""

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from toolwire.client.redact import hide_headers, hide_in_url
from toolwire.errors import BadInput, ConnectionFailed


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A complete request; its repr shows no credentials."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    insecure: bool = False
    """The user allows sending its credentials unencrypted to another machine."""

    def __repr__(self) -> str:
        shown = f"{self.method!r}, {hide_in_url(self.url)!r}, {hide_headers(self.headers)!r}"
        return f"Outgoing({shown}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("url", hide_in_url(self.url)), ("headers", hide_headers(self.headers))]


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A response whose body is still arriving."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    chunks: AsyncIterator[bytes]
    """The body in chunks as received; raises ConnectionFailed when it breaks."""


class Transport(Protocol):
    """Sends requests to servers."""

    def open(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Send; leaving the context before the body's end drops the connection."""
        ...


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts in seconds, None for no limit, and the size of the buffer."""

    connect: float | None = 10.0
    """Name lookup, connection and TLS together; a server that needs longer is down."""
    read: float | None = 300.0
    """Idle time between two bytes, and before the first. Models think for minutes, and some servers
    send the arguments of a call in one late chunk.
    """
    total: float | None = None
    """The complete answer. None: a long answer that keeps arriving is valid."""
    read_bytes: int = 65536
    """Size of a connection's buffer: what is read at once. Most of the memory of an open stream."""


USUAL = HttpLimits()

MAX_ANSWER = 256 * 1024 * 1024
"""Bytes of one answer, decompressed."""
MAX_QUIET = 8 * 1024 * 1024
"""Bytes without an event: comments, pings, echoes of the request. An incomplete frame does not
count; it has its own limit.
"""
MAX_BLANK = 1024 * 1024
"""Blank bytes before an answer; some servers send them to keep the connection open."""
MAX_ERROR_BODY = 1024 * 1024
MAX_ERROR_SECONDS = 5.0
"""Timeout for the body of an error; its status is sufficient."""


def no_connection(host: str, limits: HttpLimits) -> ConnectionFailed:
    """Connecting took too long."""
    return ConnectionFailed(f"no connection to {host} within {limits.connect:g} s", timed_out=True)


def silent(host: str, limits: HttpLimits) -> ConnectionFailed:
    """No data arrived for too long."""
    return ConnectionFailed(f"no data from {host} for {limits.read:g} s", timed_out=True)


def not_done(host: str, limits: HttpLimits) -> ConnectionFailed:
    """The complete answer took too long."""
    if limits.total is None:
        return ConnectionFailed(f"the connection to {host} timed out", timed_out=True)
    return ConnectionFailed(f"{host} did not finish within {limits.total:g} s", timed_out=True)


def untrusted(host: str, refused: object) -> ConnectionFailed:
    """Unknown issuer, or the certificate is for another host."""
    why = getattr(refused, "verify_message", "") or "not trusted"
    return ConnectionFailed(
        f"the certificate of {host} is refused: {why}; if it is your own, name its "
        "authority in the settings",
        lasting=True,
    )


def insecure(host: str, error: OSError) -> ConnectionFailed:
    """TLS failed for another reason."""
    return ConnectionFailed(f"no secure connection to {host}: {reason_of(error)}")


def unreachable(host: str, error: OSError) -> ConnectionFailed:
    """No connection at all."""
    return ConnectionFailed(f"cannot reach {host}: {reason_of(error)}")


def not_http(host: str, why: str) -> ConnectionFailed:
    """The server did not answer with HTTP."""
    return ConnectionFailed(f"{host} does not speak HTTP: {why[:200]}")


def broken(host: str, *, begun: bool) -> ConnectionFailed:
    """The connection closed too early; `begun` once the head was received."""
    verb = "broke in the middle of the answer" if begun else "closed before an answer arrived"
    return ConnectionFailed(f"the connection to {host} {verb}")


def reason_of(error: OSError) -> str:
    """The reason that the system gives, or the kind of the error."""
    return error.strerror or str(error) or type(error).__name__


_PORTS = {"http": 80, "https": 443}
_ASCII = "".join(map(chr, range(33, 127)))


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request that its URL determines; its repr shows no credentials."""

    scheme: str
    host: str
    """As used by the resolver and in certificates."""
    port: int
    target: str
    """Path and query, as in the request line."""
    authority: str
    """For the `Host` header."""
    shown: str
    """For messages: host, and port if one was given."""
    login: str
    """The `authorization` header for a user and password in the URL."""

    def __repr__(self) -> str:
        return f"Address({self.scheme}://{self.authority})"


@lru_cache(maxsize=128)
def read_address(url: str) -> Address:
    """Parse a URL; raises BadInput for an invalid one."""
    parts, port = _split(url)
    host = parts.hostname
    if not host:
        raise BadInput(f"{hide_in_url(url)} is not a valid address: it has no host")
    shown = f"{host}:{port}" if port else host
    if parts.scheme not in _PORTS:
        raise BadInput(f"{shown}: the address cannot be read")
    name = _ascii_host(host, url)
    bracketed = f"[{name}]" if ":" in name else name
    usual = _PORTS[parts.scheme]
    return Address(
        scheme=parts.scheme,
        host=name,
        port=port or usual,
        target=_target(parts, url),
        authority=bracketed if port in (None, usual) else f"{bracketed}:{port}",
        shown=shown,
        login=_login(parts),
    )


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise BadInput(f"{hide_in_url(url)} is not a valid address: it has no host") from None


def _ascii_host(host: str, url: str) -> str:
    try:
        # A name with other letters is looked up in its ASCII form.
        name = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not name or any(sign <= " " or sign in '"<>\\^`{|}/?#\x7f' for sign in name):
        raise BadInput(f"{hide_in_url(url)} is not a valid address")
    return name


def _target(parts: SplitResult, url: str) -> str:
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    try:
        # A login in the URL must be encodable too.
        url.encode()
    except UnicodeError:
        raise BadInput("an address with a lone surrogate is not a valid address") from None
    if any(sign <= " " or sign == "\x7f" for sign in target):
        raise BadInput(f"{hide_in_url(url)} is not a valid address")
    return target if target.isascii() else quote(target, safe=_ASCII)


def _login(parts: SplitResult) -> str:
    if parts.username is None and parts.password is None:
        return ""
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"
