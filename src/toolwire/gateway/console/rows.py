"""Rows of requests as lists show them, and the filters of such lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolwire.gateway.console.calls import ApiError, Query
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import NANO
from toolwire.gateway.watch import Watched

_TEXTS = {
    "client": ("client",),
    "model": ("model", "requested_model"),
    "provider": ("provider",),
    "route": ("route",),
    "key": ("key",),
    "format": ("client_format",),
    "upstream": ("upstream_format",),
    "via": ("client_format", "upstream_format"),
    "error": ("error",),
    "conversation": ("conversation",),
    "q": (
        *("id", "client", "model", "requested_model", "route", "provider", "key", "error"),
        "conversation",
    ),
}
"""Filters of text, and the members that each looks at."""
_LEDGER = {"key": "key_name", "tokens": "(coalesce(input, 0) + coalesce(output, 0))"}
"""Members whose column has another name, or that are sums of columns."""
FILTERS = (
    *(Query(name, "Contains this text; several are separated by commas.") for name in _TEXTS),
    Query("status", "`200`, `4xx`, `5xx`, `ok` or `error`."),
    Query("state", "`running`, `done`, `failed` or `cancelled`."),
    Query("loss", "At least so many losses; `>0` for any."),
    Query("min_cost", "At least so many dollars.", "number"),
    Query("min_time", "At least so many seconds.", "number"),
    Query("min_tokens", "At least so many tokens, in and out.", "number"),
    Query("since", "Arrived at this time or later, in Unix seconds.", "number"),
    Query("until", "Arrived before this time.", "number"),
)


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    id: str
    n: int
    state: str
    phase: str
    time: float
    client: str = ""
    key: str = ""
    key_id: str = ""
    conversation: str = ""
    method: str = ""
    path: str = ""
    client_format: str = ""
    upstream_format: str = ""
    requested_model: str = ""
    route: str = ""
    provider: str = ""
    model: str = ""
    deployment: str = ""
    status: int = 0
    stop_reason: str = ""
    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    estimated: bool = False
    cost: float | None = None
    cost_source: str = "none"
    first_event: float | None = None
    duration: float = 0.0
    overhead: float = 0.0
    waited: float = 0.0
    retries: int = 0
    fallback: bool = False
    losses: int = 0
    reattached: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    streamed: bool = False
    error: str = ""
    error_message: str = ""
    disconnected: str = ""
    upstream_id: str = ""
    recorded: str = "off"
    here: bool = False
    """Whether this process has it in memory."""

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input + self.output


_COPIED = (
    *("id", "time", "client", "key", "key_id", "conversation", "method", "path"),
    *("client_format", "upstream_format", "requested_model", "route", "provider", "model"),
    *("deployment", "status", "stop_reason", "cost", "cost_source", "first_event", "overhead"),
    *("waited", "retries", "fallback", "losses", "reattached", "bytes_in", "bytes_out"),
    *("streamed", "error", "error_message", "disconnected", "upstream_id"),
)


def row_of(watched: Watched) -> RequestRow:
    """The row of a request in memory."""
    record = watched.record
    usage = record.usage
    return RequestRow(
        **{name: getattr(record, name) for name in _COPIED},
        n=watched.n,
        state=_state(record, watched),
        phase=watched.phase,
        input=usage.total_input,
        output=usage.total_output,
        cached=usage.cached or 0,
        cache_write=usage.cache_write or 0,
        reasoning=usage.reasoning or 0,
        estimated=record.usage_estimated,
        duration=watched.seconds,
        recorded=watched.level,
        here=True,
    )


def _state(record: RequestRecord, watched: Watched) -> str:
    if watched.running:
        return "running"
    if watched.cancelled or record.disconnected:
        return "cancelled"
    return "failed" if record.error else "done"


def row_of_ledger(found: Mapping[str, Any]) -> RequestRow:
    """The row of a request in the ledger."""
    known: dict[str, Any]
    known = {name: found[name] for name in _COPIED if found.get(name) is not None}
    cost = found["cost"]
    state = "cancelled" if found["disconnected"] else "failed" if found["error"] else "done"
    ended = found["time"] + (found["duration"] or 0.0)
    known |= {
        "key": found["key_name"],
        "key_id": found["key"],
        "cost": None if cost is None else cost / NANO,
        "fallback": bool(found["fallback"]),
        "streamed": bool(found["streamed"]),
    }
    for name in ("input", "output", "cached", "cache_write", "reasoning"):
        known[name] = found[name] or 0
    return RequestRow(
        **known,
        n=int(ended * 1_000_000),
        state=state,
        phase="done",
        estimated=bool(found["estimated"]),
        duration=found["duration"] or 0.0,
    )


class RowFilter:
    """The filters of one list: for rows in memory, and as SQL for the ledger."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._texts = {
            name: [word.strip().lower() for word in query[name].split(",") if word.strip()]
            for name in _TEXTS
            if query.get(name)
        }
        self._status = query.get("status", "")
        self._state = query.get("state", "")
        self._least = {
            "losses": _amount(query.get("loss", "").replace(">0", "1").replace(">", ""), "loss"),
            "cost": _amount(query.get("min_cost", ""), "min_cost"),
            "duration": _amount(query.get("min_time", ""), "min_time"),
            "tokens": _amount(query.get("min_tokens", ""), "min_tokens"),
            "time": _amount(query.get("since", ""), "since"),
        }
        self._until = _amount(query.get("until", ""), "until")
        if self._status and not _is_status(self._status):
            raise ApiError(400, f'status: "{self._status[:50]}" is not a status', "try 4xx or ok")
        if self._state not in ("", "running", "done", "failed", "cancelled"):
            raise ApiError(400, f'state: "{self._state[:50]}" is not a state')

    def accepts(self, row: RequestRow) -> bool:
        """Whether a row in memory is listed."""
        for name, words in self._texts.items():
            found = " ".join(str(getattr(row, member)) for member in _TEXTS[name]).lower()
            if not any(word in found for word in words):
                return False
        for member, least in self._least.items():
            if least is not None and (getattr(row, member) or 0) < least:
                return False
        if self._until is not None and row.time >= self._until:
            return False
        if self._state and row.state != self._state:
            return False
        return not self._status or _has_status(row.status, row.error, self._status)

    def sql(self) -> tuple[str, list[object]]:
        """Conditions of a query of the ledger, each after `AND`, and their values."""
        words: list[str] = []
        values: list[object] = []
        for name, texts in self._texts.items():
            columns = " || ' ' || ".join(
                f"coalesce({_LEDGER.get(member, member)}, '')" for member in _TEXTS[name]
            )
            words.append(f"({' OR '.join([f'instr(lower({columns}), ?) > 0'] * len(texts))})")
            values += texts
        for member, least in self._least.items():
            if least is not None:
                words.append(f"{_LEDGER.get(member, member)} >= ?")
                values.append(least * NANO if member == "cost" else least)
        if self._until is not None:
            words.append("time < ?")
            values.append(self._until)
        if self._state:
            words.append(_STATES[self._state])
        if self._status:
            condition, found = _status_sql(self._status)
            words.append(condition)
            values += found
        return "".join(f" AND {word}" for word in words), values


_STATES = {
    "running": "1 = 0",
    "cancelled": "disconnected <> ''",
    "failed": "error <> '' AND disconnected = ''",
    "done": "error = '' AND disconnected = ''",
}


def _amount(text: str, name: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ApiError(400, f'{name}: "{text[:50]}" is not a number') from None


def _is_status(text: str) -> bool:
    digits = text.removesuffix("xx")
    return text in ("ok", "error") or (digits.isascii() and digits.isdigit() and len(text) == 3)


def _has_status(status: int, error: str, wanted: str) -> bool:
    if wanted == "ok":
        return not error
    if wanted == "error":
        return bool(error)
    return str(status).startswith(wanted.removesuffix("xx")) and len(str(status)) == len(wanted)


def _status_sql(wanted: str) -> tuple[str, list[object]]:
    if wanted in ("ok", "error"):
        return ("error = ''" if wanted == "ok" else "error <> ''"), []
    if wanted.endswith("xx"):
        first = int(wanted[0]) * 100
        return "status >= ? AND status < ?", [first, first + 100]
    return "status = ?", [int(wanted)]
