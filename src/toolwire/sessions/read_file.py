"""Reads a session's file, damaged or not: the good records before the first bad one."""

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from struct import error as CutShort
from struct import unpack_from
from tempfile import TemporaryDirectory
from urllib.parse import quote

import msgspec

from toolwire.agent.events import SessionOpened
from toolwire.errors import SessionError
from toolwire.sessions.files import PAGE, SCHEMA, Row, beside
from toolwire.sessions.records import checksum, decode
from toolwire.sessions.store import Record, Skipped

_LEAF = 0x0D
_LOCAL = PAGE - 35
_LEAST = (PAGE - 12) * 32 // 255 - 23
_WAL_HEAD = 32
_FRAME_HEAD = 24
_WHOLE = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""SQLite's integer types and their sizes in bytes."""


def rows_in_pages(data: bytes, log: bytes, after: int = 0) -> tuple[Row, ...]:
    """The good records after `after`, up to the first gap."""
    pages = {number: data[at : at + PAGE] for number, at in enumerate(range(0, len(data), PAGE), 1)}
    pages.update(_logged(log))
    found: dict[int, Row] = {}
    for page in pages.values():
        for row in _rows(page, pages):
            found[row.seq] = row
    rows: list[Row] = []
    while (row := found.get(after + len(rows) + 1)) is not None:
        rows.append(row)
    return tuple(rows)


def _logged(log: bytes) -> dict[int, bytes]:
    """Pages of the log's last generation, up to its last complete transaction."""
    pages: dict[int, bytes] = {}
    open_pages: dict[int, bytes] = {}
    salt = log[_WAL_HEAD + 8 : _WAL_HEAD + 16]
    for at in range(_WAL_HEAD, len(log) - _FRAME_HEAD - PAGE + 1, _FRAME_HEAD + PAGE):
        number, size = unpack_from(">II", log, at)
        if log[at + 8 : at + 16] != salt:
            break
        open_pages[number] = log[at + _FRAME_HEAD : at + _FRAME_HEAD + PAGE]
        if size:
            pages.update(open_pages)
            open_pages.clear()
    return pages


def _rows(page: bytes, pages: dict[int, bytes]) -> Iterator[Row]:
    if page[:1] != bytes([_LEAF]) or len(page) < PAGE:
        return
    (cells,) = unpack_from(">H", page, 3)
    for position in range(8, min(8 + 2 * cells, PAGE), 2):
        try:
            (at,) = unpack_from(">H", page, position)
            row = _row(page, at, pages)
        except (CutShort, IndexError, ValueError):
            continue
        if row is not None:
            yield row


def _row(page: bytes, at: int, pages: dict[int, bytes]) -> Row | None:
    """The record in a cell; None if there is none or it is damaged."""
    size, at = _number(page, at)
    seq, at = _number(page, at)
    payload = _payload(page, at, size, pages)
    head, position = _number(payload, 0)
    types: list[int] = []
    while position < head:
        kind, position = _number(payload, position)
        types.append(kind)
    if len(types) != 5 or types[2] < 13 or types[3] < 12:
        return None
    time, head = _value(payload, head, types[1])
    kind_end = head + (types[2] - 13) // 2
    body_end = kind_end + (types[3] - 12) // 2
    kind, body = payload[head:kind_end].decode(), payload[kind_end:body_end]
    crc, _ = _value(payload, body_end, types[4])
    # SQLite stores a real number without a fraction as an integer.
    at_time = float(time)
    good = checksum(seq, at_time, kind, body) == crc
    return Row(seq, at_time, kind, body, int(crc)) if good else None


def _payload(page: bytes, at: int, size: int, pages: dict[int, bytes]) -> bytes:
    """A cell's bytes, including its overflow pages."""
    if size <= _LOCAL:
        return page[at : at + size]
    if size > len(pages) * PAGE:
        raise ValueError("larger than the file")
    here = _LEAST + (size - _LEAST) % (PAGE - 4)
    here = here if here <= _LOCAL else _LEAST
    parts = [page[at : at + here]]
    (following,) = unpack_from(">I", page, at + here)
    left = size - here
    while left > 0:
        more = pages.get(following, b"")
        (following,) = unpack_from(">I", more, 0)
        parts.append(more[4 : 4 + min(left, PAGE - 4)])
        left -= PAGE - 4
    return b"".join(parts)


def _value(payload: bytes, at: int, kind: int) -> tuple[float, int]:
    """A number and the offset after it."""
    if kind == 7:
        (real,) = unpack_from(">d", payload, at)
        return real, at + 8
    if kind in (8, 9):
        return kind - 8, at
    if kind not in _WHOLE:
        raise ValueError("not a number")
    end = at + _WHOLE[kind]
    if end > len(payload):
        raise IndexError
    return int.from_bytes(payload[at:end], "big", signed=True), end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A varint of one to nine bytes, and the offset after it."""
    number = 0
    for position in range(at, at + 8):
        byte = data[position]
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, position + 1
    return number << 8 | data[at + 8], at + 9


_ROWS = "SELECT seq, at, kind, body, crc FROM records WHERE seq > ? ORDER BY seq"
_PASSING = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
)
"""Errors of the machine, not of the file: a later attempt may succeed."""


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """A file's good records, and the damage after them."""

    rows: tuple[Row, ...]
    meta: dict[str, str]
    damage: str = ""
    """Empty for an intact file."""

    @property
    def project(self) -> str:
        """The session's folder, if the file still contains it."""
        if "project" in self.meta:
            return self.meta["project"]
        first = next((row for row in self.rows if row.kind == "session_opened"), None)
        event = decode(first.body) if first is not None else None
        return event.cwd if isinstance(event, SessionOpened) else ""


