"""A second store of sessions, in memory: what another implementation has to do."""

import asyncio
import time
from collections.abc import Callable

import msgspec

from toolwire.agent.events import AgentEvent, MessageAdded, SessionOpened
from toolwire.errors import SessionError
from toolwire.ids import new_id
from toolwire.messages import Message
from toolwire.sessions import records
from toolwire.sessions.files import Row
from toolwire.sessions.replay import replay
from toolwire.sessions.store import Contents, Copied, Record, Summary, find_id, missing_rows


class _Stored:
    def __init__(self, project: str) -> None:
        self.project = project
        self.rows: list[tuple[float, bytes]] = []
        self.in_use = False


class MemoryJournal:
    """One session, held until it is closed."""

    def __init__(self, store: "MemoryStore", session: str) -> None:
        self.session = session
        self.notices: list[str] = []
        self._store = store
        self._stored: _Stored | None = store.hold(session)

    async def append(self, session: str, event: AgentEvent) -> int:
        """The record's number; the last number for an event that is not stored."""
        rows = self._held(session).rows
        if records.is_stored(event):
            rows.append((self._store.clock(), records.encode(event)))
        return len(rows)

    async def read(self, session: str, after: int = 0) -> list[AgentEvent]:
        """All events after that record."""
        self._held(session)
        return self._store.read(session).events[after:]

    async def lost(self) -> str:
        """Never returns."""
        return await asyncio.get_running_loop().create_future()

    async def cancelled(self) -> None:
        """Never returns."""
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """Release the session; an empty one is removed."""
        if self._stored is not None:
            self._store.release(self.session)
        self._stored = None

    def _held(self, session: str) -> _Stored:
        if session != self.session:
            raise SessionError(f'this journal belongs to session "{self.session}"')
        if self._stored is None:
            raise SessionError(f'session "{self.session}" is closed; open it again to continue')
        return self._stored


class MemoryStore:
    """Sessions of one process; they end with it."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[str], str] = new_id,
    ) -> None:
        self.clock = clock
        self._new_id = new_id
        self._sessions: dict[str, _Stored] = {}

    def create(self, project: str) -> MemoryJournal:
        """A new session of this project, open for writing."""
        id = self._new_id("")
        self._sessions[id] = _Stored(project)
        return MemoryJournal(self, id)

    def open(self, name: str, *, take: bool = False) -> MemoryJournal:
        """Open a session for writing; refused while it is open."""
        del take
        return MemoryJournal(self, self.find(name))

    def cancel(self, name: str) -> str:
        """Nothing of this process waits for commands."""
        raise SessionError(f"{self.find(name)} is in this process")

    def read(self, name: str, *, after: int = 0) -> Contents:
        """The contents of a session, also of one in use."""
        id = self.find(name)
        rows = enumerate(self._sessions[id].rows, 1)
        found = ((seq, at, records.decode(body)) for seq, (at, body) in rows)
        return Contents(
            id=id,
            project=self._sessions[id].project,
            records=tuple(
                Record(seq=seq, at=at, event=event)
                for seq, at, event in found
                if event is not None and seq > after
            ),
        )

    def find(self, name: str) -> str:
        """The id of the session."""
        return find_id(name, self._sessions)

    def list(self, project: str | None = None, *, children: bool = False) -> list[Summary]:
        """The sessions of a project, or all; most recent first, without empty ones."""
        found = [
            self._summary(id)
            for id, stored in self._sessions.items()
            if stored.rows and project in (None, stored.project)
        ]
        found = [one for one in found if children or not one.parent]
        return sorted(found, key=lambda one: (one.updated, one.id), reverse=True)

    def prompts(self, project: str, most: int) -> tuple[Message, ...]:
        """The user's messages, the newest sessions first."""
        found = [
            event.message
            for one in self.list(project)
            for event in reversed(self.read(one.id).events)
            if isinstance(event, MessageAdded) and not event.context
        ]
        return tuple(one for one in found if one.role == "user" and not one.results)[:most]

    def search(self, words: str, project: str | None = None) -> set[str]:
        """The ids of sessions in whose messages the words occur."""
        found = [one.id for one in self.list(project)]
        return {id for id in found if words.casefold() in _said(self.read(id)).casefold()}

    def latest(self, project: str) -> Summary | None:
        """The most recent session of this project that has a turn."""
        return next((one for one in self.list(project) if one.turns), None)

    def fork(self, name: str, upto: int | None = None) -> str:
        """Copy a session, up to record `upto`, to a new id."""
        origin = self.find(name)
        rows = self._sessions[origin].rows[:upto]
        if not rows:
            raise SessionError(f'session "{origin}" has no record to fork from')
        copy = self._new_id("")
        stored = self._sessions[copy] = _Stored(self._sessions[origin].project)
        past = replay(self.read(origin).events)
        opened = SessionOpened(session=copy, model=past.model, cwd=past.cwd, forked_from=origin)
        opened = msgspec.structs.replace(opened, dialect=past.dialect, style=past.style)
        stored.rows = [*rows, (self.clock(), records.encode(opened))]
        return copy

    def export_rows(self, name: str) -> Copied:
        """Every row of a session."""
        id = self.find(name)
        rows = tuple(
            Row(seq, at, kind, body, records.checksum(seq, at, kind, body))
            for seq, (at, body) in enumerate(self._sessions[id].rows, 1)
            if (kind := msgspec.json.decode(body)["type"])
        )
        return Copied(id=id, project=self._sessions[id].project, facts={}, rows=rows)

    def import_rows(self, copied: Copied) -> int:
        """Adds the rows that are new."""
        stored = self._sessions.setdefault(copied.id, _Stored(copied.project))
        there = self.export_rows(copied.id).rows
        rows = missing_rows(copied, there)
        stored.rows += [(row.at, row.body) for row in rows]
        return len(rows)

    def delete(self, name: str) -> str:
        """Remove a session; refused while it is in use."""
        id = self.find(name)
        self.hold(id)
        del self._sessions[id]
        for one in self.list(children=True):
            if one.parent == id:
                del self._sessions[one.id]
        return id

    def forget(self, before: float) -> tuple[str, ...]:
        """Delete the sessions unchanged since then, except those in use."""
        old = [one.id for one in self.list() if one.updated < before]
        return tuple(self.delete(id) for id in old if not self._sessions[id].in_use)

    def hold(self, id: str) -> _Stored:
        """The session, in use from now on."""
        if self._sessions[id].in_use:
            raise SessionError(f'session "{id}" is in use')
        self._sessions[id].in_use = True
        return self._sessions[id]

    def release(self, id: str) -> None:
        """End its use."""
        self._sessions[id].in_use = False
        if not self._sessions[id].rows:
            del self._sessions[id]

    def _summary(self, id: str) -> Summary:
        past, stored = replay(self.read(id).events), self._sessions[id]
        return Summary(
            id=id,
            project=stored.project,
            title=past.title,
            model=past.model,
            parent="" if past.parent is None else past.parent.session,
            turns=past.turns,
            records=len(stored.rows),
            started=stored.rows[0][0],
            updated=stored.rows[-1][0],
        )


def _said(contents: Contents) -> str:
    return "\n".join(
        event.message.text
        for event in contents.events
        if isinstance(event, MessageAdded) and not event.context
    )
