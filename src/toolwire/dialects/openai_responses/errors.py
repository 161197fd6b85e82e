"""The vendor's errors, both ways."""

from toolwire.dialects.failures import failure, find_error, status_of
from toolwire.errors import ErrorKind, ProviderError
from toolwire.wire.json_access import JsonObject, encode

_TYPES = {
    ErrorKind.AUTH: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.OVERLOADED: "server_error",
    ErrorKind.TIMEOUT: "server_error",
    ErrorKind.SERVER: "server_error",
}


def provider_error(value: object, body: bytes) -> ProviderError:
    """The error of an error object, nested or flat, or of a body that is not an object."""
    return failure(find_error(value) or value, body=body.decode("utf-8", "replace"))


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
    body = encode({"error": error_body(error)})
    return status_of(error.kind, error.status), body
