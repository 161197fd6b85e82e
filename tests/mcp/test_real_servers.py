"""Servers that people use each list their tools and answer a call; skipped where not installed."""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.mcp.real_servers import SERVERS, RealServer
from tests.mcp.scripted_http import serving
from tests.mcp.servers import connected, listening
from toolwire.mcp.results import read_result


@asynccontextmanager
async def place(server: RealServer, folder: Path) -> AsyncGenerator[dict[str, Any]]:
    """The table of a server; one with an address is started first."""
    words = [str(server.program), *server.args(folder)]
    if not server.url:
        yield {"command": words[0], "args": words[1:], "env": server.env, "cwd": str(folder)}
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *words,
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await listening(port)
        yield {"url": f"http://127.0.0.1:{port}{server.url}", "transport": server.transport}
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def page(folder: Path) -> AsyncGenerator[None]:
    """A page on loopback, whose address is in the folder."""

    async def get(request: web.Request) -> web.Response:
        return web.Response(
            text="<html><body><p>the page</p></body></html>", content_type="text/html"
        )

    application = web.Application()
    application.router.add_get("/", get)
    async with serving(application) as address:
        (folder / "address").write_text(f"{address}/")
        yield


@pytest.mark.sweep
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_people_use_lists_its_tools_and_answers(tmp_path: Path, name: str):
    server = SERVERS[name]
    if not server.program.exists():
        pytest.skip("not installed; run: python -m tests.mcp.real_servers install")
    (tmp_path / "note.txt").write_text("the note")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)

    async def run() -> tuple[int, bool, str]:
        async with (
            page(tmp_path),
            place(server, tmp_path) as table,
            connected(tmp_path, {**table, "startup_timeout": 60}) as connection,
        ):
            client = await connection.ready(60)
            print(name, client.greeting.protocol, client.greeting.name)
            assert connection.lists is not None
            arguments = server.arguments(tmp_path)
            result = read_result(await connection.call(server.tool, arguments, None), "")
            return len(connection.lists.tools), result.is_error, result.display

    listed, failed, display = asyncio.run(run())
    assert listed >= server.tools
    assert (failed, server.answer in display) == (False, True), display
