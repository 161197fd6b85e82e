"""Quotes and escapes of the shell, undone."""

import re

_ANSI = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_BARE_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
_STRING_ESCAPE = re.compile(r"\\([$`\"\\\n])")
_BACKTICK_ESCAPE = re.compile(r"\\([$`\\])")
_BACKTICK_ESCAPE_IN_STRING = re.compile(r"\\([$`\\\"])")
_GLOB = re.compile(r"\\.|([*?\[])", re.DOTALL)


def bare(text: str) -> str:
    """An unquoted word's text: backslashes taken away, continued lines joined."""
    return _BARE_ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def in_double_quotes(text: str) -> str:
    """The text between double quotes, its escapes undone."""
    return _STRING_ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def in_backticks(text: str, *, within_string: bool) -> str:
    """The command text between backticks, as the shell reads it the second time."""
    escape = _BACKTICK_ESCAPE_IN_STRING if within_string else _BACKTICK_ESCAPE
    return escape.sub(lambda found: found[1], text)


def ansi_c(text: str) -> str | None:
    """The text between `$'` and `'`; None if an escape is not one we are sure of."""
    doubtful = False

    def one(found: re.Match[str]) -> str:
        nonlocal doubtful
        code = found[1] or found[2] or found[3]
        if code:
            number = int(code, 16)
        elif found[4]:
            number = int(found[4], 8)
        elif found[5] in _ANSI:
            return _ANSI[found[5]]
        else:
            number = 0
        # Bytes above ASCII are pieces of characters, and NUL ends the string: neither is decided.
        if not 0 < number < 128:
            doubtful = True
            return ""
        return chr(number)

    value = _ANSI_ESCAPE.sub(one, text)
    return None if doubtful else value


def has_glob(text: str) -> bool:
    """Whether an unquoted text has `*`, `?` or `[` that no backslash takes the meaning of."""
    return any(found[1] for found in _GLOB.finditer(text))


def has_braces(text: str) -> bool:
    """Whether a word's unquoted text may be a brace expansion."""
    stripped = re.sub(r"\\.", "", text, flags=re.DOTALL)
    return "{" in stripped and ("," in stripped or ".." in stripped)
