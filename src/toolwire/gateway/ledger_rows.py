"""Tables and statements of the ledger."""

from typing import Any

import msgspec

from toolwire.gateway.database import SqlConnection
from toolwire.gateway.limits import Bucket, Rates, RateState
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import (
    NANO,
    Budget,
    Entry,
    KeyRules,
    Spending,
    UsageBy,
    UsageSum,
    VirtualKey,
    Window,
    nano,
    window_end,
    window_name,
    window_start,
)
from toolwire.gateway.usage import add_latency

_WINDOWS: tuple[Window, ...] = ("hour", "day", "month", "total")
_SAMPLE = 100
"""Answers of a key that its next reservation is estimated from."""
SCHEMA = """
CREATE TABLE keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, digest BLOB NOT NULL, old_digest BLOB NOT NULL,
    old_until REAL NOT NULL, rules BLOB NOT NULL, created REAL NOT NULL, expires REAL, revoked REAL
) WITHOUT ROWID;
CREATE UNIQUE INDEX key_names ON keys (name) WHERE revoked IS NULL;
CREATE TABLE reservations (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, key TEXT NOT NULL, route TEXT NOT NULL,
    at REAL NOT NULL, amount INTEGER NOT NULL, hard INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX reservations_of_key ON reservations (key, at, amount);
CREATE TABLE spending (
    key TEXT, time_window TEXT, spent INTEGER NOT NULL, PRIMARY KEY (key, time_window)
) WITHOUT ROWID;
CREATE TABLE sums (
    day TEXT, key TEXT, route TEXT, model TEXT, key_name TEXT NOT NULL,
    requests INTEGER NOT NULL, errors INTEGER NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, cached INTEGER NOT NULL, cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL, cost INTEGER NOT NULL, unpriced INTEGER NOT NULL,
    PRIMARY KEY (day, key, route, model)
) WITHOUT ROWID;
CREATE TABLE last_used (key TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE buckets (
    key TEXT PRIMARY KEY, requests REAL NOT NULL, tokens REAL NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE requests (
    id TEXT PRIMARY KEY, time REAL NOT NULL, key TEXT NOT NULL, key_name TEXT NOT NULL,
    client TEXT, conversation TEXT, client_format TEXT, upstream_format TEXT,
    requested_model TEXT, route TEXT, provider TEXT, model TEXT, deployment TEXT,
    status INTEGER, stop_reason TEXT, input INTEGER, output INTEGER, cached INTEGER,
    cache_write INTEGER, reasoning INTEGER, estimated INTEGER, cost INTEGER, cost_source TEXT,
    first_event REAL, duration REAL, overhead REAL, waited REAL, retries INTEGER,
    fallback INTEGER, losses INTEGER, reattached INTEGER, bytes_in INTEGER, bytes_out INTEGER,
    streamed INTEGER, error TEXT, disconnected TEXT, upstream_id TEXT
) WITHOUT ROWID;
CREATE INDEX requests_by_time ON requests (time);
CREATE INDEX requests_of_key ON requests (key, route, time, output)
"""
TURNS = """
CREATE TABLE turns (id TEXT PRIMARY KEY, owner TEXT NOT NULL, key TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX turns_of_key ON turns (key)
"""
"""Requests that run, of keys with a limit of them, if several processes share the limit."""
KEY_COLUMNS = "id, name, digest, old_digest, old_until, rules, created, expires, revoked"
KEYS = f"""
SELECT {KEY_COLUMNS}, last_used.at FROM keys LEFT JOIN last_used ON last_used.key = keys.id
"""  # noqa: S608 - a constant
COLUMNS = (
    *("id", "time", "key", "key_name", "client", "conversation", "client_format"),
    *("upstream_format", "requested_model", "route", "provider", "model", "deployment"),
    *("status", "stop_reason", "input", "output", "cached", "cache_write", "reasoning"),
    *("estimated", "cost", "cost_source", "first_event", "duration", "overhead", "waited"),
    *("retries", "fallback", "losses", "reattached", "bytes_in", "bytes_out", "streamed"),
    *("error", "disconnected", "upstream_id"),
)
_INSERT = (
    f"INSERT INTO requests ({', '.join(COLUMNS)}) "  # noqa: S608 - constants
    f"VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT (id) DO NOTHING"
)
_ADD_SUM = """
INSERT INTO sums VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (day, key, route, model) DO UPDATE SET
    key_name = excluded.key_name, requests = sums.requests + 1,
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
USAGE = """
SELECT {by}, sum(requests), sum(errors), sum(input), sum(output), sum(cached), sum(cache_write),
    sum(reasoning), sum(cost), sum(unpriced)
