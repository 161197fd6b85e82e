"""Standard output and standard error: everything printed is made harmless here."""

import sys
from codecs import lookup
from io import TextIOWrapper
from typing import Any, Protocol, cast, runtime_checkable

from toolwire.terminal_text import TerminalText


class SafeStream(TextIOWrapper):
    """Escapes what a terminal would obey; only `control` writes sequences of our own."""

    def __init__(self, stream: TextIOWrapper) -> None:
        # click opens the bytes below a stream that is ASCII only, and would go round this one.
        ascii_only = lookup(stream.encoding).name == "ascii"
        options: dict[str, Any] = {
            "encoding": "utf-8" if ascii_only else stream.encoding,
            "errors": "backslashreplace",
            "line_buffering": stream.line_buffering,
            "write_through": stream.write_through,
        }
        super().__init__(stream.detach(), **options)
        self._text = TerminalText()

    def write(self, text: str, /) -> int:
        """Print it, dangerous characters written out."""
        super().write(self._text.feed(text))
        return len(text)

    def control(self, sequence: str) -> None:
        """Write a sequence of our own as it is."""
        super().write(sequence)


@runtime_checkable
class Controllable(Protocol):
    """A stream that tells our own sequences from text."""

    def control(self, sequence: str) -> None:
        """Write a sequence of our own as it is."""
        ...


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


def write_control(stream: _Writable, sequence: str) -> None:
    """Write a sequence of our own, such as one that clears a line."""
    if isinstance(stream, Controllable):
        stream.control(sequence)
    else:
        stream.write(sequence)


def protect_streams() -> None:
    """Put the sanitiser in front of both streams, for every later writer of this process."""
    for name in ("stdout", "stderr"):
        stream: object = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and not isinstance(stream, SafeStream):
            stream.flush()
            setattr(sys, name, SafeStream(cast("TextIOWrapper[Any]", stream)))
