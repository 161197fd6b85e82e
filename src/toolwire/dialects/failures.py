"""Status, code and message of a vendor's error → the kind of a typed error."""

import re
from collections.abc import Mapping

from toolwire.errors import ErrorKind, IncompleteStream, MalformedStream
from toolwire.wire.sse import Frame

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
    499: ErrorKind.RATE_LIMIT,
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

# Texts of the vendors, most specific first: all of them report a context overflow as 400.
_BY_WORDS = (
    (
        ErrorKind.CONTEXT_TOO_LONG,
        r"context_length_exceeded|context_size_error|context (length|window|size|limit)"
        r"|maximum (context|prompt length)|prompt is too long|input token count"
        r"|too[_ ]many[_ ](prompt[_ ])?tokens|input is too long|exceeds the maximum",
    ),
    (
        ErrorKind.MALFORMED_CALL,
        r"tool_use_failed|failed to call a function|malformed_function_call",
    ),
    (
        ErrorKind.CONTENT_FILTER,
        r"content_filter|content management policy|content_policy|safety_?block",
    ),
    (
        ErrorKind.QUOTA,
        r"insufficient_quota|exceeded your current quota|quota_exhausted|billing|credit balance"
        r"|insufficient (balance|credits)|perday",
    ),
    (
        ErrorKind.RATE_LIMIT,
        r"rate[_ ]?limit|too many requests|resource[_ ]exhausted|tokens per min",
    ),
    (ErrorKind.OVERLOADED, r"overloaded|unavailable|at capacity"),
    (
        ErrorKind.AUTH,
        r"invalid[_ ]api[_ ]key|incorrect api key|authentication|unauthenticated|unauthorized",
    ),
)
# Without a status, the code decides.
_BY_CODE = (
    (ErrorKind.NOT_FOUND, r"not_?found"),
    (ErrorKind.PERMISSION, r"permission"),
    (ErrorKind.TIMEOUT, r"timeout|deadline"),
    (ErrorKind.BAD_REQUEST, r"invalid_|unsupported_|bad_request"),
)


def kind_of(status: int | None, code: str = "", message: str = "") -> ErrorKind:
    """The kind of an error."""
    by_status = _BY_STATUS.get(status or 0)
    if status is None:
        by_status = _first(_BY_CODE, code)
    if by_status not in (ErrorKind.AUTH, ErrorKind.NOT_FOUND, ErrorKind.PERMISSION):
        by_words = _first(_BY_WORDS, f"{code} {message}")
        if by_words is not None:
            return by_words
    if by_status is not None:
        return by_status
    return ErrorKind.BAD_REQUEST if status is not None and 400 <= status < 500 else ErrorKind.SERVER


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


def unreadable(frame: Frame, error: Exception, what: str) -> IncompleteStream | MalformedStream:
    """The error for a frame that is not JSON of the expected shape: cut, or malformed."""
    if frame.cut:
        return IncompleteStream(f"the stream was cut inside {what}")
    body = frame.data.decode("utf-8", "replace")
    return MalformedStream(f"unreadable {what}: {error}", body=body[:2000])
