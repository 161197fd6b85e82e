"""Mounts by file descriptor: clones of trees, attributes, overlays; standard library only."""

import ctypes
import os
import stat

from toolwire.tools.shell.sandbox.system import LIBC, call, checked

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
    """Take away the mount at a path, if there is one, once its last user is gone."""
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
