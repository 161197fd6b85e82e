"""The system's processes: their descendants, and signals to them. Standard library only: it runs in
a bare interpreter, where pathlib is slow to load.
"""

import os
import signal
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

_NEWEST = 100


class Process:
    """One line of the process table."""

    __slots__ = ("group", "parent", "pid", "session", "state")

    def __init__(self, pid: int, state: str, parent: int, group: int, session: int) -> None:
        self.pid = pid
        self.state = state
        self.parent = parent
        self.group = group
        self.session = session


def table() -> list[Process]:
    """Every process of the system that can be seen."""
    return list(newest_first())


def newest_first() -> Iterator[Process]:
    """Every process, read one by one: a process that keeps forking is near the start."""
    if not os.path.exists("/proc/self/stat"):
        yield from _table_by_ps()
        return
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    for pid in sorted(pids, reverse=True):
        fields = _fields(pid)
        if len(fields) > 3:
            parent, group, session = (int(field) for field in fields[1:4])
            yield Process(pid, fields[0].decode(), parent, group, session)


def _fields(pid: int) -> list[bytes]:
    """Fields of `/proc/<pid>/stat` after the name, the state first; empty if there is no such
    process.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _table_by_ps() -> list[Process]:
    import subprocess  # noqa: PLC0415 - slow to load, and only for systems without /proc

    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,stat=,ppid=,pgid="],  # noqa: S607 - part of every system
        capture_output=True,
        text=True,
        check=False,
    )
    rows = (line.split() for line in listed.stdout.splitlines())
    return [Process(int(r[0]), r[1][:1], int(r[2]), int(r[3]), 0) for r in rows if len(r) == 4]


def below(root: int, *, group: int = 0) -> list[int]:
    """Living processes that descend from `root`, and members of the group if one is given."""
    children: dict[int, list[Process]] = {}
    found: dict[int, None] = {}
    for process in newest_first():
        children.setdefault(process.parent, []).append(process)
        if group and process.group == group and process.state != "Z":
            found[process.pid] = None
    open_ = [root]
    while open_:
        for process in children.get(open_.pop(), ()):
            open_.append(process.pid)
            if process.state != "Z":
                found[process.pid] = None
    return sorted(found)


def is_alive(pid: int) -> bool:
    """Whether a process runs; True if that cannot be determined."""
    if sys.platform != "linux":
        return True
    return _fields(pid)[:1] not in ([], [b"Z"], [b"X"])


def is_stopped(pid: int) -> bool:
    """Whether a signal or a debugger has stopped a process."""
    return _fields(pid)[:1] in ([b"T"], [b"t"])


def signal_each(pids: Iterable[int], *numbers: int) -> None:
    """Send a signal to processes; those that have exited are skipped."""
    pids = tuple(pids)
    for number in numbers:
        for pid in pids:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue


def kill_below(root: int, spared: Collection[int] = ()) -> bool:
    """Kill what descends from a process, but for the spared and theirs; True if there was any.

    Each is stopped as soon as it is found, before its children are listed, so that it cannot fork
    in between. A chain of forks in one group ends by one signal, as the kernel lets no process
    fork while such a signal is delivered.
    """
    found: list[int] = []
    groups: set[int] = set()
    for pid in _walk(root, spared):
        signal_each((pid,), signal.SIGSTOP)
        found.append(pid)
        try:
            groups.add(os.getpgid(pid))
        except ProcessLookupError:
            continue
    # Zero and our own: groups that a namespace hides, and those of a child before it left ours.
    signal_each((-group for group in groups - {0, os.getpgrp()}), signal.SIGKILL)
    signal_each(found, signal.SIGKILL)
    return bool(found)


def _walk(root: int, spared: Collection[int]) -> Iterator[int]:
    """Descendants, each before its children are listed, including unreaped ones."""
    if not _lists_children():
        pids = set(below(root)) - set(spared)
        for one in spared:
            pids.difference_update(below(one))
        yield from pids
        return
    seen = {root, *spared}
    open_ = [root]
    while open_:
        for pid in _children(open_.pop()):
            if pid not in seen:
                seen.add(pid)
                yield pid
                open_.append(pid)


def newest_orphans() -> Iterator[int]:
    """What our ancestors adopted last, newest first: one of them is the parent of all orphans.

    A full table takes longer to read than what forks all the time stays the same process.
    """
    pid, seen = os.getpid(), set[int]()
    while _lists_children() and (fields := _fields(pid)) and int(fields[1]) not in seen:
        pid = int(fields[1])
        seen.add(pid)
        yield from reversed(_children(pid)[-_NEWEST:])


@lru_cache(maxsize=1)
def _lists_children() -> bool:
    pid = os.getpid()
    return os.path.exists(f"/proc/{pid}/task/{pid}/children")


def _children(pid: int) -> list[int]:
    """The children of every thread of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        return found  # the process or thread has ended: the next walk finds the rest
    return found


def number_of(pid: int) -> int:
    """The number that every process of a command carries as a limit; zero if it has none."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            rows = [line.split() for line in file if line.startswith(b"Max file locks")]
    except OSError:
        return 0
    return int(rows[0][3]) if rows and rows[0][3].isdigit() else 0
