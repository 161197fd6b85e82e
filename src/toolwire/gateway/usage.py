"""Sums of the ledger for reports: what was used, and how long it took."""

import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import msgspec

from toolwire.gateway.database import SqlConnection, insert_rows, parts
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import NANO

UPGRADE = """
CREATE TABLE latency (
    day TEXT, key TEXT, model TEXT, key_name TEXT NOT NULL, seconds REAL NOT NULL,
    first REAL NOT NULL, firsts INTEGER NOT NULL, steps BLOB NOT NULL,
    PRIMARY KEY (day, key, model)
) WITHOUT ROWID
"""
"""Durations by day, key and model. `steps` has the requests of each quarter of an octave, as a
number with 32 bits for each: the sum of two such numbers has the sums of all steps.
"""
_ADD = """
ON CONFLICT (day, key, model) DO UPDATE SET
    key_name = excluded.key_name, seconds = latency.seconds + excluded.seconds,
    first = latency.first + excluded.first, firsts = latency.firsts + excluded.firsts,
    steps = excluded.steps
"""
_STEPS = 4
_MOST_STEPS = 96
_BITS = 32
_LEAST = 0.001
_LONGEST = [_LEAST * 2 ** (step / _STEPS) for step in range(_MOST_STEPS)]
"""The longest duration of each step."""
_unpack = struct.Struct(f"<{_MOST_STEPS}I").unpack
_GROUPS = {"day": "day", "key": "key_name", "model": "model"}
_SUMS = (
    *("requests", "errors", "input", "output", "cached", "cache_write", "reasoning", "cost"),
    "unpriced",
)


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of requests; `day`, `key` and `model` are null if the row sums over them."""

    day: str | None = None
    key: str | None = None
    model: str | None = None
    requests: int = 0
    errors: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    first_event: float | None = None
    """Mean seconds to the first event."""
    p50: float | None = None
    p95: float | None = None


def bucket_of(seconds: float) -> int:
    """The step that a duration belongs to."""
    return bisect_left(_LONGEST, seconds, hi=_MOST_STEPS - 1)


class Latency:
    """How long requests of one day, key and model took."""

    def __init__(self) -> None:
        self.key_name = ""
        self.seconds = 0.0
        self.first = 0.0
        self.firsts = 0
        self.steps = 0

    def add(self, records: Sequence[RequestRecord]) -> None:
        """Counts requests."""
        self.key_name = records[-1].key
        for record in records:
            self.seconds += record.duration
            self.steps += 1 << (_BITS * bucket_of(record.duration))
            if record.first_event is not None:
                self.first += record.first_event
                self.firsts += 1


def add_latency(base: SqlConnection, latency: Mapping[tuple[str, str, str], Latency]) -> None:
    """Adds durations to those of each day, key and model."""
    steps: dict[tuple[str, str, str], int] = {}
    for part in parts([*latency]):
        # Not `IN`: SQLite would read all rows.
        places = " OR ".join(["(day = ? AND key = ? AND model = ?)"] * len(part))
        stored = base.execute(
            f"SELECT day, key, model, steps FROM latency WHERE {places}",  # noqa: S608 - marks
            [*chain.from_iterable(part)],
        )
        for day, key, model, data in stored.fetchall():
            steps[day, key, model] = int.from_bytes(data, "little")
    rows: list[tuple[object, ...]] = []
    for place, took in latency.items():
        counts = took.steps + steps.get(place, 0)
        data = counts.to_bytes(_MOST_STEPS * _BITS // 8, "little").rstrip(b"\0")
        rows.append((*place, took.key_name, took.seconds, took.first, took.firsts, data))
    insert_rows(base, "INSERT INTO latency", rows, _ADD)


def _where(key: str, model: str) -> tuple[str, list[object]]:
    """The conditions after the range of days, and their values."""
    where, values = "day >= ? AND day <= ?", list[object]()
    for column, value in (("key_name", key), ("model", model)):
        if value:
            where += f" AND {column} = ?"
            values.append(value)
    return where, values


def sums_sql(by: Sequence[str], key: str, model: str) -> tuple[str, list[object]]:
    """The query of what was used, and its values after the range of days."""
    groups = [_GROUPS[name] for name in by]
    where, values = _where(key, model)
    chosen = ", ".join((*groups, *(f"sum({name})" for name in _SUMS)))
    sql = f"SELECT {chosen} FROM sums WHERE {where}"  # noqa: S608 - constants
    return (f"{sql} GROUP BY {', '.join(groups)}" if groups else sql), values


def latency_sql(by: Sequence[str], key: str, model: str) -> tuple[str, list[object]]:
    """The query of how long it took, not grouped."""
    where, values = _where(key, model)
    chosen = ", ".join((*(_GROUPS[name] for name in by), "seconds, first, firsts, steps"))
    return f"SELECT {chosen} FROM latency WHERE {where}", values  # noqa: S608 - constants


class _Times:
    """How long the requests of one row took."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.first = 0.0
        self.firsts = 0
        self.steps = 0

    def add(self, seconds: float, first: float, firsts: int, steps: bytes) -> None:
        """Adds the requests of a day, key and model."""
        self.seconds += seconds
        self.first += first
        self.firsts += firsts
        self.steps += int.from_bytes(steps, "little")

    def members(self) -> dict[str, Any]:
        """The members of a row."""
        data = self.steps.to_bytes(_MOST_STEPS * _BITS // 8, "little")
        counts = list(accumulate(_unpack(data)))
        return {
            "seconds": self.seconds,
            "first_event": self.first / self.firsts if self.firsts else None,
            "p50": _percentile(counts, 0.5),
            "p95": _percentile(counts, 0.95),
        }


def joined(
    by: Sequence[str], sums: Sequence[tuple[Any, ...]], times: Sequence[tuple[Any, ...]]
) -> list[UsageRow]:
    """The rows of both queries, the newest day and the dearest first."""
    size = len(by)
    took: dict[tuple[str, ...], _Times] = defaultdict(_Times)
    for row in times:
        took[row[:size]].add(*row[size:])
    found: list[UsageRow] = []
    for row in sums:
        if row[size] is None:
            continue
        values: dict[str, Any] = dict(zip(_SUMS, row[size:], strict=True))
        values["cost"] = values["cost"] / NANO
        names: dict[str, Any] = dict(zip(by, row[:size], strict=True))
        known = took.get(row[:size])
        found.append(UsageRow(**names, **values, **(known.members() if known else {})))
    found.sort(key=lambda row: -row.cost)
    found.sort(key=lambda row: row.day or "", reverse=True)
    return found


def _percentile(counts: list[int], share: float) -> float | None:
    """The duration that this share of the requests did not exceed; `counts` are running sums."""
    if not counts[-1]:
        return None
    return round(_LONGEST[bisect_left(counts, max(1, counts[-1] * share))], 4)
