"""Glob patterns as gemini-cli's users write them: `**`, braces, classes and `!(…)` groups."""

import re
from collections.abc import Iterable, Sequence

_ANY_FOLDERS = "**"
_MOST_BRACES = 4096
_CLASSES = {
    "[:alnum:]": r"\w",
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": r"\d",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:space:]": r"\s",
    "[:word:]": r"\w",
    "[:xdigit:]": "0-9a-fA-F",
}


class Globs:
    """Several patterns at once, matched against paths with `/` below one directory."""

    def __init__(
        self, patterns: Iterable[str], *, literal: Iterable[str] = (), ignore_case: bool = True
    ) -> None:
        flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        routes = [_segments(one) for pattern in patterns for one in braces(pattern)]
        routes += [[re.escape(part) for part in _parts(path)] for path in literal]
        routes = [route for route in routes if route and ".." not in route]
        self._flags = flags
        self._routes = [
            [part if part == _ANY_FOLDERS else re.compile(part, flags) for part in route]
            for route in routes
        ]
        self._whole = re.compile("|".join(map(_whole, routes)) or r"(?!)", flags)
        self._ends = [(_where(route, flags), _last(route)) for route in routes]
        # A group may hold a slash, and then fits no single name.
        self._crossing = any("/" in part.replace("[^/]", "") for route in routes for part in route)
        self._names: dict[tuple[str, ...], _Names] = {}

    def matches(self, path: str) -> bool:
        """Whether a file at this path is meant."""
        return self._whole.fullmatch(path) is not None

    def among(self, folder: str, names: list[str]) -> list[str]:
        """The names of files that are meant in a directory, told with a slash at its end."""
        if self._crossing:
            return [name for name in names if self.matches(folder + name)]
        ends = tuple(end for where, end in self._ends if where is None or where.fullmatch(folder))
        known = self._names.get(ends)
        if known is None:
            known = self._names[ends] = _Names(ends, self._flags)
        return known.among(names)

    @property
    def everywhere(self) -> bool:
        """Files may be meant below any directory."""
        return any(route[0] == _ANY_FOLDERS for route in self._routes)

    def enters(self, parts: Sequence[str]) -> bool:
        """Whether something below this directory may be meant."""
        return any(_enters(route, parts) for route in self._routes)


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


def _enters(route: list[str | re.Pattern[str]], parts: Sequence[str]) -> bool:
    for place, part in enumerate(parts):
        if place >= len(route) - 1 and route[-1] != _ANY_FOLDERS:
            return False
        step = route[min(place, len(route) - 1)]
        if isinstance(step, str):
            return True
        if step.fullmatch(part) is None:
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
        if part == _ANY_FOLDERS:
            if not route or route[-1] != _ANY_FOLDERS:
                route.append(_ANY_FOLDERS)
        elif part == "..":
            if not route or route[-1] == _ANY_FOLDERS:
                return [".."]
            route.pop()
        else:
            route.append(segment(part))
    return route


def _split(pattern: str) -> list[str]:
    """Cut at slashes, but for those inside a group."""
    parts, depth, start = [""], 0, 0
    for place, letter in enumerate(pattern):
        if letter == "(" and place and pattern[place - 1] in "!?+*@":
            depth += 1
        elif letter == ")" and depth:
            depth -= 1
        elif letter == "/" and not depth:
            parts[-1] = pattern[start:place]
            parts.append("")
            start = place + 1
    parts[-1] = pattern[start:]
    return [part for part in parts if part not in ("", ".")]


def _whole(route: list[str]) -> str:
    return _folders(route) + _last(route)


def _folders(route: list[str]) -> str:
    """Where the files of a route lie: a pattern that ends in `**` means any depth."""
    above = route if route[-1] == _ANY_FOLDERS else route[:-1]
    return "".join("(?:[^/]+/)*" if part == _ANY_FOLDERS else f"(?:{part})/" for part in above)


def _where(route: list[str], flags: int) -> re.Pattern[str] | None:
    """None if its files lie anywhere."""
    anywhere = route[0] == _ANY_FOLDERS and len(route) <= 2
    return None if anywhere else re.compile(_folders(route), flags)


def _last(route: list[str]) -> str:
    return "[^/]+" if route[-1] == _ANY_FOLDERS else f"(?:{route[-1]})"


