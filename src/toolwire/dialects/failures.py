"""Typed errors: their kind by status, code and words; errors of OpenAI and compatible servers."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toolwire.errors import ErrorKind, IncompleteStream, MalformedStream, ProviderError
from toolwire.wire.json_access import JsonObject, dump
from toolwire.wire.sse import Frame

_decode = msgspec.json.Decoder().decode

_BY_STATUS = {
    400: ErrorKind.BAD_REQUEST,
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    408: ErrorKind.TIMEOUT,
    413: ErrorKind.CONTEXT_TOO_LONG,
    422: ErrorKind.BAD_REQUEST,
    429: ErrorKind.RATE_LIMIT,
    499: ErrorKind.TIMEOUT,
    503: ErrorKind.OVERLOADED,
    504: ErrorKind.TIMEOUT,
    529: ErrorKind.OVERLOADED,
}
_STATUS = {kind: status for status, kind in reversed(_BY_STATUS.items())} | {
    ErrorKind.BAD_REQUEST: 400,
    ErrorKind.CONTEXT_TOO_LONG: 400,
    ErrorKind.CONTENT_FILTER: 400,
    ErrorKind.MALFORMED_CALL: 400,
    ErrorKind.RATE_LIMIT: 429,
    ErrorKind.QUOTA: 429,
    ErrorKind.SERVER: 500,
}

# Codes and types of the vendors, most specific first.
_BY_CODE = (
    (
        ErrorKind.CONTEXT_TOO_LONG,
        r"context_length|context_size|context_window|too_many_(prompt_)?tokens|request_too_large",
    ),
    (ErrorKind.MALFORMED_CALL, r"tool_use_failed|malformed_function_call"),
    (ErrorKind.CONTENT_FILTER, r"content_?filter|content_policy|safety_?block"),
    (
        ErrorKind.QUOTA,
        r"insufficient_(quota|balance|credits)|exceeded_current_quota|quota_exhausted|billing",
    ),
    (ErrorKind.RATE_LIMIT, r"rate_?limit|too_?many_?requests|resource_exhausted"),
    (ErrorKind.OVERLOADED, r"overloaded|unavailable|(over|at)_capacity"),
    (
        ErrorKind.AUTH,
        r"invalid_?api_?key|incorrect_api_key|authentication|unauthenticated|unauthorized",
    ),
)
# Codes that a status is preferred to.
_BY_CODE_ALONE = (
    (ErrorKind.NOT_FOUND, r"not_?found"),
    (ErrorKind.PERMISSION, r"permission"),
    (ErrorKind.TIMEOUT, r"timeout|deadline"),
    (ErrorKind.BAD_REQUEST, r"invalid_|unsupported_|bad_request"),
)
# Words that vendors write where neither status nor code distinguishes: all of them report a
# context overflow as 400. A message also quotes names of tools and members, so these are phrases.
_BY_WORDS = (
    (
        ErrorKind.CONTEXT_TOO_LONG,
        r"context_length_exceeded|context_size_error|context (length|window|size|limit)"
        r"|maximum (context|prompt length)|prompt is too long|input token count"
        r"|too[_ ]many[_ ](prompt[_ ])?tokens|input is too long"
        r"|exceeds the maximum (number of |allowed |input )*(tokens|length|context)",
    ),
    (
        ErrorKind.MALFORMED_CALL,
        r"tool_use_failed|failed to call a function|malformed_function_call",
    ),
    (
        ErrorKind.CONTENT_FILTER,
        r"content management policy|content policy|content_policy_violation",
    ),
    (
        ErrorKind.QUOTA,
        r"insufficient_quota|exceeded your current quota|quota_exhausted|credit balance"
        r"|billing (details|hard limit)|insufficient (balance|credits)|(requests|tokens)perday",
    ),
    (
        ErrorKind.RATE_LIMIT,
        r"rate[-_ ]?limit|too many requests|resource[_ ]exhausted|tokens per min",
    ),
    (ErrorKind.OVERLOADED, r"overloaded|unavailable|at capacity"),
    (
        ErrorKind.AUTH,
        r"invalid[_ ]api[_ ]key|incorrect api key|\bauthentication\b|\bunauthenticated\b"
        r"|\bunauthorized\b",
    ),
)
_ANY_KIND = frozenset(kind for kind, _ in _BY_WORDS)
_REFUSED_KINDS = _ANY_KIND - {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED}
_KINDS = {
    403: frozenset[ErrorKind](),
    429: frozenset({ErrorKind.QUOTA, ErrorKind.OVERLOADED}),
    499: frozenset[ErrorKind](),
    503: frozenset[ErrorKind](),
    529: frozenset[ErrorKind](),
}
"""What the words of a message can turn a status into, where not every kind is possible."""
_CERTAIN = frozenset({401, 402, 404, 408, 504})
"""Statuses that need neither a code nor words."""
_NAMED_MEMBER = r"unsupported_|missing_|unknown_|invalid_(value|type|function|schema|image|json)"
"""Codes of a 400 that concern one member of the request, whatever the message quotes."""


def kind_of(status: int | None, code: str = "", message: str = "") -> ErrorKind:
    """The kind of an error: by status, then by code and type, then by words of the message."""
    by_status = _BY_STATUS.get(status or 0)
    if by_status is not None and status in _CERTAIN:
        return by_status
    by_code = _first(_BY_CODE, code)
    if by_code is not None:
        return by_code
    refused = status is not None and 400 <= status < 500
    if status is None:
        by_status = _first(_BY_CODE_ALONE, code)
    if not (refused and re.search(_NAMED_MEMBER, code)):
        possible = _KINDS.get(status or 0, _REFUSED_KINDS if refused else _ANY_KIND)
        patterns = tuple(item for item in _BY_WORDS if item[0] in possible)
        # Some vendors write a sentence as the code.
        by_words = _first(patterns, f"{code} {message}")
        if by_words is not None:
            return by_words
    if by_status is not None:
        return by_status
    return ErrorKind.BAD_REQUEST if refused else ErrorKind.SERVER


def _first(patterns: tuple[tuple[ErrorKind, str], ...], words: str) -> ErrorKind | None:
    # Compiled at the first error: most programs never see one.
    found = (kind for kind, pattern in patterns if re.search(pattern, words, re.IGNORECASE))
    return next(found, None)


def status_of(kind: str, status: int | None) -> int:
    """The HTTP status to send: the vendor's, or the usual one of the kind."""
    return status or _STATUS.get(ErrorKind(kind), 500)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, in any of the usual headers."""
    lower = {key.lower(): value for key, value in headers.items()}
    milliseconds = _seconds(lower.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = lower.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - loads a mail package, rarely

    try:
        # No clock here: the server's `date` header is the reference.
        until = parsedate_to_datetime(value)
        now = parsedate_to_datetime(lower["date"])
    except (KeyError, ValueError):
        return None
    return max(0.0, (until - now).total_seconds())


def _seconds(value: str | None) -> float | None:
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None


def read_failure(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The typed error of a failed response, whatever its body is."""
    text = body.decode("utf-8", "replace")
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = text.strip()
    wait = retry_after(headers)
    return failure(find_error(value) or value, status=status, body=text, wait=wait)


