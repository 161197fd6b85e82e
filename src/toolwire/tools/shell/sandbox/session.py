"""The sandbox of one session: its namespaces, how commands are confined, and denials it caused."""

import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.files.protection import Protection
from toolwire.tools.shell.processes import Confined
from toolwire.tools.shell.sandbox import detect
from toolwire.tools.shell.sandbox.exposure import Exposed, Exposure, mark, repository_of_worktree
from toolwire.tools.shell.sandbox.plan import (
    PROCESSES,
    Paths,
    hidden_state,
    make_plan,
    memory,
    paths_of,
    scratch_of,
)
from toolwire.tools.shell.watchdogs import WATCHDOGS, Watchdogs
from toolwire.tools.spec import SandboxSpec, Workspace

_TAIL = 20_000
_ROFS = re.compile(r"read-only file system|EROFS|errno 30\b", re.IGNORECASE)
_REFUSED = re.compile(
    r"permission denied|operation not permitted|EACCES|EPERM|errno 1\b|errno 13\b|resource busy"
    r"|cross-device",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"could(?: not|n't) resolve|name resolution|network is unreachable|ENETUNREACH|EAI_AGAIN"
    r"|ENOTFOUND|getaddrinfo|unable to access 'https?:|no route to host|failed to connect"
    r"|unable to resolve|failed to establish a new connection|nodename nor servname"
    r"|could(?: not|n't) connect|connection refused|temporary failure resolving|network error"
    r"|unknown host|no such host|dial tcp|failed to lookup address",
    re.IGNORECASE,
)
_PROCESSES = re.compile(r"fork: (?:retry: )?resource temporarily|can't start new thread", re.I)
_MEMORY = re.compile(r"cannot allocate memory|out of memory|MemoryError|ENOMEM", re.IGNORECASE)
_MISSING = re.compile(r"no such file|cannot access|ENOENT|errno 2\b", re.IGNORECASE)
_PATH = re.compile(r"/[^\s'\"`:;,()<>|]+")


class Walls(msgspec.Struct, frozen=True, kw_only=True):
    """What the sandbox denies a command."""

    network: bool
    """The network is allowed."""
    writes: bool
    """The whole disk may be written."""
    hidden: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    directory: str = ""


def explained(output: str, *, failed: bool, walls: Walls) -> str:
    """A line for the model if the sandbox plausibly stopped a command; else empty."""
    output = output[-_TAIL:]
    reason = _reason(output, failed, walls)
    return f"blocked by the sandbox: {reason}; ask the user" if reason else ""


def _reason(output: str, failed: bool, walls: Walls) -> str:
    lines = output.splitlines()
    refused = [line for line in lines if _REFUSED.search(line)]
    # Root sees an empty folder where others are refused.
    for line in (*refused, *(line for line in lines if _MISSING.search(line))):
        if _names_any(line, walls.hidden, walls.directory):
            return "read of a credential or of the agent's own files"
    for line in (*refused, *(line for line in lines if _ROFS.search(line))):
        if _names_any(line, walls.frozen, walls.directory):
            return "write to a protected file"
    if _ROFS.search(output):
        return "write outside the workspace"
    if not failed:
        return ""
    if not walls.network and _NETWORK.search(output):
        return "network"
    if _PROCESSES.search(output):
        return "limit on the number of processes"
    if _MEMORY.search(output):
        return "limit on memory"
    if any("sudo" in line or "setuid" in line or "no new privileges" in line for line in lines):
        return "programs cannot gain privileges (no_new_privs)"
    if refused and not walls.writes:
        return "access outside the workspace"
    return ""


def _names_any(line: str, paths: tuple[str, ...], directory: str) -> bool:
    """Whether a line of an error names one of the paths or something in it."""
    if not paths:
        return False
    for path in paths:
        if path in line:
            return True
        near = path.removeprefix(f"{directory}/")
        if near != path and re.search(rf"(?<![\w./-]){re.escape(near)}(?![\w.-])", line):
            return True
    return any(one.startswith(tuple(f"{path}/" for path in paths)) for one in _PATH.findall(line))


PROGRAM = "bwrap"
_PROGRAM = tuple(dict.fromkeys((sys.base_prefix, sys.prefix, str(Path(__file__).parents[4]))))
"""Folders of the interpreter and of this package, which the fork server inside needs."""


