"""Braces in glob patterns: `{a,b}` and `{1..3}`."""

import re
from itertools import pairwise, product

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
        for place, letter in enumerate(pattern):
            if letter == "{":
                opened.append(place)
                self._commas[place] = []
            elif letter == "," and opened:
                self._commas[opened[-1]].append(place)
            elif letter == "}" and opened:
                self._ends[opened.pop()] = place

    def choices(self, start: int, end: int) -> list[str]:
        """What a part of the pattern spells."""
        pieces: list[list[str]] = []
        place = start
        while (opening := self._pattern.find("{", place, end)) >= 0:
            found = self._between(opening, end)
            close = self._ends[opening] + 1 if found else opening + 1
            pieces += [[self._pattern[place:opening]], found or ["{"]]
            place = close
        pieces.append([self._pattern[place:end]])
        return _joined(pieces)

    def _between(self, opening: int, end: int) -> list[str]:
        """The choices of one pair; none if the brace stands for itself."""
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
