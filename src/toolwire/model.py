"""The model interface: a callable from a request to a stream of events."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

from toolwire.events import ModelEvent
from toolwire.request import ModelRequest

Model: TypeAlias = Callable[[ModelRequest], AsyncIterator[ModelEvent]]
"""Retry, fallback, recording and the prompted tool styles are functions from `Model` to `Model`."""

_Item = TypeVar("_Item")


def batches(ask: Model, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent]]:
    """The answer's events, as many at once as arrived together where the model knows that."""
    own = getattr(ask, "batches", None)
    return _one_by_one(ask(request)) if own is None else own(request)


async def _one_by_one(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[Sequence[ModelEvent]]:
    async with reading(events) as stream:
        async for event in stream:
            yield (event,)


@asynccontextmanager
async def reading(stream: AsyncIterator[_Item]) -> AsyncGenerator[AsyncIterator[_Item]]:
    """Yields the stream and closes it on exit: leaving early stops the model."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
