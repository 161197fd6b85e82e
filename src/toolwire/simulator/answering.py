"""Encodes a reply as an HTTP answer, and sends it with its faults."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from toolwire import dialects
from toolwire.collect import Collector
from toolwire.dialects import Dialect
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import ModelEvent, Usage
from toolwire.simulator.received import Received
from toolwire.simulator.script import EVERY, Fault, Reply
from toolwire.simulator.speaking import Voice, spoken
from toolwire.wire.sse import Frame, SseEncoder

if TYPE_CHECKING:
    from aiohttp import web

_OUR_ITEM = re.compile(rb'(?<!\\)"((?:resp|msg|rs|fc|ctc|ig)_)tw(?=[0-9a-z])')
"""Ids that our encoder uses for items it made up; here they are the vendor's."""
_KINDS = {401: ErrorKind.AUTH, 403: ErrorKind.PERMISSION, 404: ErrorKind.NOT_FOUND}
_WORDS = {
    400: "the request is not valid",
    401: "the API key is not valid",
    403: "the key may not use this model",
    404: "no such model",
    429: "rate limit reached, try again later",
    500: "internal error",
    503: "the service is unavailable",
    529: "overloaded",
}


class Shape(Enum):
    """How an answer is sent."""

    WHOLE = "whole"
    STREAM = "stream"
    ARRAY = "array"
    """Gemini's stream without `alt=sse`."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """An answer ready to send."""

    status: int = 200
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    pieces: tuple[bytes, ...] = ()
    """One per event of a stream; a whole body is one piece."""


def error_answer(dialect: str, error: ProviderError) -> Written:
    """Returns the vendor's error body with its status."""
    status, body = dialects.get(dialect).encode_error(error)
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after is not None:
        headers = (("retry-after", f"{error.retry_after:g}"),)
    return Written(status=status, headers=headers, pieces=(body,))


def fault_answer(dialect: str, reply: Reply) -> Written:
    """Returns the error of a reply's fault."""
    fault = reply.fault
    if reply.body is not None:
        return Written(status=fault.status, headers=_retry(reply), pieces=(reply.body,))
    words = fault.message or _WORDS.get(fault.status, f"status {fault.status}")
    kind = _KINDS.get(fault.status) or dialects.get(dialect).error(fault.status, {}, b"").kind
    error = ProviderError(ErrorKind(kind), words, status=fault.status)
    return msgspec.structs.replace(error_answer(dialect, error), headers=_retry(reply))


def _retry(reply: Reply) -> tuple[tuple[str, str], ...]:
    return (("retry-after", reply.fault.retry_after),) if reply.fault.retry_after else ()


def written(reply: Reply, dialect: str, voice: Voice, counted: Usage, shape: Shape) -> Written:
    """Returns the answer in that wire format."""
    if reply.body is not None:
        kind = "application/json" if shape is Shape.WHOLE else "text/event-stream"
        return Written(kind=kind, pieces=(reply.body,))
    events, end = spoken(reply, voice, counted)
    codec = dialects.get(dialect)
    if shape is Shape.WHOLE:
        collector = Collector()
        collector.add_all(events)
        body = codec.encode_whole(collector.message(), end, voice.model, voice.new_id)
        return Written(pieces=(_own_ids(body),))
    frames = list(_frames(codec, [*events, end], reply, voice))
    if shape is Shape.ARRAY:
        bodies = [(b"," if number else b"[") + f.data for number, f in enumerate(frames)]
        return Written(pieces=(*bodies, b"]"))
    sse = SseEncoder()
    return Written(
        kind="text/event-stream",
        pieces=tuple(_own_ids(sse.encode(frame)) for frame in frames),
    )


def _own_ids(data: bytes) -> bytes:
    return _OUR_ITEM.sub(rb'"\1', data)


def _frames(
    codec: Dialect, events: list[ModelEvent], reply: Reply, voice: Voice
) -> Iterator[Frame]:
    encoder = codec.encoder(voice.model, voice.new_id)
    sent = 0
    for event in events:
        for frame in encoder.feed(event):
            if sent == reply.fault.error_after:
                words = reply.fault.message or "overloaded"
                yield from encoder.fail(ProviderError(ErrorKind.OVERLOADED, words))
                return
            yield frame
            sent += 1
    yield from encoder.close()


_PLAIN = Fault()


@asynccontextmanager
async def serving(
    handle: "Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]", host: str, port: int
) -> AsyncGenerator[str]:
    """Runs a server until the block ends; yields its address."""
    from aiohttp import web  # noqa: PLC0415 - scripts are read without it

    server = web.Server(handle, handler_cancellation=True, access_log=None)
    listening = await asyncio.get_running_loop().create_server(server, host, port)
    try:
        found = listening.sockets[0].getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{found}"
    finally:
        listening.close()
        # Zero would mean to wait for ever.
        await server.shutdown(0.001)
        await listening.wait_closed()


async def send(
    request: "web.BaseRequest", answer: Written, fault: Fault, received: Received
) -> "web.StreamResponse":
    """Writes the answer; returns when it is sent, cut, or the client disconnected."""
    from aiohttp import web  # noqa: PLC0415 - scripts are read without it

    if fault.wait_first:
        await asyncio.sleep(fault.wait_first)
    received.status = answer.status
    response = web.StreamResponse(status=answer.status, headers=dict(answer.headers))
    response.content_type = answer.kind
    if answer.status >= 400 or (len(answer.pieces) == 1 and fault == _PLAIN):
        response.content_length = sum(map(len, answer.pieces))
    await response.prepare(request)
    try:
        if request.method != "HEAD":
            await _write(response, answer, fault)
    except ConnectionError:
        return response
    if _is_cut(fault, answer) and fault.cut_how == "connection":
        if request.transport is not None:
            request.transport.close()
        return response
    await response.write_eof()
    received.finished = True
    return response


async def _write(response: "web.StreamResponse", answer: Written, fault: Fault) -> None:
    if fault.endless:
        await _repeat(response, answer, fault)
    left = fault.cut_bytes
    for number, piece in enumerate(_noisy(answer.pieces, fault)):
        if number == fault.cut_events:
            return
        if number == fault.hang_after:
            await asyncio.Event().wait()
        if number and fault.wait_each:
            await asyncio.sleep(fault.wait_each)
        if left is not None:
            piece, left = piece[:left], left - len(piece)
        await response.write(piece)
        if left is not None and left <= 0:
            return


def _noisy(pieces: tuple[bytes, ...], fault: Fault) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        if number == fault.noise_after:
            yield fault.noise
        yield piece


async def _repeat(response: "web.StreamResponse", answer: Written, fault: Fault) -> None:
    """Yields the opening, then repeats the last piece before the end."""
    words = answer.pieces[len(answer.pieces) // 2]
    for piece in answer.pieces[: len(answer.pieces) // 2]:
        await response.write(piece)
    while True:
        await response.write(words)
        await asyncio.sleep(fault.wait_each or EVERY)


def _is_cut(fault: Fault, answer: Written) -> bool:
    if fault.cut_bytes is not None:
        return fault.cut_bytes < sum(map(len, answer.pieces))
    return fault.cut_events is not None and fault.cut_events < len(answer.pieces)
