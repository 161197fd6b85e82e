"""Changes by whole lines: a small model names a line that stands in the file and writes it anew."""

import ast
import re
import warnings
from collections.abc import Sequence

import msgspec

MOST_LINES = 300
"""Of a longer file the text to change is written freely."""
_MOST_TOGETHER = 3
"""Lines that are named together where one alone comes twice."""

_decode = msgspec.json.Decoder().decode
_indent = re.compile(r"[ \t]*").match
_titled = re.compile(r"\s*(?:async |export |public )*(?:def|class|function|func|fn)\s+(\w+)").match
_opens = re.compile(r"[:{(\[]\s*\Z").search
_closes = re.compile(r"\s*[})\]]").match


def choices(text: str) -> tuple[str, ...]:
    """The lines that can be named, each only one place; none where lines are not the way."""
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
    """The text to find, which stands in the file once, and the text to put there."""
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
            # Something of another name is meant to come beside it.
            fresh = [*lines[begin:end], "", *fresh]
        elif _falls_through(fresh):
            # Something was put before the rest of the block, which was not written again.
            fresh += [line for line in lines[begin + 1 : end] if line not in fresh]
    return _unique(lines, begin, end, fresh)


def addition(text: str, more: str) -> tuple[str, str]:
    """The same for text that comes after all the file has."""
    lines = text.rstrip("\n").split("\n")
    last = len(lines) - 1
    fresh = [lines[last], *more.rstrip("\n").split("\n")]
    return _unique(text.split("\n"), last, last + 1, fresh)


def is_sound(path: str, text: str) -> bool:
    """Whether the text is what the file's name says it is, where that can be told."""
    try:
        if path.endswith(".py"):
            with warnings.catch_warnings():
                # What is merely odd in the person's files is not for the screen.
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
    """Lines around the change are taken in until the text to find stands there once."""
    text = "\n".join(lines)
    before, after = begin, end
    if not fresh:
        # A line that goes takes a line break with it.
        before, after = (begin, end + 1) if end < len(lines) else (max(begin - 1, 0), end)
    while True:
        old = "\n".join(lines[before:after])
        if text.find(old) == text.rfind(old) or (before == 0 and after == len(lines)):
            return old, "\n".join([*lines[before:begin], *fresh, *lines[end:after]])
        before, after = max(before - 1, 0), min(after + 1, len(lines))


def _indented(fresh: list[str], named: str) -> list[str]:
    """What was written without the line's own indentation gets it."""
    indent = _width(named)
    if not indent or _width(fresh[0]):
        return fresh
    return [f"{indent}{line}" if line.strip() else line for line in fresh]


def _has_body(named: str, fresh: Sequence[str]) -> bool:
    """Whether a line that opens a block was written anew together with the block."""
    if _opens(named) is None:
        return False
    if len(fresh) == 1:
        return _opens(fresh[0]) is None
    inner = next((line for line in fresh[1:] if line.strip()), "")
    return _opens(fresh[0]) is not None and len(_width(inner)) > len(_width(fresh[0]))


def _falls_through(fresh: Sequence[str]) -> bool:
    """Whether the block ends inside an inner one, so that something is to follow it."""
    if len(fresh) < 2 or _closes(fresh[-1]) is not None:
        return False
    return len(_width(fresh[-1])) > len(_width(fresh[1]))


def _title(line: str) -> str:
    """The name of the function or class that the line begins; empty for any other line."""
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
