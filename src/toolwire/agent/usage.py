"""What a run uses and costs: limits of a turn, prices, and statistics from the events."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, TypeAlias, TypeVar

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    ApprovalOutcome,
    Emit,
    Noticed,
    ToolFinished,
    TurnEnd,
    UsageCounted,
)
from toolwire.errors import ProviderError, ToolwireError
from toolwire.events import Finished, ModelEvent, Notice, Retry, Usage
from toolwire.model import Model, reading
from toolwire.providers._spec import Prices
from toolwire.request import AttemptMeter, JsonObject, ModelRequest
from toolwire.setting import Amount, Count, setting

_MILLION = 1_000_000
Price: TypeAlias = Callable[[Usage], float | None]
"""US dollars of an answer; None if unknown."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Most that one turn may use; 0 sets no limit."""

    turns: Annotated[Count, setting("Requests to the model in one run; 0 means no limit.")] = 0
    tokens: Annotated[Count, setting("Tokens of one run, in and out; 0 means no limit.")] = 0
    cost: Annotated[Amount, setting("US dollars for one run; 0 means no limit.")] = 0.0
    seconds: Annotated[Amount, setting("Seconds one run may take; 0 means no limit.")] = 0.0


NO_LIMITS = Limits()


class Spent:
    """Usage of a turn so far: everything that was counted while it ran."""

    def __init__(self) -> None:
        self.requests = 0
        self.usage = Usage()
        self.cost: float | None = None

    def add(self, event: UsageCounted) -> None:
        """Count one request."""
        self.usage = summed(self.usage, event.usage)
        if event.cost is not None:
            self.cost = (self.cost or 0.0) + event.cost

    def over(self, limits: Limits, seconds: float) -> tuple[TurnEnd, str] | None:
        """The first limit that is reached, with a message; None if another request may be made."""
        tokens = self.usage.total_input + self.usage.total_output
        if limits.turns and self.requests >= limits.turns:
            detail = f"reached the limit of {limits.turns} requests; raise it with --max-turns"
            return TurnEnd.TURN_LIMIT, detail
        if limits.tokens and tokens >= limits.tokens:
            detail = f"used {tokens} tokens of {limits.tokens}; raise it with --max-tokens"
            return TurnEnd.TOKEN_LIMIT, detail
        if limits.cost and (self.cost or 0.0) >= limits.cost:
            detail = f"spent ${self.cost:.4f} of ${limits.cost:.4f}; raise it with --max-cost"
            return TurnEnd.COST_LIMIT, detail
        if limits.seconds and seconds >= limits.seconds:
            detail = f"worked {seconds:.0f} s of {limits.seconds:.0f} s; raise limits.seconds"
            return TurnEnd.TIME_LIMIT, detail
        return None

    def left(self, limits: Limits, seconds: float) -> Limits | None:
        """What is left for work inside the turn; None if a limit is reached.

        Requests are not shared: each session has its own number of them.
        """
        limits = msgspec.structs.replace(limits, turns=0)
        if self.over(limits, seconds) is not None:
            return None
        tokens = self.usage.total_input + self.usage.total_output
        return Limits(
            tokens=limits.tokens and limits.tokens - tokens,
            cost=limits.cost and limits.cost - (self.cost or 0.0),
            seconds=limits.seconds and limits.seconds - seconds,
        )


def tightest(one: Limits, other: Limits) -> Limits:
    """The smaller of each limit."""
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in one.__struct_fields__}
    return Limits(**{name: min(both) or max(both) for name, both in pairs.items()})


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


def cost(usage: Usage, prices: Prices | None) -> float | None:
    """US dollars: the vendor's own amount if it sent one, else tokens by price; None if unknown."""
    if usage.cost is not None:
        return usage.cost
    if prices is None or (usage.input is None and usage.output is None):
        return None
    read, written = usage.cached or 0, usage.cache_write or 0
    fresh = max(0, usage.total_input - read - written)
    dollars = fresh * prices.input + usage.total_output * prices.output
    dollars += read * _or(prices.cache_read, prices.input)
    dollars += written * _or(prices.cache_write, prices.input)
    return dollars / _MILLION


def _or(price: float | None, otherwise: float) -> float:
    return otherwise if price is None else price


def cost_from_usage(usage: Usage) -> float | None:
    """Cost if no price is known."""
    return usage.cost


class RequestCount:
    """Emits what one request used, with every attempt at it that failed."""

    def __init__(
        self,
        request: ModelRequest,
        *,
        emit: Emit,
        price: Price,
        clock: Callable[[], float],
        purpose: str = "turn",
    ) -> None:
        self._meter = AttemptMeter()
        self.request = msgspec.structs.replace(request, meter=self._meter)
        """The request to send."""
        self._emit = emit
        self._price = price
        self._clock = clock
        self._purpose = purpose
        self._began = clock()
        self._failures = 0

    async def failures(self, retry: Retry | None = None, error: str = "failed") -> int:
        """Emit the attempts that failed; returns how many of them the vendor counted."""
        failed, self._meter.failed = self._meter.failed, []
        if retry is not None and retry.status is not None:
            error = str(retry.status)
        for usage in failed:
            await self._counted(usage, error)
            self._began = self._clock() + (retry.wait if retry is not None else 0.0)
        self._failures += len(failed)
        return sum(usage is not None for usage in failed)

    async def end(self, finished: Finished | None, error: BaseException | None) -> None:
        """Emit how it ended; an attempt that was cancelled or left has failed too."""
        why = _word_for(error)
        await self.failures(error=why)
        reading = self._meter.reading
        if finished is not None:
            await self._counted(finished.usage)
        elif reading is not None:
            await self._counted(reading(), why)
        elif not self._failures:
            await self._counted(getattr(error, "usage", None), why)

    async def _counted(self, usage: Usage | None, error: str = "") -> None:
        usage = usage or Usage()
        meter = self._meter
        await self._emit(
            UsageCounted(
                model=meter.model or self.request.model,
                usage=usage,
                cost=(meter.price or self._price)(usage),
                seconds=max(0.0, self._clock() - self._began),
                failed=bool(error),
                purpose=self._purpose,
                error=error,
            )
        )


