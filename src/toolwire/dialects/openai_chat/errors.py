"""Errors of chat servers: every shape they have, and the one we write."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toolwire.dialects.failures import kind_of, retry_after, status_of
from toolwire.errors import ErrorKind, ProviderError
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, encode

_TYPES = {
    ErrorKind.AUTH: ("authentication_error", "invalid_api_key"),
    ErrorKind.PERMISSION: ("permission_error", "permission_denied"),
    ErrorKind.QUOTA: ("insufficient_quota", "insufficient_quota"),
    ErrorKind.RATE_LIMIT: ("rate_limit_error", "rate_limit_exceeded"),
    ErrorKind.CONTEXT_TOO_LONG: ("invalid_request_error", "context_length_exceeded"),
    ErrorKind.CONTENT_FILTER: ("invalid_request_error", "content_filter"),
    ErrorKind.MALFORMED_CALL: ("invalid_request_error", "tool_use_failed"),
    ErrorKind.BAD_REQUEST: ("invalid_request_error", None),
    ErrorKind.NOT_FOUND: ("invalid_request_error", "not_found"),
    ErrorKind.TIMEOUT: ("timeout", "timeout"),
    ErrorKind.OVERLOADED: ("server_error", "overloaded"),
    ErrorKind.SERVER: ("server_error", None),
}

_any = msgspec.json.Decoder().decode


def read_failure(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The typed error of a failed response, whatever its body is."""
    text = body.decode("utf-8", "replace")
    try:
        value = _any(body)
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
    code = _word(found.get("code")) or _word(found.get("type"))
    if status is None:
        status = _status(found)
    message = _message(found)
    return ProviderError(
        kind_of(status, f"{code} {_word(found.get('type'))}", message),
        message,
        status=status,
        code=code,
        param=_word(found.get("param")),
        retry_after=wait,
        body=body,
    )


def write_failure(error: ProviderError) -> tuple[int, bytes]:
    """Status and body as OpenAI would send them."""
    return status_of(error.kind, error.status), encode(error_body(error))


def error_body(error: ProviderError) -> JsonObject:
    """The error as OpenAI writes it."""
    kind, code = _TYPES[ErrorKind(error.kind)]
    return {
        "error": {
            "message": str(error),
            "type": kind,
            "param": error.param or None,
            "code": error.code or code,
        }
    }


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
