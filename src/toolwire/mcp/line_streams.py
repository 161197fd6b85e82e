"""Messages on two descriptors, such as standard input and output: one a line."""

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import BrokenLine, Id, LineReader, RpcMessage

_READ = 1 << 18
_MOST_UNREAD = 1 << 20
"""Bytes that wait for the client to read before senders wait too."""


class MessageReader:
    """A thread that reads messages, one a line: the descriptor may be of any kind, and shared."""

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
        threading.Thread(target=self._read, name="rpc-input", daemon=True).start()

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


class MessageWriter:
    """A thread that writes messages, one a line; senders wait while the client does not read."""

    def __init__(
        self, descriptor: int, end: Callable[[str], None], *, cancels: bool = True
    ) -> None:
        """`cancels`: whether the protocol has MCP's notification that cancels a request."""
        self._cancels = cancels
        self._descriptor = descriptor
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._unread = 0
        self._space = asyncio.Event()
        self._space.set()
        self._empty = asyncio.Event()
        self._empty.set()
        threading.Thread(target=self._write, name="rpc-output", daemon=True).start()

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
        """A notification has to cancel it, where the protocol has one."""
        del request
        return not self._cancels

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
