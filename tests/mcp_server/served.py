"""`toolwire mcp serve` as a real process, with our own client as the other side."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.simulated import Place
from tests.mcp.conformance import served
from tests.mcp.servers import connected
from toolwire import config
from toolwire.app.toolbox import open_toolbox
from toolwire.mcp.client import Elicit, Host
from toolwire.mcp.connection import ServerConnection
from toolwire.mcp_server.agent_tool import AgentTool
from toolwire.mcp_server.catalogue import Catalogue
from toolwire.mcp_server.own_tools import OwnTools
from toolwire.mcp_server.server import McpServer, ServerLimits
from toolwire.policy import Mode
from toolwire.request import JsonObject

KINDS = ("stdio", "http-legacy", "http-modern")
LONGEST = 60


def answering(answer: str, action: str = "accept", asked: list[JsonObject] | None = None) -> Elicit:
    """A user who answers every question in this way."""

    async def elicit(params: JsonObject) -> JsonObject:
        if asked is not None:
            asked.append(params)
        return {"action": action, "content": {"answer": answer}}

    return elicit


class Listening:
    """A server over HTTP."""

    def __init__(self, process: Any, url: str, token: str) -> None:
        self.process = process
        self.url = url
        self.token = token

    @property
    def port(self) -> int:
        return int(re.findall(r":([0-9]+)/", self.url)[0])

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@asynccontextmanager
async def listening(
    place: Place, *args: str, env: Mapping[str, str] | None = None
) -> AsyncGenerator[Listening]:
    words = ("mcp", "serve", "--http", "0", *args)
    process = place.start(*words, env=env, stdout=subprocess.DEVNULL)
    try:
        first = await asyncio.to_thread(process.stderr.readline)
        url = re.findall(rb"http://\S+", first)[0].decode()
        token = ""
        if "--no-token" not in args and "--token" not in args:
            token = (await asyncio.to_thread(process.stderr.readline)).split()[1].decode()
        yield Listening(process, url, token)
    finally:
        process.terminate()
        process.wait(LONGEST)
        process.stderr.close()


@asynccontextmanager
async def endpoint(
    place: Place,
    tools: tuple[str, ...] = (),
    mode: Mode = Mode.DEFAULT,
    *,
    agent: bool = False,
    limits: ServerLimits | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncGenerator[str]:
    """The command's server over HTTP, in this process."""
    known = environ or place.environ()
    settings = config.load(known, place.work)
    catalogue = Catalogue("toolwire")
    async with open_toolbox(settings, environ=known, cwd=place.work, mode=mode) as toolbox:
        OwnTools(toolbox, tools).offer(catalogue)
        if agent:
            tool = AgentTool(settings, environ=known, cwd=place.work, mode=mode)
            catalogue.add(tool.offered())
        async with served(McpServer(catalogue, limits)) as url:
            yield url


@asynccontextmanager
async def client(
    kind: str,
    place: Place,
    tools: tuple[str, ...] = (),
    mode: Mode = Mode.DEFAULT,
    *,
    elicit: Elicit | None = None,
    **more: Any,
) -> AsyncGenerator[ServerConnection]:
    """Our client, connected to the command, or to its server over HTTP in this process."""
    host = Host(elicit=elicit)
    if kind == "stdio":
        listed = ("--tools", ",".join(tools)) if tools else ()
        words = ["-m", "toolwire", "mcp", "serve", *listed, "--approval-mode", mode]
        table: dict[str, Any] = {"command": sys.executable, "args": words, "env": place.environ()}
        async with connected(place.work, table, host) as server:
            yield server
        return
    protocol = "2025-11-25" if kind == "http-legacy" else "2026-07-28"
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(endpoint(place, tools, mode, **more))
        table = {"url": url, "protocol": protocol}
        yield await stack.enter_async_context(connected(place.work, table, host))


def text_of(result: JsonObject) -> str:
    return "\n".join(block.get("text", "") for block in result["content"])


def command_lines() -> dict[int, str]:
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        found[int(folder.name)] = words.replace(b"\0", b" ").decode("utf-8", "replace")
    return found


def running(mark: str) -> list[int]:
    """Processes whose command line has the mark."""
    own = os.getpid()
    return [pid for pid, words in command_lines().items() if mark in words and pid != own]


def wait_until(what: Callable[[], bool], seconds: float = LONGEST) -> bool:
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        if what():
            return True
        time.sleep(0.05)
    return False
