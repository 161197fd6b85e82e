"""Line edits: a small model names a line of the file and rewrites it."""

import ast
import re
import warnings
from collections.abc import Sequence

import msgspec

MOST_LINES = 300
"""Longer files offer no choice of lines; the text to change is written freely."""
_MOST_TOGETHER = 3
"""Lines named together where a single one is not unique."""

_decode = msgspec.json.Decoder().decode
_indent = re.compile(r"[ \t]*").match
_titled = re.compile(r"\s*(?:async |export |public )*(?:def|class|function|func|fn)\s+(\w+)").match
_opens = re.compile(r"[:{(\[]\s*\Z").search
_closes = re.compile(r"\s*[})\]]").match


def choices(text: str) -> tuple[str, ...]:
    """The lines that can be named, each unique; empty for files that are too long."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES or "\r" in text:
        return ()
    found: list[str] = []
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        for size in range(1, _MOST_TOGETHER + 1):
            some = lines[at : at + size]
            if len(some) == size and len(_places(lines, some)) == 1:
                found.append("\n".join(some))
                break
    return tuple(found)


def change(text: str, old: str, new: str) -> tuple[str, str]:
    """The text to find, unique in the file, and its replacement."""
    lines = text.split("\n")
    named = old.split("\n")
    places = _places(lines, named)
    if "\r" in text or len(places) != 1:
        return old, new
    begin, end = places[0], places[0] + len(named)
    if not new.strip():
        return _unique(lines, begin, end, [])
    fresh = _indented(new.removesuffix("\n").split("\n"), named[0])
    if len(named) == 1 and _has_body(named[0], fresh):
        end = _block_end(lines, begin, closing=_closes(fresh[-1]) is not None)
        if _title(fresh[0]) not in ("", _title(named[0])):
            # A definition with another name is added next to it.
            fresh = [*lines[begin:end], "", *fresh]
        elif _falls_through(fresh):
            # New lines precede the rest of the block, which was not rewritten.
            fresh += [line for line in lines[begin + 1 : end] if line not in fresh]
    return _unique(lines, begin, end, fresh)


def addition(text: str, more: str) -> tuple[str, str]:
    """The text to find and its replacement for an addition at the end."""
    lines = text.rstrip("\n").split("\n")
    last = len(lines) - 1
    fresh = [lines[last], *more.rstrip("\n").split("\n")]
    return _unique(text.split("\n"), last, last + 1, fresh)


def is_sound(path: str, text: str) -> bool:
    """Whether the text parses as the file type; True for unknown types."""
    try:
        if path.endswith(".py"):
            with warnings.catch_warnings():
                # Warnings about the user's files are not shown.
                warnings.simplefilter("ignore")
                ast.parse(text)
        elif path.endswith(".json"):
            _decode(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _places(lines: Sequence[str], some: Sequence[str]) -> list[int]:
    size = len(some)
    last = len(lines) - size
    return [at for at in range(last + 1) if list(lines[at : at + size]) == list(some)]


def _unique(lines: list[str], begin: int, end: int, fresh: list[str]) -> tuple[str, str]:
    """Extends the change by surrounding lines until the text to find is unique."""
    text = "\n".join(lines)
    before, after = begin, end
    if not fresh:
        # A removed line includes its line break.
        before, after = (begin, end + 1) if end < len(lines) else (max(begin - 1, 0), end)
    while True:
        old = "\n".join(lines[before:after])
        if text.find(old) == text.rfind(old) or (before == 0 and after == len(lines)):
            return old, "\n".join([*lines[before:begin], *fresh, *lines[end:after]])
        before, after = max(before - 1, 0), min(after + 1, len(lines))


def _indented(fresh: list[str], named: str) -> list[str]:
    """Adds the named line's indentation if it is missing."""
    indent = _width(named)
    if not indent or _width(fresh[0]):
        return fresh
    return [f"{indent}{line}" if line.strip() else line for line in fresh]


def _has_body(named: str, fresh: Sequence[str]) -> bool:
    """Whether a line that opens a block was rewritten together with the block."""
    if _opens(named) is None:
        return False
    if len(fresh) == 1:
        return _opens(fresh[0]) is None
    inner = next((line for line in fresh[1:] if line.strip()), "")
    return _opens(fresh[0]) is not None and len(_width(inner)) > len(_width(fresh[0]))


def _falls_through(fresh: Sequence[str]) -> bool:
    """Whether the block ends inside an inner one, so that more lines must follow."""
    if len(fresh) < 2 or _closes(fresh[-1]) is not None:
        return False
    return len(_width(fresh[-1])) > len(_width(fresh[1]))


def _title(line: str) -> str:
    """The name of the function or class that the line defines; empty for any other line."""
    found = _titled(line)
    return found.group(1) if found is not None else ""


def _block_end(lines: Sequence[str], begin: int, *, closing: bool) -> int:
    outer = len(_width(lines[begin]))
    end = begin + 1
    for at in range(begin + 1, len(lines)):
        line = lines[at]
        if not line.strip():
            continue
        if len(_width(line)) <= outer:
            return at + 1 if closing and _closes(line) is not None else end
        end = at + 1
    return end


def _width(line: str) -> str:
    found = _indent(line)
    return found.group() if found is not None else ""
