"""Requests of the gateway: lists, details, stages, and the live stream of changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from toolwire.gateway.console import live
from toolwire.gateway.console.calls import PAGE, ApiError, ApiRoute, Call, Query
from toolwire.gateway.console.details import RequestDetail, detail_of
from toolwire.gateway.console.parts import difference, document_of
from toolwire.gateway.console.rows import (
    FILTERS,
    RequestRow,
    RowFilter,
    row_of,
    row_of_ledger,
)
from toolwire.gateway.console.snippets import LANGUAGES, snippet
from toolwire.gateway.console.stages import (
    Stage,
    exchange_of,
    stage_of,
    upstream_body,
)
from toolwire.gateway.watch import Watched
from toolwire.ids import time_of
from toolwire.request import JsonObject

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console

_DAY = 86_400.0
"""How far the request before another one of its conversation is looked for."""
_NEAR = 60.0
"""Seconds around the time in an id in which its request arrived."""


class RequestList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of requests, the newest first."""

    requests: list[RequestRow]
    next: str | None
    seen: int
    recording: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Where what two requests sent upstream differs."""

    a: str
    b: str
    stage: int
    same: bool
    first_difference: int | None
    common: int
    a_context: str
    b_context: str
    messages_equal: int
    path: str
    """Where the documents begin to differ, such as `messages[2].content`."""


class Cancelled(msgspec.Struct, frozen=True):
    """The request ends with an error."""

    cancelled: bool


class SnippetText(msgspec.Struct, frozen=True):
    """A program that sends the request."""

    text: str


async def listed(console: Console, call: Call) -> None:
    """Answers with a page of requests."""
    chosen = RowFilter(call.query)
    limit = call.limit()
    before = _cursor(call.query.get("before", ""))
    watch = console.host.gateway.watch
    rows: dict[str, RequestRow] = {}
    for watched in watch.newest():
        if len(rows) > limit:
            break
        row = row_of(watched)
        if (before is None or (row.time, row.id) < before) and chosen.accepts(row):
            rows[row.id] = row
    conditions, values = chosen.sql()
    store = console.host.accounts.store
    for found in await store.find_requests(conditions, values, limit + 1, before):
        # One that ran when the page before was read may have been booked since.
        if watch.find(found["id"]) is None:
            rows[found["id"]] = row_of_ledger(found)
    page = sorted(rows.values(), key=lambda row: (row.time, row.id), reverse=True)
    more = len(page) > limit
    page = page[:limit]
    await call.answer(
        RequestList(
            requests=page,
            next=f"{page[-1].time!r}:{page[-1].id}" if more else None,
            seen=watch.seen,
            recording=console.host.gateway.parts.settings.record,
        )
    )


def _cursor(text: str) -> tuple[float, str] | None:
    if not text:
        return None
    at, _, request = text.partition(":")
    try:
        return float(at), request
    except ValueError:
        raise ApiError(400, f'before: "{text[:100]}" is not a cursor of a list') from None


async def _row(console: Console, request: str) -> RequestRow:
    watched = console.host.gateway.watch.find(request)
    if watched is not None:
        return row_of(watched)
    store = console.host.accounts.store
    made = time_of(request, "req_")
    found: list[JsonObject] = []
    if made is not None:
        # Requests are sorted by time: a look-up by the id alone reads all of them.
        bounds = [made - _NEAR, made + _NEAR, request]
        found = await store.find_requests(" AND time > ? AND time < ? AND id = ?", bounds, 1)
    found = found or await store.find_requests(" AND id = ?", [request], 1)
    if not found:
        raise ApiError(404, f'no request "{request[:100]}"', "requests are stored for a time only")
    return row_of_ledger(found[0])


async def shown(console: Console, call: Call) -> None:
    """Answers with all that is known of a request."""
    row = await _row(console, call.parts["id"])
    watched = console.host.gateway.watch.find(row.id)
    previous = None
    if row.conversation:
        store = console.host.accounts.store
        values = [row.conversation, row.key_id, row.time - _DAY]
        condition = " AND conversation = ? AND key = ? AND time > ?"
        found = await store.find_requests(condition, values, 1, (row.time, row.id))
        previous = found[0]["id"] if found else None
    recording = console.host.gateway.parts.settings.record
    detail = await asyncio.to_thread(detail_of, row, watched, previous, recording)
    await call.answer(detail)


def _here(console: Console, request: str) -> Watched:
    watched = console.host.gateway.watch.find(request)
    if watched is None:
        raise ApiError(
            404,
            f'request "{request[:100]}" is not in memory',
            "only the last requests of the running gateway are; the ledger has their figures",
        )
    return watched


async def stage(console: Console, call: Call) -> None:
    """Answers with one stage of a request."""
    text = call.parts["n"]
    if text not in ("1", "2", "3", "4", "5"):
        raise ApiError(404, f'no stage "{text[:20]}"', "a request has the stages 1 to 5")
    watched = _here(console, call.parts["id"])
    found = await asyncio.to_thread(
        stage_of,
        watched,
        int(text),
        attempt=call.number("attempt", 0),
        start=call.number("from", 0),
        size=call.number("size", 262_144),
        recording=console.host.gateway.parts.settings.record,
        whole=bool(call.query.get("download")),
    )
    if call.query.get("download"):
        data = found.data
        if data is None:
            raise ApiError(409, found.stage.why or "nothing was recorded of this stage")
        name = f"{watched.record.id}-{text}.{'json' if found.stage.document else 'txt'}"
        await call.file(name, "application/octet-stream", data)
        return
    await call.answer(found.stage)


async def exchange(console: Console, call: Call) -> None:
    """Answers with the upstream exchanges as a file that `--replay` takes."""
    watched = _here(console, call.parts["id"])
    data = await asyncio.to_thread(exchange_of, watched)
    if data is None:
        raise ApiError(409, "the bytes of this request were not recorded", _FULL)
    await call.file(f"{watched.record.id}.jsonl", "application/jsonl", data)


_FULL = 'set gateway.record = "full" to record the next ones'


async def as_code(console: Console, call: Call) -> None:
    """Answers with a program that sends the request again."""
    watched = _here(console, call.parts["id"])
    capture = watched.capture
    if capture is None or capture.level != "full":
        raise ApiError(409, "the bytes of this request were not recorded", _FULL)
    language = call.query.get("format", "curl")
    if language not in LANGUAGES:
        raise ApiError(400, f'format: "{language[:50]}" is none of {", ".join(LANGUAGES)}')
    body = await asyncio.to_thread(stage_of, watched, 1, recording="full", whole=True)
    path = capture.target.partition("?")[0]
    text = snippet(
        language, watched.record.client_format, console.host.origin, path, body.data or b""
    )
    await call.answer(SnippetText(text))


async def compare(console: Console, call: Call) -> None:
    """Answers where the upstream bytes of two requests begin to differ."""
    one, other = (_here(console, call.query.get(name, "")) for name in ("a", "b"))
    first, second = await asyncio.to_thread(lambda: (upstream_body(one), upstream_body(other)))
    if first is None or second is None:
        raise ApiError(409, "the bytes of these requests were not recorded", _FULL)
    common = _common(first, second)
    same = first == second
    await call.answer(
        Comparison(
            a=one.record.id,
            b=other.record.id,
            stage=3,
            same=same,
            first_difference=None if same else common,
            common=common,
            a_context=_context(first, common),
            b_context=_context(second, common),
            messages_equal=_equal_messages(one, other),
            path="" if same else difference(document_of(first), document_of(second)),
        )
    )


def _common(first: bytes, second: bytes) -> int:
    """How many bytes at the beginning are equal."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _context(data: bytes, at: int) -> str:
    return data[max(0, at - 80) : at + 160].decode("utf-8", "replace")


