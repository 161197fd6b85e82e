"""Fork servers of watchdogs: Python starts only once, in the open or in namespaces of its own.

What lives of a command that its watchdog cannot end is found by its traces and ended here.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.shell import cgroups, protocol
from toolwire.tools.shell.environment import MARK, hide_environment
from toolwire.tools.shell.process_table import (
    Process,
    is_alive,
    kill_below,
    newest_first,
    newest_orphans,
    number_of,
    signal_each,
)

_SPARE = 2
"""Idle watchdogs of one plan."""
_START_WITHIN = 20.0
_CLOSE_WITHIN = 10.0
# Imported, not run as a file, which would be compiled each time. Its path is behind the library's.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from toolwire.tools.shell.fork_server import main; main(int(sys.argv[2]), *sys.argv[3:])"
)
_PACKAGES = str(Path(protocol.__file__).parents[3])
_CREDENTIALS = getattr(socket, "SO_PASSCRED", 0)


class NotContained(OSError):
    """The system refuses the namespaces of a sandbox."""


class Watched(msgspec.Struct, frozen=True, eq=False):
    """Connection to the watchdog of a command."""

    channel: socket.socket
    watchdog: int = 0
    """Its process id; zero until it has reported."""
    group: str = ""
    """The control group of its commands, known as soon as its process id is."""
    number: int = 0
    """The marker that every process of its commands inherits; zero if unsupported."""
    plan: str = ""
    """How its commands are confined."""
    covered: int = 0
    """The version of the covers it has made."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A command for a watchdog to start."""

    command: Sequence[str]
    directory: Path
    environ: Mapping[str, str]
    program: str = ""
    """The path of the program; empty to look it up by its name."""
    plan: JsonObject | None = None
    """How it is confined; the same for every command of one watchdog."""
    key: str = ""
    """The plan as text."""
    version: int = 0
    """Of the covers."""
    hidden: Sequence[str] = ()
    frozen: Sequence[str] = ()

    def message(self, watched: Watched) -> bytes:
        """As the watchdog reads it: without covers that it has made."""
        body: JsonObject = {
            "command": list(self.command),
            "program": self.program,
            "directory": str(self.directory),
            "environ": dict(self.environ),
            "number": watched.number,
            "plan": self.plan,
        }
        if self.version != watched.covered:
            body |= {"hidden": list(self.hidden), "frozen": list(self.frozen)}
        return protocol.encode_order(body)


def _new_number() -> int:
    """A marker lower than that of a command which we are part of: only root may raise a limit."""
    own = number_of(os.getpid())
    return (own if own > 1 << 57 else 1 << 61) - 1 - int.from_bytes(os.urandom(7))


