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


class BadPattern(ValueError):
    """No regular expression; the text says why in the original's words."""


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern for single lines, without regard to case."""
    try:
        return re.compile(_translated(pattern), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        why = next((theirs for ours, theirs in _ERRORS if error.msg.startswith(ours)), error.msg)
        raise BadPattern(f"Invalid regular expression: /{pattern}/: {why}") from error
    except (OverflowError, RecursionError) as error:
        raise BadPattern(f"Invalid regular expression: /{pattern}/: too large") from error


def _translated(pattern: str) -> str:
    pattern = re.sub(r"(?<!\\)\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)
    pattern = re.sub(r"\\k<([A-Za-z_]\w*)>", r"(?P=\1)", pattern)
    # Letters that JavaScript takes for themselves after a backslash, and Python does not know.
    return re.sub(r"\\(.)", _escape, pattern, flags=re.DOTALL)


def _escape(found: re.Match[str]) -> str:
    letter = found[1]
    return letter if letter.isalpha() and letter not in "abBdDfnrsStuUvwWx" else found[0]
