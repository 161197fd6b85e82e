"""Regular expressions as a model writes them, which is JavaScript's way."""

import re

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
    place = 0
    while place < len(pattern):
        end = _piece_end(pattern, place)
        if pattern[place] == "|":
            choices.append([])
        else:
            choices[-1].append(pattern[place:end])
        place = end
    return choices


def _piece_end(pattern: str, place: int) -> int:
    letter = pattern[place]
    if letter == "\\":
        return place + 2
    if letter == "[":
        end = place + 2 + (pattern[place + 1 : place + 2] == "^")
        while end < len(pattern) and pattern[end] != "]":
            end += 1 + (pattern[end] == "\\")
        return end + 1
    if letter == "(":
        end = place + 1
        while end < len(pattern) and pattern[end] != ")":
            end = _piece_end(pattern, end)
        return end + 1
    quantity = _QUANTITY.match(pattern, place)
    return quantity.end() if quantity else place + 1


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
