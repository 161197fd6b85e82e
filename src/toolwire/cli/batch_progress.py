"""A batch in the terminal: its line of progress, and what Ctrl-C does."""

import asyncio
import signal
import sys
import time
from typing import TYPE_CHECKING

from toolwire.cli.terminal import write_control
from toolwire.platform import handle_signals

if TYPE_CHECKING:
    from toolwire.batch.driver import Driver
    from toolwire.batch.progress import Snapshot

_EVERY = 30.0
_REDRAW = 0.25


class Interrupts:
    """Ctrl-C once stops taking tasks, twice ends the running ones."""

    def __init__(self, bar: "ProgressLine") -> None:
        self._bar = bar
        self._driver: Driver | None = None
        self._pressed = 0

    def __enter__(self) -> "Interrupts":
        loop = asyncio.get_running_loop()
        self._handled = handle_signals(loop, (signal.SIGINT, signal.SIGTERM), self._stop)
        self._handled.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handled.__exit__(None, None, None)

    def watch(self, driver: "Driver") -> None:
        """The driver to stop."""
        self._driver = driver
        if self._pressed:
            driver.stop()

    def _stop(self) -> None:
        self._pressed += 1
        if self._pressed == 1:
            self._bar.notice(
                "stopping at the next record of each attempt; Ctrl-C again ends them now"
            )
        if self._driver is not None:
            self._driver.stop()


class ProgressLine:
    """One line that is redrawn on a terminal, a line every 30 s elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._err = sys.stderr
        self._drawn = self._err.isatty()
        self._last = time.monotonic() if not self._drawn else float("-inf")
        self._shown = ""

    def show(self, snapshot: "Snapshot") -> None:
        """Draws the line, not too often."""
        now = time.monotonic()
        if self._quiet or now - self._last < (_REDRAW if self._drawn else _EVERY):
            return
        self._last = now
        line = snapshot.line()
        if self._drawn:
            import shutil

            line = line[: max(10, shutil.get_terminal_size().columns - 1)]
            if line != self._shown:
                write_control(self._err, "\r\x1b[2K")
                self._err.write(line)
                self._err.flush()
                self._shown = line
        else:
            self._err.write(f"{line}\n")
            self._err.flush()

    def notice(self, text: str) -> None:
        """Prints a notice above the line."""
        if self._quiet:
            return
        self.end()
        self._err.write(f"toolwire: {text}\n")
        self._err.flush()

    def end(self) -> None:
        """Removes the line."""
        if self._drawn and self._shown:
            write_control(self._err, "\r\x1b[2K")
            self._err.flush()
            self._shown = ""
