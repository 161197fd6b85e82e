"""Signals of watchdogs and fork servers: what wakes them, and what a command starts with.

Standard library only: it runs in a bare interpreter.
"""

import fcntl
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import lru_cache

SET_CHILD_SUBREAPER = 36
# Python ignores these; a handler ends by itself when a process becomes another program.
IGNORED = tuple(number for number in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", 0)) if number)
DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""What a watchdog ignores."""
_STOP_SECONDS = 0.1
"""For which a command can stop its watchdog."""


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
    """Become the parent of what descendants leave behind; False where the system has no way."""
    return process_control(SET_CHILD_SUBREAPER, 1)


def reset_signals() -> None:
    """Undo what our parent ignores or blocks: a command starts as a fresh process does."""
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
    """Forget the wake-ups so far."""
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        return


def resume_by(line: socket.socket) -> None:
    """Let the kernel continue this process, should a command stop it: at messages, and in time."""
    owner, number = getattr(fcntl, "F_SETOWN", None), getattr(fcntl, "F_SETSIG", None)
    if owner is not None and number is not None:
        fcntl.fcntl(line, owner, os.getpid())
        fcntl.fcntl(line, number, signal.SIGCONT)
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
        _resume_every(_STOP_SECONDS)


def _resume_every(seconds: float) -> None:
    """Have the kernel send SIGCONT all the time: it ends a stop, and does nothing otherwise."""
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
