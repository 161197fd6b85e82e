"""Landlock: what a process and its children may do with files; standard library only."""

import ctypes
import os
from collections.abc import Iterable

from toolwire.tools.shell.sandbox.system import call

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1 << 0
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL = 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_FOLDER
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
# By ABI version: all of 1, then renames across folders, truncation, (4: network), device ioctls.
_ACCESS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL = (1 << 16) - 1
_TCP = 0b11
_PLAIN = getattr(os, "O_PATH", 0) | os.O_CLOEXEC | os.O_NOFOLLOW
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1


class _Rules(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The ABI the kernel has; zero where there is none."""
    try:
        return call(_CREATE, "landlock", None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def access_rights(abi: int) -> int:
    """Every right on files that this ABI can withhold."""
    return _ACCESS.get(abi, _ALL)


class Ruleset:
    """Rules being collected; `enforce` in the process that is to be confined."""

    def __init__(self, *, tcp: bool, signals: bool) -> None:
        """Withhold every right; `tcp` and `signals` say what else is withheld."""
        abi = version()
        self._rights = access_rights(abi)
        rules = _Rules(self._rights, 0, 0)
        size = 8
        if abi >= 4:
            rules.network, size = _TCP if tcp else 0, 16
        if abi >= 6:
            rules.scoped, size = _ABSTRACT_SOCKETS | (_SIGNALS if signals else 0), 24
        self._descriptor = call(
            _CREATE,
            "landlock_create_ruleset",
            ctypes.byref(rules),
            ctypes.c_size_t(size),
            ctypes.c_uint32(0),
        )

    def allow(self, paths: Iterable[str], rights: int = _ALL) -> None:
        """Allow these rights at the paths and everything below; what is missing is skipped."""
        for path in paths:
            try:
                parent = os.open(path, _PLAIN)
            except OSError:
                continue
            try:
                self._add(parent, rights)
            finally:
                os.close(parent)

    def _add(self, parent: int, rights: int) -> None:
        import stat  # noqa: PLC0415 - a process that only forks needs it late

        allowed = rights & self._rights
        kind = os.fstat(parent).st_mode
        if stat.S_ISLNK(kind):
            return
        if not stat.S_ISDIR(kind):
            allowed &= _OF_FILES
        if allowed:
            beneath = _Beneath(allowed, parent)
            call(
                _ADD,
                "landlock_add_rule",
                ctypes.c_int(self._descriptor),
                ctypes.c_int(_PATH_BENEATH),
                ctypes.byref(beneath),
                ctypes.c_uint32(0),
            )

    def enforce(self) -> None:
        """Confine this process; it must have given up new privileges."""
        call(
            _RESTRICT, "landlock_restrict_self", ctypes.c_int(self._descriptor), ctypes.c_uint32(0)
        )
