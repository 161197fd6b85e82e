"""What goes to a server and what comes back, and the way between."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from toolwire.client.redact import hide_headers, hide_in_url


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request, complete. Printing it shows no credentials."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    insecure: bool = False
    """The user allows its credentials to go unencrypted to another machine."""

    def __repr__(self) -> str:
        shown = f"{self.method!r}, {hide_in_url(self.url)!r}, {hide_headers(self.headers)!r}"
        return f"Outgoing({shown}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("url", hide_in_url(self.url)), ("headers", hide_headers(self.headers))]


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """An answer whose body is still coming."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    chunks: AsyncIterator[bytes]
    """The body as the network cuts it; raises ConnectionFailed where it breaks."""


class Transport(Protocol):
    """The way to servers."""

    def open(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Send; leaving the context before the body's end drops the connection."""
        ...
