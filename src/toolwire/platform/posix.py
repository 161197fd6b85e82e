"""Linux and macOS."""

import os
import select
import struct
import sys

if sys.platform == "win32":
    raise ImportError("this module needs Linux or macOS")

import fcntl
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import pwd
    import resource
    import termios

__all__ = ["fcntl", "pwd", "resource", "termios"]

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags that open a directory."""
# Opening a named pipe would block until another process writes to it.
FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags that open what is not a link."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's mallopt."""

# Names below an open directory, `dir_fd`.
open_at = os.open
stat_at = os.stat
scandir = os.scandir
mkdir_at = os.mkdir
link_at = os.link
replace_at = os.replace
unlink_at = os.unlink
access_at = os.access
sync_folder = os.fsync
pread = os.pread


def __getattr__(name: str) -> object:
    """A module that few callers need, loaded when it is used."""
    if name in ("pwd", "resource", "termios"):
        from importlib import import_module  # noqa: PLC0415 - start-up time

        return import_module(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def keep_attributes(file: int, name: str, folder: int, like: os.stat_result) -> None:
    """Give a new file the owner, extended attributes and mode of the file it replaces."""
    made = os.fstat(file)
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):
            os.fchown(file, like.st_uid, like.st_gid)
    _keep_extended(file, name, folder)
    os.fchmod(file, like.st_mode & 0o7777)


def _keep_extended(file: int, name: str, folder: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    try:
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return
    try:
        for attribute in os.listxattr(old):
            try:
                os.setxattr(file, attribute, os.getxattr(old, attribute))
            except OSError:
                continue
    except OSError:
        return
    finally:
        os.close(old)


def lock_file(handle: int, *, wait: bool = False) -> bool:
    """Lock an open file; False if another process has it and this one does not wait."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if wait:
            raise
        return False
    return True


def _lock_part(handle: int, part: int) -> bool:
    """Lock one byte of a file, for this opening of it alone; False if another one has it."""
    wanted = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, part, 1, 0)
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, wanted)
    except (BlockingIOError, PermissionError):
        return False
    return True


lock_part: Callable[[int, int], bool] | None = _lock_part if sys.platform == "linux" else None
"""Locks one byte of a file; None where the system cannot."""


def bytes_waiting(pipe: int) -> int:
    """How many bytes can be read from a pipe without waiting."""
    from termios import FIONREAD  # noqa: PLC0415 - commands only

    return int.from_bytes(fcntl.ioctl(pipe, FIONREAD, bytes(4)), sys.byteorder)


def input_check(socket: int) -> Callable[[], bool]:
    """Returns what looks whether a socket has bytes to read, or was closed by its peer."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    look = poll.poll
    return lambda: bool(look(0))


def wait_for_bytes(pipe: int, timeout: float) -> bool:
    """Wait until a pipe has bytes to read or was closed; False at the timeout."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


class Lifeline:
    """Ends a child process when this one ends: the child notices the end of a pipe.

    The child limits its memory itself.
    """

    def __init__(self, memory: int) -> None:
        self._theirs, self._ours = os.pipe()
        self.name = str(self._theirs)
        """The child's descriptor."""
        self.options: dict[str, Any] = {"pass_fds": (self._theirs,)}
        """Arguments of `subprocess.Popen` for the child."""

    def hold(self, pid: int) -> None:
        """Bind the child that was started."""
        os.close(self._theirs)
        self._theirs = -1

    def close(self) -> None:
        """Let go; the child ends if it still runs."""
        for descriptor in (self._theirs, self._ours):
            if descriptor >= 0:
                os.close(descriptor)
        self._theirs = self._ours = -1


def wait_for_input(descriptor: int, timeout: float | None = None) -> bool:
    """Wait, without reading, until something was typed or the input ended."""
    return bool(select.select([descriptor], [], [], timeout)[0])


def read_input(descriptor: int) -> bytes:
    """Read what was typed; empty at the end of the input."""
    return os.read(descriptor, 65536)


def discard_input(descriptor: int) -> None:
    """Discard unread input, including an incomplete line on a terminal."""
    if os.isatty(descriptor):
        from termios import TCIFLUSH, tcflush  # noqa: PLC0415 - only where questions are asked

        tcflush(descriptor, TCIFLUSH)
        return
    while select.select([descriptor], [], [], 0)[0] and os.read(descriptor, 65536):
        pass


@contextmanager
def raw_echo(descriptor: int) -> Generator[None]:
    """Make a terminal echo control characters as they are inside the block."""
    if not os.isatty(descriptor):
        yield
        return
    import termios  # noqa: PLC0415 - chat only

    before = termios.tcgetattr(descriptor)
    raw = [*before[:3], before[3] & ~termios.ECHOCTL, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSANOW, raw)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def raw_keys(descriptor: int) -> Callable[[], None]:
    """Make a terminal pass on every key as it is pressed; returns what undoes it."""
    import termios  # noqa: PLC0415 - the terminal app only

    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        # It was closed: the next read reports the end.
        return lambda: None
    controls = [*before[6]]
    controls[termios.VMIN], controls[termios.VTIME] = 1, 0
    translated = termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR
    cooked = termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG
    raw = [before[0] & ~translated, *before[1:3], before[3] & ~cooked, *before[4:6], controls]
    termios.tcsetattr(descriptor, termios.TCSANOW, raw)

    def undo() -> None:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    return undo


def keep_freed_memory(most: int) -> None:
    """Keep up to so many freed bytes for the next large objects, where the C library allows it.

    Given back each time, memory is fetched anew page by page, which costs more than filling it.
    """
    import ctypes  # noqa: PLC0415 - start-up time

    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:
        adjust(_MMAP_THRESHOLD, most)
        adjust(_TRIM_THRESHOLD, most)


def account_home() -> str:
    """The home directory in the system's list of users; empty if the user is not in it."""
    import pwd  # noqa: PLC0415 - start-up time

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


@contextmanager
def handle_signals(
    loop: "asyncio.AbstractEventLoop", numbers: tuple[int, ...], call: Callable[[], None]
) -> Generator[None]:
    """Call a function in the event loop for each of these signals."""
    for number in numbers:
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
