"""The first process of a session's own namespaces; everything in them ends with it.

Standard library only: it runs in a bare interpreter.
"""

import os
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from toolwire.platform.posix import fcntl
from toolwire.tools.shell import cgroups
from toolwire.tools.shell.protocol import READY
from toolwire.tools.shell.sandbox import system
from toolwire.tools.shell.sandbox.system import Surroundings


def prepare(store: str, paths: list[str], *, user: bool) -> dict[str, str]:
    """Mount a copy of each folder below the store; the copies by folder."""
    if not store:
        return {}
    os.makedirs(store, exist_ok=True)
    copies: dict[str, str] = {}
    in_memory = False
    for number, path in enumerate(paths):
        if not os.path.isdir(path):
            continue
        copy = f"{store}/{number}"
        try:
            _overlay(path, copy, user=user)
        except OSError:
            # The store may be part of the folder, or on a file system that cannot hold changes.
            if not in_memory and not copies:
                system.fresh(store, "mode=755,size=50%")
                in_memory = True
            _overlay_or_empty(path, copy, user=user)
        copies[path] = f"{copy}/merged"
    return copies


def remove(store: str, count: int) -> None:
    """Delete the store with all changes."""
    import shutil  # noqa: PLC0415 - slow to load, and only at the end

    for number in range(count):
        system.detach(f"{store}/{number}/merged")
    system.detach(store)
    shutil.rmtree(store, onerror=_force)


def _force(function: Callable[..., Any], path: str, _: object) -> None:
    """An overlay leaves folders without permissions behind."""
    try:
        os.chmod(path, 0o700)
        function(path)
    except OSError:
        return


def _overlay_or_empty(path: str, copy: str, *, user: bool) -> None:
    try:
        _overlay(path, copy, user=user)
    except OSError:
        system.fresh(f"{copy}/merged", "mode=1777,size=50%")


def _overlay(path: str, copy: str, *, user: bool) -> None:
    names = [f"{copy}/{name}" for name in ("upper", "work", "merged")]
    for name in names:
        os.makedirs(name, exist_ok=True)
    os.chmod(names[0], os.stat(path).st_mode & 0o7777)
    lower, upper, work = (_escaped(name) for name in (path, names[0], names[1]))
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    system.mount("overlay", names[2], 0, options + (",userxattr" if user else ""))


def _escaped(path: str) -> str:
    for letter in "\\:,":
        path = path.replace(letter, f"\\{letter}")
    return path


Serve: TypeAlias = Callable[[Surroundings], None]
_SET_FLAGS = 0x8914
_UP_RUNNING = 0x41
_OOM = "300"


def contain(line: socket.socket, options: dict[str, Any], serve: Serve) -> NoReturn:
    """Make the namespaces, run `serve` as their first process, and clean up after it.

    What failed is sent on the line.
    """
    groups: list[tuple[str, int]] = []
    try:
        user = _leave()
        options["above"] = os.getpid()
        started, start = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(start)
            _first(line, started, user, options, serve)
        os.close(started)
        groups = _limit(first, options)
        os.write(start, b"s")
    except OSError as error:
        line.sendall(f"no {error}\n".encode())
        os._exit(1)
    line.close()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.waitpid(first, 0)
    for group, _ in groups:
        cgroups.remove(group)
    if options.get("store"):
        remove(options["store"], len(options.get("scratch", ())))
    os._exit(0)


def _leave() -> bool:
    """Leave the system's namespaces; True if that needed a user namespace."""
    flags = system.NEW_PID | system.NEW_NAMESPACE | system.NEW_IPC
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            system.unshare(flags)
        except OSError:
            pass  # root without its capabilities, as in a container
        else:
            return False
    system.unshare(flags | system.NEW_USER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _first(
    line: socket.socket, started: int, user: bool, options: dict[str, Any], serve: Serve
) -> NoReturn:
    try:
        system.control(system.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if not os.read(started, 1):
            os._exit(1)
        os.close(started)
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(_OOM)
        system.make_private()
        system.process_table("/proc")
        _count_from(options.get("above", 0))
        store = options.get("store", "")
        around = Surroundings(
            contained=True,
            network=_empty_network(),
            store=store,
            copies=prepare(store, options.get("scratch", []), user=user),
        )
        system.control(system.SET_DUMPABLE, 0)
        line.sendall(READY)
        serve(around)
    except OSError as error:
        line.sendall(f"no {error}\n".encode())
    finally:
        os._exit(0)


def _count_from(above: int) -> None:
    """Give processes numbers far from those of the system, so that none is mistaken for another."""
    try:
        with open("/proc/sys/kernel/pid_max") as file:
            most = int(file.read())
        _write("/proc/sys/kernel/ns_last_pid", str(1000 + (above + most // 2) % (most - 2000)))
    except (OSError, ValueError):
        return  # a convenience that not every kernel grants


def _empty_network() -> int:
    """A network namespace with nothing but a loopback device; -1 where none can be made."""
    ready, is_ready = os.pipe()
    done, is_done = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(is_done)
            system.unshare(system.NEW_NETWORK)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
                request = struct.pack("16sh14x", b"lo", _UP_RUNNING)
                fcntl.ioctl(some, _SET_FLAGS, request)
            os.write(is_ready, b"r")
            os.read(done, 1)
        finally:
            os._exit(0)
    os.close(is_ready)
    os.close(done)
    try:
        if os.read(ready, 1):
            return os.open(f"/proc/{child}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        return -1
    finally:
        os.close(ready)
        os.close(is_done)
        os.waitpid(child, 0)


def _limit(pid: int, options: dict[str, Any]) -> list[tuple[str, int]]:
    """Put a process into its own control groups, where the system permits it."""
    made: list[tuple[str, int]] = []
    for parent, limits in _hierarchies(options):
        cgroups.remove_stale(parent)
        group, lock = cgroups.make(parent)
        if not group:
            continue
        made.append((group, lock))
        try:
            for file, value in limits:
                _write(f"{group}/{file}", value)
            _write(f"{group}/cgroup.procs", str(pid))
        except OSError:
            continue
    return made


def _hierarchies(options: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    processes, memory = str(options.get("processes", 0)), str(options.get("memory", 0))
    found: list[tuple[str, list[tuple[str, str]]]] = []
    with open("/proc/self/cgroup") as file:
        rows = [line.strip().split(":", 2) for line in file]
    for _, controllers, path in rows:
        if controllers == "pids" and processes != "0":
            found.append((_where("pids", path), [("pids.max", processes)]))
        elif controllers == "memory" and memory != "0":
            found.append((_where("memory", path), [("memory.limit_in_bytes", memory)]))
        elif not controllers and os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            limits = [("pids.max", processes), ("memory.max", memory), ("memory.swap.max", "0")]
            chosen = [(file, value) for file, value in limits if value != "0" or "swap" in file]
            found.append((f"/sys/fs/cgroup{path.rstrip('/')}", chosen))
    return found


def _where(controller: str, path: str) -> str:
    return f"/sys/fs/cgroup/{controller}{path.rstrip('/')}"


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
