"""Errors as answers to a client: status, headers and body of its format."""

import math

import msgspec

from toolwire.dialects import Dialect
from toolwire.errors import ErrorKind, ProviderError, ToolwireError, as_provider_error
from toolwire.gateway.parts import GatewayRefusal

_OURS = frozenset({ErrorKind.AUTH, ErrorKind.PERMISSION})
_STATUS = {
    ErrorKind.AUTH: 401,
    ErrorKind.PERMISSION: 403,
    ErrorKind.QUOTA: 429,
    ErrorKind.RATE_LIMIT: 429,
    ErrorKind.OVERLOADED: 503,
    ErrorKind.CONTEXT_TOO_LONG: 400,
    ErrorKind.CONTENT_FILTER: 400,
    ErrorKind.MALFORMED_CALL: 400,
    ErrorKind.BAD_REQUEST: 400,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.TIMEOUT: 504,
    ErrorKind.SERVER: 502,
}
_CODES = {ErrorKind.NOT_FOUND: "model_not_found", ErrorKind.OVERLOADED: "overloaded"}
"""Codes of OpenAI's formats; the others know only kinds."""
_BUSY = 529
"""Anthropic's status for an overloaded server."""


class FailedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An error as the client gets it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def for_client(
    error: ToolwireError, dialect: Dialect, provider: str = "", *, same_format: bool = False
) -> ProviderError:
    """The error in the client's terms; `provider` is the upstream that raised it."""
    found = as_provider_error(error)
    kind = ErrorKind(found.kind)
    if isinstance(found, GatewayRefusal):
        status = found.status or _status(kind, None, dialect)
        code = found.code or _CODES.get(kind, "")
        return _with(found, kind, str(found), status, code, found.param)
    if kind in _OURS:
        # The client's own key is valid: it must not ask its user to log in.
        message = f"the gateway's key for {provider or 'the upstream'} was refused: {found}"
        return _with(found, ErrorKind.SERVER, message, 502)
    # Another vendor's code would be read as one of the client's own.
    code = found.code if same_format else _CODES.get(kind, "")
    return _with(found, kind, str(found), _status(kind, found.status, dialect), code, found.param)


def _with(
    error: ProviderError,
    kind: ErrorKind,
    message: str,
    status: int,
    code: str = "",
    param: str = "",
) -> ProviderError:
    return ProviderError(
        kind, message, status=status, code=code, param=param, retry_after=error.retry_after
    )


def _status(kind: ErrorKind, given: int | None, dialect: Dialect) -> int:
    if kind is ErrorKind.OVERLOADED:
        return _BUSY if dialect.name == "anthropic-messages" else 503
    if kind is ErrorKind.SERVER and given is not None and 500 <= given < 505:
        return given
    if kind is ErrorKind.BAD_REQUEST and given in (409, 413, 415, 422):
        return given
    return _STATUS[kind]


def failed_answer(
    error: ToolwireError, dialect: Dialect, provider: str = "", *, same_format: bool = False
) -> FailedAnswer:
    """The whole answer that reports an error."""
    found = for_client(error, dialect, provider, same_format=same_format)
    status, body = dialect.encode_error(found)
    headers = [("content-type", "application/json")]
    if found.retry_after is not None:
        headers.append(("retry-after", str(math.ceil(found.retry_after))))
        headers.append(("retry-after-ms", str(math.ceil(found.retry_after * 1000))))
    retried = _should_retry(error, ErrorKind(found.kind))
    if retried is not None:
        headers.append(("x-should-retry", "true" if retried else "false"))
    return FailedAnswer(status=status, headers=tuple(headers), body=body)


def _should_retry(error: ToolwireError, kind: ErrorKind) -> bool | None:
    """What `x-should-retry` says; None without the header: the client knows by the status."""
    if isinstance(error, GatewayRefusal):
        if error.should_retry is not None:
            return error.should_retry
        return False if kind is ErrorKind.QUOTA else None
    refused = isinstance(error, ProviderError) and error.kind in _OURS
    return False if refused or kind is ErrorKind.QUOTA else None
