"""Finds what has to be covered before a command runs: credentials, protected files, sockets."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from toolwire.tools.files.protection import Protection
from toolwire.tools.spec import Workspace

CREDENTIALS = "credentials"
_SECONDS = 0.3
"""Seconds spent on scanning folders that are new."""
_MOST_FOLDERS = 20_000
_TICK = 50_000_000
"""Nanoseconds within which two changes of a folder may get the same time."""
_DEEP = 7
"""How far submodules of submodules are followed."""
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
    in_repositories: tuple[str, ...] = ()
    """Files by which git runs programs; read-only unless the user approved the command."""
    sockets: tuple[str, ...] = ()
    """Those that other programs listen on."""


_Kind: TypeAlias = Literal["plain", "repository", "repositories"]
_Mark: TypeAlias = tuple[int, int]
"""Inode and time of change: another file of the same name needs a cover of its own."""


class _Listing(msgspec.Struct, frozen=True):
    """Contents of one folder, valid until its entries change."""

    hidden: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    in_repositories: tuple[str, ...] = ()
    below: tuple[tuple[str, _Kind], ...] = ()
    marks: tuple[_Mark, ...] = ()


class _Seen(msgspec.Struct, frozen=True):
    """A listing and the time its folder had."""

    changed: int
    listing: _Listing


class Exposure:
    """Scans folders, and later only those that changed."""

    def __init__(
        self, workspace: Workspace, protection: Protection, repositories: Sequence[str] = ()
    ) -> None:
        """`repositories` are outside of the workspace, and written to from it."""
        self._protection = protection
        self._seen: dict[str, _Seen] = {}
        self._roots = tuple(os.path.realpath(root) for root in workspace.roots)
        homes = [home for home in _homes(workspace) if home not in self._roots]
        self._tops: list[tuple[str, _Kind, int]] = [
            *((root, "plain", 99) for root in self._roots),
            *((home, "plain", 3) for home in homes),
            *((git, "repository", _DEEP) for git in repositories),
        ]
        self._times: dict[str, int] = {}
        self._walked = _Listing()
        self._rest: tuple[object, ...] = ()
        self._found = Exposed()

    def find(self) -> Exposed:
        """Everything that exists now; the same object as before if nothing changed."""
        walked = self._walked if self._is_unchanged() else self._walk()
        system = [path for path in (*_OF_SYSTEM, *_host_keys()) if os.path.lexists(path)]
        rest = (tuple(system), tuple(map(mark, system)), _listening())
        if walked != self._walked or rest != self._rest or not self._rest:
            inside = tuple(f"{root}/" for root in self._roots)
            self._walked, self._rest = walked, rest
            self._found = Exposed(
                hidden=tuple(dict.fromkeys((*walked.hidden, *system))),
                frozen=walked.frozen,
                in_repositories=walked.in_repositories,
                sockets=tuple(path for path in _sockets(rest[2]) if not path.startswith(inside)),
            )
        return self._found

    def _is_unchanged(self) -> bool:
        """Whether every folder has the time it had when it was read."""
        stat = os.stat
        try:
            return bool(self._times) and all(
                stat(folder).st_ctime_ns == changed for folder, changed in self._times.items()
            )
        except OSError:
            return False

    def _walk(self) -> _Listing:
        until = time.monotonic() + _SECONDS
        open_ = self._tops
        self._times = {}
        found: list[_Listing] = []
        while open_:
            # Breadth first: what is near the top counts most if there is no time for all.
            following: list[tuple[str, _Kind, int]] = []
            for folder, kind, depth in open_:
                seen = self._listing(folder, kind, until, len(found) < _MOST_FOLDERS)
                if seen is None:
                    continue
                self._times[folder] = seen.changed
                found.append(seen.listing)
                for below, inner in seen.listing.below:
                    rest = _DEEP if inner != kind == "plain" else depth - 1
                    if rest:
                        following.append((below, inner, rest))
            open_ = following
        return _Listing(
            hidden=_joined(one.hidden for one in found),
            frozen=_joined(one.frozen for one in found),
            in_repositories=_joined(one.in_repositories for one in found),
            marks=tuple(chain.from_iterable(one.marks for one in found)),
        )

    def _listing(self, folder: str, kind: _Kind, until: float, more: bool) -> _Seen | None:
        try:
            changed = os.stat(folder).st_ctime_ns
        except OSError:
            return None
        known = self._seen.get(folder)
        if known is not None and known.changed == changed:
            return known
        if known is None and (not more or time.monotonic() > until):
            return None
        # Before the folder is read: within one tick of the clock, a later change would not show.
        recent = time.time_ns() - changed < _TICK
        try:
            listing = self._look(folder) if kind == "plain" else _look_in_repository(folder, kind)
        except OSError:
            return None
        seen = _Seen(-1 if recent else changed, listing)
        self._seen[folder] = seen
        return seen

    def _look(self, folder: str) -> _Listing:
        hidden: list[str] = []
        frozen: list[str] = []
        below: list[tuple[str, _Kind]] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name == ".git" and is_folder:
                    below.append((entry.path, "repository"))
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
                    below.append((entry.path, "plain"))
        marks = tuple(map(mark, (*hidden, *frozen)))
        return _Listing(tuple(hidden), tuple(frozen), (), tuple(below), marks)

    def _why(self, path: str, name: str) -> str:
        why = self._protection.why(path)
        if why and why != CREDENTIALS and self._protection.why(f"/{name}") == CREDENTIALS:
            return CREDENTIALS
        return why


def _look_in_repository(folder: str, kind: _Kind) -> _Listing:
    """Files of a repository that make git run programs, and its submodules and worktrees."""
    if kind == "repositories":
        with os.scandir(folder) as entries:
            return _Listing(below=tuple((entry.path, "repository") for entry in entries))
    paths = [path for name in _GIT_FROZEN if os.path.lexists(path := f"{folder}/{name}")]
    inner = [f"{folder}/modules", f"{folder}/worktrees"]
    return _Listing(
        in_repositories=tuple(paths),
        below=tuple((path, "repositories") for path in inner if os.path.isdir(path)),
        marks=tuple(map(mark, paths)),
    )


def mark(path: str) -> _Mark:
    """Identifies a file among others at the same path."""
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0)
    return (found.st_ino, found.st_ctime_ns)


def _joined(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


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


def _listening() -> tuple[bytes, ...]:
    """Rows of sockets with a path; each has a number that is not used again soon."""
    try:
        with open("/proc/net/unix", "rb") as file:
            rows = file.read().splitlines()
    except OSError:
        return ()
    # Number of users, protocol and flags of a socket change while it is the same.
    return tuple(row.split(maxsplit=6)[-1] for row in rows if b" /" in row)


def _sockets(rows: Iterable[bytes]) -> Iterator[str]:
    """Sockets with a path that a program listens on: a client of it leaves the sandbox."""
    for row in rows:
        path = os.fsdecode(row.split(maxsplit=1)[-1])
        if path.startswith("/") and os.path.lexists(path):
            yield os.path.realpath(path)
