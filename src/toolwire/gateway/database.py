"""A database of the gateway: a thread that writes, and joins what arrives together."""

import asyncio
import os
import sqlite3
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from toolwire.errors import BadInput

T = TypeVar("T")
_JOINED = 256
"""Most jobs in one transaction."""
_BUSY_SECONDS = 10.0
_MOST_ROWS = 24
"""Of one statement. Each number of rows is compiled on its own, and then stays in memory."""


class DatabaseFailed(Exception):
    """A statement could not be carried out, or it is not known whether it was."""


class DuplicateRow(DatabaseFailed):
    """There is a row with this value already."""


class SqlResult(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """The next row; None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """What statements are sent to: SQLite's SQL with `?` for values."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> SqlResult:
        """Carries out a statement."""
        ...

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> object:
        """Carries out a statement for each of several rows of values."""
        ...


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in as few parts as the sizes of statements allow."""
    for at in range(0, len(items), _MOST_ROWS):
        yield items[at : at + _MOST_ROWS]


def insert_rows(
    base: SqlConnection, into: str, rows: Sequence[Sequence[object]], conflict: str = ""
) -> int:
    """Inserts rows by few statements; returns how many were inserted or changed.

    The interpreter may change to another thread at each statement: one for each row costs more.
    """
    done = 0
    for part in parts(rows):
        sql = _insert_sql(into, len(part[0]), len(part), conflict)
        done += base.execute(sql, [*chain.from_iterable(part)]).rowcount
    return done


@lru_cache(maxsize=8 * _MOST_ROWS)
def _insert_sql(into: str, columns: int, rows: int, conflict: str) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"{into} VALUES {', '.join([row] * rows)} {conflict}"


class _Job(Generic[T]):
    """Work of one caller, and where its result goes."""

    def __init__(
        self,
        work: Callable[[SqlConnection], T],
        loop: asyncio.AbstractEventLoop | None = None,
        done: "Done[T] | None" = None,
    ) -> None:
        self.work = work
        self.loop = loop
        self.done = done
        self.result: T | None = None
        self.error: Exception | None = None

    def deliver(self) -> None:
        """Hands the result to the caller."""
        if self.done is not None:
            self.done(self.result, self.error)


Done: TypeAlias = Callable[[T | None, Exception | None], None]
"""Receives the result of some work, or why it failed."""


class Database(ABC):
    """Reads, and writes in transactions; those that wait at the same time share one."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What messages call it."""
        self.failure = ""
        """Why the last write failed; empty if it succeeded."""
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread: Thread | None = None

    @abstractmethod
    async def fetch(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query; DatabaseFailed if it cannot be read."""

    @abstractmethod
    async def fetch_apart(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query that may take long, without blocking the event loop."""

    @abstractmethod
    def _begun(self) -> SqlConnection:
        """Begins a transaction that no other writer runs beside."""

    @abstractmethod
    def _end(self, *, commit: bool) -> None:
        """Ends the transaction."""

    @abstractmethod
    def _failed(self, error: Exception) -> DatabaseFailed | None:
        """The failure that an error of the driver means; None for any other error."""

    @abstractmethod
    def _closed(self) -> None:
        """Closes the connections."""

    async def write(self, work: Callable[[SqlConnection], T]) -> T:
        """Runs the work in a transaction and returns its result once it is committed.

        The work is done even if the caller is cancelled meanwhile.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: T | None, error: Exception | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # pyright: ignore[reportArgumentType] - T itself may be None

        self.submit(work, done)
        return await future

    def submit(self, work: Callable[[SqlConnection], T], done: Done[T]) -> None:
        """Runs the work in a transaction; once it is committed, or has failed, `done` is called in
        the event loop of the caller.
        """
        self._put(_Job(work, asyncio.get_running_loop(), done))

    def write_soon(self, work: Callable[[SqlConnection], object]) -> None:
        """Runs the work in a transaction, without waiting for it."""
        self._put(_Job(work))

    def close(self) -> None:
        """Finishes all work and closes the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()
        self._closed()

    def _put(self, job: _Job[Any]) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="gateway-store", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            jobs = [self._jobs.get()]
            with suppress(Empty):
                while len(jobs) < _JOINED and jobs[-1] is not None:
                    jobs.append(self._jobs.get_nowait())
            found = [job for job in jobs if job is not None]
            if found:
                self._commit(found)
            loops: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
            for job in found:
                if job.loop is not None:
                    loops.setdefault(job.loop, []).append(job)
            for loop, done in loops.items():
                with suppress(RuntimeError):
                    # The loop may have been closed meanwhile.
                    loop.call_soon_threadsafe(_deliver, done)
            if jobs[-1] is None:
                return

    def _commit(self, jobs: list[_Job[Any]]) -> None:
        """Does the jobs in one transaction; if one of them fails, each in its own."""
        failed = self._done(jobs)
        if failed is not None and len(jobs) > 1:
            for job in jobs:
                self._done([job])
        errors = [job.error for job in jobs if isinstance(job.error, DatabaseFailed)]
        self.failure = str(errors[0]) if errors else ""

    def _done(self, jobs: list[_Job[Any]]) -> _Job[Any] | None:
        """Does all of the jobs or none; returns the one that failed, if it was one of them."""
        doing: _Job[Any] | None = None
        try:
            connection = self._begun()
            for doing in jobs:
                doing.result = doing.work(connection)
            doing = None
            self._end(commit=True)
        except Exception as error:
            self._end(commit=False)
            for job in jobs if doing is None or len(jobs) == 1 else ():
                job.error = self._failed(error) or error
            return doing
        return None


class SqliteDatabase(Database):
    """One SQLite file, created with its tables if it does not exist."""

    def __init__(self, path: Path, schema: str, version: int, upgrades: Sequence[str] = ()) -> None:
        """`schema` is that of version 1; each of `upgrades` makes the next version of it."""
        super().__init__(str(path))
        self._path = path
        try:
            _create(path)
            self._writing = _connect(path)
            _prepare(self._writing, path, (schema, *upgrades), version)
            self._reading = _connect(path)
        except sqlite3.Error as error:
            raise BadInput(f"cannot use {path}: {error}; move it away to start anew") from error
        except OSError as error:
            raise BadInput(f"cannot use {path}: {error.strerror}") from error

    async def fetch(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query."""
        try:
            return self._reading.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise DatabaseFailed(str(error)) from error

    async def fetch_apart(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query that may take long, without blocking the event loop."""

        def read() -> list[tuple[Any, ...]]:
            connection = _connect(self._path)
            try:
                return connection.execute(sql, values).fetchall()
            finally:
                connection.close()

        return await asyncio.to_thread(read)

    def _begun(self) -> SqlConnection:
        self._writing.execute("BEGIN IMMEDIATE")
        return self._writing

    def _end(self, *, commit: bool) -> None:
        if commit:
            self._writing.execute("COMMIT")
        else:
            with suppress(sqlite3.Error):
                self._writing.execute("ROLLBACK")

    def _failed(self, error: Exception) -> DatabaseFailed | None:
        if isinstance(error, sqlite3.IntegrityError):
            return DuplicateRow(str(error))
        return DatabaseFailed(str(error)) if isinstance(error, sqlite3.Error) else None

    def _closed(self) -> None:
        self._reading.close()
        self._writing.close()


def _deliver(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        job.deliver()


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if sys.platform != "win32":
        # SQLite gives its other files the same mode.
        path.chmod(0o600)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit survives the end of the process; a power failure may lose the last ones.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _prepare(
    connection: sqlite3.Connection, path: Path, schemas: Sequence[str], version: int
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > version:
        connection.execute("ROLLBACK")
        raise BadInput(f"{path} was written by a newer version of toolwire; update this one")
    if found < version:
        for schema in schemas[found:]:
            for statement in schema.split(";"):
                if statement.strip():
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version:d}")
    connection.execute("COMMIT")
