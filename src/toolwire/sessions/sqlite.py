"""Sessions in SQLite: one file each, written by one process at a time."""

import asyncio
import hashlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from toolwire.agent.events import AgentEvent, MessageAdded, SessionOpened, TurnEnded
from toolwire.errors import SessionError
from toolwire.ids import new_id
from toolwire.sessions import records
from toolwire.sessions.files import INSERT, Row, create, remove_files, words_of
from toolwire.sessions.read_file import good_rows, meta_of, readable, records_in, scan
from toolwire.sessions.records import Redact, redacted, unredacted
from toolwire.sessions.replay import title_of
from toolwire.sessions.salvage import SALVAGED, finish_salvage, found_in, salvage
from toolwire.sessions.store import Contents, Record, Salvaged, Skipped, Summary, find_id
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
        self._unreported: SessionError | None = None
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
        if self._unreported is not None:
            failure, self._unreported = self._unreported, None
            raise failure
        writing = asyncio.get_running_loop().run_in_executor(self._writer, self._write, event)
        try:
            number = await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(self._note_failure)
            raise
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

    def _read(self, after: int) -> list[Record]:
        found, self._found = self._found, ()
        if not (after == 0 and found and len(found) == self._last):
            found = scan(self.path, self.session, after).rows
        read, self.skipped = records_in(found)
        return read

    def _belongs(self, session: str) -> None:
        if session != self.session:
            raise SessionError(f'this journal belongs to session "{self.session}", not "{session}"')

    def _note_failure(self, writing: "asyncio.Future[int]") -> None:
        failure = None if writing.cancelled() else writing.exception()
        if isinstance(failure, SessionError):
            self._unreported = failure

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


_COUNTS = (
    "SELECT count(*), sum(kind = 'turn_started'), min(seq), max(seq), "
    "max(CASE WHEN kind = 'session_opened' THEN seq END) FROM records"
)
_AT = "SELECT at FROM records WHERE seq = ?"
_ONE = "SELECT body FROM records WHERE seq = ?"
_LOOKED_AT = 40
"""Records searched for the user's first message; context comes before it."""


def summary_of(path: Path, session: str) -> Summary:
    """Summary of a session's file."""
    try:
        with readable(path, session) as connection:
            return _summary(connection, session)
    except (sqlite3.Error, SessionError, ValueError, TypeError):
        return _of_damaged(path, session)


def _summary(connection: sqlite3.Connection, session: str) -> Summary:
    meta = meta_of(connection)
    count, turns, first, last, opened = connection.execute(_COUNTS).fetchone()
    if not count:
        return Summary(id=session, project=meta.get("project", ""))
    (started,) = connection.execute(_AT, (first,)).fetchone()
    (updated,) = connection.execute(_AT, (last,)).fetchone()
    title = ""
    for row in good_rows(connection):
        title = _title(row)
        if title or row.seq >= _LOOKED_AT:
            break
    model = ""
    if opened is not None:
        (body,) = connection.execute(_ONE, (opened,)).fetchone()
        model = _model(body)
    return Summary(
        id=session,
        project=meta.get("project", ""),
        title=title,
        model=model,
        turns=int(turns),
        records=int(count),
        started=float(started),
        updated=float(updated),
    )


def _of_damaged(path: Path, session: str) -> Summary:
    try:
        found = scan(path, session)
    except SessionError:
        return Summary(id=session, damaged=True)
    rows = found.rows
    titles = (_title(row) for row in rows[:_LOOKED_AT])
    opened = [row for row in rows if row.kind == "session_opened"]
    return Summary(
        id=session,
        project=found.project,
        title=next(filter(None, titles), ""),
        model=_model(opened[-1].body) if opened else "",
        turns=sum(row.kind == "turn_started" for row in rows),
        records=len(rows),
        started=rows[0].at if rows else 0.0,
        updated=rows[-1].at if rows else 0.0,
        damaged=True,
    )


_MESSAGES = "SELECT body FROM records WHERE kind = 'message_added'"


def _contains(path: Path, session: str, words: str) -> bool:
    """Whether a message of the user or the model contains the words."""
    wanted = words.casefold()
    try:
        with readable(path, session) as connection:
            for (body,) in connection.execute(_MESSAGES):
                event = records.decode(body)
                if not isinstance(event, MessageAdded) or event.context:
                    continue
                if wanted in event.message.text.casefold():
                    return True
    except (sqlite3.Error, SessionError, ValueError, TypeError):
        # A damaged file is found by its title; opening it repairs it.
        return False
    return False


def _title(row: Row) -> str:
    if row.kind != "message_added":
        return ""
    event = records.decode(row.body)
    if not isinstance(event, MessageAdded) or event.context or event.message.role != "user":
        return ""
    return title_of(event.message.text)


def _model(body: bytes) -> str:
    event = records.decode(body)
    return event.model if isinstance(event, SessionOpened) else ""


_FILE = ".sqlite"


def project_key(project: Path) -> str:
    """A folder's name in the store: readable, unique per real path."""
    real = project.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", real.name.lower()).strip("-")[:40] or "root"
    return f"{slug}-{hashlib.sha256(str(real).encode('utf-8', 'surrogateescape')).hexdigest()[:10]}"


