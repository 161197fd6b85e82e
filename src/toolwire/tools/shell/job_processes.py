"""Shell commands on Windows: each in a job object, which ends with this process at the latest."""

import sys

if sys.platform != "win32":
    raise ImportError("this module needs Windows")

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from toolwire.platform import bytes_waiting
from toolwire.platform.jobs import Job
from toolwire.tools.shell.environment import shell_words
from toolwire.tools.shell.limits import Ended, ProcessLimits, nap, over
from toolwire.tools.shell.output import LiveTail, OutputSink

_POLL = 0.01
"""Seconds between two looks at the pipes: Windows cannot wait for them and for the event loop."""
_POLL_BACKGROUND = 0.1
_EXIT_GRACE = 0.1
"""Seconds that an exited shell's processes get to end before they are reported."""
_END_WITHIN = 5.0
_AT_ONCE = 1 << 20


class Confined(msgspec.Struct, frozen=True):
    """Never made: Windows has no sandbox that we use."""


class Shell:
    """One command and everything it started; use it in the event loop that started it."""

    def __init__(
        self,
        command: str,
        *,
        directory: Path,
        environ: Mapping[str, str],
        out: OutputSink,
        err: OutputSink,
        confined: Confined | None = None,
        words: Sequence[str] = (),
        program: str = "",
        given: int | None = None,
    ) -> None:
        """Start it. Raises OSError if that cannot be done, with the system's reason.

        `words` run in place of a shell, whose path is `program`; `given` is its standard input.
        """
        if confined is not None:
            raise OSError("there is no sandbox on Windows")
        self.command = command
        self.pid = 0
        """Process id of the shell."""
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ended] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._live = LiveTail()
        self._exited = 0.0
        self._last = self._loop.time()
        self._job = Job()
        self._pipes: dict[int, OutputSink] = {}
        try:
            line = words or shell_words(program, command)
            self._process = self._started(line, directory, environ, (out, err), given)
            self.pid = self._process.pid
        except BaseException:
            self._close()
            raise
        self._loop.call_soon(self._poll)

    def _started(
        self,
        words: Sequence[str],
        directory: Path,
        environ: Mapping[str, str],
        spools: tuple[OutputSink, OutputSink],
        given: int | None,
    ) -> subprocess.Popen[bytes]:
        writers: list[int] = []
        try:
            for spool in spools:
                reading, writing = os.pipe()
                self._pipes[reading] = spool
                writers.append(writing)
            process = subprocess.Popen(  # noqa: S603 - the command the policy has ruled on
                words,
                stdin=subprocess.DEVNULL if given is None else given,
                stdout=writers[0],
                stderr=writers[1],
                cwd=directory,
                env=dict(environ),
                creationflags=Job.START,
            )
        finally:
            for writing in writers:
                os.close(writing)
        try:
            # It has not run yet: nothing that it starts can be outside the job.
            self._job.start(process.pid)
        except OSError:
            process.kill()
            process.wait()
            raise
        return process

    @property
    def running(self) -> bool:
        """Whether any process of the command is still alive and reachable."""
        return not self._gone.done() and not self._loop.is_closed()

    @property
    def stranded(self) -> bool:
        """Whether its event loop was closed, so that no reader is left."""
        return not self._gone.done() and self._loop.is_closed()

    async def finish(self, limits: ProcessLimits, live: Callable[[str], None]) -> Ended:
        """Wait for the shell itself; what it left in the background runs on.

        A command over its limits is ended with everything it started.
        """
        begun = shown = self._loop.time()
        while not self._ended.done():
            now = self._loop.time()
            problem = over(limits, now - begun, now - self._last)
            if problem:
                await self.end()
                return msgspec.structs.replace(self._ended.result(), problem=problem)
            if now - shown >= limits.live and (news := self._live.take()):
                live(news.decode("utf-8", "replace"))
                shown = now
            await asyncio.wait({self._ended}, timeout=nap(limits, now - begun, now - self._last))
        return self._ended.result()

    async def ended(self) -> Ended:
        """Wait for the shell itself, without a limit."""
        return await asyncio.shield(self._ended)

    async def end(self) -> None:
        """End everything the command started, at once."""
        if not self.running:
            return
        self._job.kill()
        await asyncio.wait({self._gone}, timeout=_END_WITHIN)
        if not self._gone.done():
            self._settle()

    def keep_reading(self, later: OutputSink) -> None:
        """Send further output of background processes to another spool."""
        for reading in self._pipes:
            self._pipes[reading] = later

    def members(self) -> tuple[int, ...]:
        """All processes of the command that are alive now."""
        return self._job.members() if self.running else ()

    def abandon(self) -> None:
        """End what is left without waiting."""
        self._close()

    def _poll(self) -> None:
        if self._gone.done():
            return
        for reading in tuple(self._pipes):
            self._read(reading)
        code = self._process.poll()
        if code is not None:
            left = self._job.members()
            now = self._loop.time()
            self._exited = self._exited or now
            if not left:
                self._settle()
                return
            if now - self._exited >= _EXIT_GRACE and not self._ended.done():
                self._ended.set_result(Ended(exit_code=code, background=left))
        self._loop.call_later(_POLL_BACKGROUND if self._ended.done() else _POLL, self._poll)

    def _read(self, reading: int) -> None:
        waiting = bytes_waiting(reading)
        if waiting < 0:
            os.close(reading)
            del self._pipes[reading]
            return
        spool, most = self._pipes[reading], _AT_ONCE
        while waiting > 0 and most > 0:
            size = spool.take(reading, min(waiting, most))
            most -= size
            self._last = self._loop.time()
            if not self._ended.done():
                self._live.note(spool, size)
            waiting = bytes_waiting(reading)

    def _settle(self) -> None:
        for reading in tuple(self._pipes):
            self._read(reading)
        if not self._ended.done():
            self._ended.set_result(Ended(exit_code=self._process.poll()))
        self._close()
        self._gone.set_result(None)

    def _close(self) -> None:
        self._job.close()
        for reading in self._pipes:
            os.close(reading)
        self._pipes.clear()
