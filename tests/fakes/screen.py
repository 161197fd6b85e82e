"""`toolwire` on a real pseudo terminal whose screen is read, as a user sees it."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyte

from tests.fakes.simulated import command

PATIENCE = 60.0


class ScreenTerminal:
    """A process on a terminal of a given size."""

    def __init__(
        self,
        args: list[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        self._main, other = pty.openpty()
        self._screen = pyte.HistoryScreen(columns, rows, history=5000)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._set_size(columns, rows)
        self.process: subprocess.Popen[Any] = subprocess.Popen(
            command(args),
            cwd=cwd,
            env={"TERM": "xterm-256color", **env},
            start_new_session=True,
            stdin=other,
            stdout=other,
            stderr=other,
            # Its controlling terminal, as a shell gives it one: it is hung up on with it.
            preexec_fn=_take_terminal,
        )
        os.close(other)
        os.set_blocking(self._main, False)

    def see(self) -> list[str]:
        """The rows of the screen, without empty ones at the end."""
        self.read()
        rows = [row.rstrip() for row in self._screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def all(self) -> list[str]:
        """What scrolled off the top, and the screen."""
        self.read()
        above = [
            "".join(row[at].data for at in range(self._screen.columns)).rstrip()
            for row in self._screen.history.top
        ]
        return [*above, *self.see()]

    def wait(self, *words: str) -> list[str]:
        """Waits until all these words are on the screen."""
        until = time.monotonic() + PATIENCE
        while True:
            rows = self.see()
            if all(any(one in row for row in rows) for one in words):
                return rows
            assert time.monotonic() < until, "\n".join(rows)
            assert self.process.poll() is None, "\n".join(rows)
            time.sleep(0.02)

    def wait_gone(self, words: str) -> list[str]:
        """Waits until the words are no longer on the screen."""
        until = time.monotonic() + PATIENCE
        while words in (shown := "\n".join(self.see())):
            assert time.monotonic() < until, shown
            time.sleep(0.02)
        return shown.split("\n")

    def read(self) -> None:
        while True:
            try:
                data = os.read(self._main, 65536)
            except OSError:
                return
            if not data:
                return
            self.raw += data
            self._stream.feed(data)

    def press(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def answer(self, keys: str) -> None:
        """Presses keys after the time in which none answers a question."""
        self.settle()
        self.press(keys)

    def settle(self, seconds: float = 0.6) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.read()
            time.sleep(0.02)

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self) -> int:
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < until, "\n".join(self.see())
            self.read()
            time.sleep(0.02)
        self.read()
        return self.process.returncode

    def hang_up(self) -> None:
        """Closes the terminal, as its window is closed."""
        os.close(self._main)
        self._main = -1

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self._main >= 0:
            os.close(self._main)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
