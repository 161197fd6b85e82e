"""The escapes of `$'…'`."""

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
