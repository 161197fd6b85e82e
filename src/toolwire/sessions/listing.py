"""One line about a session, without reading all of it."""

import sqlite3
from pathlib import Path

import msgspec

from toolwire.agent.events import MessageAdded, SessionOpened
from toolwire.errors import SessionError
from toolwire.sessions import records
from toolwire.sessions.files import Row
from toolwire.sessions.journal import title_of
from toolwire.sessions.reading import good_rows, meta_of, readable, scan

_COUNTS = (
    "SELECT count(*), sum(kind = 'turn_started'), min(seq), max(seq), "
    "max(CASE WHEN kind = 'session_opened' THEN seq END) FROM records"
)
_AT = "SELECT at FROM records WHERE seq = ?"
_ONE = "SELECT body FROM records WHERE seq = ?"
_LOOKED_AT = 40
"""Records in which the person's first words are looked for; context comes before them."""


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
    """Seconds since 1970, as is `updated`."""
    updated: float = 0.0
    damaged: bool = False
    """Whether the file shows damage at first sight; opening it looks closer."""


def summary_of(path: Path, session: str) -> Summary:
    """What there is to say of a session's file."""
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
