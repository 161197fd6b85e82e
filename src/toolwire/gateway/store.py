"""What the gateway stores of keys and money: values, and the protocol of a store."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from typing import Literal, Protocol, TypeAlias

import msgspec

from toolwire.errors import ToolwireError
from toolwire.gateway.limits import RateLimiter, Rates
from toolwire.gateway.record import RequestRecord
from toolwire.request import JsonObject

NANO = 1_000_000_000
"""Money is counted in whole billionths of a dollar: sums are exact."""
ADMIN = "admin"
ANONYMOUS = "anonymous"
"""Ids of callers without a stored key: they have no budget."""
Window: TypeAlias = Literal["hour", "day", "month", "total"]
UsageBy: TypeAlias = Literal["key", "model", "day"]
_USUAL_OUTPUT = 2_000
"""Tokens of an answer, as long as a key has none to learn from."""
_FORMATS: dict[Window, str] = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m"}


class Budget(msgspec.Struct, frozen=True):
    """Most US dollars within each window of time, in UTC."""

    dollars: float
    window: Window = "total"

    @property
    def text(self) -> str:
        """`20/month`."""
        amount = f"{self.dollars:.10f}".rstrip("0").rstrip(".")
        return amount if self.window == "total" else f"{amount}/{self.window}"


def window_name(window: Window, at: float) -> str:
    """Returns the name of the window that a time is in: `2026-11`."""
    return _named(window, int(at // 60))


@lru_cache(maxsize=64)
def _named(window: Window, minute: int) -> str:
    form = _FORMATS.get(window)
    return "total" if form is None else datetime.fromtimestamp(minute * 60, UTC).strftime(form)


def window_start(window: Window, at: float) -> float:
    """Returns when the window began that a time is in."""
    if window == "total":
        return 0.0
    start = datetime.fromtimestamp(at, UTC).replace(minute=0, second=0, microsecond=0)
    if window != "hour":
        start = start.replace(hour=0)
    if window == "month":
        start = start.replace(day=1)
    return start.timestamp()


def window_end(window: Window, at: float) -> float | None:
    """Returns when the next window begins; None for the total."""
    if window == "total":
        return None
    start = window_start(window, at)
    if window == "month":
        return window_start("month", start + 32 * 86_400)
    return start + (3_600 if window == "hour" else 86_400)


def nano(dollars: float) -> int:
    """Returns an amount in whole billionths."""
    return round(dollars * NANO)


class KeyRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a key may do; empty and 0 set no limit."""

    models: tuple[str, ...] = ()
    """Patterns of `provider/model`."""
    routes: tuple[str, ...] = ()
    """Patterns of the names of routes."""
    budgets: tuple[Budget, ...] = ()
    hard: bool = False
    """Each request reserves the most it can cost, so that no budget is exceeded."""
    refuse_unpriced: bool = False
    raw_unmetered: bool = False
    """May use `/raw/` in spite of a budget."""
    rpm: int = 0
    tpm: int = 0
    concurrent: int = 0
    scopes: tuple[str, ...] = ()

    @property
    def rates(self) -> Rates:
        """Returns the limits per minute."""
        return Rates(self.rpm, self.tpm)


class VirtualKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is stored: its secret only as a digest."""

    id: str
    name: str
    digest: bytes
    """SHA-256 of the secret: it has 256 random bits, which need no slow hash."""
    old_digest: bytes = b""
    """Of the secret before the last rotation."""
    old_until: float = 0.0
    rules: KeyRules = KeyRules()
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    last_used: float | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Budget that a request asks for before it is sent."""

    id: str
    """Of the request."""
    key: str
    """Id of the key."""
    route: str
    at: float
    budgets: tuple[Budget, ...]
    input_cost: int
    """Billionths of a dollar."""
    output_price: float
    """Billionths of a dollar for one token."""
    max_output: int | None = None
    """Most tokens of the answer; None if there is no limit."""
    hard: bool = False


def claimed(claim: Claim, typical: int | None) -> int:
    """Returns what is reserved; `typical` is the 95th percentile of the key's answers there."""
    usual = _USUAL_OUTPUT if typical is None else 2 * typical
    tokens = usual if claim.max_output is None else min(claim.max_output, usual)
    if claim.hard and claim.max_output is not None:
        tokens = claim.max_output
    return claim.input_cost + ceil(tokens * claim.output_price)


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """One budget of a key, in billionths of a dollar."""

    budget: Budget
    spent: int
    reserved: int
    resets: float | None = None
    """When its window ends."""

    @property
    def left(self) -> int:
        """Returns what may still be reserved."""
        return nano(self.budget.dollars) - self.spent - self.reserved


class Entry(msgspec.Struct, frozen=True):
    """A request at its end, and the id of its key."""

    record: RequestRecord
    key: str
    reserved: bool = True
    """Whether a part of a budget may be reserved for it."""


class UsageSum(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of requests."""

    name: str
    """Of the key, the model or the day."""
    requests: int = 0
    errors: int = 0
    input: int = 0
    """Tokens, cached ones included."""
    output: int = 0
    """Tokens, reasoning included."""
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float = 0.0
    """US dollars."""
    unpriced: int = 0
    """Requests whose price is not known."""


class LedgerFailed(ToolwireError):
    """The store could not be written."""


class GatewayStore(RateLimiter, Protocol):
    """Keys, budgets and the ledger: SQLite on one machine, a shared database on several."""

    async def add_key(self, key: VirtualKey) -> None:
        """Stores a new key; BadInput if its name is in use."""
        ...

    async def key(self, key_id: str) -> VirtualKey | None:
        """Returns a key by its id."""
        ...

    async def keys(self) -> list[VirtualKey]:
        """Returns all keys, the newest last."""
        ...

    async def change_key(self, key: VirtualKey) -> None:
        """Replaces a stored key."""
        ...

    async def reserve(self, claim: Claim) -> Spending | None:
        """Reserves budget in one transaction; returns the budget that is not sufficient."""
        ...

    def release(self, request: str) -> None:
        """Drops the reservation of a request that was not sent, without waiting."""
        ...

    async def book(self, entry: Entry) -> None:
        """Stores a request with its sums and drops its reservation, once for each id.

        It may be on disk only after `write`, which comes before its answer goes out.
        """
        ...

    def write(self) -> None:
        """Writes what was booked in this turn of the event loop."""
        ...

    def book_soon(self, entry: Entry) -> None:
        """Books a request without waiting for it."""
        ...

    async def sweep(self) -> int:
        """Drops reservations and turns of processes that no longer run; returns how many
        reservations.
        """
        ...

    async def spending(self, key: VirtualKey, at: float) -> list[Spending]:
        """Returns the state of each budget of a key."""
        ...

    async def usage(self, by: UsageBy, since: str = "", until: str = "") -> list[UsageSum]:
        """Returns sums, of the days from `since` to `until` (`2026-11-16`)."""
        ...

    async def requests(self, limit: int = 100, before: float | None = None) -> Sequence[JsonObject]:
        """Returns the last requests, the newest first."""
        ...

    async def prune(self, now: float, days: int) -> int:
        """Removes requests older than so many days; the sums stay."""
        ...
