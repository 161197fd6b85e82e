"""Starts confined commands: their view of the disk, what they give up; standard library only."""

import ctypes
import errno
import os
import signal
import struct
from collections.abc import Iterable
from typing import Any, NoReturn

from toolwire.platform.posix import resource
from toolwire.tools.shell.sandbox import system
from toolwire.tools.shell.sandbox.system import Surroundings

_FILTER_MODE = 2
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32 = 0x40000000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
UNIX, INET, NETLINK, INET6 = 1, 2, 16, 10
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


class _Table:
    """Numbers of one architecture."""

    def __init__(self, audit: int, socket: int, ioctl: int, denied: tuple[int, ...]) -> None:
        self.audit = audit
        self.socket = socket
        self.ioctl = ioctl
        self.denied = denied
        """Keys of the session, kernel code, performance events, files by handle, io_uring."""


_TABLES = {
    "x86_64": _Table(
        0xC000003E,
        41,
        16,
        (248, 249, 250, 321, 298, 304, 175, 313, 246, 320, 425, 426, 427),
    ),
    "aarch64": _Table(
        0xC00000B7,
        198,
        29,
        (217, 218, 219, 280, 241, 265, 105, 273, 104, 294, 425, 426, 427),
    ),
}


def available() -> bool:
    """Whether filters for this machine are known."""
    return system.machine() in _TABLES


def program(machine: str, families: tuple[int, ...]) -> bytes:
    """The filter as the kernel takes it; no families lets every kind of socket be made."""
    table = _TABLES[machine]
    no = _ERRNO | errno.EPERM
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, table.audit),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for number in table.denied:
        refusal = _ERRNO | errno.ENOSYS if number in (425, 426, 427) else no
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refusal)]
    lines += [
        (_EQUAL, 0, 5, table.ioctl),
        (_LOAD, 0, 0, _SECOND),
        (_EQUAL, 1, 0, _TIOCSTI),
        (_EQUAL, 0, 1, _TIOCLINUX),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
    ]
    if families:
        lines += [(_EQUAL, 1, 0, table.socket), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST)]
        for family in families:
            lines += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
        # Programs report it as what it is.
        lines.append((_RETURN, 0, 0, _ERRNO | errno.ENETUNREACH))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


