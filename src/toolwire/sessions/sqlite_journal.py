"""The journal of one session in its SQLite file: written by one process at a time."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from toolwire.agent.events import AgentEvent, TurnEnded
from toolwire.errors import SessionError
from toolwire.sessions import records
from toolwire.sessions.files import (
    INSERT,
    Row,
    remove_files,
)
from toolwire.sessions.ordered_writes import OrderedWrites
from toolwire.sessions.read_file import records_in, scan
from toolwire.sessions.records import Redact, redacted, unredacted
from toolwire.sessions.salvage import finish_salvage, salvage
from toolwire.sessions.store import (
    Record,
    Salvaged,
    Skipped,
)
from toolwire.storage.locks import SessionLock


class SqliteJournal:
    """One session's journal, open for writing; a second process is refused."""

    def __init__(
        self, path: Path, *, redact: Redact = unredacted, clock: Callable[[], float] = time.time
    ) -> None:
        self.session = path.stem
        self.path = path
        self._redact = redact
        self._clock = clock
        self._lock = SessionLock(path.with_suffix(".lock"), self.session)
        # One thread: records are written in the order they were appended.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="session")
        self._writes = OrderedWrites(self._writer)
        self._full: bool | None = None
        self._found: tuple[Row, ...] = ()
        self._closed = False
        self.skipped: Skipped | None = None
        """Records that the last read could not decode."""
        try:
            self.salvaged: Salvaged | None = self._checked()
            self._connection = _connect(path)
            (last,) = self._connection.execute("SELECT max(seq) FROM records").fetchone()
        except sqlite3.Error as error:
            self._lock.release()
            raise self._failure("open", error) from error
        except BaseException:
            self._lock.release()
            raise
        self._last: int = last or 0

    @property
    def notices(self) -> list[str]:
        """Notices for the user: damage, and records that the last read skipped."""
        return [one.message for one in (self.salvaged, self.skipped) if one is not None]

    def _checked(self) -> Salvaged | None:
        """Salvages a damaged file before it is written; None for an intact one."""
        finish_salvage(self.path)
        found = scan(self.path, self.session)
        # The first read uses this scan.
        self._found = found.rows
        return salvage(self.path, found) if found.damage else None

    async def append(self, session: str, event: AgentEvent) -> int:
        """Once called, the record is written even if the caller is cancelled meanwhile."""
        self._belongs(session)
        if not records.is_stored(event):
            return self._last
        if self._closed:
            raise SessionError(f'session "{self.session}" is closed; open it again to continue')
        number = await self._writes.run(self._write, event)
        if isinstance(event, TurnEnded) and not self._closed:
            self._writer.submit(self._tidy)
        return number

    async def read(self, session: str, after: int = 0) -> list[AgentEvent]:
        """All events after that record number."""
        return [record.event for record in await self.records(session, after)]

    async def records(self, session: str, after: int = 0) -> list[Record]:
        """The events with numbers and times."""
        self._belongs(session)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, self._read, after)

    async def close(self) -> None:
        """Release the session; an empty one leaves no file."""
        if not self._closed:
            await asyncio.shield(asyncio.wrap_future(self._ending()))

    def close_now(self) -> None:
        """The same for callers without an event loop."""
        if not self._closed:
            self._ending().result()

    def _ending(self) -> Future[None]:
        # In the writer's thread, after all pending records: SQLite crashes if one thread closes a
        # connection that another still uses.
        self._closed = True
        try:
            ending = self._writer.submit(self._release)
        except RuntimeError:
            # The interpreter is shutting down: the thread has finished and accepts no more work.
            ending = Future[None]()
            self._release()
            ending.set_result(None)
        self._writer.shutdown(wait=False)
        return ending

    def _release(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
        if not self._last and self.salvaged is None:
            remove_files(self.path)
        self._lock.release()

    async def lost(self) -> str:
        """Never returns: the lock lasts as long as the process."""
        return await asyncio.get_running_loop().create_future()

    async def cancelled(self) -> None:
        """Never returns: a file is used on one machine, where the user is."""
        await asyncio.get_running_loop().create_future()

    def add(self, rows: Sequence[Row]) -> None:
        """Writes the rows of another store after the last one, all or none."""
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(INSERT, map(msgspec.structs.astuple, rows))
        except sqlite3.Error as error:
            raise self._failure("write", error) from error
        self._last += len(rows)

    def _read(self, after: int) -> list[Record]:
        found, self._found = self._found, ()
        if not (after == 0 and found and len(found) == self._last):
            found = scan(self.path, self.session, after).rows
        read, self.skipped = records_in(found)
        return read

    def _belongs(self, session: str) -> None:
        if session != self.session:
            raise SessionError(f'this journal belongs to session "{self.session}", not "{session}"')

    def _write(self, event: AgentEvent) -> int:
        body = redacted(records.encode(event), self._redact)
        number, at, kind = self._last + 1, float(self._clock()), records.kind_of(event)
        crc = records.checksum(number, at, kind, body)
        try:
            self._set_sync(records.matters(event))
            self._connection.execute(INSERT, (number, at, kind, body, crc))
        except sqlite3.Error as error:
            raise self._failure("write", error) from error
        self._last = number
        return number

    def _set_sync(self, full: bool) -> None:
        """Set whether the next commit is synced to disk."""
        if full and not self.path.exists():
            raise SessionError(f'the file of session "{self.session}" was removed: {self.path}')
        if full != self._full:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
            self._full = full

    def _tidy(self) -> None:
        """Checkpoint between turns, so that the log stays short."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _failure(self, what: str, error: sqlite3.Error) -> SessionError:
        return SessionError(
            f'cannot {what} session "{self.session}": {error}; is the disk full or read-only? '
            f"({self.path})"
        )


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=10,
        # Only the writer's thread uses it, but another one made it.
        check_same_thread=False,
    )