def braces(pattern: str) -> list[str]:
    """Every pattern that `{a,b}` and `{1..3}` spell; unmatched braces stay."""
    found = _first_braces(pattern)
    if found is None:
        return [pattern]
    start, end, choices = found
    heads = [pattern[:start] + choice for choice in choices]
    spelled: list[str] = []
    for rest in braces(pattern[end:]):
        spelled += [inner + rest for head in heads for inner in braces(head)]
        if len(spelled) > _MOST_BRACES:
            return [pattern]
    return spelled


def _first_braces(pattern: str) -> tuple[int, int, list[str]] | None:
    start = pattern.find("{")
    while start >= 0:
        if start and pattern[start - 1] == "\\":
            start = pattern.find("{", start + 1)
            continue
        found = _choices(pattern, start)
        if found is not None:
            return start, *found
        start = pattern.find("{", start + 1)
    return None


def _choices(pattern: str, start: int) -> tuple[int, list[str]] | None:
    depth, choices, begin = 0, list[str](), start + 1
    for place in range(start, len(pattern)):
        letter = pattern[place]
        if letter == "{":
            depth += 1
        elif letter == "," and depth == 1:
            choices.append(pattern[begin:place])
            begin = place + 1
        elif letter == "}":
            depth -= 1
            if depth == 0:
                if choices:
                    return place + 1, [*choices, pattern[begin:place]]
                counted = _range(pattern[begin:place])
                return (place + 1, counted) if counted else None
    return None


def _range(text: str) -> list[str]:
    found = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text)
    if not found:
        return []
    first, last = int(found[1]), int(found[2])
    if abs(last - first) >= _MOST_BRACES:
        return []
    step = 1 if last >= first else -1
    return [str(number) for number in range(first, last + step, step)]


def segment(pattern: str) -> str:
    """One part between slashes as a regular expression."""
    written, place = "", 0
    while place < len(pattern):
        letter = pattern[place]
        group = _group(pattern, place)
        if group is not None:
            expression, place = group
            written += expression
            continue
        if letter == "*":
            while place + 1 < len(pattern) and pattern[place + 1] == "*":
                place += 1
            written += "[^/]*"
        elif letter == "?":
            written += "[^/]"
        elif letter == "[":
            expression, place = _class(pattern, place)
            written += expression
            continue
        elif letter == "\\" and place + 1 < len(pattern):
            place += 1
            written += re.escape(pattern[place])
        else:
            written += re.escape(letter)
        place += 1
    return written


def _group(pattern: str, place: int) -> tuple[str, int] | None:
    sign = pattern[place]
    if sign not in "!?+*@" or pattern[place + 1 : place + 2] != "(":
        return None
    depth, begin, choices = 0, place + 2, list[str]()
    for at in range(place + 1, len(pattern)):
        letter = pattern[at]
        if letter == "(":
            depth += 1
        elif letter == "|" and depth == 1:
            choices.append(pattern[begin:at])
            begin = at + 1
        elif letter == ")":
            depth -= 1
            if depth == 0:
                choices.append(pattern[begin:at])
                inner = "|".join(segment(choice) for choice in choices)
                if sign == "!":
                    rest = segment(pattern[at + 1 :])
                    return f"(?!(?:{inner}){rest}(?:/|\\Z))[^/]*", at + 1
                return f"(?:{inner}){'' if sign == '@' else sign}", at + 1
    return None


def _class(pattern: str, place: int) -> tuple[str, int]:
    end = place + 1
    if pattern[end : end + 1] in ("!", "^"):
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        named = next((name for name in _CLASSES if pattern.startswith(name, end)), "")
        end += len(named) or 1
    if end >= len(pattern):
        return re.escape("["), place + 1
    inner = pattern[place + 1 : end]
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    for name, expression in _CLASSES.items():
        inner = inner.replace(name, f"\0{expression}\0")
    pieces = inner.split("\0")
    pieces[::2] = [re.sub(r"([\\\[\]&~|^])", r"\\\1", piece) for piece in pieces[::2]]
    written = f"[{'^/' if negated else ''}{''.join(pieces)}]"
    try:
        re.compile(written)
    except re.error:
        # A range written backwards means nothing that a name could fit.
        written = "(?!)"
    return written, end + 1
