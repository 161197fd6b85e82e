"""A server as a child process below a watchdog: messages on its input and output, line by line."""

import asyncio
import os
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from toolwire.errors import ToolwireError
from toolwire.tools.shell.processes import Shell
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import BrokenLine, Id, LineReader, RpcMessage

CLOSE_SECONDS = 0.3
"""Between the end of a server's input and its signals."""
_LAST_WORDS = 64 * 1024
_READ = 1 << 20


class CannotStart(ToolwireError):
    """A server's program cannot be started."""

    kind = "mcp_start"


class StdioChannel:
    """The process of one server; everything below it ends with it."""

    def __init__(
        self,
        words: tuple[str, ...],
        directory: Path,
        environ: Mapping[str, str],
        receive: Callable[[RpcMessage], None],
        closed: Callable[[str], None],
    ) -> None:
        program = shutil.which(words[0], path=environ.get("PATH", ""))
        if program is None:
            raise CannotStart(f"the program {words[0]} is not on the path")
        self._receive = receive
        self._closed = closed
        self._errors = _LastBytes()
        self._messages = _Messages(self._line_read, self._broken)
        reading, writing = os.pipe()
        try:
            self._process = Shell(
                " ".join(words),
                directory=directory,
                environ=environ,
                out=self._messages,
                err=self._errors,
                words=words,
                program=program,
                given=reading,
            )
        except OSError as error:
            os.close(writing)
            raise CannotStart(f"{words[0]} cannot be started: {error.strerror}") from error
        finally:
            os.close(reading)
        self._input = _Input(writing)
        self._watching = asyncio.ensure_future(self._watch())

    @property
    def last_words(self) -> str:
        """The end of what the server wrote to standard error, or to its output beside messages."""
        skipped = "\n".join(self._messages.reader.skipped)
        return self._errors.text() or skipped

    async def send(self, message: RpcMessage) -> None:
        """Writes one line."""
        await self._input.write(jsonrpc.write(message) + b"\n")

    async def cancel(self, request: Id) -> bool:
        """A notification has to cancel it."""
        del request
        return False

    async def aclose(self) -> None:
        """Closes its input, waits a moment, and ends whatever is left of it."""
        self._input.close()
        await asyncio.wait({self._watching}, timeout=CLOSE_SECONDS)
        await self._process.end()
        await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        ended = await self._process.ended()
        for message in self._messages.reader.close():
            self._receive(message)
        self._input.close()
        self._closed(ended.problem or "Connection closed")
        await self._process.end()

    def _line_read(self, message: RpcMessage) -> None:
        self._receive(message)

    def _broken(self, why: str) -> None:
        self._closed(f"the server's output cannot be read: {why}")
        self._input.close()
        self._process.abandon()


class _Messages:
    """Standard output of a server: cut into messages as it comes."""

    whole = True

    def __init__(
        self, received: Callable[[RpcMessage], None], broken: Callable[[str], None]
    ) -> None:
        self.reader = LineReader()
        self._received = received
        self._broken = broken

    def take(self, pipe: int, most: int) -> int:
        data = os.read(pipe, min(most, _READ))
        try:
            for message in self.reader.feed(data):
                self._received(message)
        except BrokenLine as error:
            self._broken(str(error))
        return len(data)

    def last(self, size: int) -> bytes:
        """Nothing of it is live output."""
        del size
        return b""


class _LastBytes:
    """The last bytes of standard error."""

    whole = True

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def take(self, pipe: int, most: int) -> int:
        data = os.read(pipe, min(most, _LAST_WORDS))
        self._pieces.append(data)
        self._size += len(data)
        while self._size - len(self._pieces[0]) >= _LAST_WORDS:
            self._size -= len(self._pieces.popleft())
        return len(data)

    def last(self, size: int) -> bytes:
        del size
        return b""

    def text(self) -> str:
        return b"".join(self._pieces)[-_LAST_WORDS:].decode("utf-8", "replace").strip()


class _Input:
    """The writing end of a server's standard input, without blocking."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._lock = asyncio.Lock()

    async def write(self, data: bytes) -> None:
        async with self._lock:
            view = memoryview(data)
            while view:
                if self._descriptor is None:
                    return
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:
                    await self._writable(self._descriptor)
                except OSError:
                    # Its end is reported by the watchdog.
                    self.close()

    async def _writable(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_writer(descriptor, lambda: ready.done() or ready.set_result(None))
        self._waiting = ready
        try:
            await ready
        finally:
            if self._descriptor is not None:
                loop.remove_writer(descriptor)

    def close(self) -> None:
        if self._descriptor is None:
            return
        asyncio.get_running_loop().remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        waiting = getattr(self, "_waiting", None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
