"""All sessions of a PostgreSQL server: claimed by epochs, listed, forked, deleted and copied."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Any

import msgspec

from toolwire.agent.events import MessageAdded
from toolwire.errors import SessionError, SessionInUse
from toolwire.ids import new_id
from toolwire.messages import Message
from toolwire.sessions import records
from toolwire.sessions.files import Row
from toolwire.sessions.postgres.journal import (
    CANCEL,
    PostgresJournal,
    facts_of,
    good,
    rows_of,
)
from toolwire.sessions.postgres.link import Connection
from toolwire.sessions.postgres.project import project_name
from toolwire.sessions.postgres.worker import LEASE_SECONDS, StoreWorker, has_ended, worker_for
from toolwire.sessions.read_file import records_in
from toolwire.sessions.records import Redact, unredacted
from toolwire.sessions.store import (
    Contents,
    Copied,
    Summary,
    find_id,
    forked_row,
    missing_rows,
)

_CREATE = b"""
INSERT INTO sessions (id, project, epoch, holder, claim)
VALUES (%(id)s, %(project)s, 1, %(holder)s, %(claim)s) ON CONFLICT (id) DO NOTHING"""
# Locked by a statement of its own: the next one then sees the worker that claimed it meanwhile.
_LOCK = b"SELECT 1 FROM sessions WHERE id = %(id)s FOR UPDATE"
_HOLDER = b"""
SELECT s.epoch, s.last_seq, s.claim, w.pid, w.host, w.place,
    extract(epoch FROM w.alive_until - now())
FROM sessions s LEFT JOIN workers w ON w.id = s.holder AND w.alive_until > now()
WHERE s.id = %(id)s"""
_CLAIM = b"""
UPDATE sessions SET epoch = epoch + 1, holder = %(holder)s, claim = %(claim)s
WHERE id = %(id)s RETURNING epoch, last_seq"""
_NO_COMMANDS = b"DELETE FROM commands WHERE session = %(id)s"
_COMMAND = b"INSERT INTO commands (session, kind, body) VALUES (%(id)s, %(kind)s, '')"
# The first record of a subagent's session names the one that ran it; a copy is of the user's own.
_LIST = r"""
SELECT * FROM (
    SELECT id, project, title, model, turns, last_seq, first_at, last_at, CASE
        WHEN facts ? 'forked_from' THEN ''
        ELSE coalesce((
            SELECT substring(convert_from(r.body, 'UTF8') from '"parent":\{{"session":"([^"]+)"')
            FROM records r WHERE r.session = s.id AND r.seq = 1 AND r.kind = 'session_opened'
        ), '') END AS parent
    FROM sessions s WHERE last_seq > 0 {where}) listed
