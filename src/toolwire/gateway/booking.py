"""Books requests: those that end at about the same time in one transaction, by few statements."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from toolwire.gateway.database import insert_rows, parts
from toolwire.gateway.ledger_rows import COLUMNS, KEYLESS
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
_ADD_REQUEST = f"INSERT INTO requests ({', '.join(COLUMNS)})"
_ADD_SUM = """
ON CONFLICT (day, key, route, model) DO UPDATE SET
    key_name = excluded.key_name, requests = sums.requests + excluded.requests,
    errors = sums.errors + excluded.errors, input = sums.input + excluded.input,
    output = sums.output + excluded.output, cached = sums.cached + excluded.cached,
    cache_write = sums.cache_write + excluded.cache_write,
    reasoning = sums.reasoning + excluded.reasoning, cost = sums.cost + excluded.cost,
    unpriced = sums.unpriced + excluded.unpriced
"""
_ADD_SPENDING = """
ON CONFLICT (key, time_window) DO UPDATE SET spent = spending.spent + excluded.spent
"""
_USED = """
ON CONFLICT (key) DO UPDATE SET at = excluded.at WHERE excluded.at > last_used.at
"""


class BookedBefore(Exception):
    """A request of a batch was booked before: each must be booked by itself."""


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
        for entry in entries:
            self._database.write_soon(lambda base, one=entry: book_entries(base, (one,)))

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


def book_entries(base: SqlConnection, entries: Sequence[Entry]) -> None:
    """Books requests at their end; one that was booked before is not counted again.

    Several fail together if one of them was booked before: that is rare, and cheaper than to ask.
    """
    new = [*{entry.record.id: entry for entry in entries}.values()]
    reserved = [entry.record.id for entry in new if entry.reserved]
    for ids in parts(reserved):
        marks = ", ".join("?" * len(ids))
        base.execute(f"DELETE FROM reservations WHERE id IN ({marks})", ids)  # noqa: S608 - marks
    rows = [_values(entry.record, entry.key) for entry in new]
    booked = insert_rows(base, _ADD_REQUEST, rows, "ON CONFLICT (time, id) DO NOTHING")
    if booked == len(rows):
        _add(base, new)
    elif len(rows) > 1:
        raise BookedBefore


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


def _add(base: SqlConnection, entries: Sequence[Entry]) -> None:
    """Adds requests to all sums."""
    groups: dict[Group, list[RequestRecord]] = defaultdict(list)
    for entry in entries:
        record = entry.record
        model = f"{record.provider}/{record.model}" if record.provider else record.model
        groups[window_name("day", record.time), entry.key, record.route, model].append(record)
    latency: dict[tuple[str, str, str], Latency] = defaultdict(Latency)
    spent: dict[tuple[str, str], int] = defaultdict(int)
    used: dict[str, float] = {}
    rows: list[tuple[object, ...]] = []
    for group, records in groups.items():
        day, key, _, model = group
        rows.append((*group, records[-1].key, *_totals(records)))
        latency[day, key, model].add(records)
        _spend(spent, key, records)
        if key not in KEYLESS:
            used[key] = max(used.get(key, 0.0), max([record.time for record in records]))
    insert_rows(base, "INSERT INTO sums", rows, _ADD_SUM)
    add_latency(base, latency)
    insert_rows(
        base, "INSERT INTO spending", [(*at, cost) for at, cost in spent.items()], _ADD_SPENDING
    )
    insert_rows(base, "INSERT INTO last_used", [*used.items()], _USED)


def _totals(records: Sequence[RequestRecord]) -> tuple[int, ...]:
    """The sums of requests, in the order of the columns."""
    errors = read = written = cached = cache_write = reasoning = cost = unpriced = 0
    for record in records:
        usage = record.usage
        before = read + written
        read += usage.total_input
        written += usage.total_output
        cached += usage.cached or 0
        cache_write += usage.cache_write or 0
        reasoning += usage.reasoning or 0
        errors += bool(record.error)
        if record.cost is not None:
            cost += nano(record.cost)
        elif read + written > before:
            unpriced += 1
    return len(records), errors, read, written, cached, cache_write, reasoning, cost, unpriced


def _spend(spent: dict[tuple[str, str], int], key: str, records: Sequence[RequestRecord]) -> None:
    """Adds what requests of a key cost to what was spent in each window."""
    hours: dict[int, int] = defaultdict(int)
    for record in records:
        if record.cost:
            hours[int(record.time // 3600)] += nano(record.cost)
    for hour, cost in hours.items():
        for window in _WINDOWS:
            spent[key, window_name(window, hour * 3600)] += cost
