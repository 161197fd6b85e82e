"""Wildcards as regular expressions that never try one position twice.

Python's engine backtracks: `*a*b*c` written as `.*a.*b.*c` costs a power of the text's length. The
first fit of each piece between two stars is as good as any later one, so all but the last star are
atomic and the cost is pattern times text.
"""

import re
from collections.abc import Sequence

LONGEST_NAME = 1024
"""No file system has longer names."""
NEVER = "(?!)"
_FOLDER = "(?:[^/]+/)"


class Pieces:
    """One name: fixed runs of single-character expressions with stars between them."""

    def __init__(self) -> None:
        self._runs = [""]
        self._shortest = 0

    def star(self) -> None:
        """Any text without a slash."""
        if len(self._runs) == 1 or self._runs[-1]:
            self._runs.append("")

    def single(self, expression: str) -> None:
        """An expression that takes exactly one character."""
        self._runs[-1] += expression
        self._shortest += 1

    def expression(self) -> str:
        """The whole name, to be followed by a slash or the end of the text."""
        first, *rest = self._runs
        if self._shortest > LONGEST_NAME:
            return NEVER
        if not rest:
            return first
        between = "".join(f"(?>[^/]*?{run})" for run in rest[:-1])
        return f"{first}{between}[^/]*{rest[-1]}"


def folders(names: Sequence[str | None]) -> str:
    """Directories, each with a slash at its end; None means any number of them."""
    groups: list[list[str]] = [[]]
    for name in names:
        if name is None:
            groups.append([])
        else:
            groups[-1].append(f"{name}/")
    first, *rest = map("".join, groups)
    if not rest:
        return first
    between = "".join(f"(?>{_FOLDER}*?{group})" for group in rest[:-1] if group)
    return f"{first}{between}{_FOLDER}*{rest[-1]}"


def any_text(pattern: str) -> str:
    """A name in which only `*` and `?` are special."""
    pieces = Pieces()
    for letter in pattern:
        if letter == "*":
            pieces.star()
        else:
            pieces.single("[^/]" if letter == "?" else re.escape(letter))
    return pieces.expression()
