"""Rules of an ignore file as git reads them, split into directory and name."""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from toolwire.tools.search.patterns import Pieces, folders

LONGEST_LINE = 4096
"""Longer lines fit nothing: no path is as long."""
_SPECIAL = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "\\x21-\\x7e",
    "lower": "a-z",
    "print": "\\x20-\\x7e",
    "punct": "\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e",
    "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


class IgnoreRule(msgspec.Struct, frozen=True, eq=False):
    """One rule: it matches entries themselves, never what is below them."""

    ignores: bool
    """False for a negated rule."""
    folders_only: bool
    where: re.Pattern[str] | None
    """The directory, from the file's own, with a slash at the end; None means any."""
    name: re.Pattern[str]
    glob: str
    """The name as it is written."""
    only: str | None = None
    """The one directory that `where` fits, if it is one."""

    def reaches(self, folder: str) -> bool:
        """Whether it may match entries in a directory or below it."""
        return self.only is None or self.only.startswith(folder)


def parsed(text: str) -> tuple[IgnoreRule, ...]:
    """The rules of an ignore file, the last line first."""
    lines = text.split("\n")
    found = (_rule(line.removesuffix("\r")) for line in reversed(lines))
    return tuple(rule for rule in found if rule is not None)


def _rule(line: str) -> IgnoreRule | None:
    line = _without_trailing_spaces(line)
    if not line or line.startswith("#") or len(line) > LONGEST_LINE:
        return None
    ignores = not line.startswith("!")
    line = line if ignores else line[1:]
    folders_only = line.endswith("/")
    line = line.removesuffix("/")
    if not line:
        return None
    try:
        *above, name = _segments(line.removeprefix("/"))
        if not name:
            return None
        if name == "**" and "/" in line:
            # Everything below, at any depth.
            above, name = [*above, "**"], "*"
        where = _where(above) if "/" in line else None
        plain = where is not None and not any(map(_SPECIAL.search, above))
        only = "".join(f"{folder}/" for folder in above) if plain else None
        return IgnoreRule(ignores, folders_only, where, _compiled(_expression(name)), name, only)
    except ValueError:
        # A class without an end, or a backslash before nothing: git fits such lines to no name.
        return None


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and len(bare) < len(line) else bare


def _where(above: Sequence[str]) -> re.Pattern[str] | None:
    if list(above) == ["**"]:
        return None
    return _compiled(folders([None if one == "**" else _expression(one) for one in above]))


def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL)


def _segments(line: str) -> list[str]:
    """Cut at slashes; ValueError for a line that can fit nothing."""
    parts, position, start = list[str](), 0, 0
    while position < len(line):
        letter = line[position]
        if letter == "[":
            position = _class_end(line, position)
        elif letter == "\\":
            if position + 1 >= len(line):
                raise ValueError
            position += 1
            if line[position] == "/":
                parts.append(line[start : position - 1])
                start = position + 1
        elif letter == "/":
            parts.append(line[start:position])
            start = position + 1
        position += 1
    return [*parts, line[start:]]


def _class_end(line: str, start: int) -> int:
    """Where the `]` is; ValueError if there is none."""
    position = start + 1
    if line[position : position + 1] in ("!", "^"):
        position += 1
    first = position
    while position < len(line):
        if line[position] == "\\":
            position += 1
        elif named := _named(line, position):
            position += len(named) - 1
        elif line[position] == "]" and position > first:
            return position
        position += 1
    raise ValueError


def _named(line: str, position: int) -> str:
    """`[:alpha:]` and its like at this place; empty if there is none."""
    if not line.startswith("[:", position):
        return ""
    end = line.find("]", position + 2)
    return line[position : end + 1] if end > position + 2 and line[end - 1] == ":" else ""


def _expression(glob: str) -> str:
    """A glob for one name as a regular expression."""
    pieces, position = Pieces(), 0
    while position < len(glob):
        letter = glob[position]
        if letter == "*":
            pieces.star()
        elif letter == "?":
            pieces.single("[^/]")
        elif letter == "[":
            end = _class_end(glob, position)
            pieces.single(_class(glob[position + 1 : end]))
            position = end
        else:
            position += letter == "\\"
            pieces.single(re.escape(glob[position]))
        position += 1
    return pieces.expression()


def _class(inner: str) -> str:
    negated = inner[0] in "!^"
    written, position = "", int(negated)
    while position < len(inner):
        if named := _named(inner, position):
            if named[2:-2] not in _CLASSES:
                raise ValueError
            written += _CLASSES[named[2:-2]]
            position += len(named)
            continue
        first, position = _letter(inner, position)
        written += _escaped(first)
        if inner[position : position + 1] == "-" and position + 1 < len(inner):
            last, position = _letter(inner, position + 1)
            # A range written backwards holds its first letter only.
            written += f"-{_escaped(last)}" if first <= last else ""
    return f"(?!/)[{'^' if negated else ''}{written}]"


def _letter(inner: str, position: int) -> tuple[str, int]:
    position += inner[position] == "\\" and position + 1 < len(inner)
    return inner[position], position + 1


def _escaped(letter: str) -> str:
    return f"\\U{ord(letter):08x}"


class NameRules:
    """The rules in force in one directory, the strongest first, asked by name."""

    def __init__(self, rules: tuple[IgnoreRule, ...]) -> None:
        self._rules = rules
        globs = {rule.glob for rule in rules}
        self._exact = {glob for glob in globs if not _SPECIAL.search(glob)}
        tails = {glob for glob in globs if glob[0] == "*" and not _SPECIAL.search(glob, 1)}
        self._ends = tuple(glob[1:] for glob in tails)
        rest = {rule.name.pattern for rule in rules if rule.glob not in self._exact | tails}
        self._others = _compiled("|".join(f"(?:{one})" for one in rest)) if rest else None

    def spoken_of(self, names: list[str]) -> set[str]:
        """The names that some rule may match; much faster than checking each."""
        found = self._exact.intersection(names)
        if self._ends:
            ends = self._ends
            found.update([name for name in names if name.endswith(ends)])
        if self._others is not None:
            found.update(filter(self._others.fullmatch, names))
        return found

    def ignores(self, name: str, *, folder: bool) -> bool:
        """The decision of the strongest matching rule."""
        if not self.spoken_of([name]):
            return False
        for rule in self._rules:
            if (folder or not rule.folders_only) and rule.name.fullmatch(name):
                return rule.ignores
        return False


@lru_cache(maxsize=256)
def name_rules(rules: tuple[IgnoreRule, ...]) -> NameRules:
    """One for all directories in which the same rules are in force."""
    return NameRules(rules)
