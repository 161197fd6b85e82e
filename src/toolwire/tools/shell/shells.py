"""Processes of the sessions: commands that run on in the background, and their sandboxes."""

import asyncio
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeAlias

from toolwire.tools.shell.limits import Ended, ProcessLimits
from toolwire.tools.shell.output import Spool
from toolwire.tools.spec import ToolContext, ToolFailed

if sys.platform == "win32":
    from toolwire.tools.shell.job_processes import Confined, Shell
else:
    from toolwire.tools.shell.processes import Confined, Shell

if TYPE_CHECKING:
    from toolwire.tools.shell.sandbox.session import Sandbox

__all__ = [
    "Confined",
    "Shell",
    "Shells",
    "confined_by",
    "end_shells",
    "failed_in_container",
    "run_program",
    "shells_of",
]

_REMEMBERED = 16
_KILLED = 128 + 9

Live: TypeAlias = Callable[[str], None]
"""Shows output while the command runs."""


class Shells:
    """The processes of one session; no other session sees or stops them."""

    def __init__(self) -> None:
        self._shells: dict[int, tuple[Shell, Spool]] = {}
        self._awaited: set[asyncio.Event] = set()
        """One for each command that a call waits for; set when it need not wait any longer."""
        self._sandbox: Sandbox | None = None

    def keep(self, shell: Shell, later: Spool) -> None:
        """Record a shell that left processes running, and keep reading their output."""
        shell.keep_reading(later)
        self._shells[shell.pid] = (shell, later)
        ended = [pid for pid, (shell, _) in self._shells.items() if not shell.running]
        for pid in ended[:-_REMEMBERED]:
            self._shells.pop(pid)[1].close()

    async def awaited(self, shell: Shell, limits: ProcessLimits, live: Live) -> tuple[Ended, bool]:
        """Wait for a command; returns how it ended, and whether it was released and runs on."""
        released = asyncio.Event()
        self._awaited.add(released)
        finished = asyncio.create_task(shell.finish(limits, live))
        waiting = asyncio.create_task(released.wait())
        try:
            await asyncio.wait((finished, waiting), return_when=asyncio.FIRST_COMPLETED)
            if finished.done():
                return finished.result(), False
            return Ended(background=shell.members()), True
        finally:
            self._awaited.discard(released)
            for work in (finished, waiting):
                work.cancel()
            await asyncio.wait((finished, waiting))

    def release(self) -> int:
        """Let every command that a call waits for run on in the background; returns how many."""
        for event in self._awaited:
            event.set()
        return len(self._awaited)

    def running(self) -> dict[int, tuple[Shell, Spool]]:
        """Those of which something still runs, by the number of their process group."""
        return {pid: kept for pid, kept in self._all().items() if kept[0].running}

    def all(self) -> dict[int, tuple[Shell, Spool]]:
        """Those that run, and the last ones that ended."""
        return dict(self._all())

    def get(self, pid: int) -> tuple[Shell, Spool] | None:
        """One of them, running or ended."""
        return self._all().get(pid)

    @property
    def sandbox(self) -> "Sandbox":
        """The sandbox of the session, made when first used."""
        if self._sandbox is None:
            from toolwire.tools.shell.sandbox.session import Sandbox  # noqa: PLC0415 - only when it is on

            self._sandbox = Sandbox()
        return self._sandbox

    async def aclose(self) -> None:
        """End all of them, and the sandbox."""
        async with asyncio.TaskGroup() as group:
            for shell, _ in self.running().values():
                group.create_task(shell.end())
        for _, later in self._shells.values():
            later.close()
        self._shells.clear()
        if self._sandbox is not None:
            await asyncio.to_thread(self._sandbox.close)

    def _all(self) -> dict[int, tuple[Shell, Spool]]:
        for pid, (shell, _) in tuple(self._shells.items()):
            if shell.stranded:
                shell.abandon()
                del self._shells[pid]
        return self._shells


_SESSIONS: dict[str, Shells] = {}
"""By owner. Processes of calls without one end with this process at the latest."""


def shells_of(owner: str) -> Shells:
    """The processes of a session."""
    return _SESSIONS.setdefault(owner, Shells())


async def end_shells(owner: str) -> None:
    """End the processes of a session."""
    shells = _SESSIONS.pop(owner, None)
    if shells is not None:
        await shells.aclose()


async def confined_by(context: ToolContext) -> Confined | None:
    """The confinement of a command; None if it is not confined."""
    spec = context.permit.sandbox if context.permit is not None else context.sandbox
    if spec.container:
        return _in_container(spec.container, context)
    if spec.level == "off":
        return None
    sandbox = shells_of(context.owner).sandbox
    try:
        return await asyncio.to_thread(sandbox.confined, spec, context.workspace, context.environ)
    except OSError as error:
        raise ToolFailed(
            f"the sandbox cannot be made: {error}; the user may turn it off with --sandbox off",
            type="shell_execute_error",
        ) from error


async def run_program(
    words: Sequence[str],
    given: bytes,
    *,
    directory: Path,
    environ: Mapping[str, str],
    temp: Path,
    limits: ProcessLimits,
    most: int,
    confined: Confined | None = None,
) -> tuple[Ended, str, str]:
    """Run a program with `given` as its input; returns how it ended and both of its outputs, each
    up to `most` bytes. Nothing that it started outlives this call.
    """
    out, err = (Spool(5 * most, temp / name, file_limit=0) for name in "oe")
    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        shell = Shell(
            shlex.join(words),
            words=words,
            given=file.fileno(),
            directory=directory,
            environ=environ,
            out=out,
            err=err,
            confined=confined,
        )
    try:
        ended = await shell.finish(limits, lambda text: None)
    finally:
        await shell.end()
    return ended, _text(out, most), _text(err, most)


def _text(spool: Spool, most: int) -> str:
    return spool.head[:most].decode("utf-8", "replace")


def _in_container(name: str, context: ToolContext) -> Confined:
    """Runs commands in a container, in which the workspace has the same path."""
    if sys.platform == "win32":
        raise ToolFailed("commands run in containers on Linux and macOS only")
    from toolwire.tools.shell.docker import client_environment, exec_words  # noqa: PLC0415 - rare
    from toolwire.tools.shell.watchdogs import WATCHDOGS  # noqa: PLC0415 - not on Windows

    return Confined(
        watchdogs=WATCHDOGS,
        plan={},
        prefix=exec_words(context.environ, context.settings.environment),
        environ=client_environment(),
        container=name,
    )


async def failed_in_container(confined: Confined | None, ended: Ended, began: float) -> str:
    """What a container adds to how a command ended: that it had too little memory.

    Raises ToolFailed if the container no longer runs: then the command has no result.
    """
    if confined is None or not confined.container or ended.exit_code == 0:
        return ""
    from toolwire.tools.shell.docker import memory_reached, why_dead  # noqa: PLC0415 - rare

    if why := await why_dead(confined.container):
        raise ToolFailed(why, type="shell_execute_error")
    if ended.exit_code != _KILLED:
        return ""
    most = await memory_reached(confined.container, began)
    return f"out of memory: the container may use {most} MB" if most else ""
