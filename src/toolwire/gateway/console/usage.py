"""Usage in the console: sums by day, key and model, as JSON or CSV."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from toolwire.gateway.console.calls import ApiError, ApiRoute, Call, Query
from toolwire.gateway.usage import UsageRow

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console

_BY = ("day", "key", "model")
_DAYS = 30
_MOST_DAYS = 3_660
_COLUMNS = (
    *("day", "key", "model", "requests", "errors", "input", "output", "cached", "cache_write"),
    *("reasoning", "cost", "unpriced", "seconds", "first_event", "p50", "p95"),
)


class DayRow(msgspec.Struct, frozen=True, kw_only=True):
    """One day of a chart."""

    day: str
    requests: int = 0
    errors: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of the days of a range."""

    by: tuple[str, ...]
    since: str
    until: str
    rows: list[UsageRow]
    total: UsageRow
    days: list[DayRow]
    keys: list[str]
    models: list[str]


def _day(call: Call, name: str, default: date) -> date:
    text = call.query.get(name, "")
    if not text:
        return default
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ApiError(400, f'{name}: "{text[:50]}" is not a date', "write 2026-11-01") from None


async def report(console: Console, call: Call) -> None:
    """Answers with the sums of a range of days."""
    today = datetime.fromtimestamp(console.host.gateway.parts.clock(), UTC).date()
    until = _day(call, "until", today)
    since = _day(call, "since", until - timedelta(days=_DAYS - 1))
    if since > until or (until - since).days > _MOST_DAYS:
        raise ApiError(400, f"{since} to {until} is not a range of days")
    asked = call.query.get("by", "day,model").split(",")
    by = tuple(name for name in _BY if name in asked)
    if not by or set(asked) - set(_BY):
        raise ApiError(400, f'by: "{",".join(asked)[:50]}" is none of day, key, model')
    key, model = call.query.get("key", ""), call.query.get("model", "")
    store = console.host.accounts.store
    first, last = since.isoformat(), until.isoformat()
    rows = await store.usage_rows(by, first, last, key, model)
    if call.query.get("format") == "csv":
        await call.file(f"usage-{first}-{last}.csv", "text/csv; charset=utf-8", as_csv(by, rows))
        return
    total = await store.usage_rows((), first, last, key, model)
    daily = await store.usage_rows(("day",), first, last, key, model, latency=False)
    known = {row.day: row for row in daily}
    days = [(since + timedelta(days=n)).isoformat() for n in range((until - since).days + 1)]
    keys, models = await store.usage_names(first, last)
    await call.answer(
        UsageReport(
            by=by,
            since=first,
            until=last,
            rows=rows,
            total=total[0] if total else UsageRow(),
            days=[_chart_day(day, known.get(day)) for day in days],
            keys=keys,
            models=models,
        )
    )


def _chart_day(day: str, row: UsageRow | None) -> DayRow:
    if row is None:
        return DayRow(day=day)
    return DayRow(
        day=day,
        requests=row.requests,
        errors=row.errors,
        input=row.input,
        output=row.output,
        cached=row.cached,
        cost=row.cost,
    )


def as_csv(by: tuple[str, ...], rows: list[UsageRow]) -> bytes:
    """The rows as a file for spreadsheets."""
    columns = [name for name in _COLUMNS if name in by or name not in _BY]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in columns])
    return text.getvalue().encode()


def _cell(value: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/usage",
        does=report,
        about="Requests, tokens, cost and latency by day, key and model.",
        query=(
            Query("by", "`day`, `key`, `model`, or several of them separated by commas."),
            Query("since", "First day, in UTC."),
            Query("until", "Last day."),
            Query("key", "Name of a key."),
            Query("model", "`provider/model`."),
            Query("format", "`csv` for a file."),
        ),
        returns=UsageReport,
    ),
)
