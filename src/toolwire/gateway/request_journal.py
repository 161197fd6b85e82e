"""Requests that have ended, in a file until the ledger has them.

An answer's end mark must not go out before its request is on disk, and a transaction for each costs
more than all else that a short request needs. Appending to a file survives the end of the process
too; the ledger then takes many requests in one transaction. Those that end in one turn of the event
loop are written at once, before anything goes out to clients.
"""

import asyncio
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.gateway.booking import BookedBefore, book_entries
from toolwire.gateway.database import Database, SqlConnection
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import Entry
from toolwire.platform import lock_file

_GATHERED = 0.1
"""Seconds from the start of one transaction to that of the next."""
_AGAIN = 1.0
"""Seconds after which entries are tried again that could not be booked."""
_MOST_WAITING = 20_000
_AT_ONCE = 96
"""Entries that are decoded together."""
_frame = struct.Struct("<II")
"""Length and checksum of an entry."""


class _Stored(msgspec.Struct, array_like=True):
    key: str
    record: RequestRecord


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Stored)


class RequestJournal:
    """Entries of one process on their way into the ledger.

    It has two files: one receives entries while those of the other are being booked.
    """

    def __init__(self, folder: Path, owner: str, database: Database) -> None:
        self._folder = folder
        self._owner = owner
        self._database = database
        self._files: list[int] = []
        self._size = 0
        """Bytes of the file that receives entries, the first one."""
        self._entries: list[bytes] = []
        """What it contains."""
        self._unwritten: list[_Stored] = []
        """What is not in the file yet."""
        self._booking = False
        self._next = 0.0
        """When the next transaction may begin, by the loop's clock."""
        self._timer: asyncio.TimerHandle | None = None
        self._settled: list[asyncio.Future[None]] = []

    def add(self, entry: Entry) -> None:
        """Books an entry soon; it is in the file after `write`. OSError if none can be opened."""
        if not self._files:
            self._open()
        if len(self._entries) >= _MOST_WAITING:
            raise OSError(f"{_MOST_WAITING:,} requests wait to be booked")
        self._unwritten.append(_Stored(entry.key, entry.record))
        if len(self._unwritten) == 1:
            asyncio.get_running_loop().call_soon(self.write)
        if self._timer is None and not self._booking:
            self._book_soon()

    def write(self) -> None:
        """Writes what was added in this turn of the event loop.

        What does not fit on the disk is still booked, if the ledger itself has room.
        """
        if not self._unwritten or not self._files:
            return
        entries = [*map(_encode, self._unwritten)]
        self._unwritten.clear()
        self._entries += entries
        data = b"".join([_framed(entry) for entry in entries])
        file = self._files[0]
        try:
            written = os.write(file, data)
        except OSError:
            written = -1
        if written == len(data):
            self._size += written
            return
        # What follows half an entry could not be read.
        with suppress(OSError):
            os.ftruncate(file, self._size)

    def _open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(2):
            path = self._folder / f"{self._owner}.{number}"
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            lock_file(file)
            self._files.append(file)

    def _book_soon(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(max(self._next, loop.time()), self._book)

    def _book(self) -> None:
        self._timer = None
        self.write()
        entries, self._entries = self._entries, []
        if not entries:
            return
        self._booking = True
        self._next = asyncio.get_running_loop().time() + _GATHERED
        self._files.reverse()
        self._size = os.fstat(self._files[0]).st_size
        self._database.submit(
            lambda base: _book_all(base, entries), lambda _, error: self._booked(entries, error)
        )

    def _booked(self, entries: list[bytes], error: Exception | None) -> None:
        if not self._files:
            # It was closed meanwhile.
            return
        if isinstance(error, BookedBefore):
            self._database.submit(
                lambda base: _book_each(base, entries),
                lambda _, error: self._booked(entries, error),
            )
            return
        self._booking = False
        if error is None:
            os.ftruncate(self._files[1], 0)
        else:
            # Their file is emptied when it has been the second one again.
            self._entries = entries + self._entries
            self._next = asyncio.get_running_loop().time() + _AGAIN
        settled, self._settled = self._settled, []
        for future in settled:
            if not future.done():
                future.set_result(None)
        if self._entries or self._unwritten:
            self._book_soon()

    async def settle(self) -> None:
        """Books what was added so far, for a reader; what cannot be booked is left out."""
        for _ in range(2):
            self.write()
            if not self._entries and not self._booking:
                return
            if not self._booking:
                if self._timer is not None:
                    self._timer.cancel()
                self._book()
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settled.append(future)
            await future

    def close(self) -> None:
        """Hands over everything that still waits; the files stay until `remove`."""
        self.write()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        entries, self._entries = self._entries, []
        if entries:
            self._database.write_soon(lambda base: _book_each(base, entries))

    def remove(self, *, booked: bool) -> None:
        """Closes the files, and removes them if everything is booked."""
        for number, file in enumerate(self._files):
            if booked:
                with suppress(OSError):
                    (self._folder / f"{self._owner}.{number}").unlink()
            os.close(file)
        self._files.clear()


class LeftJournals:
    """Journals of processes that have ended; locked, so that only one process books them."""

    def __init__(self, folder: Path, owner: str) -> None:
        self._folder = folder
        self._owner = owner
        self._held: list[tuple[Path, int]] = []

    def book(self, base: SqlConnection) -> int:
        """Books what they contain; returns how many entries there were."""
        found = 0
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if path.name.startswith(f"{self._owner}."):
                continue
            try:
                file = os.open(path, os.O_RDWR)
            except OSError:
                continue
            if not lock_file(file):
                os.close(file)
                continue
            self._held.append((path, file))
            entries = [*read_entries(path.read_bytes())]
            _book_each(base, entries)
            found += len(entries)
        return found

    def remove(self, *, booked: bool) -> None:
        """Releases them, and removes them once they are booked."""
        held, self._held = self._held, []
        for path, file in held:
            if booked:
                with suppress(OSError):
                    path.unlink()
            os.close(file)


def _framed(entry: bytes) -> bytes:
    return _frame.pack(len(entry), zlib.crc32(entry)) + entry


def read_entries(data: bytes) -> Iterator[bytes]:
    """The whole entries of a file; the last one may be cut."""
    at = 0
    while at + _frame.size <= len(data):
        length, checksum = _frame.unpack_from(data, at)
        at += _frame.size
        entry = data[at : at + length]
        if len(entry) < length or zlib.crc32(entry) != checksum:
            return
        yield entry
        at += length


def _book_all(base: SqlConnection, entries: Sequence[bytes]) -> None:
    for at in range(0, len(entries), _AT_ONCE):
        book_entries(base, [_entry(data) for data in entries[at : at + _AT_ONCE]])


def _book_each(base: SqlConnection, entries: Sequence[bytes]) -> None:
    """The same where some may have been booked before."""
    for data in entries:
        book_entries(base, (_entry(data),))


def _entry(data: bytes) -> Entry:
    stored = _decoder.decode(data)
    return Entry(stored.record, stored.key, reserved=False)
