"""The executor of one machine: spawned host processes; one that dies is replaced."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.batch.executor import (
    AttemptDone,
    EventQueue,
    ExecutorEvent,
    HostLost,
    HostReady,
    events_of,
)
from toolwire.batch.host_line import Cancel, Greet, Order, Start, StopAll, ends
from toolwire.batch.store import Claim
from toolwire.errors import ToolwireError

_MOST_FAILED_STARTS = 5
_MOST_KILLED_STARTS = 50
_KILL_AFTER = 15.0
HOSTS = "hosts"


class _LocalHost:
    """One host process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running: dict[int, Claim] = {}
        self.ready = asyncio.Event()
        self.out = False
        self.process: asyncio.subprocess.Process | None = None
        self.writer: asyncio.StreamWriter | None = None

    def send(self, order: Order) -> None:
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(msgspec.json.encode(order) + b"\n")


class LocalExecutor:
    """Hosts on this machine: one per core, as many attempts as slots in all."""

    def __init__(
        self, out: Path, *, hosts: int, slots: int, batch: str, upstream: str = ""
    ) -> None:
        self.slots = slots
        self._out = out
        self._batch = batch
        self._upstream = upstream
        self._count = min(hosts, slots)
        self._hosts: dict[str, _LocalHost] = {}
        self._events: EventQueue = asyncio.Queue()
        self._keeping: set[asyncio.Task[None]] = set()
        self._pending: list[Claim] = []
        """Attempts that wait for a host to be started."""
        self._closing = False
        self._number = 0
        self._failed_starts = 0
        self._machine = socket.gethostname()

    async def open(self) -> None:
        """Starts the hosts; they take attempts as soon as they are ready."""
        for _ in range(self._count):
            self._spawn()

    def _spawn(self) -> None:
        self._number += 1
        host = _LocalHost(f"{self._machine}/{self._number}")
        self._hosts[host.name] = host
        host.running = {claim.n: claim for claim in self._pending}
        self._pending.clear()
        task = asyncio.create_task(self._kept(host))
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)

    async def _kept(self, host: _LocalHost) -> None:
        """Runs one host process to its end, and starts another in its place."""
        try:
            code = await self._ran(host)
        except OSError as error:
            self._events.put_nowait(ToolwireError(f"a host cannot be started: {error}"))
            return
        del self._hosts[host.name]
        if self._closing and not host.running:
            return
        lost = tuple(host.running)
        self._events.put_nowait(HostLost(host.name, lost, f"the host ended with {_ending(code)}"))
        if self._closing or host.out:
            return
        self._failed_starts = 0 if host.ready.is_set() else self._failed_starts + 1
        # A signal comes from outside: it says less about the next start than an exit does.
        most = _MOST_FAILED_STARTS if code >= 0 else _MOST_KILLED_STARTS
        if self._failed_starts >= most:
            self._events.put_nowait(
                ToolwireError(f"hosts end with {_ending(code)} before they are ready")
            )
            return
        await asyncio.sleep(0.1 * 2 ** min(self._failed_starts, 6) if self._failed_starts else 0)
        self._spawn()

    async def _ran(self, host: _LocalHost) -> int:
        ours, theirs = socket.socketpair()
        program = (sys.executable, "-P", "-m", "toolwire.batch.host_process")
        log = self._out / "hosts.log"
        with log.open("ab") as errors:
            host.process = await asyncio.create_subprocess_exec(
                *program,
                str(self._out),
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "TOOLWIRE_BATCH": self._batch},
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
        theirs.close()
        note = self._out / HOSTS / str(host.process.pid)
        note.parent.mkdir(exist_ok=True)
        note.write_text(host.name)
        reader, host.writer = await asyncio.open_connection(sock=ours)
        host.send(Greet(host.name, self._upstream))
        for claim in host.running.values():
            host.send(Start(claim))
        if self._closing:
            host.writer.write_eof()
        try:
            await self._listen(host, reader)
            return await host.process.wait()
        finally:
            host.writer.close()
            note.unlink(missing_ok=True)

    async def _listen(self, host: _LocalHost, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while text := await reader.readline():
                n = ends.decode(text).n
                if n:
                    host.running.pop(n, None)
                    self._events.put_nowait(AttemptDone(n, host.name))
                else:
                    host.ready.set()
                    self._events.put_nowait(HostReady(host.name))

    async def submit(self, claim: Claim, avoid: str = "") -> None:
        """Runs an attempt on the host with the fewest."""
        hosts = [host for host in self._hosts.values() if not host.out]
        others = [host for host in hosts if host.name != avoid] or hosts
        if not others:
            # All of them died just now; their successors are being started.
            self._pending.append(claim)
            return
        host = min(others, key=lambda one: (not one.ready.is_set(), len(one.running)))
        host.running[claim.n] = claim
        host.send(Start(claim))

    def events(self) -> AsyncIterator[ExecutorEvent]:
        """What happens, until it is closed."""
        return events_of(self._events)

    async def cancel(self, n: int) -> None:
        """Ends an attempt."""
        for host in self._hosts.values():
            if n in host.running:
                host.send(Cancel(n))

    async def take_out(self, host: str) -> None:
        """Gives a host no more attempts."""
        if host in self._hosts:
            self._hosts[host].out = True

    async def stop(self, *, hard: bool) -> None:
        """Ends all attempts at their next record, or now."""
        for host in self._hosts.values():
            host.send(StopAll(hard))

    async def close(self, grace: float = _KILL_AFTER) -> None:
        """Ends the hosts; those that do not end by themselves are killed."""
        self._closing = True
        for host in tuple(self._hosts.values()):
            if host.writer is not None:
                with suppress(OSError, RuntimeError):
                    host.writer.write_eof()
        if self._keeping:
            await asyncio.wait(tuple(self._keeping), timeout=grace)
        for host in tuple(self._hosts.values()):
            if host.process is not None:
                with suppress(ProcessLookupError):
                    host.process.kill()
        if self._keeping:
            await asyncio.wait(tuple(self._keeping), timeout=_KILL_AFTER)
        self._events.put_nowait(None)


def _ending(code: int) -> str:
    return f"code {code}" if code >= 0 else f"signal {-code}"
