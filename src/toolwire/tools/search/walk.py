"""The files below a directory, depth first or level by level; no link is followed."""

import os
import sys
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from toolwire.platform import FILE, FOLDER, open_at, scandir, stat_at
from toolwire.tools.files.paths import open_folder
from toolwire.tools.search.ignore import GIT_FILE, NEVER_SEARCHED, Ignored, IgnoreRules, Level
from toolwire.tools.spec import ToolFailed, Workspace

_FOLDER = FOLDER | FILE


class Folder(msgspec.Struct, frozen=True, gc=False):
    """The files of one directory; links are among them, and are never followed."""

    path: str
    """From where the walk began, with a slash at its end; empty for the start itself."""
    descriptor: int
    """Open until the next directory is requested."""
    names: list[str]
    """In order."""
    links: set[str]
    hidden: Ignored
    """The rules that hide the directory, and with it all of its files."""
    ignored: dict[str, Ignored]
    """Of the names, those that rules of their own hide."""

    def seen(self, names: list[str]) -> list[str]:
        """Those of some names that nothing hides."""
        if self.hidden:
            return []
        return [name for name in names if name not in self.ignored] if self.ignored else names


class Found(msgspec.Struct, frozen=True):
    """One file, or a link, which is never followed."""

    path: str
    """From where the walk began, with slashes."""
    name: str
    folder: int
    """Descriptor of the directory that holds it; open until the next one is requested."""
    link: bool
    ignored: Ignored


class FolderEntries(msgspec.Struct, frozen=True, gc=False):
    """What one directory holds."""

    files: list[str]
    """Whatever is not a directory, in order."""
    folders: list[str]
    links: set[str]


_NO_ENTRIES = FolderEntries([], [], set())


def entries(folder: int) -> FolderEntries:
    """Everything in an open directory; nothing if it cannot be read."""
    try:
        found = _scanned(folder)
    except OSError:
        return _NO_ENTRIES
    found.files.sort()
    return found


def _scanned(folder: int) -> FolderEntries:
    with scandir(folder) as listed:
        every = list(listed)
        names = [entry.name for entry in every]
        # Most are files, and one question each is enough for them.
        others = [entry for entry in every if not entry.is_file(follow_symlinks=False)]
        links = {entry.name for entry in others if entry.is_symlink()}
        below = [entry.name for entry in others if entry.is_dir(follow_symlinks=False)]
    if below:
        apart = set(below)
        names = [name for name in names if name not in apart]
        below.sort()
    return FolderEntries(names, below, links)


class RememberedFolders:
    """Lists directories, of their files only some, and reads again only those that changed.

    A directory's change time moves with every entry that comes or goes, but no finer than the
    clock of the system: one that changed just now is not remembered. A file system that does not
    keep that time would hide new entries, so nothing but a count may depend on it.
    """

    def __init__(self, picks: Callable[[list[str]], list[str]], settled: int = 5 * 10**9) -> None:
        """`settled`: nanoseconds, more than file systems round a time by."""
        self._picks = picks
        self._settled = settled
        self._known: dict[tuple[int, int], tuple[int, FolderEntries]] = {}

    def __call__(self, folder: int) -> FolderEntries:
        status = os.fstat(folder)
        key, changed = (status.st_dev, status.st_ino), status.st_ctime_ns
        known = self._known.get(key)
        if known is not None and known[0] == changed:
            return known[1]
        try:
            found = _scanned(folder)
        except OSError:
            return _NO_ENTRIES
        names = self._picks(found.files)
        if names or found.folders:
            found = FolderEntries(names, found.folders, found.links.intersection(names))
        else:
            found = _NO_ENTRIES
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        # On Windows it is the time of creation.
        if sys.platform != "win32" and time.time_ns() - changed > self._settled:
            self._known[key] = changed, found
        return found

    def holds_nothing(self, name: str, above: int) -> bool:
        """Whether a directory in an open one is known to have no entries that matter."""
        try:
            status = stat_at(name, dir_fd=above, follow_symlinks=False)
        except OSError:
            return True
        known = self._known.get((status.st_dev, status.st_ino))
        return known is not None and known[1] is _NO_ENTRIES and known[0] == status.st_ctime_ns


