"""Tables and statements of the ledger."""

from typing import Any

import msgspec

from toolwire.gateway.database import SqlConnection
from toolwire.gateway.limits import Bucket, Rates, RateState
from toolwire.gateway.store import (
    ADMIN,
    ANONYMOUS,
    NANO,
    Budget,
    KeyRules,
    Spending,
    UsageBy,
    UsageSum,
    VirtualKey,
    window_end,
    window_name,
    window_start,
)

_SAMPLE = 100
"""Answers of a key that its next reservation is estimated from."""
_OF_REQUEST = """
    time REAL NOT NULL, key TEXT NOT NULL, key_name TEXT NOT NULL,
    client TEXT, conversation TEXT, client_format TEXT, upstream_format TEXT,
    requested_model TEXT, route TEXT, provider TEXT, model TEXT, deployment TEXT,
    status INTEGER, stop_reason TEXT, input INTEGER, output INTEGER, cached INTEGER,
    cache_write INTEGER, reasoning INTEGER, estimated INTEGER, cost INTEGER, cost_source TEXT,
    first_event REAL, duration REAL, overhead REAL, waited REAL, retries INTEGER,
    fallback INTEGER, losses INTEGER, reattached INTEGER, bytes_in INTEGER, bytes_out INTEGER,
    streamed INTEGER, error TEXT, disconnected TEXT, upstream_id TEXT
"""
SCHEMA = f"""
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
    id TEXT PRIMARY KEY, {_OF_REQUEST}
) WITHOUT ROWID;
CREATE INDEX requests_by_time ON requests (time);
CREATE INDEX requests_of_key ON requests (key, route, time, output)
"""
TURNS = """
CREATE TABLE turns (id TEXT PRIMARY KEY, owner TEXT NOT NULL, key TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX turns_of_key ON turns (key)
"""
"""Requests that run, of keys with a limit of them, if several processes share the limit."""
KEYLESS = (ADMIN, ANONYMOUS)
_HAS_KEY = f"key NOT IN {KEYLESS}"
SORTED = f"""
CREATE TABLE sorted_requests (
    id TEXT NOT NULL, {_OF_REQUEST}, PRIMARY KEY (time, id)
) WITHOUT ROWID;
INSERT INTO sorted_requests SELECT * FROM requests;
DROP TABLE requests;
ALTER TABLE sorted_requests RENAME TO requests;
CREATE INDEX requests_of_key ON requests (key, route, time, output) WHERE {_HAS_KEY}
"""  # noqa: S608 - constants
"""Sorts requests by time, in which they are listed, instead of in an index beside them; and finds
those of a key only where there is one, to estimate what it reserves. A time belongs to its id.
"""
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
        "SELECT output FROM requests "  # noqa: S608 - constants
        f"WHERE key = ? AND route = ? AND {_HAS_KEY} ORDER BY time DESC LIMIT ?",
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
