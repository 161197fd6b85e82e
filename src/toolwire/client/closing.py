"""Reading a stream so that it ends with its reader."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

_Item = TypeVar("_Item")


@asynccontextmanager
async def reading(stream: AsyncIterator[_Item]) -> AsyncGenerator[AsyncIterator[_Item]]:
    """The stream, closed on the way out: a reader that stops early drops the connection."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
