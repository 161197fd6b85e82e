"""Forks a watchdog for each command, and ends what a killed or stopped watchdog cannot.

Python starts only once for all of them. Standard library only: it runs in a bare interpreter.
"""

import gc
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from toolwire.tools.shell import cgroups, protocol
from toolwire.tools.shell.process_table import kill_below
from toolwire.tools.shell.signals import (
    adopt_orphans,
    drain,
    reset_signals,
    resume_by,
    wake_on_child,
)
from toolwire.tools.shell.watchdog import Watchdog

if TYPE_CHECKING:
    from toolwire.tools.shell.sandbox.system import Surroundings

_END_SECONDS = protocol.TERM_SECONDS + 1.3
"""In which watchdogs end their commands once the agent is gone, before they are killed."""
_BETWEEN_KILLS = 0.002


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
        """Have all commands end, and kill those that do not."""
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
            # There a send to a dead watchdog must fail: nothing else shows its death.
            os.close(channel)
            channel = -1
        self._watchdogs[child] = _Forked(channel, group)

    def _watch(self, channel: int, group: str) -> NoReturn:
        """Be a watchdog, from the fork to the end."""
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
        """Collect watchdogs that have ended, and end what a killed one could not."""
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
    # What a killed watchdog leaves behind becomes a child of ours.
    adopt_orphans()
    gc.disable()
    gc.freeze()
    server = _ForkServer(line, around)
    server.serve()
    server.close()


def _shut(channel: int) -> None:
    """Have the watchdog read the end of its channel, as if the agent had closed it."""
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
    """Be a fork server, in namespaces of its own if there are options."""
    try:
        if options:
            _serve_contained(socket.socket(fileno=line), json.loads(options))
        else:
            serve_forks(socket.socket(fileno=line))
    finally:
        os._exit(0)
