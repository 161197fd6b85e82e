"""The files of a session: their schema, names and private modes."""

import errno
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

import msgspec

from toolwire.errors import SessionError

SCHEMA = 1
APPLICATION = 0x746F6F6C
PAGE = 4096
TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE records (seq INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, "
    "body BLOB NOT NULL, crc INTEGER NOT NULL)",
)
_VERSIONS, _WITH_LOG = slice(18, 20), b"\x02\x02"
"""Where SQLite's header says how a file is written and read: with a write-ahead log."""
_SERIALIZES = hasattr(sqlite3.Connection, "serialize")
"""Whether this build of SQLite gives a database as bytes; older ones of some systems do not."""
INSERT = "INSERT INTO records VALUES (?, ?, ?, ?, ?)"


class Row(msgspec.Struct, frozen=True, gc=False):
    """A record with a valid checksum and an undecoded body."""

    seq: int
    at: float
    kind: str
    body: bytes
    crc: int


def beside(path: Path, ending: str) -> Path:
    """SQLite's side file: `-wal` or `-shm`."""
    return path.with_name(path.name + ending)


def create(path: Path, meta: Mapping[str, str], rows: Iterable[Row] = ()) -> None:
    """Create a session file atomically, with its folders."""
    draft = path.with_suffix(".draft")
    try:
        private_folder(path.parent.parent)
        private_folder(path.parent)
        write_whole(draft, meta, rows)
        draft.rename(path)
        settle_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            remove_files(draft)
        raise SessionError(
            f"cannot create a session in {path.parent}: {words_of(error)}; free some space, or "
            "name another folder in TOOLWIRE_HOME"
        ) from error


def write_whole(path: Path, meta: Mapping[str, str], rows: Iterable[Row]) -> None:
    """Write a file with these records and sync it to disk."""
    remove_files(path)
    _create(path, meta)
    values = ((row.seq, row.at, row.kind, row.body, row.crc) for row in rows)
    first = next(values, None)
    if first is None:
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, chain((first,), values))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _create(path: Path, meta: Mapping[str, str]) -> None:
    """Write the file of a session without records."""
    # SQLite gives its side files the same mode.
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        if _SERIALIZES:
            # One write instead of a log and its syncs.
            file.write(_image(meta))
            file.flush()
            os.fsync(handle)
    if not _SERIALIZES:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            _prepare(connection, meta)
            connection.execute("PRAGMA journal_mode = WAL")


def _image(meta: Mapping[str, str]) -> bytes:
    """Return the bytes of such a file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _prepare(connection, meta)
        image = bytearray(connection.serialize())
    image[_VERSIONS] = _WITH_LOG
    return bytes(image)


def _prepare(connection: sqlite3.Connection, meta: Mapping[str, str]) -> None:
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("BEGIN")
    for table in TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    values = {"schema": str(SCHEMA), **meta}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", values.items())
    connection.execute("COMMIT")


def media_folder(root: Path, session: str) -> Path:
    """Where pictures and sounds of a session's model are stored, below the sessions' folder."""
    return root / "media" / session


def remove_files(path: Path) -> None:
    """Remove the session's file and SQLite's side files."""
    for file in (path, beside(path, "-wal"), beside(path, "-shm")):
        file.unlink(missing_ok=True)


def copy_folder(source: Path, target: Path) -> None:
    """Copy what belongs to a session; contents, which never change, are not stored twice."""
    if not source.is_dir():
        return

    def copy(one: str, other: str) -> None:
        try:
            if Path(one).parent.parent.name != "objects":
                raise OSError(errno.EXDEV, "not by its contents")
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)

    shutil.copytree(
        source, target, copy_function=copy, ignore=shutil.ignore_patterns("trash", "index*")
    )


def private_folder(folder: Path) -> None:
    """Create the folder if it is missing, readable by its owner only."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def settle_folder(folder: Path) -> None:
    """Sync the folder, so that new names survive a power failure."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def words_of(error: OSError | sqlite3.Error) -> str:
    """The error's message without the path."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file is where a folder should be"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
