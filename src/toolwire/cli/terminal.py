"""The terminal: streams that escape what is printed, tables, errors and questions."""

import os
import signal
import sys
import threading
from codecs import lookup
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from errno import EPIPE
from io import TextIOWrapper
from types import FrameType
from typing import Any, Protocol, cast, runtime_checkable

import click

from toolwire.errors import ToolwireError
from toolwire.terminal_text import TerminalText, one_line


class StreamFailed(OSError):
    """A standard stream that cannot be written: a full disk, a closed pipe."""


def output_lost(error: OSError) -> int:
    """Reports that standard output cannot be written; returns the exit code.

    A reader that closed its pipe has read enough: that is not reported.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    # What is still buffered would fail again at exit.
    os.dup2(nowhere, 1)
    os.close(nowhere)
    if error.errno != EPIPE:
        with suppress(OSError):
            sys.stderr.write(error_line(f"standard output cannot be written: {error.strerror}"))
            sys.stderr.flush()
    return 1


class SafeStream(TextIOWrapper):
    """Escapes control sequences; only `control` writes some to the terminal."""

    def __init__(self, stream: TextIOWrapper, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called before anything is printed."""
        # Output is UTF-8, but for a terminal that displays something else; click opens the raw
        # bytes of an ASCII-only stream, which would bypass this one.
        other = stream.isatty() and lookup(stream.encoding).name != "ascii"
        options: dict[str, Any] = {
            "encoding": stream.encoding if other else "utf-8",
            "errors": "backslashreplace",
            "line_buffering": stream.line_buffering,
            "write_through": stream.write_through,
        }
        super().__init__(stream.detach(), **options)
        self._text = TerminalText()
        self._before = before

    def write(self, text: str, /) -> int:
        """Prints the text with dangerous characters escaped."""
        self.control(self._text.feed(text))
        return len(text)

    def control(self, sequence: str) -> None:
        """Writes a control sequence unescaped."""
        self._before()
        try:
            super().write(sequence)
        except OSError as error:
            raise StreamFailed(error.errno, error.strerror) from error

    def flush(self) -> None:
        """Writes what is buffered."""
        try:
            super().flush()
        except OSError as error:
            raise StreamFailed(error.errno, error.strerror) from error


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


def protect_streams(before: Callable[[], None] = lambda: None) -> None:
    """Replaces both standard streams by escaping ones for the whole process.

    `before` is called before they print anything.
    """
    for name in ("stdout", "stderr"):
        stream: object = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and not isinstance(stream, SafeStream):
            stream.flush()
            setattr(sys, name, SafeStream(cast("TextIOWrapper[Any]", stream), before))


def can_ask() -> bool:
    """Whether a user at a terminal can read and answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_line(question: str) -> str | None:
    """Returns the line typed after the question; None without input or terminal."""
    if not can_ask():
        return None
    from toolwire.platform import discard_input

    body, _, last = question.rpartition("\n")
    sys.stdout.flush()
    if body:
        sys.stderr.write(f"{body}\n")
    sys.stderr.flush()
    # Before the last line, so that an answer typed as soon as it is visible counts.
    discard_input(sys.stdin.fileno())
    sys.stderr.write(f"{last} ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None


YES = frozenset({"y", "yes", "ok", "okay", "sure", "yeah", "yep"})
"""Answers that mean yes."""


def agrees(question: str) -> bool:
    """Asks; True only for an explicit yes."""
    return (ask_line(f"{question} [y/N]:") or "").lower() in YES


def error_line(message: object) -> str:
    """Returns the line that reports an error, the same in every command."""
    return f"toolwire: {message}\n"


def fail(error: ToolwireError) -> None:
    """Prints the error on standard error and exits with code 1."""
    click.echo(error_line(error), err=True, nl=False)
    raise SystemExit(1)


def echo_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows below a header, columns aligned."""
    lines = [tuple(head), *(tuple(map(one_line, row)) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(text.rstrip())


GRACE = 0.5
"""Seconds to wait for threads to stop."""


@contextmanager
def ending_at_once(code: int) -> Generator[None]:
    """Makes Ctrl-C end the process, even in code that never awaits."""

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        os._exit(code)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_soon(code: int) -> None:
    """Exits without waiting for busy threads: they cannot be stopped."""

    def end() -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

    timer = threading.Timer(GRACE, end)
    timer.daemon = True
    timer.start()


def leave(code: int) -> None:
    """Exits without waiting for threads that read or run tools."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def standard_streams() -> tuple[int, int]:
    """Takes standard input and output for messages; whatever prints goes to standard error."""
    reading, writing = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is needed
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return reading, writing
