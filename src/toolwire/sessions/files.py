"""The files of a session: their form, their names, and that only their owner reads them."""

import os
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
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
INSERT = "INSERT INTO records VALUES (?, ?, ?, ?, ?)"


class Row(msgspec.Struct, frozen=True, gc=False):
    """A record whose checksum is right; its body is not read yet."""

    seq: int
    at: float
    kind: str
    body: bytes
    crc: int


def beside(path: Path, ending: str) -> Path:
    """The file SQLite keeps beside the session's: `-wal` or `-shm`."""
    return path.with_name(path.name + ending)


def create(path: Path, meta: Mapping[str, str], rows: Iterable[Row] = ()) -> None:
    """A new session file, whole or not at all; its folders are made as needed."""
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
            f"cannot make a session in {path.parent}: {words_of(error)}; free some space there, or "
            "name another folder in TOOLWIRE_HOME"
        ) from error


def write_whole(path: Path, meta: Mapping[str, str], rows: Iterable[Row]) -> None:
    """A file with these records, on the disk for good when this returns."""
    remove_files(path)
    # SQLite gives the files beside it the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        prepare(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.items())
        values = ((row.seq, row.at, row.kind, row.body, row.crc) for row in rows)
        connection.executemany(INSERT, values)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def prepare(connection: sqlite3.Connection) -> None:
    """Give an empty file its form."""
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    for table in TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    connection.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
    connection.execute("COMMIT")


def remove_files(path: Path) -> None:
    """The session's file and what SQLite keeps beside it."""
    for file in (path, beside(path, "-wal"), beside(path, "-shm")):
        file.unlink(missing_ok=True)


def private_folder(folder: Path) -> None:
    """Make the folder if it is missing; nobody else may look into it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def settle_folder(folder: Path) -> None:
    """New names outlive a power cut."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def words_of(error: OSError | sqlite3.Error) -> str:
    """What went wrong, without the path."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file is in the place of a folder"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
