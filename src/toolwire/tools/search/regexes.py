"""Search patterns: regular expressions in JavaScript's syntax, and the files and lines they fit."""

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from toolwire.tools.spec import ToolFailed
from toolwire.tools.workers import TookTooLong, Worker, WorkerFailed

_ERRORS = (
    ("missing ), unterminated subpattern", "Unterminated group"),
    ("unbalanced parenthesis", "Unmatched ')'"),
    ("unterminated character set", "Unterminated character class"),
    ("nothing to repeat", "Nothing to repeat"),
    ("multiple repeat", "Nothing to repeat"),
    ("bad escape (end of pattern)", "\\ at end of pattern"),
    ("bad character range", "Range out of order in character class"),
    ("min repeat greater than max repeat", "numbers out of order in {} quantifier"),
    ("unknown extension", "Invalid group"),
    ("unexpected end of pattern", "Invalid group"),
    ("bad character in group name", "Invalid capture group name"),
    ("missing group name", "Invalid capture group name"),
    ("redefinition of group name", "Duplicate capture group name"),
    ("unknown group name", "Invalid named reference"),
)


LONGEST = 10_000
"""Letters of a pattern."""
_MOST_WIDE_CLASSES = 50
_WIDE = re.compile(r"[^\x00-\xff]|\\[uUN]")
# Without quantifiers, groups and classes there is one way to fit each alternative.
_PLAIN = re.compile(r"(?:[^\\*+?{}()\[\]]|\\[^\w]|\\[bBdDsStwW])*+")
_LONGEST_PLAIN = 200
# The same with classes, and quantifiers behind single letters and classes.
_FLAT_PIECE = re.compile(
    r"(?:[^\\*+?{}()\[\]]|\\[^\w]|\\[bBdDsStwW]|\[\^?(?:[^\\\[\]]|\\[^\w]|\\[dDsStwW])++\])"
    r"((?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??)?"
)
_FLAT = re.compile(f"(?:{_FLAT_PIECE.pattern})*+")


class BadPattern(ValueError):
    """Not a regular expression; the message is gemini-cli's."""


def check(pattern: str) -> None:
    """Raise BadPattern if it is not a pattern or a very large one."""
    wide = pattern.count("[") > _MOST_WIDE_CLASSES and _WIDE.search(pattern)
    if wide or len(pattern) > LONGEST:
        raise BadPattern(f"Invalid regular expression: /{pattern[:200]}/: too large")
    # Folding the case of large classes is what takes long.
    _compiled(pattern, re.MULTILINE)


def is_plain(pattern: str) -> bool:
    """Whether a line is tried at a cost of pattern times line."""
    return len(pattern) <= _LONGEST_PLAIN and _PLAIN.fullmatch(pattern) is not None


