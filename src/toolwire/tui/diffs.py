"""Unified diffs as numbered lines, with the words that differ marked; pure but for the painting."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from enum import StrEnum

import msgspec
from rich.cells import cell_len
from rich.text import Text

from toolwire.terminal_text import terminal_text
from toolwire.tui.render import Painter

SPLIT_FROM = 140
"""Columns of a terminal from which `auto` shows both sides."""
_ALIKE = 0.4
"""Share of common words from which a changed pair of lines is compared word by word."""
_LONGEST = 2000
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class LineChange(StrEnum):
    """What a line of a diff does."""

    FILE = "file"
    HUNK = "hunk"
    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"
    NOTE = "note"


class DiffLine(msgspec.Struct, frozen=True, gc=False):
    """One line of a diff; numbers are 0 where the line has none."""

    change: LineChange
    text: str
    old: int = 0
    new: int = 0
    words: tuple[tuple[int, int], ...] = ()
    """Begin and end of the parts that differ from the other line of the pair."""


def diff_lines(diff: str) -> list[DiffLine]:
    """The lines of a unified diff."""
    found: list[DiffLine] = []
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in _numbered(diff):
        if line.change is LineChange.REMOVED and not added:
            removed.append(line)
        elif line.change is LineChange.ADDED:
            added.append(line)
        else:
            found.extend(_paired(removed, added))
            removed, added = ([line], []) if line.change is LineChange.REMOVED else ([], [])
            if line.change is not LineChange.REMOVED:
                found.append(line)
    return [*found, *_paired(removed, added)]


def _numbered(diff: str) -> Iterator[DiffLine]:
    old = new = 0
    last_old = last_new = -1
    """Where the hunk ends: a removed line may look like a heading."""
    for line in diff.split("\n"):
        sign = line[:1]
        if sign == "\\":
            yield DiffLine(LineChange.NOTE, line[1:].strip())
        elif old >= last_old and new >= last_new:
            if hunk := _HUNK.match(line):
                old, new = int(hunk[1]), int(hunk[3])
                last_old, last_new = old + int(hunk[2] or 1), new + int(hunk[4] or 1)
                yield DiffLine(LineChange.HUNK, hunk[5].strip())
            else:
                yield from _heading(line)
        elif sign == "-":
            yield DiffLine(LineChange.REMOVED, line[1:], old=old)
            old += 1
        elif sign == "+":
            yield DiffLine(LineChange.ADDED, line[1:], new=new)
            new += 1
        else:
            yield DiffLine(LineChange.SAME, line[1:], old=old, new=new)
            old, new = old + 1, new + 1


def _heading(line: str) -> Iterator[DiffLine]:
    if line.startswith("+++ "):
        yield DiffLine(LineChange.FILE, line[4:].split("\t")[0])
    elif line and not line.startswith(("--- ", "====", "Index: ", "diff ", "index ")):
        yield DiffLine(LineChange.NOTE, line)


def _paired(removed: list[DiffLine], added: list[DiffLine]) -> list[DiffLine]:
    """The lines of one change, marked where a removed and an added line are alike."""
    before, after = list(removed), list(added)
    for at, (old, new) in enumerate(zip(removed, added, strict=False)):
        words = _differing(old.text, new.text)
        if words is not None:
            before[at] = msgspec.structs.replace(old, words=words[0])
            after[at] = msgspec.structs.replace(new, words=words[1])
    return [*before, *after]


_Spans = tuple[tuple[int, int], ...]


def _differing(old: str, new: str) -> tuple[_Spans, _Spans] | None:
    if not old.strip() or not new.strip() or len(old) + len(new) > _LONGEST:
        return None
    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
        return None
    left: list[tuple[int, int]] = []
    right: list[tuple[int, int]] = []
    for operation, i, j, k, m in matcher.get_opcodes():
        if operation != "equal":
            left.append((_length(before[:i]), _length(before[:j])))
            right.append((_length(after[:k]), _length(after[:m])))
    return tuple(s for s in left if s[0] < s[1]), tuple(s for s in right if s[0] < s[1])


def _length(words: list[str]) -> int:
    return sum(map(len, words))


def painted(
    lines: list[DiffLine], painter: Painter, *, indent: int = 2, layout: str = "auto", most: int = 0
) -> list[str]:
    """The lines for a terminal, at most `most` of them and then the number left out."""
    shown = lines[:most] if most else lines
    digits = len(str(max((max(line.old, line.new) for line in shown), default=1)))
    split = layout == "split" or (layout == "auto" and painter.width >= SPLIT_FROM)
    rows = _split(shown, painter, digits, indent) if split else None
    if rows is None:
        rows = [_unified(line, painter, digits, indent) for line in shown]
    left = len(lines) - len(shown)
    if left:
        rows.append(painter.line((f"{' ' * indent}… {left} more lines", "dim")))
    return rows


def _unified(line: DiffLine, painter: Painter, digits: int, indent: int) -> str:
    lead = " " * indent
    match line.change:
        case LineChange.FILE:
            return painter.line((f"{lead}{line.text}", "strong"))
        case LineChange.HUNK:
            return painter.line((f"{lead}{'⋯':>{digits}} {line.text}".rstrip(), "dim"))
        case LineChange.NOTE:
            return painter.line((f"{lead}{line.text}", "dim"))
        case _:
            number = line.new or line.old
            row = Text(f"{lead}{number:>{digits}} ", style=painter.style("dim"), end="")
            return painter.ansi(row.append_text(_body(line, painter)))


_SIGNS = {LineChange.SAME: " ", LineChange.REMOVED: "-", LineChange.ADDED: "+"}
_ROLES = {LineChange.SAME: "", LineChange.REMOVED: "removed", LineChange.ADDED: "added"}


def _body(line: DiffLine, painter: Painter) -> Text:
    """The sign and the text, its differing words and trailing blanks marked."""
    role = _ROLES[line.change]
    body = Text(f"{_SIGNS[line.change]} ", style=painter.style(role), end="")
    at = 0
    for begin, end in line.words:
        body.append(_safe(line.text[at:begin]))
        body.append(_safe(line.text[begin:end]), painter.style(f"{role}_word"))
        at = end
    rest = line.text[at:]
    blanks = len(rest) - len(rest.rstrip(" \t")) if line.change is LineChange.ADDED else 0
    body.append(_safe(rest[: len(rest) - blanks]))
    if blanks:
        body.append("·" * blanks, painter.style("removed"))
    return body


def _safe(text: str) -> str:
    return terminal_text(text).expandtabs(4)


def _split(lines: list[DiffLine], painter: Painter, digits: int, indent: int) -> list[str] | None:
    """Both sides beside each other; None if a line is too long for its half."""
    half = (painter.width - indent - 3) // 2
    room = half - digits - 3
    rows: list[str] = []
    removed: list[DiffLine] = []
    added: list[DiffLine] = []

    def flush() -> None:
        for at in range(max(len(removed), len(added))):
            left = removed[at] if at < len(removed) else None
            right = added[at] if at < len(added) else None
            rows.append(_pair(left, right, painter, digits, indent, half))
        removed.clear()
        added.clear()

    for line in lines:
        if line.change in _SIGNS and cell_len(_safe(line.text)) > room:
            return None
        if line.change is LineChange.REMOVED:
            if added:
                flush()
            removed.append(line)
        elif line.change is LineChange.ADDED:
            added.append(line)
        else:
            flush()
            if line.change is LineChange.SAME:
                rows.append(_pair(line, line, painter, digits, indent, half))
            else:
                rows.append(_unified(line, painter, digits, indent))
    flush()
    return rows


def _pair(
    left: DiffLine | None,
    right: DiffLine | None,
    painter: Painter,
    digits: int,
    indent: int,
    half: int,
) -> str:
    row = Text(" " * indent, end="")
    if left is not None:
        row.append(f"{left.old:>{digits}} ", painter.style("dim"))
        row.append_text(_body(left, painter))
    row.append(" " * max(indent + half - cell_len(row.plain), 0))
    row.append(" │ ", painter.style("dim"))
    if right is not None:
        row.append(f"{right.new:>{digits}} ", painter.style("dim"))
        row.append_text(_body(right, painter))
    row.rstrip()
    return painter.ansi(row)
