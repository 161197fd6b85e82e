"""Connections to real server processes and loopback servers, for tests."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolwire.client.http.transport import HttpTransport
from toolwire.mcp.client import Host
from toolwire.mcp.connection import Reach, ServerConnection
from toolwire.mcp.entry import read_entry
from toolwire.mcp.http_channel import HttpRefused

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
    folder: Path, table: Mapping[str, Any], host: Host | None = None
) -> AsyncGenerator[ServerConnection]:
    transport = HttpTransport()
    reach = Reach(
        directory=folder,
        environ=dict(os.environ),
        transport=transport,
        login=lambda entry: NoLogin(),
    )
    server = ServerConnection("test", read_entry("test", table, "the test"), host or Host(), reach)
    try:
        yield server
    finally:
        await server.aclose()
        await transport.aclose()


def scripted(script: Mapping[str, list[str]], **more: Any) -> dict[str, Any]:
    """The table of a scripted server."""
    return {"command": sys.executable, "args": [str(SCRIPTED), json.dumps(script)], **more}


def answer(**members: Any) -> str:
    """A line that answers the request."""
    body = {"jsonrpc": "2.0", "id": 0, **members}
    return json.dumps(body).replace('"id": 0', '"id": $ID', 1)
