"""The live stream of requests that begin, change and end."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from toolwire.gateway.console.calls import ApiError, Call
from toolwire.gateway.console.rows import RequestRow, RowFilter, row_of, row_of_ledger
from toolwire.gateway.console.streams import GAP_SECONDS, EventStream

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console

_POLL_SECONDS = 0.25
_MOST_BATCH = 1_000
"""Rows of one batch; a reader with more of them behind refetches its list."""
_OTHERS_SECONDS = 1.0
_LATE_SECONDS = 5.0
"""A request is booked so long after its end at most."""
_CATCH_UP = 3_600.0
"""Seconds that a request may have lasted whose end a stream missed."""


async def stream(console: Console, call: Call) -> None:
    """Streams the requests that begin, change and end."""
    watch = console.host.gateway.watch
    chosen = RowFilter(call.query)
    topics = {one.strip() for one in call.query.get("topics", "requests,questions").split(",")}
    given = call.asked.field("last-event-id") or call.query.get("after", "")
    if given and not (given.isascii() and given.isdigit() and len(given) < 17):
        raise ApiError(400, f'after: "{given[:50]}" is not the number of an event')
    last = int(given) if given else watch.n
    events = EventStream(call.out)
    await events.begin()
    await events.send("hello", _hello(console))
    if given and "requests" in topics:
        last = await _caught_up(console, events, chosen, last)
    others = console.followed(topics - {"requests"})
    workers = OtherWorkers(console)
    while not console.closing:
        if "requests" in topics:
            watch.poll()
            last = await _batch(console, events, chosen, last)
            rows = await workers.ended(chosen)
            if rows:
                await events.send("requests", {"requests": rows})
        for name, data in await others.changes():
            await events.send(name, data)
        await events.beat()
        await asyncio.sleep(GAP_SECONDS)
        if watch.n <= last or "requests" not in topics:
            await watch.changes.wait(_POLL_SECONDS)
    await events.end()


class OtherWorkers:
    """Requests that ended in other workers of the gateway, which the ledger has."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._looked = time.time()
        self._sent: deque[str] = deque(maxlen=_MOST_BATCH * 2)

    async def ended(self, chosen: RowFilter) -> list[RequestRow]:
        """Those that ended since the last look, about every second."""
        now = time.time()
        if self._console.host.options.console_port == 0 or now - self._looked < _OTHERS_SECONDS:
            return []
        since, self._looked = self._looked - _LATE_SECONDS, now
        conditions, values = chosen.sql()
        found = await self._console.host.accounts.store.find_requests(
            f"{conditions} AND time >= ? AND time + duration > ?",
            [*values, since - _CATCH_UP, since],
            _MOST_BATCH,
        )
        watch = self._console.host.gateway.watch
        new = [one for one in found if one["id"] not in self._sent and not watch.find(one["id"])]
        self._sent.extend(one["id"] for one in new)
        return [row_of_ledger(one) for one in reversed(new)]


def _hello(console: Console) -> dict[str, Any]:
    watch = console.host.gateway.watch
    return {
        "server": console.boot,
        "n": watch.n,
        "running": [watched.record.id for watched in watch.running],
        "seen": watch.seen,
        "recording": console.host.gateway.parts.settings.record,
    }


async def _caught_up(console: Console, stream: EventStream, chosen: RowFilter, last: int) -> int:
    """Sends what ended after `last` before this process began, from the ledger."""
    since = last / 1_000_000
    conditions, values = chosen.sql()
    store = console.host.accounts.store
    found = await store.find_requests(
        f"{conditions} AND time >= ? AND time + duration > ?",
        [*values, since - _CATCH_UP, since],
        _MOST_BATCH + 1,
    )
    watch = console.host.gateway.watch
    rows = [row_of_ledger(one) for one in found if watch.find(one["id"]) is None]
    rows = sorted((row for row in rows if row.n > last), key=lambda row: row.n)
    if len(rows) > _MOST_BATCH:
        await stream.send("dropped", {"dropped": len(rows)})
    elif rows:
        await stream.send("requests", {"requests": rows}, rows[-1].n)
        return max(last, rows[-1].n)
    return last


async def _batch(console: Console, stream: EventStream, chosen: RowFilter, last: int) -> int:
    """Sends what has changed after `last`; returns the number of the last change."""
    watch = console.host.gateway.watch
    if watch.n <= last:
        return last
    changed, lost = watch.since(last)
    number = watch.n
    if lost or len(changed) > _MOST_BATCH:
        await stream.send("dropped", {"dropped": len(changed)}, number)
        return number
    rows = [row for row in map(row_of, changed) if chosen.accepts(row)]
    if rows:
        await stream.send("requests", {"requests": rows}, number)
    return number