FROM sums WHERE day >= ? AND day <= ? GROUP BY {group} ORDER BY {order}
"""
USAGE_BY: dict[UsageBy, tuple[str, str, str]] = {
    "key": ("max(key_name)", "key", "sum(cost) DESC, 1"),
    "model": ("model", "model", "sum(cost) DESC, 1"),
    "day": ("day", "day", "day"),
}


def key_values(key: VirtualKey) -> tuple[object, ...]:
    """Returns the values of a key by column."""
    rules = msgspec.json.encode(key.rules)
    return (
        *(key.id, key.name, key.digest, key.old_digest, key.old_until, rules),
        *(key.created, key.expires, key.revoked),
    )


def read_key_row(row: tuple[Any, ...]) -> VirtualKey:
    """Returns the key of a row."""
    key_id, name, digest, old, old_until, rules, created, expires, revoked, used = row
    return VirtualKey(
        id=key_id,
        name=name,
        digest=digest,
        old_digest=old,
        old_until=old_until,
        rules=msgspec.json.decode(rules, type=KeyRules),
        created=created,
        expires=expires,
        revoked=revoked,
        last_used=used,
    )


def typical_output(base: SqlConnection, key: str, route: str) -> int | None:
    """Returns the 95th percentile of the key's last answers on a route; None without any."""
    rows = base.execute(
        "SELECT output FROM requests WHERE key = ? AND route = ? ORDER BY time DESC LIMIT ?",
        (key, route, _SAMPLE),
    ).fetchall()
    sizes = sorted(size for (size,) in rows if size)
    return sizes[max(0, -(-len(sizes) * 95 // 100) - 1)] if sizes else None


def spending_of(
    base: SqlConnection, key: str, budgets: tuple[Budget, ...], at: float
) -> list[Spending]:
    """Returns the state of each budget."""
    found: list[Spending] = []
    for budget in budgets:
        spent = base.execute(
            "SELECT spent FROM spending WHERE key = ? AND time_window = ?",
            (key, window_name(budget.window, at)),
        ).fetchone()
        (reserved,) = base.execute(
            "SELECT coalesce(sum(amount), 0) FROM reservations WHERE key = ? AND at >= ?",
            (key, window_start(budget.window, at)),
        ).fetchone()
        found.append(
            Spending(
                budget=budget,
                spent=spent[0] if spent else 0,
                reserved=reserved,
                resets=window_end(budget.window, at),
            )
        )
    return found


def book_entry(base: SqlConnection, entry: Entry) -> bool:
    """Books a request at its end; returns whether it was not booked before."""
    record, key = entry.record, entry.key
    base.execute("DELETE FROM reservations WHERE id = ?", (record.id,))
    values = _values(record, key)
    if not base.execute(_INSERT, values).rowcount:
        return False
    _add(base, record, key)
    return True


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


def _add(base: SqlConnection, record: RequestRecord, key: str) -> None:
    usage = record.usage
    cost = 0 if record.cost is None else nano(record.cost)
    used = usage.total_input or usage.total_output
    model = f"{record.provider}/{record.model}" if record.provider else record.model
    base.execute(
        _ADD_SUM,
        (
            *(window_name("day", record.time), key, record.route, model, record.key),
            *(bool(record.error), usage.total_input, usage.total_output, usage.cached or 0),
            *(usage.cache_write or 0, usage.reasoning or 0, cost),
            bool(record.cost is None and used),
        ),
    )
    add_latency(base, record, key, window_name("day", record.time), model)
    if cost:
        rows = [(key, window_name(window, record.time), cost) for window in _WINDOWS]
        base.executemany(_ADD_SPENDING, rows)
    base.execute(
        "INSERT INTO last_used VALUES (?, ?) "
        "ON CONFLICT (key) DO UPDATE SET at = excluded.at WHERE excluded.at > last_used.at",
        (key, record.time),
    )


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
    book_entry(base, Entry(record, key))


def read_usage_row(row: tuple[Any, ...]) -> UsageSum:
    """Returns the sums of a row."""
    name, requests, errors, read, written, cached, cache_write, reasoning, cost, unpriced = row
    return UsageSum(
        name=name,
        requests=requests,
        errors=errors,
        input=read,
        output=written,
        cached=cached,
        cache_write=cache_write,
        reasoning=reasoning,
        cost=cost / NANO,
        unpriced=unpriced,
    )


def buckets_of(base: SqlConnection, key: str, rates: Rates, now: float) -> RateState:
    """Returns the buckets of a key; full ones if it has none."""
    row = base.execute("SELECT requests, tokens, at FROM buckets WHERE key = ?", (key,)).fetchone()
    if row is None:
        return RateState.full(rates, now)
    return RateState(Bucket(row[0], row[2]), Bucket(row[1], row[2]))


def set_buckets(base: SqlConnection, key: str, state: RateState) -> None:
    """Stores the buckets of a key."""
    base.execute(
        "INSERT INTO buckets VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
        "requests = excluded.requests, tokens = excluded.tokens, at = excluded.at",
        (key, state.requests.level, state.tokens.level, state.requests.at),
    )