def _equal_messages(one: Watched, other: Watched) -> int:
    first = one.capture.request if one.capture is not None else None
    second = other.capture.request if other.capture is not None else None
    if first is None or second is None:
        return 0
    count = 0
    for left, right in zip(first.messages, second.messages, strict=False):
        if left != right:
            break
        count += 1
    return count


async def cancel(console: Console, call: Call) -> None:
    """Ends a running request with an error."""
    watched = _here(console, call.parts["id"])
    if not watched.cancel():
        raise ApiError(409, "the request is over")
    await call.answer(Cancelled(True), 202)


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/requests",
        does=listed,
        about="Requests, the newest first.",
        query=(*PAGE, *FILTERS),
        returns=RequestList,
    ),
    ApiRoute(
        method="GET",
        path="/requests/compare",
        does=compare,
        about="Where the upstream bytes of two requests begin to differ.",
        query=(Query("a", "Id of a request."), Query("b", "Id of another.")),
        returns=Comparison,
    ),
    ApiRoute(
        method="GET",
        path="/requests/{id}",
        does=shown,
        about="One request with its stages, losses, attempts and parts.",
        returns=RequestDetail,
    ),
    ApiRoute(
        method="GET",
        path="/requests/{id}/stage/{n}",
        does=stage,
        about="One of the five stages: client bytes, canonical, upstream bytes, upstream answer, "
        "client answer.",
        query=(
            Query("attempt", "Which attempt upstream; the last one by default.", "integer"),
            Query("from", "First byte.", "integer"),
            Query("size", "Most bytes.", "integer"),
            Query("download", "Set to get the bytes as a file."),
        ),
        returns=Stage,
    ),
    ApiRoute(
        method="GET",
        path="/requests/{id}/exchange",
        does=exchange,
        about="The upstream exchanges as a recording for `--replay`.",
        media="application/jsonl",
    ),
    ApiRoute(
        method="GET",
        path="/requests/{id}/curl",
        does=as_code,
        about="A program that sends the request again.",
        query=(Query("format", "`curl`, `python` or `typescript`."),),
        returns=SnippetText,
    ),
    ApiRoute(
        method="POST",
        path="/requests/{id}/cancel",
        does=cancel,
        about="Cancel a running request.",
        returns=Cancelled,
        status=202,
    ),
    ApiRoute(
        method="GET",
        path="/live",
        does=live.stream,
        about="Stream of requests that begin, change and end, and of open questions.",
        query=(
            Query("after", "Number of the last event that is known.", "integer"),
            Query("topics", "`requests`, `questions`, `sessions`, separated by commas."),
            *FILTERS,
        ),
        media="text/event-stream",
    ),
)
