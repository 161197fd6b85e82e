"""Finds printed calls in streamed text; passes other text on unchanged."""

import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from toolwire.events import Notice
from toolwire.prompted.leaked.cursor import Cursor, Format, NotACall, Spelled
from toolwire.prompted.leaked.gate import FittedCall, Gate, RefusedCall

_token = re.compile(r"`{1,64}|~{1,64}|\n").search
_last_run = re.compile(r"(?:`+|~+)\Z").search
_LONGEST_RUN = 64
_MOST_INDENT = 3


class Code:
    """Tracks whether the text is inside a code fence or backticks."""

    def __init__(self) -> None:
        self._fence = ""
        self._ticks = ""
        self._indent = 0
        """Blanks since the start of the line; above the maximum, other text came first."""
        self._pending = ""
        """A run of marks at the end, which may continue."""

    @property
    def inside(self) -> bool:
        """Whether following text is code, unless a run of marks continues."""
        if self._pending:
            run, self._pending = self._pending, ""
            self._run(run)
        return bool(self._fence or self._ticks)

    def opens_fence(self, run: str) -> bool:
        """Whether a run of backticks here would open a fence."""
        return not self.inside and len(run) >= 3 and self._indent <= _MOST_INDENT

    def feed(self, text: str) -> None:
        """Process text that was passed on."""
        text = self._pending + text
        self._pending = ""
        if (open_run := _last_run(text)) is not None:
            whole = (len(open_run[0]) // _LONGEST_RUN) * _LONGEST_RUN
            cut = open_run.start() + whole
            text, self._pending = text[:cut], text[cut:]
        at = 0
        while (found := _token(text, at)) is not None:
            self._plain(text[at : found.start()])
            at = found.end()
            if found[0] == "\n":
                self._ticks = ""
                self._indent = 0
            else:
                self._run(found[0])
        self._plain(text[at:])

    def _plain(self, text: str) -> None:
        if text:
            blank = text.isspace()
            self._indent = self._indent + len(text) if blank else _MOST_INDENT + 1

    def _run(self, run: str) -> None:
        if run[0] == "~" and len(run) < 3:
            self._indent = _MOST_INDENT + 1
            return
        at_line_start = self._indent <= _MOST_INDENT and len(run) >= 3
        if self._fence:
            if at_line_start and run[0] == self._fence[0] and len(run) >= len(self._fence):
                self._fence = ""
        elif at_line_start and not self._ticks:
            self._fence = run
        elif run[0] == "`":
            if not self._ticks:
                self._ticks = run
            elif self._ticks == run:
                self._ticks = ""
        self._indent = _MOST_INDENT + 1


class Taken(msgspec.Struct, frozen=True):
    """Printed calls that were accepted, in place of their text."""

    format: str
    calls: tuple[FittedCall, ...]


Piece: TypeAlias = str | Taken | Notice


class _Attempt:
    """One format's attempt at one position."""

    def __init__(self, form: Format) -> None:
        self.form = form
        self.cursor = Cursor()
        self.calls: tuple[Spelled, ...] = ()
        self.failure: NotACall | None = None
        self.done = False
        self._steps = form.read(self.cursor)

    def advance(self) -> None:
        """Reads up to the end of a call, the end of the block, or the end of the text."""
        if self.calls or self.failure is not None or self.done:
            return
        try:
            self.calls = next(self._steps) or ()
        except StopIteration:
            self.done = True
        except NotACall as failure:
            self.failure = failure


class Recogniser:
    """One per text part; holds text only while it may become a call."""

    def __init__(self, formats: Sequence[Format], gate: Gate) -> None:
        self._formats = formats
        self._gate = gate
        self._start = {
            form.openers[0]: [
                other
                for other in formats
                if any(opener.startswith(form.openers[0]) for opener in other.openers)
            ]
            for form in formats
            if form.where == "start"
        }
        openers = [it for form in formats if form.where != "start" for it in form.openers]
        openers.sort(key=len, reverse=True)
        self._find = re.compile("|".join(map(re.escape, openers)) or r"(?!)").search
        self._firsts = re.compile(
            "|".join(sorted({re.escape(it[0]) for it in openers})) or r"(?!)"
        ).finditer
        self._longest = max(map(len, openers), default=1)
        self._beginnings = {it[:end] for it in openers for end in range(1, len(it))}
        self._code = Code()
        self._fresh = True
        """Whether there were only blanks so far."""
        self._held = ""
        self._attempts: list[_Attempt] = []
        self._failure: tuple[NotACall, Format] | None = None
        self._block: list[str] = []
        """Text of the block since its last call."""
        self._settled = 0
        """Characters of the block before that."""
        self._accepted = False
        self._skip_to: tuple[str, ...] | None = None
        """A broken call extends to one of these, or to the end of the text."""
        self._pieces: list[Piece] = []

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are certain so far."""
        while text:
            if self._attempts:
                text = self._inside(text)
            elif self._skip_to is not None:
                text = self._skip(text, self._skip_to)
            else:
                text = self._outside(text)
        return self._take_pieces()

    def end(self, *, whole: bool) -> list[Piece]:
        """The rest; `whole` means that the model stopped by itself, so nothing was truncated."""
        for attempt in self._attempts:
            attempt.cursor.end(whole=whole)
        if self._attempts:
            # The rest of a truncated call is not searched for other calls.
            self._pass(self._settle())
        self._pass(self._held)
        self._held = ""
        return self._take_pieces()

    @property
    def in_broken_call(self) -> bool:
        """Whether the text ended inside a broken or truncated call."""
        return self._skip_to is not None

    def _take_pieces(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _pass(self, text: str) -> None:
        if text:
            self._code.feed(text)
            self._fresh = self._fresh and text.isspace()
            self._pieces.append(text)

    def _outside(self, text: str) -> str:
        text = self._held + text
        self._held = ""
        if self._fresh and self._start:
            bare = text.lstrip()
            self._pass(text[: len(text) - len(bare)])
            text = bare
            if text and text[0] in self._start:
                self._open(self._start[text[0]])
                return text
        at = 0
        while (found := self._find(text, at)) is not None:
            self._pass(text[at : found.start()])
            self._open(self._readers(found[0]))
            if self._attempts:
                return text[found.start() :]
            self._pass(found[0])
            at = found.end()
        cut = len(text) - self._overlap(text, at)
        self._pass(text[at:cut])
        self._held = text[cut:]
        return ""

    def _overlap(self, text: str, at: int) -> int:
        """Length of the longest suffix that may start a call."""
        for begun in self._firsts(text, max(at, len(text) - self._longest + 1)):
            if text[begun.start() :] in self._beginnings:
                return len(text) - begun.start()
        return 0

    def _readers(self, opener: str) -> list[Format]:
        fence = self._code.opens_fence(opener)
        return [
            form
            for form in self._formats
            if opener in form.openers
            and (fence if form.where == "fence" else not self._code.inside)
        ]

    def _open(self, formats: list[Format]) -> None:
        self._attempts = [_Attempt(form) for form in formats]
        self._failure = None
        self._block = []
        self._settled = 0
        self._accepted = False
        self._fresh = self._fresh and not formats

    def _inside(self, text: str) -> str:
        self._block.append(text)
        for attempt in self._attempts:
            attempt.cursor.feed(text)
        return self._settle()

    def _settle(self) -> str:
        """Continues the block; returns the text after its end."""
        while True:
            for attempt in self._attempts:
                attempt.advance()
            self._drop_failed()
            if not self._attempts:
                return self._failed()
            called = [attempt for attempt in self._attempts if attempt.calls]
            if not called:
                ended = next((it for it in self._attempts if it.done), None)
                return self._ended(ended) if ended is not None else ""
            # The first format that reads a complete call wins, independent of chunking.
            winner = min(called, key=lambda it: it.cursor.position)
            self._attempts = [winner]
            self._judge(winner)

    def _drop_failed(self) -> None:
        for attempt in self._attempts:
            if attempt.failure is not None:
                known = self._failure
                if known is None or _rank(attempt.failure) > _rank(known[0]):
                    self._failure = (attempt.failure, attempt.form)
        self._attempts = [it for it in self._attempts if it.failure is None]

    def _judge(self, attempt: _Attempt) -> None:
        text = self._cut(attempt.cursor.position)
        calls, attempt.calls = attempt.calls, ()
        try:
            fitted = tuple(map(self._gate.fit, calls))
        except RefusedCall as refused:
            self._pass(text)
            self._pieces.append(_stays_text(attempt.form, str(refused)))
            return
        self._accepted = True
        self._pieces.append(Taken(attempt.form.name, fitted))

    def _cut(self, position: int) -> str:
        """Removes and returns the block's text up to there."""
        text = "".join(self._block)
        size = position - self._settled
        self._block = [text[size:]]
        self._settled = position
        return text[:size]

    def _ended(self, attempt: _Attempt) -> str:
        closing = self._cut(attempt.cursor.position)
        if not self._accepted:
            self._pass(closing)
        return self._leave()

    def _failed(self) -> str:
        if self._failure is None:
            return self._leave()
        failure, form = self._failure
        self._pass(self._cut(max(failure.position, self._settled, 1)))
        if failure.sure or not form.quiet:
            self._pieces.append(_stays_text(form, failure.reason))
        if failure.sure:
            self._skip_to = form.closers
        return self._leave()

    def _leave(self) -> str:
        self._attempts = []
        rest = "".join(self._block)
        self._block = []
        return rest

    def _skip(self, text: str, closers: tuple[str, ...]) -> str:
        text = self._held + text
        self._held = ""
        ends = [at + len(it) for it in closers if (at := text.find(it)) >= 0]
        if ends:
            self._skip_to = None
            self._pass(text[: min(ends)])
            return text[min(ends) :]
        held = max((_overlap(text, 0, it) for it in closers), default=0)
        self._pass(text[: len(text) - held])
        self._held = text[len(text) - held :]
        return ""


def _overlap(text: str, at: int, word: str) -> int:
    for length in range(min(len(word) - 1, len(text) - at), 0, -1):
        if text.endswith(word[:length]):
            return length
    return 0


def _rank(failure: NotACall) -> tuple[bool, int]:
    return failure.sure, failure.position


def _stays_text(form: Format, reason: str) -> Notice:
    return Notice("printed_call_refused", f"text in the {form.name} format stays text: {reason}")
