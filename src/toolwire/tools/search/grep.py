"""Lines of files that fit a pattern, found by ourselves where no other program can."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from toolwire.tools.files.encodings import detect, printable
from toolwire.tools.files.filetypes import SNIFFED, looks_binary
from toolwire.tools.files.visibility import LeftOut, Visibility
from toolwire.tools.search.globs import Globs
from toolwire.tools.search.ignore import IgnoreRules
from toolwire.tools.search.sieve import WIDE, Sieve
from toolwire.tools.search.walk import Folder, Walk, folders
from toolwire.tools.spec import Workspace

MOST_MATCHES = 20_000
_LARGEST = 256 << 20
_AT_ONCE = 1 << 16
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Line(msgspec.Struct, frozen=True):
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
        why = self.visibility.hides(f"{self.start}{os.sep}{path}")
        return bool(why) and self.left_out.add(why, printable(path))


def include_globs(include: str) -> Globs | None:
    """The filter as globs: one without a slash fits names at any depth."""
    if not include:
        return None
    pattern = include.removeprefix("/")
    patterns = [pattern, f"{pattern.rstrip('/')}/**"]
    if "/" not in include.rstrip("/"):
        patterns = [f"**/{one}" for one in patterns]
    return Globs(patterns, ignore_case=False)


def scan(task: Search, stopped: Callable[[], bool]) -> list[Line]:
    """The lines in the order of the walk, as many as requested."""
    with Sieve(task.pattern, stopped) as sieve:
        return _scanned(task, sieve, stopped)


def _scanned(task: Search, sieve: Sieve, stopped: Callable[[], bool]) -> list[Line]:
    include = include_globs(task.include)
    lines: list[Line] = []
    for folder in folders(_plan(task, stopped)):
        names = [name for name in _wanted(folder, include) if not task.hides(folder.path + name)]
        large = partial(_note_large, task, folder.path)
        for name, data in _sifted(names, folder.descriptor, sieve.may_fit, large):
            if stopped():
                return lines
            text = _text(data)
            if text:
                path = printable(folder.path + name)
                found = sieve.lines(text.removesuffix("\n"))
                lines += [Line(path, at, printable(line)) for at, line in found]
            if len(lines) >= task.most:
                return lines[: task.most]
    return lines


def census(task: Search, stopped: Callable[[], bool]) -> None:
    """Count the files that are left out where another program searches.

    It would only report matching files, and counting these would reveal their contents.
    """
    include = include_globs(task.include)
    for folder in folders(_plan(task, stopped)):
        for name in _wanted(folder, include):
            task.hides(folder.path + name)


def _plan(task: Search, stopped: Callable[[], bool]) -> Walk:
    return Walk(start=task.start, workspace=task.workspace, rules=task.rules, stopped=stopped)


def _note_large(task: Search, folder: str, name: str, size: int) -> None:
    task.unsearched.append(f"{printable(folder + name)} ({size >> 20} MB)")


def _wanted(folder: Folder, include: Globs | None) -> list[str]:
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
    open_, read, close = os.open, os.read, os.close
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
