"""A server as a child process below a watchdog: messages on its input and output, line by line."""

import asyncio
import os
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from toolwire.errors import ToolwireError
from toolwire.tools.shell.shells import Shell
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import LONGEST_LINE, BrokenLine, Id, LineReader, RpcMessage

CLOSE_SECONDS = 0.3
"""Between the end of a server's input and its signals."""
_EXIT_SECONDS = 0.2
"""Between the end of a server's output and its exit."""
_LAST_WORDS = 64 * 1024
_READ = 1 << 16


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
        if sys.platform == "win32":
            raise CannotStart(
                "a server that is a program needs Linux or macOS; on Windows connect to one by url"
            )
        program = shutil.which(words[0], path=environ.get("PATH", ""))
        if program is None:
            raise CannotStart(f"the program {words[0]} is not on the path")
        self._receive = receive
        self._closed = closed
        self._errors = _LastBytes()
        self._messages = _Messages(receive, self._broken, self._silent)
        self._ending: asyncio.Task[None] | None = None
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
        self._input = _Input(writing, self._stuck)
        self._watching = asyncio.ensure_future(self._watch())

    @property
    def last_words(self) -> str:
        """The end of what the server wrote to standard error, or to its output beside messages."""
        skipped = "\n".join(self._messages.reader.skipped)
        return self._errors.text() or skipped

    async def send(self, message: RpcMessage) -> None:
        """Writes one line, later if the server does not read at the moment."""
        self._input.write(jsonrpc.write(message) + b"\n")

    async def cancel(self, request: Id) -> bool:
        """A notification has to cancel it."""
        del request
        return False

    async def aclose(self) -> None:
        """Closes its input, waits a moment, and ends whatever is left of it."""
        self._messages.stop()
        self._input.close()
        await asyncio.wait({self._watching}, timeout=CLOSE_SECONDS)
        await self._end()
        await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        ended = await self._process.ended()
        self._messages.close()
        self._input.close()
        self._closed(ended.problem or "Connection closed")
        await self._end()

    async def _end(self) -> None:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._process.end())
        await asyncio.shield(self._ending)

    def _silent(self) -> None:
        """Its output has ended: its exit follows, or the connection is of no use any more."""
        loop = asyncio.get_running_loop()
        loop.call_later(_EXIT_SECONDS, self._closed, "Connection closed")

    def _stuck(self) -> None:
        self._broken("the server does not read its input")

    def _broken(self, why: str) -> None:
        self._closed(why)
        self._input.close()
        self._ending = self._ending or asyncio.ensure_future(self._process.end())


class _Messages:
    """Standard output of a server: cut into messages as it comes."""

    whole = True

    def __init__(
        self,
        received: Callable[[RpcMessage], None],
        broken: Callable[[str], None],
        silent: Callable[[], None],
    ) -> None:
        self.reader = LineReader()
        self._received = received
        self._broken = broken
        self._silent = silent
        self._unreadable = False

    def take(self, pipe: int, most: int) -> int:
        data = os.read(pipe, min(most, _READ))
        if not data:
            self._silent()
        elif not self._unreadable:
            self._read(self.reader.feed(data))
        return len(data)

    def stop(self) -> None:
        """Drops whatever else comes."""
        self._unreadable = True

    def close(self) -> None:
        """Reads a last line without an end."""
        if not self._unreadable:
            self._read(self.reader.close())

    def _read(self, messages: Iterable[RpcMessage]) -> None:
        try:
            for message in messages:
                self._received(message)
        except BrokenLine as error:
            self._unreadable = True
            self._broken(f"the server's output cannot be read: {error}")

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
    """The writing end of a server's standard input; what does not fit in the pipe waits."""

    def __init__(self, descriptor: int, stuck: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._stuck = stuck
        self._waiting: deque[memoryview] = deque()
        self._size = 0

    def write(self, data: bytes) -> None:
        if self._descriptor is None:
            return
        self._waiting.append(memoryview(data))
        self._size += len(data)
        if len(self._waiting) == 1 and not self._flush(self._descriptor):
            asyncio.get_running_loop().add_writer(self._descriptor, self._continue)
        if self._size > LONGEST_LINE:
            self._stuck()

    def _flush(self, descriptor: int) -> bool:
        """Writes what the pipe takes; True if nothing is left."""
        try:
            while self._waiting:
                written = os.write(descriptor, self._waiting[0])
                self._size -= written
                if written < len(self._waiting[0]):
                    self._waiting[0] = self._waiting[0][written:]
                else:
                    self._waiting.popleft()
        except BlockingIOError:
            return False
        except OSError:
            # Its end is reported by the watchdog.
            self.close()
        return True

    def _continue(self) -> None:
        descriptor = self._descriptor
        if descriptor is not None and self._flush(descriptor):
            asyncio.get_running_loop().remove_writer(descriptor)

    def close(self) -> None:
        if self._descriptor is None:
            return
        asyncio.get_running_loop().remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        self._waiting.clear()
        self._size = 0
