"""A server on loopback that says exactly these bytes."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

Pieces = Sequence[bytes]
"""One answer, cut as the network may cut it."""


class RawServer:
    """Where it listens, and what it was asked on which connection."""

    def __init__(self, connections: Sequence[Sequence[Pieces]], stay: bool) -> None:
        self._connections = list(connections)
        self._stay = stay
        self.asked: list[tuple[int, bytes]] = []
        self.accepted = 0
        self.closed = [asyncio.Event() for _ in connections]
        """Set when the server has closed that connection."""
        self.left = asyncio.Event()
        """Set when a client goes."""
        self.host = ""
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: an answer for each request, then the end."""
        number = self.accepted
        self.accepted += 1
        self.writers.append(writer)
        try:
            for pieces in self._connections[number]:
                self.asked.append((number, await _request(reader)))
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    # The client runs on the same event loop: it has read before the next piece.
                    for _ in range(3):
                        await asyncio.sleep(0)
            if self._stay:
                while await reader.read(65536):
                    pass
                self.left.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        writer.close()
        self.closed[number].set()


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return head + (await reader.readexactly(int(length[1])) if length else b"")


@asynccontextmanager
async def raw_server(
    *connections: Sequence[Pieces], stay: bool = False, secure: ssl.SSLContext | None = None
) -> AsyncGenerator[RawServer]:
    """Each argument is the answers on one connection; `stay` leaves it open after the last."""
    raw = RawServer(connections, stay)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=secure)
    raw.host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield raw
    finally:
        server.close()
        for writer in raw.writers:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
