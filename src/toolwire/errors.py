"""The one error tree.

ToolwireError
├── BadInput            a body, schema or name from outside that cannot be read
├── UnknownName         a dialect, provider, tool … that does not exist; names the nearest
├── ModelMissing        no model to ask: none is configured, or its file is not there
├── MalformedStream     a stream contains something that is not in its wire format
├── IncompleteStream    a stream stopped before its own end mark
├── ConnectionFailed    no answer: unreachable, broken or silent; may be retried
├── InvalidOutput       an answer that does not fit the required JSON Schema
├── SessionError        a session that is unknown, in use, or cannot be read or written
└── ProviderError       the vendor answered with an error; `kind` says how to treat it
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolwire.events import Usage

_LONGEST_NAME = 200
"""Characters of an unknown name that are compared and shown."""


class ErrorKind(StrEnum):
    """Kinds of vendor errors."""

    AUTH = "auth"
    PERMISSION = "permission"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    CONTEXT_TOO_LONG = "context_too_long"
    CONTENT_FILTER = "content_filter"
    OVERLOADED = "overloaded"
    MALFORMED_CALL = "malformed_call"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    TIMEOUT = "timeout"
    SERVER = "server"


class ToolwireError(Exception):
    """Base of all our errors."""

    kind: str = "error"
    usage: "Usage | None" = None
    """Tokens that the vendor had counted when an answer broke off; None if it reported none."""


class BadInput(ToolwireError):
    """A body from outside that cannot be read as what it claims to be."""

    kind = "bad_input"


def nearest_name(name: str, known: Iterable[str], *, least: float = 0.5) -> str:
    """Returns the known name most similar to a mistyped one; empty if none is similar enough."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped name needs it

    near = get_close_matches(name[:_LONGEST_NAME], tuple(known), 1, least)
    return near[0] if near else ""


class UnknownName(ToolwireError):
    """A name that does not exist."""

    kind = "unknown_name"

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        known = tuple(known)
        name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        near = nearest_name(name, known)
        hint = f'did you mean "{near}"?' if near else f"known: {', '.join(known) or 'none'}"
        super().__init__(f'unknown {what} "{name}"; {hint}')


class ModelMissing(ToolwireError):
    """No model is available; the message lists the options."""

    kind = "model_missing"


class MalformedStream(ToolwireError):
    """A stream contains something that is not in its wire format."""

    kind = "malformed_stream"

    def __init__(self, message: str, *, body: str = "") -> None:
        super().__init__(message)
        self.body = body


class IncompleteStream(ToolwireError):
    """A stream stopped before its end mark: its content is partial."""

    kind = "incomplete_stream"


class InvalidOutput(ToolwireError):
    """An answer that is not JSON, or not valid against the required schema."""

    kind = "invalid_output"


class ConnectionFailed(ToolwireError):
    """The server could not be reached, or the connection broke or fell silent."""

    def __init__(self, message: str, *, timed_out: bool = False, lasting: bool = False) -> None:
        super().__init__(message)
        self.kind = "timeout" if timed_out else "connection_failed"
        self.lasting = lasting
        """Whether a retry cannot help: an untrusted certificate."""


class SessionError(ToolwireError):
    """A session that does not exist, is in use by another process, or whose file fails."""

    kind = "session"


class SessionInUse(SessionError):
    """A session that another process holds."""

    def __init__(self, session: str, holder: str, until: float | None = None) -> None:
        self.holder = holder
        self.until = until
        """Unix time when it becomes free without a sign of life; None if only its end frees it."""
        super().__init__(
            f'session "{session}" is in use by {holder}; end that one first, or continue in a '
            f"copy: toolwire sessions fork {session}"
        )


class ProviderError(ToolwireError):
    """An error from the vendor, with its text."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        param: str = "",
        retry_after: float | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.code = code
        """The vendor's error code."""
        self.param = param
        """The request member the vendor complains about."""
        self.retry_after = retry_after
        self.body = body


def as_provider_error(error: ToolwireError) -> ProviderError:
    """The error as one of a vendor, for formats that can report only those."""
    if isinstance(error, ProviderError):
        return error
    kind, status = ErrorKind.SERVER, 502
    if isinstance(error, BadInput):
        kind, status = ErrorKind.BAD_REQUEST, 400
    elif isinstance(error, UnknownName | ModelMissing):
        kind, status = ErrorKind.NOT_FOUND, 404
    elif isinstance(error, ConnectionFailed) and error.kind == "timeout":
        kind, status = ErrorKind.TIMEOUT, 504
    found = ProviderError(kind, str(error), status=status)
    found.usage = error.usage
    return found
