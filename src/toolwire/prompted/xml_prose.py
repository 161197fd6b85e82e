"""What stands outside calls: text, code in it, and thinking between tags."""

import re

from toolwire.events import ThinkingEnded
from toolwire.prompted.xml_output import Output
from toolwire.prompted.xml_tokens import Kind, Token

THINK_TAGS = frozenset({"think", "thinking"})
_PIECES = re.compile(r"`+|~+|\n|[^`~\n]+")
_FENCE = 3
_NO_RUN = ("", 0)


class Prose:
    """Follows lines, fences and inline code, and trims each block of text."""

    def __init__(self) -> None:
        self.output = Output()
        self._block = _Block()
        self._think_tag = ""
        self._fence = _NO_RUN
        self._start_line()

    @property
    def may_call(self) -> bool:
        """Whether a tag that comes now stands first in its line, and not in code or thinking."""
        return not (
            self._think_tag or self._fence[1] or self._run[1] or self._first_run[1] or self._said
        )

    def take(self, token: Token) -> None:
        """More prose: text, or a tag that opens no call."""
        if self._think_tag:
            self._think(token)
        elif token.kind is Kind.TEXT:
            self._follow(token.raw)
            self._write(token.raw)
        elif token.kind is Kind.OPEN and token.name in THINK_TAGS and not self._in_code():
            self.end_block()
            self._think_tag = token.name
        else:
            self._end_run()
            self._said = True
            self._write(token.raw)

    def end_block(self) -> None:
        """Something else follows: the spaces before it go."""
        self._block = _Block()
        self._start_line()

    def _think(self, token: Token) -> None:
        if token.kind is not Kind.CLOSE or token.name != self._think_tag:
            self._write(token.raw)
            return
        self._think_tag = ""
        if self._block.begun:
            self.output.add(ThinkingEnded())
        self.end_block()

    def _write(self, text: str) -> None:
        write = self.output.thinking if self._think_tag else self.output.text
        for piece in self._block.trimmed(text):
            write(piece)

    def _in_code(self) -> bool:
        self._end_run()
        return bool(self._fence[1] or self._code)

    def _start_line(self) -> None:
        self._run = _NO_RUN
        self._first_run = _NO_RUN
        self._code = 0
        self._ticks_later = False
        self._said = False

    def _follow(self, text: str) -> None:
        for piece in _PIECES.findall(text):
            if piece == "\n":
                self._end_line()
            elif piece[0] in "`~":
                if self._run[0] != piece[0]:
                    self._end_run()
                self._run = (piece[0], self._run[1] + len(piece))
            else:
                self._end_run()
                self._said = self._said or not piece.isspace()

    def _end_run(self) -> None:
        """A run of backticks or tildes is over: a fence at the start of a line, or inline code."""
        (sign, length), self._run = self._run, _NO_RUN
        if not length:
            return
        if not self._said and not self._first_run[1] and length >= _FENCE:
            self._first_run = (sign, length)
        else:
            self._said = True
            self._ticks_later = self._ticks_later or sign == "`"
        if sign == "`":
            self._code = 0 if self._code == length else self._code or length

    def _end_line(self) -> None:
        self._end_run()
        sign, length = self._first_run
        if not self._fence[1]:
            if length and not (sign == "`" and self._ticks_later):
                self._fence = self._first_run
        elif sign == self._fence[0] and length >= self._fence[1] and not self._said:
            self._fence = _NO_RUN
        self._start_line()


class _Block:
    """Text without the spaces around it."""

    def __init__(self) -> None:
        self.begun = False
        self._spaces: list[str] = []

    def trimmed(self, text: str) -> list[str]:
        """What is certain not to be at an edge."""
        if not self.begun:
            text = text.lstrip()
        body = text.rstrip()
        if not body:
            if text:
                self._spaces.append(text)
            return []
        self.begun = True
        pieces = [*self._spaces, body]
        self._spaces = [text[len(body) :]] if len(text) > len(body) else []
        return pieces
