"""Parameters of free text, which may contain anything that looks like a tag.

Such a parameter ends at its last closing tag before the end of the call. Text after a possible
closing tag is held until that is certain; text before it is written at once.
"""

from enum import IntEnum
from typing import NamedTuple, Protocol

from toolwire.prompted.xml.shape import XmlTool
from toolwire.prompted.xml.tokens import Token, TokenKind


class Sink(Protocol):
    """Receives text that certainly belongs to the parameter."""

    def write(self, text: str) -> None:
        """Write text."""
        ...


class XmlStep(IntEnum):
    """Effect of a token."""

    GOES_ON = 0
    CALL_ENDED = 1
    """The probable end of the call."""
    CALL_ENDED_BEFORE = 2
    """The probable end of the call, before the token."""


class _Junction(NamedTuple):
    """A closing tag with nothing but space before the next opening one."""

    closing_at: int
    closed: str
    opened: str
    after: int


class _End(NamedTuple):
    closing_at: int
    closed: str


class LongParameter:
    """From the opening tag of a free text to the end of its call; each token is read once."""

    def __init__(self, name: str, tool: XmlTool, tags: frozenset[str], seen: set[str]) -> None:
        self._name = name
        self._tool = tool
        self._tags = tags
        self._seen = seen
        self._tail: list[str] = []
        self._size = 0
        self._held = False
        self._closed = ""
        self._closing_at = 0
        self._line_ended = False
        self._tool_opened = False
        self._depth = 0
        self._siblings = {name}
        self._junctions: list[_Junction] = []
        self._inside = name if _has_tags(tool, name) else ""
        """The parameter of the current tags: CDATA in them is not a quotation."""
        self._in_cdata_of = ""
        self._cdata_over = False
        self._just_opened = ""
        self._ending: _End | None = None
        self._inner_end: _End | None = None
        self._end: _End | None = None

    def take(self, token: Token, sink: Sink) -> XmlStep:
        """The next token of the call."""
        if self._ending is not None:
            settled = self._settle(token)
            if settled is None:
                self._push(token.raw)
                return XmlStep.GOES_ON
            if settled:
                self._push(token.raw)
                return XmlStep.CALL_ENDED_BEFORE
        if not self._track(token):
            self._release(sink)
            return XmlStep.GOES_ON
        if not self._line_ended:
            return XmlStep.GOES_ON
        self._end, self._ending = self._ending, None
        return XmlStep.CALL_ENDED

    def watch(self, token: Token) -> bool:
        """Whether a token after the end shows that the call continued up to here."""
        if self._ending is not None:
            settled = self._settle(token)
            if settled is None or settled:
                self._push(token.raw)
                return bool(settled)
        if self._track(token) and self._line_ended:
            self._end, self._ending = self._ending, None
            return True
        return False

    def end(self) -> bool:
        """End the input; returns whether the call is complete."""
        self._end = self._ending or self._inner_end or self._end
        return self._end is not None

    def parameters(self, sink: Sink) -> list[tuple[str, str]]:
        """Writes the rest of the text; returns the parameters after it as written."""
        assert self._end is not None  # noqa: S101 - callers ask only after an end
        held = "".join(self._tail)
        position, name = self._end
        used = {name}
        found: list[tuple[str, str]] = []
        for junction in reversed(self._junctions):
            if name == self._name:
                break
            if junction.opened != name or junction.after > position or junction.closed in used:
                continue
            found.append((name, held[junction.after : position]))
            position, name = junction.closing_at, junction.closed
            used.add(name)
        if name != self._name:
            position, found = self._end.closing_at, []
        sink.write(held[:position])
        found.reverse()
        return found

    def _settle(self, token: Token) -> bool | None:
        """Whether a closing tag within a line ends the line; None if not yet known."""
        if token.kind is TokenKind.TEXT:
            rest = token.raw.lstrip(" \t\r")
            if not rest:
                return None
            settled = rest[0] == "\n"
        else:
            settled = token.kind is TokenKind.OPEN and token.name in self._tags
        if settled:
            self._end = self._ending
        self._ending = None
        return settled

    def _track(self, token: Token) -> bool:
        """Processes one token; returns whether the call may end with it."""
        kind, name = token.kind, token.name
        if kind is TokenKind.TEXT and token.raw.isspace():
            self._line_ended = self._line_ended or "\n" in token.raw
            self._push(token.raw)
            return False
        self._inner_end = None
        if self._in_cdata_of and not self._leaves_cdata(token):
            return False
        closed, tool_opened, opened = self._closed, self._tool_opened, self._just_opened
        self._closed, self._tool_opened, self._just_opened = "", False, ""
        at = self._size
        self._push(token.raw)
        if kind is TokenKind.CLOSE:
            if closed and name == self._tool.tag:
                return self._closes_call(_End(self._closing_at, closed))
            if name in self._siblings:
                self._inside = "" if name == self._inside else self._inside
                self._closed, self._closing_at, self._line_ended = name, at, False
        elif kind in (TokenKind.OPEN, TokenKind.EMPTY):
            if closed and name not in self._seen and name not in (self._name, self._tool.tag):
                self._join(_Junction(self._closing_at, closed, name, self._size), kind)
            elif tool_opened and name in self._tool.fields:
                self._depth += 1
            else:
                self._tool_opened = kind is TokenKind.OPEN and name == self._tool.tag
                if self._inside and kind is TokenKind.OPEN:
                    self._just_opened = name
        elif kind is TokenKind.CDATA and opened:
            self._in_cdata_of, self._cdata_over = opened, False
        return False

    def _leaves_cdata(self, token: Token) -> bool:
        if token.kind is TokenKind.CLOSE and self._cdata_over and token.name == self._in_cdata_of:
            self._in_cdata_of = ""
            return True
        self._cdata_over = token.kind is TokenKind.CDATA_END
        self._push(token.raw)
        return False

    def _closes_call(self, end: _End) -> bool:
        if self._depth:
            # The end of a quoted call inside the text, unless nothing follows.
            self._depth -= 1
            self._inner_end = end
            return False
        self._ending = end
        return True

    def _join(self, junction: _Junction, kind: TokenKind) -> None:
        self._held = True
        self._junctions.append(junction)
        self._siblings.add(junction.opened)
        if kind is TokenKind.OPEN:
            if self._tool.may_wrap(junction.opened):
                self._just_opened = junction.opened
            if _has_tags(self._tool, junction.opened):
                self._inside = junction.opened
        else:
            self._closed, self._closing_at = junction.opened, self._size
            self._line_ended = False

    def _push(self, raw: str) -> None:
        self._tail.append(raw)
        self._size += len(raw)

    def _release(self, sink: Sink) -> None:
        """Writes the part that certainly belongs to the text."""
        if self._held or self._inner_end is not None:
            return
        keep = self._closing_at if self._closed else self._size
        if keep == self._size:
            sink.write("".join(self._tail))
            self._tail.clear()
            self._size = 0
        elif keep:
            # Only the last closing tag can be the end.
            kept = self._tail.pop() if len(self._tail) > 1 else ""
            sink.write("".join(self._tail))
            self._tail = [kept]
            self._size = len(kept)
            self._closing_at = 0


def _has_tags(tool: XmlTool, name: str) -> bool:
    """Whether a parameter is a list or an object, whose members are tags again."""
    kinds = tool.field(name).kinds
    return "string" not in kinds and bool(kinds & {"array", "object"})
