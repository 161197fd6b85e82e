"""The official file over HTTP: asked for from where the last try stopped."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urljoin, urlsplit

from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.embedded.partial import Meter, Partial
from toolwire.errors import BadInput, ConnectionFailed

_REDIRECTS = 5
_TRIES = 3
"""In a row without one byte more."""
_BLOCK = 1024 * 1024

_range = re.compile(r"bytes (\d+)-\d+/(\d+|\*)").fullmatch


async def fetch(
    url: str,
    partial: Partial,
    meter: Meter,
    transport: Transport,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Fill the partial file; a cut connection is taken up again where it broke."""
    meter.start(_host(url), partial.done)
    tries = 0
    while partial.done < partial.size:
        before = partial.done
        try:
            await _go_on(url, partial, meter, transport)
        except ConnectionFailed as error:
            tries = 0 if partial.done > before else tries + 1
            if error.lasting or tries >= _TRIES:
                raise
            await sleep(2.0**tries / 2)


async def _go_on(url: str, partial: Partial, meter: Meter, transport: Transport) -> None:
    for _ in range(_REDIRECTS + 1):
        start = partial.done
        headers = (("range", f"bytes={start}-"),) if start else ()
        async with transport.open(Outgoing(method="GET", url=url, headers=headers)) as answer:
            target = answer.headers.get("location", "")
            if answer.status in (301, 302, 303, 307, 308) and target:
                url = _next(url, target)
                continue
            _place(answer, partial, start, url)
            await _write(answer.chunks, partial, meter)
            if partial.done < partial.size:
                raise ConnectionFailed(f"{_host(url)} ended the file early")
            return
    raise BadInput(f"{_host(url)} redirects without end")


def _next(url: str, target: str) -> str:
    found = urljoin(url, target)
    if urlsplit(url).scheme == "https" and urlsplit(found).scheme != "https":
        raise BadInput(f"{_host(url)} redirects to an address without encryption")
    return found


def _place(answer: Incoming, partial: Partial, start: int, url: str) -> None:
    """Check what the answer is, and make the partial file end where it begins."""
    host = _host(url)
    if answer.status in (408, 425, 429) or answer.status >= 500:
        raise ConnectionFailed(f"{host} answers {answer.status}")
    total = answer.headers.get("content-length", "")
    if answer.status == 206 and (found := _range(answer.headers.get("content-range", ""))):
        if int(found[1]) != start:
            raise BadInput(f"{host} sends another part of the file than was asked for")
        total = found[2]
    elif answer.status == 200:
        # The server does not know ranges and sends the file from its beginning.
        partial.cut(0)
    else:
        raise BadInput(f"{host} answers {answer.status}")
    if total.isdigit() and int(total) != partial.size:
        raise BadInput(f"the file at {host} has {total} bytes instead of {partial.size}")


async def _write(chunks: AsyncIterator[bytes], partial: Partial, meter: Meter) -> None:
    block = bytearray()
    try:
        async for chunk in chunks:
            block += chunk
            if len(block) >= _BLOCK:
                meter.at(partial.append(bytes(block)))
                block.clear()
                _check_length(partial)
    finally:
        # What came before a cut need not be fetched again.
        if block:
            meter.at(partial.append(bytes(block)))
    _check_length(partial)


def _check_length(partial: Partial) -> None:
    if partial.done > partial.size:
        raise BadInput(f"more than {partial.size} bytes came")


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the server"
