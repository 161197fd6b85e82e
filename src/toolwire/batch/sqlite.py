"""A batch in a file of its folder: the store of one machine."""

import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolwire.batch import results, tasks
from toolwire.batch.plan import Trial
from toolwire.batch.results import Result, State
from toolwire.batch.store import BatchLost, Claim, Totals
from toolwire.batch.tasks import Task
from toolwire.errors import BadInput, ToolwireError
from toolwire.ids import new_id
from toolwire.platform import lock_file

FILE = "batch.sqlite"
LOCK = "driver.lock"
_SCHEMA = 1
_TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS tasks (id TEXT PRIMARY KEY, line INTEGER NOT NULL, "
    "digest TEXT NOT NULL, spec BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS runs (n INTEGER PRIMARY KEY, id TEXT NOT NULL, "
    "model TEXT NOT NULL, attempt INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, "
    "state TEXT NOT NULL, epoch INTEGER NOT NULL DEFAULT 0, host TEXT NOT NULL DEFAULT '', "
    "cost REAL, tokens INTEGER NOT NULL DEFAULT 0, result BLOB, UNIQUE (id, model, attempt))",
    "CREATE INDEX IF NOT EXISTS by_state ON runs (state, n)",
)


class SqliteBatch:
    """A batch in a file of its folder; hosts of this machine open it too."""

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        self.folder = folder
        self._path = path or folder / FILE
        self._connection = self._opened()
        self._lock = -1
        self._epoch = 0

    def _opened(self) -> sqlite3.Connection:
        path = self._path
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None, timeout=60
            )
            connection.execute("PRAGMA synchronous = NORMAL")
            (found,) = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        except sqlite3.Error as error:
            if not path.exists():
                raise BadInput(
                    f"{self.folder} is not the folder of a batch; start one with toolwire batch run"
                ) from error
            raise ToolwireError(f"cannot open {path}: {error}") from error
        if found != str(_SCHEMA):
            raise BadInput(f"{path} was written by another version of toolwire (schema {found})")
        return connection

    @classmethod
    def create(cls, folder: Path) -> "SqliteBatch":
        """An empty batch, which is only a draft of one in this folder until it is published."""
        if (folder / FILE).exists():
            raise already_there(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"{FILE}.*"):
            # Of a process that was killed while it made one.
            left.unlink(missing_ok=True)
        path = folder / f"{FILE}.{new_id('')}"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        for table in _TABLES:
            connection.execute(table)
        connection.execute(
            "INSERT OR IGNORE INTO meta VALUES ('schema', ?), ('epoch', '0')", (str(_SCHEMA),)
        )
        connection.close()
        return cls(folder, path)

    def publish(self) -> None:
        """Makes a draft the batch of the folder."""
        # Closed first: what is in the log goes to the file.
        self._connection.close()
        self._path = self._path.rename(self.folder / FILE)
        self._connection = self._opened()

    def add(self, given: Iterable[Task], models: Sequence[str], attempts: int) -> int:
        """Adds tasks with an attempt for each model and number; all of them or none."""
        (last,) = self._one("SELECT coalesce(max(n), 0) FROM runs")
        n = int(last)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for line, task in enumerate(given, n + 1):
                self._connection.execute(
                    "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?)",
                    (task.id, line, task.digest, tasks.encode(task)),
                )
                for model in (task.model,) if task.model else models:
                    for attempt in range(1, attempts + 1):
                        n += 1
                        self._connection.execute(
                            "INSERT INTO runs (n, id, model, attempt, state) "
                            "VALUES (?, ?, ?, ?, 'waiting')",
                            (n, task.id, model, attempt),
                        )
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        return n - int(last)

    def take(self) -> int:
        """Takes the batch over; a second driver is refused, naming the first."""
        handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        if not lock_file(handle):
            holder = os.read(handle, 200).decode(errors="replace") or "another process"
            os.close(handle)
            raise BadInput(
                f"{self.folder} is being run by {holder}; look at it with toolwire batch status, "
                "or end it with toolwire batch stop"
            )
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
        self._lock = handle
        (epoch,) = self._one(
            "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'epoch' RETURNING value"
        )
        self.set_meta("stop", "")
        self._epoch = int(epoch)
        return self._epoch

    def is_taken(self) -> bool:
        """Whether a driver has the batch."""
        if self._lock >= 0:
            return True
        try:
            handle = os.open(self.folder / LOCK, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not lock_file(handle)
        finally:
            os.close(handle)

    def meta(self, key: str) -> str:
        """A value of the batch; empty if it has none."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_meta(self, key: str, value: str) -> None:
        """Stores a value of the batch."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def waiting(self, after: int, most: int) -> list[Trial]:
        """Attempts that are to be run, and those whose driver died, in their order."""
        rows = self._connection.execute(
            "SELECT n, id, model, attempt, tries FROM runs WHERE state = 'waiting' AND n > ? "
            "ORDER BY n LIMIT ?",
            (after, most),
        )
        return [Trial(n=n, id=id, model=model, attempt=k, tries=t) for n, id, model, k, t in rows]

    def recover(self) -> int:
        """Marks attempts that were in flight or stopped as waiting; returns how many."""
        self._owned()
        return self._connection.execute(
            "UPDATE runs SET state = 'waiting', epoch = epoch + 1, tries = max(0, tries - 1) "
            "WHERE state IN ('running', 'stopped')"
        ).rowcount

    def errors(self) -> list[tuple[int, int, Result]]:
        """Attempts in the state `error`: number, tries, result."""
        rows = self._connection.execute(
            "SELECT n, tries, result FROM runs WHERE state = 'error' AND result IS NOT NULL"
        )
        return [(n, tries, results.decode(body)) for n, tries, body in rows]

    def bodies(self) -> Iterator[bytes]:
        """The lines of ended attempts, in the order of the tasks."""
        rows = self._connection.execute(
            "SELECT result FROM runs WHERE result IS NOT NULL "
            "AND state NOT IN ('waiting', 'running', 'stopped') ORDER BY n"
        )
        for (body,) in rows:
            yield body

    def claim(self, n: int, host: str) -> Claim:
        """Marks an attempt as running by this host."""
        self._owned()
        row = self._one(
            "UPDATE runs SET state = 'running', tries = tries + 1, epoch = epoch + 1, host = ? "
            "WHERE n = ? RETURNING epoch, id, model, attempt, tries",
            (host, n),
        )
        return Claim(n=n, epoch=row[0], id=row[1], model=row[2], attempt=row[3], tries=row[4])

    def holds(self, claim: Claim) -> bool:
        """Whether the claim is still current."""
        row = self._connection.execute(
            "SELECT 1 FROM runs WHERE n = ? AND epoch = ? AND state = 'running'",
            (claim.n, claim.epoch),
        ).fetchone()
        return row is not None

    def begin(self, claim: Claim, session: str) -> bool:
        """Whether the claim is still current: the session is found in the attempt's folder."""
        del session
        return self.holds(claim)

    def task(self, id: str) -> Task:
        """The task with this id."""
        row = self._connection.execute("SELECT spec FROM tasks WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise BadInput(f'no task "{id}" in {self.folder}')
        return tasks.decode(row[0])

    def digests(self) -> dict[str, str]:
        """The digest of each task by its id."""
        return dict(self._connection.execute("SELECT id, digest FROM tasks"))

    def finish(self, claim: Claim, result: Result) -> bool:
        """Stores the result of an attempt; False if the claim is no longer current."""
        tokens = result.usage.input + result.usage.output
        changed = self._connection.execute(
            "UPDATE runs SET state = ?, result = ?, cost = ?, tokens = ?, host = ? "
            "WHERE n = ? AND epoch = ? AND state = 'running'",
            (
                result.state,
                results.encode(result),
                result.cost,
                tokens,
                result.host,
                claim.n,
                claim.epoch,
            ),
        )
        return changed.rowcount == 1

    def fail(self, n: int, result: Result) -> None:
        """Stores the result of an attempt that no host can report any more."""
        self._owned()
        self._connection.execute(
            "UPDATE runs SET state = ?, result = ?, epoch = epoch + 1 WHERE n = ?",
            (result.state, results.encode(result), n),
        )

    def give_back(self, n: int) -> None:
        """Marks an attempt as waiting again; its last host can no longer finish it."""
        self._owned()
        self._connection.execute(
            "UPDATE runs SET state = 'waiting', epoch = epoch + 1 WHERE n = ?", (n,)
        )

    def again(self, states: Sequence[str], ids: Sequence[str] = ()) -> list[Trial]:
        """Marks ended attempts as waiting, by state or by id; returns them."""
        self._owned()
        marks = ",".join("?" * len(states or ids))
        column = "id" if ids else "state"
        rows = self._connection.execute(
            f"UPDATE runs SET state = 'waiting', tries = 0, epoch = epoch + 1 "  # noqa: S608 - marks only
            f"WHERE {column} IN ({marks}) AND state NOT IN ('waiting', 'running') "
            "RETURNING n, id, model, attempt",
            tuple(ids or states),
        ).fetchall()
        return [Trial(n=n, id=id, model=model, attempt=k) for n, id, model, k in sorted(rows)]

    def drop(self, ids: Sequence[str]) -> None:
        """Removes tasks and their attempts."""
        self._owned()
        for table in ("runs", "tasks"):
            self._connection.executemany(
                f"DELETE FROM {table} WHERE id = ?",  # noqa: S608 - one of two names
                [(id,) for id in ids],
            )

    def ended(self, n: int) -> Result | None:
        """The result of an attempt that has ended; None if it waits or runs."""
        row = self._connection.execute(
            "SELECT result FROM runs WHERE n = ? AND state NOT IN ('waiting', 'running')", (n,)
        ).fetchone()
        return results.decode(row[0]) if row and row[0] is not None else None

    def results(self) -> Iterator[Result]:
        """The results of ended attempts, in the order of the tasks."""
        return map(results.decode, self.bodies())

    def of_task(self, id: str) -> list[tuple[Trial, State, Result | None]]:
        """The attempts at one task."""
        rows = self._connection.execute(
            "SELECT n, id, model, attempt, tries, state, result FROM runs WHERE id = ? ORDER BY n",
            (id,),
        )
        return [
            (
                Trial(n=n, id=id, model=model, attempt=k, tries=tries),
                State(state),
                None if body is None else results.decode(body),
            )
            for n, id, model, k, tries, state, body in rows
        ]

    def unfinished(self) -> Iterator[int]:
        """The numbers of attempts that are to go on, in the states `waiting` to `stopped`."""
        rows = self._connection.execute(
            "SELECT n FROM runs WHERE state IN ('waiting', 'running', 'stopped')"
        )
        return (n for (n,) in rows)

    def ids(self) -> list[str]:
        """The ids of all tasks."""
        return [id for (id,) in self._connection.execute("SELECT id FROM tasks ORDER BY line")]

    def totals(self) -> Totals:
        """Counts of states, cost and tokens."""
        rows = self._connection.execute(
            "SELECT state, count(*), coalesce(sum(cost), 0), sum(tokens) FROM runs GROUP BY state"
        ).fetchall()
        return Totals(
            states={state: count for state, count, _, _ in rows},
            cost=sum(cost for _, _, cost, _ in rows),
            tokens=sum(tokens for _, _, _, tokens in rows),
        )

    def delete(self) -> None:
        """Nothing to remove: all of it is in the batch's folder."""

    def close(self) -> None:
        """Releases the batch."""
        with suppress(sqlite3.Error):
            self._connection.close()
        if self._path.name != FILE:
            self._path.unlink(missing_ok=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _owned(self) -> None:
        if not self._epoch or self.meta("epoch") != str(self._epoch):
            raise BatchLost(f"another driver has taken over {self.folder}")

    def _one(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        row = self._connection.execute(statement, values).fetchone()
        if row is None:
            raise ToolwireError(f"{self.folder / FILE} was changed by another program")
        return row


def already_there(out: Path) -> BadInput:
    """The error of a folder that has a batch."""
    return BadInput(
        f"{out} already has a batch; go on with toolwire batch resume {out}, or name another "
        "folder with -o"
    )
