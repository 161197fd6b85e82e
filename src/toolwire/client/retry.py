"""Whether and when a failed request is retried, and without which member. Pure."""

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.errors import (
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    ProviderError,
    ToolwireError,
)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts and delays; the backoff is that of the vendors' own SDKs."""

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 8.0
    spread: float = 0.25
    """Random share taken off a delay, so that many clients do not return at once."""
    longest_delay: float = 120.0
    """The longest delay a server may request; there is no retry after a longer one."""


USUAL = RetryPolicy()


class Wait(msgspec.Struct, frozen=True):
    """Try again after this many seconds."""

    seconds: float


class GiveUp(msgspec.Struct, frozen=True):
    """Do not try again."""

    reason: str = ""
    """What the error itself does not contain; may be empty."""


Decision: TypeAlias = Wait | GiveUp

_TERMINAL = frozenset({ErrorKind.AUTH, ErrorKind.QUOTA})
_PASSING = frozenset(
    {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.SERVER, ErrorKind.TIMEOUT}
)
_SAME_AGAIN = frozenset(
    {ErrorKind.CONTEXT_TOO_LONG, ErrorKind.CONTENT_FILTER, ErrorKind.MALFORMED_CALL}
)
_STATUSES = frozenset({408, 409, 429, 499})


def decide(
    error: ToolwireError,
    attempt: int,
    policy: RetryPolicy,
    jitter: float,
    *,
    should_retry: bool | None = None,
) -> Decision:
    """What to do after `attempt` (counting from 1) failed; `jitter` is between 0 and 1.

    `should_retry` is the server's header `x-should-retry`.
    """
    if not _passes(error, should_retry):
        return GiveUp()
    delay = error.retry_after if isinstance(error, ProviderError) else None
    if delay is not None and delay > policy.longest_delay:
        return GiveUp(
            f"the server asks to wait {delay:g} s, more than the {policy.longest_delay:g} s allowed"
        )
    if attempt >= policy.attempts:
        return GiveUp(f"gave up after {attempt} attempts" if attempt > 1 else "")
    if delay:
        return Wait(delay)
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
"""Optional request members, or ones with another spelling."""

# Text, not compiled patterns: such errors are rare, and compiling costs start-up time.
_NAMED = rf"(?<![a-z_])({'|'.join(DROPPABLE)})(?![a-z_])"
# A value out of range is the caller's error and is raised; only refused members are dropped.
_REFUSED = (
    r"unsupported|not (be )?support|n't support|unknown|unrecogni[sz]ed|unexpected|not permitted"
    r"|not allowed|not (be )?available|extra (inputs?|fields?)|extra_forbidden|deprecated"
    r"|incompatible|may not be|cannot (both )?be|can't be|no endpoints found|only the default"
    r"|does not exist|is not a valid (parameter|field|argument)"
)
_COMPLAINTS = frozenset({400, 404, 422})
_COMPLAINT_KINDS = frozenset({ErrorKind.BAD_REQUEST, ErrorKind.NOT_FOUND})


def droppable(error: ToolwireError) -> str | None:
    """The member of `DROPPABLE` that the server refuses, if any."""
    if not isinstance(error, ProviderError) or error.status not in _COMPLAINTS:
        return None
    if error.kind not in _COMPLAINT_KINDS:
        return None
    message = f"{error.code} {error}"
    if not re.search(_REFUSED, message, re.IGNORECASE):
        return None
    found = re.search(_NAMED, error.param) or re.search(_NAMED, message)
    return found[1] if found else None


_WITHOUT: dict[str, dict[str, Any]] = {
    "tool_choice": {"tool_choices": frozenset({"auto"})},
    "parallel_tool_calls": {"parallel_flag": False},
    "stream_options": {"stream_usage": False},
    "max_completion_tokens": {"max_tokens_field": "max_tokens"},
    "max_tokens": {"max_tokens_field": "max_completion_tokens"},
    "temperature": {"sampling": False},
    "top_p": {"sampling": False},
    "strict": {"strict_tools": False},
}


class Learned:
    """Refused members per provider and model, for as long as the owner keeps it: a session."""

    def __init__(self, entries: Iterable[tuple[str, str, str]] = ()) -> None:
        self._refused: dict[tuple[str, str], tuple[str, ...]] = {}
        for provider, model, member in entries:
            self.add(provider, model, member)

    def add(self, provider: str, model: str, member: str) -> None:
        """Record that a server refuses a member for a model."""
        known = self.refused(provider, model)
        if member in _WITHOUT and member not in known:
            self._refused[provider, model] = (*known, member)

    def refused(self, provider: str, model: str) -> tuple[str, ...]:
        """Members known to be refused, in the order they were learned."""
        return self._refused.get((provider, model), ())

    def entries(self) -> tuple[tuple[str, str, str], ...]:
        """All entries for storage: (provider, model, member)."""
        return tuple(
            (provider, model, member)
            for (provider, model), members in self._refused.items()
            for member in members
        )


def without(quirks: Quirks, refused: Iterable[str]) -> Quirks:
    """The quirks of a server that also refuses these members."""
    for member in refused:
        quirks = msgspec.structs.replace(quirks, **_WITHOUT[member])
    return quirks