class Filter:
    """A filter that is ready; `enforce` in the process that is to be confined."""

    def __init__(self, families: tuple[int, ...]) -> None:
        code = program(system.machine(), families)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = ctypes.create_string_buffer(
            struct.pack("H6xP", len(code) // 8, ctypes.addressof(self._code)), 16
        )

    def enforce(self) -> None:
        """Confine this process and its children for good."""
        system.control(system.SET_SECCOMP, _FILTER_MODE, ctypes.byref(self._program))


_ROOT_KEEPS = (0, 1, 3, 4, 5, 6, 7, 10, 29)
"""Of root's capabilities: owners and modes of files, signals, identities, low ports."""
_EVERY_RIGHT = (1 << 16) - 1 & ~(1 << 6) & ~(1 << 11)
"""All but making devices."""


class Confinement:
    """Prepared once for a plan; `enforce` costs a few system calls for each command."""

    def __init__(self, plan: dict[str, Any], *, own_network: bool, own_processes: bool) -> None:
        self._limits = plan["limits"]
        self._keep = _ROOT_KEEPS if plan["root"] else ()
        # What this process may do itself does not change by it.
        system.bound_capabilities(self._keep)
        self._rules: system.LandlockRules | None = None
        if system.landlock_version():
            self._rules = _rules(plan, own_network=own_network, own_processes=own_processes)
        self._filter: Filter | None = None
        if available():
            inner = (UNIX, NETLINK)
            wide = (*inner, INET, INET6) if own_network else inner
            self._filter = Filter(() if plan["network"] else wide)

    def enforce(self) -> None:
        """Confine this process for good."""
        for name, value in self._limits.items():
            _limit(getattr(resource, f"RLIMIT_{name}"), value)
        system.drop_capabilities(self._keep)
        system.control(system.SET_NO_NEW_PRIVILEGES, 1)
        if self._rules is not None:
            self._rules.enforce()
        if self._filter is not None:
            self._filter.enforce()


def _rules(plan: dict[str, Any], *, own_network: bool, own_processes: bool) -> system.LandlockRules:
    tcp = not plan["network"] and not own_network
    rules = system.LandlockRules(tcp=tcp, signals=not own_processes)
    if plan["open"]:
        rules.allow(plan["readable"], _EVERY_RIGHT)
    else:
        rules.allow(plan["readable"], system.MAY_READ)
        rules.allow((*plan["writable"], *plan["scratch"]), _EVERY_RIGHT)
        rules.allow(plan["listable"], system.MAY_READ_FOLDER)
    devices = ("/dev",) if own_processes else plan["devices"]
    rules.allow(devices, _EVERY_RIGHT)
    return rules


def _limit(which: int, most: int) -> None:
    soft, hard = resource.getrlimit(which)
    new = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft == resource.RLIM_INFINITY or soft > new:
        resource.setrlimit(which, (new, new))


def become(
    confinement: Confinement, program: str, words: list[str], environ: dict[str, str]
) -> None:
    """Become the program, confined; OSError if it cannot be started."""
    confinement.enforce()
    os.execve(program, words, environ)  # noqa: S606 - the command itself


_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_APPROVED_NODES = ("dri", "kvm", "fuse", "snd", "net", "nvidia0", "nvidiactl", "nvidia-uvm")
_LINKS = (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2"))
_MASKS = "/dev/.toolwire"


class View:
    """A mount namespace of this process, changed for each command by what has to be covered."""

    def __init__(self, plan: dict[str, Any], copies: dict[str, str], store: str) -> None:
        """Enter it. The plan's paths are real ones: no part of them is a link."""
        system.unshare(system.NEW_NAMESPACE)
        system.make_private()
        writable = sorted(path for path in plan["writable"] if os.path.lexists(path))
        trees = {path: system.clone(path) for path in writable}
        scratch = [path for path in plan["scratch"] if path in copies and path not in writable]
        trees |= {path: system.clone(copies[path]) for path in scratch}
        if not plan["open"]:
            system.restrict("/", system.READ_ONLY)
        system.restrict("/proc", system.READ_ONLY)
        _devices(everything=plan["open"])
        self._mask = system.Mask(_MASKS)
        system.restrict("/dev", system.READ_ONLY, recursive=False)
        for path in scratch:
            _attach_copy(path, trees[path], writable)
        for path in plan["state"]:
            _hide_around(path, [one for one in writable if one.startswith(f"{path}/")])
        for path in writable:
            system.attach(trees[path], path)
        if store:
            # Last: it may be in a folder that was just attached.
            self._mask.cover(store)

    def cover(self, hidden: Iterable[str], frozen: Iterable[str]) -> None:
        """Hide files and folders, and make others read-only, as far as it is not yet so."""
        for path in frozen:
            if not system.is_frozen(path):
                _tolerate(system.freeze, path)
        for path in hidden:
            _tolerate(self._mask.cover, path)


def _attach_copy(path: str, copy: int, writable: list[str]) -> None:
    """Mount a private copy over a folder; parents of writable folders in it stay read-only."""
    tops = {_top(path, one) for one in writable if one.startswith(f"{path}/")}
    trees = {top: system.clone(top) for top in tops}
    system.attach(copy, path)
    for top, tree in trees.items():
        if not os.path.lexists(top):
            _make_target(top)
        system.attach(tree, top)


def _tolerate(change: Any, path: str) -> None:
    """A file that vanished since it was seen needs no cover."""
    try:
        change(path)
    except OSError:
        if os.path.lexists(path) and not os.path.islink(path):
            raise


def _devices(*, everything: bool) -> None:
    """A small `/dev`: what every program may expect, and terminals of its own."""
    names = (*_NODES, *(_APPROVED_NODES if everything else ()))
    trees = {name: system.clone(f"/dev/{name}") for name in names if os.path.exists(f"/dev/{name}")}
    system.mount("tmpfs", "/dev", 2, "mode=755,size=1m")
    for name, tree in trees.items():
        if name in ("dri", "snd", "net"):
            os.mkdir(f"/dev/{name}")
        else:
            os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        system.attach(tree, f"/dev/{name}")
    for name in ("pts", "shm", _MASKS.rpartition("/")[2]):
        os.mkdir(f"/dev/{name}")
    system.mount("devpts", "/dev/pts", 2 | 8, "newinstance,ptmxmode=0666,mode=620")
    system.fresh("/dev/shm", "mode=1777,size=25%")  # noqa: S108 - our own one
    os.symlink("pts/ptmx", "/dev/ptmx")
    for name, rest in _LINKS:
        os.symlink(f"/proc/self/fd{rest}", f"/dev/{name}")


def _hide_around(path: str, holes: list[str]) -> None:
    """Put an empty folder over one, with only the folders in it that are attached again later."""
    if not os.path.isdir(path) or not holes:
        return
    folders = {hole: os.path.isdir(hole) for hole in holes}
    system.fresh(path, "mode=711,size=64k")
    for hole, is_folder in folders.items():
        _make_target(hole, is_folder=is_folder)
    system.restrict(path, system.READ_ONLY, recursive=False)


def _make_target(path: str, *, is_folder: bool = True) -> None:
    os.makedirs(path if is_folder else os.path.dirname(path), mode=0o711, exist_ok=True)
    if not is_folder and not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _top(folder: str, path: str) -> str:
    prefix = folder.rstrip("/")
    return f"{prefix}/{path.removeprefix(prefix).lstrip('/').split('/', 1)[0]}"


class Launcher:
    """One plan, prepared once; starts any number of commands under it."""

    def __init__(self, plan: dict[str, Any], around: Surroundings) -> None:
        self._view = None
        if around.contained and plan["kind"] == "namespaces":
            self._view = View(plan, around.copies, around.store)
        own_network = plan["kind"] == "bubblewrap"
        if around.network >= 0 and not plan["network"]:
            system.enter_namespace(around.network, system.NEW_NETWORK)
            own_network = True
        self._confinement = Confinement(
            plan, own_network=own_network, own_processes=around.contained
        )

    def start(
        self, order: dict[str, Any], program: str, outputs: list[int], defaults: tuple[int, ...]
    ) -> int:
        """Start a command in its own session; OSError if it cannot be done."""
        if self._view is not None:
            self._view.cover(order.get("hidden", ()), order.get("frozen", ()))
        os.chdir(order["directory"])
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._be(order, program, outputs, defaults, writing)
        os.close(writing)
        with open(reading, "rb") as failures:
            failed = failures.read()
        if failed:
            os.waitpid(child, 0)
            (number,) = struct.unpack("i", failed)
            raise OSError(number, os.strerror(number))
        return child

    def _be(
        self,
        order: dict[str, Any],
        program: str,
        outputs: list[int],
        defaults: tuple[int, ...],
        failures: int,
    ) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            for number, output in zip((1, 2, 0), outputs, strict=False):
                os.dup2(output, number)
            for number in defaults:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            become(self._confinement, program, order["command"], order["environ"])
        except OSError as error:
            os.write(failures, struct.pack("i", error.errno or 5))
        finally:
            os._exit(127)
