"""Servers that people use; `python -m tests.mcp.real_servers install` installs them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(
    os.environ.get("TOOLWIRE_REAL_SERVERS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolwire-real-servers"
)
"""Where the servers are installed; the variable names another folder."""
_NPM = ("everything", "filesystem", "memory", "sequential-thinking")
_PIP = {
    # The environments are apart: the last does not start with the SDK of the others.
    "modern": ("mcp-server-git", "mcp-server-time", "mcp-server-fetch"),
    "sqlite": ("mcp-server-sqlite", "mcp<2"),
}


class RealServer(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started, and one call with a part of its answer."""

    program: Path
    args: Callable[[Path], list[str]] = lambda folder: []
    env: dict[str, str] = {}
    url: str = ""
    """The path it serves at, if it is started with a port."""
    transport: str = "stdio"
    tools: int
    """How many it lists at least."""
    tool: str
    arguments: Callable[[Path], dict[str, Any]]
    answer: str


def _npm(name: str) -> Path:
    return FOLDER / "npm" / "node_modules" / ".bin" / f"mcp-server-{name}"


def _pip(environment: str, name: str) -> Path:
    return FOLDER / environment / "bin" / f"mcp-server-{name}"


def _echo(folder: Path) -> dict[str, Any]:
    return {"message": "hello"}


SERVERS = {
    "everything": RealServer(
        program=_npm("everything"),
        args=lambda folder: ["stdio"],
        tools=10,
        tool="echo",
        arguments=_echo,
        answer="Echo: hello",
    ),
    "everything over HTTP": RealServer(
        program=_npm("everything"),
        args=lambda folder: ["streamableHttp"],
        url="/mcp",
        transport="http",
        tools=10,
        tool="echo",
        arguments=_echo,
        answer="Echo: hello",
    ),
    "everything over SSE": RealServer(
        program=_npm("everything"),
        args=lambda folder: ["sse"],
        url="/sse",
        transport="sse",
        tools=10,
        tool="echo",
        arguments=_echo,
        answer="Echo: hello",
    ),
    "filesystem": RealServer(
        program=_npm("filesystem"),
        args=lambda folder: [str(folder)],
        tools=14,
        tool="read_text_file",
        arguments=lambda folder: {"path": str(folder / "note.txt")},
        answer="the note",
    ),
    "memory": RealServer(
        program=_npm("memory"),
        tools=9,
        tool="read_graph",
        arguments=lambda folder: {},
        answer="entities",
    ),
    "sequential-thinking": RealServer(
        program=_npm("sequential-thinking"),
        tools=1,
        tool="sequentialthinking",
        arguments=lambda folder: {
            "thought": "one",
            "nextThoughtNeeded": False,
            "thoughtNumber": 1,
            "totalThoughts": 1,
        },
        answer="thoughtNumber",
    ),
    "git": RealServer(
        program=_pip("modern", "git"),
        args=lambda folder: ["--repository", str(folder)],
        tools=10,
        tool="git_status",
        arguments=lambda folder: {"repo_path": str(folder)},
        answer="note.txt",
    ),
    "time": RealServer(
        program=_pip("modern", "time"),
        args=lambda folder: ["--local-timezone", "UTC"],
        tools=2,
        tool="convert_time",
        arguments=lambda folder: {
            "source_timezone": "UTC",
            "time": "12:00",
            "target_timezone": "Asia/Tokyo",
        },
        answer="21:00",
    ),
    "fetch": RealServer(
        program=_pip("modern", "fetch"),
        args=lambda folder: ["--ignore-robots-txt", "--allow-private-ips"],
        tools=1,
        tool="fetch",
        arguments=lambda folder: {"url": (folder / "address").read_text()},
        answer="the page",
    ),
    "sqlite": RealServer(
        program=_pip("sqlite", "sqlite"),
        args=lambda folder: ["--db-path", str(folder / "data.db")],
        tools=6,
        tool="read_query",
        arguments=lambda folder: {"query": "SELECT 6 * 7 AS answer"},
        answer="42",
    ),
}


def install() -> int:
    """Installs what is missing with npm and pip; what cannot be is named."""
    failed: list[str] = []
    npm = shutil.which("npm")
    if npm is None:
        failed.append("npm is not installed")
    elif not _npm("everything").exists():
        names = [f"@modelcontextprotocol/server-{name}" for name in _NPM]
        words = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER / "npm")]
        failed += _run([*words, *names])
    for name, packages in _PIP.items():
        python = FOLDER / name / "bin" / "python"
        if not (FOLDER / name / ".ready").exists():
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            problems = _run([sys.executable, "-m", "venv", str(FOLDER / name)])
            problems += _run([*pip, *packages])
            failed += problems
            if not problems:
                (FOLDER / name / ".ready").touch()
    for problem in failed:
        print(problem, file=sys.stderr)
    return 1 if failed else 0


def _run(words: list[str]) -> list[str]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return [f"{words[0]}: {done.stderr.strip()[-300:]}"] if done.returncode else []


if __name__ == "__main__":
    if sys.argv[1:] != ["install"]:
        sys.exit("usage: python -m tests.mcp.real_servers install")
    sys.exit(install())
