"""Cost of an answer."""

from collections.abc import AsyncIterator, Callable

import msgspec

from toolwire.events import Finished, ModelEvent, Usage
from toolwire.model import Model, reading
from toolwire.providers._spec import ModelInfo, Prices
from toolwire.request import ModelRequest

_MILLION = 1_000_000


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """One answer's tokens and, where prices are known, US dollars."""

    provider: str
    model: str
    usage: Usage
    dollars: float | None = None


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


def metered(model: Model, info: ModelInfo, sink: Callable[[Spent], None]) -> Model:
    """The model, with the cost of each answer sent to `sink` before its end event."""

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        async with reading(model(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    sink(
                        Spent(
                            provider=info.provider,
                            model=info.id,
                            usage=event.usage,
                            dollars=cost(event.usage, info.prices),
                        )
                    )
                yield event

    return ask


def _or(price: float | None, otherwise: float) -> float:
    return otherwise if price is None else price
