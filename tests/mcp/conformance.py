"""The official conformance suite: `python -m tests.mcp.conformance server|client [REVISION…]`.

Installs the suite and a Node that it runs on into a folder below the user's cache, once.
"""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from tests.mcp.suite_catalogue import catalogue
from toolwire.http_server.listener import HttpListener
from toolwire.mcp_server.http import PATH, Guard, McpEndpoint
from toolwire.mcp_server.server import McpServer

PACKAGES = ("node@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12")
REVISIONS = ("2025-11-25", "2026-07-28")
CLIENT_REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
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


def serving() -> AbstractAsyncContextManager[str]:
    """A server with what the suite asks for, at its address."""
    return served(McpServer(catalogue()))


@asynccontextmanager
async def served(server: McpServer) -> AsyncGenerator[str]:
    """A server at an address without a token."""
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


async def client_scenarios(revision: str) -> list[str]:
    """The scenarios of a revision for clients, without those of extensions."""
    _, listed = await _run(*suite(), "list", "--client", "--spec-version", revision)
    return re.findall(rf"(?m)^  - (\S+) \[[^\]]*{revision}[^\]]*\]", listed)


async def check_client(revision: str, scenario: str) -> tuple[bool, str]:
    """Whether our client passes a scenario without a failure or a warning, and the report."""
    client = shlex.join([sys.executable, str(Path(__file__).with_name("conformance_client.py"))])
    words = ["client", "--command", client, "--scenario", scenario, "--spec-version", revision]
    code, report = await _run(*suite(), *words, "--timeout", "90000")
    passed = re.search(r"Passed: (\d+)/\1, 0 failed, 0 warnings", report)
    return code == 0 and passed is not None, report


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
    checks = {"server": _all_of_server, "client": _all_of_client}
    check = checks.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if check is None:
        print("usage: python -m tests.mcp.conformance server|client [REVISION…]", file=sys.stderr)
        return 2
    try:
        return check(sys.argv[2:])
    except NoSuite as error:
        print(error, file=sys.stderr)
        return 1


def _all_of_server(revisions: list[str]) -> int:
    worst = 0
    for revision in revisions or REVISIONS:
        code, report = asyncio.run(check_server(revision))
        print(f"server {revision}: exit code {code}\n{summary(report)}")
        worst = max(worst, code)
    return worst


def _all_of_client(revisions: list[str]) -> int:
    failed = 0
    for revision in revisions or CLIENT_REVISIONS:
        scenarios = asyncio.run(client_scenarios(revision))
        for scenario in scenarios:
            passed, report = asyncio.run(check_client(revision, scenario))
            failed += not passed
            print(f"client {revision} {scenario}: {'passed' if passed else report}", flush=True)
        print(f"client {revision}: {len(scenarios)} scenarios", flush=True)
    print(f"client: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
