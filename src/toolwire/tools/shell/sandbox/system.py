"""Linux system calls that Python has no names for: namespaces, capabilities, mounts, Landlock.

Standard library only: it runs in a bare interpreter.
"""

import sys

if sys.platform == "win32":
    raise ImportError("this module needs Linux or macOS")

import ctypes
import os
import stat
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)

NEW_NAMESPACE = 0x00020000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NETWORK = 0x40000000

SET_PARENT_DEATH_SIGNAL = 1
SET_DUMPABLE = 4
SET_SECCOMP = 22
DROP_FROM_BOUNDING_SET = 24
SET_CHILD_SUBREAPER = 36
SET_NO_NEW_PRIVILEGES = 38
AMBIENT = 47
_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63


def checked(result: int, what: str) -> int:
    """The result of a call; OSError with the system's reason if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, what: str, *arguments: Any) -> int:
    """A system call by number."""
    return checked(LIBC.syscall(ctypes.c_long(number), *arguments), what)


def control(option: int, value: int = 0, third: Any = 0) -> None:
    """`prctl`; OSError if it is refused."""
    zero = ctypes.c_ulong(0)
    third = ctypes.c_ulong(third) if isinstance(third, int) else third
    checked(LIBC.prctl(option, ctypes.c_ulong(value), third, zero, zero), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    checked(LIBC.unshare(flags), "unshare")


def enter_namespace(descriptor: int, kind: int) -> None:
    """Join an existing namespace."""
    checked(LIBC.setns(descriptor, kind), "setns")


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def bound_capabilities(keep: tuple[int, ...]) -> None:
    """Let no program that this process or a child becomes gain any capability but these."""
    for number in range(_LAST_CAPABILITY + 1):
        if number not in keep and LIBC.prctl(DROP_FROM_BOUNDING_SET, number, 0, 0, 0) < 0:
            break


def drop_capabilities(keep: tuple[int, ...]) -> None:
    """Give up every capability but these, for this process and all it becomes."""
    LIBC.prctl(AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = _Header(_CAPABILITY_VERSION, 0)
    data = (_Data * 2)()
    LIBC.capget(ctypes.byref(header), ctypes.byref(data))
    mask = sum(1 << number for number in keep)
    for half in range(2):
        part = (mask >> (32 * half)) & 0xFFFFFFFF
        data[half].permitted &= part
        data[half].effective = data[half].permitted
        data[half].inheritable = 0
    checked(LIBC.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


@lru_cache(maxsize=1)
def machine() -> str:
    """`x86_64`, `aarch64`, …"""
    return os.uname().machine


class Surroundings:
    """The namespaces a watchdog was started in."""

    def __init__(
        self,
        *,
        contained: bool = False,
        network: int = -1,
        store: str = "",
        copies: dict[str, str] | None = None,
    ) -> None:
        self.contained = contained
        """The processes have a namespace of their own."""
        self.network = network
        """An empty network namespace to join; -1 where there is none."""
        self.store = store
        """Where changes to the copies are; commands must not see it."""
        self.copies = copies or {}
        """Private copies by the folder they replace."""


_HERE = -100
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE, _CLOSE_ON_EXEC = 1, 0x80000
_RECURSIVE, _EMPTY_PATH = 0x8000, 0x1000
_FROM_EMPTY_PATH = 0x4
_DETACH = 2
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXECUTION = 1, 2, 4, 8
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 16384, 1 << 18


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user", ctypes.c_uint64),
    )


def mount(kind: str, target: str, flags: int = 0, options: str = "", source: str = "") -> None:
    """Mount a file system of a kind."""
    checked(
        LIBC.mount(
            os.fsencode(source or kind),
            os.fsencode(target),
            os.fsencode(kind),
            ctypes.c_ulong(flags),
            os.fsencode(options),
        ),
        f"mount {kind} {target}",
    )


def make_private() -> None:
    """Keep mounts of this namespace from others."""
    flags = ctypes.c_ulong(_MS_REC | _MS_PRIVATE)
    checked(LIBC.mount(None, b"/", None, flags, None), "mount --make-rprivate")


def clone(path: str, *, recursive: bool = True) -> int:
    """A copy of the mounts at a path, attached nowhere."""
    flags = _CLONE | _CLOSE_ON_EXEC | (_RECURSIVE if recursive else 0)
    return call(
        _OPEN_TREE,
        f"open_tree {path}",
        ctypes.c_int(_HERE),
        os.fsencode(path),
        ctypes.c_uint(flags),
    )


def attach(tree: int, path: str) -> None:
    """Attach a copy at a path, whose last part is not followed if it is a link; closes it."""
    try:
        call(
            _MOVE_MOUNT,
            f"move_mount {path}",
            ctypes.c_int(tree),
            b"",
            ctypes.c_int(_HERE),
            os.fsencode(path),
            ctypes.c_uint(_FROM_EMPTY_PATH),
        )
    finally:
        os.close(tree)


def restrict(where: int | str, attributes: int, *, recursive: bool = True) -> None:
    """Set attributes on a copy, or on the mounts at a path."""
    change = _Attributes(attributes, 0, 0, 0)
    flags = (_RECURSIVE if recursive else 0) | (_EMPTY_PATH if isinstance(where, int) else 0)
    call(
        _MOUNT_SETATTR,
        f"mount_setattr {where}",
        ctypes.c_int(where if isinstance(where, int) else _HERE),
        b"" if isinstance(where, int) else os.fsencode(where),
        ctypes.c_uint(flags),
        ctypes.byref(change),
        ctypes.c_size_t(ctypes.sizeof(change)),
    )


def freeze(path: str) -> None:
    """Make a file or folder read-only where it is."""
    tree = clone(path)
    try:
        restrict(tree, READ_ONLY)
    except OSError:
        os.close(tree)
        raise
    attach(tree, path)


def fresh(path: str, options: str) -> None:
    """An empty folder in memory over another."""
    mount("tmpfs", path, _MS_NOSUID | _MS_NODEV, options)


def detach(path: str) -> None:
    """Detach the mount at a path, if any; it ends with its last user."""
    LIBC.umount2(os.fsencode(path), _DETACH)


def process_table(path: str) -> None:
    """A view of this namespace's processes."""
    mount("proc", path, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


class Mask:
    """Covers files and folders so that they cannot be opened; lives in a folder of its own."""

    def __init__(self, folder: str) -> None:
        self._file, self._folder = f"{folder}/covered-file", f"{folder}/covered-folder"
        tree = clone("/dev/null", recursive=False)
        # A device on a mount without devices cannot be opened by anyone, root included.
        restrict(tree, READ_ONLY | NO_DEVICES | NO_SUID | NO_EXECUTION, recursive=False)
        os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0))
        attach(tree, self._file)
        os.mkdir(self._folder)
        fresh(self._folder, "size=4k,mode=000")
        restrict(self._folder, READ_ONLY | NO_SUID | NO_EXECUTION, recursive=False)
        self._device = os.lstat(self._file).st_rdev
        self._empty = os.lstat(self._folder).st_dev

    def cover(self, path: str) -> None:
        """Cover a path unless it is covered already; what does not exist is skipped."""
        try:
            found = os.lstat(path)
        except OSError:
            return
        if stat.S_ISLNK(found.st_mode):
            return
        folder = stat.S_ISDIR(found.st_mode)
        if found.st_dev == self._empty if folder else found.st_rdev == self._device:
            return
        attach(clone(self._folder if folder else self._file, recursive=False), path)


def is_frozen(path: str) -> bool:
    """Whether the mount at a path is read-only, or nothing is there."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return True


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1 << 0
_PATH_BENEATH = 1

MAY_EXECUTE, MAY_WRITE_FILE, MAY_READ_FILE, MAY_READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAY_TRUNCATE, MAY_IOCTL = 1 << 14, 1 << 15
MAY_READ = MAY_EXECUTE | MAY_READ_FILE | MAY_READ_FOLDER
_OF_FILES = MAY_EXECUTE | MAY_WRITE_FILE | MAY_READ_FILE | MAY_TRUNCATE | MAY_IOCTL
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


def landlock_version() -> int:
    """The ABI the kernel has; zero where there is none."""
    try:
        return call(_CREATE, "landlock", None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def landlock_rights(abi: int) -> int:
    """Every right on files that this ABI can withhold."""
    return _ACCESS.get(abi, _ALL)


class LandlockRules:
    """Rules being collected; `enforce` in the process that is to be confined."""

    def __init__(self, *, tcp: bool, signals: bool) -> None:
        """Withhold every right; `tcp` and `signals` say what else is withheld."""
        abi = landlock_version()
        self._rights = landlock_rights(abi)
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
