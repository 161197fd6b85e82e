"""A client on standard input and output: one message a line, until the input ends."""

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from toolwire.mcp_server.connection import ClientConnection
from toolwire.mcp_server.server import McpServer
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import PARSE_ERROR, BrokenLine, Id, LineReader, RpcFailure, RpcMessage

_GRACE = 0.5
"""Seconds in which answers may still be given after the input has ended."""
_READ = 1 << 18
_MOST_UNREAD = 1 << 20
"""Bytes that wait for the client to read before senders wait too."""


async def serve_stdio(server: McpServer, reading: int, writing: int) -> str:
    """Serves the client until its input ends or cannot be read; returns why, empty for its end."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[str] = loop.create_future()

    def end(why: str) -> None:
        if not ended.done():
            ended.set_result(why)

    channel = _Channel(writing, end)
    connection = ClientConnection(server, channel, stateless=True)

    def junk(line: str) -> None:
        words = f"not a JSON-RPC message: {line[:60]}"
        connection.soon(channel.send(RpcFailure(None, PARSE_ERROR, words)))

    _Reader(reading, LineReader(skip=junk), connection.receive, end)
    try:
        why = await ended
        if not why:
            await connection.peer.settled(_GRACE)
        return why
    finally:
        connection.close()
        await channel.flush(_GRACE)


class _Reader:
    """A thread that reads: the descriptor may be of any kind, and shared with other programs."""

    def __init__(
        self,
        descriptor: int,
        lines: LineReader,
        receive: Callable[[RpcMessage], None],
        end: Callable[[str], None],
    ) -> None:
        self._descriptor = descriptor
        self._lines = lines
        self._receive = receive
        self._end = end
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="mcp-input", daemon=True).start()

    def _read(self) -> None:
        taken = threading.Event()
        while True:
            try:
                data = os.read(self._descriptor, _READ)
            except OSError:
                data = b""
            taken.clear()
            try:
                self._loop.call_soon_threadsafe(self._take, data, taken)
            except RuntimeError:
                return
            if not data:
                return
            taken.wait()

    def _take(self, data: bytes, taken: threading.Event) -> None:
        try:
            for message in self._lines.feed(data) if data else self._lines.close():
                self._receive(message)
            if not data:
                self._end("")
        except BrokenLine as error:
            self._end(f"the client's messages cannot be read: {error}")
        finally:
            taken.set()


class _Channel:
    """A thread that writes; senders wait while the client does not read."""

    def __init__(self, descriptor: int, end: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._unread = 0
        self._space = asyncio.Event()
        self._space.set()
        self._empty = asyncio.Event()
        self._empty.set()
        threading.Thread(target=self._write, name="mcp-output", daemon=True).start()

    async def send(self, message: RpcMessage) -> None:
        """Writes one line."""
        data = jsonrpc.write(message) + b"\n"
        self._unread += len(data)
        self._empty.clear()
        self._queue.put(data)
        if self._unread > _MOST_UNREAD:
            self._space.clear()
            await self._space.wait()

    async def cancel(self, request: Id) -> bool:
        """A notification has to cancel it."""
        del request
        return False

    async def flush(self, seconds: float) -> None:
        """Waits until everything is written, as long as that is allowed to take."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            pass

    def _write(self) -> None:
        while True:
            data = self._queue.get()
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self._later(self._end, "")
            self._later(self._written, len(data))

    def _later(self, call: Callable[..., None], *values: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *values)
        except RuntimeError:
            return

    def _written(self, size: int) -> None:
        self._unread -= size
        if self._unread <= _MOST_UNREAD // 2:
            self._space.set()
        if not self._unread:
            self._empty.set()
