"""What a small model cannot compute: files by folder, sums of tables, counts and products."""

import re
from collections.abc import Callable, Mapping

_MOST_FOLDERS = 20
"""A folder is expanded as long as there are no more entries than this."""
_MOST_TOLD = 8
"""With more files, a small model only repeats their names."""
_MOST_ABOUT = 60
"""Characters of a folder's description."""
_NAMED = 3
"""File names shown for a folder without a description."""
_TELLING = ("__init__.py", "README.md", "lib.rs", "mod.rs", "doc.go", "index.ts", "index.js")
"""Files whose first words describe their folder."""
_TOP = "the top folder"
_first_words = re.compile(
    r"""\s*(?:[rR]?(?:\"{3}|'{3})|/\*+!?|//[/!]?|<!--|\#+(?!!))[ \t]*\n?[ \t*]*(\w.*)"""
).match
_no_description = re.compile(r"copyright|license|licence|spdx|coding[:=]|eslint", re.I).search


def by_folder(text: str, read: Callable[[str], str | None], limit: int) -> str:
    """The result of a file search, grouped by folder; `read` returns the text of a file."""
    head, *paths = text.splitlines()
    lines = [f"{head.partition(' within ')[0]}, by folder:"]
    size = len(lines[0])
    folders = sorted(_folders([*filter(None, paths)]).items(), key=lambda it: (-len(it[1]), it[0]))
    for folder, inside in folders[:_MOST_TOLD]:
        about = _about(folder, read) or f"such as {', '.join(sorted(inside)[:_NAMED])}"
        line = f"{folder} ({len(inside)}): {about}"
        size += len(line) + 1
        if size > limit:
            break
        lines.append(line)
    left = len(folders) - len(lines) + 1
    return "\n".join([*lines, f"and {left} other folders"] if left else lines)


_MOST_FIGURES = 400
"""Characters of what is computed from a table or a log."""
_MOST_GROUPS = 12
_MOST_NAMED = 3
_MOST_TIMES = 6
_cron_line = re.compile(r"^(\d+)\s+(\d+)\s+\S+\s+\S+\s+\S+\s+(\S.*)$", re.MULTILINE).findall


def figures(text: str, words: str) -> str:
    """What a small model cannot compute: sums and extremes of a table, lines with a marked word."""
    found = _columns([line.split(",") for line in text.splitlines() if line.strip()])
    for word in dict.fromkeys(re.findall(r"\b[A-Z]{3,}\b|(?<=[\"'`])[^\"'`\n]+(?=[\"'`])", words)):
        count = sum(word in line for line in text.splitlines())
        if count:
            found.append(f"{word} in {count} of them")
    times = [f"{it[2]} at {int(it[1])}:{int(it[0]):02}" for it in _cron_line(text)]
    found += times[:_MOST_TIMES]
    found += [f"{name} does not occur in it" for name in marked_names(words) if name not in text]
    return "".join(f"; {it}" for it in found)[:_MOST_FIGURES]


def together(texts: Mapping[str, str]) -> str:
    """The sums of columns that several tables have in common; empty without any."""
    sums: dict[str, list[float]] = {}
    for text in texts.values():
        for name, numbers, _ in _numeric([it.split(",") for it in text.splitlines() if it.strip()]):
            sums.setdefault(name, []).append(sum(numbers))
    found = [f"{name} {sum(it):.10g}" for name, it in sums.items() if len(it) > 1]
    return f"(Sum of all files: {', '.join(found)})\n" if found else ""


def arithmetic(words: str) -> str:
    """The results of the four operations where a request has two numbers; empty otherwise."""
    found = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)", words)
    if len(found) != 2:
        return ""
    one, other = map(float, found)
    sums = [("+", one + other), ("-", one - other), ("*", one * other)]
    sums += [("/", one / other)] if other else []
    return f"\n({', '.join(f'{found[0]} {sign} {found[1]} = {it:.10g}' for sign, it in sums)})"


def marked_names(words: str) -> list[str]:
    """Names in a request that can only be identifiers, not paths."""
    found = re.findall(r"(?<![\w./-])[A-Za-z]\w*(?:_\w+)+(?![\w/]|\.\w|-\w)", words)
    return [*dict.fromkeys(found)][:_MOST_NAMED]


def _columns(rows: list[list[str]]) -> list[str]:
    found: list[str] = []
    for name, numbers, at in _numeric(rows):
        head, *rest = rows
        low, high = (pick(range(len(rest)), key=numbers.__getitem__) for pick in (min, max))
        total = f"sum {sum(numbers):.10g}"
        found.append(
            f"{name}: highest {rest[high][at].strip()} ({rest[high][0].strip()}), lowest "
            f"{rest[low][at].strip()} ({rest[low][0].strip()}), {total}"
        )
        groups: dict[str, float] = {}
        for row, value in zip(rest, numbers, strict=True):
            groups[row[0].strip()] = groups.get(row[0].strip(), 0.0) + value
        if 1 < len(groups) < len(rest) and len(groups) <= _MOST_GROUPS:
            found.append(f"by {head[0]}: {', '.join(f'{it} {groups[it]:.10g}' for it in groups)}")
    return found


def _numeric(rows: list[list[str]]) -> list[tuple[str, list[float], int]]:
    """The columns of a table that contain numbers only: name, numbers and position."""
    head, *rest = rows or [[]]
    if len(head) < 2 or not rest or any(len(row) != len(head) for row in rest):
        return []
    found: list[tuple[str, list[float], int]] = []
    for at, name in enumerate(head):
        numbers = [value for row in rest if (value := _number(row[at])) is not None]
        if at and len(numbers) == len(rest):
            found.append((name.strip(), numbers, at))
    return found


def _number(text: str) -> float | None:
    """The number that a cell contains; None for any other text."""
    try:
        return float(text.strip().lstrip("$€£"))
    except ValueError:
        return None


def _folders(paths: list[str]) -> Mapping[str, list[str]]:
    """Files grouped by folder; the largest folders are expanded as long as all fit."""
    found: dict[str, list[str]] = {"": paths}
    closed: set[str] = set()
    while openable := found.keys() - closed:
        fullest = max(openable, key=lambda folder: (len(found[folder]), folder))
        opened = _opened(fullest, found[fullest])
        if len(found) - 1 + len(opened) > _MOST_FOLDERS:
            closed.add(fullest)
            continue
        del found[fullest]
        found.update(opened)
        # The remaining entries are the folder's direct files.
        closed.add(fullest)
    return {folder or _TOP: inside for folder, inside in found.items()}


def _opened(folder: str, inside: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in inside:
        first, deeper, rest = name.partition("/")
        under = f"{folder}{first}/" if deeper else folder
        found.setdefault(under, []).append(rest or name)
    return found


def _about(folder: str, read: Callable[[str], str | None]) -> str:
    for name in _TELLING if folder != _TOP else ():
        found = _first_words(read(folder + name) or "")
        if found is not None and not _no_description(found[1]):
            words = re.split(r"\"{3}|'{3}|\*/|-->", found[1])[0].strip()
            return (
                words if len(words) <= _MOST_ABOUT else f"{words[:_MOST_ABOUT].rsplit(' ', 1)[0]} …"
            )
    return ""
