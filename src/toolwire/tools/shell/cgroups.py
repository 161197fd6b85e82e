"""Control groups (cgroup v2) of commands: the kernel ends all that is in one at once.

A fork server has a folder of its own below the group it runs in, and in it a group for each
watchdog. It locks the folder: what no process has locked any more belonged to an agent that was
killed, and is removed by the next. Standard library only: it runs in a bare interpreter.
"""

import os
import time

from toolwire.platform.posix import fcntl

ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
"""Where version 2 is mounted: alone, or beside version 1."""
_PREFIX = "toolwire."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_EMPTY_WITHIN = 1.0
_TRIES = 3


def own_group() -> str:
    """The folder of this process's control group; empty if it is not ours to change."""
    path = _path()
    if not path or ".." in path.split("/"):
        return ""
    for root in ROOTS:
        folder = f"{root}{path.rstrip('/')}"
        if os.path.exists(f"{root}/cgroup.controllers"):
            return folder if os.access(f"{folder}/cgroup.procs", os.W_OK) else ""
    return ""


def _path() -> str:
    try:
        with open("/proc/self/cgroup") as file:
            return next((row[3:].rstrip("\n") for row in file if row.startswith("0::")), "")
    except OSError:
        return ""


class Groups:
    """The control groups of one fork server; all empty strings where none can be created."""

    def __init__(self) -> None:
        self.outside = own_group()
        """The fork server's own group."""
        self._folder = ""
        self._lock = -1
        if self.outside:
            remove_stale(self.outside)
            self._folder, self._lock = make(self.outside)
        self._count = 0

    def add(self) -> str:
        """A new group."""
        if not self._folder:
            return ""
        self._count += 1
        group = f"{self._folder}/{self._count}"
        try:
            os.mkdir(group)
        except OSError:
            return ""
        if not os.path.exists(f"{group}/cgroup.kill"):  # Linux before 5.14
            os.rmdir(group)
            return ""
        return group

    def close(self) -> None:
        """Kill everything in the groups and remove them."""
        if self._folder:
            kill(self._folder)
            remove(self._folder)
            os.close(self._lock)
            self._folder = ""


def make(parent: str) -> tuple[str, int]:
    """A new group that is locked as long as its descriptor is open; empty if that is refused."""
    for _ in range(_TRIES):
        folder = f"{parent}/{_PREFIX}{os.urandom(8).hex()}"
        try:
            os.mkdir(folder)
        except OSError:
            break
        try:
            lock = os.open(folder, _FOLDER)
        except OSError:
            continue
        if _locked(lock):
            return folder, lock
        os.close(lock)  # another agent has just taken it for a stale one
    return "", -1


def enter(group: str) -> bool:
    """Move this process into a group; its children start there."""
    if not group or not _written(f"{group}/cgroup.procs", "0"):
        return False
    # A container may show another part of the tree than the one that this process is in.
    return f"{group}/".endswith(f"{_path().rstrip('/')}/")


def kill(group: str) -> bool:
    """Kill everything in a group and below it, however fast it forks; False if not permitted."""
    return bool(group) and _written(f"{group}/cgroup.kill", "1")


def remove(group: str) -> None:
    """Remove a group and its subgroups once their killed processes have exited."""
    until = time.monotonic() + _EMPTY_WITHIN
    while group and not _removed(group) and time.monotonic() < until:
        time.sleep(0.001)


def leave(group: str, outside: str) -> None:
    """Leave the group of a dead fork server, and remove its folder if no process is in it."""
    if group and enter(outside):
        _removed(os.path.dirname(group))


def remove_stale(parent: str) -> None:
    """End processes left by agents that were killed together with their fork servers."""
    try:
        names = [name for name in os.listdir(parent) if name.startswith(_PREFIX)]
    except OSError:
        return
    for name in names:
        remove_unlocked(f"{parent}/{name}")


def remove_left(group: str) -> None:
    """Remove the group of a killed watchdog, and the folder of its fork server if that is dead."""
    if group:
        _removed(group)
        remove_unlocked(os.path.dirname(group))


def remove_unlocked(folder: str) -> None:
    """End everything in a fork server's folder unless it still runs."""
    try:
        lock = os.open(folder, _FOLDER)
    except OSError:
        return
    try:
        if _locked(lock):
            kill(folder)
            remove(folder)
    finally:
        os.close(lock)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _removed(group: str) -> bool:
    """Whether the group was removed; its subgroups are removed first."""
    try:
        with os.scandir(group) as entries:
            inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        gone = [_removed(path) for path in inner]
        if all(gone):
            os.rmdir(group)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return all(gone)


def _written(path: str, text: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
