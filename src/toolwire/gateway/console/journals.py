"""What the journals of all sessions say, whichever process writes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolwire.agent.events import SessionOpened, ToolAsked, ToolDecided, ToolFinished, TurnEnded
from toolwire.client.redact import redaction
from toolwire.gateway.console.questions import HeldBy, ShownQuestion, held_by, shown_question
from toolwire.sessions.export import to_html, to_json, to_markdown
from toolwire.sessions.records import decode
from toolwire.sessions.replay import replay
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import Record
from toolwire.sessions.summaries import cost_of, summary_of
from toolwire.sessions.transcript import TurnLine, turns_of
from toolwire.storage.paths import state_paths


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One session in a list."""

    id: str
    title: str = ""
    project: str = ""
    model: str = ""
    mode: str = ""
    turns: int = 0
    records: int = 0
    started: float = 0.0
    updated: float = 0.0
    state: str = "closed"
    """`running`, `waiting` or `idle` here, `held` by another process, or `closed`."""
    here: bool = False
    held_by: HeldBy | None = None
    cost: float | None = None
    questions: int = 0
    damaged: bool = False
    forked_from: str = ""


class Journals:
    """Reads journals; every method blocks."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.store = SqliteStore(state_paths(environ).sessions, redact=redaction())
        self._rows: dict[str, tuple[tuple[int, ...], SessionRow]] = {}
        """Summaries by the state of their files: most sessions never change again."""

    def rows(self, words: str = "", project: str = "") -> list[SessionRow]:
        """All sessions, the most recent first."""
        files = self.store.files()
        rows = [self._row(name, path) for name, path in files.items()]
        rows = [row for row in rows if row.records or row.damaged]
        if project:
            rows = [row for row in rows if row.project == project]
        if words:
            wanted = words.casefold()
            found = {row.id for row in rows if wanted in row.title.casefold()}
            found |= self.store.search(words)
            rows = [row for row in rows if row.id in found or row.id.startswith(words)]
        return sorted(rows, key=lambda row: (row.updated, row.id), reverse=True)

    def row(self, session: str) -> SessionRow:
        """One session; SessionError if there is none."""
        name = self.store.find(session)
        return self._row(name, self.store.files()[name])

    def _row(self, name: str, path: Path) -> SessionRow:
        seen = _state(path)
        known = self._rows.get(name)
        if known is None or known[0] != seen:
            found = summary_of(path, name)
            row = SessionRow(
                id=name,
                title=found.title,
                project=found.project,
                model=found.model,
                turns=found.turns,
                records=found.records,
                started=found.started,
                updated=found.updated,
                cost=cost_of(path, name),
                damaged=found.damaged,
            )
            known = self._rows[name] = (seen, row)
        pid = self.store.held_by(name)
        if pid is None:
            return known[1]
        waiting = len(self._asked(name))
        return msgspec.structs.replace(
            known[1], state="held", held_by=held_by(pid), questions=waiting
        )

    def last_record(self, session: str) -> int:
        """The number of the last record."""
        rows = self.store.rows(session)
        return rows[-1].seq if rows else 0

    def turns(self, session: str) -> tuple[list[TurnLine], list[str]]:
        """The turns of a session, and notices about its file."""
        contents = self.store.read(session)
        return turns_of(contents.records), contents.notices

    def exported(self, session: str, form: str) -> str:
        """A session as text."""
        write = {"markdown": to_markdown, "html": to_html, "json": to_json}[form]
        return write(self.store.read(session))

    def waits(self, session: str) -> bool:
        """Whether the process ended while the user was asked about a call."""
        return bool(self._asked(session)) and bool(replay(self.store.read(session).events).open)

    def questions(self, except_for: tuple[str, ...]) -> list[ShownQuestion]:
        """Open questions of sessions that other processes have open."""
        found: list[ShownQuestion] = []
        for name, path in self.store.files().items():
            pid = None if name in except_for else self.store.held_by(name)
            if pid is None or pid == os.getpid():
                continue
            row = self._row(name, path)
            found += [
                shown_question(
                    record.event.confirmation,
                    id=f"q_{name}_{record.seq}",
                    session=name,
                    title=row.title,
                    project=row.project,
                    asked=record.at,
                    holder=pid,
                )
                for record in self._asked(name)
                if isinstance(record.event, ToolAsked)
            ]
        return found

    def _asked(self, session: str) -> list[Record]:
        """Records of questions without an answer, the last one of each call."""
        found: dict[str, Record] = {}
        for row in self.store.rows(session):
            event = decode(row.body) if row.kind in _DECISIVE else None
            match event:
                case ToolAsked():
                    found[event.call_id] = Record(seq=row.seq, at=row.at, event=event)
                case ToolDecided() | ToolFinished():
                    found.pop(event.call_id, None)
                case TurnEnded() | SessionOpened(changed=""):
                    found.clear()
                case _:
                    pass
        return list(found.values())


_DECISIVE = frozenset(
    {"tool_asked", "tool_decided", "tool_finished", "turn_ended", "session_opened"}
)


def _state(path: Path) -> tuple[int, ...]:
    found: list[int] = []
    for one in (path, path.with_name(f"{path.name}-wal")):
        try:
            state = one.stat()
            found += [state.st_mtime_ns, state.st_size]
        except OSError:
            found += [0, 0]
    return tuple(found)
