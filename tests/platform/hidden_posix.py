"""A stand-in for Windows in a child interpreter: what only POSIX has is hidden, Win32 is simulated.

`python -P hidden_posix.py SCRIPT …` runs a script as Windows would, as far as Linux can show it: no
`fcntl`, `termios`, `pwd`, `resource`, no `os.fork`, no `dir_fd`, no readers and signal handlers in
the event loop. The simulated calls of Win32 are the few that `toolwire.platform` makes.
"""

# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

import asyncio
import ctypes
import fcntl
import importlib.abc
import os
import runpy
import select
import signal
import stat
import subprocess  # noqa: F401
import sys
import sysconfig
import termios
import types

# Loaded before the system changes: they load other parts of themselves on Windows.
import aiohttp  # noqa: F401
import click  # noqa: F401
import platformdirs  # noqa: F401

POSIX_MODULES = ("fcntl", "termios", "tty", "pty", "resource", "pwd", "grp", "syslog", "crypt")
POSIX_OS = (
    *("fork", "forkpty", "setsid", "setpgid", "getpgid", "getpgrp", "killpg", "geteuid", "getuid"),
    *("getgid", "getegid", "uname", "statvfs", "sysconf", "mkfifo", "openpty", "pread", "pwrite"),
    *("fchmod", "fchown", "chown", "listxattr", "getxattr", "setxattr", "posix_spawn", "splice"),
    *("register_at_fork", "set_blocking", "WNOHANG", "waitid", "O_NOFOLLOW", "O_DIRECTORY"),
    *("O_CLOEXEC", "O_NONBLOCK", "O_ASYNC", "sched_getaffinity", "pipe2", "memfd_create"),
)
POSIX_SIGNALS = ("SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP", "SIGQUIT", "SIGCHLD", "SIGALRM")
_REAL = {name: getattr(os, name) for name in ("open", "stat", "scandir", "O_NOFOLLOW")}


class _Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in POSIX_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)
        return None


class _Kernel:
    """The calls of kernel32 on descriptors instead of handles."""

    def __getattr__(self, name):
        return _Call(name)


class _Call:
    """One call; prototypes may be set on it, as on those of ctypes."""

    def __init__(self, name):
        self._run = _CALLS[name]

    def __call__(self, *arguments):
        try:
            return self._run(*arguments)
        except OSError as error:
            _last[0] = error.errno or 0
            return _FAILED.get(self._run, 0)


_last = [0]


def _create_file(path, access, share, security, how, options, template):
    path = path.removeprefix("\\\\?\\")
    flags = os.O_WRONLY if access & 0x40000000 else os.O_RDONLY
    flags |= {1: os.O_CREAT | os.O_EXCL, 3: 0, 4: os.O_CREAT}[how]
    if os.path.islink(path):
        flags = 0o10000000  # O_PATH: the link itself
    return _REAL["open"](path, flags | (_REAL["O_NOFOLLOW"] if options & 0x00200000 else 0), 0o666)


def _final_path(handle, buffer, size, flags):
    path = "\\\\?\\" + os.readlink(f"/proc/self/fd/{handle}")
    if len(path) < size:
        buffer.value = path
    return len(path)


def _information(handle, kind, found, size):
    mode = os.fstat(handle).st_mode
    link = stat.S_ISLNK(mode)
    found[0] = (0x10 if stat.S_ISDIR(mode) else 0) | (0x400 if link else 0)
    found[1] = 0xA000000C if link else 0
    return 1


def _replace_file(old, new, backup, flags, one, two):
    os.stat(old.removeprefix("\\\\?\\"))
    os.replace(new.removeprefix("\\\\?\\"), old.removeprefix("\\\\?\\"))
    return 1


def _close(handle):
    os.close(handle)
    return 1


_CALLS = {
    "CreateFileW": _create_file,
    "GetFinalPathNameByHandleW": _final_path,
    "GetFileInformationByHandleEx": _information,
    "ReplaceFileW": _replace_file,
    "CloseHandle": _close,
    **dict.fromkeys(
        (
            *("CreateJobObjectW", "OpenProcess", "AssignProcessToJobObject"),
            *("TerminateJobObject", "SetInformationJobObject", "QueryInformationJobObject"),
        ),
        lambda *arguments: 0,
    ),
}
_FAILED = {_create_file: ctypes.c_void_p(-1).value}


def _peek(handle, size):
    return (int.from_bytes(fcntl.ioctl(handle, termios.FIONREAD, bytes(4)), sys.byteorder), 0)


def _locking(descriptor, mode, size):
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _modules():
    made = types.ModuleType("msvcrt")
    made.get_osfhandle = lambda descriptor: descriptor
    made.open_osfhandle = lambda handle, flags: handle
    made.locking, made.LK_NBLCK, made.kbhit = _locking, 2, lambda: False
    api = types.ModuleType("_winapi")
    api.PeekNamedPipe = _peek
    wintypes = types.ModuleType("ctypes.wintypes")
    names = ("HANDLE", "LPCWSTR", "LPWSTR", "LPVOID")
    wintypes.__dict__.update(dict.fromkeys(names, ctypes.c_void_p))
    wintypes.__dict__.update({"DWORD": ctypes.c_ulong, "INT": ctypes.c_int, "UINT": ctypes.c_uint})
    wintypes.__dict__.update({"BOOL": ctypes.c_int, "LARGE_INTEGER": ctypes.c_longlong})
    ctypes.wintypes = wintypes
    sys.modules.update({"msvcrt": made, "_winapi": api, "ctypes.wintypes": wintypes})
    ctypes.WinDLL = lambda name, **options: _Kernel()
    ctypes.get_last_error = lambda: _last[0]
    ctypes.FormatError = os.strerror
    real = OSError

    class _Error(real):
        """Takes the number of Win32 in fourth place, as on Windows."""

        def __new__(cls, *arguments):
            if len(arguments) == 4:
                return real(arguments[3], *arguments[1:3])
            return real(*arguments)

    return _Error


def _refuse(*arguments, **options):
    raise NotImplementedError


def _without_folders(name):
    real = getattr(os, name)

    def call(*arguments, **options):
        if any(options.get(each) is not None for each in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError(f"{name}: dir_fd unavailable on this platform")
        if name == "scandir" and arguments and isinstance(arguments[0], int):
            raise TypeError("scandir: path should be string, bytes or None, not int")
        return real(*arguments, **options)

    return call


def hide():
    """Make this interpreter look like one on Windows."""
    error = _modules()
    sysconfig.get_config_vars()  # read once, from a file named by the system
    for name in (
        "open",
        "stat",
        "scandir",
        "mkdir",
        "link",
        "rename",
        "replace",
        "unlink",
        "access",
    ):
        setattr(os, name, _without_folders(name))
    for name in POSIX_MODULES:
        sys.modules.pop(name, None)
    for name in POSIX_OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in POSIX_SIGNALS:
        delattr(signal, name)
    del select.poll, select.epoll
    os.O_BINARY = os.O_NOINHERIT = 0
    signal.SIGBREAK = signal.SIGUSR1
    loop = asyncio.SelectorEventLoop
    for name in ("add_signal_handler", "remove_signal_handler"):
        setattr(loop, name, _refuse)
    sys.meta_path.insert(0, _Hidden())
    sys.platform = "win32"
    import toolwire.platform.windows as windows

    windows.OSError = error


if __name__ == "__main__":
    hide()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
