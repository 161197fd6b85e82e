"""Where in a file the text of an edit is: exactly, or but for white space, and only if unique."""

import difflib
import re
from collections import Counter

import msgspec

_WORDS = re.compile(r"\w+|[^\w\s]")
_NEAR = 0.5
_SHOWN = 60
_MOST_TEXT = 4 << 20
"""Most characters of a file that is searched for the most similar part."""


class Match(msgspec.Struct, frozen=True):
    """A place in a text, and what to put there."""

    start: int
    end: int
    new: str


def find(text: str, old: str, new: str, *, flexible: bool = True) -> list[Match]:
    """Every place of `old` at the first rung where it has any: exact, line ends, indentation.

    Texts have plain newlines. The looser rungs match whole lines.
    """
    exact = [Match(place, place + len(old), new) for place in _places(text, old)]
    if exact or not flexible or not old.strip():
        return exact
    lines = _Lines(text)
    return lines.trimmed(old, new) or lines.indented(old, new)


def _places(text: str, old: str) -> list[int]:
    found: list[int] = []
    place = text.find(old)
    while place >= 0:
        found.append(place)
        place = text.find(old, place + len(old))
    return found


class _Lines:
    """A text by lines, and where each begins."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def trimmed(self, old: str, new: str) -> list[Match]:
        """Lines that differ only in white space at their ends."""
        old, new = _without_last_end(old, new)
        wanted = [line.rstrip() for line in old.split("\n")]
        have = [line.rstrip() for line in self._lines]
        return [self._match(at, len(wanted), new) for at in _runs(have, wanted)]

    def indented(self, old: str, new: str) -> list[Match]:
        """Lines that differ in indentation too; the new ones take that of the place."""
        old, new = _without_last_end(old, new)
        wanted = [line.strip() for line in old.split("\n")]
        have = [line.strip() for line in self._lines]
        written = _margin(old.split("\n")[0])
        return [
            self._match(at, len(wanted), _moved(new, written, _margin(self._lines[at])))
            for at in _runs(have, wanted)
        ]

    def _match(self, at: int, count: int, new: str) -> Match:
        # The newline after the last line stays; the original swallowed it.
        return Match(self._starts[at], self._starts[at + count] - 1, new)


def _without_last_end(old: str, new: str) -> tuple[str, str]:
    if old.endswith("\n") and len(old) > 1:
        return old.removesuffix("\n"), new.removesuffix("\n")
    return old, new


def _runs(have: list[str], wanted: list[str]) -> list[int]:
    """Indices at which the lines occur, without overlaps."""
    found: list[int] = []
    first, count, at = wanted[0], len(wanted), 0
    while at <= len(have) - count:
        if have[at] == first and have[at : at + count] == wanted:
            found.append(at)
            at += count
        else:
            at += 1
    return found


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _moved(new: str, written: str, wanted: str) -> str:
    lines = new.split("\n")
    return "\n".join(
        wanted + line.removeprefix(written) if line.strip() else line for line in lines
    )


def lines_of(text: str, matches: list[Match]) -> list[int]:
    """The line numbers, from 1, where matches begin."""
    return [text.count("\n", 0, match.start) + 1 for match in matches]


def nearest(text: str, old: str) -> str:
    """The part of a text most like `old`, with a diff from one to the other; empty if none is."""
    if len(text) + len(old) > _MOST_TEXT:
        return ""
    wanted = old.strip("\n").split("\n")
    lines = text.split("\n")
    best, at = _closest(lines, wanted)
    if best < _NEAR:
        return ""
    near = lines[at : at + len(wanted)]
    end = at + len(near)
    place = f"line {at + 1}" if len(near) == 1 else f"lines {at + 1}-{end}"
    diff = list(
        difflib.unified_diff(wanted, near, "old_string", f"file, {place}", lineterm="", n=3)
    )
    if len(diff) > _SHOWN:
        diff = [*diff[:_SHOWN], "..."]
    return f"The nearest text in the file is at {place}:\n" + "\n".join(diff)


def _closest(lines: list[str], wanted: list[str]) -> tuple[float, int]:
    """The most similar run of lines: first by words, then by letters."""
    bags = [Counter(_WORDS.findall(line)) for line in lines]
    goal = sum((Counter(_WORDS.findall(line)) for line in wanted), Counter[str]())
    if not goal:
        return 0.0, 0
    count = len(wanted)
    window: Counter[str] = Counter()
    shared = 0
    scores: list[tuple[int, int]] = []
    for number, bag in enumerate(bags):
        shared += _change(window, bag, goal, 1)
        if number >= count:
            shared += _change(window, bags[number - count], goal, -1)
        if number >= count - 1 or number == len(bags) - 1:
            scores.append((shared, max(number - count + 1, 0)))
    likely = sorted(scores, key=lambda score: (-score[0], score[1]))[:5]
    text = "\n".join(wanted)
    return max(
        ((_likeness("\n".join(lines[at : at + count]), text), at) for _, at in likely),
        key=lambda found: (found[0], -found[1]),
    )


def _change(window: Counter[str], bag: Counter[str], goal: Counter[str], sign: int) -> int:
    """Move a line in or out of the window; returns how many more of the words it contains."""
    gained = 0
    for word, times in bag.items():
        limit = goal.get(word, 0)
        if limit:
            before = min(window[word], limit)
            window[word] += sign * times
            gained += min(window[word], limit) - before
    return gained


def _likeness(one: str, other: str) -> float:
    matcher = difflib.SequenceMatcher(None, one[:4000], other[:4000], autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= _NEAR else 0.0
