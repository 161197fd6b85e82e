"""Decompression of response bodies."""

from asyncio import sleep
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

from toolwire.client.http.body import Inflater
from toolwire.client.http.errors import broken, not_http
from toolwire.client.http.head import Unreadable


def decompressed(
    chunks: AsyncIterator[bytes], headers: Mapping[str, str], host: str
) -> AsyncIterator[bytes]:
    """The chunks, decompressed if the headers name a coding."""
    coding = headers.get("content-encoding", "").strip().lower()
    return chunks if coding in ("", "identity") else _inflated(chunks, coding, host)


async def _inflated(chunks: AsyncIterator[bytes], coding: str, host: str) -> AsyncGenerator[bytes]:
    try:
        inflater = Inflater(coding)
        async for chunk in chunks:
            for number, piece in enumerate(inflater.feed(chunk)):
                if number:
                    # A few bytes may inflate to gigabytes: let a cancellation through.
                    await sleep(0)
                yield piece
    except Unreadable as error:
        raise not_http(host, str(error)) from error
    if not inflater.is_whole():
        raise broken(host, begun=True)