def bubblewrap_arguments(
    program: str, plan: JsonObject, hidden: Sequence[str], frozen: Sequence[str]
) -> list[str]:
    """What runs a fork server inside; paths that need no cover are left as they are."""
    arguments = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--as-pid-1"]
    if not plan["network"]:
        arguments.append("--unshare-net")
    arguments += ["--bind" if plan["open"] else "--ro-bind", "/", "/"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    scratch = [path for path in plan["scratch"] if path.startswith(("/tmp", "/var/tmp"))]  # noqa: S108 - replaced by an empty one
    for path in scratch:
        arguments += ["--tmpfs", path]
    for path in _PROGRAM:
        if path.startswith(tuple(f"{one}/" for one in scratch)):
            arguments += ["--ro-bind", path, path]
    for path in plan["state"]:
        arguments += ["--tmpfs", path]
    for path in plan["writable"]:
        arguments += ["--bind", path, path]
    for path in frozen:
        arguments += ["--ro-bind-try", path, path]
    for path in hidden:
        arguments += _mask(path)
    return [*arguments, "--"]


def _mask(path: str) -> list[str]:

    if os.path.isdir(path):
        return ["--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind-try", "/dev/null", path]


def without_exceptions(plan: JsonObject, hidden: Sequence[str]) -> JsonObject:
    """The plan with rules that leave the hidden paths out.

    In a writable folder that holds a hidden file, entries that are there can be changed, and new
    ones cannot be made.
    """
    listable: list[str] = []
    # Processes change constantly: a list of them would be outdated at once.
    hidden = [path for path in hidden if not path.startswith("/proc/")]
    holes = plan["writable"]
    readable = _spread("/", [path for path in hidden if path not in holes], listable)
    writable = [one for path in plan["writable"] for one in _spread(path, hidden, listable)]
    everything = {"readable": readable, "listable": listable}
    if plan["open"]:
        return plan | everything
    scratch = [one for path in plan["scratch"] for one in _spread(path, hidden, listable)]
    return plan | everything | {"writable": writable, "scratch": scratch}


def _spread(path: str, hidden: Sequence[str], listable: list[str]) -> list[str]:
    """The path if nothing in it is hidden, else its parts without hidden files."""
    if path in hidden:
        return []
    inside = [one for one in hidden if one.startswith(f"{path.rstrip('/')}/")]
    if not inside:
        return [path]
    listable.append(path)
    try:
        # A rule at a link would apply to its target.
        entries = [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
    except OSError:
        return []
    return [part for entry in entries for part in _spread(entry, inside, listable)]


_MOST_KNOWN = 64
_Key: TypeAlias = tuple[SandboxSpec, Workspace, frozenset[tuple[str, str]]]


class _Known(msgspec.Struct, frozen=True):
    """A confinement, and what it was made from."""

    exposed: Exposed
    paths: Paths
    marks: tuple[object, ...]
    confined: Confined | None


class Sandbox:
    """Confines the commands of one session; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[str, Watchdogs] = {}
        self._exposures: dict[Workspace, Exposure] = {}
        self._scratch: dict[Workspace, tuple[str, ...]] = {}
        self._repositories: dict[Workspace, tuple[str, ...]] = {}
        self._known: dict[_Key, _Known] = {}

    def confined(
        self, spec: SandboxSpec, workspace: Workspace, environ: Mapping[str, str]
    ) -> Confined | None:
        """How a command runs under this spec; None where the system has no sandbox."""
        if spec.level == "off":
            return None
        key = (spec, workspace, frozenset(environ.items()))
        with self._lock:
            known = self._known.get(key)
            if (
                known is not None
                and known.marks == _marks(known.paths)
                and self._exposures[workspace].find() is known.exposed
            ):
                return known.confined
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._made(spec, workspace, environ)
            if known is None:
                return None
            if not (spec.readable or spec.writable):
                # Exceptions are looked up again: their neighbours may have changed.
                self._known[key] = known
            return known.confined

    def _made(
        self, spec: SandboxSpec, workspace: Workspace, environ: Mapping[str, str]
    ) -> _Known | None:
        if workspace not in self._repositories:
            # Once: what a command writes must not change what the next may write.
            found = (repository_of_worktree(os.path.realpath(root)) for root in workspace.roots)
            self._repositories[workspace] = tuple(filter(None, found))
        repositories = self._repositories[workspace]
        paths = paths_of(spec, workspace, environ, repositories)
        scratch = self._scratch.setdefault(workspace, scratch_of(workspace, environ))
        marks = _marks(paths)
        if workspace not in self._exposures:
            protection = Protection(workspace, environ)
            self._exposures[workspace] = Exposure(workspace, protection, repositories)
        exposed = self._exposures[workspace].find()
        kind = self._kind(workspace)
        if kind == "none":
            return None
        if kind in ("landlock", "seatbelt"):
            scratch = ()  # the folders themselves would be written
        plan = make_plan(kind, spec, paths, scratch)
        covered = _covered(spec, paths, exposed)
        return _Known(exposed, paths, marks, self._under(kind, plan, covered, workspace))

    def _kind(self, workspace: Workspace) -> detect.Kind:
        """The kind of this system; where it is not known yet, the first start shows it."""
        if detect.is_open():
            try:
                self._server(workspace).open()
                detect.remember("namespaces")
            except OSError:
                self._servers.clear()
        return detect.kind()

    def close(self) -> None:
        """End everything that runs in it."""
        with self._lock:
            servers, self._servers = tuple(self._servers.values()), {}
        for server in servers:
            server.close()

    def _under(
        self, kind: detect.Kind, plan: JsonObject, exposed: Exposed, workspace: Workspace
    ) -> Confined:
        hidden, frozen = exposed.hidden, exposed.frozen
        if kind == "namespaces":
            server = self._server(workspace)
            return Confined(watchdogs=server, plan=plan, hidden=hidden, frozen=frozen)
        if kind == "bubblewrap":
            server = self._wrapped(plan, exposed)
            return Confined(watchdogs=server, plan=plan, hidden=hidden, frozen=frozen)
        if kind == "landlock":
            plan = without_exceptions(plan, (*hidden, *plan["state"]))
            return Confined(
                watchdogs=WATCHDOGS,
                plan=plan,
                hidden=hidden,
                frozen=frozen,
                environ=_own_temporary(workspace),
            )
        prefix = detect.seatbelt_arguments(plan, hidden, frozen)
        return Confined(
            watchdogs=WATCHDOGS,
            plan={},
            hidden=hidden,
            frozen=frozen,
            prefix=prefix,
            environ=_own_temporary(workspace),
        )

    def _server(self, workspace: Workspace) -> Watchdogs:
        if "" in self._servers:
            return self._servers[""]
        folder = workspace.temp if workspace.temp.is_dir() else None
        store = tempfile.mkdtemp(prefix="sandbox-", dir=folder)
        options: JsonObject = {
            "kind": "namespaces",
            "store": os.path.realpath(store),
            "scratch": list(self._scratch[workspace]),
            "processes": PROCESSES,
            "memory": memory(),
        }
        server = Watchdogs(options=options)
        self._servers[""] = server
        return server

    def _wrapped(self, plan: JsonObject, exposed: Exposed) -> Watchdogs:

        program = shutil.which(PROGRAM) or PROGRAM
        prefix = bubblewrap_arguments(program, plan, exposed.hidden, exposed.frozen)
        key = "\0".join(prefix)
        return self._servers.setdefault(key, Watchdogs(prefix, {"kind": "bubblewrap"}))


def _covered(spec: SandboxSpec, paths: Paths, exposed: Exposed) -> Exposed:
    """What is covered for a command under this spec."""
    approved = spec.level == "approved"
    hidden = (*exposed.hidden, *(() if approved else exposed.sockets), *hidden_state(paths))
    frozen = (*exposed.frozen, *(() if approved else exposed.in_repositories))
    writable = _real(spec.writable)
    return Exposed(
        hidden=_without(hidden, (*_real(spec.readable), *writable)),
        frozen=_without(frozen, writable),
    )


def _marks(paths: Paths) -> tuple[object, ...]:
    """Changes when a folder is created, removed or replaced."""
    existing = map(os.path.lexists, (paths.temp, *paths.roots, *paths.writable))
    return (*existing, *map(mark, paths.state))


def _own_temporary(workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """A temporary folder for the session if the system's cannot be made private."""
    folder = workspace.temp / "tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ()
    return (("TMPDIR", os.path.realpath(folder)),)


def _real(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.realpath(path) for path in paths)


def _without(paths: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are not allowed by name, nor as part of a protected folder that is."""
    if not allowed:
        return paths
    folders = tuple(f"{one}/" for one in allowed if one in paths or "/.git" in one)
    kept: list[str] = []
    for path in paths:
        if path in allowed or (folders and path.startswith(folders)):
            continue
        if any(one.startswith(f"{path}/") for one in allowed):
            inner = tuple(entry.path for entry in os.scandir(path))
            kept += _without(inner, allowed)
        else:
            kept.append(path)
    return tuple(kept)


def walls_of(confined: Confined, directory: str) -> Walls:
    """Possible reasons for a denial."""
    plan = confined.plan
    return Walls(
        network=bool(plan.get("network")),
        writes=bool(plan.get("open")),
        hidden=(*confined.hidden, *plan.get("state", ())),
        frozen=confined.frozen,
        directory=directory,
    )
