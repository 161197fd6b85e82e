"""Tokenizer of streamed text: tags and the text between them."""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from toolwire.events import ModelEvent, TextDelta, ThinkingDelta, ToolCallDelta

_NAME = r"\w[\w.:\-]{0,127}"
_TOKEN = re.compile(rf"<(?P<end>/?)(?P<name>{_NAME})(?P<empty> ?/)?>|<!\[CDATA\[|\]\]>")
_UNFINISHED = re.compile(
    rf"<(?:/?(?:{_NAME}(?: ?/?)?)?|!(?:\[(?:C(?:D(?:A(?:TA?)?)?)?)?)?)|<!\[CDATA|\]\]?"
)
_LONGEST = 133

is_tag_name = re.compile(_NAME).fullmatch


class TokenKind(IntEnum):
    """What a token is."""

    TEXT = 0
    OPEN = 1
    CLOSE = 2
    EMPTY = 3
    """`<name/>`"""
    CDATA = 4
    CDATA_END = 5


class Token(NamedTuple):
    """A tag, or text without one. `raw` is how it was written."""

    kind: TokenKind
    raw: str
    name: str = ""


class Tokens:
    """One per text; holds only a trailing piece that may become a tag."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> Iterator[Token]:
        """The tokens that are certain so far."""
        text = self._held + text
        end = len(text) - _unfinished(text)
        self._held = text[end:]
        return tokens_in(text, end)

    def close(self) -> Iterator[Token]:
        """The rest, which looked like the start of a tag."""
        held, self._held = self._held, ""
        if held:
            yield Token(TokenKind.TEXT, held)


def tokens_in(text: str, end: int | None = None) -> Iterator[Token]:
    """The tokens of a complete text."""
    end = len(text) if end is None else end
    done = 0
    for found in _TOKEN.finditer(text, 0, end):
        if found.start() > done:
            yield Token(TokenKind.TEXT, text[done : found.start()])
        yield _token(found)
        done = found.end()
    if done < end:
        yield Token(TokenKind.TEXT, text[done:end])


def _token(found: re.Match[str]) -> Token:
    raw, name = found[0], found["name"]
    if name is None:
        return Token(TokenKind.CDATA if raw[0] == "<" else TokenKind.CDATA_END, raw)
    if found["end"]:
        return Token(TokenKind.TEXT if found["empty"] else TokenKind.CLOSE, raw, name)
    return Token(TokenKind.EMPTY if found["empty"] else TokenKind.OPEN, raw, name)


def _unfinished(text: str) -> int:
    """Number of characters at the end that may start a tag."""
    start = max(text.rfind("<", len(text) - _LONGEST if len(text) > _LONGEST else 0), 0)
    for position in (start, len(text) - 2, len(text) - 1):
        if position >= 0 and _UNFINISHED.fullmatch(text, position):
            return len(text) - position
    return 0


class XmlOutput:
    """Collects events until they are taken."""

    def __init__(self) -> None:
        self._events: list[ModelEvent] = []
        self._pieces: list[str] = []
        self._open: type[TextDelta] | type[ThinkingDelta] | str = ""

    def text(self, piece: str) -> None:
        """Add text."""
        self._join(TextDelta, piece)

    def thinking(self, piece: str) -> None:
        """Add reasoning."""
        self._join(ThinkingDelta, piece)

    def arguments(self, call_id: str, piece: str) -> None:
        """Add arguments of a call."""
        self._join(call_id, piece)

    def add(self, event: ModelEvent) -> None:
        """Add a complete event."""
        self._end_piece()
        self._events.append(event)

    def move_to(self, other: "XmlOutput") -> None:
        """Move all events to another output."""
        for event in self.take():
            match event:
                case TextDelta():
                    other.text(event.text)
                case ThinkingDelta():
                    other.thinking(event.text)
                case _:
                    other.add(event)

    def take(self) -> list[ModelEvent]:
        """All events since the last call."""
        self._end_piece()
        events, self._events = self._events, []
        return events

    def _join(self, kind: type[TextDelta] | type[ThinkingDelta] | str, piece: str) -> None:
        if not piece:
            return
        if kind != self._open:
            self._end_piece()
            self._open = kind
        self._pieces.append(piece)

    def _end_piece(self) -> None:
        if not self._pieces:
            return
        joined = "".join(self._pieces)
        self._pieces.clear()
        kind, self._open = self._open, ""
        if isinstance(kind, str):
            self._events.append(ToolCallDelta(kind, joined))
        else:
            self._events.append(kind(joined))
