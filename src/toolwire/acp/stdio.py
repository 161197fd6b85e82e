"""An editor on standard input and output: one message a line, until the input ends."""

import asyncio
from collections.abc import Mapping

from toolwire.acp.server import AcpServer, Setup
from toolwire.mcp.line_streams import MessageReader, MessageWriter
from toolwire.wire.jsonrpc import PARSE_ERROR, LineReader, RpcFailure

_FLUSH = 0.1


async def serve_editor(
    setup: Setup, reading: int, writing: int, *, environ: Mapping[str, str]
) -> str:
    """Serves the editor until its input ends or cannot be read; returns why, empty for its end."""
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(why: str) -> None:
        if not ended.done():
            ended.set_result(why)

    channel = MessageWriter(writing, end, cancels=False)
    server = AcpServer(channel, setup, environ=environ)

    def junk(line: str) -> None:
        words = f"not a JSON-RPC message: {line[:60]}"
        server.soon(channel.send(RpcFailure(None, PARSE_ERROR, words)))

    MessageReader(reading, LineReader(skip=junk), server.receive, end)
    try:
        return await ended
    finally:
        await server.close()
        await channel.flush(_FLUSH)
