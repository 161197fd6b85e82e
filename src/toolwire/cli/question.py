"""A question at the terminal whose answer is only what was typed after it appeared."""

import os
import select
import sys


def discard_typed(descriptor: int) -> None:
    """Throw away input that was not read yet, a line begun on a terminal included."""
    if os.isatty(descriptor):
        import termios

        termios.tcflush(descriptor, termios.TCIFLUSH)
        return
    while select.select([descriptor], [], [], 0)[0] and os.read(descriptor, 65536):
        pass


def can_ask() -> bool:
    """Whether a person is at the terminal, to read a question and to answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_line(question: str) -> str | None:
    """The line typed after the question was shown; None if input ends or no terminal is there."""
    if not can_ask():
        return None
    body, _, last = question.rpartition("\n")
    sys.stdout.flush()
    if body:
        sys.stderr.write(f"{body}\n")
    sys.stderr.flush()
    # Before the last line, so that an answer as soon as it is visible is not too early.
    discard_typed(sys.stdin.fileno())
    sys.stderr.write(f"{last} ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None


def agrees(question: str) -> bool:
    """A question that only a clear yes answers."""
    return (ask_line(f"{question} [y/N]:") or "").lower() in ("y", "yes")
