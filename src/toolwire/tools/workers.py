"""Child processes for work that may not end: stopped by a limit, cancellation or our exit."""

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from toolwire.platform import Lifeline, wait_for_bytes
from toolwire.tools import worker
from toolwire.tools.shell.environment import NEUTRAL, PYTHON, helper_environment

_POLL = 0.05
_GRACE = 5
_LARGEST = 1 << 30


class WorkerFailed(Exception):
    """The work was stopped, took too long, or its process ended."""


class TookTooLong(WorkerFailed):
    """The work was ended at its time limit."""


class Worker:
    """One child process, started at the first question; used by one thread at a time."""

    def __init__(
        self, mode: str, *arguments: str, seconds: float, stopped: Callable[[], bool]
    ) -> None:
        self._command = (mode, *arguments)
        self._left = seconds
        self._stopped = stopped
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: Lifeline | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, data: bytes) -> bytes:
        """The answer to one frame; WorkerFailed if there is none."""
        process = self._process or self._start()
        assert process.stdin is not None  # noqa: S101 - made with both pipes
        assert process.stdout is not None  # noqa: S101 - same
        start = time.monotonic()
        try:
            process.stdin.write(worker.LENGTH.pack(len(data)) + data)
            process.stdin.flush()
            output = process.stdout.fileno()
            size = worker.LENGTH.unpack(self._read(output, worker.LENGTH.size, start))[0]
            if size > _LARGEST:
                raise WorkerFailed("the answer is too large")
            return self._read(output, size, start)
        except (OSError, WorkerFailed) as error:
            self.close()
            if isinstance(error, WorkerFailed):
                raise
            raise WorkerFailed(f"the work ended early: {error}") from error
        finally:
            self._left -= time.monotonic() - start

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            lifeline.close()
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        limit = int(self._left) + _GRACE
        try:
            self._lifeline = Lifeline(worker.MEMORY)
            self._process = process = subprocess.Popen[bytes](
                (*PYTHON, worker.__file__, self._lifeline.name, str(limit), *self._command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=NEUTRAL,
                env=helper_environment(os.environ),
                **self._lifeline.options,
            )
            self._lifeline.hold(process.pid)
        except OSError as error:
            self.close()
            raise WorkerFailed(f"no process can be started: {error}") from error
        return process

    def _read(self, output: int, size: int, start: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            if self._stopped():
                raise WorkerFailed("stopped")
            if time.monotonic() - start > self._left:
                raise TookTooLong("the work takes too long")
            if not wait_for_bytes(output, _POLL):
                continue
            chunk = os.read(output, min(size - len(found), 1 << 20))
            if not chunk:
                raise WorkerFailed("the work ended early")
            found += chunk
        return bytes(found)
