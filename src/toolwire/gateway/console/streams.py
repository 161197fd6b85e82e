"""Event streams to the pages of the console."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolwire.gateway.console.calls import without_secrets
from toolwire.gateway.console.static import SECURITY
from toolwire.wire.sse import Frame, SseEncoder

if TYPE_CHECKING:
    from toolwire.http_server.exchange import Answering

BEAT_SECONDS = 15.0
GAP_SECONDS = 1 / 60
"""At least so long between two batches."""
_FIELDS = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
)
_encoder = SseEncoder()


class EventStream:
    """Server-sent events, each with its name and, if it can be resumed from, its number."""

    def __init__(self, out: Answering) -> None:
        self._out = out
        self._written = time.monotonic()

    async def begin(self) -> None:
        """Sends the head."""
        await self._out.begin(200, (*_FIELDS, *SECURITY))
        await self._out.send(b"retry: 1000\n\n")

    async def send(self, name: str, data: object, number: int | None = None) -> None:
        """Sends one event; waits while the browser reads slowly."""
        text = _encoder.encode(Frame(without_secrets(data), name))
        if number is not None:
            text = b"id: %d\n%b" % (number, text)
        await self._out.send(text)
        self._written = time.monotonic()

    async def beat(self) -> None:
        """Sends a comment after a long silence, so that proxies keep the connection."""
        if time.monotonic() - self._written >= BEAT_SECONDS:
            await self._out.send(b": beat\n\n")
            self._written = time.monotonic()

    @property
    def slow(self) -> bool:
        """Whether the browser reads more slowly than events come."""
        return self._out.full

    async def end(self) -> None:
        """Ends the stream; the browser connects again."""
        await self._out.end()