_MOST_REMEMBERED = 20_000


@lru_cache(maxsize=4)
def remembered(picks: Callable[[list[str]], list[str]]) -> RememberedFolders:
    """The one for these names, which must be hashable."""
    return RememberedFolders(picks)


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """What to walk, and what to leave out."""

    start: Path
    """A real path inside the workspace."""
    workspace: Workspace
    rules: IgnoreRules
    git: bool = True
    own: bool = True
    into_ignored: bool = False
    """Go on below ignored directories, to count what they hide."""
    enters: Callable[[tuple[str, ...]], bool] | None = None
    """Whether to look below a directory, by its parts from the start."""
    stopped: Callable[[], bool] = bool
    """Asked at each directory; True ends the walk."""
    skipped: frozenset[str] = NEVER_SEARCHED
    listing: Callable[[int], FolderEntries] = entries
    """Reads an open directory; it may leave out names without a dot at their beginning."""
    passes: Callable[[str, int], bool] | None = None
    """Whether a directory, by its name in an open one, need not be entered."""


def walk(plan: Walk) -> Iterator[Found]:
    """Every file below the start, directory by directory, names in order."""
    for folder in folders(plan):
        for name in folder.names:
            hidden = folder.hidden or folder.ignored.get(name, Ignored.NO)
            link = name in folder.links
            yield Found(folder.path + name, name, folder.descriptor, link, hidden)


def folders(plan: Walk) -> Generator[Folder]:
    """The start and every directory below it, each before those that it holds, names in order."""
    try:
        start = open_folder(plan.start, plan.workspace)
    except OSError:
        return
    hidden = plan.rules.ignored(plan.start, folder=True, git=plan.git, own=plan.own)
    folder = _OpenFolder(start, "", plan.rules.level(plan.start), hidden, plan.listing(start))
    # The current directory and those above it with more directories to enter.
    way = [folder]
    try:
        yield _listed(plan, folder)
        ahead = [iter(_to_enter(plan, folder))]
        while way and not plan.stopped():
            name, hidden = next(ahead[-1], ("", Ignored.NO))
            if not name:
                os.close(way.pop().descriptor)
                ahead.pop()
                continue
            found = _enter(plan, way[-1], name, hidden)
            if found is None:
                continue
            way.append(found)
            ahead.append(iter(_to_enter(plan, found) if found.entries.folders else ()))
            yield _listed(plan, found)
    finally:
        for folder in way:
            os.close(folder.descriptor)


class _OpenFolder(msgspec.Struct, frozen=True, gc=False):
    """A directory that is open."""

    descriptor: int
    path: str
    level: Level
    hidden: Ignored
    entries: FolderEntries


def _listed(plan: Walk, folder: _OpenFolder) -> Folder:
    names, hidden = folder.entries.files, folder.hidden
    ignored = {} if hidden else folder.level.hidden(names, folder=False, git=plan.git, own=plan.own)
    return Folder(folder.path, folder.descriptor, names, folder.entries.links, hidden, ignored)


def _to_enter(plan: Walk, folder: _OpenFolder) -> list[tuple[str, Ignored]]:
    """The directories below to look into, each with the rules that hide it."""
    names = [name for name in folder.entries.folders if name not in plan.skipped]
    if folder.hidden:
        covered = dict.fromkeys(names, folder.hidden)
    else:
        covered = folder.level.hidden(names, folder=True, git=plan.git, own=plan.own)
    if covered and not plan.into_ignored:
        names = [name for name in names if name not in covered]
    if plan.enters is not None:
        above = tuple(folder.path.split("/")[:-1])
        names = [name for name in names if plan.enters((*above, name))]
    if plan.passes is not None:
        names = [name for name in names if not plan.passes(name, folder.descriptor)]
    return [(name, covered.get(name, Ignored.NO)) for name in names]


