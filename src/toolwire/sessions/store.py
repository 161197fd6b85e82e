"""What a store of sessions is: its protocols, and the values they return."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from toolwire.agent.events import AgentEvent, SessionOpened
from toolwire.errors import SessionError
from toolwire.messages import Message
from toolwire.sessions import records
from toolwire.sessions.files import Row
from toolwire.terminal_text import one_line

_MOST_KINDS = 5
_LONGEST_KIND = 60


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One event as stored."""

    seq: int
    """Counts from 1; a gap is a record that only a newer version can decode."""
    at: float
    """Unix time, by the clock of the machine that wrote it."""
    event: AgentEvent


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a salvage."""

    records: int
    """Number of good records, counted from the first."""
    lost_after: float | None
    """Time of the last good record; None if there is none."""
    damage: str
    kept_as: str = ""
    """Name of the damaged file; empty while it is not renamed."""

    @property
    def message(self) -> str:
        """Notice for the user."""
        if self.lost_after is None:
            saved = "nothing of it could be saved"
        else:
            when = datetime.fromtimestamp(self.lost_after, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            saved = f"{self.records} records up to {when} are good, anything later is lost"
        kept = f"; the damaged file is kept as {self.kept_as}" if self.kept_as else ""
        return f"the session's file was damaged ({self.damage}): {saved}{kept}"


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Intact records whose events only a newer version can decode."""

    records: int
    kinds: tuple[str, ...]

    @property
    def message(self) -> str:
        """Notice for the user."""
        shown = (one_line(kind)[:_LONGEST_KIND] for kind in self.kinds[:_MOST_KINDS])
        named = ", ".join(f'"{kind}"' for kind in shown)
        more = ", …" if len(self.kinds) > _MOST_KINDS else ""
        what = "1 record" if self.records == 1 else f"{self.records} records"
        return (
            f"skipped {what} of a newer toolwire that this version cannot read: {named}{more}; "
            "update toolwire to read them"
        )


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
    parent: str = ""
    """The session whose call ran it, for that of a subagent."""
    damaged: bool = False
    """Whether a quick check found damage; opening it checks every record."""


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


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """A session on its way to another store, with its rows as they are."""

    id: str
    project: str
    facts: dict[str, str]
    """What is known of the session besides its records, such as `forked_from`."""
    rows: tuple[Row, ...]


class SessionLost(SessionError):
    """The session is no longer held by this process: nothing more may be done or written."""

    def __init__(self, session: str, why: str) -> None:
        super().__init__(
            f'session "{session}" is no longer held by this process: {why}; nothing more was '
            "started. Continue it when it is free"
        )


def missing_rows(copied: Copied, there: Sequence[Row]) -> tuple[Row, ...]:
    """Returns the rows that come after those of another store; raises if the two differ."""
    for ours, theirs in zip(there, copied.rows, strict=False):
        if (ours.seq, ours.crc) != (theirs.seq, theirs.crc):
            raise SessionError(
                f'session "{copied.id}" differs in the two stores from record {theirs.seq} on; '
                "fork it first, then copy the fork"
            )
    return copied.rows[len(there) :]


def forked_row(session: str, origin: str, rows: tuple[Row, ...], at: float) -> Row:
    """Returns the record with the origin of a copy, to be added after its rows."""
    opened = [row for row in rows if row.kind == "session_opened"]
    last = records.decode(opened[-1].body) if opened else None
    before = last if isinstance(last, SessionOpened) else SessionOpened(session="", model="")
    event = msgspec.structs.replace(before, session=session, forked_from=origin, parent=None)
    seq, kind, body = rows[-1].seq + 1, "session_opened", records.encode(event)
    return Row(seq, at, kind, body, records.checksum(seq, at, kind, body))


class Journal(Protocol):
    """Stores the events of sessions durably and in order."""

    async def append(self, session: str, event: AgentEvent) -> int:
        """Returns the record's number once it is durable; the last number for an event that is
        not stored.
        """
        ...

    async def read(self, session: str, after: int = 0) -> list[AgentEvent]:
        """All events after that record, in order."""
        ...


def find_id(name: str, ids: Iterable[str]) -> str:
    """The id that `name` is or, alone among these, begins."""
    found = sorted(id for id in ids if id.startswith(name)) if name else []
    if name in found:
        return name
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessionError(f'no session "{name}"; see toolwire sessions list --all')
    shown = ", ".join(found[:5])
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    raise SessionError(f'"{name}" matches {len(found)} sessions: {shown}{more}')


class OpenJournal(Journal, Protocol):
    """The journal of one session, held for writing until it is closed."""

    @property
    def session(self) -> str:
        """The session's id."""
        ...

    @property
    def notices(self) -> list[str]:
        """Notices for the user about what could not be read."""
        ...

    async def lost(self) -> str:
        """Returns the reason when the session is no longer held; never for a file."""
        ...

    async def cancelled(self) -> None:
        """Returns when another process asks to end the running turn; never for a file."""
        ...

    async def close(self) -> None:
        """Release the session; an empty one is removed."""
        ...


class SessionStore(Protocol):
    """The sessions of a user. Every method blocks; only journals are for event loops.

    A project is a name: the path of a folder on this machine, or the address of a repository. A
    session is named by its id or a unique beginning of it; errors are `SessionError`.
    """

    def create(self, project: str) -> OpenJournal:
        """A new session of this project, open for writing."""
        ...

    def open(self, name: str, *, take: bool = False) -> OpenJournal:
        """Open a session for writing; `SessionInUse` while another process has it.

        `take` takes it over from a process on another machine; a file cannot be taken over.
        """
        ...

    def cancel(self, name: str) -> str:
        """Asks the process that holds a session to end its turn; returns that process."""
        ...

    def read(self, name: str, *, after: int = 0) -> Contents:
        """The contents of a session after that record, also of one in use."""
        ...

    def find(self, name: str) -> str:
        """The id of the session."""
        ...

    def list(self, project: str | None = None, *, children: bool = False) -> list[Summary]:
        """The sessions of a project, or all; most recent first, without empty ones.

        Those of subagents only if `children`.
        """
        ...

    def search(self, words: str, project: str | None = None) -> set[str]:
        """The ids of sessions in whose messages the words occur, in any case."""
        ...

    def prompts(self, project: str, most: int) -> tuple[Message, ...]:
        """The user's messages in the sessions of a project, the newest sessions first."""
        ...

    def latest(self, project: str) -> Summary | None:
        """The most recent session of this project that has a turn."""
        ...

    def fork(self, name: str, upto: int | None = None) -> str:
        """Copy a session, up to record `upto`, to a new id; also one in use."""
        ...

    def delete(self, name: str) -> str:
        """Remove a session and those of its subagents; refused while it is in use."""
        ...

    def forget(self, before: float) -> tuple[str, ...]:
        """Delete the sessions unchanged since then, except those in use."""
        ...

    def export_rows(self, name: str) -> Copied:
        """Every row of a session that is not in use, byte for byte."""
        ...

    def import_rows(self, copied: Copied) -> int:
        """Adds the rows that this store does not have; returns their number."""
        ...