def find_error(value: Any) -> Any:
    """The error inside a body, or None."""
    if isinstance(value, list):
        for item in cast(list[Any], value):
            found = find_error(item)
            if found:
                return found
        return None
    if not isinstance(value, dict):
        return None
    body = cast(JsonObject, value)
    if body.get("error"):
        error = body["error"]
        # Some servers send the message beside a bare error code.
        if isinstance(error, str) and isinstance(body.get("message"), str):
            return {"code": error, **body}
        return error
    if body.get("detail"):
        return body["detail"]
    if body.get("object") == "error" or (
        isinstance(body.get("message"), str) and body["message"] and "choices" not in body
    ):
        return body
    return None


def failure(
    error: Any, *, status: int | None = None, body: str, wait: float | None = None
) -> ProviderError:
    """The typed error for a vendor's error value."""
    if not isinstance(error, dict):
        message = error if isinstance(error, str) else dump(error)
        message = message[:2000] or "the server gave no reason"
        return ProviderError(
            kind_of(status, "", message), message, status=status, retry_after=wait, body=body
        )
    found = cast(JsonObject, error)
    kind = _word(found.get("type"))
    code = _word(found.get("code")) or ("" if kind == "error" else kind)
    if status is None:
        status = _status(found)
    message = _message(found)
    return ProviderError(
        kind_of(status, f"{code} {kind}", message),
        message,
        status=status,
        code=code,
        param=_word(found.get("param")),
        retry_after=wait,
        body=body,
    )


def _message(error: JsonObject) -> str:
    message = _text(error.get("message")) or _text(error.get("msg")) or _text(error.get("detail"))
    metadata = error.get("metadata")
    # OpenRouter sends "Provider returned error", with the provider's own text in `raw`.
    raw = _text(cast(JsonObject, metadata).get("raw")) if isinstance(metadata, dict) else ""
    if raw and raw not in message:
        message = f"{message}: {raw}" if message else raw
    return message or dump(error)[:2000]


def _status(error: JsonObject) -> int | None:
    for key in ("status_code", "status", "code"):
        value = error.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value[:4])
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return None


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return dump(value)[:2000]


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def unreadable(frame: Frame, error: Exception, what: str) -> IncompleteStream | MalformedStream:
    """The error for a frame that is not JSON of the expected shape: cut, or malformed."""
    if frame.cut:
        return IncompleteStream(f"the stream was cut inside {what}")
    body = frame.data.decode("utf-8", "replace")
    return MalformedStream(f"unreadable {what}: {error}", body=body[:2000])
