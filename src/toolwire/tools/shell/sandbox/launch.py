"""Starts confined commands from the process that watches over them; standard library only."""

import os
import signal
import struct
from collections.abc import Iterable
from typing import Any, NoReturn

from toolwire.tools.shell.sandbox import mounts, system
from toolwire.tools.shell.sandbox.confinement import Confinement, become
from toolwire.tools.shell.sandbox.system import Surroundings

_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_APPROVED_NODES = ("dri", "kvm", "fuse", "snd", "net", "nvidia0", "nvidiactl", "nvidia-uvm")
_LINKS = (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2"))
_MASKS = "/dev/.toolwire"


class View:
    """A mount namespace of this process, changed for each command by what has to be covered."""

    def __init__(self, plan: dict[str, Any], copies: dict[str, str], store: str) -> None:
        """Enter it. The plan's paths are real ones: no part of them is a link."""
        system.unshare(system.NEW_NAMESPACE)
        mounts.make_private()
        writable = sorted(path for path in plan["writable"] if os.path.lexists(path))
        trees = {path: mounts.clone(path) for path in writable}
        scratch = [path for path in plan["scratch"] if path in copies and path not in writable]
        trees |= {path: mounts.clone(copies[path]) for path in scratch}
        if not plan["open"]:
            mounts.restrict("/", mounts.READ_ONLY)
        mounts.restrict("/proc", mounts.READ_ONLY)
        _devices(everything=plan["open"])
        self._mask = mounts.Mask(_MASKS)
        mounts.restrict("/dev", mounts.READ_ONLY, recursive=False)
        for path in scratch:
            _attach_copy(path, trees[path], writable)
        for path in plan["state"]:
            _hide_around(path, [one for one in writable if one.startswith(f"{path}/")])
        for path in writable:
            mounts.attach(trees[path], path)
        if store:
            # Last: it may be in a folder that was just attached.
            self._mask.cover(store)

    def cover(self, hidden: Iterable[str], frozen: Iterable[str]) -> None:
        """Hide files and folders, and make others read-only, as far as it is not yet so."""
        for path in frozen:
            if not mounts.is_frozen(path):
                _tolerate(mounts.freeze, path)
        for path in hidden:
            _tolerate(self._mask.cover, path)


def _attach_copy(path: str, copy: int, writable: list[str]) -> None:
    """Put a private copy over a folder; what leads to writable folders in it stays read-only."""
    tops = {_top(path, one) for one in writable if one.startswith(f"{path}/")}
    trees = {top: mounts.clone(top) for top in tops}
    mounts.attach(copy, path)
    for top, tree in trees.items():
        if not os.path.lexists(top):
            _make_target(top)
        mounts.attach(tree, top)


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
    trees = {name: mounts.clone(f"/dev/{name}") for name in names if os.path.exists(f"/dev/{name}")}
    mounts.mount("tmpfs", "/dev", 2, "mode=755,size=1m")
    for name, tree in trees.items():
        if name in ("dri", "snd", "net"):
            os.mkdir(f"/dev/{name}")
        else:
            os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        mounts.attach(tree, f"/dev/{name}")
    for name in ("pts", "shm", _MASKS.rpartition("/")[2]):
        os.mkdir(f"/dev/{name}")
    mounts.mount("devpts", "/dev/pts", 2 | 8, "newinstance,ptmxmode=0666,mode=620")
    mounts.fresh("/dev/shm", "mode=1777,size=25%")  # noqa: S108 - our own one
    os.symlink("pts/ptmx", "/dev/ptmx")
    for name, rest in _LINKS:
        os.symlink(f"/proc/self/fd{rest}", f"/dev/{name}")


def _hide_around(path: str, holes: list[str]) -> None:
    """Put an empty folder over one, with only the folders in it that are attached again later."""
    if not os.path.isdir(path) or not holes:
        return
    folders = {hole: os.path.isdir(hole) for hole in holes}
    mounts.fresh(path, "mode=711,size=64k")
    for hole, is_folder in folders.items():
        _make_target(hole, is_folder=is_folder)
    mounts.restrict(path, mounts.READ_ONLY, recursive=False)


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
