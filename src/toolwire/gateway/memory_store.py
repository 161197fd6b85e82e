"""Where the gateway stores turns and answers: this process, or a database that several share."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from toolwire.errors import ToolwireError
from toolwire.gateway.database import Database, DatabaseFailed, SqlConnection, SqliteDatabase

KEY_LENGTH = 33
_DAY = 86_400
_TOUCHED = 3_600
"""Seconds after which another use of an entry is recorded."""
SCHEMA = """
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, used INTEGER NOT NULL, keys BLOB NOT NULL, body BLOB NOT NULL
);
CREATE INDEX entries_by_use ON entries (used);
CREATE TABLE keys (key BLOB PRIMARY KEY, entry INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE size (id INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
INSERT INTO size VALUES (1, 0)
"""
VERSION = 1
_OVERHEAD = 256
"""Bytes that an entry takes besides its body."""
_REMOVED_AT_ONCE = 64
"""Most entries that one write removes: the answer that waits for it should not wait long."""
_BATCHES = (1, 4, 16, 64, 256)
_PUT_KEY = "INSERT INTO keys VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET entry = excluded.entry"
_ENTRY = "SELECT used, keys, length(body) FROM entries WHERE id = ?"


class StoreFailed(ToolwireError):
    """A store could not be read or written; requests go on without it."""


class MemoryStore(Protocol):
    """Entries by several keys each; a key belongs to the entry that was stored last.

    Keys begin with their tenant. What has not been used for longest is removed when the store is
    full.
    """

    async def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bodies of the keys that are known."""
        ...

    async def put(self, keys: Sequence[bytes], body: bytes) -> None:
        """Stores an entry; it survives the end of the process once this returns."""
        ...

    async def delete(self, key: bytes) -> bool:
        """Removes the entry of a key; whether there was one."""
        ...

    def close(self) -> None:
        """Finishes all writes."""
        ...


class ProcessStore:
    """Entries in the memory of this process."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._keys: dict[bytes, int] = {}
        self._entries: OrderedDict[int, tuple[tuple[bytes, ...], bytes]] = OrderedDict()
        self._last = 0

    async def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bodies of the keys that are known."""
        found: dict[bytes, bytes] = {}
        for key in keys:
            entry = self._keys.get(key)
            if entry is not None:
                self._entries.move_to_end(entry)
                found[key] = self._entries[entry][1]
        return found

    async def put(self, keys: Sequence[bytes], body: bytes) -> None:
        """Stores an entry."""
        size = len(body) + _OVERHEAD
        if size > self._limit:
            return
        self._last += 1
        self._entries[self._last] = (tuple(keys), body)
        self._bytes += size
        for key in keys:
            self._keys[key] = self._last
        while self._bytes > self._limit:
            self._remove(next(iter(self._entries)))

    async def delete(self, key: bytes) -> bool:
        """Removes the entry of a key; whether there was one."""
        entry = self._keys.get(key)
        if entry is not None:
            self._remove(entry)
        return entry is not None

    def close(self) -> None:
        """Nothing is left to write."""

    def _remove(self, entry: int) -> None:
        keys, body = self._entries.pop(entry)
        self._bytes -= len(body) + _OVERHEAD
        for key in keys:
            if self._keys.get(key) == entry:
                del self._keys[key]


class SharedMemoryStore:
    """Entries in a database, which several gateway processes share."""

    def __init__(
        self, database: Database, *, limit: int, days: int, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._limit = limit
        self._days = days
        self._clock = clock
        self._database.write_soon(self._forget)

    async def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The bodies of the keys that are known."""
        try:
            return await self._get(keys)
        except DatabaseFailed as error:
            raise self._failure("read", error) from error

    async def _get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        entries: dict[bytes, int] = {}
        for batch in _batches(keys):
            marks = ",".join("?" * len(batch))
            sql = f"SELECT key, entry FROM keys WHERE key IN ({marks})"  # noqa: S608 - only marks
            entries.update(await self._database.fetch(sql, batch))
        bodies: dict[int, bytes] = {}
        stale: list[int] = []
        now = int(self._clock())
        for entry in set(entries.values()):
            sql = "SELECT used, body FROM entries WHERE id = ?"
            for used, body in await self._database.fetch(sql, (entry,)):
                bodies[entry] = body
                if now - used > _TOUCHED:
                    stale.append(entry)
        if stale:
            self._database.write_soon(_touch(stale, now))
        return {key: bodies[entry] for key, entry in entries.items() if entry in bodies}

    async def put(self, keys: Sequence[bytes], body: bytes) -> None:
        """Stores an entry; returns once it is committed."""
        now = int(self._clock())

        def work(connection: SqlConnection) -> None:
            (entry,) = connection.execute(
                "INSERT INTO entries (used, keys, body) VALUES (?, ?, ?) RETURNING id",
                (now, b"".join(keys), body),
            ).fetchone()
            connection.executemany(_PUT_KEY, [(key, entry) for key in keys])
            _add_size(connection, len(body) + _OVERHEAD)
            self._forget(connection)

        try:
            await self._database.write(work)
        except DatabaseFailed as error:
            raise self._failure("write", error) from error

    async def delete(self, key: bytes) -> bool:
        """Removes the entry of a key; whether there was one."""

        def work(connection: SqlConnection) -> bool:
            row = connection.execute("SELECT entry FROM keys WHERE key = ?", (key,)).fetchone()
            if row is not None:
                _remove(connection, row[0])
            return row is not None

        try:
            return await self._database.write(work)
        except DatabaseFailed as error:
            raise self._failure("write", error) from error

    def close(self) -> None:
        """Finishes all writes and closes the database."""
        self._database.close()

    def _failure(self, what: str, error: DatabaseFailed) -> StoreFailed:
        return StoreFailed(f"cannot {what} {self._database.name}: {error}")

    def _forget(self, connection: SqlConnection) -> None:
        """Removes what is too old, and the longest unused while the file is full."""
        (size,) = connection.execute("SELECT bytes FROM size").fetchone()
        oldest = int(self._clock()) - self._days * _DAY
        rows = connection.execute(
            "SELECT id, used, length(body) FROM entries ORDER BY used, id LIMIT ?",
            (_REMOVED_AT_ONCE,),
        )
        for entry, used, length in rows.fetchall() if size > self._limit else _old(rows, oldest):
            if used >= oldest and size <= self._limit:
                return
            _remove(connection, entry)
            size -= length + _OVERHEAD


class SqliteMemoryStore(SharedMemoryStore):
    """Entries in one SQLite file, which all gateway processes of a machine share."""

    def __init__(self, path: Path, *, limit: int, days: int, clock: Callable[[], float]) -> None:
        database = SqliteDatabase(path, SCHEMA, VERSION)
        super().__init__(database, limit=limit, days=days, clock=clock)


def _old(rows: Iterable[tuple[int, int, int]], oldest: int) -> list[tuple[int, int, int]]:
    """The rows up to the first that is not too old."""
    found: list[tuple[int, int, int]] = []
    for row in rows:
        if row[1] >= oldest:
            break
        found.append(row)
    return found


def _batches(keys: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
    """The keys in few different sizes: SQLite compiles one statement for each."""
    at = 0
    while at < len(keys):
        left = len(keys) - at
        size = next((size for size in _BATCHES if size >= left), _BATCHES[-1])
        batch = tuple(keys[at : at + size])
        yield batch + batch[-1:] * (size - len(batch))
        at += size


def _touch(entries: Sequence[int], now: int) -> Callable[[SqlConnection], None]:
    def work(connection: SqlConnection) -> None:
        rows = [(now, entry) for entry in entries]
        connection.executemany("UPDATE entries SET used = ? WHERE id = ?", rows)

    return work


def _add_size(connection: SqlConnection, size: int) -> None:
    connection.execute("UPDATE size SET bytes = bytes + ?", (size,))


def _remove(connection: SqlConnection, entry: int) -> None:
    row = connection.execute(_ENTRY, (entry,)).fetchone()
    if row is None:
        return
    _, keys, length = row
    own = [(keys[at : at + KEY_LENGTH], entry) for at in range(0, len(keys), KEY_LENGTH)]
    connection.executemany("DELETE FROM keys WHERE key = ? AND entry = ?", own)
    connection.execute("DELETE FROM entries WHERE id = ?", (entry,))
    _add_size(connection, -(length + _OVERHEAD))
