"""Lines of files that fit a pattern, found by ourselves where no other program can."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from toolwire.tools.encodings import detect, printable
from toolwire.tools.filetypes import SNIFFED, looks_binary
from toolwire.tools.globs import Globs
from toolwire.tools.ignore import IgnoreRules
from toolwire.tools.regexes import compiled, literals
from toolwire.tools.spec import Workspace
from toolwire.tools.visibility import LeftOut, Visibility
from toolwire.tools.walking import Folder, Walk, folders

MOST_MATCHES = 20_000
_LARGEST = 256 << 20
_AT_ONCE = 1 << 16
_WIDE = (b"\xff\xfe", b"\xfe\xff")
# Letters that others beyond ASCII count as capitals of: ı, İ, K, ſ.
_SHARED = re.compile("[iks]")
_LETTERS = re.compile("[a-z]+")
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
    """The lines in the order of the walk, as many as are wanted."""
    sieve = _Sieve(task.pattern)
    include = include_globs(task.include)
    lines: list[Line] = []
    for folder in folders(_plan(task, stopped)):
        names = [name for name in _wanted(folder, include) if not task.hides(folder.path + name)]
        large = partial(_note_large, task, folder.path)
        for name, data in _sifted(names, folder.descriptor, sieve.may_fit, large):
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

    It would only report those that fit, and to count these would tell what they hold.
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


class _Sieve:
    """A pattern, and the letters without which no line fits it."""

    def __init__(self, pattern: str) -> None:
        self._expression = compiled(pattern)
        # A look ahead or behind may see the next line, so such patterns are tried by line only.
        self._whole = "(?" not in pattern and not re.search(r"\\[AZbB]", pattern)
        strong = literals(pattern)
        weak = [max(_SHARED.split(one), key=len) for one in strong]
        self._strong = [one.encode() for one in strong]
        self._weak = [one.encode() for one in weak] if all(weak) else []
        signs = [max(_LETTERS.split(one), key=len) for one in strong]
        self._signs = [one.encode() for one in signs] if all(signs) else []
        self._capitals = [bytes((one,)) for one in set("".join(strong).upper().encode())]
        self._capitals = [one for one in self._capitals if one.isalpha()]

    def may_fit(self, data: bytes) -> bool:
        """Whether a file may have a line that fits."""
        letters = self._strong
        if letters != self._weak and not data.isascii():
            letters = self._weak
        if not letters or data.startswith(_WIDE):
            return True
        if self._signs and not _any_in(self._signs, data):
            # Signs and digits have no capitals, and are soon looked for.
            return False
        # So are single capitals, and most files lack some; to make all letters small takes longer.
        return _any_in(letters, data.lower() if _any_in(self._capitals, data) else data)

    def lines(self, text: str) -> Iterator[tuple[int, str]]:
        """The lines that fit, with their numbers from 1."""
        if self._strong and text.isascii():
            yield from self._lines_with_letters(text)
        elif not self._whole or self._expression.search(text.replace("\r\n", "\n")):
            for number, line in enumerate(text.split("\n"), 1):
                if self._expression.search(line.removesuffix("\r")):
                    yield number, line

    def _lines_with_letters(self, text: str) -> Iterator[tuple[int, str]]:
        small = text.lower().encode()
        number, counted, place = 1, 0, 0
        while (hit := _first(small, self._strong, place)) >= 0:
            start = small.rfind(b"\n", 0, hit) + 1
            end = small.find(b"\n", hit)
            end = len(small) if end < 0 else end
            number += small.count(b"\n", counted, start)
            counted, place = start, end + 1
            line = text[start:end]
            if self._expression.search(line.removesuffix("\r")):
                yield number, line


def _any_in(letters: list[bytes], data: bytes) -> bool:
    for one in letters:  # noqa: SIM110 - any() takes twice as long here
        if one in data:
            return True
    return False


def _first(data: bytes, letters: list[bytes], start: int = 0) -> int:
    """Where the first of any of the letters is; -1 if there are none."""
    end, best = len(data), -1
    for one in letters:
        found = data.find(one, start, end)
        if found >= 0:
            best, end = found, found + len(one)
    return best


def _text(data: bytes) -> str:
    """The text; empty if it is none."""
    if looks_binary(data[:SNIFFED]):
        return ""
    if 0 in data and not data.startswith(_WIDE):
        return ""
    return detect(data).decode(data)
