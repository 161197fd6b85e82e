"""A client on standard input and output: one message a line, until the input ends."""

import asyncio

from toolwire.mcp.line_streams import MessageReader, MessageWriter
from toolwire.mcp_server.connection import ClientConnection
from toolwire.mcp_server.server import McpServer
from toolwire.wire.jsonrpc import PARSE_ERROR, LineReader, RpcFailure

_GRACE = 0.5
"""Seconds in which answers may still be given after the input has ended."""


async def serve_stdio(server: McpServer, reading: int, writing: int) -> str:
    """Serves the client until its input ends or cannot be read; returns why, empty for its end."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[str] = loop.create_future()

    def end(why: str) -> None:
        if not ended.done():
            ended.set_result(why)

    channel = MessageWriter(writing, end)
    connection = ClientConnection(server, channel, stateless=True)

    def junk(line: str) -> None:
        words = f"not a JSON-RPC message: {line[:60]}"
        connection.soon(channel.send(RpcFailure(None, PARSE_ERROR, words)))

    MessageReader(reading, LineReader(skip=junk), connection.receive, end)
    try:
        why = await ended
        if not why:
            await connection.peer.settled(_GRACE)
        return why
    finally:
        connection.close()
        await channel.flush(_GRACE)