def _word_for(error: BaseException | None) -> str:
    """A failure in a word: its HTTP status, or its kind."""
    if isinstance(error, ProviderError) and error.status:
        return str(error.status)
    if isinstance(error, ToolwireError):
        return str(error.kind)
    return "interrupted" if error is not None else "failed"


def billed_to(model: Model, name: str, price: Price) -> Model:
    """The model, whose requests are counted under this name at its own price."""

    def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if request.meter is not None:
            request.meter.model, request.meter.price = name, price
        return model(request)

    return ask


def counted(
    model: Model,
    *,
    emit: Emit,
    price: Price = cost_from_usage,
    clock: Callable[[], float] = time.monotonic,
    purpose: str,
) -> Model:
    """The model for side requests: emits what each of them used."""

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        count = RequestCount(request, emit=emit, price=price, clock=clock, purpose=purpose)
        finished: Finished | None = None
        failure: BaseException | None = None
        try:
            async with reading(model(count.request)) as events:
                async for event in events:
                    if isinstance(event, Notice):
                        await count.failures(event.retry)
                    elif isinstance(event, Finished):
                        finished = event
                    yield event
        except BaseException as error:
            failure = error
            raise
        finally:
            await count.end(finished, failure)

    return ask


_Count = TypeVar("_Count", int, float)


def _sum(one: _Count | None, other: _Count | None) -> _Count | None:
    return other if one is None else one if other is None else one + other


class _Model:
    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.seconds = 0.0
        self.input = 0
        self.output = 0
        self.cached = 0
        self.thoughts = 0
        self.cost: float | None = None

    def add(self, counted: UsageCounted) -> None:
        usage: Usage = counted.usage
        self.requests += 1
        self.errors += counted.failed
        self.seconds += counted.seconds
        self.input += usage.total_input
        self.output += usage.total_output
        self.cached += usage.cached or 0
        self.thoughts += usage.reasoning or 0
        if counted.cost is not None:
            self.cost = (self.cost or 0.0) + counted.cost

    def body(self) -> JsonObject:
        return {
            "api": {
                "totalRequests": self.requests,
                "totalErrors": self.errors,
                "totalLatencyMs": _milliseconds(self.seconds),
            },
            "tokens": {
                "prompt": self.input,
                "candidates": max(0, self.output - self.thoughts),
                "total": self.input + self.output,
                "cached": self.cached,
                "thoughts": self.thoughts,
                "tool": 0,
            },
            "cost": self.cost,
        }


class _Tool:
    def __init__(self) -> None:
        self.success = 0
        self.fail = 0
        self.seconds = 0.0
        self.decisions = dict.fromkeys(map(str, ApprovalOutcome), 0)

    def add(self, finished: ToolFinished) -> None:
        self.success += finished.success
        self.fail += not finished.success
        self.seconds += finished.duration
        if finished.decision is not None:
            self.decisions[finished.decision] += 1

    def body(self, count: str, seconds: str, decisions: str, total: str = "") -> JsonObject:
        members = ("totalSuccess", "totalFail") if total else ("success", "fail")
        return {
            count: self.success + self.fail,
            members[0]: self.success,
            members[1]: self.fail,
            seconds: _milliseconds(self.seconds),
            decisions: {name: self.decisions[name] for name in _DECISIONS},
        }


_DECISIONS = ("accept", "reject", "modify", "auto_accept")


class Stats:
    """Counts events; `body` has the members of gemini-cli's stats, and a few more."""

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._all = _Tool()
        self._tools: dict[str, _Tool] = {}
        self._added = 0
        self._removed = 0
        self._prefix: list[str] = []

    def add(self, event: AgentEvent) -> None:
        """Count one event."""
        match event:
            case UsageCounted():
                self._models.setdefault(event.model, _Model()).add(event)
            case ToolFinished():
                self._all.add(event)
                self._tools.setdefault(event.name, _Tool()).add(event)
                if event.stat is not None and event.success:
                    self._added += event.stat.model_added + event.stat.user_added
                    self._removed += event.stat.model_removed + event.stat.user_removed
            case Noticed(kind="prefix"):
                self._prefix.append(event.message)
            case _:
                pass

    def body(self) -> JsonObject:
        """The counts so far."""
        models: Mapping[str, _Model] = self._models
        read = sum(model.input for model in models.values())
        cached = sum(model.cached for model in models.values())
        return {
            "models": {name: model.body() for name, model in models.items()},
            "tools": {
                **self._all.body("totalCalls", "totalDurationMs", "totalDecisions", "total"),
                "byName": {
                    name: tool.body("count", "durationMs", "decisions")
                    for name, tool in self._tools.items()
                },
            },
            "files": {"totalLinesAdded": self._added, "totalLinesRemoved": self._removed},
            "cache": {"input": read, "cached": cached, "changes": list(self._prefix)},
        }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