class Watchdogs:
    """Starts commands with a watchdog beside each; safe to use from any thread."""

    def __init__(self, prefix: Sequence[str] = (), options: JsonObject | None = None) -> None:
        """With options, the fork server creates its own namespaces; `prefix` runs it in others."""
        self._prefix = prefix
        self._options = options
        self._lock = threading.Lock()
        self._owner = 0
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._spare: list[Watched] = []

    @property
    def contained(self) -> bool:
        """Whether its commands have their own process ids."""
        return self._options is not None

    def start(self, order: Order, writers: Sequence[int]) -> Watched:
        """Start a command through a watchdog, which reports on the channel. OSError if no watchdog
        can be started.
        """
        with self._lock:
            self._own()
            if self._process is not None and self._process.poll() is not None:
                # Orphans of its watchdogs would be adopted by a process other than ours.
                self._close()
            # A command that stopped one of them must not block us.
            signal_each(self._pids(), signal.SIGCONT)
            for watched in [one for one in self._spare if one.plan == order.key]:
                self._spare.remove(watched)
                if not is_alive(watched.watchdog):
                    watched.channel.close()
                elif _sent(watched.channel, order.message(watched), writers):
                    return msgspec.structs.replace(watched, covered=order.version)
            watched = self._fresh(order.key)
            if not _sent(watched.channel, order.message(watched), writers):
                # The fork server was killed just now.
                self._close()
                watched = self._fresh(order.key)
                if not _sent(watched.channel, order.message(watched), writers):
                    raise ConnectionResetError
            return msgspec.structs.replace(watched, covered=order.version)

    def open(self) -> None:
        """Start the fork server; NotContained if the system refuses its namespaces."""
        with self._lock:
            self._own()
            self._ready()

    def take_back(self, watched: Watched) -> None:
        """Return an idle watchdog to the pool."""
        watched.channel.setblocking(True)
        with self._lock:
            waiting = sum(one.plan == watched.plan for one in self._spare)
            if watched.watchdog and self._owner == os.getpid() and waiting < _SPARE:
                self._spare.append(watched)
            else:
                watched.channel.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the fork server, if it runs, and of idle watchdogs."""
        return self._pids()

    def _pids(self) -> tuple[int, ...]:
        ready = (self._process.pid,) if self._process is not None else ()
        return (*ready, *(watched.watchdog for watched in self._spare))

    def close(self) -> None:
        """End all of them, with their commands."""
        with self._lock:
            self._own()
            self._close()

    def _own(self) -> None:
        """A forked child must not use the same connections."""
        if self._owner != os.getpid():
            self._line, self._process, self._spare = None, None, []
            self._owner = os.getpid()

    def _fresh(self, plan: str) -> Watched:
        """A new watchdog, which may turn out to be dead."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                if _CREDENTIALS:
                    ours.setsockopt(socket.SOL_SOCKET, _CREDENTIALS, 1)
                line = self._ready()
                if not _sent(line, protocol.FORK, (theirs.fileno(),)):
                    self._close()
                    _sent(self._ready(), protocol.FORK, (theirs.fileno(),))
            except BaseException:
                ours.close()
                raise
        return Watched(ours, number=_new_number(), plan=plan)

    def _ready(self) -> socket.socket:
        if self._line is None:
            hide_environment()
            ours, theirs = socket.socketpair()
            try:
                self._process = self._serve(theirs.fileno())
                theirs.close()
                if self._options is not None:
                    _await_ready(ours)
            except BaseException:
                ours.close()
                if self._process is not None:
                    self._process.wait()
                    self._process = None
                raise
            finally:
                theirs.close()
            self._line = ours
            atexit.register(self.close)
        return self._line

    def _close(self) -> None:
        atexit.unregister(self.close)
        for watched in self._spare:
            watched.channel.close()
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            signal_each((self._process.pid,), signal.SIGCONT)
            try:
                self._process.wait(_CLOSE_WITHIN)
            except subprocess.TimeoutExpired:  # something keeps stopping it
                self._process.kill()
                self._process.wait()
            if self._process.returncode:
                cgroups.remove_stale(cgroups.own_group())
        self._line, self._process, self._spare = None, None, []

    def _serve(self, line: int) -> subprocess.Popen[bytes]:
        python = [sys.executable, "-I", "-S", "-c", _PROGRAM, _PACKAGES]
        words = [*self._prefix, *python, str(line)]
        if self._options is not None:
            words.append(json.dumps(self._options))
        return subprocess.Popen(  # noqa: S603 - our own file, by our own Python
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(line,),
            cwd="/",
            env={},
            start_new_session=True,
        )


def _await_ready(line: socket.socket) -> None:
    line.settimeout(_START_WITHIN)
    received = b""
    while not received.endswith(b"\n"):
        try:
            piece = line.recv(1000)
        except TimeoutError as error:
            raise NotContained(f"no answer in {_START_WITHIN:g} seconds") from error
        if not piece:
            raise NotContained("the process ended at its start")
        received += piece
    line.settimeout(None)
    if received != protocol.READY:
        raise NotContained(received.decode("utf-8", "replace").removeprefix("no ").strip())


def _sent(line: socket.socket, message: bytes, descriptors: Sequence[int]) -> bool:
    """False, with the connection closed, if the other end has closed."""
    try:
        sent = socket.send_fds(line, [message], descriptors)
        line.sendall(message[sent:])
    except (BrokenPipeError, ConnectionResetError):
        line.close()
        return False
    return True


WATCHDOGS = Watchdogs()
"""The fork server of this process, without namespaces."""


_ORPHAN_ROUNDS = 200


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies the processes of one command."""

    watchdog: int
    """Their ancestor; zero if it is dead."""
    leader: int
    """Id of their session or process group; zero if it differs from ours."""
    number: int
    """The inherited resource limit."""
    mark: str
    """The inherited variable."""
    group: str
    """The control group that they are in; empty if there is none."""


def kill_stragglers(traces: Traces) -> bool:
    """Kill all that are found, the watchdog too if it is in their group; True if there were any."""
    cgroups.kill(traces.group)
    found = kill_below(traces.watchdog) if traces.watchdog else False
    for _ in range(_ORPHAN_ROUNDS):
        orphans = [pid for pid in newest_orphans() if _stopped(pid, traces.number)]
        signal_each(orphans, signal.SIGKILL)
        if not orphans:
            break
        found = True
    for process in newest_first():
        if process.state != "Z" and _is_one(process, traces):
            # Immediately: a process that keeps forking has another id a moment later.
            signal_each((process.pid,), signal.SIGSTOP, signal.SIGKILL)
            found = True
    return found


def _stopped(pid: int, number: int) -> bool:
    """Stop a process if it has the marker."""
    if not number or number_of(pid) != number:
        return False
    signal_each((pid,), signal.SIGSTOP)
    return True


def _is_one(process: Process, traces: Traces) -> bool:
    if process.pid == traces.watchdog:
        return False
    led = traces.leader and traces.leader in (process.session, process.group)
    return bool(
        led or number_of(process.pid) == traces.number or _carries(process.pid, traces.mark)
    )


def _carries(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
