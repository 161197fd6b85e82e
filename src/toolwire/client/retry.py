"""Whether a failed request is worth another try, when, and without what. Pure."""

import re
from typing import TypeAlias

import msgspec

from toolwire.errors import (
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    ProviderError,
    ToolwireError,
)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How patient to be. The curve is that of the vendors' own SDKs."""

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 8.0
    spread: float = 0.25
    """The share of a wait that chance may take off, so that many clients do not return at once."""
    longest_asked: float = 120.0
    """A server that asks for more is not waited for."""


USUAL = RetryPolicy()


class Wait(msgspec.Struct, frozen=True):
    """Try again after so many seconds."""

    seconds: float


class GiveUp(msgspec.Struct, frozen=True):
    """Do not try again."""

    reason: str = ""
    """What the error itself does not say; empty if nothing."""


Decision: TypeAlias = Wait | GiveUp

_TERMINAL = frozenset({ErrorKind.AUTH, ErrorKind.QUOTA})
_PASSING = frozenset(
    {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.SERVER, ErrorKind.TIMEOUT}
)
_SAME_AGAIN = frozenset(
    {ErrorKind.CONTEXT_TOO_LONG, ErrorKind.CONTENT_FILTER, ErrorKind.MALFORMED_CALL}
)
_STATUSES = frozenset({408, 409, 429})


def decide(
    error: ToolwireError,
    attempt: int,
    policy: RetryPolicy,
    jitter: float,
    *,
    should_retry: bool | None = None,
) -> Decision:
    """What to do after `attempt` (counting from 1) failed; `jitter` is between 0 and 1.

    `should_retry` is the server's own word, the header `x-should-retry`.
    """
    if not _passes(error, should_retry):
        return GiveUp()
    asked = error.retry_after if isinstance(error, ProviderError) else None
    if asked is not None and asked > policy.longest_asked:
        return GiveUp(
            f"the server asks to wait {asked:g} s, more than the {policy.longest_asked:g} s allowed"
        )
    if attempt >= policy.attempts:
        return GiveUp(f"given up after {attempt} attempts" if attempt > 1 else "")
    if asked:
        return Wait(asked)
    curve = policy.first_wait * 2.0 ** min(attempt - 1, 30)
    return Wait(min(curve, policy.longest_wait) * (1 - policy.spread * jitter))


def _passes(error: ToolwireError, should_retry: bool | None) -> bool:
    if isinstance(error, ConnectionFailed):
        return not error.lasting
    if isinstance(error, IncompleteStream):
        return True
    if not isinstance(error, ProviderError) or error.kind in _TERMINAL:
        return False
    if should_retry is not None:
        return should_retry
    if error.kind in _SAME_AGAIN:
        return False
    if error.status is None:
        return error.kind in _PASSING
    return error.status in _STATUSES or error.status >= 500


DROPPABLE = (
    "tool_choice",
    "parallel_tool_calls",
    "stream_options",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "strict",
)
"""Request members an answer can do without, or that have another spelling."""

# Text, not patterns: few programs ever meet such an error, and reading these takes its time.
_NAMED = rf"(?<![a-z_])({'|'.join(DROPPABLE)})(?![a-z_])"
# A value out of range is the caller's mistake and stays an error; only refused members are dropped.
_REFUSED = (
    r"unsupported|not (be )?support|n't support|unknown|unrecogni[sz]ed|unexpected|not permitted"
    r"|not allowed|not (be )?available|extra (inputs?|fields?)|extra_forbidden|deprecated"
    r"|incompatible|may not be|cannot (both )?be|can't be|no endpoints found|only the default"
    r"|does not exist|is not a valid (parameter|field|argument)"
)
_COMPLAINTS = frozenset({400, 404, 422})
_COMPLAINT_KINDS = frozenset({ErrorKind.BAD_REQUEST, ErrorKind.NOT_FOUND})


def droppable(error: ToolwireError) -> str | None:
    """The member of `DROPPABLE` that the server refuses, if that is its complaint."""
    if not isinstance(error, ProviderError) or error.status not in _COMPLAINTS:
        return None
    if error.kind not in _COMPLAINT_KINDS:
        return None
    said = f"{error.code} {error}"
    if not re.search(_REFUSED, said, re.IGNORECASE):
        return None
    found = re.search(_NAMED, error.param) or re.search(_NAMED, said)
    return found[1] if found else None
