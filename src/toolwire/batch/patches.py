"""What an attempt changed: a patch against the start, made where the agent cannot reach.

A bare repository beside the workspace stores the start. It has its own settings and attributes, so
that nothing in the workspace (filters, hooks, line endings) takes part.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.errors import ToolwireError

_QUIET = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
}
_NAMES = ("PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "TOOLWIRE_BATCH")
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding\n"
_EXCLUDED = "__pycache__/\n*.pyc\n.pytest_cache/\n"
_VERBS = ("init", "clone", "fetch", "add", "write-tree", "read-tree", "diff-tree", "apply")


class GitFailed(ToolwireError):
    """A git command that failed, with what it printed."""

    kind = "git"


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch and its size."""

    body: bytes
    files: int = 0
    added: int = 0
    removed: int = 0


async def git(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    data: bytes | None = None,
    users: bool = False,
) -> bytes:
    """Runs git, without the user's settings unless `users`; returns what it printed."""
    settings = () if users else ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
    process = await asyncio.create_subprocess_exec(
        "git",
        *settings,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL if data is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"} if users else _environment(environ or {}),
        # A process group of its own; the event loop of Ray's actors knows no other way to it.
        start_new_session=True,
    )
    try:
        out, err = await process.communicate(data)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        raise
    if process.returncode:
        words = err.decode(errors="replace").strip().splitlines() or [f"code {process.returncode}"]
        named = next((line for line in words if line.startswith(("fatal:", "error:"))), words[-1])
        verb = next((word for word in arguments if word in _VERBS), "command")
        raise GitFailed(f"git {verb}: {named[:300]}")
    return out


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _NAMES if name in os.environ}
    return {**kept, **_QUIET, **more}


class Baseline(msgspec.Struct, frozen=True):
    """The start of a workspace, in a repository of its own."""

    folder: Path
    tree: str

    async def patch(self, workspace: Path) -> Patch:
        """What changed since; checked to give the same files when applied to the start."""
        now = await _tree_of(self.folder, workspace)
        if now == self.tree:
            return Patch(body=b"")
        diff = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv")
        body = await _in(self.folder, *diff, "-p", "--binary", "--full-index", self.tree, now)
        await self._check(body, now)
        listed = await _in(self.folder, *diff, "--numstat", "-z", self.tree, now)
        counts = [line.split(b"\t", 2) for line in listed.split(b"\0") if line.count(b"\t") >= 2]
        numbers = [[int(field) if field.isdigit() else 0 for field in row[:2]] for row in counts]
        return Patch(
            body=body,
            files=len(counts),
            added=sum(row[0] for row in numbers),
            removed=sum(row[1] for row in numbers),
        )

    async def _check(self, body: bytes, expected: str) -> None:
        index = {"GIT_INDEX_FILE": str(self.folder / "check.index")}
        await _in(self.folder, "read-tree", self.tree, environ=index)
        await _in(self.folder, "apply", "--cached", "--whitespace=nowarn", environ=index, data=body)
        found = (await _in(self.folder, "write-tree", environ=index)).decode().strip()
        if found != expected:
            raise GitFailed("the patch does not give the same files when it is applied")


async def baseline(folder: Path, workspace: Path, objects: Path | None = None) -> Baseline:
    """Stores the present contents of a workspace; `objects` of a repository are used again."""
    shutil.rmtree(folder, ignore_errors=True)
    await git("init", "-q", "--bare", str(folder))
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text(_ATTRIBUTES)
    (folder / "info" / "exclude").write_text(_EXCLUDED)
    if objects is not None:
        (folder / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    return Baseline(folder, await _tree_of(folder, workspace))


async def _tree_of(folder: Path, workspace: Path) -> str:
    await _in(folder, f"--work-tree={workspace}", "add", "-A", "--", ".", cwd=workspace)
    return (await _in(folder, "write-tree")).decode().strip()


async def _in(
    folder: Path,
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    data: bytes | None = None,
    cwd: Path | None = None,
) -> bytes:
    at = ("-C", str(cwd)) if cwd is not None else ()
    settings = ("-c", "core.autocrlf=false", "-c", "gc.auto=0", "-c", "core.safecrlf=false")
    return await git(*at, *settings, f"--git-dir={folder}", *arguments, environ=environ, data=data)
