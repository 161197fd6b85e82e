"""Watches over one command: adopts what it leaves behind, and ends all of it on request.

It runs as a process of its own beside every command: a fork of the fork server. When its channel
closes, for any reason, it ends everything that the command started. Once nothing of a command is
left, it takes the next. It is in the control group of its commands, which inherit that; only to
kill the group does it leave.
"""

import os
import resource
import select
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from toolwire.tools.shell import cgroups, protocol
from toolwire.tools.shell.process_table import below, kill_below, signal_each
from toolwire.tools.shell.protocol import EXIT_GRACE, KILL_SECONDS, TERM_SECONDS
from toolwire.tools.shell.signals import (
    DEAF_TO,
    IGNORED,
    adopt_orphans,
    drain,
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
    """The loop of the watching process."""

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
        """Watch over one command after the other, until the channel closes."""
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
            self._send(protocol.started(self._shell, os.getpid(), self._group))
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
        """Stay until nothing of the command is left, or until its end is requested.

        True if something is left for good, which must not be taken for a part of the next.
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
        """Collect the dead; True while something lives."""
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
        """Wait for a child's end, the time, or a message; True for a message."""
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
        """Kill everything: the group as a whole, and what is not in it, one by one."""
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
            return  # the agent is gone; the loop sees that by itself


def _set_number(number: int) -> None:
    """Have all that starts from here carry a number."""
    if number and sys.platform == "linux":
        resource.setrlimit(_LOCKS_LIMIT, (number, number))


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
