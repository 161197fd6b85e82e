"""Limits of a turn: requests, tokens, money, time."""

from typing import TypeVar

import msgspec

from toolwire.agent.events import TurnEnd
from toolwire.events import Usage


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Most that one turn may use; 0 sets no limit."""

    turns: int = 0
    """Requests to the model."""
    tokens: int = 0
    """Input and output of all requests together."""
    cost: float = 0.0
    """US dollars."""
    seconds: float = 0.0


NO_LIMITS = Limits()


class Spent:
    """Usage of a turn so far."""

    def __init__(self) -> None:
        self.requests = 0
        self.usage = Usage()
        self.cost: float | None = None

    def add(self, usage: Usage, cost: float | None) -> None:
        """Count one answer."""
        self.usage = summed(self.usage, usage)
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    def over(self, limits: Limits, seconds: float) -> tuple[TurnEnd, str] | None:
        """The first limit that is reached, with a message; None if another request may be made."""
        tokens = self.usage.total_input + self.usage.total_output
        if limits.turns and self.requests >= limits.turns:
            detail = f"reached the limit of {limits.turns} requests; raise it with --max-turns"
            return TurnEnd.TURN_LIMIT, detail
        if limits.tokens and tokens >= limits.tokens:
            detail = f"used {tokens} tokens of {limits.tokens}; raise limits.tokens"
            return TurnEnd.TOKEN_LIMIT, detail
        if limits.cost and (self.cost or 0.0) >= limits.cost:
            detail = f"spent ${self.cost:.4f} of ${limits.cost:.4f}; raise limits.cost"
            return TurnEnd.COST_LIMIT, detail
        if limits.seconds and seconds >= limits.seconds:
            detail = f"worked {seconds:.0f} s of {limits.seconds:.0f} s; raise limits.seconds"
            return TurnEnd.TIME_LIMIT, detail
        return None


def summed(one: Usage, other: Usage) -> Usage:
    """Sum of two usages, as totals: cached tokens in the input, reasoning in the output."""
    return Usage(
        input=one.total_input + other.total_input,
        output=one.total_output + other.total_output,
        cached=_sum(one.cached, other.cached),
        cache_write=_sum(one.cache_write, other.cache_write),
        reasoning=_sum(one.reasoning, other.reasoning),
        cost=_sum(one.cost, other.cost),
    )


_Count = TypeVar("_Count", int, float)


def _sum(one: _Count | None, other: _Count | None) -> _Count | None:
    return other if one is None else one if other is None else one + other
