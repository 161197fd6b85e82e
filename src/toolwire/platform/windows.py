"""Windows: handles in place of `dir_fd`, and the console; job objects are in `jobs`."""

import errno
import os
import select
import sys

if sys.platform != "win32":
    raise ImportError("this module needs Windows")

import _winapi
import ctypes
import msvcrt
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from ctypes import wintypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

FOLDER = os.O_RDONLY | 1 << 28
"""Flags that open a directory; the bit is our own."""
FILE = os.O_BINARY | os.O_NOINHERIT
"""Flags that open what is not a link."""

kernel = ctypes.WinDLL("kernel32", use_last_error=True)
kernel.CreateFileW.restype = wintypes.HANDLE
kernel.CreateFileW.argtypes = (
    *(wintypes.LPCWSTR, wintypes.DWORD, wintypes.DWORD, wintypes.LPVOID),
    *(wintypes.DWORD, wintypes.DWORD, wintypes.HANDLE),
)
kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
kernel.GetFinalPathNameByHandleW.argtypes = (
    *(wintypes.HANDLE, wintypes.LPWSTR, wintypes.DWORD, wintypes.DWORD),
)
kernel.GetFileInformationByHandleEx.argtypes = (
    *(wintypes.HANDLE, wintypes.INT, wintypes.LPVOID, wintypes.DWORD),
)
kernel.ReplaceFileW.argtypes = (
    *(wintypes.LPCWSTR, wintypes.LPCWSTR, wintypes.LPCWSTR, wintypes.DWORD),
    *(wintypes.LPVOID, wintypes.LPVOID),
)

_READ, _WRITE = 0x80000000, 0x40000000
_LIST, _READ_ATTRIBUTES, _SYNCHRONIZE = 0x1, 0x80, 0x100000
_SHARE_READ, _SHARE_WRITE, _SHARE_DELETE = 1, 2, 4
_CREATE_NEW, _OPEN_EXISTING, _OPEN_ALWAYS = 1, 3, 4
_BACKUP_SEMANTICS, _OPEN_REPARSE_POINT = 0x02000000, 0x00200000
_DIRECTORY, _REPARSE_POINT = 0x10, 0x400
_ATTRIBUTE_TAG_INFO = 9
_NAME_SURROGATE = 0x20000000
"""Bit of a reparse tag: the file stands for another name. Files of cloud storage lack it."""
_INVALID = ctypes.c_void_p(-1).value
_LITERAL = "\\\\?\\"


def failed(path: str) -> OSError:
    """The error of the last call to the system."""
    code = ctypes.get_last_error()
    return OSError(0, ctypes.FormatError(code).strip(), path, code)


def final_path(descriptor: int) -> str:
    """The path of an open file, with every link followed."""
    handle = msvcrt.get_osfhandle(descriptor)
    size = 512
    while True:
        buffer = ctypes.create_unicode_buffer(size)
        needed = kernel.GetFinalPathNameByHandleW(handle, buffer, size, 0)
        if not needed:
            raise failed("")
        if needed < size:
            return _plain(buffer.value)
        size = needed + 1


def _plain(path: str) -> str:
    if path.startswith(f"{_LITERAL}UNC\\"):
        return "\\\\" + path[8:]
    return path.removeprefix(_LITERAL)


def _literal(path: str) -> str:
    """The path as the system takes it without reading device names or final dots into it."""
    if path.startswith(_LITERAL):
        return path
    return f"{_LITERAL}UNC{path[1:]}" if path.startswith("\\\\") else _LITERAL + path


def _below(name: str | os.PathLike[str], folder: int | None) -> str:
    text = os.fspath(name)
    if folder is None:
        return os.path.abspath(text)
    # A colon would name another stream of a file, a separator another directory.
    if not text or text in (".", "..") or any(sign in text for sign in '\\/:*?"<>|\0'):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), text)
    return os.path.join(final_path(folder), text)


