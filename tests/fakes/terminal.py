"""`toolwire` on a real pseudo terminal."""

import os
import pty
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.simulated import command

PATIENCE = 40.0


class Terminal:
    """A process whose standard streams are a terminal, as far as they are not given."""

    def __init__(
        self, args: list[str], *, cwd: Path, env: Mapping[str, str] | None = None, **streams: Any
    ) -> None:
        self.main, other = pty.openpty()
        streams = {"stdin": other, "stdout": other, "stderr": other, **streams}
        self.process: subprocess.Popen[Any] = subprocess.Popen(
            command(args), cwd=cwd, env=env, start_new_session=True, **streams
        )
        os.close(other)
        os.set_blocking(self.main, False)
        self.seen = ""
        """What was printed since the last words that were waited for."""
        self.all = ""

    def wait_for(self, words: str) -> None:
        until = time.monotonic() + PATIENCE
        while words not in self.seen:
            assert time.monotonic() < until, self.seen
            self.read()
            time.sleep(0.02)
        self.seen = self.seen.partition(words)[2]

    def read(self) -> None:
        try:
            text = os.read(self.main, 65536).decode("utf-8", "replace")
        except OSError:
            # Nothing there yet, or no process left that could print.
            return
        self.seen += text
        self.all += text

    def type(self, line: str) -> None:
        os.write(self.main, f"{line}\n".encode())

    def leave(self) -> int:
        os.write(self.main, b"\x04")
        return self.end()

    def end(self) -> int:
        """The exit code; everything that was printed is in `all`."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < until, self.all
            self.read()
            time.sleep(0.02)
        self.read()
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.main)
