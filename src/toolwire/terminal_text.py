"""Escapes text of models, tools and servers for a terminal, in linear time."""

import re

# C0 but tab and newline, DEL and C1 · invisible letters and format characters, but the joiners that
# scripts and emoji need · bidirectional marks · half characters · tags.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
# Whatever is not seen in a command, or is a blank other than the usual one.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e01ef]"
)
_SPACES = re.compile(r"[\t\n]+")


class TerminalText:
    """Escapes one stream of text, cut anywhere."""

    def __init__(self) -> None:
        self._return = False
        """Whether the last chunk ended in a carriage return, which may begin a CRLF."""

    def feed(self, text: str) -> str:
        """Returns the text with dangerous characters escaped as in JSON.

        JSON stays the same JSON: a character that is escaped here means itself in a JSON string.
        """
        if not self._return and text.isascii() and text.replace("\n", " ").isprintable():
            return text
        if self._return and text:
            self._return = False
            text = f"\r{text}"
        if "\r" in text:
            if text[-1] == "\r":
                self._return = True
                text = text[:-1]
            text = text.replace("\r\n", "\n")
        return _UNSAFE.sub(_escaped, text)


def terminal_text(text: str) -> str:
    """Escapes a whole text."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def marked_text(text: str) -> str:
    """A text that is decided on: what cannot be seen is shown as `‹U+202E›`."""
    return _UNSEEN.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Escapes a whole text, newlines and tabs as spaces."""
    return _SPACES.sub(" ", terminal_text(text)).strip()


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
