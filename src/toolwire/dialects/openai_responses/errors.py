"""The vendor's errors, both ways."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toolwire.dialects.failures import kind_of, retry_after, status_of
from toolwire.dialects.openai_responses.shapes import member
from toolwire.errors import ErrorKind, ProviderError
from toolwire.wire.json_access import JsonObject, dump, object_or_empty

_TYPES = {
    ErrorKind.AUTH: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.OVERLOADED: "server_error",
    ErrorKind.TIMEOUT: "server_error",
    ErrorKind.SERVER: "server_error",
}
_plain = msgspec.json.Decoder()


def is_error(body: Any) -> bool:
    """Whether a body that is not an event is an error of a vendor or a proxy."""
    match body:
        case {"error": {} | str()} | {"message": str()} | {"detail": _}:
            return True
        case _:
            return False


def provider_error(
    value: object, body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error of an error object, nested or flat, or of a body that is not an object."""
    raw = body.decode("utf-8", "replace")
    source = object_or_empty(value)
    inner = source.get("error")
    if isinstance(inner, dict):
        source = cast(JsonObject, inner)
    elif isinstance(inner, str):
        source = {"message": inner}
    found = source.get("message") or source.get("detail")
    message = found if isinstance(found, str) else dump(found) if found else raw[:2000]
    code, kind = str(source.get("code") or ""), member(source, "type")
    return ProviderError(
        kind_of(status, f"{code} {kind}", message),
        message or f"the server answered with status {status}",
        status=status,
        code=code or ("" if kind == "error" else kind),
        param=member(source, "param"),
        retry_after=retry_after(headers or {}),
        body=raw,
    )


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The typed error of a failed response."""
    try:
        value = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    return provider_error(value, body, status, headers)


def error_body(error: ProviderError) -> JsonObject:
    """The error object of this format."""
    kind = ErrorKind(error.kind)
    return {
        "message": str(error),
        "type": _TYPES.get(kind, "invalid_request_error"),
        "param": error.param or None,
        "code": error.code or _code(kind),
    }


def _code(kind: ErrorKind) -> str:
    match kind:
        case ErrorKind.CONTEXT_TOO_LONG:
            return "context_length_exceeded"
        case ErrorKind.RATE_LIMIT:
            return "rate_limit_exceeded"
        case ErrorKind.QUOTA:
            return "insufficient_quota"
        case ErrorKind.AUTH:
            return "invalid_api_key"
        case ErrorKind.CONTENT_FILTER:
            return "content_policy_violation"
        case ErrorKind.SERVER | ErrorKind.OVERLOADED | ErrorKind.TIMEOUT:
            return "server_error"
        case _:
            return kind.value


def encode_error(error: ProviderError) -> tuple[int, bytes]:
    """The status and body of an error response."""
    body = msgspec.json.encode({"error": error_body(error)})
    return status_of(error.kind, error.status), body
