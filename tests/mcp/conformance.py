"""The official conformance suite: `python -m tests.mcp.conformance server`.

Installs the suite and a Node that it runs on into a folder below the user's cache, once.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.mcp.suite_catalogue import catalogue
from toolwire.http_server.listener import HttpListener
from toolwire.mcp_server.http import PATH, Guard, McpEndpoint
from toolwire.mcp_server.server import McpServer

PACKAGES = ("node@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12")
REVISIONS = ("2025-11-25", "2026-07-28")
FOLDER = Path(
    os.environ.get("TOOLWIRE_CONFORMANCE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolwire-conformance"
)
"""Where the suite is installed; the variable names a folder that has it already."""


class NoSuite(Exception):
    """The suite cannot run here, and why."""


def suite() -> list[str]:
    """The words that start the suite; installs it if that is possible."""
    modules = FOLDER / "node_modules"
    node, script = modules / "node" / "bin" / "node", modules / ".bin" / "conformance"
    if not (node.exists() and script.exists()):
        npm = shutil.which("npm")
        if npm is None:
            raise NoSuite("the suite needs npm, which is not installed")
        FOLDER.mkdir(parents=True, exist_ok=True)
        words = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER), *PACKAGES]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode or not (node.exists() and script.exists()):
            raise NoSuite(f"npm cannot install the suite: {done.stderr.strip()[-300:]}")
    return [str(node), str(script)]


@asynccontextmanager
async def serving() -> AsyncGenerator[str]:
    """A server with what the suite asks for, at its address."""
    server = McpServer(catalogue())
    endpoint = McpEndpoint(server, Guard())
    listener = HttpListener(endpoint.handle)
    port = await listener.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}{PATH}"
    finally:
        endpoint.close()
        await listener.aclose()
        await server.aclose()


async def check_server(revision: str) -> tuple[int, str]:
    """Runs every scenario that a revision requires of servers; the exit code and the report."""
    words = suite()
    async with serving() as url:
        return await _run(*words, "server", "--url", url, "--requirements", revision)


async def _run(*words: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=FOLDER
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode("utf-8", "replace")


def summary(report: str) -> str:
    """The figures at the end of a report."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", report)
    return plain[plain.rfind("SUMMARY") :] if "SUMMARY" in plain else plain[-2000:]


def main() -> int:
    if sys.argv[1:2] != ["server"]:
        print("usage: python -m tests.mcp.conformance server", file=sys.stderr)
        return 2
    worst = 0
    try:
        for revision in sys.argv[2:] or REVISIONS:
            code, report = asyncio.run(check_server(revision))
            print(f"server {revision}: exit code {code}\n{summary(report)}")
            worst = max(worst, code)
    except NoSuite as error:
        print(error, file=sys.stderr)
        return 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
