"""The journal of one session in PostgreSQL: appended to by the process that holds its epoch."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from toolwire.agent.events import AgentEvent, MessageAdded, SessionOpened, ToolStarted
from toolwire.errors import SessionError
from toolwire.sessions import records
from toolwire.sessions.files import Row
from toolwire.sessions.ordered_writes import OrderedWrites
from toolwire.sessions.postgres.link import Connection, ConnectionBroken, returned, waits
from toolwire.sessions.postgres.worker import Held, StoreWorker
from toolwire.sessions.read_file import records_in
from toolwire.sessions.records import Redact, redacted
from toolwire.sessions.replay import title_of
from toolwire.sessions.store import Record, Salvaged, SessionLost, Skipped

CANCEL = "cancel"
# The fence: without this epoch and this last record nothing is written.
_OWN = (
    "own AS (UPDATE sessions SET last_seq = last_seq + 1, updated = now(), last_at = $4::float8, "
    "first_at = CASE WHEN last_seq = 0 THEN $4::float8 ELSE first_at END, "
    "title = CASE WHEN title = '' THEN $8::text ELSE title END, "
    "model = CASE WHEN $9::text = '' THEN model ELSE $9::text END, "
    "turns = turns + $10::int "
    "WHERE id = $1::text AND epoch = $2::bigint AND last_seq = $3::bigint RETURNING last_seq) "
    "INSERT INTO records SELECT $1::text, last_seq, $4::float8, $5::text, $6::bytea, $7::bigint, "
    "$2::bigint FROM own RETURNING seq"
)
APPEND = f"WITH {_OWN}".encode()
# What does not matter is not waited for on the server's disk; its order is kept all the same.
APPEND_SOON = (
    "WITH soft AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), "
    f"{_OWN.replace('FROM own', 'FROM own, soft')}"
).encode()
_BODY = 5
_FORMATS = [0] * _BODY + [1] + [0] * 4
"""Which values are sent as they are: the body."""
_LAST = b"SELECT last_seq FROM sessions WHERE id = %(session)s AND epoch = %(epoch)s"
_WRITTEN = b"SELECT epoch, crc FROM records WHERE session = %(session)s AND seq = %(seq)s"
_ROWS = (
    b"SELECT seq, at, kind, body, crc FROM records WHERE session = %(session)s AND seq > %(after)s "
    b"ORDER BY seq"
)
_EMPTY = b"DELETE FROM sessions WHERE id = %(session)s AND epoch = %(epoch)s AND last_seq = 0"
_RELEASE = (
    b"UPDATE sessions SET holder = NULL, claim = '' WHERE id = %(session)s AND epoch = %(epoch)s"
)


class PostgresJournal:
    """One session, held for writing while the heartbeat of this process lasts."""

    def __init__(
        self,
        worker: StoreWorker,
        writer: ThreadPoolExecutor,
        *,
        session: str,
        epoch: int,
        last: int,
        redact: Redact,
        clock: Callable[[], float],
    ) -> None:
        self.session = session
        self.epoch = epoch
        self.salvaged: Salvaged | None = None
        self.skipped: Skipped | None = None
        self._worker = worker
        # Shared by the sessions of a process: records are written in the order they were appended.
        self._writer = writer
        self._redact = redact
        self._clock = clock
        self._last = last
        self._soon: list[list[bytes]] = []
        """Records that a server that crashes may forget: all since one was waited for."""
        self._closed = False
        self._lost: Future[str] = Future()
        self._writes = OrderedWrites(self._writer)
        self._cancelled: Future[None] = Future()
        worker.hold(session, Held(epoch, self._lose, self._obey))

    @property
    def notices(self) -> list[str]:
        """Notices for the user: damage, and records that the last read skipped."""
        return [one.message for one in (self.salvaged, self.skipped) if one is not None]

    async def append(self, session: str, event: AgentEvent) -> int:
        """Once called, the record is written even if the caller is cancelled meanwhile."""
        self._belongs(session)
        if not records.is_stored(event):
            return self._last
        if self._closed:
            raise SessionError(f'session "{self.session}" is closed; open it again to continue')
        return await self._writes.run(self._write, event)

    async def read(self, session: str, after: int = 0) -> list[AgentEvent]:
        """All events after that record number."""
        return [record.event for record in await self.records(session, after)]

    async def records(self, session: str, after: int = 0) -> list[Record]:
        """The events with numbers and times."""
        self._belongs(session)
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._writer, rows_of, self._worker, session, after)
        rows, self.salvaged = good(found, after)
        read, self.skipped = records_in(rows)
        return read

    async def lost(self) -> str:
        """Returns the reason when the session is no longer held by this process."""
        return await asyncio.shield(asyncio.wrap_future(self._lost))

    async def cancelled(self) -> None:
        """Returns when another process asks to end the running turn."""
        await asyncio.shield(asyncio.wrap_future(self._cancelled))
        self._cancelled = Future()

    async def close(self) -> None:
        """Release the session; an empty one is removed."""
        if not self._closed:
            self._closed = True
            loop = asyncio.get_running_loop()
            await asyncio.shield(loop.run_in_executor(self._writer, self._release))

    def close_now(self) -> None:
        """The same for callers without an event loop."""
        if not self._closed:
            self._closed = True
            self._writer.submit(self._release).result()

    def _release(self) -> None:
        values = {"session": self.session, "epoch": self.epoch}

        def release(connection: Connection) -> None:
            connection.execute(_EMPTY if not self._last else _RELEASE, values)

        owed = self.epoch
        try:
            with suppress(ConnectionBroken, SessionError):
                self._worker.records.run(release)
                owed = 0
        finally:
            self._worker.release(self.session, owed=owed)

    def _write(self, event: AgentEvent) -> int:
        self._check_held()
        body = redacted(records.encode(event), self._redact)
        seq, at, kind = self._last + 1, float(self._clock()), records.kind_of(event)
        crc = records.checksum(seq, at, kind, body)
        facts = facts_of(event)
        texts = (self.session, self.epoch, self._last, repr(at), kind, "", crc)
        values = [str(one).encode("utf-8", "replace") for one in (*texts, *facts.values())]
        values[_BODY] = body
        matters = records.matters(event)
        self._insert(APPEND if matters else APPEND_SOON, values, seq, crc)
        self._last = seq
        if matters:
            # The server's log is in order: what came before is on its disk as well.
            self._soon.clear()
        else:
            self._soon.append(values)
        if matters and isinstance(event, ToolStarted):
            self._check_lease()
        return seq

    def _insert(self, statement: bytes, values: list[bytes], seq: int, crc: int) -> None:
        """Writes a record once: a broken connection leaves open whether it was written."""
        named = {"session": self.session, "seq": seq}
        for wait in waits(self._worker.lease):
            try:
                if self._worker.records.run(lambda one: returned(one, statement, values, _FORMATS)):
                    return
                found = self._worker.records.run(
                    lambda one: one.execute(_WRITTEN, named).fetchone()
                )
                if found is None and self._repeated():
                    continue
            except ConnectionBroken as error:
                self._check_held()
                if wait is None:
                    raise SessionError(
                        f'cannot write session "{self.session}": {error}; is the server of '
                        "sessions.store running?"
                    ) from error
                time.sleep(wait)
                continue
            if found == (self.epoch, crc):
                return
            self._lose("another process has taken it over")
            self._check_held()

    def _repeated(self) -> bool:
        """Writes the records again that the server forgot in a crash; False if there are none."""
        named = {"session": self.session, "epoch": self.epoch}
        found = self._worker.records.run(lambda one: one.execute(_LAST, named).fetchone())
        missing = 0 if found is None else self._last - found[0]
        if not 0 < missing <= len(self._soon):
            return False
        return all(
            self._worker.records.run(lambda one, row=values: returned(one, APPEND, row, _FORMATS))
            for values in self._soon[-missing:]
        )

    def _check_held(self) -> None:
        if self._lost.done():
            raise SessionLost(self.session, self._lost.result())

    def _check_lease(self) -> None:
        """Raises unless the lease lasts long enough for a tool to start."""
        if not self._worker.fresh:
            with suppress(ConnectionBroken):
                self._worker.beat()
        if not self._worker.fresh:
            self._lose("the session store cannot be reached")
        self._check_held()

    def _lose(self, why: str) -> None:
        with suppress(Exception):
            self._lost.set_result(why)

    def _obey(self, command: str) -> None:
        if command == CANCEL:
            with suppress(Exception):
                self._cancelled.set_result(None)

    def _belongs(self, session: str) -> None:
        if session != self.session:
            raise SessionError(f'this journal belongs to session "{self.session}", not "{session}"')


def facts_of(event: AgentEvent) -> dict[str, object]:
    """Returns what a record adds to its session's line in a list."""
    title = model = ""
    if isinstance(event, MessageAdded) and not event.context and event.message.role == "user":
        title = title_of(event.message.text)
    if isinstance(event, SessionOpened):
        model = event.model
    # PostgreSQL has no NUL in texts.
    turns = int(records.kind_of(event) == "turn_started")
    return {"title": title.replace("\0", ""), "model": model.replace("\0", ""), "turns": turns}


def rows_of(
    worker: StoreWorker, session: str, after: int = 0, upto: int | None = None
) -> list[Row]:
    """Returns the stored rows after a record."""

    def read(connection: Connection) -> list[Row]:
        found = connection.execute(_ROWS, {"session": session, "after": after}, binary=True)
        return [Row(*row) for row in found.fetchall() if upto is None or row[0] <= upto]

    return worker.records.patiently(lambda: worker.records.run(read), worker.lease)


def good(rows: list[Row], after: int = 0) -> tuple[tuple[Row, ...], Salvaged | None]:
    """Returns the rows before the first damaged one, and what is said of the damage."""
    for place, row in enumerate(rows):
        if (row.seq, row.crc) == (
            after + place + 1,
            records.checksum(row.seq, row.at, row.kind, row.body),
        ):
            continue
        kept = tuple(rows[:place])
        last = kept[-1].at if kept else None
        damage = f"record {after + place + 1} has a wrong checksum or is missing"
        return kept, Salvaged(records=len(kept), lost_after=last, damage=damage)
    return tuple(rows), None
