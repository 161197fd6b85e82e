"""Sessions in the console: those of every process by their journals, and those that run here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolwire.gateway.console.calls import PAGE, ApiError, ApiRoute, Call, Query
from toolwire.gateway.console.hosted_sessions import NewSession
from toolwire.gateway.console.journals import SessionRow
from toolwire.gateway.console.questions import ShownQuestion
from toolwire.gateway.console.session_events import RecordList, events
from toolwire.policy import Mode

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console
    from toolwire.gateway.console.hosted import HostedSession


class Said(msgspec.Struct, frozen=True):
    """A message of the user."""

    text: str


class ForkAt(msgspec.Struct, frozen=True):
    """Where a copy ends: the number of a record; all of them by default."""

    upto: int | None = None


class ChosenMode(msgspec.Struct, frozen=True):
    """An approval mode."""

    mode: Literal["default", "auto_edit", "plan", "yolo"]


class OneSession(msgspec.Struct, frozen=True):
    """A session."""

    session: SessionRow


class SessionList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of sessions, the most recent first."""

    sessions: list[SessionRow]
    next: str | None
    total: int


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """A turn; a copy up to `seq` ends with it."""

    seq: int
    text: str
    at: float
    end: str


class SessionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A session with its turns."""

    session: SessionRow
    turns: list[TurnRow]
    notices: list[str]
    questions: list[ShownQuestion]
    partial: Any


class ProjectList(msgspec.Struct, frozen=True):
    """Folders with sessions."""

    projects: list[str]
    default: str


async def listed(console: Console, call: Call) -> None:
    """Answers with a page of sessions."""
    sessions = console.sessions
    words = call.query.get("q", "")
    rows = await asyncio.to_thread(sessions.journals.rows, words, call.query.get("project", ""))
    rows = [sessions.with_state(row) for row in rows]
    state = call.query.get("state", "")
    rows = [row for row in rows if not state or row.state == state]
    total = len(rows)
    before = call.query.get("before", "")
    if before:
        at, _, session = before.partition(":")
        try:
            limit = (float(at), session)
        except ValueError:
            raise ApiError(400, f'before: "{before[:50]}" is not a cursor of a list') from None
        rows = [row for row in rows if (row.updated, row.id) < limit]
    size = call.limit()
    page = rows[:size]
    more = f"{page[-1].updated!r}:{page[-1].id}" if len(rows) > size else None
    await call.answer(SessionList(sessions=page, next=more, total=total))


async def shown(console: Console, call: Call) -> None:
    """Answers with one session."""
    sessions = console.sessions
    row = await sessions.row(call.parts["id"])
    turns, notices = await asyncio.to_thread(sessions.journals.turns, row.id)
    hosted = sessions.find(row.id)
    partial = None
    if hosted is not None and not hosted.live.partial.empty:
        partial = hosted.live.partial
    every = await sessions.questions_everywhere()
    await call.answer(
        SessionDetail(
            session=row,
            turns=[
                TurnRow(seq=one.last, text=one.prompt[:500], at=one.at, end=one.end)
                for one in turns
            ],
            notices=notices,
            questions=[one for one in every if one.session == row.id],
            partial=partial,
        )
    )


async def create(console: Console, call: Call) -> None:
    """Starts a session."""
    given = call.body(NewSession)
    if not given.prompt.strip():
        raise ApiError(400, "prompt: a first message is missing")
    hosted = await console.sessions.create(given)
    row = await console.sessions.row(hosted.id)
    await call.answer(OneSession(row), 201)


async def say(console: Console, call: Call) -> None:
    """Adds a message of the user."""
    given = call.body(Said)
    if not given.text.strip():
        raise ApiError(400, "text: a message is missing")
    hosted = await console.sessions.open(call.parts["id"])
    hosted.say(given.text)
    await call.answer(OneSession(await console.sessions.row(hosted.id)), 202)


async def stop(console: Console, call: Call) -> None:
    """Stops the turn."""
    hosted = await _running(console, call)
    if not hosted.stop():
        raise ApiError(409, "the session has no turn to stop")
    await call.answer(OneSession(await console.sessions.row(hosted.id)), 202)


async def _running(console: Console, call: Call) -> HostedSession:
    hosted = console.sessions.find(call.parts["id"])
    if hosted is not None:
        return hosted
    row = await console.sessions.row(call.parts["id"])
    words = row.held_by.text if row.held_by is not None else "no process has it open"
    raise ApiError(409, f"the session does not run here: {words}")


async def fork(console: Console, call: Call) -> None:
    """Copies a session up to a record."""
    given = call.body(ForkAt)
    sessions = console.sessions
    row = await sessions.row(call.parts["id"])
    copy = await asyncio.to_thread(sessions.journals.store.fork, row.id, given.upto)
    await call.answer(OneSession(await sessions.row(copy)), 201)


async def change_mode(console: Console, call: Call) -> None:
    """Changes the approval mode of a session that runs here."""
    hosted = await _running(console, call)
    await hosted.set_mode(Mode(call.body(ChosenMode).mode))
    await call.answer(OneSession(await console.sessions.row(hosted.id)))


async def close(console: Console, call: Call) -> None:
    """Releases a session that runs here."""
    hosted = await _running(console, call)
    await hosted.close()
    await call.answer(OneSession(await console.sessions.row(hosted.id)))


_EXPORTS = {
    "markdown": ("md", "text/markdown; charset=utf-8"),
    "html": ("html", "text/html; charset=utf-8"),
    "json": ("json", "application/json"),
}


async def export(console: Console, call: Call) -> None:
    """Answers with a session as a file."""
    name = call.query.get("format", "markdown")
    if name not in _EXPORTS:
        raise ApiError(400, f'format: "{name[:50]}" is none of {", ".join(_EXPORTS)}')
    row = await console.sessions.row(call.parts["id"])
    ending, kind = _EXPORTS[name]
    text = await asyncio.to_thread(console.sessions.journals.exported, row.id, name)
    await call.file(f"{row.id}.{ending}", kind, text.encode("utf-8", "replace"))


async def projects(console: Console, call: Call) -> None:
    """Answers with the folders that have sessions."""
    rows = await asyncio.to_thread(console.sessions.journals.rows)
    found = dict.fromkeys(row.project for row in rows if row.project)
    await call.answer(ProjectList(list(found), str(console.host.folder)))


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/sessions",
        does=listed,
        about="Sessions of every process, the most recent first.",
        query=(
            *PAGE,
            Query("q", "Words in the title or the messages."),
            Query("project", "Only of this folder."),
            Query("state", "`running`, `waiting`, `idle`, `held` or `closed`."),
        ),
        returns=SessionList,
    ),
    ApiRoute(
        method="POST",
        path="/sessions",
        does=create,
        about="Start a session with a first message.",
        takes=NewSession,
        returns=OneSession,
        status=201,
        session=True,
    ),
    ApiRoute(
        method="GET",
        path="/sessions/{id}",
        does=shown,
        about="One session with its turns and questions.",
        returns=SessionDetail,
    ),
    ApiRoute(
        method="GET",
        path="/sessions/{id}/events",
        does=events,
        about="Stored events after a number; as an event stream also those that follow.",
        query=(
            Query("after", "Number of the last record that is known.", "integer"),
            Query("limit", "Most records, up to 1000.", "integer"),
        ),
        returns=RecordList,
    ),
    ApiRoute(
        method="POST",
        path="/sessions/{id}/say",
        does=say,
        about="Say something, in the running turn or as a new one.",
        takes=Said,
        returns=OneSession,
        status=202,
        session=True,
    ),
    ApiRoute(
        method="POST",
        path="/sessions/{id}/stop",
        does=stop,
        about="Stop the turn.",
        returns=OneSession,
        status=202,
        session=True,
    ),
    ApiRoute(
        method="POST",
        path="/sessions/{id}/fork",
        does=fork,
        about="Copy a session, up to a record.",
        takes=ForkAt,
        returns=OneSession,
        status=201,
        session=True,
    ),
    ApiRoute(
        method="POST",
        path="/sessions/{id}/mode",
        does=change_mode,
        about="Change the approval mode.",
        takes=ChosenMode,
        returns=OneSession,
        session=True,
    ),
    ApiRoute(
        method="POST",
        path="/sessions/{id}/close",
        does=close,
        about="Release a session for other processes.",
        returns=OneSession,
        session=True,
    ),
    ApiRoute(
        method="GET",
        path="/sessions/{id}/export",
        does=export,
        about="A session as a file.",
        query=(Query("format", "`markdown`, `html` or `json`."),),
        media="application/octet-stream",
    ),
    ApiRoute(
        method="GET",
        path="/projects",
        does=projects,
        about="Folders that have sessions.",
        returns=ProjectList,
    ),
)
