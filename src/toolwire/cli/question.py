"""Questions on the terminal: only input typed after a question answers it."""

import os
import select
import sys


def discard_typed(descriptor: int) -> None:
    """Discards unread input, including an incomplete line on a terminal."""
    if os.isatty(descriptor):
        import termios

        termios.tcflush(descriptor, termios.TCIFLUSH)
        return
    while select.select([descriptor], [], [], 0)[0] and os.read(descriptor, 65536):
        pass


def can_ask() -> bool:
    """Whether a user at a terminal can read and answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_line(question: str) -> str | None:
    """Returns the line typed after the question; None without input or terminal."""
    if not can_ask():
        return None
    body, _, last = question.rpartition("\n")
    sys.stdout.flush()
    if body:
        sys.stderr.write(f"{body}\n")
    sys.stderr.flush()
    # Before the last line, so that an answer typed as soon as it is visible counts.
    discard_typed(sys.stdin.fileno())
    sys.stderr.write(f"{last} ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None


def agrees(question: str) -> bool:
    """Asks; True only for an explicit yes."""
    return (ask_line(f"{question} [y/N]:") or "").lower() in ("y", "yes")
