"""`toolwire serve` as a real process."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.fakes.simulated import LONGEST

KEY = "served-token-0123456789"


class ServeProcess:
    """`with ServeProcess(home, sim.upstream("gemini")) as served:`; its output is collected."""

    def __init__(self, home: Path, upstream: str, *flags: str, **environ: str) -> None:
        """Without an upstream, the settings in the home say which models answer."""
        self._command = [
            *(sys.executable, "-m", "toolwire", "serve", "--port", "0", "--token", KEY),
            *(("--upstream", upstream) if upstream else ()),
            *flags,
        ]
        self._environ = environ
        self._home = home
        self._out = home / "serve.out"
        self._err = home / "serve.err"
        self.process: subprocess.Popen[bytes]
        self.origin = ""

    def __enter__(self) -> "ServeProcess":
        keep = ("PATH", "LANG", "SYSTEMROOT", "COVERAGE_PROCESS_START")
        environ = {name: os.environ[name] for name in keep if name in os.environ}
        environ |= {"HOME": str(self._home), "TOOLWIRE_HOME": str(self._home)}
        environ |= self._environ
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                self._command, stdout=out, stderr=err, env=environ, cwd=self._home
            )
        self._until(lambda: "claude\n" in self.output)
        found = re.search(r"^toolwire serve: (\S+)$", self.output, re.MULTILINE)
        assert found is not None, self.output + self.errors
        self.origin = found[1]
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.origin.rpartition(":")[2])

    @property
    def output(self) -> str:
        """What it wrote to standard output."""
        return self._out.read_text()

    @property
    def errors(self) -> str:
        """What it wrote to standard error."""
        return self._err.read_text()

    def _until(self, done: "object") -> None:
        end = time.monotonic() + LONGEST
        while time.monotonic() < end and self.process.poll() is None:
            if callable(done) and done():
                return
            select.select([], [], [], 0.02)
        raise AssertionError(f"toolwire serve did not start: {self.output}{self.errors}")

    def wait_for(self, words: str) -> None:
        """Waits until standard error contains the words."""
        self._until(lambda: words in self.errors)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """Waits for the end; returns the exit code."""
        return self.process.wait(LONGEST)
