"""Several processes on one port: a parent that starts them, and starts them again."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from toolwire.errors import ToolwireError

LISTEN = "TOOLWIRE_WORKER_LISTEN"
"""Descriptors of the listening sockets of a worker, separated by commas."""
CONSOLE = "TOOLWIRE_WORKER_CONSOLE"
"""Port of the worker that has the console."""
PARENT = "TOOLWIRE_WORKER_PARENT"
"""Descriptor of a worker's connection to its parent."""
_READY = b"r"
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 30.0
_STEADY = 60.0
"""Seconds after which a worker's end is not blamed on its start."""
_REMOVED = ("NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


class ParentLine:
    """A worker's connection to its parent; its end means that the parent has gone."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)

    async def ready(self) -> None:
        """Reports that the worker answers requests."""
        await asyncio.get_running_loop().sock_sendall(self._socket, _READY)

    async def gone(self) -> None:
        """Waits for the end of the parent."""
        with suppress(OSError):
            while await asyncio.get_running_loop().sock_recv(self._socket, 16):
                pass


class _Worker:
    """One place for a process, and the process that has it."""

    def __init__(self, number: int, sockets: Sequence[socket.socket]) -> None:
        self.number = number
        self.sockets = sockets
        self.process: asyncio.subprocess.Process | None = None
        self.ready = asyncio.Event()


class Workers:
    """Runs a command in several processes until it is stopped."""

    def __init__(
        self,
        command: Sequence[str],
        sockets: Sequence[Sequence[socket.socket]],
        *,
        environ: Mapping[str, str],
        notice: Callable[[str], None],
        first_wait: float = _FIRST_WAIT,
    ) -> None:
        self._command = command
        self._places = [_Worker(number, each) for number, each in enumerate(sockets, 1)]
        self._environ = {name: value for name, value in environ.items() if name not in _REMOVED}
        self._notice = notice
        self._first_wait = first_wait
        self._stopping = asyncio.Event()

    async def run(self, ready: Callable[[], None]) -> int:
        """Calls `ready` once all answer; returns the exit code when all have ended."""
        tasks = [asyncio.create_task(self._kept_running(each)) for each in self._places]
        starting = asyncio.create_task(self._all_ready(ready))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            if any(task.exception() is not None for task in done):
                self.send(signal.SIGTERM)
                self._stopping.set()
            codes = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            starting.cancel()
            await asyncio.gather(starting, *tasks, return_exceptions=True)
        for code in codes:
            if isinstance(code, BaseException):
                raise code
        return max((code for code in codes if isinstance(code, int)), default=0)

    def stop(self, number: int) -> None:
        """Forwards a signal that ends the workers; none is started again."""
        self._stopping.set()
        self.send(number)

    def send(self, number: int) -> None:
        """Sends a signal to every worker."""
        for each in self._places:
            if each.process is not None:
                with suppress(ProcessLookupError):
                    each.process.send_signal(number)

    def pids(self) -> list[int]:
        """The processes that run now."""
        return [each.process.pid for each in self._places if each.process is not None]

    async def _all_ready(self, ready: Callable[[], None]) -> None:
        for each in self._places:
            await each.ready.wait()
        ready()

    async def _kept_running(self, place: _Worker) -> int:
        wait, code = self._first_wait, 0
        while not self._stopping.is_set():
            begun = time.monotonic()
            code = await self._ran(place)
            if self._stopping.is_set():
                break
            if not place.ready.is_set():
                raise ToolwireError(f"a worker ended with {_ending(code)} before it was ready")
            if time.monotonic() - begun > _STEADY:
                wait = self._first_wait
            words = f"worker {place.number} ended with {_ending(code)}"
            self._notice(f"{words}; it is started again in {wait:g} s")
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()
            wait = min(wait * 2, _LONGEST_WAIT)
        return 0 if code == 0 or code < 0 else code

    async def _ran(self, place: _Worker) -> int:
        """Runs one process to its end; returns its exit code, negative for a signal."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        passed = [each.fileno() for each in place.sockets]
        environ = {
            **self._environ,
            LISTEN: ",".join(map(str, passed)),
            PARENT: str(theirs.fileno()),
        }
        try:
            # Its own group: the terminal's Ctrl-C reaches it once, through the parent.
            place.process = await asyncio.create_subprocess_exec(
                *self._command,
                env=environ,
                pass_fds=(*passed, theirs.fileno()),
                process_group=0,
            )
            theirs.close()
            listening = asyncio.create_task(_heard(ours, place.ready))
            try:
                return await place.process.wait()
            finally:
                listening.cancel()
                place.process = None
        finally:
            theirs.close()
            ours.close()


async def _heard(line: socket.socket, ready: asyncio.Event) -> None:
    with suppress(OSError):
        while data := await asyncio.get_running_loop().sock_recv(line, 16):
            if _READY in data:
                ready.set()


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def worker_command(arguments: Sequence[str]) -> list[str]:
    """The command that runs this program with the same arguments."""
    return [sys.executable, "-m", "toolwire", *arguments]


def inherited(environ: Mapping[str, str]) -> tuple[list[int], ParentLine] | None:
    """The descriptors of a worker's sockets and its parent; None in any other process."""
    listed, parent = environ.get(LISTEN, ""), environ.get(PARENT, "")
    if not listed or not parent.isdigit():
        return None
    os.set_inheritable(int(parent), False)
    return [int(each) for each in listed.split(",") if each.isdigit()], ParentLine(int(parent))
