"""Connections to real server processes and loopback servers, for tests."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from tests.mcp.scripted_http import Form, scripted_http
from toolwire.client.http.transport import HttpTransport
from toolwire.mcp.client import Host
from toolwire.mcp.connection import Reach, ServerConnection
from toolwire.mcp.entry import read_entry
from toolwire.mcp.http_channel import HttpRefused, Login

SCRIPTED = Path(__file__).with_name("scripted_server.py")


class NoLogin:
    """A server without credentials."""

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def challenged(self, refused: HttpRefused) -> bool:
        del refused
        return False


@asynccontextmanager
async def connected(
    folder: Path,
    table: Mapping[str, Any],
    host: Host | None = None,
    *,
    login: Login | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[ServerConnection]:
    transport = HttpTransport()
    reach = Reach(
        directory=folder,
        environ=dict(os.environ),
        transport=transport,
        login=lambda entry: login or NoLogin(),
    )
    entry = read_entry("test", table, "the test")
    server = ServerConnection("test", entry, host or Host(), reach, sleep=sleep)
    try:
        yield server
    finally:
        await server.aclose()
        await transport.aclose()


def scripted(script: Mapping[str, list[str]], **more: Any) -> dict[str, Any]:
    """The table of a scripted server."""
    return {"command": sys.executable, "args": [str(SCRIPTED), json.dumps(script)], **more}


TRANSPORTS = ("stdio", "json", "events", "sse")


@asynccontextmanager
async def scripted_by(
    transport: str, folder: Path, script: Mapping[str, list[str]], **more: Any
) -> AsyncGenerator[ServerConnection]:
    """A connection to the scripted server: a process, or HTTP in one of its forms."""
    if transport == "stdio":
        async with connected(folder, scripted(script, **more)) as server:
            yield server
        return
    form = cast(Form, transport)
    async with scripted_http(script, form) as (url, _):
        table = {"url": url, "transport": "sse" if form == "sse" else "http", **more}
        async with connected(folder, table) as server:
            yield server


def in_settings(script: Mapping[str, list[str]], **more: Any) -> dict[str, Any]:
    """The same for a file of settings, in which `$ID` would be a variable."""
    table = scripted(script, **more)
    return {**table, "args": [each.replace("$ID", "${ID:-$ID}") for each in table["args"]]}


def answer(**members: Any) -> str:
    """A line that answers the request."""
    body = {"jsonrpc": "2.0", "id": 0, **members}
    return json.dumps(body).replace('"id": 0', '"id": $ID', 1)


async def listening(port: int) -> None:
    """Waits until a server accepts connections."""
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