class Damaged(Exception):
    """Records after this point are not reliable."""


def scan(path: Path, session: str, after: int = 0) -> Scan:
    """All good records after `after`; raises only for files that cannot be read."""
    first = _scan_file(path, session, after)
    if first.damage:
        # A process that starts to write at this moment looks like damage, once.
        first = _scan_file(path, session, after)
    if not first.damage:
        return first
    rows = _by_pages(path, session, after)
    return first if len(rows) <= len(first.rows) else msgspec.structs.replace(first, rows=rows)


def _by_pages(path: Path, session: str, after: int) -> tuple[Row, ...]:
    log = beside(path, "-wal")
    try:
        return rows_in_pages(path.read_bytes(), log.read_bytes() if log.exists() else b"", after)
    except OSError as error:
        raise SessionError(f'cannot read session "{session}": {error.strerror}: {path}') from error


def _scan_file(path: Path, session: str, after: int) -> Scan:
    rows: list[Row] = []
    meta: dict[str, str] = {}
    damage = ""
    try:
        with readable(path, session) as connection:
            try:
                meta = meta_of(connection)
                _check_version(connection, meta, session)
            except (sqlite3.Error, Damaged) as error:
                damage = _damage(error, path, session)
            for row in good_rows(connection, after):
                rows.append(row)
            _check_structure(connection)
    except (sqlite3.Error, Damaged) as error:
        damage = damage or _damage(error, path, session)
    return Scan(rows=tuple(rows), meta=meta, damage=damage)


def _damage(error: sqlite3.Error | Damaged, path: Path, session: str) -> str:
    """The file's damage in words; errors of the machine are raised."""
    if isinstance(error, sqlite3.Error) and _code(error) in _PASSING:
        raise SessionError(f'cannot read session "{session}": {error}: {path}') from error
    words = str(error)
    return "the file contains no records" if words.startswith("no such table") else words


def _code(error: sqlite3.Error) -> int:
    # Errors of the sqlite3 module itself have no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def good_rows(connection: sqlite3.Connection, after: int = 0) -> Iterator[Row]:
    """The records in order; `Damaged` at the first gap or wrong checksum."""
    expected = after
    for seq, at, kind, body, crc in connection.execute(_ROWS, (after,)):
        expected += 1
        if seq != expected:
            raise Damaged(f"record {expected} is missing")
        if not (isinstance(at, float) and isinstance(kind, bytes) and isinstance(body, bytes)):
            raise Damaged(f"record {seq} is damaged")
        name = kind.decode("utf-8", "replace")
        if checksum(seq, at, name, body) != crc:
            raise Damaged(f"record {seq} is damaged")
        yield Row(seq, at, name, body, crc)


def records_in(rows: Iterable[Row]) -> tuple[list[Record], Skipped | None]:
    """The records that this version can decode, and a summary of the others."""
    found: list[Record] = []
    unknown: list[str] = []
    for row in rows:
        event = decode(row.body)
        if event is None:
            unknown.append(row.kind)
        else:
            found.append(Record(seq=row.seq, at=row.at, event=event))
    if not unknown:
        return found, None
    return found, Skipped(records=len(unknown), kinds=tuple(dict.fromkeys(unknown)))


@contextmanager
def readable(path: Path, session: str) -> Generator[sqlite3.Connection]:
    """A read-only connection; a file in a folder that is not writable is read from a copy."""
    try:
        with path.open("rb") as file:
            file.read(1)
    except FileNotFoundError as error:
        raise SessionError(f'the file of session "{session}" is gone: {path}') from error
    except OSError as error:
        raise SessionError(f'cannot read session "{session}": {error.strerror}: {path}') from error
    connection = _connect(path)
    try:
        connection.execute("PRAGMA schema_version").fetchall()
    except sqlite3.OperationalError as error:
        connection.close()
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        with (
            TemporaryDirectory(prefix="toolwire-") as folder,
            closing(_connect(_copied(path, Path(folder)))) as connection,
        ):
            yield connection
        return
    except sqlite3.Error:
        connection.close()
        raise
    with closing(connection):
        yield connection


def _connect(path: Path) -> sqlite3.Connection:
    # Without a log there is no writer, and an immutable reader creates no side files.
    mode = "ro" if beside(path, "-wal").exists() else "ro&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None, timeout=10
    )
    # Damaged text must not prevent reading the records before it.
    connection.text_factory = bytes
    # SQLite then also reads a truncated file.
    connection.execute("PRAGMA writable_schema = ON")
    return connection


def meta_of(connection: sqlite3.Connection) -> dict[str, str]:
    """The file's metadata."""
    found = connection.execute("SELECT key, value FROM meta").fetchall()
    return {_text(key): _text(value) for key, value in found}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _check_version(connection: sqlite3.Connection, meta: dict[str, str], session: str) -> None:
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    if meta.get("schema") != str(number):
        raise Damaged("the file's head is damaged")
    if number != SCHEMA:
        raise SessionError(
            f'session "{session}" was written by a newer toolwire (format {number}, this version '
            f"reads {SCHEMA}); update toolwire"
        )


def _check_structure(connection: sqlite3.Connection) -> None:
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != b"ok":
        raise Damaged(f"the file's structure is damaged: {_text(answer)}")


def _copied(path: Path, folder: Path) -> Path:
    copy = folder / "session.sqlite"
    try:
        copyfile(path, copy)
        if beside(path, "-wal").exists():
            copyfile(beside(path, "-wal"), beside(copy, "-wal"))
    except OSError as error:
        raise SessionError(
            f'cannot read session "{path.stem}": {error.strerror}: {error.filename}'
        ) from error
    return copy
