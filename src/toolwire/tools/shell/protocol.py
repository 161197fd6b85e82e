"""The protocol between the agent, its fork server and the watchdogs of commands.

    agent -> fork server   FORK, with one end of a channel for a new watchdog
    agent -> watchdog      ORDER, four bytes of size, and a JSON order, with the descriptors of
                           both outputs and of an input if it is not empty
                           END, which ends the command; ignored when none runs
    watchdog -> agent      lines of text:
        watching PID GROUP          at its start: it exists, in this control group if it has one;
                                    a command may stop it before it can send anything else
        started PID                 the shell runs
        failed ERRNO                the shell could not be started
        exited STATUS PIDS          the shell ended ("-" if unknown) and left these processes
        done                        nothing is left: the watchdog takes the next order
        gone                        something cannot be ended: the watchdog exits

A closed channel ends its command, and a closed line to the fork server ends all of them.
Standard library only: it runs in a bare interpreter.
"""

import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from toolwire.platform.posix import fcntl

EXIT_GRACE = 0.1
"""Seconds that an exited shell's processes get to end before they are reported."""
TERM_SECONDS = 0.2
"""Between SIGTERM and SIGKILL."""
KILL_SECONDS = 5.0
"""Seconds until a process that survives SIGKILL is given up: the kernel blocks it."""

FORK = b"f"
ORDER = b"o"
END = b"k"
READY = b"ready\n"
"""Sent by a fork server once its namespaces are made; else "no" and the reason."""

_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_MOST_DESCRIPTORS = 8


def encode_order(order: dict[str, Any]) -> bytes:
    """An order as the watchdog reads it."""
    body = json.dumps(order).encode()
    return ORDER + struct.pack("!I", len(body)) + body


def receive_order(line: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next order with its descriptors; None when the channel is closed."""
    while True:
        sign, descriptors = receive(line)
        if not sign:
            return None
        if sign == ORDER:
            break
    size = _received(line, 4)
    body = _received(line, struct.unpack("!I", size)[0]) if size else b""
    return (json.loads(body), descriptors) if body else None


def receive(line: socket.socket) -> tuple[bytes, list[int]]:
    """One message byte and its descriptors, which no child inherits; empty at the end."""
    try:
        sign, descriptors, _, _ = socket.recv_fds(line, 1, _MOST_DESCRIPTORS, _CLOSE_ON_EXEC)
    except ConnectionResetError:
        return b"", []
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return sign, descriptors


def _received(line: socket.socket, size: int) -> bytes:
    """Exactly this many bytes; none if the channel closes first."""
    pieces: list[bytes] = []
    while size:
        piece = line.recv(min(size, 1 << 20))
        if not piece:
            return b""
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def watching(pid: int, group: str) -> str:
    """The first line of a watchdog."""
    return f"watching {pid} {group}"


def parse_watching(rest: str) -> tuple[int, str]:
    """Watchdog and control group."""
    pid, group = rest.split(" ", 1)
    return int(pid), group


def started(pid: int) -> str:
    """The line of a command that runs."""
    return f"started {pid}"


def failed(error: OSError) -> str:
    """The line of a command that could not be started."""
    return f"failed {error.errno}"


def exited(status: int | None, left: Iterable[int]) -> str:
    """The line of a shell that ended."""
    return f"exited {'-' if status is None else status} {','.join(map(str, left))}"


def parse_exited(rest: str) -> tuple[int | None, tuple[int, ...]]:
    """Its status as `wait` reports it, None if unknown, and the processes it left."""
    status, _, left = rest.partition(" ")
    return None if status == "-" else int(status), tuple(map(int, left.split(",") if left else ()))


SET_CHILD_SUBREAPER = 36
# Python ignores these; a handler ends by itself when a process becomes another program.
IGNORED = tuple(number for number in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", 0)) if number)
DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that a watchdog ignores."""
_STOP_SECONDS = 0.1
"""Between two signals of the kernel that continue a stopped watchdog."""


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


def adopt_orphans() -> bool:
    """Adopt orphaned descendants; False if the system does not support it."""
    return process_control(SET_CHILD_SUBREAPER, 1)


def reset_signals() -> None:
    """Reset ignored and blocked signals: a command starts like a fresh process."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, *IGNORED}:
        try:
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def wake_on_child() -> int:
    """A descriptor that becomes readable whenever a child ends."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    return reading


def drain(descriptor: int) -> None:
    """Discard pending wake-ups."""
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        return


def resume_by(line: socket.socket) -> None:
    """Make the kernel continue this process if a command stops it: on messages and by a timer."""
    owner, number = getattr(fcntl, "F_SETOWN", None), getattr(fcntl, "F_SETSIG", None)
    if owner is not None and number is not None:
        fcntl.fcntl(line, owner, os.getpid())
        fcntl.fcntl(line, number, signal.SIGCONT)
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
        _resume_every(_STOP_SECONDS)


def _resume_every(seconds: float) -> None:
    """Make the kernel send SIGCONT periodically: it ends a stop and has no other effect.

    A SIGSTOP that meets one not yet received drops it, and the timer with it: the agent sends it
    too while it waits for a watchdog.
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
