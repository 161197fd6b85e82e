"""The files below a directory: no link is followed, and ignore rules are told, not applied."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec

from toolwire.tools.ignore import NEVER_SEARCHED, Ignored, IgnoreRules, Level
from toolwire.tools.paths import open_folder
from toolwire.tools.spec import Workspace


class Found(msgspec.Struct, frozen=True):
    """One file, or a link, which is never followed."""

    path: str
    """From where the walk began, with slashes."""
    name: str
    folder: int
    """Descriptor of the directory that holds it; open until the next one is asked for."""
    link: bool
    ignored: Ignored


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


def walk(plan: Walk) -> Iterator[Found]:
    """Every file below the start, directory by directory, names in order."""
    try:
        folder = open_folder(plan.start, plan.workspace)
    except OSError:
        return
    try:
        level = plan.rules.level(plan.start)
        hidden = plan.rules.ignored(plan.start, folder=True, git=plan.git, own=plan.own)
        yield from _inside(plan, folder, (), level, hidden)
    finally:
        os.close(folder)


def _inside(
    plan: Walk, folder: int, parts: tuple[str, ...], level: Level, hidden: Ignored
) -> Generator[Found]:
    if plan.stopped():
        return
    prefix = "".join(f"{part}/" for part in parts)
    folders: list[str] = []
    for name, is_folder, is_link in _entries(folder):
        if is_folder:
            if name not in plan.skipped:
                folders.append(name)
            continue
        yield Found(prefix + name, name, folder, is_link, hidden or _rule(plan, level, name, False))
    for name in folders:
        below = (*parts, name)
        covered = hidden or _rule(plan, level, name, True)
        if covered and not plan.into_ignored:
            continue
        if plan.enters is not None and not plan.enters(below):
            continue
        yield from _below(plan, folder, below, level, covered)


def _below(
    plan: Walk, above: int, parts: tuple[str, ...], level: Level, hidden: Ignored
) -> Generator[Found]:
    name = parts[-1]
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    except OSError:
        # Gone, forbidden, or a link by now.
        return
    try:
        here = plan.start.joinpath(*parts)
        rules = None if hidden else plan.rules.patterns_in(here)
        inner = level if level.quiet and rules is None else level.below(name, rules)
        yield from _inside(plan, folder, parts, inner, hidden)
    finally:
        os.close(folder)


def _entries(folder: int) -> list[tuple[str, bool, bool]]:
    try:
        with os.scandir(folder) as entries:
            found = [
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in entries
            ]
    except OSError:
        return []
    found.sort()
    return found


def _rule(plan: Walk, level: Level, name: str, folder: bool) -> Ignored:
    if level.quiet:
        return Ignored.NO
    return level.ignored(name, folder=folder, git=plan.git, own=plan.own)
