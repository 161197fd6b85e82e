"""Event streams over HTTP: messages of one request, sent as they come, and again on return."""

import asyncio
from collections import deque

from toolwire.http_server.exchange import Answering
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import RpcFailure, RpcMessage, RpcResult

EVENTS = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache, no-transform"),
    ("x-accel-buffering", "no"),
)
JSON = (("content-type", "application/json"),)
RETRY_MS = 1000
PING_SECONDS = 15.0
_MOST_EVENTS = 1000
MOST_BYTES = 16 * 1024 * 1024


class EventStream:
    """The messages of one stream; with a name, a client that lost it may come back."""

    def __init__(self, name: str = "", *, primed: bool = False) -> None:
        self.name = name
        self._events: deque[tuple[int, bytes]] = deque()
        self.size = 0
        """Bytes of the events it holds."""
        self._number = 0
        self._reader: object = None
        self._more = asyncio.Event()
        self.answer: RpcResult | RpcFailure | None = None
        """The last answer in it."""
        self.finished = False
        if primed:
            # It has an id and no message: with it a client can come back before the first one.
            self._put(f"retry: {RETRY_MS}\n", b"")

    @property
    def attached(self) -> bool:
        """Whether a client reads it."""
        return self._reader is not None

    @property
    def only(self) -> RpcResult | RpcFailure | None:
        """The answer, if nothing else was ever in a stream that is finished."""
        return self.answer if self.finished and self._number == 1 else None

    def put(self, message: RpcMessage) -> None:
        """Adds a message."""
        if isinstance(message, RpcResult | RpcFailure):
            self.answer = message
        self._put("", jsonrpc.write(message))

    def finish(self) -> None:
        """Nothing follows."""
        self.finished = True
        self._wake()

    def _put(self, prefix: str, data: bytes) -> None:
        self._number += 1
        id = f"id: {self.name}_{self._number}\n" if self.name else ""
        event = f"{prefix}{id}".encode() + b"data: " + data + b"\n\n"
        self._events.append((self._number, event))
        self.size += len(event)
        while len(self._events) > _MOST_EVENTS or (
            self.size > MOST_BYTES and len(self._events) > 1
        ):
            self.size -= len(self._events.popleft()[1])
        self._wake()

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()

    async def begun(self, answering: Answering, seconds: float) -> None:
        """Waits for the first message, the end, or the client to go; no longer than that."""
        if not self._number and not self.finished:
            await self._news(answering, seconds)

    async def ended(self, answering: Answering) -> RpcResult | RpcFailure | None:
        """The answer at the end, for a client that takes no events; None if it has gone."""
        while not self.finished and not answering.left:
            await self._news(answering, PING_SECONDS)
        return self.answer

    async def pour(self, answering: Answering, after: int = 0) -> None:
        """Sends everything after an event, and goes on until the stream is finished.

        A client that reads the same stream elsewhere ends this one; ClientGone without one.
        """
        me = self._reader = object()
        try:
            while self._reader is me:
                for number, data in tuple(self._events):
                    if number > after:
                        await answering.send(data)
                        after = number
                if self.finished and after >= self._number:
                    break
                if answering.left or not await self._news(answering, PING_SECONDS):
                    await answering.send(b": ping\n\n")
        finally:
            if self._reader is me:
                self._reader = None

    async def _news(self, answering: Answering, seconds: float) -> bool:
        """Whether anything happened in time."""
        waits = [asyncio.ensure_future(each.wait()) for each in (self._more, answering.gone)]
        try:
            done, _ = await asyncio.wait(
                waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return bool(done) and not answering.left
        finally:
            for each in waits:
                each.cancel()


def place_of(last: str) -> tuple[str, int] | None:
    """The stream and the number of an event id; None if it is not one of ours."""
    name, _, number = last.rpartition("_")
    return (name, int(number)) if name and number.isascii() and number.isdigit() else None