def _enter(plan: Walk, above: _OpenFolder, name: str, hidden: Ignored) -> _OpenFolder | None:
    try:
        descriptor = open_at(name, _FOLDER, dir_fd=above.descriptor)
    except OSError:
        # Gone, forbidden, or a link by now.
        return None
    found = plan.listing(descriptor)
    path = f"{above.path}{name}/"
    rules = None
    if not hidden and GIT_FILE in found.files:
        rules = plan.rules.patterns_in(str(plan.start / path))
    return _OpenFolder(descriptor, path, above.level.below(name, rules), hidden, found)


_SIGNS = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_RANK = {sign: rank for rank, sign in enumerate(" " + _SIGNS)}

Key = tuple[tuple[tuple[int, str], ...], str, tuple[bool, ...]]

# The same weights, one letter each, for names of plain letters only.
_PLAIN = {
    code: chr(_RANK[chr(code)]) if chr(code) in _RANK else chr(code).lower()
    for code in range(0x20, 0x7F)
}


def in_collation_order(names: list[str]) -> list[str]:
    """Many names at once: those of plain letters are weighed in one go."""
    if all(map(_is_plain, names)):
        return sorted(names, key=lambda name: (name.translate(_PLAIN), name.swapcase()))
    return sorted(names, key=collation_key)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable()


@lru_cache(maxsize=4096)
def collation_key(name: str) -> Key:
    """A sort key close to the Unicode collation order, small letters before capitals."""
    apart = unicodedata.normalize("NFD", name)
    bare = "".join(letter for letter in apart if not unicodedata.combining(letter))
    marks = "".join(letter for letter in apart if unicodedata.combining(letter))
    return tuple(map(_weight, bare)), marks, tuple(letter.isupper() for letter in bare)


def _weight(letter: str) -> tuple[int, str]:
    rank = _RANK.get(letter)
    if rank is not None:
        return rank, ""
    return (100 if letter.isdigit() else 200), letter.casefold()


class Entry(msgspec.Struct, frozen=True):
    """One name in a directory, and the rules that hide it."""

    name: str
    ignored: Ignored


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One directory, with names in collation order."""

    path: str
    """From the start, with slashes; empty for the start itself."""
    files: tuple[Entry, ...]
    """Regular files."""
    folders: tuple[Entry, ...]


def breadth_first(
    start: Path,
    workspace: Workspace,
    rules: IgnoreRules,
    *,
    git: bool = True,
    own: bool = True,
    skipped: frozenset[str] = NEVER_SEARCHED,
) -> Iterator[Listing]:
    """Every directory at and below a real path, the nearest first; OSError if it has no start."""
    queue = deque([""])
    while queue:
        path = queue.popleft()
        here = start / path
        try:
            found = _sorted_entries(here, workspace)
        except (OSError, ToolFailed):
            if not path:
                raise
            # Gone, forbidden, or a link by now.
            continue
        level = rules.level(here)
        listing = Listing(
            path=path,
            files=tuple(
                Entry(name, level.ignored(name, folder=False, git=git, own=own))
                for name, folder in found
                if not folder
            ),
            folders=tuple(
                Entry(name, level.ignored(name, folder=True, git=git, own=own))
                for name, folder in found
                if folder
            ),
        )
        yield listing
        for folder in listing.folders:
            if not folder.ignored and folder.name not in skipped:
                queue.append(f"{path}/{folder.name}" if path else folder.name)


def _sorted_entries(path: Path, workspace: Workspace) -> list[tuple[str, bool]]:
    folder = open_folder(path, workspace)
    try:
        with scandir(folder) as entries:
            found = [
                (entry.name, entry.is_dir(follow_symlinks=False))
                for entry in entries
                if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            ]
    finally:
        os.close(folder)
    return sorted(found, key=lambda entry: (collation_key(entry[0]), entry[0]))
