"""From a spec to a plan: which paths a command may read and write, as its watchdog needs it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from toolwire.request import JsonObject
from toolwire.storage.paths import state_paths
from toolwire.tools.spec import SandboxSpec, Workspace

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - private copies are made of them
_CACHES = (
    ".cache",
    ".npm",
    ".cargo",
    ".gradle",
    ".m2",
    ".ivy2",
    ".nuget",
    ".pub-cache",
    ".bun",
    ".yarn",
    ".local/share/pnpm",
    ".local/share/uv",
    "go",
    "Library/Caches",
)
"""Folders of the home that build tools insist on writing to."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_SHARED_DEVICES = ("/dev/ptmx", "/dev/pts", "/dev/shm")  # noqa: S108 - needed without namespaces
PROCESSES = 2048
_MEMORY_SHARE = 0.75


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """The real paths that a spec refers to."""

    roots: tuple[str, ...]
    temp: str
    writable: tuple[str, ...]
    state: tuple[str, ...]
    """The agent's own folders."""


def paths_of(
    spec: SandboxSpec,
    workspace: Workspace,
    environ: Mapping[str, str],
    repositories: Sequence[str] = (),
) -> Paths:
    """Real paths, as far as they exist; a file that may be written is made if it is missing."""
    with suppress(OSError):  # outputs too long for memory are lost without it, and no more
        workspace.temp.mkdir(parents=True, exist_ok=True)
    roots = tuple(os.path.realpath(root) for root in workspace.roots)
    temp = os.path.realpath(workspace.temp)
    writable = [temp]
    if spec.level == "workspace-write":
        writable += (*roots, *repositories)
    writable += [_made(path) for path in spec.writable]
    own = state_paths(environ)
    folders = (own.config, own.cache, own.credentials.parent, own.sessions.parent, own.state)
    state = dict.fromkeys(os.path.realpath(folder) for folder in (*folders, *spec.hidden))
    return Paths(
        roots=roots,
        temp=temp,
        writable=_outermost(path for path in writable if os.path.lexists(path)),
        state=tuple(_around(_outermost(state), roots)),
    )


def _made(path: str) -> str:
    found = os.path.realpath(path)
    if not os.path.lexists(found) and os.path.isdir(os.path.dirname(found)):
        try:
            os.close(os.open(found, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except OSError:
            return found
    return found


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    found = sorted(dict.fromkeys(paths))
    return tuple(path for path in found if not any(path.startswith(f"{other}/") for other in found))


def _around(folders: Sequence[str], roots: Sequence[str]) -> list[str]:
    """An agent folder that contains the workspace is split: the workspace stays visible."""
    found: list[str] = []
    for folder in folders:
        if not any(root == folder or root.startswith(f"{folder}/") for root in roots):
            found.append(folder)
        elif os.path.isdir(folder) and folder not in roots:
            found += _around([entry.path for entry in os.scandir(folder)], roots)
    return found


def scratch_of(workspace: Workspace, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Folders that commands write to everywhere; they get private copies."""
    home = str(workspace.home)
    folders = [*_TEMPORARY, environ.get("TMPDIR", ""), *(f"{home}/{one}" for one in _CACHES)]
    found = (os.path.realpath(folder) for folder in folders if folder.startswith("/"))
    return tuple(sorted({path for path in found if os.path.isdir(path) and path != "/"}))


def make_plan(kind: str, spec: SandboxSpec, paths: Paths, scratch: Sequence[str]) -> JsonObject:
    """The plan of a watchdog; commands with the same plan share one."""
    approved = spec.level == "approved"
    holes = [path for path in paths.state if _holds(path, paths.writable)]
    inside = [path for path in scratch if not _holds_exactly(path, paths.writable)]
    return {
        "kind": kind,
        "open": approved,
        "network": spec.network or approved,
        "writable": list(paths.writable),
        "scratch": [] if approved else inside,
        "state": holes,
        "root": getattr(os, "geteuid", int)() == 0,
        "limits": limits(own_processes=kind in ("namespaces", "bubblewrap")),
        "readable": ["/"],
        "exceptions": list(spec.readable),
        "listable": [],
        "devices": [*DEVICES, *_SHARED_DEVICES],
    }


def _holds(folder: str, paths: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for path in paths)


def _holds_exactly(folder: str, paths: Sequence[str]) -> bool:
    """Whether a folder or one above it is writable."""
    return any(folder == path or folder.startswith(f"{path}/") for path in paths)


def limits(*, own_processes: bool) -> dict[str, int]:
    """Limits of one process, by the name the system has for them."""
    found = {"CORE": 0, "DATA": memory()}
    # Without a namespace it would count every thread of the user.
    return found | {"NPROC": PROCESSES} if own_processes else found


def memory() -> int:
    """Bytes that the commands of a session may take together."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        whole = 8 << 30
    return int(whole * _MEMORY_SHARE)


def hidden_state(paths: Paths) -> tuple[str, ...]:
    """Folders of the agent's own that can be hidden as a whole."""
    return tuple(path for path in paths.state if not _holds(path, paths.writable))