def open_at(
    path: str | os.PathLike[str], flags: int, mode: int = 0o777, *, dir_fd: int | None = None
) -> int:
    """A descriptor of a file or directory below an open directory.

    A link is refused, and so is a file that turns out to be elsewhere. A directory cannot be moved
    or deleted while it is open.
    """
    whole = _below(path, dir_fd)
    folder = flags & FOLDER == FOLDER
    handle = _opened(whole, flags, folder, _OPEN_REPARSE_POINT)
    attributes, tag = _attributes(handle)
    if attributes & _REPARSE_POINT:
        kernel.CloseHandle(handle)
        if tag & _NAME_SURROGATE:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        handle = _opened(whole, flags, folder, 0)
    if bool(attributes & _DIRECTORY) != folder:
        kernel.CloseHandle(handle)
        code = errno.ENOTDIR if folder else errno.EISDIR
        raise OSError(code, os.strerror(code), str(path))
    found = msvcrt.open_osfhandle(handle, flags & (os.O_APPEND | os.O_WRONLY | os.O_RDWR) | FILE)
    try:
        if dir_fd is not None and os.path.normcase(final_path(found)) != os.path.normcase(whole):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    except OSError:
        os.close(found)
        raise
    return found


def _opened(path: str, flags: int, folder: bool, reparse: int) -> int:
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    access = _LIST | _READ_ATTRIBUTES | _SYNCHRONIZE if folder else _READ
    if writes:
        access = _WRITE | (_READ if flags & os.O_RDWR else _READ_ATTRIBUTES)
    share = _SHARE_READ | _SHARE_WRITE | (0 if folder else _SHARE_DELETE)
    how = _OPEN_EXISTING
    if flags & os.O_CREAT:
        how = _CREATE_NEW if flags & os.O_EXCL else _OPEN_ALWAYS
    options = _BACKUP_SEMANTICS | reparse
    handle = kernel.CreateFileW(_literal(path), access, share, None, how, options, None)
    if handle == _INVALID:
        raise failed(path)
    return handle


def _attributes(handle: int) -> tuple[int, int]:
    """Attributes and reparse tag of an open file."""
    found = (wintypes.DWORD * 2)()
    size = ctypes.sizeof(found)
    if not kernel.GetFileInformationByHandleEx(handle, _ATTRIBUTE_TAG_INFO, found, size):
        error = failed("")
        kernel.CloseHandle(handle)
        raise error
    return found[0], found[1]


def stat_at(
    path: str | os.PathLike[str], *, dir_fd: int | None = None, follow_symlinks: bool = True
) -> os.stat_result:
    """As `os.stat` on other systems."""
    return os.stat(_below(path, dir_fd), follow_symlinks=follow_symlinks)


