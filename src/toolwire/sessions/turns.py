"""A line a turn: what was asked, how much was done, how it ended."""

from collections.abc import Iterable, Sequence

import msgspec

from toolwire.agent.events import MessageAdded, ToolFinished, TurnEnded, TurnStarted
from toolwire.errors import SessionError
from toolwire.sessions.journal import Record


class TurnLine(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a session."""

    turn: int
    """Counts from 1."""
    at: float
    """When it began; seconds since 1970."""
    last: int
    """The number of its last record."""
    prompt: str = ""
    calls: int = 0
    end: str = ""
    """Why it ended; empty if it did not."""


def turns_of(records: Iterable[Record]) -> list[TurnLine]:
    """The turns in order."""
    turns: list[TurnLine] = []
    for record in records:
        if isinstance(record.event, TurnStarted):
            turns.append(TurnLine(turn=len(turns) + 1, at=record.at, last=record.seq))
        elif turns:
            turns[-1] = _with(turns[-1], record)
    return turns


def record_after(records: Sequence[Record], turn: int) -> int:
    """The number of the last record that a copy with so many turns keeps."""
    turns = turns_of(records)
    if turn > len(turns):
        raise SessionError(
            f"the session has {len(turns)} turns; name a turn from 0 to {len(turns)}"
        )
    if turn:
        return turns[turn - 1].last
    first = (record.seq for record in records if isinstance(record.event, TurnStarted))
    return next(first, records[-1].seq + 1 if records else 1) - 1


def _with(turn: TurnLine, record: Record) -> TurnLine:
    event = record.event
    prompt, calls, end = turn.prompt, turn.calls, turn.end
    if isinstance(event, MessageAdded) and event.message.role == "user" and not event.context:
        prompt = prompt or event.message.text
    elif isinstance(event, ToolFinished):
        calls += 1
    elif isinstance(event, TurnEnded):
        end = str(event.reason)
    return TurnLine(
        turn=turn.turn, at=turn.at, last=record.seq, prompt=prompt, calls=calls, end=end
    )
