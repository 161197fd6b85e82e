"""The sessions of a user: create, find, list, fork and delete."""

import hashlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.agent.events import AgentEvent, MessageAdded, SessionOpened
from toolwire.errors import SessionError
from toolwire.ids import new_id
from toolwire.sessions import records
from toolwire.sessions.files import Row, create, remove_files, words_of
from toolwire.sessions.read_file import Skipped, good_rows, meta_of, readable, records_in, scan
from toolwire.sessions.records import Redact, unredacted
from toolwire.sessions.replay import Record, title_of
from toolwire.sessions.salvage import SALVAGED, Salvaged, found_in
from toolwire.sessions.sqlite import SqliteJournal
from toolwire.storage.locks import SessionLock

_COUNTS = (
    "SELECT count(*), sum(kind = 'turn_started'), min(seq), max(seq), "
    "max(CASE WHEN kind = 'session_opened' THEN seq END) FROM records"
)
_AT = "SELECT at FROM records WHERE seq = ?"
_ONE = "SELECT body FROM records WHERE seq = ?"
_LOOKED_AT = 40
"""Records searched for the user's first message; context comes before it."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One session in a list."""

    id: str
    project: str = ""
    """The folder it was started in."""
    title: str = ""
    model: str = ""
    turns: int = 0
    records: int = 0
    started: float = 0.0
    """Unix time, as is `updated`."""
    updated: float = 0.0
    damaged: bool = False
    """Whether a quick check found damage; opening it checks every record."""


def summary_of(path: Path, session: str) -> Summary:
    """Summary of a session's file."""
    try:
        with readable(path, session) as connection:
            return _asked(connection, session)
    except (sqlite3.Error, SessionError, ValueError, TypeError):
        return _of_damaged(path, session)


def _asked(connection: sqlite3.Connection, session: str) -> Summary:
    meta = meta_of(connection)
    kept, turns, first, last, opened = connection.execute(_COUNTS).fetchone()
    if not kept:
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
        records=int(kept),
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


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """All good records of a session, and the damage of its file."""

    id: str
    project: str
    records: tuple[Record, ...]
    salvaged: Salvaged | None = None
    skipped: Skipped | None = None

    @property
    def notices(self) -> list[str]:
        """Notices for the user: damage and skipped records."""
        return [one.message for one in (self.salvaged, self.skipped) if one is not None]

    @property
    def events(self) -> list[AgentEvent]:
        """The events alone."""
        return [record.event for record in self.records]


def project_key(project: Path) -> str:
    """A folder's name in the store: readable, unique per real path."""
    real = project.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", real.name.lower()).strip("-")[:40] or "root"
    return f"{slug}-{hashlib.sha256(str(real).encode('utf-8', 'surrogateescape')).hexdigest()[:10]}"


class Sessions:
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

    def create(self, project: Path) -> SqliteJournal:
        """A new session of this folder, open for writing."""
        path = self._new_path(project)
        create(path, self._meta(path, str(project.resolve())))
        return self._open(path)

    def open(self, name: str) -> SqliteJournal:
        """Open a session for writing; refused while another process has it, salvaged if damaged."""
        return self._open(self.find(name))

    def read(self, name: str) -> Contents:
        """The contents of a session, without locking or changing it."""
        path = self.find(name)
        found = scan(_file(path), path.stem)
        kept, skipped = records_in(found.rows)
        return Contents(
            id=path.stem,
            project=found.project,
            records=tuple(kept),
            salvaged=found_in(found),
            skipped=skipped,
        )

    def find(self, name: str) -> Path:
        """The file of the session with this id or unique id prefix."""
        found = [path for path in self._paths() if path.stem.startswith(name)] if name else []
        exact = [path for path in found if path.stem == name]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if not found:
            raise SessionError(f'no session "{name}"; see toolwire sessions list --all')
        shown = ", ".join(path.stem for path in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise SessionError(f'"{name}" begins the ids of {len(found)} sessions: {shown}{more}')

    def list(self, project: Path | None = None) -> list[Summary]:
        """The sessions of a folder, or all; most recent first, without empty ones."""
        key = project_key(project) if project is not None else "*"
        found = (summary_of(_file(path), path.stem) for path in self._paths(key))
        kept = [one for one in found if one.records or one.damaged]
        return sorted(kept, key=lambda one: (one.updated, one.id), reverse=True)

    def latest(self, project: Path) -> Summary | None:
        """The most recent session of this folder that is not empty."""
        return next((one for one in self.list(project) if one.turns), None)

    def fork(self, name: str, upto: int | None = None) -> str:
        """Copy a session, up to record `upto`, to a new id; also one in use."""
        path = self.find(name)
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
        path = self.find(name)
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

    def _open(self, path: Path) -> SqliteJournal:
        return SqliteJournal(path, redact=self._redact, clock=self._clock)

    def _new_path(self, project: Path) -> Path:
        return self._root / project_key(project) / f"{self._new_id('')}{_FILE}"

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
