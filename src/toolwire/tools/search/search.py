"""Lines of files that match a pattern: by ripgrep, git or our own search, with equal results."""

import asyncio
import os
import re
import sys
import sysconfig
import threading
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from pathlib import Path

from toolwire.tools.files.encodings import printable
from toolwire.tools.files.paths import open_folder, real
from toolwire.tools.search.grep import Line, Search, census, include_globs, scan
from toolwire.tools.search.ignore import NEVER_SEARCHED, OWN_FILES
from toolwire.tools.search.sieve import SECONDS
from toolwire.tools.shell.programs import (
    GIT_ENVIRONMENT,
    GIT_OPTIONS,
    find_program,
    helper_environment,
)
from toolwire.tools.spec import ToolFailed

_LONGEST_LINE = 64 << 20


class Unable(Exception):
    """This search program cannot be used; try the next one."""


async def search(task: Search, way: str = "") -> list[Line]:
    """The lines, by path and number; `way` (`rg`, `git`, `own`) takes no other."""
    ways = {"rg": _by_ripgrep, "git": _by_git}
    for name, run in ways.items():
        if way not in ("", name):
            continue
        try:
            async with asyncio.timeout(SECONDS):
                lines = await _counting(task, run(task))
        except Unable:
            continue
        except TimeoutError as error:
            raise ToolFailed(
                f"The search took longer than {SECONDS} s and was stopped. Use a simpler pattern, "
                "or search a smaller folder.",
                type="search_timeout",
            ) from error
        return sorted(lines, key=lambda line: (line.path, line.number))
    stop = threading.Event()
    try:
        lines = await asyncio.to_thread(scan, task, stop.is_set)
    finally:
        stop.set()
    return sorted(lines, key=lambda line: (line.path, line.number))


async def _counting(task: Search, lines: Awaitable[list[Line]]) -> list[Line]:
    """The lines, while the files that are left out are counted."""
    stop = threading.Event()
    counting = asyncio.get_running_loop().run_in_executor(None, census, task, stop.is_set)
    try:
        return await lines
    except BaseException:
        stop.set()
        raise
    finally:
        await counting


def ripgrep(environ: Mapping[str, str], projects: Iterable[Path] = ()) -> str:
    """The system's ripgrep, or the one of the `search` extra; empty if there is none."""
    found = find_program("rg", environ, projects)
    return found or find_program("rg", {"PATH": sysconfig.get_path("scripts")}, projects)


async def _by_ripgrep(task: Search) -> list[Line]:
    program = ripgrep(task.environ, task.workspace.roots)
    if not program:
        raise Unable
    own = [
        f"--ignore-file={file}" for name in OWN_FILES if (file := task.rules.root / name).is_file()
    ]
    # Rules of ours are read from the directory that ripgrep starts in.
    if own and task.start != task.rules.root:
        own = []
    command = [
        *(program, "--no-config", "--line-number", "--no-heading", "--with-filename", "--null"),
        *(f"--max-columns={_LONGEST_LINE}", "--max-columns-preview"),
        *("--color=never", "--ignore-case", "--crlf", "--hidden", "--no-messages"),
        *("--no-ignore-dot", "--no-ignore-global", "--threads=4", *own),
        *(f"--glob=!**/{name}/**" for name in sorted(NEVER_SEARCHED)),
        *(("--glob", task.include) if task.include else ()),
        *("--regexp", task.pattern, "./"),
    ]
    return await _lines_of(task, command)


async def _by_git(task: Search) -> list[Line]:
    program = find_program("git", task.environ, task.workspace.roots)
    if not program or task.rules.repository is None:
        raise Unable
    command = [
        *(program, *GIT_OPTIONS, "-c", "core.quotePath=false"),
        # Files above this size count as binary.
        *("-c", "core.bigFileThreshold=1024g"),
        *("grep", "--untracked", "--no-color", "-I", "-n", "-P", "--null", "--ignore-case"),
        *("-e", task.pattern, "--", "."),
    ]
    return await _lines_of(task, command)


async def _lines_of(task: Search, command: list[str]) -> list[Line]:
    wanted = _Wanted(task)
    lines: list[Line] = []
    try:
        # By its descriptor: the path may lead elsewhere by the time the program starts.
        folder = open_folder(task.start, task.workspace)
    except OSError as error:
        raise Unable from error
    try:
        process = await _started(task, command, folder)
    finally:
        os.close(folder)
    try:
        async for raw in _output(process, task.unsearched):
            line = _parsed(raw)
            if line is None or not wanted(line.path):
                continue
            lines.append(line)
            if len(lines) >= task.most:
                return lines
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    # 1: nothing was found; above it, a pattern it cannot read, or no repository.
    if code > 1 and not lines:
        raise Unable
    return lines


async def _started(task: Search, command: list[str], folder: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=f"/proc/self/fd/{folder}" if sys.platform == "linux" else task.start,
        env={**(task.environ or helper_environment(os.environ)), **GIT_ENVIRONMENT},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_LONGEST_LINE,
    )


async def _output(
    process: asyncio.subprocess.Process, unsearched: list[str]
) -> AsyncGenerator[bytes]:
    if process.stdout is None:
        return
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:
            # An oversized line; it was discarded.
            unsearched.append(f"a line of more than {_LONGEST_LINE >> 20} MB")
            continue
        if not line:
            return
        yield line


_FOUND = re.compile(rb"(?:\./)?([^\0]+)\0(\d+)[:\0](.*)", re.DOTALL)


def _parsed(raw: bytes) -> Line | None:
    found = _FOUND.match(raw)
    if found is None:
        return None
    path = printable(found[1].decode("utf-8", "surrogateescape"))
    return Line(path, int(found[2]), found[3].decode("utf-8", "replace"))


class _Wanted:
    """Whether a file counts, for every search program alike."""

    def __init__(self, task: Search) -> None:
        self._task = task
        self._include = include_globs(task.include)
        self._known: dict[str, bool] = {}

    def __call__(self, path: str) -> bool:
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._decide(path)
        return known

    def _decide(self, path: str) -> bool:
        if not NEVER_SEARCHED.isdisjoint(path.split("/")[:-1]):
            return False
        if self._include is not None and not self._include.matches(path):
            return False
        whole = self._task.start / path
        if self._task.rules.ignored(whole) or self._task.hides(path):
            return False
        # A link on the path may lead out of the workspace.
        return real(whole) == whole
