"""Finding by a few letters: commands, files and other names, the best first."""

import os
import re
import subprocess
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path

from toolwire.tools.files.paths import real
from toolwire.tools.search.ignore import Ignored, rules_for
from toolwire.tools.search.walk import Walk, folders
from toolwire.tools.shell.environment import GIT_ENVIRONMENT, GIT_OPTIONS
from toolwire.tools.spec import Workspace

_MOST_FILES = 200_000
_FRESH = 5.0
_PATIENCE = 10.0
_BETTER = 150
"""Points of a file with open changes, or one that was chosen before."""


def score(query: str, name: str) -> int:
    """How well a name fits; 0 if the letters are not in it in this order."""
    if not query:
        return 1
    wanted, text = query.lower(), name.lower()
    base = text.rfind("/", 0, len(text) - 1) + 1
    if wanted == text[base:].rstrip("/"):
        return 1000
    found = text.rfind(wanted)
    if found >= 0:
        begins = found == base or not text[found - 1 : found].isalnum()
        return 500 + 200 * (found >= base) + 100 * begins - min(len(text), 99)
    at, points, last = -1, 0, -2
    for letter in wanted:
        at = text.find(letter, at + 1)
        if at < 0:
            return 0
        points += 8 if at == last + 1 else 1
        points += 6 if at == base or (at and not text[at - 1].isalnum()) else 0
        points += 2 if at >= base else 0
        last = at
    return max(points + 100 - min(len(text), 99), 1)


def best(query: str, names: Iterable[str], most: int = 8) -> list[str]:
    """The names that fit, the best first, ties in their order."""
    if not query:
        return list(islice(names, most))
    found = [(score(query, name), -at, name) for at, name in enumerate(names)]
    found = [one for one in found if one[0]]
    found.sort(reverse=True)
    return [name for _, _, name in found[:most]]


class FileNames:
    """The names of the workspace's files and folders, read again when they are old."""

    def __init__(self, workspace: Workspace, *, trusted: bool = False) -> None:
        """`trusted`: whether programs that the repository's own settings name may run."""
        self._workspace = workspace
        self._trusted = trusted
        self._names: list[str] = []
        self._lower: list[str] = []
        self._changed: frozenset[str] = frozenset()
        self._chosen: dict[str, None] = {}
        self._read = 0.0
        self._last: tuple[str, list[int]] = ("", [])
        """The last query and the places of the names that fit it."""

    @property
    def fresh(self) -> bool:
        """Whether the names need not be read again."""
        return bool(self._read) and time.monotonic() - self._read < _FRESH

    @property
    def names(self) -> list[str]:
        """The names as last read."""
        return self._names

    def chose(self, name: str) -> None:
        """Ranks a name higher from now on."""
        self._chosen.pop(name, None)
        self._chosen[name] = None

    def best(self, query: str, most: int = 8, more: Sequence[str] = ()) -> list[str]:
        """The names that fit, the best first: open changes and recent choices before others."""
        if not query:
            recent = [*reversed(self._chosen), *sorted(self._changed), *self._names, *more]
            return list(islice(dict.fromkeys(recent), most))
        places = self._fitting(query.lower())
        fits = [self._names[at] for at in places] + [one for one in more if score(query, one)]
        better: Collection[str] = {*self._changed, *self._chosen}
        ranked = [
            (score(query, name) + _BETTER * (name in better), -at, name)
            for at, name in enumerate(fits)
        ]
        ranked.sort(reverse=True)
        return [name for _, _, name in ranked[:most]]

    def _fitting(self, wanted: str) -> list[int]:
        """The places of the names that may fit; a longer query looks only at those of a shorter."""
        before, places = self._last
        names = self._lower
        within = places if before and wanted.startswith(before) else range(len(names))
        # The letters in this order, each at its first chance: linear in the length of a name.
        fits = re.compile(
            "".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in wanted), re.DOTALL
        ).match
        found = [at for at in within if fits(names[at])]
        self._last = (wanted, found)
        if len(found) > 2000:
            # Too many to rank: those that contain the letters in one piece, then the others.
            whole = [at for at in found if wanted in names[at]]
            rest = [] if len(whole) >= 200 else found[:2000]
            found = [*whole[:4000], *rest]
        return found

    def read(self) -> None:
        """Reads the names; for a thread."""
        root = real(self._workspace.roots[0])
        if root is not None:
            listed = _of_git(root)
            names = listed if listed is not None else self._walked(root)
            git = listed is not None
            self._changed = _changed(root, trusted=self._trusted) if git else frozenset()
            if names != self._names:
                self._names = names
                self._lower = [name.lower() for name in names]
                self._last = ("", [])
        self._read = time.monotonic()

    def _walked(self, root: Path) -> list[str]:
        plan = Walk(start=root, workspace=self._workspace, rules=rules_for(root, self._workspace))
        return list(islice(_names(plan), _MOST_FILES))


def _of_git(root: Path) -> list[str] | None:
    """Tracked and new files with their folders; None outside of a repository."""
    found = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if found is None:
        return None
    files = dict.fromkeys(found[:_MOST_FILES])
    above: dict[str, None] = {}
    for name in files:
        at = name.rfind("/")
        while at > 0 and (folder := name[: at + 1]) not in above:
            above[folder] = None
            at = name.rfind("/", 0, at)
    return [*files, *above]


def _changed(root: Path, *, trusted: bool) -> frozenset[str]:
    """New files, and changed ones: comparing contents runs filters of the repository's settings."""
    kinds = ("--others", "--modified") if trusted else ("--others",)
    return frozenset(_git(root, "ls-files", "-z", *kinds, "--exclude-standard") or ())


def has_changes(folder: Path) -> bool:
    """Whether a trusted folder's repository has changes that are not committed."""
    return bool(_git(folder, "status", "--porcelain", "-z"))


def _git(root: Path, *words: str) -> list[str] | None:
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            ["git", *GIT_OPTIONS, *words],  # noqa: S607 - the user's own git
            cwd=root,
            env={**_environ(), **GIT_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    names = done.stdout.decode("utf-8", "replace").split("\0")
    return [name for name in names if name]


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _names(plan: Walk) -> Iterable[str]:
    for folder in folders(plan):
        if folder.hidden is not Ignored.NO:
            continue
        if folder.path:
            yield folder.path
        for name in folder.seen(folder.names):
            yield folder.path + name
