"""Finding by a few letters: commands, files and other names, the best first."""

import time
from collections.abc import Iterable
from itertools import islice

from toolwire.tools.files.paths import real
from toolwire.tools.search.ignore import Ignored, rules_for
from toolwire.tools.search.walk import Walk, folders
from toolwire.tools.spec import Workspace

_MOST_FILES = 100_000
_FRESH = 5.0


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
        return [name for name, _ in zip(names, range(most), strict=False)]
    found = [(score(query, name), -at, name) for at, name in enumerate(names)]
    found = [one for one in found if one[0]]
    found.sort(reverse=True)
    return [name for _, _, name in found[:most]]


class FileNames:
    """The names of the workspace's files and folders, read again when they are old."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names: list[str] = []
        self._read = 0.0

    @property
    def fresh(self) -> bool:
        """Whether the names need not be read again."""
        return bool(self._read) and time.monotonic() - self._read < _FRESH

    @property
    def names(self) -> list[str]:
        """The names as last read."""
        return self._names

    def read(self) -> None:
        """Reads the names; for a thread."""
        root = real(self._workspace.roots[0])
        if root is not None:
            plan = Walk(
                start=root, workspace=self._workspace, rules=rules_for(root, self._workspace)
            )
            self._names = list(islice(_names(plan), _MOST_FILES))
        self._read = time.monotonic()


def _names(plan: Walk) -> Iterable[str]:
    for folder in folders(plan):
        if folder.hidden is not Ignored.NO:
            continue
        if folder.path:
            yield folder.path
        for name in folder.seen(folder.names):
            yield folder.path + name
