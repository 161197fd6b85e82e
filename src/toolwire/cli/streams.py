"""Standard output and standard error: escapes everything that is printed."""

import sys
from codecs import lookup
from io import TextIOWrapper
from typing import Any, Protocol, cast, runtime_checkable

from toolwire.terminal_text import TerminalText


class SafeStream(TextIOWrapper):
    """Escapes control sequences; only `control` writes some to the terminal."""

    def __init__(self, stream: TextIOWrapper) -> None:
        # click opens the raw bytes of an ASCII-only stream, which would bypass this one.
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
        """Prints the text with dangerous characters escaped."""
        super().write(self._text.feed(text))
        return len(text)

    def control(self, sequence: str) -> None:
        """Writes a control sequence unescaped."""
        super().write(sequence)


@runtime_checkable
class Controllable(Protocol):
    """A stream that distinguishes our control sequences from text."""

    def control(self, sequence: str) -> None:
        """Writes a control sequence unescaped."""
        ...


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


def write_control(stream: _Writable, sequence: str) -> None:
    """Writes a control sequence, such as one that clears a line."""
    if isinstance(stream, Controllable):
        stream.control(sequence)
    else:
        stream.write(sequence)


def protect_streams() -> None:
    """Replaces both standard streams by escaping ones for the whole process."""
    for name in ("stdout", "stderr"):
        stream: object = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and not isinstance(stream, SafeStream):
            stream.flush()
            setattr(sys, name, SafeStream(cast("TextIOWrapper[Any]", stream)))
