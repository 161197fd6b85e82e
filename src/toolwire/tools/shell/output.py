"""Output of commands: read from pipes, its head and tail in bounded memory, all of it in a file."""

import asyncio
import codecs
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Mapping
from io import FileIO
from pathlib import Path
from typing import Protocol

from toolwire.platform import FILE, bytes_waiting, pread

FILE_LIMIT = 256 * 1024 * 1024
"""Maximum bytes in a file: a flood must not fill the disk."""
_PIECE = 1 << 15
_READ = 1 << 16


class OutputSink(Protocol):
    """What takes the bytes of a command's output."""

    @property
    def whole(self) -> bool:
        """Everything is still in memory."""
        ...

    def take(self, pipe: int, most: int) -> int:
        """Take what is in a pipe; 0 at its end, BlockingIOError if it is empty."""
        ...

    def last(self, size: int) -> bytes:
        """So many of the last bytes, for the screen."""
        ...


class Spool:
    """Bytes as they come: whole while they fit in memory, then head and tail, the rest in a file.

    `file` is made only when memory does not suffice. A file that cannot be written costs the
    middle of the output, never the call.
    """

    def __init__(self, memory: int, file: Path, *, file_limit: int = FILE_LIMIT) -> None:
        self.file = file
        self.total = 0
        self.unsaved = 0
        """Bytes that may be in neither memory nor the file."""
        self._memory = max(memory, 5)
        self._file_limit = file_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._tail_filed = False
        """The tail is the end of the file; else it is in memory."""
        self._out: FileIO | None = None
        self._written = 0
        self._spilled = False
        self._splices = sys.platform == "linux"

    @property
    def whole(self) -> bool:
        """Everything is still in memory."""
        return not self._spilled

    @property
    def head(self) -> bytes:
        """The first bytes: all of them while `whole`."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes; empty while `whole`."""
        return self.last(self._tail_size) if self._spilled else b""

    @property
    def _tail_size(self) -> int:
        return self._memory - self._memory // 5

    def last(self, size: int) -> bytes:
        """The last bytes, at most the length of the tail."""
        size = min(size, self._tail_size)
        if self._tail_filed:
            return self._end_of_file(size)
        held = self._tail if self._spilled else self._head
        return bytes(held[max(len(held) - size, 0) :])

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        if not self._spilled:
            self._head += data
            if len(self._head) > self._memory:
                self._spill()
            return
        self._write(data)
        if not self._tail_filed:
            self._tail += data
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: -self._tail_size]

    def take(self, pipe: int, most: int) -> int:
        """Read from a pipe up to a limit; 0 at its end, BlockingIOError if it is empty. Once there
        is a file, the kernel moves the bytes there directly.
        """
        moved = self._spliced(pipe, most)
        if moved is not None:
            return moved
        data = os.read(pipe, min(most, _READ))
        if data:
            self.add(data)
        return len(data)

    def _spliced(self, pipe: int, most: int) -> int | None:
        """Number of bytes the kernel moved; None if it cannot, and they have to be read."""
        most = min(most, self._file_limit - self._written)
        if sys.platform != "linux" or not self._splices or not self._tail_filed or most <= 0:
            return None
        if self._out is None:
            return None
        try:
            moved = os.splice(pipe, self._out.fileno(), most, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            raise
        except OSError:
            # Not every file system can; a full disk is reported again by the write.
            self._splices = False
            return None
        self.total += moved
        self._written += moved
        return moved

    def save(self) -> None:
        """Write everything to the file, even what fits in memory."""
        if not self._spilled:
            self._open()
            self._write(self._head)

    def append_file(self, other: "Spool") -> None:
        """Append another spool's content to this one's file."""
        self._keep_tail()
        if other.whole:
            self._write(other.head)
        else:
            other.close()
            self.unsaved += other.unsaved
            try:
                with other.file.open("rb") as source:
                    while chunk := source.read(1 << 16):
                        self._write(chunk)
                other.file.unlink()
            except OSError:
                self.unsaved += other.total
        self.close()

    def close(self) -> None:
        """Close the file; its content stays readable."""
        self._keep_tail()
        if self._out is not None:
            self._out.close()
            self._out = None

    def _spill(self) -> None:
        first = bytes(self._head)
        self._spilled = True
        self._open()
        self._tail_filed = self._out is not None
        self._write(first)
        if not self._tail_filed:
            self._tail += first[-self._tail_size :]
        del self._head[self._memory // 5 :]

    def _open(self) -> None:
        self._written = 0
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.unlink(missing_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | FILE
            self._out = FileIO(os.open(self.file, flags, 0o600), "r+")
        except OSError:
            self._out = None

    def _write(self, data: bytes | bytearray) -> None:
        room = self._file_limit - self._written if self._out is not None else 0
        kept = memoryview(data)[:room]
        if len(kept) < len(data):
            self._keep_tail()
        try:
            self._write_all(kept)
            self._written += len(kept)
            self.unsaved += len(data) - len(kept)
        except OSError:
            self.close()
            self.unsaved += len(data)

    def _write_all(self, data: memoryview) -> None:
        while data and self._out is not None:
            data = data[self._out.write(data) or 0 :]

    def _keep_tail(self) -> None:
        """Hold the tail in memory: the file is no longer appended to, or not only by us."""
        if self._tail_filed:
            self._tail[:] = self._end_of_file(self._tail_size)
            self._tail_filed = False

    def _end_of_file(self, size: int) -> bytes:
        start = max(self._written - size, 0)
        try:
            return pread(self._out.fileno(), self._written - start, start) if self._out else b""
        except OSError:
            return b""


def decoded_head(data: bytes, *, whole: bool = False) -> str:
    """Decoded text; an incomplete character at the end is left out unless the bytes are complete.
    Decodes in pieces, so that other threads can run in between.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)]
    if whole:
        pieces.append(decoder.decode(b"", final=True))
    return "".join(pieces)


def decoded_tail(data: bytes) -> str:
    """Decoded text of trailing bytes; an incomplete character at the start is left out."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return decoded_head(data[start:], whole=True)


_AFTER_ESCAPE = re.compile(
    r"\][^\x07\x9c]*[\x07\x9c]"  # titles, links
    r"|\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|[()#][0-9A-Za-z]"  # character sets
    r"|[0-9=>A-PR-TZcf-nq-uy]"  # short ones
)
_SHORT_START = re.compile(r"\x9b[0-?]*[ -/]*[@-~]")


def plain_text(text: str) -> str:
    """The text without terminal escapes."""
    if "\x9b" in text:
        text = _SHORT_START.sub("", text)
    if "\x1b" not in text:
        return text
    first, *rest = text.split("\x1b")
    pieces = [first]
    titled = False
    for piece in rest:
        if titled and piece.startswith("\\"):
            pieces[-1] = piece[1:]
            titled = False
            continue
        found = _AFTER_ESCAPE.match(piece)
        titled = not found and piece.startswith("]")
        pieces.append(piece[found.end() :] if found else f"\x1b{piece}")
    return "".join(pieces)


FLOOD = 1 << 14
"""Above this many bytes only the end is shown; also the most shown at once."""


class LiveTail:
    """The last bytes of several outputs in order of arrival, except for a flood, which comes first.
    Only the end of a flood is read, when it is shown.
    """

    def __init__(self) -> None:
        self._pieces: deque[tuple[OutputSink, bytes]] = deque()
        self._size = 0
        self._flood: OutputSink | None = None

    def note(self, spool: OutputSink, size: int) -> None:
        """Record the number of bytes in an output's spool."""
        if size >= FLOOD or spool is self._flood:
            self._flood = spool
            self._pieces = deque(piece for piece in self._pieces if piece[0] is not spool)
            self._size = sum(len(data) for _, data in self._pieces)
            return
        # A spool with little memory may have fewer bytes than were received.
        data = spool.last(size)
        self._pieces.append((spool, data))
        self._size += len(data)
        while self._size > FLOOD:
            self._size -= len(self._pieces.popleft()[1])

    def take(self) -> bytes:
        """The bytes received since the last call."""
        end = b"" if self._flood is None else self._flood.last(FLOOD)
        news = end + b"".join(data for _, data in self._pieces)
        self._pieces.clear()
        self._size, self._flood = 0, None
        return news


_SIZE = 1 << 20
_FLOOD_PAUSE = 0.001


class OutputPipes:
    """Reads until each pipe is closed; `received` is called with every piece."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pipes: Mapping[int, OutputSink],
        received: Callable[[OutputSink, int], None],
    ) -> None:
        self._loop = loop
        self._pipes = dict(pipes)
        self._received = received
        self.last = loop.time()
        """Time of the last read."""
        for reading in self._pipes:
            os.set_blocking(reading, False)
            loop.add_reader(reading, self._follow, reading)

    def read_into(self, later: OutputSink) -> None:
        """Send further output to another spool."""
        for reading in self._pipes:
            self._pipes[reading] = later

    def read_what_is_there(self) -> None:
        """Read what was written so far; a child that keeps writing cannot block this."""
        for reading in tuple(self._pipes):
            waiting = bytes_waiting(reading)
            while waiting > 0:
                got = self._read(reading, waiting)
                if not got:
                    break
                waiting -= got

    def close(self) -> None:
        """Stop reading."""
        for reading in tuple(self._pipes):
            self._shut(reading)

    def abandon(self) -> None:
        """Close the pipes of an event loop that is closed."""
        for reading in self._pipes:
            os.close(reading)
        self._pipes.clear()

    def _follow(self, reading: int) -> None:
        """Read arriving output; a flood only occasionally, in large pieces."""
        if self._floods(reading):
            self._loop.remove_reader(reading)
            self._loop.call_later(_FLOOD_PAUSE, self._follow_flood, reading)

    def _follow_flood(self, reading: int) -> None:
        if reading not in self._pipes:
            return
        if self._floods(reading):
            self._loop.call_later(_FLOOD_PAUSE, self._follow_flood, reading)
        elif reading in self._pipes:
            self._loop.add_reader(reading, self._follow, reading)

    def _floods(self, reading: int) -> bool:
        return self._read(reading) >= FLOOD and not self._pipes[reading].whole

    def _read(self, reading: int, most: int = _SIZE) -> int:
        spool = self._pipes[reading]
        try:
            got = spool.take(reading, most)
        except BlockingIOError:
            return 0
        if not got:
            self._shut(reading)
            return 0
        self.last = self._loop.time()
        self._received(spool, got)
        return got

    def _shut(self, reading: int) -> None:
        self._loop.remove_reader(reading)
        os.close(reading)
        del self._pipes[reading]


def wide_pipe() -> tuple[int, int]:
    """A pipe for an output; a larger buffer means fewer reads, if the system allows one."""
    reading, writing = os.pipe()
    if sys.platform == "linux":
        from toolwire.platform.posix import fcntl  # noqa: PLC0415 - not on every system

        try:
            fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _SIZE)
        except OSError:
            return reading, writing
    return reading, writing