def scandir(folder: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """The entries of an open directory."""
    return os.scandir(final_path(folder))


def mkdir_at(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
    """As `os.mkdir` on other systems."""
    os.mkdir(_below(path, dir_fd), mode)


def link_at(
    src: str,
    dst: str,
    *,
    src_dir_fd: int | None = None,
    dst_dir_fd: int | None = None,
    follow_symlinks: bool = True,
) -> None:
    """Give a file its name; FileExistsError if another has it. The old name is gone."""
    os.rename(_below(src, src_dir_fd), _below(dst, dst_dir_fd))


def replace_at(
    src: str, dst: str, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
) -> None:
    """Replace a file, whose access rights, attributes and streams are preserved."""
    old, new = _below(dst, dst_dir_fd), _below(src, src_dir_fd)
    if not kernel.ReplaceFileW(_literal(old), _literal(new), None, 0, None, None):
        raise failed(old)


def unlink_at(path: str, *, dir_fd: int | None = None) -> None:
    """As `os.unlink` on other systems."""
    os.unlink(_below(path, dir_fd))


def access_at(path: str, mode: int, *, dir_fd: int | None = None) -> bool:
    """As `os.access` on other systems."""
    return os.access(_below(path, dir_fd), mode)


def sync_folder(folder: int) -> None:
    """Do nothing: the system has no such call for directories."""


def pread(descriptor: int, size: int, offset: int) -> bytes:
    """Bytes from an offset; the descriptor's position is unchanged."""
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size)
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


def keep_attributes(file: int, name: str, folder: int, like: os.stat_result) -> None:
    """Do nothing: `replace_at` preserves what the old file has."""


_FAR = 1 << 30
"""Windows locks also prevent reading, so lock a byte that is never read."""
_PAUSE = 0.05


def lock_file(handle: int, *, wait: bool = False) -> bool:
    """Lock an open file; False if another process has it and this one does not wait."""
    while True:
        os.lseek(handle, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            if not wait:
                return False
            time.sleep(_PAUSE)
        else:
            return True


lock_part: Callable[[int, int], bool] | None = None


def bytes_waiting(pipe: int) -> int:
    """How many bytes can be read from a pipe without waiting; -1 at its end."""
    try:
        return int(_winapi.PeekNamedPipe(msvcrt.get_osfhandle(pipe), 0)[0])
    except BrokenPipeError:
        return -1


def input_check(socket: int) -> Callable[[], bool]:
    """Returns what looks whether a socket has bytes to read, or was closed by its peer."""
    return lambda: bool(select.select([socket], [], [], 0)[0])


def wait_for_bytes(pipe: int, timeout: float) -> bool:
    """Wait until a pipe has bytes to read or was closed; False at the timeout."""
    until = time.monotonic() + timeout
    while bytes_waiting(pipe) == 0:
        if time.monotonic() >= until:
            return False
        time.sleep(0.005)
    return True


class _Console:
    """Lines typed at the console, read key by key: a read of a line could not be interrupted."""

    def __init__(self) -> None:
        self._typing = ""
        self._lines: deque[bytes] = deque()

    def wait(self, timeout: float | None) -> bool:
        """Whether a line is complete before the timeout."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._lines:
            if msvcrt.kbhit():
                self._key(msvcrt.getwch())
            elif until is not None and time.monotonic() >= until:
                return False
            else:
                time.sleep(0.01)
        return True

    def read(self) -> bytes:
        """The oldest complete line; empty after Ctrl-Z."""
        return self._lines.popleft()

    def discard(self) -> None:
        """Forget what was typed and not read."""
        while msvcrt.kbhit():
            msvcrt.getwch()
        self._typing = ""
        self._lines.clear()

    def _key(self, key: str) -> None:
        match key:
            case "\x03":
                signal.raise_signal(signal.SIGINT)
            case "\x00" | "\xe0":
                msvcrt.getwch()  # the code of an arrow or function key
            case "\x1a" | "\x04" if not self._typing:
                self._lines.append(b"")
            case "\b":
                if self._typing:
                    self._typing = self._typing[:-1]
                    self._echo("\b \b")
            case "\r" | "\n":
                self._echo("\r\n")
                self._lines.append(f"{self._typing}\n".encode("utf-8", "replace"))
                self._typing = ""
            case _:
                self._typing += key
                self._echo(key)

    def _echo(self, text: str) -> None:
        for letter in text:
            msvcrt.putwch(letter)


_console = _Console()


def wait_for_input(descriptor: int, timeout: float | None = None) -> bool:
    """Wait until a line was typed or the input ended."""
    if os.isatty(descriptor):
        return _console.wait(timeout)
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        with suppress(OSError):  # a file: always readable
            if bytes_waiting(descriptor) == 0:
                if until is not None and time.monotonic() >= until:
                    return False
                time.sleep(0.01)
                continue
        return True


def read_input(descriptor: int) -> bytes:
    """Read what was typed; empty at the end of the input."""
    return _console.read() if os.isatty(descriptor) else os.read(descriptor, 65536)


def discard_input(descriptor: int) -> None:
    """Discard unread input, including an incomplete line at the console."""
    if os.isatty(descriptor):
        _console.discard()
        return
    with suppress(OSError):
        while (size := bytes_waiting(descriptor)) > 0:
            os.read(descriptor, size)


@contextmanager
def raw_echo(descriptor: int) -> Generator[None]:
    """Do nothing: what is typed is echoed key by key."""
    yield


def raw_keys(descriptor: int) -> Callable[[], None]:
    """Do nothing: the terminal app does not run on a console of Windows."""
    del descriptor
    return lambda: None


def keep_freed_memory(most: int) -> None:
    """Nothing to do: the system decides."""
    del most


def account_home() -> str:
    """The user's profile directory."""
    return os.environ.get("USERPROFILE", "")


@contextmanager
def handle_signals(
    loop: "asyncio.AbstractEventLoop", numbers: tuple[int, ...], call: Callable[[], None]
) -> Generator[None]:
    """Call a function in the event loop for each of these signals, and for Ctrl-Break."""

    def soon(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(call)

    before = {number: signal.signal(number, soon) for number in (*numbers, signal.SIGBREAK)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
