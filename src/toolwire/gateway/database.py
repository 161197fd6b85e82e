"""One SQLite file of the gateway: a thread that writes, and joins what arrives together."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from toolwire.errors import BadInput

T = TypeVar("T")
_JOINED = 256
"""Most jobs in one transaction."""
_BUSY_SECONDS = 10.0


class _Job(Generic[T]):
    """Work of one caller, and where its result goes."""

    def __init__(
        self,
        work: Callable[[sqlite3.Connection], T],
        loop: asyncio.AbstractEventLoop | None,
        future: "asyncio.Future[T] | None",
    ) -> None:
        self.work = work
        self.loop = loop
        self.future = future
        self.result: T | None = None
        self.error: Exception | None = None

    def deliver(self) -> None:
        """Hands the result to the caller, if it still waits."""
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # pyright: ignore[reportArgumentType] - T itself may be None


class Database:
    """One SQLite file, created with its tables if it does not exist."""

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self.path = path
        self.failure = ""
        """Why the last write failed; empty if it succeeded."""
        try:
            _create(path)
            self._writing = _connect(path)
            _prepare(self._writing, path, schema, version)
            self._reading = _connect(path)
        except sqlite3.Error as error:
            raise BadInput(f"cannot use {path}: {error}; move it away to start anew") from error
        except OSError as error:
            raise BadInput(f"cannot use {path}: {error.strerror}") from error
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query."""
        return self._reading.execute(sql, values).fetchall()

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs the work in a transaction and returns its result once it is committed.

        The work is done even if the caller is cancelled meanwhile.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._put(_Job(work, loop, future))
        return await future

    def write_soon(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Runs the work in a transaction, without waiting for it."""
        self._put(_Job(work, None, None))

    def close(self) -> None:
        """Finishes all work and closes the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()
        self._reading.close()
        self._writing.close()

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
        connection = self._writing
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                connection.execute("SAVEPOINT job")
                try:
                    job.result = job.work(connection)
                except Exception as error:
                    connection.execute("ROLLBACK TO job")
                    job.error = error
                connection.execute("RELEASE job")
            connection.execute("COMMIT")
            self.failure = ""
        except sqlite3.Error as error:
            self.failure = str(error)
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            for job in jobs:
                job.error = job.error or error
        errors = [job.error for job in jobs if isinstance(job.error, sqlite3.Error)]
        if errors:
            self.failure = str(errors[0])


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


def _prepare(connection: sqlite3.Connection, path: Path, schema: str, version: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > version:
        connection.execute("ROLLBACK")
        raise BadInput(f"{path} was written by a newer version of toolwire; update this one")
    if found < version:
        for statement in schema.split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version:d}")
    connection.execute("COMMIT")