class SqliteStore:
    """The sessions below one folder. Every method blocks; only journals are for event loops."""

    def __init__(
        self,
        root: Path,
        *,
        redact: Redact = unredacted,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[str], str] = new_id,
    ) -> None:
        self._root = root
        self._redact = redact
        self._clock = clock
        self._new_id = new_id

    def create(self, project: str) -> SqliteJournal:
        """A new session of this folder, open for writing."""
        folder = Path(project)
        path = self._root / project_key(folder) / f"{self._new_id('')}{_FILE}"
        create(path, self._meta(path, str(folder.resolve())))
        return self._open(path)

    def open(self, name: str) -> SqliteJournal:
        """Open a session for writing; refused while another process has it, salvaged if damaged."""
        return self._open(self._path(name))

    def read(self, name: str) -> Contents:
        """The contents of a session, without locking or changing it."""
        path = self._path(name)
        found = scan(_file(path), path.stem)
        kept, skipped = records_in(found.rows)
        return Contents(
            id=path.stem,
            project=found.project,
            records=tuple(kept),
            salvaged=found_in(found),
            skipped=skipped,
        )

    def find(self, name: str) -> str:
        """The id of the session with this id or unique id prefix."""
        return self._path(name).stem

    def list(self, project: str | None = None) -> list[Summary]:
        """The sessions of a folder, or all; most recent first, without empty ones."""
        key = project_key(Path(project)) if project is not None else "*"
        found = (summary_of(_file(path), path.stem) for path in self._paths(key))
        kept = [one for one in found if one.records or one.damaged]
        return sorted(kept, key=lambda one: (one.updated, one.id), reverse=True)

    def search(self, words: str, project: str | None = None) -> set[str]:
        """The ids of sessions in whose messages the words occur, in any case."""
        key = project_key(Path(project)) if project is not None else "*"
        return {path.stem for path in self._paths(key) if _contains(_file(path), path.stem, words)}

    def latest(self, project: str) -> Summary | None:
        """The most recent session of this folder that is not empty."""
        return next((one for one in self.list(project) if one.turns), None)

    def fork(self, name: str, upto: int | None = None) -> str:
        """Copy a session, up to record `upto`, to a new id; also one in use."""
        path = self._path(name)
        found = scan(_file(path), path.stem)
        rows = tuple(row for row in found.rows if upto is None or row.seq <= upto)
        if not rows:
            raise SessionError(f'session "{path.stem}" has no record to fork from')
        project = found.project
        copy = path.with_name(f"{self._new_id('')}{_FILE}")
        meta = {**self._meta(copy, project), "forked_from": path.stem}
        create(copy, meta, (*rows, self._forked(copy.stem, path.stem, rows)))
        return copy.stem

    def delete(self, name: str) -> str:
        """Remove a session and its damaged copies; refused while it is in use."""
        path = self._path(name)
        lock = SessionLock(path.with_suffix(".lock"), path.stem)
        try:
            for file in path.parent.glob(f"{path.stem}.*"):
                if file.suffix != ".lock":
                    file.unlink(missing_ok=True)
            remove_files(path)
        except OSError as error:
            raise SessionError(f'cannot delete session "{path.stem}": {words_of(error)}') from error
        finally:
            lock.release()
        return path.stem

    def forget(self, before: float) -> tuple[str, ...]:
        """Delete the sessions unchanged since then, except those in use."""
        forgotten: tuple[str, ...] = ()
        for one in self.list():
            if one.updated < before and not one.damaged:
                with suppress(SessionError):
                    forgotten = (*forgotten, self.delete(one.id))
        return forgotten

    def _path(self, name: str) -> Path:
        paths = {path.stem: path for path in self._paths()}
        return paths[find_id(name, paths)]

    def _open(self, path: Path) -> SqliteJournal:
        return SqliteJournal(path, redact=self._redact, clock=self._clock)

    def _meta(self, path: Path, project: str) -> dict[str, str]:
        return {"session": path.stem, "project": project, "created": repr(self._clock())}

    def _paths(self, key: str = "*") -> Iterator[Path]:
        found = {*self._root.glob(f"{key}/*{_FILE}"), *self._root.glob(f"{key}/*{SALVAGED}")}
        yield from sorted({path.with_suffix(_FILE) for path in found})

    def _forked(self, session: str, origin: str, rows: tuple[Row, ...]) -> Row:
        """The record with the origin of the copy."""
        opened = [row for row in rows if row.kind == "session_opened"]
        last = records.decode(opened[-1].body) if opened else None
        before = last if isinstance(last, SessionOpened) else SessionOpened(session="", model="")
        event = msgspec.structs.replace(before, session=session, forked_from=origin)
        seq, at, kind, body = len(rows) + 1, self._clock(), "session_opened", records.encode(event)
        return Row(seq, at, kind, body, records.checksum(seq, at, kind, body))


def _file(path: Path) -> Path:
    """File with the records; the salvaged copy if a salvage was interrupted."""
    salvaged = path.with_suffix(SALVAGED)
    return salvaged if salvaged.exists() and not path.exists() else path
