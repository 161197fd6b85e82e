"""Rates of a key: requests and tokens per minute, as token buckets."""

from collections.abc import Callable
from typing import Protocol

import msgspec

_MINUTE = 60.0


class Bucket(msgspec.Struct, frozen=True):
    """What is left at a time; it fills up within a minute."""

    level: float
    at: float

    def filled(self, per_minute: int, now: float) -> "Bucket":
        """Returns the bucket at a later time."""
        gained = max(0.0, now - self.at) * per_minute / _MINUTE
        return Bucket(min(float(per_minute), self.level + gained), max(self.at, now))

    def missing(self, amount: float, per_minute: int) -> float:
        """Returns the seconds until the amount can be taken; 0 if it can be now.

        More than a whole minute's amount is allowed when the bucket is full.
        """
        need = min(amount, float(per_minute)) - self.level
        return max(0.0, need * _MINUTE / per_minute)


class Rates(msgspec.Struct, frozen=True):
    """Limits per minute; 0 sets no limit."""

    requests: int = 0
    tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.requests or self.tokens)


class RateState(msgspec.Struct, frozen=True):
    """The buckets of one key."""

    requests: Bucket
    tokens: Bucket

    @classmethod
    def full(cls, rates: Rates, now: float) -> "RateState":
        """Returns full buckets."""
        return cls(Bucket(float(rates.requests), now), Bucket(float(rates.tokens), now))

    def take(self, rates: Rates, tokens: int, now: float) -> tuple["RateState", float]:
        """Returns the state without one request and its tokens, and 0; or the state unchanged and
        the seconds to wait.
        """
        found = RateState(
            self.requests.filled(rates.requests, now), self.tokens.filled(rates.tokens, now)
        )
        wait = max(
            found.requests.missing(1, rates.requests) if rates.requests else 0.0,
            found.tokens.missing(tokens, rates.tokens) if rates.tokens else 0.0,
        )
        if wait > 0:
            return found, wait
        return found.less(1 if rates.requests else 0, tokens if rates.tokens else 0), 0.0

    def less(self, requests: float, tokens: float) -> "RateState":
        """Returns the state after more was used; negative amounts give back."""
        return RateState(
            Bucket(self.requests.level - requests, self.requests.at),
            Bucket(self.tokens.level - tokens, self.tokens.at),
        )


class RateLimiter(Protocol):
    """Buckets of all keys: in this process, or shared by several."""

    async def take(self, key: str, rates: Rates, tokens: int) -> float:
        """Takes one request and its estimated tokens; else returns the seconds to wait."""
        ...

    def correct(self, key: str, rates: Rates, tokens: int) -> None:
        """Takes so many tokens more than was estimated, without waiting; a negative number is
        given back.
        """
        ...


class KeyTurns(Protocol):
    """Requests of each key at once, counted over several processes."""

    async def enter(self, request: str, key: str, most: int) -> bool:
        """Counts a request of a key; False if `most` of them run already."""
        ...

    def leave(self, request: str) -> None:
        """Counts it no longer, without waiting."""
        ...


class LocalRates:
    """Buckets in this process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._states: dict[str, RateState] = {}

    async def take(self, key: str, rates: Rates, tokens: int) -> float:
        """Takes one request and its estimated tokens; else returns the seconds to wait."""
        now = self._clock()
        state = self._states.get(key) or RateState.full(rates, now)
        self._states[key], wait = state.take(rates, tokens, now)
        return wait

    def correct(self, key: str, rates: Rates, tokens: int) -> None:
        """Takes so many tokens more than was estimated; gives back a negative number."""
        state = self._states.get(key)
        if state is not None and rates.tokens:
            self._states[key] = state.less(0, tokens)
