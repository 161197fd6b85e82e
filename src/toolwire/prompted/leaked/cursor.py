"""Incremental reading of a call's text, in steps that wait for more."""

import re
from collections.abc import Callable, Generator
from typing import Literal, TypeAlias, TypeVar

import msgspec

from toolwire.wire.partial import BracketScanner, JsonValue

LONGEST_NAME = 200
MOST_BLANKS = 200
"""Blanks allowed between two pieces of markup."""

_blanks = re.compile(r"\s*").match
_name = re.compile(r"[\w.:/@-]*").match


class Field(msgspec.Struct, frozen=True):
    """One argument as written between tags."""

    name: str
    text: str
    kind: str = ""
    """`text` or `json` if the format specifies it; else the tool's schema decides."""


class Spelled(msgspec.Struct, frozen=True):
    """A call as printed, not yet checked."""

    name: str
    arguments: str = "{}"
    """Raw JSON text; not used when there are fields."""
    fields: tuple[Field, ...] | None = None


class NotACall(Exception):
    """The text is not a call in this format."""

    def __init__(self, reason: str, position: int, *, sure: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.sure = sure
        """Whether a call had started: its content must not be parsed as other calls."""


T = TypeVar("T")
Steps: TypeAlias = Generator[tuple[Spelled, ...] | None, None, T]
"""Yields None to wait for more text, or calls whose end was just read."""


class Cursor:
    """A position in growing text; stores only what the next step needs."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._before = 0
        self._over = False
        self._whole = False
        self.sure = False
        """Set once a call has certainly started."""

    @property
    def position(self) -> int:
        """Characters consumed so far."""
        return self._before + self._at

    def feed(self, text: str) -> None:
        """Add text."""
        self._before += self._at
        self._text = self._text[self._at :] + text
        self._at = 0

    def end(self, *, whole: bool) -> None:
        """End the text; `whole` means that the model stopped by itself."""
        self._over = True
        self._whole = whole

    def fail(self, reason: str) -> NotACall:
        """The error to raise here."""
        return NotACall(reason, self.position, sure=self.sure)

    def ahead(self, *literals: str) -> Steps[str]:
        """Consumes the next literal and blanks before it; returns "" and consumes nothing if none
        follows.
        """
        longest = max(map(len, literals))
        while True:
            start = self._after_blanks()
            tail = self._text[start : start + longest]
            wait = not tail and start - self._at < MOST_BLANKS
            for literal in literals:
                if tail.startswith(literal):
                    self._at = start + len(literal)
                    return literal
                if tail and literal.startswith(tail) and not self._over:
                    wait = True
                    break
            if self._over or not wait:
                return ""
            yield None

    def expect(self, *literals: str) -> Steps[str]:
        """Consumes one of the literals, which must follow."""
        found = yield from self.ahead(*literals)
        if not found:
            raise self.fail(f"expected {' or '.join(literals)}")
        return found

    def expect_or_end(self, *literals: str) -> Steps[None]:
        """As `expect`, but the model may also stop here."""
        found = yield from self.ahead(*literals)
        if not found and not (self._over and self._whole and not self._rest().strip()):
            raise self.fail(f"expected {' or '.join(literals)}")

    def peek(self) -> Steps[str]:
        """The next non-blank character, not consumed; empty at the end."""
        while True:
            start = self._after_blanks()
            if start < len(self._text):
                return self._text[start]
            if self._over or start - self._at >= MOST_BLANKS:
                return ""
            yield None

    def name(self) -> Steps[str]:
        """A tool's name, blanks before it skipped."""
        if not (yield from self.peek()):
            raise self.fail("expected a name")
        self._at = self._after_blanks()
        while True:
            found = _name(self._text, self._at)
            end = found.end() if found else self._at
            if end < len(self._text) or self._over or end - self._at > LONGEST_NAME:
                break
            yield None
        word = self._text[self._at : end]
        if not 0 < len(word) <= LONGEST_NAME:
            raise self.fail("expected a name")
        self._at = end
        return word

    def until(self, stop: str) -> Steps[str]:
        """The text before `stop`, which is consumed too."""
        parts: list[str] = []
        while True:
            found = self._text.find(stop, self._at)
            if found >= 0:
                parts.append(self._text[self._at : found])
                self._at = found + len(stop)
                return "".join(parts)
            # A possible start of `stop` waits for the rest.
            keep = max(self._at, len(self._text) - len(stop) + 1)
            parts.append(self._text[self._at : keep])
            self._at = keep
            if self._over:
                raise self.fail(f"the text ends before {stop}")
            yield None

    def json(self, keys: frozenset[str] | None = None) -> Steps[str]:
        """The text of a JSON object or array; `keys` are the allowed first members."""
        if (yield from self.peek()) not in ("{", "["):
            raise self.fail("expected JSON")
        self._at = self._after_blanks()
        start = self.position
        value = JsonValue()
        while True:
            end = value.feed(self._text, self._at)
            self._at = len(self._text) if end < 0 else end
            if keys is not None and value.first_key is not None and value.first_key not in keys:
                raise NotACall("expected a call", start, sure=self.sure)
            if value.broken:
                raise NotACall("its JSON is broken", start, sure=self.sure)
            if end >= 0:
                return value.text
            if self._over:
                raise self.fail("the text ends inside its JSON")
            yield None

    def brackets(self, taken: str = "") -> Steps[str]:
        """A Python list, up to its closing bracket; `taken` is its start."""
        if not taken:
            if (yield from self.peek()) != "[":
                raise self.fail("expected [")
            self._at = self._after_blanks()
        scan = BracketScanner(python=True)
        scan.feed(taken)
        while True:
            end = scan.feed(self._text, self._at)
            self._at = len(self._text) if end < 0 else end
            if end >= 0:
                return scan.text
            if self._over:
                raise self.fail("the text ends inside its list")
            yield None

    def _after_blanks(self) -> int:
        found = _blanks(self._text, self._at, self._at + MOST_BLANKS)
        return found.end() if found else self._at

    def _rest(self) -> str:
        return self._text[self._at :]


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """A format in which models print calls."""

    name: str
    models: str
    """The models that use it."""
    openers: tuple[str, ...]
    """Text that starts a call; the reader begins there."""
    read: Callable[[Cursor], Steps[None]]
    closers: tuple[str, ...] = ()
    """Text that ends a broken call; without any, the rest of the text belongs to it."""
    where: Literal["anywhere", "start", "fence"] = "anywhere"
    """Whether it occurs only at the start of the text, or at a line that opens a code fence;
    one-character openers for the former.
    """
    quiet: bool = False
    """Whether ordinary text starts alike, so that a mismatch needs no notice."""
