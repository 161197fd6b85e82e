"""Books requests: those that end at about the same time in one transaction, by few statements."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

from toolwire.gateway.ledger_rows import COLUMNS
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import NANO, Entry, Window, nano, window_name
from toolwire.gateway.usage import Latency, add_latency

if TYPE_CHECKING:
    from toolwire.gateway.database import Database, SqlConnection

Group: TypeAlias = tuple[str, str, str, str]
"""Day, key, route and model of a sum."""
_WINDOWS: tuple[Window, ...] = ("hour", "day", "month", "total")
_MANY = 4
"""Requests of one batch after which the next one waits for more."""
_GATHERED = 0.005
"""Seconds from the start of such a batch to that of the next."""
_MOST_ROWS = 16
"""Of one statement. Each number of rows is compiled on its own, and then stays in memory."""
_INSERT = f"INSERT INTO requests ({', '.join(COLUMNS)}) VALUES "  # noqa: S608 - constants
_ADD_SUM = """
INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (day, key, route, model) DO UPDATE SET
    key_name = excluded.key_name, requests = sums.requests + excluded.requests,
    errors = sums.errors + excluded.errors, input = sums.input + excluded.input,
    output = sums.output + excluded.output, cached = sums.cached + excluded.cached,
    cache_write = sums.cache_write + excluded.cache_write,
    reasoning = sums.reasoning + excluded.reasoning, cost = sums.cost + excluded.cost,
    unpriced = sums.unpriced + excluded.unpriced
