"""Reads shell text from left to right, once: blanks, comments, words and their quotes."""

import re
from typing import NoReturn

from toolwire.policy.shell.syntax import Word

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


_BLANK = " \t"
ENDS_WORD = frozenset(" \t\n;&|<>()")
# Bash removes a continued line before it looks at what follows the dollar sign.
_EXPANDS = re.compile(r"[A-Za-z0-9_{(\[@*#?$!-]|\\\n")
_HOME = re.compile(r"\$(?:HOME(?![A-Za-z0-9_])|\{HOME\})")
_ANSI_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)


class Outside(Exception):
    """The text left the grammar."""


def outside(reason: str) -> NoReturn:
    """Leaves the grammar."""
    raise Outside(reason)


class Chars:
    """A word while it is read: its characters, each with whether it was quoted."""

    def __init__(self) -> None:
        self.items: list[tuple[str, bool]] = []
        self.quoted = False
        self.tilde = False

    def add(self, text: str, *, quoted: bool) -> None:
        self.items += [(one, quoted) for one in text]

    def bare(self) -> str:
        """The text with quoted characters replaced, to look for characters with a meaning."""
        return "".join("\0" if quoted else one for one, quoted in self.items)

    def word(self) -> Word:
        text = "".join(one for one, _ in self.items)
        bare = self.bare()
        pattern = ""
        if "*" in bare or "?" in bare:
            pattern = "".join(
                f"\\{one}" if quoted and one and one in "*?\\" else one
                for one, quoted in self.items
            )
        return Word(text, pattern=pattern, tilde=self.tilde, quoted=self.quoted)


class Reader:
    """A position in a text, and the words that start there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at: int = 0
        self.pending: list[tuple[str, bool, int]] = []
        """Here-documents whose body starts at the next line: delimiter, quoted, index."""
        self.bodies: list[str] = []

    def done(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.text)

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self, text: str) -> bool:
        """Skips a text if it comes next."""
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _read_bodies(self) -> None:
        """Reads the here-documents that start after this newline."""
        for delimiter, quoted, index in self.pending:
            lines: list[str] = []
            while True:
                if self.done():
                    outside("a here-document is not closed")
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at = end + 1 if end >= 0 else len(self.text)
                if line == delimiter:
                    break
                if not quoted and any(one in line for one in "$`\\"):
                    outside("a here-document contains expansions")
                lines.append(f"{line}\n")
            self.bodies[index] = "".join(lines)
        self.pending.clear()

    def chars(self, *, expands: bool = True) -> Chars:
        """One word, up to a blank or an operator."""
        chars = Chars()
        if self.peek() == "~":
            self._tilde(chars)
        elif found := _HOME.match(self.text, self.at):
            self._home(chars, found)
        elif found := _HOME.match(self.text, self.at + 1) if self.peek() == '"' else None:
            self.at += 1
            self._home(chars, found, quoted=True)
            self._double(chars)
        while not self.done() and self.peek() not in ENDS_WORD:
            one = self.text[self.at]
            self.at += 1
            match one:
                case "'":
                    self._single(chars)
                case '"':
                    self._double(chars)
                case "\\":
                    self._escape(chars)
                case "`" if expands:
                    outside("it contains a command substitution")
                case "$" if expands:
                    self._dollar(chars)
                case _:
                    chars.add(one, quoted=False)
        rest = "".join(one for one, _ in chars.items)[1:]
        if chars.tilde and rest and not rest.startswith("/"):
            outside("it expands a variable")
        return chars

    def _tilde(self, chars: Chars) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if after and after not in "/ \t\n;&|<>()":
            outside("it names another user's home folder, or the tilde is not plain")
        self.at += 1
        chars.tilde = True
        chars.add("~", quoted=True)

    def _home(self, chars: Chars, found: re.Match[str], *, quoted: bool = False) -> None:
        after = self.text[found.end() : found.end() + 1]
        ends = '/"' if quoted else "/ \t\n;&|<>()"
        if after and after not in ends:
            outside("it expands a variable")
        self.at = found.end()
        chars.tilde = True
        chars.quoted = quoted
        chars.add("~", quoted=True)

    def _single(self, chars: Chars) -> None:
        end = self.text.find("'", self.at)
        if end < 0:
            outside("a quote is not closed")
        self._quoted(chars, self.text[self.at : end])
        self.at = end + 1

    def _quoted(self, chars: Chars, text: str) -> None:
        if "\n" in text and self.pending:
            outside("a quoted word goes on over lines beside a here-document")
        chars.quoted = True
        chars.items.append(("", True))
        chars.add(text, quoted=True)

    def _double(self, chars: Chars) -> None:
        self._quoted(chars, "")
        while True:
            if self.done():
                outside("a quote is not closed")
            one = self.text[self.at]
            self.at += 1
            if one == '"':
                return
            if one == "`":
                outside("it contains a command substitution")
            if one == "$" and _EXPANDS.match(self.text, self.at):
                outside(_expansion(self.text, self.at))
            if one == "\\" and self.peek() and self.peek() in '$`"\\\n':
                one = self.peek().replace("\n", "")
                self.at += 1
                if not one and self.pending:
                    outside("a line goes on beside a here-document")
            self._quoted(chars, one)

    def _escape(self, chars: Chars) -> None:
        if self.done():
            outside("it ends with a backslash")
        one = self.text[self.at]
        self.at += 1
        if one == "\n":
            if self.pending:
                outside("a line goes on beside a here-document")
            return
        self._quoted(chars, one)

    def _dollar(self, chars: Chars) -> None:
        if self.peek() == "'":
            found = _ANSI_QUOTED.match(self.text, self.at)
            value = ansi_c(found[1]) if found else None
            if found is None or value is None:
                outside("it contains an escape that is not read")
            self.at = found.end()
            self._quoted(chars, value)
            return
        if self.peek() == '"':
            outside("it contains a translated string")
        if _EXPANDS.match(self.text, self.at):
            outside(_expansion(self.text, self.at))
        chars.add("$", quoted=True)

    def skip(self, *, newlines: bool) -> None:
        """Skips blanks, continued lines and comments, and newlines if they mean nothing here."""
        while not self.done():
            one = self.text[self.at]
            if one in _BLANK:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                if self.pending:
                    outside("a line goes on beside a here-document")
                self.at += 2
            elif one == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\n;&|()<>"):
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            elif one == "\n" and newlines:
                self.at += 1
                self._read_bodies()
            else:
                return


def _expansion(text: str, at: int) -> str:
    match text[at]:
        case "(":
            return "it contains a command substitution"
        case "[":
            return "it contains arithmetic"
        case _:
            return "it expands a variable"
