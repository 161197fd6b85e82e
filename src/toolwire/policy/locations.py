"""Locations of paths: inside the workspace, outside, protected, or a device."""

import posixpath
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from toolwire.tools.files.protection import CREDENTIALS, READ_FREELY

Resolve: TypeAlias = Callable[[str], str]
"""An absolute path with its links followed."""
Protected: TypeAlias = Callable[[str], str]
"""The reason why an absolute path is protected; empty if it is not."""
Matches: TypeAlias = Callable[[str, str], tuple[str, ...] | None]
"""Paths that a pattern matches in a folder; None if not known."""

Test: TypeAlias = Callable[[str], bool]
"""Whether an absolute path is a folder that can be entered."""
HiddenBelow: TypeAlias = Callable[[str, Test | None, bool], "tuple[HiddenPaths, ...] | None"]
"""Files below a folder that need approval to read, or that the test selects, with links if they
are followed; None if there are too many files.
"""
ProgramsOf: TypeAlias = Callable[[str], tuple[str, ...]]
"""Settings of the git repository around a folder through which git may start programs."""
Foreign: TypeAlias = Callable[[str], str]
"""The path of a program in the workspace; empty for one of the system."""
Refresh: TypeAlias = Callable[[], None]
"""Reloads what the answers of one ruling depend on."""
BringsSettings: TypeAlias = Callable[[str], str]
"""A file that configures programs that run in the folder; empty for none."""

_STREAMS = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero"}
    | {"/dev/full", "/dev/random", "/dev/urandom", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2"}
)


class Zone(StrEnum):
    """Zone of a path."""

    DEVICE = "device"
    """A device such as /dev/null: nothing is stored."""
    INSIDE = "inside"
    OUTSIDE = "outside"
    PROTECTED = "protected"
    UNKNOWN = "unknown"


class HiddenPaths(msgspec.Struct, frozen=True):
    """A file below a folder that needs its own ruling."""

    path: str
    """Relative to that folder; a folder ends in a slash."""
    why: str
    link: bool = False
    """A link that leads out of the workspace."""
    denied: bool = False
    """Whether a rule denies reading it."""


class Location(msgspec.Struct, frozen=True):
    """A path and its zone."""

    zone: Zone
    path: str
    why: str = ""

    @property
    def is_near(self) -> bool:
        """Whether permissions for the workspace cover it."""
        return self.zone in (Zone.INSIDE, Zone.DEVICE)


class Locations(msgspec.Struct, frozen=True, kw_only=True):
    """The workspace as the policy sees it; access to the file system is injected."""

    roots: tuple[str, ...]
    """Absolute; the first is the working directory."""
    home: str = ""
    temp: str = ""
    readable: Callable[[], tuple[str, ...]] = lambda: ()
    """Further folders that may be read, all links followed."""
    resolve: Resolve = posixpath.normpath
    protected: Protected = lambda path: ""
    matches: Matches = lambda folder, pattern: None
    is_folder: Test = lambda path: True
    hidden_below: HiddenBelow = lambda folder, denied, links: ()
    programs_of: ProgramsOf = lambda folder: ()
    foreign: Foreign = lambda name: ""
    brings_settings: BringsSettings = lambda folder: ""
    refresh: Refresh = lambda: None
    search_path: str = ""
    """`PATH` without folders of the workspace; empty if it contains none."""

    def start(self, name: str) -> str:
        """Where a command with this `directory` starts: another root of that name, as the shell
        tool resolves it, else a folder of the working directory.
        """
        return next((root for root in self.roots[1:] if posixpath.basename(root) == name), name)

    def locate(self, path: str, *, writes: bool) -> Location:
        """The location of a path; relative paths start at the working directory."""
        # Links are followed before `..` is taken: `link/..` is the parent of the link's target.
        written = posixpath.join(self.roots[0], path)
        full = posixpath.normpath(written)
        if written in _STREAMS:
            return Location(Zone.DEVICE, full)
        real = posixpath.normpath(self.resolve(written))
        why = self.protected(full) or self.protected(real)
        also = () if writes else self.readable()
        if also and why != CREDENTIALS and any(lies_in(real, folder) for folder in also):
            return Location(Zone.INSIDE, real)
        if why and (writes or why not in READ_FREELY):
            return Location(Zone.PROTECTED, real, why)
        readable = (self.temp,) if self.temp and not writes else ()
        for root in (*self.roots, *readable):
            if lies_in(real, self.resolve(root)):
                return Location(Zone.INSIDE, real)
        return Location(Zone.OUTSIDE, real)

    def locate_all(
        self, path: str, folders: tuple[str, ...] | None, *, writes: bool
    ) -> tuple[Location, ...]:
        """All possible locations of a path relative to `folders`; None means any folder."""
        if path.startswith("/"):
            return (self.locate(path, writes=writes),)
        if folders is None or not path:
            return (Location(Zone.UNKNOWN, path),)
        return tuple(self.locate(posixpath.join(each, path), writes=writes) for each in folders)


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
