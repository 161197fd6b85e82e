"""Lines of files that match a pattern: by ripgrep, git or our own search, with equal results."""

import asyncio
import os
import re
import stat
import sys
import sysconfig
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from toolwire.platform import FILE, open_at
from toolwire.tools.files.contents import SNIFFED, looks_binary
from toolwire.tools.files.encodings import detect, printable
from toolwire.tools.files.paths import open_folder
from toolwire.tools.files.protection import LeftOut, Visibility
from toolwire.tools.search.globs import Globs
from toolwire.tools.search.ignore import NEVER_SEARCHED, OWN_FILES, IgnoreRules
from toolwire.tools.search.regexes import SECONDS, WIDE, Sieve
from toolwire.tools.search.walk import Folder, Walk, folders, remembered
from toolwire.tools.shell.environment import (
    GIT_ENVIRONMENT,
    GIT_OPTIONS,
    find_program,
    helper_environment,
)
from toolwire.tools.spec import ToolFailed, Workspace

MOST_MATCHES = 20_000
_LARGEST = 256 << 20
_AT_ONCE = 1 << 16
_OPEN = os.O_RDONLY | FILE


class FoundLine(msgspec.Struct, frozen=True):
    """One line that fits."""

    path: str
    """From where the search began."""
    number: int
    text: str


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and where."""

    pattern: str
    start: Path
    """A real path inside the workspace."""
    include: str
    workspace: Workspace
    rules: IgnoreRules
    environ: Mapping[str, str]
    visibility: Visibility | None = None
    most: int = MOST_MATCHES
    left_out: LeftOut = msgspec.field(default_factory=LeftOut)
    """The files that are hidden, whether or not a line of theirs would fit."""
    unsearched: list[str] = []
    """What is found too late to be searched: files and lines too large, one note each."""

    def hides(self, path: str) -> bool:
        """Whether a path below the start is left out; if so, it is counted."""
        if self.visibility is None:
            return False
        why = self.visibility.hides(os.path.join(self.start, path))  # noqa: PTH118
        return bool(why) and self.left_out.add(why, printable(path))

    def shown(self, folder: str, names: list[str]) -> list[str]:
        """The files of a folder below the start that are not left out; the others are counted."""
        if self.visibility is None or not names:
            return names
        hidden = self.visibility.among(f"{self.start}{os.sep}{folder}", names)
        for name, why in hidden.items():
            self.left_out.add(why, printable(folder + name))
        return [name for name in names if name not in hidden] if hidden else names


def include_globs(include: str) -> Globs | None:
    """The filter as globs: one without a slash fits names at any depth."""
    if not include:
        return None
    pattern = include.removeprefix("/")
    patterns = [pattern, f"{pattern.rstrip('/')}/**"]
    if "/" not in include.rstrip("/"):
        patterns = [f"**/{one}" for one in patterns]
    return Globs(patterns, ignore_case=False)


def scan(task: Search, stopped: Callable[[], bool]) -> list[FoundLine]:
    """The lines in the order of the walk, as many as requested."""
    with Sieve(task.pattern, stopped) as sieve:
        return _scanned(task, sieve, stopped)


def _scanned(task: Search, sieve: Sieve, stopped: Callable[[], bool]) -> list[FoundLine]:
    include = include_globs(task.include)
    lines: list[FoundLine] = []
    for folder in folders(_plan(task, stopped)):
        names = task.shown(folder.path, _matching_names(folder, include))
        large = partial(_note_large, task, folder.path)
        for name, data in _sifted(names, folder.descriptor, sieve.may_fit, large):
            if stopped():
                return lines
            text = _text(data)
            if text:
                path = printable(folder.path + name)
                found = sieve.lines(text.removesuffix("\n"))
                lines += [FoundLine(path, at, printable(line)) for at, line in found]
            if len(lines) >= task.most:
                return lines[: task.most]
    return lines


def census(task: Search, stopped: Callable[[], bool]) -> None:
    """Count the files that are left out where another program searches.

    It would only report matching files, and counting these would reveal their contents.
    """
    if task.visibility is None:
        return
    include = include_globs(task.include)
    plan = _plan(task, stopped)
    if unusual := task.visibility.unusual:
        known = remembered(unusual)
        plan = msgspec.structs.replace(plan, listing=known, passes=known.holds_nothing)
    for folder in folders(plan):
        if folder.names:
            task.shown(folder.path, _matching_names(folder, include))


def _plan(task: Search, stopped: Callable[[], bool]) -> Walk:
    return Walk(start=task.start, workspace=task.workspace, rules=task.rules, stopped=stopped)


def _note_large(task: Search, folder: str, name: str, size: int) -> None:
    task.unsearched.append(f"{printable(folder + name)} ({size >> 20} MB)")


def _matching_names(folder: Folder, include: Globs | None) -> list[str]:
    names = folder.seen(folder.names)
    if folder.links:
        names = [name for name in names if name not in folder.links]
    return names if include is None else include.among(folder.path, names)


def _sifted(
    names: list[str],
    folder: int,
    may_fit: Callable[[bytes], bool],
    large: Callable[[str, int], None],
) -> Iterator[tuple[str, bytes]]:
    """The files that may have a line, whole; one that cannot be read has none.

    Most files have none: a call for each step of each file would cost more than the steps.
    """
    open_, read, close = open_at, os.read, os.close
    for name in names:
        try:
            handle = open_(name, _OPEN, dir_fd=folder)
        except OSError:
            continue
        try:
            data = read(handle, _AT_ONCE)
            if len(data) == _AT_ONCE:
                data = _read_on(handle, data, partial(large, name))
        except OSError:
            continue
        finally:
            close(handle)
        if data and may_fit(data):
            yield name, data


def _read_on(handle: int, data: bytes, large: Callable[[int], None]) -> bytes:
    size = os.fstat(handle).st_size
    if looks_binary(data[:SNIFFED]):
        return b""
    if size > _LARGEST:
        large(size)
        return b""
    pieces = [data]
    while size > sum(map(len, pieces)) and (more := os.read(handle, size)):
        pieces.append(more)
    return b"".join(pieces)


def _text(data: bytes) -> str:
    """The text; empty for a binary file."""
    if looks_binary(data[:SNIFFED]):
        return ""
    if 0 in data and not data.startswith(WIDE):
        return ""
    return detect(data).decode(data)


_LONGEST_LINE = 64 << 20
_THREADS = 4


class Unable(Exception):
    """This search program cannot be used; try the next one."""


async def search(task: Search, way: str = "") -> list[FoundLine]:
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


async def _counting(task: Search, lines: Awaitable[list[FoundLine]]) -> list[FoundLine]:
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


async def _by_ripgrep(task: Search) -> list[FoundLine]:
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
        *("--no-ignore-dot", "--no-ignore-global", f"--threads={_THREADS}", *own),
        *(f"--glob=!**/{name}/**" for name in sorted(NEVER_SEARCHED)),
        *(("--glob", task.include) if task.include else ()),
        *("--regexp", task.pattern, "./"),
    ]
    return await _lines_of(task, command)


async def _by_git(task: Search) -> list[FoundLine]:
    program = find_program("git", task.environ, task.workspace.roots)
    if not program or task.rules.repository is None:
        raise Unable
    command = [
        *(program, *GIT_OPTIONS, "-c", "core.quotePath=false"),
        # Files above this size count as binary. Eight threads, the default, wait for each other.
        *("-c", "core.bigFileThreshold=1024g", "-c", f"grep.threads={_THREADS}"),
        *("grep", "--untracked", "--no-color", "-I", "-n", "-P", "--null", "--ignore-case"),
        *("-e", task.pattern, "--", "."),
    ]
    return await _lines_of(task, command)


async def _lines_of(task: Search, command: list[str]) -> list[FoundLine]:
    accepts = _FileFilter(task)
    lines: list[FoundLine] = []
    try:
        # By descriptor: the path may point elsewhere by the time the program starts.
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
            if line is None or not accepts(line.path):
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


def _parsed(raw: bytes) -> FoundLine | None:
    found = _FOUND.match(raw)
    if found is None:
        return None
    path = printable(found[1].decode("utf-8", "surrogateescape"))
    return FoundLine(path, int(found[2]), found[3].decode("utf-8", "replace"))


class _FileFilter:
    """Whether a file counts, for every search program alike."""

    def __init__(self, task: Search) -> None:
        self._task = task
        self._include = include_globs(task.include)
        self._known: dict[str, bool] = {}
        self._links = {"": False}
        self._start = os.path.join(task.start, "")  # noqa: PTH118 - text

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
        whole = self._start + path
        if self._task.rules.ignored(whole) or self._task.hides(path):
            return False
        # A link on the path may lead out of the workspace.
        return not (self._linked(path.rpartition("/")[0]) or _is_link(whole))

    def _linked(self, folder: str) -> bool:
        """Whether a folder below the start, which is a real path, is a link or is below one."""
        known = self._links.get(folder)
        if known is None:
            above = self._linked(folder.rpartition("/")[0])
            known = self._links[folder] = above or _is_link(self._start + folder)
        return known


def _is_link(path: str) -> bool:
    """False for what is gone, too."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False
