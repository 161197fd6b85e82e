"""Errors as OpenAI writes them in this format."""

from toolwire.dialects.failures import status_of
from toolwire.errors import ErrorKind, ProviderError
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode

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
