"""What a list says of the sessions in files: title, model, turns, cost, and words in messages."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.agent.events import MessageAdded, SessionOpened
from toolwire.errors import SessionError
from toolwire.messages import Message
from toolwire.sessions import records
from toolwire.sessions.files import Row
from toolwire.sessions.read_file import good_rows, meta_of, readable, scan
from toolwire.sessions.replay import title_of
from toolwire.sessions.store import Summary

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
    last_opened = SessionOpened(session="", model="")
    if opened is not None:
        (body,) = connection.execute(_ONE, (opened,)).fetchone()
        last_opened = _opened(body)
    return Summary(
        id=session,
        project=meta.get("project", ""),
        title=title,
        model=last_opened.model,
        parent=_parent(last_opened),
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
    found_opened = [row for row in rows if row.kind == "session_opened"]
    opened = _opened(found_opened[-1].body if found_opened else b"")
    return Summary(
        id=session,
        project=found.project,
        title=next(filter(None, titles), ""),
        model=opened.model,
        parent=_parent(opened),
        turns=sum(row.kind == "turn_started" for row in rows),
        records=len(rows),
        started=rows[0].at if rows else 0.0,
        updated=rows[-1].at if rows else 0.0,
        damaged=True,
    )


_COSTS = "SELECT body FROM records WHERE kind = 'usage_counted'"


class _Cost(msgspec.Struct, frozen=True):
    cost: float | None = None


def cost_of(path: Path, session: str) -> float | None:
    """US dollars of a session; None if no price is known."""
    try:
        with readable(path, session) as connection:
            bodies = [body for (body,) in connection.execute(_COSTS)]
    except (sqlite3.Error, SessionError, ValueError, TypeError):
        return None
    found = [msgspec.json.decode(body, type=_Cost).cost for body in bodies]
    known = [cost for cost in found if cost is not None]
    return sum(known) if known else None


_MESSAGES = "SELECT body FROM records WHERE kind = 'message_added'"


def messages_in(path: Path, session: str) -> Iterator[Message]:
    """The messages of the user and the model, as far as they can be read."""
    # A damaged file is found by its title; opening it repairs it.
    with (
        suppress(sqlite3.Error, SessionError, ValueError, TypeError),
        readable(path, session) as connection,
    ):
        for (body,) in connection.execute(_MESSAGES):
            event = records.decode(body)
            if isinstance(event, MessageAdded) and not event.context:
                yield event.message


def contains(path: Path, session: str, words: str) -> bool:
    """Whether a message of the user or the model contains the words."""
    wanted = words.casefold()
    return any(wanted in message.text.casefold() for message in messages_in(path, session))


def _title(row: Row) -> str:
    if row.kind != "message_added":
        return ""
    event = records.decode(row.body)
    if not isinstance(event, MessageAdded) or event.context or event.message.role != "user":
        return ""
    return title_of(event.message.text)


def _opened(body: bytes) -> SessionOpened:
    event = records.decode(body)
    return event if isinstance(event, SessionOpened) else SessionOpened(session="", model="")


def _parent(opened: SessionOpened) -> str:
    return "" if opened.parent is None else opened.parent.session
