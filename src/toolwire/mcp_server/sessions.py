"""Sessions over HTTP for clients with a handshake: streams that survive a lost connection."""

import asyncio
import secrets
from collections.abc import Callable, Sequence

from toolwire.http_server.exchange import Answering, ClientGone
from toolwire.mcp.peer import answered
from toolwire.mcp_server.connection import ClientConnection
from toolwire.mcp_server.server import McpServer
from toolwire.mcp_server.streams import MOST_BYTES, EventStream
from toolwire.wire.jsonrpc import (
    INVALID_REQUEST,
    Id,
    RpcFailure,
    RpcMessage,
    RpcRequest,
    RpcResult,
)

_PRIMED_SINCE = "2025-11-25"
_MOST_FINISHED = 32
"""Finished streams that a client may still come back to."""


class HttpSession:
    """One client: its connection, and a stream for each request."""

    def __init__(self, server: McpServer, closed: Callable[["HttpSession"], None]) -> None:
        self.id = secrets.token_urlsafe(32)
        self.connection = ClientConnection(server, self, stateless=False, finished=self._finished)
        self.general = EventStream("all")
        """What belongs to no request."""
        self._limits = server.limits
        self._closed = closed
        self._streams: dict[str, EventStream] = {"all": self.general}
        self._carrier: dict[Id, EventStream] = {}
        self._detached: dict[str, asyncio.TimerHandle] = {}
        self._expiry = self._later()

    @property
    def version(self) -> str:
        """The revision that was agreed on."""
        return self.connection.caller.version if self.connection.caller is not None else ""

    @property
    def size(self) -> int:
        """Bytes of the events it holds for clients that come back."""
        return sum(stream.size for stream in self._streams.values())

    @property
    def primes(self) -> bool:
        """Whether the client takes an event without a message."""
        return self.version >= _PRIMED_SINCE

    def touch(self) -> None:
        """Starts the limit of idleness again."""
        self._expiry.cancel()
        self._expiry = self._later()

    def close(self) -> None:
        """Cancels its requests, and ends its streams."""
        self._expiry.cancel()
        for timer in self._detached.values():
            timer.cancel()
        self.connection.close()
        for stream in self._streams.values():
            stream.finish()
        self._closed(self)

    def receive(self, messages: Sequence[RpcMessage], *, primed: bool) -> EventStream:
        """Takes the messages of one body; their answers go to the stream."""
        stream = EventStream(secrets.token_urlsafe(9).replace("_", "-"), primed=primed)
        requests = [each for each in messages if isinstance(each, RpcRequest)]
        if requests:
            self._streams[stream.name] = stream
            self._forget_finished()
        for message in messages:
            if isinstance(message, RpcRequest) and message.id in self._carrier:
                # Not handed on: its answer would go to the stream of the other one.
                stream.put(RpcFailure(message.id, INVALID_REQUEST, "this id is still in use"))
                continue
            if isinstance(message, RpcRequest):
                self._carrier[message.id] = stream
            self.connection.receive(message)
        self._finish(stream)
        return stream

    def stream(self, name: str) -> EventStream | None:
        """A stream that a client may come back to."""
        return self._streams.get(name)

    async def pour(self, stream: EventStream, answering: Answering, after: int = 0) -> None:
        """Sends a stream to the client; if that goes, the requests of it go on for a while."""
        timer = self._detached.pop(stream.name, None)
        if timer is not None:
            timer.cancel()
        try:
            await stream.pour(answering, after)
        except ClientGone:
            self.detach(stream)
            raise
        finally:
            self.touch()

    def detach(self, stream: EventStream) -> None:
        """Cancels the requests of a stream unless the client comes back to it."""
        if stream is not self.general and not stream.finished and not stream.attached:
            loop = asyncio.get_running_loop()
            seconds = self._limits.detached_seconds
            self._detached[stream.name] = loop.call_later(seconds, self._give_up, stream)

    def _give_up(self, stream: EventStream) -> None:
        for number, carrier in tuple(self._carrier.items()):
            if carrier is stream:
                self.connection.peer.drop(number)

    async def send(self, message: RpcMessage) -> None:
        """Puts a message into the stream of the request it belongs to."""
        match message:
            case RpcResult() | RpcFailure():
                self._answer(message)
            case _:
                request = answered.get(None)
                stream = self._carrier.get(request.id) if request is not None else None
                (stream or self.general).put(message)

    def _finished(self, number: Id) -> None:
        """A request that was cancelled ends its stream without an answer."""
        stream = self._carrier.pop(number, None)
        if stream is not None:
            self._finish(stream)

    def _finish(self, stream: EventStream) -> None:
        """Ends a stream whose requests are all answered."""
        if stream not in self._carrier.values():
            stream.finish()

    def _answer(self, message: RpcResult | RpcFailure) -> None:
        stream = self._carrier.pop(message.id, None) if message.id is not None else None
        if stream is None:
            return
        stream.put(message)
        self._finish(stream)

    async def cancel(self, request: Id) -> bool:
        """A notification has to cancel it."""
        del request
        return False

    def _forget_finished(self) -> None:
        finished = [name for name, stream in self._streams.items() if stream.finished]
        size = sum(self._streams[name].size for name in finished)
        for left, name in zip(range(len(finished), 0, -1), finished, strict=True):
            if left <= _MOST_FINISHED and size <= MOST_BYTES:
                break
            size -= self._streams.pop(name).size

    def _later(self) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(self._limits.session_seconds, self._expire)

    def _expire(self) -> None:
        if self.connection.peer.serving or any(each.attached for each in self._streams.values()):
            self.touch()
        else:
            self.close()