"""
_ADD_SPENDING = """
INSERT INTO spending VALUES (?, ?, ?)
ON CONFLICT (key, time_window) DO UPDATE SET spent = spending.spent + excluded.spent
"""
_USED = """
INSERT INTO last_used VALUES (?, ?)
ON CONFLICT (key) DO UPDATE SET at = excluded.at WHERE excluded.at > last_used.at
"""


class Bookings:
    """Requests on their way into the ledger.

    Those that end while others are being written are the next batch: the busier the gateway, the
    fewer transactions and changes of thread each request costs.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Entry, asyncio.Future[None]]] = []
        self._writing = False
        self._next = 0.0
        """When the next batch may begin, by the loop's clock."""

    async def add(self, entry: Entry) -> None:
        """Books a request; returns once that is committed, even if others fail."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((entry, future))
        if not self._writing:
            # Not at once: others end in the same turn of the loop.
            self._writing = True
            self._write_soon(loop)
        await future

    def _write_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._next > loop.time():
            loop.call_at(self._next, self._write)
        else:
            loop.call_soon(self._write)

    def close(self) -> None:
        """Hands over everything that still waits."""
        entries = [entry for entry, _ in self._waiting]
        self._waiting = []
        if entries:
            self._database.write_soon(lambda base: book_entries(base, entries))

    def _write(self) -> None:
        batch, self._waiting = self._waiting, []
        if not batch:
            self._writing = False
            return
        entries = [entry for entry, _ in batch]
        loop = asyncio.get_running_loop()
        if len(batch) >= _MANY:
            self._next = loop.time() + _GATHERED

        def done(result: object, error: Exception | None) -> None:
            self._writing = bool(self._waiting)
            if self._waiting:
                self._write_soon(loop)
            if error is not None and len(batch) > 1:
                # One of them may be at fault, which must not be the others' loss.
                for one in batch:
                    self._apart(one)
            else:
                for _, future in batch:
                    _settle(future, error)

        self._database.submit(lambda base: book_entries(base, entries), done)

    def _apart(self, one: tuple[Entry, asyncio.Future[None]]) -> None:
        entry, future = one
        self._database.submit(
            lambda base: book_entries(base, (entry,)), lambda _, error: _settle(future, error)
        )


def _settle(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def book_entries(base: SqlConnection, entries: Sequence[Entry]) -> int:
    """Books requests at their end; returns how many were not booked before."""
    new = {entry.record.id: entry for entry in entries}
    for ids in _parts([entry.record.id for entry in entries if entry.reserved]):
        base.execute(f"DELETE FROM reservations WHERE id IN {_marks(len(ids))}", ids)  # noqa: S608 - marks
    for ids in _parts([*new]):
        known = f"SELECT id FROM requests WHERE id IN {_marks(len(ids))}"  # noqa: S608 - marks
        for (request,) in base.execute(known, ids).fetchall():
            del new[request]
    for part in _parts([*new.values()]):
        values: list[object] = []
        for entry in part:
            values += _values(entry.record, entry.key)
        base.execute(_insert(len(part)), values)
    if new:
        _add(base, [*new.values()])
    return len(new)


def book_interrupted(
    base: SqlConnection, request: str, key: str, route: str, at: float, amount: int, hard: int
) -> None:
    """Books a request whose process was killed; a hard budget pays the most it can have cost."""
    names = base.execute("SELECT name FROM keys WHERE id = ?", (key,)).fetchone()
    record = RequestRecord(
        id=request, time=at, key=names[0] if names else key, route=route, error="interrupted"
    )
    if hard:
        record.cost, record.cost_source = amount / NANO, "estimate"
    book_entries(base, (Entry(record, key),))


def _parts(items: list[Any]) -> Iterator[list[Any]]:
    """The items in as few parts as the sizes of statements allow."""
    for at in range(0, len(items), _MOST_ROWS):
        yield items[at : at + _MOST_ROWS]


@lru_cache(maxsize=_MOST_ROWS)
def _insert(rows: int) -> str:
    return _INSERT + ", ".join((_marks(len(COLUMNS)),) * rows)


def _marks(count: int) -> str:
    return f"({', '.join('?' * count)})"


def _values(record: RequestRecord, key: str) -> tuple[object, ...]:
    usage = record.usage
    cost = None if record.cost is None else nano(record.cost)
    return (
        *(record.id, record.time, key, record.key, record.client, record.conversation),
        *(record.client_format, record.upstream_format, record.requested_model, record.route),
        *(record.provider, record.model, record.deployment, record.status, record.stop_reason),
        *(usage.total_input, usage.total_output, usage.cached or 0, usage.cache_write or 0),
        *(usage.reasoning or 0, record.usage_estimated, cost, record.cost_source),
        *(record.first_event, record.duration, record.overhead, record.waited, record.retries),
        *(record.fallback, record.losses, record.reattached, record.bytes_in, record.bytes_out),
        *(record.streamed, record.error, record.disconnected, record.upstream_id),
    )


class _Sums:
    """What the requests of one batch add."""

    def __init__(self) -> None:
        self.names: dict[Group, str] = {}
        self.totals: dict[Group, tuple[int, ...]] = {}
        self.latency: dict[tuple[str, str, str], Latency] = defaultdict(Latency)
        self.spent: dict[tuple[str, str], int] = defaultdict(int)
        self.used: dict[str, float] = {}

    def add(self, record: RequestRecord, key: str) -> None:
        """Adds one request."""
        usage, at = record.usage, record.time
        cost = 0 if record.cost is None else nano(record.cost)
        read, written = usage.total_input, usage.total_output
        day = window_name("day", at)
        model = f"{record.provider}/{record.model}" if record.provider else record.model
        group = (day, key, record.route, model)
        self.names[group] = record.key
        added = (
            *(1, bool(record.error), read, written, usage.cached or 0, usage.cache_write or 0),
            *(usage.reasoning or 0, cost, bool(record.cost is None and (read or written))),
        )
        before = self.totals.get(group)
        self.totals[group] = added if before is None else tuple(map(add, before, added))
        self.latency[day, key, model].add(record)
        if cost:
            for window in _WINDOWS:
                self.spent[key, window_name(window, at)] += cost
        self.used[key] = max(at, self.used.get(key, at))


def _add(base: SqlConnection, entries: Sequence[Entry]) -> None:
    sums = _Sums()
    for entry in entries:
        sums.add(entry.record, entry.key)
    for group, totals in sums.totals.items():
        base.execute(_ADD_SUM, (*group, sums.names[group], *totals))
    for place, latency in sums.latency.items():
        add_latency(base, place, latency)
    if sums.spent:
        rows = [(*place, cost) for place, cost in sums.spent.items()]
        base.executemany(_ADD_SPENDING, rows)
    for key, at in sums.used.items():
        base.execute(_USED, (key, at))
