"""Output of any length in bounded memory: its head and tail, and all of it in a file."""

import codecs
import os
from pathlib import Path
from typing import BinaryIO

FILE_LIMIT = 256 * 1024 * 1024
"""Bytes a file may hold: a flood must not fill the disk."""
_PIECE = 1 << 15


class Spool:
    """Bytes as they come: whole while they fit in memory, then head and tail, the rest in a file.

    `file` is made only when memory does not suffice. A file that cannot be written costs the
    middle of the output, never the call.
    """

    def __init__(self, memory: int, file: Path, *, file_limit: int = FILE_LIMIT) -> None:
        self.file = file
        self.total = 0
        self.unsaved = 0
        """Bytes that neither memory nor the file holds for sure."""
        self._memory = max(memory, 5)
        self._file_limit = file_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._out: BinaryIO | None = None
        self._spilled = False

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
        return bytes(self._tail[-self._tail_size :])

    @property
    def _tail_size(self) -> int:
        return self._memory - self._memory // 5

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        if self._spilled:
            self._write(data)
            self._tail += data
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: -self._tail_size]
            return
        self._head += data
        if len(self._head) > self._memory:
            self._spill()

    def save(self) -> None:
        """Put everything into the file, though memory holds it."""
        if not self._spilled:
            self._open()
            self._write(self._head)
        if self._out is not None:
            self._out.flush()

    def append_file(self, other: "Spool") -> None:
        """Add what another spool holds at the end of this one's file."""
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
        """Close the file; what was taken stays readable."""
        if self._out is not None:
            self._out.close()
            self._out = None

    def _spill(self) -> None:
        self._spilled = True
        self._open()
        self._write(self._head)
        self._tail += self._head[self._memory // 5 :]
        del self._head[self._memory // 5 :]

    def _open(self) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._out = os.fdopen(os.open(self.file, flags, 0o600), "wb", buffering=0)
        except OSError:
            self._out = None

    def _write(self, data: bytes | bytearray) -> None:
        room = self._file_limit - (self._out.tell() if self._out else self._file_limit)
        kept = data[: max(room, 0)]
        try:
            if self._out is not None and kept:
                self._out.write(kept)
        except OSError:
            self.close()
            kept = b""
        self.unsaved += len(data) - len(kept)


def decoded_head(data: bytes, *, whole: bool = False) -> str:
    """Text of bytes; unless that is the whole, a character cut at the end is left out.

    It goes piece by piece: a thread that decodes much must let the others run in between.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)]
    if whole:
        pieces.append(decoder.decode(b"", final=True))
    return "".join(pieces)


def decoded_tail(data: bytes) -> str:
    """Text of bytes that began before: a character cut at the start is left out."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return decoded_head(data[start:], whole=True)
