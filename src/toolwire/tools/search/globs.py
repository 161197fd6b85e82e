"""Glob patterns as gemini-cli's users write them: `**`, braces, classes and `!(…)` groups."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, product

from toolwire.tools.search.patterns import (
    ANY_FOLDERS,
    NEVER,
    Automaton,
    TooComplex,
    folders,
    grouped,
    has_groups,
    segment,
)

MOST_CHOICES = 4096
"""Patterns that one with braces may become; one with more stays as it is."""
_MOST_LETTERS = 1 << 16
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")


class _TooMany(Exception):
    """More choices than are spelled out."""


def braces(pattern: str) -> list[str]:
    """Every pattern that the braces spell; unmatched braces stay."""
    if "{" not in pattern:
        return [pattern]
    try:
        return _Spelling(pattern).choices(0, len(pattern))
    except (_TooMany, RecursionError):
        return [pattern]


class _Spelling:
    """One pattern with its pairs of braces found beforehand, in one pass."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._ends: dict[int, int] = {}
        self._commas: dict[int, list[int]] = {}
        opened: list[int] = []
        for position, letter in enumerate(pattern):
            if letter == "{":
                opened.append(position)
                self._commas[position] = []
            elif letter == "," and opened:
                self._commas[opened[-1]].append(position)
            elif letter == "}" and opened:
                self._ends[opened.pop()] = position

    def choices(self, start: int, end: int) -> list[str]:
        """What a part of the pattern spells."""
        pieces: list[list[str]] = []
        position = start
        while (opening := self._pattern.find("{", position, end)) >= 0:
            found = self._between(opening, end)
            close = self._ends[opening] + 1 if found else opening + 1
            pieces += [[self._pattern[position:opening]], found or ["{"]]
            position = close
        pieces.append([self._pattern[position:end]])
        return _joined(pieces)

    def _between(self, opening: int, end: int) -> list[str]:
        """The choices of one pair; none if the brace is literal."""
        close = self._ends.get(opening, end)
        if close >= end or self._pattern[max(opening - 1, 0)] == "\\":
            return []
        commas = self._commas[opening]
        if not commas:
            return _numbers(self._pattern[opening + 1 : close])
        borders = [opening, *commas, close]
        found: list[str] = []
        for before, after in pairwise(borders):
            found += self.choices(before + 1, after)
            if len(found) > MOST_CHOICES:
                raise _TooMany
        return found


def _joined(pieces: list[list[str]]) -> list[str]:
    count = letters = 1
    for piece in pieces:
        count *= len(piece)
        letters += max(map(len, piece))
        if count > MOST_CHOICES or (count > 1 and count * letters > _MOST_LETTERS):
            raise _TooMany
    return ["".join(one) for one in product(*pieces)]


def _numbers(text: str) -> list[str]:
    found = _RANGE.fullmatch(text)
    if not found:
        return []
    first, last = int(found[1]), int(found[2])
    if abs(last - first) >= MOST_CHOICES:
        return []
    step = 1 if last >= first else -1
    return [str(number) for number in range(first, last + step, step)]


LONGEST = 1 << 16
"""Letters of all patterns together, braces spelled out."""


class Globs:
    """Several patterns at once, matched against paths with `/` below one directory."""

    def __init__(
        self, patterns: Iterable[str], *, literal: Iterable[str] = (), ignore_case: bool = True
    ) -> None:
        self._flags = flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        routes = [_segments(one) for one in _spelled(patterns)]
        routes += [[_quoted(part) for part in _parts(path)] for path in literal]
        routes = [route for route in routes if route and ".." not in route]
        self._routes = [_steps(route, ignore_case=ignore_case) for route in routes]
        plain = [route for route in routes if not any(map(has_groups, route))]
        self._whole = re.compile("|".join(map(_whole, plain)) or NEVER, flags)
        self._ends = [(_where(route, flags), _last(route)) for route in plain]
        self._grouped = [
            grouped(route, ignore_case=ignore_case)
            for route in routes
            if any(map(has_groups, route))
        ]
        self._names: dict[tuple[str, ...], _Names] = {}

    def matches(self, path: str) -> bool:
        """Whether a file at this path is meant."""
        if self._whole.fullmatch(path) is not None:
            return True
        return any(one.fullmatch(path) for one in self._grouped)

    def among(self, folder: str, names: list[str]) -> list[str]:
        """The names of files that are meant in a directory, given with a slash at its end."""
        if self._grouped:
            # A group may hold a slash, and then fits no single name.
            return [name for name in names if self.matches(folder + name)]
        ends = tuple(end for where, end in self._ends if where is None or where.fullmatch(folder))
        known = self._names.get(ends)
        if known is None:
            known = self._names[ends] = _Names(ends, self._flags)
        return known.among(names)

    @property
    def everywhere(self) -> bool:
        """Files may be meant below any directory."""
        return any(route[0] == ANY_FOLDERS for route in self._routes)

    def enters(self, parts: Sequence[str]) -> bool:
        """Whether something below this directory may be meant."""
        return any(_enters(route, parts) for route in self._routes)


