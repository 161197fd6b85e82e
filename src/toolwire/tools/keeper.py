"""Watches over one command: adopts what it leaves behind, and ends all of it when told to.

It runs as a process of its own beside every command: a fork of one that stands ready. When its
channel closes, for whatever reason, it ends everything that the command started.
"""

import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NoReturn

GRACE = 0.1
"""Seconds in which what a finished shell leaves behind may end by itself before it is told of."""
MANNERS = 0.2
"""Seconds between asking (SIGTERM) and insisting (SIGKILL)."""
PATIENCE = 5.0
"""Seconds after which even SIGKILL is given up: the kernel holds the process."""

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
# Python ignores these; a handler ends by itself when a process becomes another program.
_IGNORED = tuple(number for number in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", 0)) if number)


class Process:
    """One line of the process table."""

    __slots__ = ("group", "parent", "pid", "session", "state")

    def __init__(self, pid: int, state: str, parent: int, group: int, session: int) -> None:
        self.pid = pid
        self.state = state
        self.parent = parent
        self.group = group
        self.session = session


def table() -> list[Process]:
    """Every process of the system that can be seen."""
    if not os.path.exists("/proc/self/stat"):  # noqa: PTH110 - pathlib is slow to load
        return _table_by_ps()
    found: list[Process] = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to load
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - same
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 3:
            parent, group, session = (int(field) for field in fields[1:4])
            found.append(Process(int(name), fields[0].decode(), parent, group, session))
    return found


def _table_by_ps() -> list[Process]:
    import subprocess  # noqa: PLC0415 - slow to load, and only for systems without /proc

    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,stat=,ppid=,pgid="],  # noqa: S607 - part of every system
        capture_output=True,
        text=True,
        check=False,
    )
    rows = (line.split() for line in listed.stdout.splitlines())
    return [Process(int(r[0]), r[1][:1], int(r[2]), int(r[3]), 0) for r in rows if len(r) == 4]


def below(root: int, *, group: int = 0) -> list[int]:
    """Living processes that descend from `root`, and members of the group if one is given."""
    children: dict[int, list[Process]] = {}
    found: dict[int, None] = {}
    for process in table():
        children.setdefault(process.parent, []).append(process)
        if group and process.group == group and process.state != "Z":
            found[process.pid] = None
    open_ = [root]
    while open_:
        for process in children.get(open_.pop(), ()):
            open_.append(process.pid)
            if process.state != "Z":
                found[process.pid] = None
    return sorted(found)


def signal_each(pids: Iterable[int], *numbers: int) -> None:
    """Send signals to processes; one that is gone is no matter."""
    pids = tuple(pids)
    for number in numbers:
        for pid in pids:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue


def process_control(option: int, value: int) -> bool:
    """Call Linux's `prctl`; False where there is none."""
    control = _prctl()
    return control is not None and control(option, value, 0, 0, 0) == 0


@lru_cache(maxsize=1)
def _prctl() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    try:
        import ctypes  # noqa: PLC0415 - not every Python has it

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


class Keeper:
    """The loop of the watching process."""

    def __init__(self, channel: int, command: list[str], environ: dict[str, str]) -> None:
        self._channel = channel
        self._adopts = process_control(_SET_CHILD_SUBREAPER, 1)
        self._wake = _wake_on_child()
        self._status: int | None = None
        self._shell = os.fork()
        if self._shell == 0:
            _become(command, environ, channel)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        self._say(f"started {self._shell} {os.getpid()}")

    def watch(self) -> None:
        """Stay until nothing of the command is left, or until told to end it."""
        self._watch()
        self._say("done")

    def _watch(self) -> None:
        deadline: float | None = None
        told = False
        while True:
            left = self._reap()
            if self._status is not None and not told:
                deadline = deadline or time.monotonic() + GRACE
                if not left or time.monotonic() >= deadline:
                    self._say_exit(self._members() if left else [])
                    told = True
            if told and not left:
                return
            if self._pause(self._patience(deadline, told)):
                self._end()
                return

    def _patience(self, deadline: float | None, told: bool) -> float | None:
        if not told and deadline is not None:
            return max(0.0, deadline - time.monotonic())
        return None if self._adopts or not told else 0.2

    def _members(self) -> list[int]:
        return below(os.getpid(), group=0 if self._adopts else self._shell)

    def _reap(self) -> bool:
        """Collect the dead; True while somebody lives."""
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
        """Wait for a child's end, the time, or an order; True for an order."""
        ready = select.select([self._channel, self._wake], [], [], seconds)[0]
        if self._wake in ready:
            os.read(self._wake, 4096)
        return self._channel in ready

    def _end(self) -> None:
        signal_each(self._members(), signal.SIGTERM, signal.SIGCONT)
        if self._wait_for_all(MANNERS):
            asked = time.monotonic()
            while self._reap() and time.monotonic() < asked + PATIENCE:
                # Stopped first, so that nobody forks away between the look and the blow.
                signal_each(self._members(), signal.SIGSTOP, signal.SIGKILL)
                select.select([self._wake], [], [], 0.01)
        self._say_exit(self._members())

    def _wait_for_all(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while left := self._reap():
            rest = until - time.monotonic()
            if rest <= 0:
                return left
            select.select([self._wake], [], [], min(rest, 0.02))
            _drain(self._wake)
        return False

    def _say_exit(self, left: list[int]) -> None:
        status = "" if self._status is None else str(self._status)
        self._say(f"exited {status or '-'} {','.join(map(str, left))}")

    def _say(self, line: str) -> None:
        try:
            os.write(self._channel, f"{line}\n".encode())
        except OSError:
            return  # nobody listens any more; the loop sees that by itself


def _wake_on_child() -> int:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    return reading


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        return


def _become(command: list[str], environ: dict[str, str], channel: int) -> NoReturn:
    """Turn this fork into the command: own session and group, signals as a fresh process has."""
    try:
        os.setsid()
        process_control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(command[0], command, environ)  # noqa: S606 - no shell in between is the point
    except OSError as error:
        os.write(channel, f"failed {error.errno}\n".encode())
    finally:
        os._exit(127)


def _keep(order: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the keeper of one command, from the fork to the end."""
    channel, out, err = descriptors
    try:
        os.setsid()
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        os.chdir(order["directory"])
        Keeper(channel, order["command"], order["environ"]).watch()
    except OSError as error:
        os.write(channel, f"failed {error.errno}\ndone\n".encode())
    finally:
        os._exit(0)


def stand_ready(line: socket.socket) -> None:
    """Fork a keeper for each order that comes, until the line closes."""
    _heed_signals()
    signal.signal(signal.SIGCHLD, lambda number, frame: _bury())
    _prctl()
    gc.disable()
    gc.freeze()
    while True:
        head, descriptors, _, _ = socket.recv_fds(line, 4, 8, _CLOSE_ON_EXEC)
        if not head:
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        (size,) = struct.unpack("!I", head + _received(line, 4 - len(head)))
        order = json.loads(_received(line, size))
        try:
            child = os.fork()
        except OSError as error:
            os.write(descriptors[0], f"failed {error.errno}\ndone\n".encode())
            child = -1
        if child == 0:
            line.close()
            _keep(order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _heed_signals() -> None:
    """Undo what whoever started us ignores or blocks: a command starts as a fresh process does."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, *_IGNORED}:
        try:
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _bury() -> None:
    """Collect keepers that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def _received(line: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = line.recv(min(size, 1 << 20))
        if not piece:
            os._exit(0)
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


if __name__ == "__main__":
    stand_ready(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
