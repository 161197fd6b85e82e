"""The fork server and its forks: a watchdog adopts what a command leaves behind, and ends it.

A watchdog is a process of its own beside every command. When its channel closes, for any reason,
it ends everything that the command started. Once nothing of a command is left, it takes the next.
It is in the control group of its commands, which inherit that; only to kill the group does it
leave.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from toolwire.platform.posix import resource
from toolwire.tools.shell import cgroups, protocol
from toolwire.tools.shell.process_table import below, kill_below, signal_each
from toolwire.tools.shell.protocol import (
    DEAF_TO,
    EXIT_GRACE,
    IGNORED,
    KILL_SECONDS,
    TERM_SECONDS,
    adopt_orphans,
    drain,
    reset_signals,
    resume_by,
    wake_on_child,
)

if TYPE_CHECKING:
    from toolwire.tools.shell.sandbox.launch import Launcher
    from toolwire.tools.shell.sandbox.system import Surroundings

_LOCKS_LIMIT = 10
"""A limit that the kernel no longer enforces, which every child inherits: it carries a number by
which what a command started is recognised, though it has another session and environment.
"""
_BETWEEN_KILLS = 0.002


class Watchdog:
    """The main loop of a watchdog."""

    def __init__(
        self,
        line: socket.socket,
        around: "Surroundings | None" = None,
        *,
        group: str = "",
        outside: str = "",
    ) -> None:
        self._line = line
        self._around = around
        self._outside = outside
        self._group = group if cgroups.enter(group) else ""
        self._launcher: Launcher | None = None
        resume_by(line)
        self._adopts = adopt_orphans()
        self._wake = wake_on_child()
        self._shell = 0
        self._status: int | None = None
        for number in DEAF_TO:
            signal.signal(number, signal.SIG_IGN)

    def serve(self) -> None:
        """Supervise one command after another until the channel closes."""
        self._send(protocol.watching(os.getpid(), self._group))
        while (received := protocol.receive_order(self._line)) is not None:
            order, outputs = received
            self._status = None
            try:
                self._shell = self._start(order, outputs)
            except OSError as error:
                self._send(protocol.failed(error), "done")
                continue
            finally:
                for descriptor in outputs:
                    os.close(descriptor)
                os.chdir("/")
            self._send(protocol.started(self._shell))
            if self._watch():
                return

    def _start(self, order: dict[str, Any], outputs: list[int]) -> int:
        _set_number(order.get("number", 0))
        plan = order.get("plan")
        if plan is None:
            return _spawned(order, outputs)
        if self._launcher is None:
            self._launcher = _launcher(plan, self._around)
        program = _program(order)
        return self._launcher.start(order, program, outputs, (*IGNORED, *DEAF_TO))

    def _watch(self) -> bool:
        """Wait until nothing of the command is left, or its end is requested. True if something
        cannot be ended, which must not be mistaken for part of the next command.
        """
        deadline: float | None = None
        reported = False
        while True:
            left = self._reap()
            if not left:
                self._send(*(() if reported else (self._exited([]),)), "done")
                return False
            if self._status is not None and not reported:
                deadline = deadline or time.monotonic() + EXIT_GRACE
                if time.monotonic() >= deadline:
                    self._send(self._exited(self._members()))
                    reported = True
            if self._pause(self._pause_seconds(deadline, reported)):
                return self._end()

    def _pause_seconds(self, deadline: float | None, reported: bool) -> float | None:
        if not reported and deadline is not None:
            return max(0.0, deadline - time.monotonic())
        return None if self._adopts or not reported else 0.2

    def _members(self) -> list[int]:
        return below(os.getpid(), group=0 if self._adopts else self._shell)

    def _reap(self) -> bool:
        """Reap ended children; True while any process is alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._adopts and bool(self._members())
            if pid == 0:
                return True
            if pid == self._shell:
                self._status = status

    def _pause(self, seconds: float | None) -> bool:
        """Wait for a child to end, the timeout, or a message; True for a message."""
        ready = select.select([self._line, self._wake], [], [], seconds)[0]
        if self._wake in ready:
            drain(self._wake)
        return self._line in ready

    def _end(self) -> bool:
        """End everything; True if something cannot be ended."""
        signal_each(self._members(), signal.SIGTERM, signal.SIGCONT)
        if self._wait_for_all(TERM_SECONDS):
            self._kill()
        left = self._members() if self._reap() else []
        self._send(self._exited(left), "gone" if left else "done")
        return bool(left)

    def _kill(self) -> None:
        """Kill everything: the group at once, processes outside it one by one."""
        left_group = cgroups.enter(self._outside) if self._group else False
        until = time.monotonic() + KILL_SECONDS
        while self._reap() and time.monotonic() < until:
            if left_group:
                cgroups.kill(self._group)
            if self._adopts:
                kill_below(os.getpid())
            else:
                signal_each(self._members(), signal.SIGSTOP, signal.SIGKILL)
            select.select([self._wake], [], [], _BETWEEN_KILLS)
            drain(self._wake)
        if left_group and not cgroups.enter(self._group):
            self._group = ""
            self._send(protocol.watching(os.getpid(), ""))

    def _wait_for_all(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while left := self._reap():
            rest = until - time.monotonic()
            if rest <= 0:
                return left
            select.select([self._wake], [], [], min(rest, 0.02))
            drain(self._wake)
        return False

    def _exited(self, left: list[int]) -> str:
        return protocol.exited(self._status, left)

    def _send(self, *lines: str) -> None:
        try:
            self._line.sendall("".join(f"{line}\n" for line in lines).encode())
        except OSError:
            return  # the agent has exited; the loop notices that


def _set_number(number: int) -> None:
    """Mark every process started from here with a number."""
    if number and sys.platform == "linux":
        try:
            resource.setrlimit(_LOCKS_LIMIT, (number, number))
        except ValueError:
            return  # refused where the system's own limit is lower; other traces have to do


def _launcher(plan: dict[str, Any], around: "Surroundings | None") -> "Launcher":
    from toolwire.tools.shell.sandbox.launch import Launcher  # noqa: PLC0415 - for confined commands
    from toolwire.tools.shell.sandbox.system import Surroundings  # noqa: PLC0415 - same

    return Launcher(plan, around or Surroundings())


def _spawned(order: dict[str, Any], outputs: list[int]) -> int:
    """Start a command: own session and group, signals as a fresh process has."""
    actions = [
        (os.POSIX_SPAWN_DUP2, each, to) for each, to in zip(outputs, (1, 2, 0), strict=False)
    ]
    os.chdir(order["directory"])
    return os.posix_spawn(
        _program(order),
        order["command"],
        order["environ"],
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=(*IGNORED, *DEAF_TO),
    )


def _program(order: dict[str, Any]) -> str:
    if order.get("program"):
        return order["program"]
    folders = os.get_exec_path(order["environ"])
    paths = [os.path.join(folder, order["command"][0]) for folder in folders]
    return next((path for path in paths if os.access(path, os.X_OK)), paths[-1])


_END_SECONDS = protocol.TERM_SECONDS + 1.3
"""Time for watchdogs to end their commands after the agent exits, before they are killed."""


class _Forked:
    """A watchdog: our copy of its channel, and its control group."""

    def __init__(self, channel: int, group: str) -> None:
        self.channel = channel
        self.group = group


class _ForkServer:
    def __init__(self, line: socket.socket, around: "Surroundings | None") -> None:
        self._line = line
        self._around = around
        # In a process namespace the kernel ends everything.
        self._groups = None if around is not None and around.contained else cgroups.Groups()
        # Channels stay open until all is over: the end shows the agent that nothing is left.
        self._watchdogs: dict[int, _Forked] = {}
        self._wake = wake_on_child()

    def serve(self) -> None:
        while True:
            ready = select.select([self._line, self._wake], [], [])[0]
            if self._wake in ready:
                drain(self._wake)
                self._reap()
            if self._line not in ready:
                continue
            sign, channels = protocol.receive(self._line)
            if not sign:
                return
            for channel in channels:
                self._fork(channel)

    def close(self) -> None:
        """End all commands, and kill those that do not exit."""
        if self._groups is None:
            return
        for one in self._watchdogs.values():
            _shut(one.channel)
        until = time.monotonic() + _END_SECONDS
        while self._watchdogs and (rest := until - time.monotonic()) > 0:
            select.select([self._wake], [], [], rest)
            drain(self._wake)
            self._reap()
        self._groups.close()
        self._watchdogs = {}
        self._reap()

    def _fork(self, channel: int) -> None:
        group = self._groups.add() if self._groups is not None else ""
        try:
            child = os.fork()
            if child == 0:
                self._line.close()
                _close(one.channel for one in self._watchdogs.values())
                self._watch(channel, group)
        except OSError as error:
            os.write(channel, f"{protocol.failed(error)}\ngone\n".encode())
            os.close(channel)
            cgroups.remove(group)
            return
        if sys.platform != "linux":
            # There, a send to a dead watchdog must fail: nothing else reveals that it ended.
            os.close(channel)
            channel = -1
        self._watchdogs[child] = _Forked(channel, group)

    def _watch(self, channel: int, group: str) -> NoReturn:
        """Run as a watchdog until exit."""
        server = os.getppid()
        outside = self._groups.outside if self._groups is not None else ""
        try:
            os.setsid()
            gc.enable()
            line = socket.socket(fileno=channel)
            Watchdog(line, self._around, group=group, outside=outside).serve()
            if os.getppid() != server:
                cgroups.leave(group, outside)
        finally:
            os._exit(0)

    def _reap(self) -> None:
        """Reap ended watchdogs, and end what a killed one could not."""
        over: list[_Forked] = []
        until = time.monotonic() + protocol.KILL_SECONDS
        while True:
            over += self._collected()
            if not kill_below(os.getpid(), self._watchdogs) or time.monotonic() > until:
                break
            time.sleep(_BETWEEN_KILLS)
        for one in over:
            cgroups.remove(one.group)
        _close(one.channel for one in over)

    def _collected(self) -> list[_Forked]:
        found: list[_Forked] = []
        try:
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                one = self._watchdogs.pop(pid, None)
                if one is not None:
                    cgroups.kill(one.group)
                    found.append(one)
        except ChildProcessError:
            return found
        return found


def serve_forks(line: socket.socket, around: "Surroundings | None" = None) -> None:
    """Fork a watchdog for each channel that is received, until the line closes."""
    reset_signals()
    resume_by(line)
    # Processes of a killed watchdog become our children.
    adopt_orphans()
    gc.disable()
    gc.freeze()
    server = _ForkServer(line, around)
    server.serve()
    server.close()


def _shut(channel: int) -> None:
    """Make the watchdog see the end of its channel, as if the agent had closed it."""
    if channel >= 0:
        with socket.socket(fileno=os.dup(channel)) as line:
            try:
                line.shutdown(socket.SHUT_RD)
            except OSError:
                return


def _close(channels: Iterable[int]) -> None:
    for channel in channels:
        if channel >= 0:
            os.close(channel)


def _serve_contained(line: socket.socket, options: dict[str, Any]) -> None:
    from toolwire.tools.shell.sandbox.container import contain  # noqa: PLC0415 - only when needed
    from toolwire.tools.shell.sandbox.system import Surroundings  # noqa: PLC0415 - same

    if options["kind"] == "namespaces":
        contain(line, options, lambda around: serve_forks(line, around))
    line.sendall(protocol.READY)
    serve_forks(line, Surroundings(contained=True))


def main(line: int, options: str = "") -> NoReturn:
    """Run as a fork server, in its own namespaces if there are options."""
    try:
        if options:
            _serve_contained(socket.socket(fileno=line), json.loads(options))
        else:
            serve_forks(socket.socket(fileno=line))
    finally:
        os._exit(0)