WHERE %(children)s OR parent = '' ORDER BY last_at DESC, id DESC"""
_MESSAGES = """
SELECT r.session, r.body FROM records r JOIN sessions s ON s.id = r.session
WHERE r.kind = 'message_added' {where}"""
_PROMPTS = (
    _MESSAGES.format(where="AND s.project = %(project)s")
    + " ORDER BY s.last_at DESC, s.id DESC, r.seq DESC LIMIT %(most)s"
)
_FORK = b"""
INSERT INTO sessions (id, project, title, model, turns, last_seq, first_at, last_at, facts)
SELECT %(copy)s, project, %(title)s, %(model)s, %(turns)s, %(last)s, %(first_at)s, %(last_at)s,
    jsonb_build_object('forked_from', id) FROM sessions WHERE id = %(id)s"""
_INSERT = b"INSERT INTO records VALUES (%s, %s, %s, %s, %b, %s, 0)"
_FORGET = """
DELETE FROM sessions WHERE id IN (
    SELECT id FROM sessions s WHERE last_at < %(before)s AND last_seq > 0 AND NOT EXISTS (
        SELECT 1 FROM workers w WHERE w.id = s.holder AND w.alive_until > now())
    LIMIT 500) RETURNING id"""
_AT_ONCE = 1_000

_writers: dict[int, ThreadPoolExecutor] = {}
_writers_lock = Lock()


def _writer_of(worker: StoreWorker) -> ThreadPoolExecutor:
    """Returns the one thread that writes the records of a process."""
    with _writers_lock:
        if id(worker) not in _writers:
            _writers[id(worker)] = ThreadPoolExecutor(1, thread_name_prefix="sessions")
        return _writers[id(worker)]


class PostgresStore:
    """The sessions of a server. Every method blocks; only journals are for event loops.

    Clones of a repository on several machines are one project.
    """

    def __init__(
        self,
        url: str,
        *,
        redact: Redact = unredacted,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[str], str] = new_id,
        lease: float = LEASE_SECONDS,
        named: Callable[[str], str] = project_name,
    ) -> None:
        self._worker = worker_for(url, lease)
        self._link = self._worker.records
        self._redact = redact
        self._clock = clock
        self._new_id = new_id
        self._named = named

    def create(self, project: str) -> PostgresJournal:
        """A new session of this project, open for writing."""
        values = {"project": self._named(project), "holder": self._worker.id, "claim": new_id("")}

        def create() -> str:
            id = self._new_id("")
            self._link.run(lambda one: one.execute(_CREATE, {**values, "id": id}))
            return id

        with self._worker.claiming():
            return self._journal(self._link.patiently(create, self._worker.lease), 1, 0)

    def open(self, name: str, *, take: bool = False) -> PostgresJournal:
        """Open a session for writing; refused while another process has it, unless it is taken."""
        id, claim = self.find(name), new_id("")
        values = {"id": id, "holder": self._worker.id, "claim": claim}

        def opened(connection: Connection) -> tuple[int, int]:
            with connection.transaction():
                found = self._free(connection, id, take=take, claim=claim)
                if found is not None:
                    return found
                row = connection.execute(_CLAIM, values).fetchone()
                # What was asked of the last holder is not meant for this one.
                connection.execute(_NO_COMMANDS, values)
            if row is None:
                raise SessionError(f'session "{id}" was deleted')
            return int(row[0]), int(row[1])

        with self._worker.claiming():
            epoch, last = self._link.patiently(lambda: self._link.run(opened), self._worker.lease)
            return self._journal(id, epoch, last)

    def cancel(self, name: str) -> str:
        """Asks the process that holds a session to end its turn; returns that process."""
        id = self.find(name)

        def cancel(connection: Connection) -> str:
            with connection.transaction():
                try:
                    self._free(connection, id)
                except SessionInUse as error:
                    connection.execute(_COMMAND, {"id": id, "kind": CANCEL})
                    return error.holder
            raise SessionError(f'session "{id}" is not in use: there is nothing to cancel')

        return self._link.patiently(lambda: self._link.run(cancel), 0.0)

    def read(self, name: str, *, after: int = 0) -> Contents:
        """The contents of a session, also of one in use."""
        id = self.find(name)
        rows, damage = good(rows_of(self._worker, id, after), after)
        kept, skipped = records_in(rows)
        (project,) = self._one("SELECT project FROM sessions WHERE id = %(id)s", id)
        return Contents(
            id=id, project=project, records=tuple(kept), salvaged=damage, skipped=skipped
        )

    def find(self, name: str) -> str:
        """The id of the session with this id or unique id prefix."""
        found = self._link.ask(
            "SELECT id FROM sessions WHERE starts_with(id, %(name)s) ORDER BY id LIMIT 1000",
            {"name": name.replace("\0", "")},
            patience=self._worker.lease,
        )
        return find_id(name, (row[0] for row in found))

    def list(self, project: str | None = None, *, children: bool = False) -> list[Summary]:
        """The sessions of a project, or all; most recent first, without empty ones.

        Those of subagents only if `children`.
        """
        where = "" if project is None else "AND project = %(project)s"
        named = None if project is None else self._named(project)
        values = {"project": named, "children": children}
        rows = self._link.ask(_LIST.format(where=where), values)
        return [Summary(**dict(zip(_LISTED, row, strict=True))) for row in rows]

    def search(self, words: str, project: str | None = None) -> set[str]:
        """The ids of sessions in whose messages the words occur, in any case."""
        wanted = words.casefold()
        where = "" if project is None else "AND s.project = %(project)s"
        values: dict[str, object] = {"project": None if project is None else self._named(project)}
        if words.isascii() and words.replace(" ", "").isalnum():
            # The server sorts out most; what it finds is looked at again.
            where += " AND convert_from(r.body, 'UTF8') ILIKE %(words)s"
            values["words"] = f"%{words}%"

        def found(connection: Connection) -> set[str]:
            ids: set[str] = set()
            with connection.transaction(), connection.cursor("search") as cursor:
                cursor.itersize = _AT_ONCE
                for session, body in cursor.execute(_MESSAGES.format(where=where).encode(), values):
                    if session not in ids and _says(body, wanted):
                        ids.add(session)
            return ids

        return self._link.patiently(lambda: self._link.run(found), 0.0)

    def prompts(self, project: str, most: int) -> tuple[Message, ...]:
        """The user's messages in the sessions of a project, the newest sessions first."""
        rows = self._link.ask(_PROMPTS, {"project": self._named(project), "most": 10 * most})
        said = (_message(body) for _, body in rows)
        found = (one for one in said if one is not None and one.role == "user" and not one.results)
        return tuple(islice(found, most))

    def latest(self, project: str) -> Summary | None:
        """The most recent session of this project that has a turn."""
        return next((one for one in self.list(project) if one.turns), None)

    def fork(self, name: str, upto: int | None = None) -> str:
        """Copy a session, up to record `upto`, to a new id; also one in use."""
        id = self.find(name)
        rows, _ = good(rows_of(self._worker, id, upto=upto))
        if not rows:
            raise SessionError(f'session "{id}" has no record to fork from')
        copy = self._new_id("")
        rows = (*rows, forked_row(copy, id, rows, self._clock()))
        self._put(copy, rows, lambda one, facts: one.execute(_FORK, {**facts, "id": id}))
        return copy

    def delete(self, name: str) -> str:
        """Remove a session and those of its subagents; refused while it is in use."""
        id = self.find(name)
        below = [one.id for one in self.list(children=True) if one.parent == id]

        def delete(connection: Connection) -> None:
            with connection.transaction():
                self._free(connection, id)
                connection.execute(
                    b"DELETE FROM sessions WHERE id = ANY(%(ids)s)", {"ids": [id, *below]}
                )

        self._link.patiently(lambda: self._link.run(delete), 0.0)
        return id

    def forget(self, before: float) -> tuple[str, ...]:
        """Delete the sessions unchanged since then, except those in use."""
        forgotten: tuple[str, ...] = ()
        while found := self._link.ask(_FORGET, {"before": before}):
            forgotten = (*forgotten, *(row[0] for row in found))
        return forgotten

    def export_rows(self, name: str) -> Copied:
        """Every row of a session that is not in use, byte for byte."""
        id = self.find(name)
        self._link.run(lambda one: self._free(one, id))
        project, facts = self._one("SELECT project, facts FROM sessions WHERE id = %(id)s", id)
        return Copied(id=id, project=project, facts=facts, rows=tuple(rows_of(self._worker, id)))

    def import_rows(self, copied: Copied) -> int:
        """Adds the rows that this store does not have; returns their number."""
        there = self._link.ask("SELECT 1 FROM sessions WHERE id = %(id)s", {"id": copied.id})
        if not there:
            self._put(copied.id, copied.rows, lambda one, facts: self._insert(one, copied, facts))
            return len(copied.rows)
        journal = self.open(copied.id)
        try:
            rows = missing_rows(copied, rows_of(self._worker, copied.id))
            return self._add(copied.id, rows, journal.epoch)
        finally:
            journal.close_now()

    def _insert(self, connection: Connection, copied: Copied, facts: dict[str, Any]) -> None:
        values = {
            **facts,
            "project": copied.project,
            "facts": msgspec.json.encode(copied.facts).decode(),
        }
        connection.execute(
            b"INSERT INTO sessions (id, project, title, model, turns, last_seq, first_at, last_at, "
            b"facts) VALUES (%(copy)s, %(project)s, %(title)s, %(model)s, %(turns)s, %(last)s, "
            b"%(first_at)s, %(last_at)s, %(facts)s::jsonb)",
            values,
        )

    def _put(
        self,
        id: str,
        rows: tuple[Row, ...],
        insert: Callable[[Connection, dict[str, Any]], object],
    ) -> None:
        """Creates a session with these rows, whole or not at all."""

        def put(connection: Connection) -> None:
            with connection.transaction():
                insert(connection, {**_facts(rows), "copy": id})
                with connection.cursor() as cursor:
                    cursor.executemany(_INSERT, [_values(id, row) for row in rows])

        self._link.patiently(lambda: self._link.run(put, endless=True), 0.0)

    def _add(self, id: str, rows: tuple[Row, ...], epoch: int) -> int:
        def add(connection: Connection) -> None:
            with connection.transaction():
                facts = {**_facts(rows), "id": id, "epoch": epoch}
                connection.execute(
                    b"UPDATE sessions SET last_seq = %(last)s, last_at = %(last_at)s, "
                    b"turns = turns + %(turns)s WHERE id = %(id)s AND epoch = %(epoch)s",
                    facts,
                )
                with connection.cursor() as cursor:
                    cursor.executemany(_INSERT, [_values(id, row) for row in rows])

        if rows:
            self._link.run(add)
        return len(rows)

    def _free(
        self, connection: Connection, id: str, *, take: bool = False, claim: str = ""
    ) -> tuple[int, int] | None:
        """Raises if a live process holds the session; returns the claim that was made already."""
        connection.execute(_LOCK, {"id": id})
        row = connection.execute(_HOLDER, {"id": id}).fetchone()
        if row is None:
            raise SessionError(f'no session "{id}"; see toolwire sessions list --all')
        epoch, last, claimed, pid, host, place, left = row
        if claim and claimed == claim:
            return int(epoch), int(last)
        if pid is not None and not take and not has_ended(place, pid):
            raise SessionInUse(id, f"process {pid} on {host}", until=time.time() + float(left))
        return None

    def _one(self, statement: str, id: str) -> tuple[Any, ...]:
        found = self._link.ask(statement, {"id": id}, patience=self._worker.lease)
        if not found:
            raise SessionError(f'no session "{id}"; see toolwire sessions list --all')
        return found[0]

    def _journal(self, id: str, epoch: int, last: int) -> PostgresJournal:
        return PostgresJournal(
            self._worker,
            _writer_of(self._worker),
            session=id,
            epoch=epoch,
            last=last,
            redact=self._redact,
            clock=self._clock,
        )


_LISTED = ("id", "project", "title", "model", "turns", "records", "started", "updated", "parent")


def _message(body: bytes) -> Message | None:
    """The message of a record, unless it is context."""
    event = records.decode(bytes(body))
    return event.message if isinstance(event, MessageAdded) and not event.context else None


def _says(body: bytes, wanted: str) -> bool:
    message = _message(body)
    return message is not None and wanted in message.text.casefold()


def _values(id: str, row: Row) -> tuple[object, ...]:
    return id, row.seq, row.at, row.kind, row.body, row.crc


def _facts(rows: tuple[Row, ...]) -> dict[str, Any]:
    """Returns what a list shows of a session with these rows."""
    title, model, turns = "", "", 0
    for row in rows:
        if row.kind not in ("message_added", "session_opened", "turn_started"):
            continue
        event = records.decode(row.body)
        if event is None:
            continue
        facts = facts_of(event)
        title = title or str(facts["title"])
        model = str(facts["model"]) or model
        turns += row.kind == "turn_started"
    return {
        **{"title": title, "model": model, "turns": turns, "last": rows[-1].seq},
        **{"first_at": rows[0].at, "last_at": rows[-1].at},
    }
