"""Finds what has to be covered before a command runs: credentials, protected files, sockets."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from toolwire.tools.files.protection import Protection
from toolwire.tools.spec import Workspace

CREDENTIALS = "credentials"
_SECONDS = 0.3
"""Spent on looking through folders that were not seen before."""
_MOST_FOLDERS = 20_000
_DEPENDENCIES = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__"})
"""Folders of installed packages: their certificates and samples are public."""
_GIT_FROZEN = ("hooks", "config", "config.worktree")
_OF_SYSTEM = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ipsec.secrets",
    "/etc/ppp",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/krb5.keytab",
    "/run/secrets",
    "/run/credentials",
    "/var/lib/sss/secrets",
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
)


class Exposed(msgspec.Struct, frozen=True):
    """Paths of the disk that need a cover."""

    hidden: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()


class _Listing(msgspec.Struct):
    """What one folder holds, as long as its entries do not change."""

    changed: int
    hidden: tuple[str, ...]
    frozen: tuple[str, ...]
    below: tuple[str, ...]


class Exposure:
    """Looks through folders, and again only through those that changed."""

    def __init__(self, workspace: Workspace, protection: Protection) -> None:
        self._workspace = workspace
        self._protection = protection
        self._seen: dict[str, _Listing] = {}
        self._roots = tuple(os.path.realpath(root) for root in workspace.roots)
        self._homes = _homes(workspace)

    def find(self, *, sockets: bool) -> Exposed:
        """All that exists now; `sockets` adds those that other programs listen on."""
        hidden: dict[str, None] = {}
        frozen: dict[str, None] = {}
        for listing in self._listings():
            hidden.update(dict.fromkeys(listing.hidden))
            frozen.update(dict.fromkeys(listing.frozen))
        hidden.update((path, None) for path in _OF_SYSTEM if os.path.lexists(path))
        hidden.update((path, None) for path in _host_keys())
        if sockets:
            inside = tuple(f"{root}/" for root in self._roots)
            hidden.update((path, None) for path in _sockets() if not path.startswith(inside))
        return Exposed(tuple(hidden), tuple(frozen))

    def _listings(self) -> Iterator[_Listing]:
        until = time.monotonic() + _SECONDS
        open_ = [(root, 99) for root in self._roots]
        open_ += [(home, 3) for home in self._homes if home not in self._roots]
        count = 0
        while open_:
            # Breadth first: what is near the top counts most if there is no time for all.
            following: list[tuple[str, int]] = []
            for folder, depth in open_:
                listing = self._listing(folder, until, count < _MOST_FOLDERS)
                count += 1
                if listing is None:
                    continue
                yield listing
                if depth > 1:
                    following += [(below, depth - 1) for below in listing.below]
            open_ = following

    def _listing(self, folder: str, until: float, more: bool) -> _Listing | None:
        try:
            changed = os.stat(folder).st_mtime_ns
        except OSError:
            return None
        known = self._seen.get(folder)
        if known is not None and known.changed == changed:
            return known
        if known is None and (not more or time.monotonic() > until):
            return None
        try:
            found = self._look(folder, changed)
        except OSError:
            return None
        self._seen[folder] = found
        return found

    def _look(self, folder: str, changed: int) -> _Listing:
        hidden: list[str] = []
        frozen: list[str] = []
        below: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name == ".git" and is_folder:
                    frozen += _of_repository(entry.path)
                    continue
                if is_folder and entry.name in _DEPENDENCIES:
                    continue
                why = self._why(entry.path, entry.name)
                if entry.is_symlink():
                    target = os.path.realpath(entry.path) if why else ""
                    if target and os.path.lexists(target):
                        (hidden if why == CREDENTIALS else frozen).append(target)
                    continue
                if why == CREDENTIALS:
                    hidden.append(entry.path)
                    continue
                if why:
                    frozen.append(entry.path)
                if is_folder:
                    below.append(entry.path)
        return _Listing(changed, tuple(hidden), tuple(frozen), tuple(below))

    def _why(self, path: str, name: str) -> str:
        why = self._protection.why(path)
        if why and why != CREDENTIALS and self._protection.why(f"/{name}") == CREDENTIALS:
            return CREDENTIALS
        return why


def _of_repository(git: str, depth: int = 3) -> Iterator[str]:
    """Files of a repository that make git run programs, its submodules' included."""
    yield from (path for name in _GIT_FROZEN if os.path.lexists(path := f"{git}/{name}"))
    if depth:
        for folder in ("modules", "worktrees"):
            try:
                names = os.listdir(f"{git}/{folder}")
            except OSError:
                continue
            for name in names:
                yield from _of_repository(f"{git}/{folder}/{name}", depth - 1)


def repository_of_worktree(root: str) -> str:
    """The repository that a linked worktree writes to; empty if it does not name this one back."""
    try:
        word, _, where = Path(root, ".git").read_text().strip().partition(": ")
        own = os.path.realpath(os.path.join(root, where))
        back = Path(own, "gitdir").read_text().strip()
        common = Path(own, "commondir").read_text().strip()
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
    if word != "gitdir" or os.path.realpath(back) != os.path.realpath(f"{root}/.git"):
        return ""
    shared = os.path.realpath(os.path.join(own, common))
    # Else a `.git` file written by a command would make any folder writable for the next.
    return shared if own.startswith(f"{shared}/worktrees/") else ""


def frozen_in_repository(git: str) -> tuple[str, ...]:
    """What stays read-only in a repository outside of the workspace."""
    return tuple(_of_repository(git)) if git else ()


def _homes(workspace: Workspace) -> tuple[str, ...]:
    """Home folders whose credentials this user could read."""
    homes = [str(workspace.home)]
    if getattr(os, "geteuid", int)() == 0:
        homes += ["/root", *_entries("/home")]
    return tuple(dict.fromkeys(os.path.realpath(home) for home in homes if home != "/"))


def _host_keys() -> list[str]:
    return [path for path in _entries("/etc/ssh") if path.endswith("_key")]


def _entries(folder: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(folder)]
    except OSError:
        return []


def _sockets() -> Iterator[str]:
    """Sockets with a path that a program listens on: who connects leaves the sandbox."""
    try:
        rows = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return
    for row in rows:
        path = row.split(maxsplit=7)[-1]
        if path.startswith("/") and os.path.lexists(path):
            yield os.path.realpath(path)
