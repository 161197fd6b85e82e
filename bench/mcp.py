"""Calls to an MCP server over stdio: our client beside the official SDK and a bare pipe."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench.report import Goal, Section, Table
from toolwire.client.http.transport import HttpTransport
from toolwire.mcp.client import Host
from toolwire.mcp.connection import Reach, ServerConnection
from toolwire.mcp.entry import read_entry

SERVER = """
import json, sys
info = {"name": "bench", "version": "1"}
tool = {"name": "text", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), None
    if "id" not in message:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = info
    elif method == "tools/list":
        result = {"tools": [tool]}
    elif method == "tools/call":
        text = "x" * message["params"]["arguments"]["size"]
        result = {"content": [{"type": "text", "text": text}]}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    else:
        answer["result"] = result
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""
WORDS = (sys.executable, "-c", SERVER)
MB = 1024 * 1024
SIZES = (0, 5 * MB, 20 * MB)
Call = Callable[[int], Awaitable[int]]
Use = Callable[[Call], Awaitable[None]]


class _Login:
    async def headers(self) -> dict[str, str]:
        return {}

    async def challenged(self, refused: object) -> bool:
        del refused
        return False


async def ours(use: Use) -> None:
    """Our connection, as sessions use it."""
    with tempfile.TemporaryDirectory() as folder:
        reach = Reach(
            directory=Path(folder),
            environ=dict(os.environ),
            transport=HttpTransport(),
            login=lambda entry: _Login(),
        )
        table = {"command": WORDS[0], "args": list(WORDS[1:])}
        server = ServerConnection("bench", read_entry("bench", table, "the bench"), Host(), reach)
        try:
            await server.ready()

            async def call(size: int) -> int:
                result = await server.call("text", {"size": size}, None)
                return len(result["content"][0]["text"])

            await use(call)
        finally:
            await server.aclose()


async def sdk(use: Use) -> None:
    """The client of the official SDK, with a handshake."""
    # By name: to the type checker this module has the same.
    mcp: Any = import_module("mcp")
    parameters = mcp.StdioServerParameters(command=WORDS[0], args=list(WORDS[1:]))
    async with mcp.Client(parameters, mode="legacy") as client:

        async def call(size: int) -> int:
            result: Any = await client.call_tool("text", {"size": size})
            return len(result.content[0].text)

        await use(call)


async def bare(use: Use) -> None:
    """Lines through a pipe, and nothing of the protocol."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*WORDS, stdin=pipe, stdout=pipe, limit=64 * MB)
    assert child.stdin is not None
    assert child.stdout is not None
    writer, reader = child.stdin, child.stdout

    async def call(size: int) -> int:
        params = {"name": "text", "arguments": {"size": size}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        writer.write(msgspec.json.encode(message) + b"\n")
        answer = msgspec.json.decode(await reader.readline())
        return len(answer["result"]["content"][0]["text"])

    try:
        await use(call)
    finally:
        writer.close()
        await child.wait()


WAYS: dict[str, Callable[[Use], Awaitable[None]]] = {
    "toolwire": ours,
    "SDK": sdk,
    "bare pipe": bare,
}


def cost(way: str, size: int, calls: int, rounds: int) -> float:
    """Seconds of CPU in this process for one call, the median of the rounds."""
    found: list[float] = []

    async def use(call: Call) -> None:
        await call(size)
        for _ in range(rounds):
            begun = time.process_time()
            for _ in range(calls):
                assert await call(size) == size
            found.append((time.process_time() - begun) / calls)

    async def run() -> None:
        await WAYS[way](use)

    asyncio.run(run())
    return median(found)


def measure(rounds: int, *, quick: bool = False) -> Section:
    """A small call, and results of 5 and 20 MB in one line."""
    calls = 200 if quick else 1000
    figures = {
        way: tuple(cost(way, size, 1 if size else calls, rounds) for size in SIZES) for way in WAYS
    }
    rows = tuple(
        (way, small * 1e6, middle * 1e3, large * 1e3)
        for way, (small, middle, large) in figures.items()
    )
    heads = ("client", "a small call, µs", "5 MB, ms", "20 MB, ms")
    note = "CPU in the client alone; the server is the same. Medians."
    own, theirs = figures["toolwire"], figures["SDK"]
    return Section(
        "mcp",
        (Table("MCP: calls over stdio", heads, rows, note),),
        (
            Goal("a small MCP call", 100, own[0] * 1e6, unit="µs"),
            Goal("an MCP result of 20 MB", 300, own[2] * 1e3, unit="ms"),
            Goal("an MCP result of 20 MB ÷ one of 5 MB", 6, own[2] / own[1]),
            Goal("SDK ÷ ours, a small MCP call", 2, theirs[0] / own[0], at_least=True),
            Goal("SDK ÷ ours, an MCP result of 20 MB", 4, theirs[2] / own[2], at_least=True),
        ),
    )
