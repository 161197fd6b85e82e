"""Lines of files that fit a pattern, found by ourselves where no other program can."""

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path

import msgspec

from toolwire.tools.encodings import detect, printable
from toolwire.tools.filetypes import SNIFFED, looks_binary
from toolwire.tools.globs import Globs
from toolwire.tools.ignore import IgnoreRules
from toolwire.tools.regexes import compiled, literals
from toolwire.tools.spec import Workspace
from toolwire.tools.walking import Folder, Walk, folders

MOST_MATCHES = 20_000
_LARGEST = 256 << 20
_AT_ONCE = 1 << 16
_BATCH = 1 << 16
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
    most: int = MOST_MATCHES


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
    lines: list[Line] = []
    for batch in _batches(task, stopped):
        for path, data in sieve.candidates(batch):
            text = _text(data)
            if text:
                found = sieve.lines(text.removesuffix("\n"))
                lines += [Line(printable(path), at, printable(line)) for at, line in found]
            if len(lines) >= task.most:
                return lines[: task.most]
    return lines


_Batch = list[tuple[str, bytes]]


def _batches(task: Search, stopped: Callable[[], bool]) -> Iterator[_Batch]:
    """Files with their paths, some at a time: many small ones are sifted together."""
    include = include_globs(task.include)
    plan = Walk(start=task.start, workspace=task.workspace, rules=task.rules, stopped=stopped)
    batch: _Batch = []
    size = 0
    for folder in folders(plan):
        for name in _wanted(folder, include):
            data = _read(name, folder.descriptor)
            if data:
                batch.append((folder.path + name, data))
                size += len(data)
            if size >= _BATCH:
                yield batch
                batch, size = [], 0
    yield batch


def _wanted(folder: Folder, include: Globs | None) -> list[str]:
    names = folder.seen(folder.names)
    if folder.links:
        names = [name for name in names if name not in folder.links]
    return names if include is None else include.among(folder.path, names)


def _read(name: str, folder: int) -> bytes:
    """The whole file; empty if it cannot be had."""
    try:
        handle = os.open(name, _OPEN, dir_fd=folder)
    except OSError:
        return b""
    try:
        data = os.read(handle, _AT_ONCE)
        return data if len(data) < _AT_ONCE else _read_on(handle, data)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _read_on(handle: int, data: bytes) -> bytes:
    size = os.fstat(handle).st_size
    if size > _LARGEST or looks_binary(data[:SNIFFED]):
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

    def candidates(self, batch: _Batch) -> Iterator[tuple[str, bytes]]:
        """The files that may have a line."""
        if not self._strong:
            yield from batch
            return
        together = b"\n".join([data for _, data in batch])
        if not together.isascii():
            yield from (file for file in batch if self._may_have(file[1]))
            return
        if self._signs and _first(together, self._signs) < 0:
            # Signs and digits have no capitals, and are soon looked for.
            return
        starts = list(accumulate((len(data) + 1 for _, data in batch), initial=0))
        small, place = together.lower(), 0
        while (hit := _first(small, self._strong, place)) >= 0:
            number = bisect_right(starts, hit) - 1
            yield batch[number]
            place = starts[number + 1]

    def _may_have(self, data: bytes) -> bool:
        letters = self._strong if data.isascii() else self._weak
        if data.startswith(_WIDE):
            return True
        return not letters or _first(data.lower(), letters) >= 0

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