def most_repeats(pattern: str) -> int:
    """How many single letters or classes are repeated; -1 for a pattern that has more than these.

    Trying it on a line then takes at most as many steps as its own length times that of the line
    to the power of one more than this.
    """
    if len(pattern) > _LONGEST_PLAIN or not _FLAT.fullmatch(pattern):
        return -1
    return sum(1 for piece in _FLAT_PIECE.finditer(pattern) if piece[1])


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern for single lines, without regard to case."""
    return _compiled(pattern, re.IGNORECASE | re.MULTILINE)


def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(translated(pattern), flags)
    except re.error as error:
        why = next((theirs for ours, theirs in _ERRORS if error.msg.startswith(ours)), error.msg)
        raise BadPattern(f"Invalid regular expression: /{pattern}/: {why}") from error
    except (OverflowError, RecursionError) as error:
        raise BadPattern(f"Invalid regular expression: /{pattern}/: too large") from error


def translated(pattern: str) -> str:
    """The pattern in Python's syntax."""
    pattern = re.sub(r"(?<!\\)\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)
    pattern = re.sub(r"\\k<([A-Za-z_]\w*)>", r"(?P=\1)", pattern)
    # Letters that JavaScript takes for themselves after a backslash, and Python does not know.
    return re.sub(r"\\(.)", _escape, pattern, flags=re.DOTALL)


def _escape(found: re.Match[str]) -> str:
    letter = found[1]
    return letter if letter.isalpha() and letter not in "abBdDfnrsStuUvwWx" else found[0]


_QUANTITY = re.compile(r"\{\d*(?:,\d*)?\}")
# Flags and comments, and escapes that change the letters after them.
_UNCLEAR = re.compile(r"\(\?[aiLmsux#-]|\\[0-9NUkux]")


def literals(pattern: str) -> list[str]:
    """Small plain letters, some of which every line that fits has, in any case.

    None if unknown: the pattern is only read as far as that is safe.
    """
    if _UNCLEAR.search(pattern):
        return []
    longest = [max(_runs(choice), key=len, default="") for choice in _choices(pattern)]
    return [run.lower() for run in longest] if all(longest) else []


def _choices(pattern: str) -> list[list[str]]:
    """Each alternative, cut into letters, escapes, classes, groups and signs."""
    choices: list[list[str]] = [[]]
    position = 0
    while position < len(pattern):
        end = _piece_end(pattern, position)
        if pattern[position] == "|":
            choices.append([])
        else:
            choices[-1].append(pattern[position:end])
        position = end
    return choices


def _piece_end(pattern: str, position: int) -> int:
    letter = pattern[position]
    if letter == "\\":
        return position + 2
    if letter == "[":
        end = position + 2 + (pattern[position + 1 : position + 2] == "^")
        while end < len(pattern) and pattern[end] != "]":
            end += 1 + (pattern[end] == "\\")
        return end + 1
    if letter == "(":
        end = position + 1
        while end < len(pattern) and pattern[end] != ")":
            end = _piece_end(pattern, end)
        return end + 1
    quantity = _QUANTITY.match(pattern, position)
    return quantity.end() if quantity else position + 1


def _runs(pieces: list[str]) -> list[str]:
    """Letters that are adjacent in every match."""
    runs = [""]
    for piece in pieces:
        plain = piece[1:] if piece[0] == "\\" and not piece[1:].isalnum() else piece
        if len(plain) == 1 and plain.isascii() and (len(piece) == 2 or plain not in "^$.*+?{[("):
            runs[-1] += plain
            continue
        if piece[0] in "*?{":
            # The letter before may be missing.
            runs[-1] = runs[-1][:-1]
        runs.append("")
    return runs


SECONDS = 60
"""For all lines of one search together."""
WIDE = (b"\xff\xfe", b"\xfe\xff")
# Letters that others beyond ASCII count as capitals of: ı, İ, K, ſ.
_SHARED = re.compile("[iks]")
_LETTERS = re.compile("[a-z]+")
_LARGEST_HERE = 1 << 20
_MOST_STEPS = 1_000_000
"""Steps of the engine that one text may take in this process; a tenth of a second at most."""
_ALL_STEPS = 20 * _MOST_STEPS


class Sieve:
    """A pattern, and the letters without which no line matches it.

    The engine cannot be stopped: a pattern that may take many steps on a text is tried in a
    process of its own.
    """

    def __init__(self, pattern: str, stopped: Callable[[], bool], seconds: float = SECONDS) -> None:
        # A look ahead or behind may see the next line, so such patterns are tried by line only.
        self._whole = "(?" not in pattern and not re.search(r"\\[AZbB]", pattern)
        self._repeats = 0 if is_plain(pattern) else most_repeats(pattern)
        self._expression = compiled(pattern) if self._repeats >= 0 else None
        self._length, self._steps = len(pattern), _ALL_STEPS
        self._seconds = seconds
        self._worker = Worker(
            *("lines", translated(pattern), "whole" if self._whole else ""),
            seconds=seconds,
            stopped=stopped,
        )
        strong = literals(pattern)
        weak = [max(_SHARED.split(one), key=len) for one in strong]
        self._strong = [one.encode() for one in strong]
        self._weak = [one.encode() for one in weak] if all(weak) else []
        signs = [max(_LETTERS.split(one), key=len) for one in strong]
        self._signs = [one.encode() for one in signs] if all(signs) else []
        self._capitals = [bytes((one,)) for one in set("".join(strong).upper().encode())]
        self._capitals = [one for one in self._capitals if one.isalpha()]

    def __enter__(self) -> "Sieve":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.close()

    def may_fit(self, data: bytes) -> bool:
        """Whether a file may have a line that fits."""
        letters = self._strong
        if letters != self._weak and not data.isascii():
            letters = self._weak
        if not letters or data.startswith(WIDE):
            return True
        if self._signs and not _any_in(self._signs, data):
            # Signs and digits have no capitals, and are quickly found.
            return False
        # So are single capitals, and most files lack some; to make all letters small takes longer.
        return _any_in(letters, data.lower() if _any_in(self._capitals, data) else data)

    def lines(self, text: str) -> Iterator[tuple[int, str]]:
        """The lines that fit, with their numbers from 1; ToolFailed if that takes too long."""
        if self._strong and text.isascii():
            lines = list(self._lines_with_letters(text))
            fits = self._fits("\n".join(line for _, line in lines)) if lines else ()
            yield from (lines[number] for number in fits)
        elif fits := self._fits(text):
            every = text.split("\n")
            yield from ((number + 1, every[number]) for number in fits)

    def _fits(self, text: str) -> Sequence[int]:
        """Numbers of lines, from 0."""
        expression = self._expression
        if expression is None or len(text) > _LARGEST_HERE:
            return self._by_worker(text)
        lines = text.split("\n")
        whole = self._whole
        if self._repeats:
            steps = sum(map(self._most_steps, lines))
            if steps > min(_MOST_STEPS, self._steps):
                return self._by_worker(text)
            self._steps -= steps
            whole = False
        if whole and not expression.search(text.replace("\r\n", "\n")):
            return ()
        return [
            number
            for number, line in enumerate(lines)
            if expression.search(line.removesuffix("\r"))
        ]

    def _most_steps(self, line: str) -> int:
        return self._length * (len(line) + 1) ** (self._repeats + 1)

    def _by_worker(self, text: str) -> tuple[int, ...]:
        try:
            numbers = self._worker.ask(text.encode("utf-8", "surrogatepass"))
        except TookTooLong as error:
            raise ToolFailed(
                f"The search took longer than {self._seconds:g} s and was stopped. Use a simpler "
                "pattern without nested quantifiers, or search a smaller folder.",
                type="search_timeout",
            ) from error
        except WorkerFailed as error:
            raise ToolFailed(f"The search failed: {error}", type="grep_execution_error") from error
        return struct.unpack(f">{len(numbers) // 8}Q", numbers)

    def _lines_with_letters(self, text: str) -> Iterator[tuple[int, str]]:
        small = text.lower().encode()
        number, counted, position = 1, 0, 0
        while (hit := _first(small, self._strong, position)) >= 0:
            start = small.rfind(b"\n", 0, hit) + 1
            end = small.find(b"\n", hit)
            end = len(small) if end < 0 else end
            number += small.count(b"\n", counted, start)
            counted, position = start, end + 1
            yield number, text[start:end]


def _any_in(letters: list[bytes], data: bytes) -> bool:
    for one in letters:  # noqa: SIM110 - any() takes twice as long here
        if one in data:
            return True
    return False


def _first(data: bytes, letters: list[bytes], start: int = 0) -> int:
    """Where the first of any of the letters is; -1 if there are none."""
    end, best = len(data), -1
    for one in letters:
        found = data.find(one, start, end)
        if found >= 0:
            best, end = found, found + len(one)
    return best
