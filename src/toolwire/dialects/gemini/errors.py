"""Google's error objects both ways."""

import re
from collections.abc import Mapping
from typing import Any

from toolwire.dialects.failures import kind_of, retry_after, status_of
from toolwire.dialects.gemini.shapes import is_list, listed
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, is_object, parse

_STATUS_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_STATUS = {code: status for status, code in reversed(_STATUS_CODES.items())} | {
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "ALREADY_EXISTS": 409,
    "UNKNOWN": 500,
}
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_DELAY = re.compile(r"([0-9]+(?:\.[0-9]+)?)s")
_LIMITED = frozenset({ErrorKind.QUOTA, ErrorKind.RATE_LIMIT})


def read_error(status: int | None, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The typed error of an error body, or of any other body."""
    text = body.decode("utf-8", "replace")
    try:
        value = parse(body, "error")
    except BadInput:
        value = None
    error = error_object(value)
    if error is None:
        message = text.strip()[:500] or f"the server answered {status} with an empty body"
        kind = kind_of(status, "", message)
        return ProviderError(
            kind, message, status=status, retry_after=retry_after(headers), body=text
        )
    return typed_error(error, status, text, retry_after(headers))


def error_object(value: Any) -> JsonObject | None:
    """The inner object of `{"error": …}` or `[{"error": …}]`; None if it is not an error."""
    if is_list(value) and value:
        value = value[0]
    found = value.get("error") if is_object(value) else None
    if isinstance(found, str):
        return {"message": found}
    return found if is_object(found) else None


def typed_error(
    error: JsonObject, status: int | None, body: str, wait: float | None = None
) -> ProviderError:
    """The typed error of an error object."""
    code = error.get("status")
    code = code if isinstance(code, str) else ""
    number = error.get("code")
    if status is None:
        number = number if isinstance(number, int) and 100 <= number < 600 else None
        status = number or _STATUS.get(code)
    message = error.get("message")
    message = message if isinstance(message, str) else dump(error)
    details = _details(error)
    delay = _retry_delay(details)
    return ProviderError(
        _kind(status, code, message, details, delay),
        message,
        status=status,
        code=code,
        retry_after=wait if delay is None else delay,
        body=body,
    )


def _details(error: JsonObject) -> list[JsonObject]:
    return list(filter(is_object, listed(error.get("details"))))


def _retry_delay(details: list[JsonObject]) -> float | None:
    for detail in details:
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            found = _DELAY.fullmatch(delay)
            if found:
                return float(found[1])
        if is_object(delay) and isinstance(delay.get("seconds"), int):
            return float(delay["seconds"])
    return None


def _kind(
    status: int | None, code: str, message: str, details: list[JsonObject], delay: float | None
) -> ErrorKind:
    reasons = " ".join(str(detail.get("reason") or "") for detail in details)
    if "API_KEY_INVALID" in reasons or "api key not valid" in message.lower():
        return ErrorKind.AUTH
    kind = kind_of(status, f"{code} {reasons}", message)
    if status == 429 or kind in _LIMITED:
        # The message is the same for every quota; only the details name its period.
        quotas = dump([detail.get("violations") for detail in details]).lower()
        if "perday" in quotas or "QUOTA_EXHAUSTED" in reasons:
            return ErrorKind.QUOTA
        if delay is not None or "perminute" in quotas or "RATE_LIMIT_EXCEEDED" in reasons:
            return ErrorKind.RATE_LIMIT
    return kind


def write_error(error: ProviderError) -> tuple[int, JsonObject]:
    """Status and body as Google would write them."""
    status = status_of(error.kind, error.status)
    code = error.code if error.code in _STATUS else _STATUS_CODES.get(status)
    if code is None:
        code = "INTERNAL" if status >= 500 else "INVALID_ARGUMENT"
    body: JsonObject = {"code": status, "message": str(error), "status": code}
    if error.retry_after is not None:
        seconds = f"{error.retry_after:.9f}".rstrip("0").rstrip(".")
        delay = f"{seconds}s"
        body["details"] = [{"@type": _RETRY_INFO, "retryDelay": delay}]
    return status, {"error": body}
