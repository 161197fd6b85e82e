"""HTTP requests and responses, and the transport protocol."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from toolwire.client.redact import hide_headers, hide_in_url


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
    """Timeouts in seconds; None for no limit."""

    connect: float | None = 10.0
    """Name lookup, connection and TLS together; a server that needs longer is down."""
    read: float | None = 300.0
    """Idle time between two bytes, and before the first. Models think for minutes, and some servers
    send the arguments of a call in one late chunk.
    """
    total: float | None = None
    """The complete answer. None: a long answer that keeps arriving is valid."""


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
