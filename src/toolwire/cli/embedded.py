"""Download of the embedded model: consent and progress bar."""

import asyncio
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from toolwire.cli.question import agrees, can_ask
from toolwire.cli.streams import write_control
from toolwire.embedded.partial import Progress, readable
from toolwire.embedded.weights import Ask, DownloadConsent

_WIDTH = 24
_CLEAR = "\r\x1b[2K"
_EVERY = 0.2
_SELDOM = 10.0


def consent(options: Mapping[str, Any], ask: Ask | None = None) -> DownloadConsent:
    """Returns the consent from the options, else asks on the terminal."""
    if ask is None and can_ask():
        ask = _ask
    report = Bar(sys.stderr).show
    return DownloadConsent(weights=options["weights"], yes=options["yes"], ask=ask, report=report)


async def _ask(question: str) -> bool:
    return await asyncio.to_thread(agrees, question)


class Bar:
    """Progress: one updated line on a terminal, occasional lines elsewhere."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._drawn = err.isatty()
        self._last = float("-inf")

    def show(self, progress: Progress) -> None:
        """Draws the progress."""
        now = time.monotonic()
        done = progress.done >= progress.total
        if not done and now - self._last < (_EVERY if self._drawn else _SELDOM):
            return
        self._last = now
        if self._drawn:
            write_control(self._err, _CLEAR)
            self._err.write(f"{bar(progress)}{' ' if not done else chr(10)}")
        else:
            self._err.write(f"{words(progress)}\n")
        self._err.flush()


def bar(progress: Progress) -> str:
    """Returns the line for a terminal."""
    full = _WIDTH * progress.done // max(progress.total, 1)
    return f"[{'█' * full}{'·' * (_WIDTH - full)}] {words(progress)}"


def words(progress: Progress) -> str:
    """Returns bytes, speed and remaining time."""
    text = f"{readable(progress.done)} of {readable(progress.total)}"
    if progress.speed:
        text += f", {readable(progress.speed)}/s"
    left = progress.remaining
    if left and progress.done < progress.total:
        text += f", {_time(left)} left"
    return f"{text} ({progress.source})"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
