"""Where a path lies: inside the workspace, outside, protected, or nowhere that matters."""

import posixpath
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from toolwire.agent.commands import Word
from toolwire.tools.protection import READ_FREELY

Resolve: TypeAlias = Callable[[str], str]
"""An absolute path with its links followed."""
Protected: TypeAlias = Callable[[str], str]
"""Why an absolute path is protected, in words; empty if it is not."""
Matches: TypeAlias = Callable[[str], tuple[str, ...] | None]
"""All paths that an absolute pattern stands for; None if that is not known."""

_STREAMS = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"}
    | {"/dev/full", "/dev/random", "/dev/urandom", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2"}
)
MOST_FOLDERS = 64


class Place(StrEnum):
    """How far away a path is."""

    NOWHERE = "nowhere"
    """A device such as /dev/null: nothing is kept."""
    INSIDE = "inside"
    OUTSIDE = "outside"
    PROTECTED = "protected"
    UNKNOWN = "unknown"


class Spot(msgspec.Struct, frozen=True):
    """A path and where it lies."""

    place: Place
    path: str
    why: str = ""

    @property
    def is_near(self) -> bool:
        """Whether a permission for the workspace covers it."""
        return self.place in (Place.INSIDE, Place.NOWHERE)


def _as_written(path: str) -> str:
    return posixpath.normpath(path)


def _unknown(pattern: str) -> None:
    del pattern


def _unprotected(path: str) -> str:
    del path
    return ""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """The workspace as policy sees it; following links and knowing secrets are handed in."""

    roots: tuple[str, ...]
    """Absolute; the first is the working directory."""
    home: str = ""
    temp: str = ""
    resolve: Resolve = _as_written
    protected: Protected = _unprotected
    matches: Matches = _unknown

    def spot(self, path: str, *, writes: bool) -> Spot:
        """Where an absolute path lies; relative ones are taken from the working directory."""
        # Links are followed before `..` is taken: `link/..` is the parent of the link's target.
        written = posixpath.join(self.roots[0], path)
        full = posixpath.normpath(written)
        if written in _STREAMS:
            return Spot(Place.NOWHERE, full)
        real = posixpath.normpath(self.resolve(written))
        why = self.protected(full) or self.protected(real)
        if why and (writes or why not in READ_FREELY):
            return Spot(Place.PROTECTED, real, why)
        readable = (self.temp,) if self.temp and not writes else ()
        for root in (*self.roots, *readable):
            if lies_in(real, self.resolve(root)):
                return Spot(Place.INSIDE, real)
        return Spot(Place.OUTSIDE, real)

    def spots(
        self, word: Word, folders: tuple[str, ...] | None, *, writes: bool
    ) -> tuple[Spot, ...]:
        """Where a word of a command may lead; `folders` are all it may start from, None any."""
        if not word.static or not word.text:
            return (Spot(Place.UNKNOWN, word.text),)
        text = word.text
        if word.glob:
            return self._matched(text, folders, writes=writes)
        if word.tilde:
            name, slash, rest = text.partition("/")
            if name != "~" or not self.home:
                return (Spot(Place.UNKNOWN, text),)
            return (self.spot(f"{self.home}{slash}{rest}", writes=writes),)
        if text.startswith("/"):
            return (self.spot(text, writes=writes),)
        if folders is None:
            return (Spot(Place.UNKNOWN, text),)
        return tuple(self.spot(posixpath.join(each, text), writes=writes) for each in folders)

    def _matched(
        self, pattern: str, folders: tuple[str, ...] | None, *, writes: bool
    ) -> tuple[Spot, ...]:
        """Where the files of a pattern lie, and the one it names if it matches none."""
        spots: list[Spot] = []
        for each in folders or ("",):
            paths = self.matches(posixpath.join(each, pattern))
            if paths is None or (folders is None and not pattern.startswith("/")):
                return (Spot(Place.UNKNOWN, pattern),)
            made = posixpath.join(each, pattern)
            spots += [self.spot(path, writes=writes) for path in (*paths, made)]
        return tuple(dict.fromkeys(spots))

    def folders(self, start: str, changes: tuple[Word, ...]) -> tuple[str, ...] | None:
        """All directories a text may be in after some of its changes; None if it may leave."""
        found = {start: None}
        for change in changes:
            for each in tuple(found):
                for spot in self.spots(change, (each,), writes=False):
                    if change.glob or spot.place is not Place.INSIDE:
                        return None
                    found[posixpath.normpath(posixpath.join(each, change.text))] = None
            if len(found) > MOST_FOLDERS:
                return None
        return tuple(found)


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
