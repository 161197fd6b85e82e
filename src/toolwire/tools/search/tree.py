"""A directory tree listed level by level: no link is followed, ignored ones are not entered."""

import os
import unicodedata
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from toolwire.tools.files.paths import open_folder
from toolwire.tools.search.ignore import NEVER_SEARCHED, Ignored, IgnoreRules
from toolwire.tools.spec import ToolFailed, Workspace

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
            found = _entries(here, workspace)
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


def _entries(path: Path, workspace: Workspace) -> list[tuple[str, bool]]:
    folder = open_folder(path, workspace)
    try:
        with os.scandir(folder) as entries:
            found = [
                (entry.name, entry.is_dir(follow_symlinks=False))
                for entry in entries
                if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            ]
    finally:
        os.close(folder)
    return sorted(found, key=lambda entry: (collation_key(entry[0]), entry[0]))
