"""Events of a session: stored ones, and those that follow with the pieces of replies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from toolwire.gateway.console.calls import Call
from toolwire.gateway.console.streams import GAP_SECONDS, EventStream

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console
    from toolwire.gateway.console.hosted import LiveLog

_POLL_SECONDS = 0.3
_MOST_RECORDS = 1_000


class RecordRow(msgspec.Struct, frozen=True):
    """A stored event."""

    seq: int
    at: float
    event: msgspec.Raw


class RecordList(msgspec.Struct, frozen=True):
    """Stored events in order."""

    records: list[RecordRow]
    next: int | None


async def events(console: Console, call: Call) -> None:
    """Answers with stored events, or streams them and what follows."""
    row = await console.sessions.row(call.parts["id"])
    given = call.asked.field("last-event-id")
    after = int(given) if given.isascii() and given.isdigit() else call.number("after", 0)
    if "text/event-stream" in call.asked.field("accept"):
        await _stream(console, call, row.id, after)
        return
    size = call.limit(500, _MOST_RECORDS)
    rows = await _records(console, row.id, after)
    more = rows[size - 1].seq if len(rows) > size else None
    await call.answer(RecordList(rows[:size], more))


async def _records(console: Console, session: str, after: int) -> list[RecordRow]:
    found = await asyncio.to_thread(console.sessions.journals.store.rows, session, after)
    return [RecordRow(row.seq, row.at, msgspec.Raw(row.body)) for row in found]


async def _stream(console: Console, call: Call, session: str, after: int) -> None:
    sessions = console.sessions
    stream = EventStream(call.out)
    await stream.begin()
    last, state, n = after, None, 0
    log: LiveLog | None = None
    followed = console.followed({"questions"})
    while not console.closing:
        hosted = sessions.find(session)
        if hosted is None or log is not hosted.live:
            # At the beginning, or another process continues the session.
            last = await _send_records(console, stream, session, last, None)
            log = None if hosted is None else hosted.live
            if log is not None:
                n = log.n
                if not log.partial.empty:
                    await stream.send("partial", log.partial)
        else:
            n, last = await _send_live(console, stream, session, hosted.live, n, last)
        row = await sessions.row(session)
        if row != state:
            state = row
            await stream.send("session", {"session": row})
        for name, data in await followed.changes():
            await stream.send(name, data)
        await stream.beat()
        await asyncio.sleep(GAP_SECONDS)
        if hosted is None or hosted.live.n == n:
            await sessions.changes.wait(_POLL_SECONDS if hosted is None else 2.0)
    await stream.end()


async def _send_records(
    console: Console, stream: EventStream, session: str, last: int, upto: int | None
) -> int:
    """Sends the stored records after `last`; returns the number of the last one."""
    rows = await _records(console, session, last)
    if upto is not None:
        rows = [row for row in rows if row.seq <= upto]
    for start in range(0, len(rows), _MOST_RECORDS):
        page = rows[start : start + _MOST_RECORDS]
        await stream.send("records", {"records": page}, page[-1].seq)
    return rows[-1].seq if rows else last


async def _send_live(
    console: Console, stream: EventStream, session: str, log: LiveLog, n: int, last: int
) -> tuple[int, int]:
    """Sends pieces and records in their order; returns how far it came in both."""
    from toolwire.gateway.console.hosted import merged  # noqa: PLC0415 - loads the agent

    upto = log.n
    entries = log.since(n)
    if entries is None:
        await stream.send("dropped", {"dropped": upto - n})
        last = await _send_records(console, stream, session, last, log.seq)
        await stream.send("partial", log.partial)
        return upto, last
    for group in _groups(entries):
        if isinstance(group, int):
            last = await _send_records(console, stream, session, last, group)
        else:
            await stream.send("pieces", {"pieces": merged(group)})
    return upto, last


def _groups(entries: list[Any]) -> Iterator[Any]:
    """Runs of pieces, and the last number of each run of records."""
    pieces: list[Any] = []
    number = None
    for entry in entries:
        if isinstance(entry, int):
            if pieces:
                yield pieces
                pieces = []
            number = entry
        else:
            if number is not None:
                yield number
                number = None
            pieces.append(entry)
    if number is not None:
        yield number
    if pieces:
        yield pieces
