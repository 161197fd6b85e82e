"""Shell commands: started in their own session, read in bounded memory, never left behind."""

import asyncio
import errno
import itertools
import json
import os
import signal
import socket
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.shell import cgroups, protocol
from toolwire.tools.shell.environment import MARK
from toolwire.tools.shell.limits import Ended, ProcessLimits, nap, over
from toolwire.tools.shell.output import LiveTail, OutputPipes, OutputSink, Spool, wide_pipe
from toolwire.tools.shell.process_table import below, is_stopped, signal_each
from toolwire.tools.shell.watchdogs import (
    WATCHDOGS,
    Order,
    Traces,
    Watchdogs,
    kill_stragglers,
)

_RECEIVED = 1 << 16
_ANSWER_WITHIN = protocol.TERM_SECONDS + 1.5
_WAKE_EVERY = 0.05
_FORCE_ROUNDS = 500
_STOPPED = 4
_STOPPED_TOO_OFTEN = 5 * _STOPPED
"""This many times in a row, or at more than every fifth check."""
_CREDENTIALS = struct.Struct("3i")
_VERSIONS = itertools.count(1)
_STOPPED_PROBLEM = "the command kept stopping the process that watches over it, so it was ended"


class Confined(msgspec.Struct, frozen=True, kw_only=True):
    """How and where a command is confined."""

    watchdogs: Watchdogs
    plan: JsonObject
    hidden: tuple[str, ...] = ()
    """Paths that cannot be opened."""
    frozen: tuple[str, ...] = ()
    """Paths that cannot be written."""
    prefix: tuple[str, ...] = ()
    """Arguments before the shell's own, if another program confines it."""
    environ: tuple[tuple[str, str], ...] = ()
    container: str = ""
    """Where the command runs, if the prefix is only the client of a container."""
    key: str = ""
    """The plan as text: watchdogs with the same one are alike."""
    version: int = 0
    """Different for every set of covers."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "key", json.dumps(self.plan) if self.plan else "")
        msgspec.structs.force_setattr(self, "version", next(_VERSIONS))


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

        `words` run in place of bash, whose path is `program`; `given` is its standard input.
        """
        self._watchdogs = confined.watchdogs if confined else WATCHDOGS
        self._container = confined.container if confined else ""
        self.command = command
        self.pid = 0
        """Process id and process group of the shell; zero if it did not start."""
        self._loop = asyncio.get_running_loop()
        self._mark = f"{os.getpid()}-{os.urandom(8).hex()}"
        self._ended: asyncio.Future[Ended] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._done = False
        self._unread = bytearray()
        self._live = LiveTail()
        self._stopped = 0
        _check_directory(directory)
        readers: list[int] = []
        writers: list[int] = []
        try:
            for _ in range(2):
                reading, writing = wide_pipe()
                readers.append(reading)
                writers.append(writing)
            self._watched = self._watchdogs.start(
                _order(
                    # Two newlines: bash would otherwise turn itself into a last simple command, and
                    # a signal to that would look like one to the shell.
                    words or ("bash", "-c", f"{command}\n\n"),
                    directory,
                    {**environ, MARK: self._mark},
                    confined,
                    program,
                ),
                writers if given is None else [*writers, given],
            )
        except BaseException:
            _close(readers)
            raise
        finally:
            _close(writers)
        self._watchdog, self._group = self._watched.watchdog, self._watched.group
        self._program = words[0] if words else "bash"
        pipes = dict(zip(readers, (out, err), strict=True))
        self._pipes = OutputPipes(self._loop, pipes, self._received)
        self._watched.channel.setblocking(False)
        self._loop.add_reader(self._watched.channel, self._receive)

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
        begun = shown = now = self._loop.time()
        while not self._ended.done():
            await asyncio.wait(
                {self._ended}, timeout=nap(limits, now - begun, now - self._pipes.last)
            )
            if self._ended.done():
                break
            now = self._loop.time()
            problem = over(limits, now - begun, now - self._pipes.last)
            if problem:
                await self.end()
                return msgspec.structs.replace(self._result(), problem=problem)
            if now - shown >= limits.live and (news := self._live.take()):
                live(news.decode("utf-8", "replace"))
                shown = now
            if self._wake_watchdog() and self._stopped >= _STOPPED_TOO_OFTEN:
                await self.end()
                return msgspec.structs.replace(self._result(), problem=_STOPPED_PROBLEM)
        return self._result()

    async def ended(self) -> Ended:
        """Wait for the shell itself, however long it takes."""
        return await asyncio.shield(self._ended)

    async def end(self) -> None:
        """End everything the command started: SIGTERM first, then SIGKILL."""
        if not self.running:
            return
        try:
            self._watched.channel.send(protocol.END)
        except OSError:
            self._lost()
        until = self._loop.time() + _ANSWER_WITHIN
        while not self._gone.done() and self._loop.time() < until:
            # The command may stop it at any time.
            self._wake_watchdog()
            await asyncio.wait({self._gone}, timeout=_WAKE_EVERY)
        if not self._gone.done():
            await self._force()
        if self._container:
            from toolwire.tools.shell.docker import end_marked  # noqa: PLC0415 - rare

            await end_marked(self._container, self._mark)

    async def _force(self) -> None:
        """End everything without the watchdog, which does not answer."""
        for _ in range(_FORCE_ROUNDS):
            found = await asyncio.to_thread(kill_stragglers, self._traces())
            self._wake_watchdog()
            if not found or self._gone.done():
                break
            await asyncio.sleep(0.002)
        if self._watchdog:
            signal_each((self._watchdog,), signal.SIGCONT, signal.SIGKILL)
        else:
            self._lost()
        await asyncio.wait({self._gone}, timeout=_ANSWER_WITHIN)
        if not self._gone.done():
            self._lost()

    def _traces(self) -> Traces:
        return Traces(
            watchdog=self._watchdog,
            leader=0 if self._watchdogs.contained else self.pid,
            number=self._watched.number,
            mark=self._mark,
            group=self._group,
        )

    def keep_reading(self, later: Spool) -> None:
        """Send further output of background processes to another spool."""
        self._pipes.read_into(later)

    def members(self) -> tuple[int, ...]:
        """All processes of the command that are alive now."""
        return tuple(below(self._watchdog)) if self._watchdog and self.running else ()

    def abandon(self) -> None:
        """Disconnect without waiting: the watchdog notices and ends what is left."""
        self._watched.channel.close()
        self._pipes.abandon()

    def _result(self) -> Ended:
        return self._ended.result() if self._ended.done() else Ended()

    def _received(self, spool: OutputSink, size: int) -> None:
        if not self._ended.done():
            self._live.note(spool, size)

    def _receive(self) -> None:
        try:
            data, notes, _, _ = self._watched.channel.recvmsg(
                _RECEIVED, socket.CMSG_SPACE(_CREDENTIALS.size)
            )
        except BlockingIOError:
            return
        except OSError:
            data, notes = b"", []
        if not data:
            self._lost()
            return
        sender = _sender(notes)
        self._unread += data
        *lines, rest = bytes(self._unread).split(b"\n")
        self._unread[:] = rest
        for line in lines:
            self._report(line.decode(), sender)

    def _report(self, line: str, sender: int) -> None:
        word, _, rest = line.partition(" ")
        if word == "watching":
            self._watchdog, self._group = protocol.parse_watching(rest)
            # In a namespace it knows itself by another number than ours.
            self._watchdog = sender or self._watchdog
        elif word == "started":
            self.pid = int(rest)
        elif word == "done":
            # Nothing of the command is left: the watchdog is free for another.
            self._loop.remove_reader(self._watched.channel)
            free = msgspec.structs.replace(
                self._watched, watchdog=self._watchdog, group=self._group
            )
            self._watchdogs.take_back(free)
            self._settle()
        elif word == "gone":
            self._done = True
        elif word == "failed":
            # Some covers may be missing.
            self._watched = msgspec.structs.replace(self._watched, covered=0)
            name = _error_name(int(rest))
            self._finish(Ended(problem=f"spawn {self._program} {name}", unstarted=name))
        elif word == "exited":
            self._finish(_from_status(*protocol.parse_exited(rest)))

    def _finish(self, ended: Ended) -> None:
        if not self._ended.done():
            self._pipes.read_what_is_there()
            self._ended.set_result(ended)

    def _lost(self) -> None:
        """The watchdog has exited: after its work, or because it was killed."""
        if self._gone.done():
            return
        if self._watched.channel.fileno() >= 0:
            self._loop.remove_reader(self._watched.channel)
            self._watched.channel.close()
        if self._done:
            self._settle()
        else:
            self._sweep(100)

    def _sweep(self, rounds: int) -> None:
        """End what a killed watchdog can no longer end."""
        self._watchdog = 0
        if kill_stragglers(self._traces()) and rounds:
            self._loop.call_later(0.002, self._sweep, rounds - 1)
            return
        cgroups.remove_left(self._group)
        self._settle()

    def _settle(self) -> None:
        if self._gone.done():
            return
        self._finish(
            Ended(
                signal=signal.SIGKILL,
                problem="the process that watched over the command was killed, "
                "so everything the command had started was ended",
            )
        )
        self._pipes.read_what_is_there()
        self._pipes.close()
        self._gone.set_result(None)

    def _wake_watchdog(self) -> bool:
        """Continue a watchdog that its command stopped; True if it was."""
        if not self.running or not self._watchdog:
            return False
        stopped = is_stopped(self._watchdog)
        self._stopped = self._stopped + _STOPPED if stopped else max(0, self._stopped - 1)
        signal_each((*self._watchdogs.pids[:1], self._watchdog), signal.SIGCONT)
        return stopped


