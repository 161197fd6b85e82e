"""Watches over one command: adopts what it leaves behind, and ends all of it on request.

It runs as a process of its own beside every command: a fork of the fork server. When its channel
closes, for whatever reason, it ends everything that the command started. Once nothing of a command
is left, it takes the next.
"""

import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from toolwire.tools.shell.sandbox.launch import Launcher
    from toolwire.tools.shell.sandbox.surroundings import Surroundings

GRACE = 0.1
"""Seconds in which what a finished shell leaves behind may end by itself before it is told of."""
MANNERS = 0.2
"""Seconds between asking (SIGTERM) and insisting (SIGKILL)."""
PATIENCE = 5.0
"""Seconds after which even SIGKILL is given up: the kernel holds the process."""

ORDER = b"o"
"""Comes before the length of an order; the descriptors of both outputs, and of an input if it is
not empty, come along.
"""
END = b"k"
"""Ends a command; one that comes too late means nothing."""

_SET_CHILD_SUBREAPER = 36
_LOCKS_LIMIT = 10
"""A limit that the kernel no longer enforces, which every child inherits: it carries a number by
which what a command started is recognised, though it has another session and environment.
"""
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
# Python ignores these; a handler ends by itself when a process becomes another program.
_IGNORED = tuple(number for number in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", 0)) if number)
_DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_SWEEPS = 500
_NAP = 0.1
"""Seconds for which a command can stop its watchdog."""


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


def is_alive(pid: int) -> bool:
    """Whether a process runs; True where that cannot be seen."""
    if sys.platform != "linux":
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


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


class Watchdog:
    """The loop of the watching process."""

    def __init__(self, line: socket.socket, around: "Surroundings | None" = None) -> None:
        self._line = line
        self._around = around
        self._launcher: Launcher | None = None
        _wake_by(line)
        self._adopts = process_control(_SET_CHILD_SUBREAPER, 1)
        self._wake = _wake_on_child()
        self._shell = 0
        self._status: int | None = None
        for number in _DEAF_TO:
            signal.signal(number, signal.SIG_IGN)

    def serve(self) -> None:
        """Watch over one command after the other, until the channel closes."""
        while (order := self._order()) is not None:
            words, outputs = order
            self._status = None
            try:
                self._shell = self._started(words, outputs)
            except OSError as error:
                self._say(f"failed {error.errno}\ndone")
                continue
            finally:
                for descriptor in outputs:
                    os.close(descriptor)
                os.chdir("/")
            self._say(f"started {self._shell} {os.getpid()}")
            if self._watch():
                return

    def _started(self, order: dict[str, Any], outputs: list[int]) -> int:
        _number(order.get("number", 0))
        plan = order.get("plan")
        if plan is None:
            return _started(order, outputs)
        if self._launcher is None:
            self._launcher = _launcher(plan, self._around)
        program = _program(order)
        return self._launcher.start(order, program, outputs, (*_IGNORED, *_DEAF_TO))

    def _order(self) -> tuple[dict[str, Any], list[int]] | None:
        while True:
            sign, descriptors, _, _ = socket.recv_fds(self._line, 1, 8, _CLOSE_ON_EXEC)
            if not sign:
                return None
            if sign == ORDER:
                break
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        (size,) = struct.unpack("!I", _received(self._line, 4))
        return json.loads(_received(self._line, size)), descriptors

    def _watch(self) -> bool:
        """Stay until nothing of the command is left, or until told to end it.

        True if something is left for good, which must not be taken for a part of the next.
        """
        deadline: float | None = None
        told = False
        while True:
            left = self._reap()
            if not left:
                self._say("done" if told else f"{self._exit([])}\ndone")
                return False
            if self._status is not None and not told:
                deadline = deadline or time.monotonic() + GRACE
                if time.monotonic() >= deadline:
                    self._say(self._exit(self._members()))
                    told = True
            if self._pause(self._patience(deadline, told)):
                return self._end()

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
        ready = select.select([self._line, self._wake], [], [], seconds)[0]
        if self._wake in ready:
            os.read(self._wake, 4096)
        return self._line in ready

    def _end(self) -> bool:
        """End everything; True if something cannot be ended."""
        signal_each(self._members(), signal.SIGTERM, signal.SIGCONT)
        if self._wait_for_all(MANNERS):
            asked = time.monotonic()
            while self._reap() and time.monotonic() < asked + PATIENCE:
                # Stopped first, so that nobody forks away between the look and the blow.
                signal_each(self._members(), signal.SIGSTOP, signal.SIGKILL)
                select.select([self._wake], [], [], 0.01)
        left = self._members() if self._reap() else []
        self._say(f"{self._exit(left)}\n{'gone' if left else 'done'}")
        return bool(left)

    def _wait_for_all(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while left := self._reap():
            rest = until - time.monotonic()
            if rest <= 0:
                return left
            select.select([self._wake], [], [], min(rest, 0.02))
            _drain(self._wake)
        return False

    def _exit(self, left: list[int]) -> str:
        status = "-" if self._status is None else str(self._status)
        return f"exited {status} {','.join(map(str, left))}"

    def _say(self, lines: str) -> None:
        try:
            self._line.sendall(f"{lines}\n".encode())
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


def _wake_by(line: socket.socket) -> None:
    """Let the kernel continue this process, should a command stop it, when the line has news."""
    owner, number = getattr(fcntl, "F_SETOWN", None), getattr(fcntl, "F_SETSIG", None)
    if owner is not None and number is not None:
        fcntl.fcntl(line, owner, os.getpid())
        fcntl.fcntl(line, number, signal.SIGCONT)
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
        _wake_every(_NAP)


def _wake_every(seconds: float) -> None:
    """Have the kernel send SIGCONT all the time: it ends a stop, and costs a running process
    nothing.
    """
    try:
        import ctypes  # noqa: PLC0415 - not every Python has it

        library = ctypes.CDLL(None)
        # A `sigevent`: value, signal, SIGEV_SIGNAL, padding.
        event = ctypes.create_string_buffer(struct.pack("Qii", 0, signal.SIGCONT, 0), 64)
        timer = ctypes.c_void_p()
        pause = (int(seconds), int(seconds % 1 * 1e9))
        times = ctypes.create_string_buffer(struct.pack("llll", *pause, *pause), 32)
        if library.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(timer)) == 0:
            library.timer_settime(timer, 0, times, None)
    except (ImportError, OSError, AttributeError):
        return


def _number(number: int) -> None:
    """Have all that starts from here carry a number."""
    if number and sys.platform == "linux":
        resource.setrlimit(_LOCKS_LIMIT, (number, number))


def number_of(pid: int) -> int:
    """The number a process carries; zero if it has none."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            rows = [line.split() for line in file if line.startswith(b"Max file locks")]
    except OSError:
        return 0
    return int(rows[0][3]) if rows and rows[0][3].isdigit() else 0


def _launcher(plan: dict[str, Any], around: "Surroundings | None") -> "Launcher":
    from toolwire.tools.shell.sandbox.launch import Launcher  # noqa: PLC0415 - for confined commands
    from toolwire.tools.shell.sandbox.surroundings import Surroundings  # noqa: PLC0415 - same

    return Launcher(plan, around or Surroundings())


def _started(order: dict[str, Any], outputs: list[int]) -> int:
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
        setsigdef=(*_IGNORED, *_DEAF_TO),
    )


def _program(order: dict[str, Any]) -> str:
    if order.get("program"):
        return order["program"]
    folders = os.get_exec_path(order["environ"])
    places = [os.path.join(folder, order["command"][0]) for folder in folders]  # noqa: PTH118
    return next((place for place in places if os.access(place, os.X_OK)), places[-1])


def _watch(channel: int, around: "Surroundings | None") -> NoReturn:
    """Be a watchdog, from the fork to the end."""
    try:
        os.setsid()
        gc.enable()
        Watchdog(socket.socket(fileno=channel), around).serve()
    finally:
        os._exit(0)


def serve(line: socket.socket, around: "Surroundings | None" = None) -> None:
    """Fork a watchdog for each channel that comes, until the line closes."""
    _heed_signals()
    _wake_by(line)
    # What a killed watchdog leaves behind comes to us.
    process_control(_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_child()
    gc.disable()
    gc.freeze()
    # Their channels stay open until all is over: the end shows the agent that nothing is left.
    watchdogs: dict[int, int] = {}
    while True:
        ready = select.select([line, wake], [], [])[0]
        if wake in ready:
            _drain(wake)
            _bury(watchdogs)
        if line not in ready:
            continue
        sign, channels, _, _ = socket.recv_fds(line, 1, 1, _CLOSE_ON_EXEC)
        if not sign:
            return
        for channel in channels:
            os.set_inheritable(channel, False)
            try:
                child = os.fork()
                if child == 0:
                    line.close()
                    _close(watchdogs.values())
                    _watch(channel, around)
                watchdogs[child] = channel
                if sys.platform != "linux":
                    # There a send to a dead watchdog must fail: nothing else shows its death.
                    os.close(channel)
                    watchdogs[child] = -1
            except OSError as error:
                os.write(channel, f"failed {error.errno}\ngone\n".encode())
                os.close(channel)


def _heed_signals() -> None:
    """Undo what whoever started us ignores or blocks: a command starts as a fresh process does."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, *_IGNORED}:
        try:
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _bury(watchdogs: dict[int, int]) -> None:
    """Collect watchdogs that have ended, and end what a killed one could not."""
    over: list[int] = []
    for _ in range(_SWEEPS):
        try:
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if pid in watchdogs:
                    over.append(watchdogs.pop(pid))
        except ChildProcessError:
            break
        strays = [one.pid for one in table() if one.parent == os.getpid()]
        strays = [pid for pid in strays if pid not in watchdogs]
        if not strays:
            break
        for stray in strays:
            signal_each((stray, *below(stray)), signal.SIGSTOP, signal.SIGKILL)
        time.sleep(0.01)
    _close(over)


def _close(channels: Iterable[int]) -> None:
    for channel in channels:
        if channel >= 0:
            os.close(channel)


def _received(line: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = line.recv(min(size, 1 << 20))
        if not piece:
            os._exit(0)
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _serve_contained(line: socket.socket, options: dict[str, Any]) -> None:
    from toolwire.tools.shell.sandbox.container import READY, contain  # noqa: PLC0415 - only when needed
    from toolwire.tools.shell.sandbox.surroundings import Surroundings  # noqa: PLC0415 - same

    if options["kind"] == "namespaces":
        contain(line, options, lambda around: serve(line, around))
    line.sendall(READY)
    serve(line, Surroundings(contained=True))


def _main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    # Behind the standard library, for what confines commands.
    sys.path.append(__file__.rsplit("/toolwire/", 1)[0])
    if len(sys.argv) > 2:
        _serve_contained(line, json.loads(sys.argv[2]))
    else:
        serve(line)


if __name__ == "__main__":
    _main()
    os._exit(0)
