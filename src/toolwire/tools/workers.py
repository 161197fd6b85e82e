"""Child processes for work that may not end: stopped by a limit, cancellation or our exit."""

import os
import select
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from toolwire.tools import worker
from toolwire.tools.shell.environment import NEUTRAL, PYTHON, helper_environment

_POLL = 50
"""Milliseconds."""
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
        self._lifeline = -1

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
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        os.close(self._lifeline)

    def _start(self) -> subprocess.Popen[bytes]:
        reading, self._lifeline = os.pipe()
        limit = int(self._left) + _GRACE
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own file, by our own Python
                (*PYTHON, worker.__file__, str(reading), str(limit), *self._command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(reading,),
                cwd=NEUTRAL,
                env=helper_environment(os.environ),
            )
        except OSError as error:
            os.close(self._lifeline)
            raise WorkerFailed(f"no process can be started: {error}") from error
        finally:
            os.close(reading)
        return self._process

    def _read(self, output: int, size: int, start: float) -> bytes:
        found = bytearray()
        waiting = select.poll()
        waiting.register(output, select.POLLIN)
        while len(found) < size:
            if self._stopped():
                raise WorkerFailed("stopped")
            if time.monotonic() - start > self._left:
                raise TookTooLong("the work takes too long")
            if not waiting.poll(_POLL):
                continue
            chunk = os.read(output, min(size - len(found), 1 << 20))
            if not chunk:
                raise WorkerFailed("the work ended early")
            found += chunk
        return bytes(found)