def _order(
    words: Sequence[str],
    directory: Path,
    environ: Mapping[str, str],
    confined: Confined | None,
    program: str,
) -> Order:
    if confined is None:
        return Order(command=words, directory=directory, environ=environ, program=program)
    within = ("-w", str(directory), confined.container) if confined.container else ()
    return Order(
        command=(*confined.prefix, *within, *words),
        directory=directory,
        environ={**environ, **dict(confined.environ)},
        program="" if confined.prefix else program,
        plan=confined.plan or None,
        key=confined.key,
        version=confined.version,
        hidden=confined.hidden,
        frozen=confined.frozen,
    )


def _sender(notes: list[tuple[int, int, bytes]]) -> int:
    """The number of the process that sent a message, as this process knows it."""
    kind = getattr(socket, "SCM_CREDENTIALS", 0)
    for level, type_, data in notes:
        if kind and (level, type_) == (socket.SOL_SOCKET, kind):
            return _CREDENTIALS.unpack(data)[0]
    return 0


def _check_directory(directory: Path) -> None:
    """OSError if a command cannot start there."""
    if not stat.S_ISDIR(directory.stat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _from_status(status: int | None, background: tuple[int, ...]) -> Ended:
    if status is None:
        return Ended(background=background)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return Ended(signal=-code, background=background)
    return Ended(exit_code=code, background=background)


def _error_name(number: int) -> str:
    return errno.errorcode.get(number, str(number))
