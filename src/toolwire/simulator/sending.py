"""An answer on its way out, with everything that is to go wrong with it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

from aiohttp import web

from toolwire.simulator.answering import Written
from toolwire.simulator.misbehaviour import EVERY, Fault
from toolwire.simulator.received import Received

_PLAIN = Fault()


@asynccontextmanager
async def serving(
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], host: str, port: int
) -> AsyncGenerator[str]:
    """A server until the block ends; gives its address."""
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
    request: web.BaseRequest, answer: Written, fault: Fault, received: Received
) -> web.StreamResponse:
    """Writes the answer; returns when it is out, broken off, or when the client has gone."""
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


async def _write(response: web.StreamResponse, answer: Written, fault: Fault) -> None:
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


async def _repeat(response: web.StreamResponse, answer: Written, fault: Fault) -> None:
    """The opening, then the piece before the end again and again."""
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
