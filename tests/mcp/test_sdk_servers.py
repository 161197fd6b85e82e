"""Servers of the official Python SDK against our client: every verb, both eras, all transports."""

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.servers import connected, listening
from toolwire.mcp.client import Host
from toolwire.mcp.connection import ServerConnection
from toolwire.mcp.results import read_result
from toolwire.messages import Media

pytest.importorskip("mcp", reason="the official SDK is not installed")
ROOT = Path(__file__).parents[2]
WORDS = ("-m", "tests.mcp.sdk_server")
WAYS = (
    ("stdio", "auto", "2025-11-25"),
    ("stdio", "2024-11-05", "2024-11-05"),
    ("stdio", "2026-07-28", "2026-07-28"),
    ("streamable-http", "auto", "2026-07-28"),
    ("streamable-http", "2025-03-26", "2025-03-26"),
    ("streamable-http", "2025-11-25", "2025-11-25"),
    ("sse", "auto", "2024-11-05"),
)


@asynccontextmanager
async def place(transport: str, record: Path) -> AsyncGenerator[dict[str, Any]]:
    """The table of a running server."""
    environ = {"RECORD": str(record), "PYTHONPATH": str(ROOT)}
    if transport == "stdio":
        yield {"command": sys.executable, "args": [*WORDS, "stdio"], "env": environ}
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *WORDS, transport, str(port)),
        env={**os.environ, **environ},
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await listening(port)
        path = "sse" if transport == "sse" else "mcp"
        kind = "sse" if transport == "sse" else "http"
        yield {"url": f"http://127.0.0.1:{port}/{path}", "transport": kind}
    finally:
        process.kill()
        await process.wait()


async def until(is_so: Any) -> bool:
    for _ in range(400):
        if is_so():
            return True
        await asyncio.sleep(0.05)
    return False


class Seen:
    """What the server made of each verb."""

    def __init__(self, server: ServerConnection, record: Path) -> None:
        self.server = server
        self.record = record
        self.changed: list[str] = []
        self.logged: list[str] = []

    async def text(self, tool: str, **arguments: Any) -> str:
        return read_result(await self.server.call(tool, arguments, None), tool).display

    async def tools(self) -> dict[str, Any]:
        failure = read_result(await self.server.call("fail", {}, None), "fail")
        image = read_result(await self.server.call("picture", {}, None), "picture")
        notes: list[str] = []
        counted = await self.server.call("count", {}, notes.append)
        assert counted["content"][0]["text"] == "counted"
        return {
            "add": await self.text("add", a=2, b=3),
            "fail": failure.is_error,
            "picture": [part.mime for part in image.parts if isinstance(part, Media)],
            "progress": [re.sub(r"\.0", "", note) for note in notes],
            "colour": await self.text("colour"),
            "roots": await self.text("roots"),
        }

    async def cancelled(self) -> str:
        call = asyncio.ensure_future(self.server.call("wait", {}, None))
        assert await until(lambda: self.record.exists())
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: self.record.read_text() == "cancelled")
        return self.record.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "protocol", "spoken"), WAYS)
def test_every_verb_of_an_sdk_server_works(
    tmp_path: Path, transport: str, protocol: str, spoken: str
):
    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        assert params["message"] == "Which colour?"
        return {"action": "accept", "content": {"colour": "blue"}}

    async def run() -> None:
        changed: list[str] = []
        logged: list[str] = []
        host = Host(
            roots=(("file:///work", "work"),),
            elicit=elicit,
            changed=changed.append,
            logged=logged.append,
        )
        record = tmp_path / "record"
        async with place(transport, record) as table:
            given = {**table, "protocol": protocol, "timeout": 60}
            async with connected(tmp_path, given, host) as server:
                client = await server.ready(60)
                assert client.greeting.protocol == spoken
                assert (client.greeting.name, client.greeting.instructions) == (
                    "sdk",
                    "Add things.",
                )
                assert server.lists is not None
                assert len(server.lists.tools) == 9
                assert [each.uri for each in server.lists.resources] == ["note://one"]
                assert [each.name for each in server.lists.prompts] == ["greet"]
                assert await client.prompt("greet", {"who": "Ada"}) == "Say hello to Ada."
                for uri, text in (("note://one", "the note"), ("note://by/x", "the note by x")):
                    assert (await client.resource(uri))["contents"][0]["text"] == text
                seen = Seen(server, record)
                assert await seen.tools() == {
                    "add": "5",
                    "fail": True,
                    "picture": ["image/png"],
                    "progress": ["1/3 step 1", "2/3 step 2", "3/3 step 3"],
                    "colour": "blue",
                    "roots": "file:///work",
                }
                assert await seen.text("log") == "logged"
                if spoken != "2026-07-28":
                    assert await until(lambda: logged == ["a line of the log"])
                assert await seen.cancelled() == "cancelled"
                assert await seen.text("grow") == "grown"
                assert await until(lambda: "tools" in changed)
                await server.refresh()
                assert len(server.lists.tools) == 10

    asyncio.run(run())
