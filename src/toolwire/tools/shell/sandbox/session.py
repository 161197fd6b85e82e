"""The sandbox of one session: its namespaces, and how each command is confined in them."""

import os
import shutil
import tempfile
import threading
from collections.abc import Mapping

from toolwire.request import JsonObject
from toolwire.tools.files.protection import Protection
from toolwire.tools.shell.processes import Confined
from toolwire.tools.shell.sandbox import detect
from toolwire.tools.shell.sandbox.denials import Walls
from toolwire.tools.shell.sandbox.exposure import (
    Exposed,
    Exposure,
    frozen_in_repository,
    repository_of_worktree,
)
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


class Sandbox:
    """Confines the commands of one session; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[str, Watchdogs] = {}
        self._exposures: dict[Workspace, Exposure] = {}
        self._scratch: dict[Workspace, tuple[str, ...]] = {}

    def confined(
        self, spec: SandboxSpec, workspace: Workspace, environ: Mapping[str, str]
    ) -> Confined | None:
        """How a command runs under this spec; None where the system has no sandbox."""
        if spec.level == "off":
            return None
        with self._lock:
            paths = paths_of(spec, workspace, environ)
            scratch = self._scratch.setdefault(workspace, scratch_of(workspace, environ))
            kind = self._kind(workspace)
            if kind == "none":
                return None
            exposed = self._exposed(spec, paths, workspace, environ)
            if kind in ("landlock", "seatbelt"):
                scratch = ()  # the folders themselves would be written
            plan = make_plan(kind, spec, paths, scratch)
            return self._under(kind, plan, exposed, workspace)

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
            server = self._servers.get("") or self._server(workspace)
            return Confined(watchdogs=server, plan=plan, hidden=hidden, frozen=frozen)
        if kind == "bubblewrap":
            server = self._wrapped(plan, exposed)
            return Confined(watchdogs=server, plan=plan, hidden=hidden, frozen=frozen)
        if kind == "landlock":
            from toolwire.tools.shell.sandbox.reach import without_exceptions  # noqa: PLC0415 - rare

            plan = without_exceptions(plan, (*hidden, *plan["state"]))
            return Confined(
                watchdogs=WATCHDOGS,
                plan=plan,
                hidden=hidden,
                frozen=frozen,
                environ=_own_temporary(workspace),
            )
        from toolwire.tools.shell.sandbox import seatbelt  # noqa: PLC0415 - only on macOS

        prefix = seatbelt.words(plan, hidden, frozen)
        return Confined(
            watchdogs=WATCHDOGS,
            plan={},
            hidden=hidden,
            frozen=frozen,
            prefix=prefix,
            environ=_own_temporary(workspace),
        )

    def _server(self, workspace: Workspace) -> Watchdogs:
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
        from toolwire.tools.shell.sandbox import bubblewrap  # noqa: PLC0415 - rare

        program = shutil.which(bubblewrap.PROGRAM) or bubblewrap.PROGRAM
        prefix = bubblewrap.words(program, plan, exposed.hidden, exposed.frozen)
        key = "\0".join(prefix)
        return self._servers.setdefault(key, Watchdogs(prefix, {"kind": "bubblewrap"}))

    def _exposed(
        self,
        spec: SandboxSpec,
        paths: Paths,
        workspace: Workspace,
        environ: Mapping[str, str],
    ) -> Exposed:
        looking = self._exposures.get(workspace)
        if looking is None:
            looking = Exposure(workspace, Protection(workspace, environ))
            self._exposures[workspace] = looking
        approved = spec.level == "approved"
        found = looking.find(sockets=not approved)
        hidden = (*found.hidden, *hidden_state(paths))
        frozen = found.frozen
        if approved:
            frozen = tuple(path for path in frozen if "/.git/" not in path)
        else:
            for root in paths.roots:
                frozen += frozen_in_repository(repository_of_worktree(root))
        writable = _real(spec.writable)
        return Exposed(
            hidden=_without(hidden, (*_real(spec.readable), *writable)),
            frozen=_without(frozen, writable),
        )


def _own_temporary(workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """A temporary folder of the session's, where the system's cannot be made private."""
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
    """What a denial can be explained by."""
    plan = confined.plan
    return Walls(
        network=bool(plan.get("network")),
        writes=bool(plan.get("open")),
        hidden=(*confined.hidden, *plan.get("state", ())),
        frozen=confined.frozen,
        directory=directory,
    )


_SANDBOXES: dict[str, Sandbox] = {}


def sandbox_of(owner: str) -> Sandbox:
    """The sandbox of a session."""
    return _SANDBOXES.setdefault(owner, Sandbox())


def close_sandbox(owner: str) -> None:
    """End the sandbox of a session, if it has one."""
    sandbox = _SANDBOXES.pop(owner, None)
    if sandbox is not None:
        sandbox.close()
