"""The end of an answer: stop reasons, token counts and the response object around it."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from toolwire.dialects.openai_responses.shapes import (
    NULL,
    StreamEvent,
    WireResponse,
    WireUsage,
    member,
)
from toolwire.events import Finished, StopReason, Usage
from toolwire.wire.json_access import JsonObject, object_or_empty, parse_object

_CUT = {
    "max_output_tokens": StopReason.LENGTH,
    "content_filter": StopReason.CONTENT_FILTER,
    "incomplete": StopReason.LENGTH,
}
_WAITING = frozenset({"queued", "in_progress"})
_response = msgspec.json.Decoder(WireResponse)
_counts = msgspec.json.Decoder(WireUsage)


def last_response(event: StreamEvent) -> WireResponse:
    """The response object of the last event; a missing status is taken from the event's type."""
    response = WireResponse() if event.response == NULL else read_response(bytes(event.response))
    if response.status is None:
        response.status = (event.type or "").removeprefix("response.")
    return response


def read_response(body: bytes) -> WireResponse:
    """A response object without members of an unexpected type."""
    try:
        return _response.decode(body)
    except msgspec.ValidationError:
        source = parse_object(body, "response")
    output = cast(Any, source.get("output"))
    incomplete = object_or_empty(source.get("incomplete_details"))
    plain: JsonObject = {
        "id": member(source, "id"),
        "model": member(source, "model"),
        "status": member(source, "status") or None,
        "incomplete_details": {"reason": member(incomplete, "reason")},
        "output": output if isinstance(output, list) else None,
    }
    response = _response.decode(msgspec.json.encode(plain))
    try:
        response.usage = _counts.decode(msgspec.json.encode(source.get("usage") or {}))
    except msgspec.ValidationError:
        response.usage = None
    return response


def finished(response: WireResponse, *, calls: bool, refused: bool) -> Finished:
    """The end of an answer by its response object."""
    reason, detail = StopReason.END, ""
    details = response.incomplete_details
    if response.status == "incomplete":
        detail = (details.reason if details else None) or "incomplete"
        reason = _CUT.get(detail, StopReason.PAUSE)
    elif response.status in _WAITING:
        reason, detail = StopReason.PAUSE, response.status or ""
    elif response.status == "cancelled":
        reason, detail = StopReason.ERROR, "cancelled"
    elif calls:
        reason = StopReason.TOOL_CALLS
    elif refused:
        reason = StopReason.REFUSAL
    return Finished(
        reason=reason,
        usage=_usage(response.usage),
        detail=detail,
        response_id=response.id or "",
        model=response.model or "",
    )


def usage_in(response: object) -> Usage | None:
    """The counts in a response object that failed; None without any."""
    counts = object_or_empty(object_or_empty(response).get("usage"))
    try:
        return _usage(_counts.decode(msgspec.json.encode(counts))) if counts else None
    except msgspec.ValidationError:
        return None


def _usage(usage: WireUsage | None) -> Usage:
    if usage is None:
        return Usage()
    read, made = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=read.cached_tokens if read else None,
        cache_write=read.cache_write_tokens if read else None,
        reasoning=made.reasoning_tokens if made else None,
        cost=usage.cost,
    )


def usage_body(usage: Usage) -> JsonObject | None:
    """Token counts as this format has them: cached in input, reasoning in output."""
    if usage == Usage():
        return None
    total_in, total_out = usage.total_input, usage.total_output
    body: JsonObject = {
        "input_tokens": total_in,
        "input_tokens_details": {
            "cached_tokens": usage.cached or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": total_out,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": total_in + total_out,
    }
    return body if usage.cost is None else {**body, "cost": usage.cost}


def response_body(
    response_id: str, model: str, output: Sequence[object], end: Finished | None, *, refused: bool
) -> JsonObject:
    """A response object as the server sends it; without an end it is in progress."""
    status, details, failure = _status(end, refused)
    return {
        "id": response_id,
        "object": "response",
        "created_at": 0,
        "status": status,
        "background": False,
        "error": failure,
        "incomplete_details": details,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "model": model,
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": usage_body(end.usage) if end is not None else None,
        "user": None,
    }


def _status(
    end: Finished | None, refused: bool
) -> tuple[str, JsonObject | None, JsonObject | None]:
    if end is None:
        return "in_progress", None, None
    match end.reason:
        case StopReason.LENGTH if end.detail == "incomplete":
            return "incomplete", None, None
        case StopReason.LENGTH:
            return "incomplete", {"reason": "max_output_tokens"}, None
        case StopReason.CONTENT_FILTER:
            return "incomplete", {"reason": "content_filter"}, None
        case StopReason.REFUSAL if not refused:
            return "incomplete", {"reason": "content_filter"}, None
        case StopReason.PAUSE if end.detail in ("max_messages", "steered"):
            return "incomplete", {"reason": end.detail}, None
        case StopReason.PAUSE if end.detail in _WAITING:
            return end.detail, None, None
        case StopReason.ERROR if end.detail == "cancelled":
            return "cancelled", None, None
        case StopReason.ERROR:
            message = end.detail or "the answer broke off"
            return "failed", None, {"code": "server_error", "message": message}
        case _:
            return "completed", None, None
