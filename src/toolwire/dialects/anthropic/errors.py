"""Errors of this vendor, both ways."""

from collections.abc import Mapping

from toolwire.dialects.failures import kind_of, retry_after, status_of
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode, is_object, parse_object, text_or_empty

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TYPES = {
    ErrorKind.AUTH: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.QUOTA: "billing_error",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.OVERLOADED: "overloaded_error",
    ErrorKind.NOT_FOUND: "not_found_error",
    ErrorKind.TIMEOUT: "timeout_error",
    ErrorKind.SERVER: "api_error",
}
_TOO_LONG = "prompt is too long"
"""Clients of this vendor look for this text to shorten the conversation."""


def of_response(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The typed error of a failed response."""
    text = body.decode("utf-8", "replace")
    try:
        found = parse_object(body, "error")
    except BadInput:
        found = {"message": text.strip()[:2000] or f"HTTP status {status}"}
    return of_body(status, found, text, retry_after(headers))


def of_body(
    status: int | None, body: JsonObject, text: str, wait: float | None = None
) -> ProviderError:
    """The typed error of an error object in a response or a stream."""
    error = body.get("error")
    code, message = "", ""
    if is_object(error):
        code = text_or_empty(error.get("type"))
        message = text_or_empty(error.get("message"))
    elif isinstance(error, str):
        message = error
    message = (
        message or text_or_empty(body.get("message")) or code or "the server reported an error"
    )
    return ProviderError(
        kind_of(status or _STATUS.get(code), code, message),
        message,
        status=status,
        code=code,
        retry_after=wait,
        body=text,
    )


def status_and_body(error: ProviderError) -> tuple[int, bytes]:
    """Status and body with which this vendor would report an error."""
    kind = _type(error)
    usual = _STATUS.get(kind) if error.kind != ErrorKind.QUOTA else None
    status = error.status or usual or status_of(error.kind, None)
    return status, _original_body(error) or encode(error_object(error))


def error_object(error: ProviderError) -> JsonObject:
    """The error object of a response body or a stream event."""
    message = str(error)
    if error.kind == ErrorKind.CONTEXT_TOO_LONG and _TOO_LONG not in message:
        message = f"{_TOO_LONG}: {message}"
    return {"type": "error", "error": {"type": _type(error), "message": message}}


def _type(error: ProviderError) -> str:
    if error.code in _STATUS:
        return error.code
    return _TYPES.get(ErrorKind(error.kind), "invalid_request_error")


def _original_body(error: ProviderError) -> bytes | None:
    """The original body of an error that this vendor reported."""
    if error.code not in _STATUS or not error.body:
        return None
    try:
        reported = parse_object(error.body, "error").get("type") == "error"
    except BadInput:
        return None
    return error.body.encode() if reported else None