def complaint(patterns: Iterable[str]) -> str:
    """Why patterns cannot be used; empty if they can."""
    try:
        Globs(patterns)
    except TooComplex as error:
        return str(error)
    return ""


def _spelled(patterns: Iterable[str]) -> list[str]:
    """Every pattern without braces; TooComplex if all of them are too much."""
    found: list[str] = []
    left = LONGEST
    for pattern in patterns:
        spelled = [pattern] if len(pattern) > left else braces(pattern)
        left -= sum(len(one) + 1 for one in spelled)
        if left < 0:
            raise TooComplex(f"the glob patterns are longer than {LONGEST} characters")
        found += spelled
    return found


def _quoted(name: str) -> str:
    """A name as a pattern for itself."""
    return re.sub(r"([^\w.-])", r"\\\1", name)


def _steps(route: list[str], *, ignore_case: bool) -> "list[str | re.Pattern[str] | Automaton]":
    """One matcher for each directory; what a group with a slash means may be anywhere."""
    steps: list[str | re.Pattern[str] | Automaton] = []
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    for part in route:
        if part == ANY_FOLDERS or "/" in part:
            return [*steps, ANY_FOLDERS]
        if has_groups(part):
            steps.append(grouped([part], ignore_case=ignore_case))
        else:
            steps.append(re.compile(segment(part), flags))
    return steps


class _Names:
    """Expressions for one name, any of which may fit."""

    def __init__(self, ends: tuple[str, ...], flags: int) -> None:
        self._expression = re.compile("|".join(ends) or r"(?!)", flags)
        self._ignore_case = bool(flags & re.IGNORECASE)
        tails = [_tail(end) for end in ends]
        self._tails = tuple(tail.lower() if self._ignore_case else tail for tail in tails if tail)
        self._only_tails = bool(tails) and all(tails)

    def among(self, names: list[str]) -> list[str]:
        if not self._only_tails:
            return list(filter(self._expression.fullmatch, names))
        tails = self._tails
        if not self._ignore_case:
            return [name for name in names if name.endswith(tails)]
        joined = "/".join(names)
        if not joined.isascii():
            # Some letters are the same as a plain one to an expression, but not in lower case.
            return list(filter(self._expression.fullmatch, names))
        small = joined.lower().split("/")
        return [name for name, low in zip(names, small, strict=False) if low.endswith(tails)]


def _tail(end: str) -> str:
    """The letters of an expression for `*` and plain letters; empty for any other."""
    found = re.fullmatch(r"\(\?:\[\^/\]\*((?:\w|\\\.|\\-)+)\)", end, re.ASCII)
    return found[1].replace("\\", "") if found else ""


def _enters(route: "list[str | re.Pattern[str] | Automaton]", parts: Sequence[str]) -> bool:
    for position, part in enumerate(parts):
        if position >= len(route) - 1 and route[-1] != ANY_FOLDERS:
            return False
        step = route[min(position, len(route) - 1)]
        if isinstance(step, str):
            return True
        if not step.fullmatch(part):
            return False
    return True


def _parts(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part not in ("", ".")]


def _segments(pattern: str) -> list[str]:
    if pattern.endswith("/"):
        # Only directories end in a slash, and directories are never listed.
        return []
    route: list[str] = []
    for part in _split(pattern):
        if part == ANY_FOLDERS:
            if not route or route[-1] != ANY_FOLDERS:
                route.append(ANY_FOLDERS)
        elif part == "..":
            if not route or route[-1] == ANY_FOLDERS:
                return [".."]
            route.pop()
        else:
            route.append(part)
    return route


def _split(pattern: str) -> list[str]:
    """Cut at slashes, but for those inside a group."""
    parts, depth, start = [""], 0, 0
    for position, letter in enumerate(pattern):
        if letter == "(" and position and pattern[position - 1] in "!?+*@":
            depth += 1
        elif letter == ")" and depth:
            depth -= 1
        elif letter == "/" and not depth:
            parts[-1] = pattern[start:position]
            parts.append("")
            start = position + 1
    parts[-1] = pattern[start:]
    return [part for part in parts if part not in ("", ".")]


def _whole(route: list[str]) -> str:
    return _folders(route) + _last(route)


def _folders(route: list[str]) -> str:
    """The directories of a route: a pattern that ends in `**` means any depth."""
    above = route if route[-1] == ANY_FOLDERS else route[:-1]
    return folders([None if part == ANY_FOLDERS else segment(part) for part in above])


def _where(route: list[str], flags: int) -> re.Pattern[str] | None:
    """None if its files may be in any directory."""
    anywhere = route[0] == ANY_FOLDERS and len(route) <= 2
    return None if anywhere else re.compile(_folders(route), flags)


def _last(route: list[str]) -> str:
    return "[^/]+" if route[-1] == ANY_FOLDERS else f"(?:{segment(route[-1])})"
