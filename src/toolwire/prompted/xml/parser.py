"""Streaming parser of calls written as tags."""

import re
from collections.abc import Callable, Iterable

import msgspec

from toolwire.events import ModelEvent, Notice, ThinkingEnded
from toolwire.prompted.xml.calls import CallReader
from toolwire.prompted.xml.long import XmlStep
from toolwire.prompted.xml.shape import XmlTool, XmlTools
from toolwire.prompted.xml.tokens import Token, TokenKind, Tokens, XmlOutput
from toolwire.request import AnyTool

THINK_TAGS = frozenset({"think", "thinking"})
_PIECES = re.compile(r"`+|~+|\n|[^`~\n]+")
_FENCE = 3
_NO_RUN = ("", 0)


class Prose:
    """Tracks lines, fences and inline code, and trims each block of text."""

    def __init__(self) -> None:
        self.output = XmlOutput()
        self._block = _Block()
        self._think_tag = ""
        self._fence = _NO_RUN
        self._start_line()

    @property
    def may_call(self) -> bool:
        """Whether a tag at this point starts its line, outside code and thinking."""
        return not (
            self._think_tag or self._fence[1] or self._run[1] or self._first_run[1] or self._in_text
        )

    def take(self, token: Token) -> None:
        """Process prose: text, or a tag that does not open a call."""
        if self._think_tag:
            self._think(token)
        elif token.kind is TokenKind.TEXT:
            self._follow(token.raw)
            self._write(token.raw)
        elif token.kind is TokenKind.OPEN and token.name in THINK_TAGS and not self._in_code():
            self.end_block()
            self._think_tag = token.name
        else:
            self._end_run()
            self._in_text = True
            self._write(token.raw)

    def end_block(self) -> None:
        """End the block; drops its trailing spaces."""
        self._block = _Block()
        self._start_line()

    def _think(self, token: Token) -> None:
        if token.kind is not TokenKind.CLOSE or token.name != self._think_tag:
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
        self._in_text = False

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
                self._in_text = self._in_text or not piece.isspace()

    def _end_run(self) -> None:
        """Ends a run of backticks or tildes: a fence at the start of a line, or inline code."""
        (sign, length), self._run = self._run, _NO_RUN
        if not length:
            return
        if not self._in_text and not self._first_run[1] and length >= _FENCE:
            self._first_run = (sign, length)
        else:
            self._in_text = True
            self._ticks_later = self._ticks_later or sign == "`"
        if sign == "`":
            self._code = 0 if self._code == length else self._code or length

    def _end_line(self) -> None:
        self._end_run()
        sign, length = self._first_run
        if not self._fence[1]:
            if length and not (sign == "`" and self._ticks_later):
                self._fence = self._first_run
        elif sign == self._fence[0] and length >= self._fence[1] and not self._in_text:
            self._fence = _NO_RUN
        self._start_line()


class _Block:
    """Text without the spaces around it."""

    def __init__(self) -> None:
        self.begun = False
        self._spaces: list[str] = []

    def trimmed(self, text: str) -> list[str]:
        """The text that is certainly not at an edge."""
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


class XmlLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Size limits; anything longer ends with a notice."""

    call: int = 8_000_000
    """Characters of one call."""
    message: int = 32_000_000
    """Characters of one answer."""


class XmlParser:
    """One per answer; turns streamed text into the events of a native answer."""

    def __init__(
        self,
        tools: XmlTools | Iterable[AnyTool],
        new_id: Callable[[], str],
        *,
        only: Iterable[str] | None = None,
        single: bool = False,
        limits: XmlLimits | None = None,
    ) -> None:
        self._tools = tools if isinstance(tools, XmlTools) else XmlTools(tools)
        self._tags = frozenset(self._tools.by_tag)
        self._only = None if only is None else frozenset(only)
        self._single = single
        self._limits = limits or XmlLimits()
        self._new_id = new_id
        self._tokens = Tokens()
        self._out = XmlOutput()
        self._prose = Prose()
        self._call: CallReader | None = None
        self._call_size = 0
        self._ended: CallReader | None = None
        self._maybe: list[Token] = []
        self._skipped_tag = ""
        self._size = 0
        self._over = False
        self.calls = 0
        """Number of calls so far."""

    def feed(self, text: str) -> list[ModelEvent]:
        """The events that are certain so far."""
        self._size += len(text)
        if self._size > self._limits.message and not self._over:
            self._stop("too_large", f"an answer of over {self._limits.message} characters")
        if not self._over:
            for token in self._tokens.feed(text):
                self._take(token)
        return self._events()

    def close(self, *, cut: bool = False) -> list[ModelEvent]:
        """End the text; an open call of a `cut` answer is incomplete."""
        if not self._over:
            for token in self._tokens.close():
                self._take(token)
            self._no_call()
            if self._call is not None:
                whole = self._call.finish(cut=cut)
                if not whole and not cut:
                    self._notice("unclosed_call", f"{_label(self._call.tool)} was never closed")
                self._call = None
            self._settle_ended(cut=cut)
        return self._events()

    def _events(self) -> list[ModelEvent]:
        if self._ended is None:
            self._prose.output.move_to(self._out)
        return self._out.take()

    def _take(self, token: Token) -> None:
        if self._over:
            return
        if self._call is not None:
            self._take_in_call(self._call, token)
            return
        if self._ended is not None and self._ended.watch(token):
            # The text after the supposed end belongs to the call.
            self._prose = Prose()
            self._maybe = []
            self._skipped_tag = ""
            return
        self._take_outside(token)

    def _take_in_call(self, call: CallReader, token: Token) -> None:
        self._call_size += len(token.raw)
        if self._call_size > self._limits.call:
            self._stop("too_large", f"a call of over {self._limits.call} characters")
            return
        if call.between and self._is_other_tool(call, token):
            self._notice("unclosed_call", f"{_label(call.tool)} was never closed")
            call.end(complete=False)
            self._call = None
            self._take_outside(token)
            return
        step = call.take(token)
        if step is XmlStep.GOES_ON:
            return
        self._call = None
        self._prose.end_block()
        if call.waits:
            self._ended = call
        if step is XmlStep.CALL_ENDED_BEFORE:
            self._take_outside(token)

    def _is_other_tool(self, call: CallReader, token: Token) -> bool:
        return (
            token.kind is TokenKind.OPEN
            and token.name in self._tags
            and token.name not in call.tool.fields
        )

    def _take_outside(self, token: Token) -> None:
        if self._skipped_tag:
            if token.kind is TokenKind.CLOSE and token.name == self._skipped_tag:
                self._skipped_tag = ""
            self._prose.take(_as_text(token))
        elif self._maybe:
            self._decide(token)
        elif (
            token.kind is TokenKind.OPEN
            and self._prose.may_call
            and self._may_mean_tool(token.name)
        ):
            self._maybe = [token]
        elif token.kind is TokenKind.EMPTY and self._prose.may_call and self._allowed(token.name):
            self._begin(self._tools.by_tag[token.name], [Token(TokenKind.CLOSE, "", token.name)])
        else:
            self._prose.take(token)

    def _allowed(self, tag: str) -> bool:
        return tag in self._tags and (self._only is None or tag in self._only)

    def _may_mean_tool(self, tag: str) -> bool:
        return tag in self._tags or self._tools.near(tag) is not None

    def _decide(self, token: Token) -> None:
        """Decides whether a tool's tag at the start of a line is a call or a mention."""
        opening = self._maybe[0]
        if token.kind is TokenKind.TEXT and token.raw.isspace():
            self._maybe.append(token)
            return
        tool = self._tools.by_tag.get(opening.name)
        if tool is None:
            self._decide_misspelled(opening, token)
        elif token.kind in (TokenKind.OPEN, TokenKind.EMPTY):
            if token.name in self._tags and token.name not in tool.fields:
                self._no_call()
                self._take_outside(token)
            else:
                self._begin(tool, [token])
        elif token.kind is TokenKind.CLOSE and token.name == tool.tag:
            self._begin(tool, [token])
        elif token.kind is TokenKind.TEXT and token.raw.lstrip()[0] == "{" and not tool.freeform:
            self._begin(tool, [Token(TokenKind.TEXT, token.raw.lstrip())], as_json=True)
        else:
            self._no_call()
            self._take_outside(token)

    def _decide_misspelled(self, opening: Token, token: Token) -> None:
        meant = self._tools.near(opening.name)
        known = meant is not None and token.kind is TokenKind.OPEN and token.name in meant.fields
        self._no_call()
        if meant is not None and known:
            message = (
                f'"{opening.name}" is not a tool and was not called; did you mean "{meant.tag}"?'
            )
            self._skip(opening.name, "misspelled_tool", message)
        self._take_outside(token)

    def _no_call(self) -> None:
        """Treats what looked like a call as text."""
        held, self._maybe = self._maybe, []
        for token in held:
            self._prose.take(token)

    def _skip(self, tag: str, kind: str, text: str) -> None:
        # Nothing inside a skipped call may be parsed as a call.
        self._skipped_tag = tag
        self._prose.output.add(Notice(kind, text))

    def _begin(self, tool: XmlTool, tokens: list[Token], *, as_json: bool = False) -> None:
        if not self._allowed(tool.tag):
            self._no_call()
            self._skip(tool.tag, "tool_not_allowed", f"{_label(tool)} may not be called now")
            for token in tokens:
                self._take_outside(token)
            return
        self._settle_ended(cut=False)
        if self._single and self.calls:
            self._stop("extra_call", f"only one call was requested; {_label(tool)} was not called")
            return
        self._maybe = []
        self._prose.end_block()
        self._prose.output.move_to(self._out)
        self._call = CallReader(tool, self._tags, self._out, self._new_id)
        self._call_size = 0
        self.calls += 1
        if as_json:
            self._call.begin_json()
        for token in tokens:
            self._take(token)

    def _settle_ended(self, *, cut: bool) -> None:
        """Finalizes the call that ended before."""
        ended, self._ended = self._ended, None
        if ended is not None:
            ended.finish(cut=cut)
        self._prose.output.move_to(self._out)

    def _stop(self, kind: str, text: str) -> None:
        """Stops reading; an open call stays incomplete."""
        self._settle_ended(cut=False)
        if self._call is not None:
            self._call.end(complete=False)
            self._call = None
        self._over = True
        self._maybe = []
        self._notice(kind, text if kind == "extra_call" else f"{text} was cut off; do less at once")

    def _notice(self, kind: str, text: str) -> None:
        self._out.add(Notice(kind, text))


def _label(tool: XmlTool) -> str:
    return f'"{tool.name}"'


def _as_text(token: Token) -> Token:
    return Token(TokenKind.TEXT, token.raw)
