"""Imports of notes: `@file` in a Markdown text, outside of code; pure."""

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from toolwire.context import ImportFormat

MOST_DEPTH = 5
OUTSIDE = "Path traversal attempt"
TOO_MUCH = "Too much is imported"

_MOST_TEXT = 4 << 20
_IMPORT_COST = 1 << 10
_IMPORT = re.compile(r"(?<![^ \t\n\r])@([./A-Za-z][^ \t\n\r]*)")
_URL = re.compile(r"(?:file|https?)://")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")


class ReadText(msgspec.Struct, frozen=True):
    """A file's text, or why it cannot be read."""

    text: str = ""
    problem: str = ""


Read: TypeAlias = Callable[[str], ReadText]
"""Reads an absolute path; refuses paths outside of the project."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A text with all it imports."""

    text: str
    files: tuple[str, ...] = ()
    """Absolute paths of the imported files, in the order they were found."""


def with_imports(text: str, file: str, read: Read, form: ImportFormat = "tree") -> Imported:
    """The text of `file` (an absolute path) with its imports, at most five deep."""
    importing = _Importing(read)
    written = importing.flat(text, file) if form == "flat" else importing.tree(text, file)
    return Imported(text=written, files=tuple(dict.fromkeys(importing.files)))


class _Importing:
    def __init__(self, read: Read) -> None:
        self._read = read
        self._room = _MOST_TEXT
        self.files: list[str] = []

    def tree(
        self, text: str, file: str, depth: int = 0, above: frozenset[str] = frozenset()
    ) -> str:
        """Every import in its place, between two comments."""
        if depth >= MOST_DEPTH:
            return text
        written, position = "", 0
        for start, end, name in _imports(text):
            written += text[position:start] + self._put(name, file, depth, above)
            position = end
        return written + text[position:]

    def _put(self, name: str, file: str, depth: int, above: frozenset[str]) -> str:
        path = _resolved(name, file)
        if path in above:
            return f"<!-- File already processed: {name} -->"
        found = self._found(path)
        if found.problem:
            return f"<!-- Import failed: {name} - {found.problem} -->"
        inner = self.tree(found.text, path, depth + 1, above | {path})
        return f"<!-- Imported from: {name} -->\n{inner}\n<!-- End of import from: {name} -->"

    def flat(self, text: str, file: str) -> str:
        """The file and all it imports, each once, one after the other."""
        seen: dict[str, str] = {}
        self._gather(text, file, 0, seen)
        return "\n\n".join(
            f"--- File: {path} ---\n{body.strip()}\n--- End of File: {path} ---"
            for path, body in seen.items()
        )

    def _gather(self, text: str, file: str, depth: int, seen: dict[str, str]) -> None:
        seen[file] = text
        if depth >= MOST_DEPTH:
            return
        for _, _, name in _imports(text):
            path = _resolved(name, file)
            if path in seen:
                continue
            found = self._found(path)
            if not found.problem:
                self._gather(found.text, path, depth + 1, seen)

    def _found(self, path: str) -> ReadText:
        if not path:
            return ReadText(problem=OUTSIDE)
        found = self._read(path)
        if found.problem:
            return found
        self._room -= len(found.text) + _IMPORT_COST
        if self._room < 0:
            return ReadText(problem=TOO_MUCH)
        self.files.append(path)
        return found


def _resolved(name: str, file: str) -> str:
    """The absolute path that an import means; empty for an address."""
    if _URL.match(name):
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), name))


def _imports(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and name of each import outside of code."""
    if "@" not in text:
        return
    code = code_regions(text)
    at = 0
    for found in _IMPORT.finditer(text):
        while at < len(code) and code[at][1] <= found.start():
            at += 1
        if at == len(code) or found.start() < code[at][0]:
            yield found.start(), found.end(), found[1]


def code_regions(text: str) -> list[tuple[int, int]]:
    """Where Markdown has code: fenced blocks, and spans between equal runs of backticks."""
    regions: list[tuple[int, int]] = []
    fence, opened, paragraph, position = "", 0, 0, 0
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        end = position + len(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                regions.append((opened, end))
                fence, paragraph = "", end
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            regions += _spans(text, paragraph, position)
            fence, opened = found[1], position
        elif not line.strip():
            regions += _spans(text, paragraph, position)
            paragraph = end
        position = end
    if fence:
        regions.append((opened, len(text)))
    else:
        regions += _spans(text, paragraph, len(text))
    return regions


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    runs = [found.span() for found in _TICKS.finditer(text, start, end)]
    later: dict[int, list[int]] = {}
    for at in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[at][1] - runs[at][0], []).append(at)
    at = 0
    while at < len(runs):
        same = later[runs[at][1] - runs[at][0]]
        while same and same[-1] <= at:
            same.pop()
        if same:
            yield runs[at][0], runs[same[-1]][1]
            at = same[-1]
        at += 1
