"""Ignore rules, the same in every tool: git's, and those of `.geminiignore`, `.toolwireignore`."""

import os
import stat
from collections.abc import Collection
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.files.paths import real
from toolwire.tools.search.gitignore import IgnoreRule, NameRules, name_rules, parsed
from toolwire.tools.spec import Workspace

GIT_FILE = ".gitignore"
OWN_FILES = (".geminiignore", ".toolwireignore")
NEVER_SEARCHED = frozenset({"node_modules", ".git", "bower_components", ".svn", ".hg"})
"""Directories whose contents are never listed or searched."""


LARGEST = 256 << 10
"""Bytes of an ignore file; a larger one has no rules."""


class Ignored(StrEnum):
    """Which rules hide a file."""

    NO = ""
    GIT = "git"
    OWN = "own"


class Patterns(msgspec.Struct, frozen=True, eq=False):
    """Rules of one ignore file, those that can still apply in a directory at or below it."""

    rules: tuple[IgnoreRule, ...]
    """The strongest first."""
    folder: str = ""
    """The directory, relative to that of the file, with a slash at its end."""
    settled: bool = False
    """No rule depends on the directory: they apply equally in all below."""

    @staticmethod
    def of(text: str) -> "Patterns":
        """All rules of a file, in its own directory."""
        return _patterns(text)

    def below(self, name: str) -> "Patterns":
        """In a directory of this one."""
        if self.settled:
            return self
        folder = f"{self.folder}{name}/"
        rules = tuple(rule for rule in self.rules if rule.reaches(folder))
        return Patterns(rules, folder, all(rule.where is None for rule in rules))

    def in_force(self) -> tuple[IgnoreRule, ...]:
        """The rules for entries of the directory."""
        if self.settled:
            return self.rules
        return tuple(
            rule for rule in self.rules if rule.where is None or rule.where.fullmatch(self.folder)
        )


@lru_cache(maxsize=256)
def _patterns(text: str) -> Patterns:
    rules = parsed(text)
    return Patterns(rules, settled=all(rule.where is None for rule in rules))


class Level:
    """The rules in force inside one directory."""

    def __init__(self, git: tuple[Patterns, ...], own: tuple[Patterns, ...]) -> None:
        self._git = git
        self._own = own
        self._settled = all(patterns.settled for patterns in (*git, *own))

    @cached_property
    def _in_force(self) -> tuple[NameRules, NameRules]:
        return _strongest_first(self._git), _strongest_first(self._own)

    def below(self, name: str, patterns: Patterns | None) -> "Level":
        """The rules inside a directory of this one, with those of its own `.gitignore`."""
        if self._settled and patterns is None:
            return self
        git = tuple(one.below(name) for one in self._git)
        own = tuple(one.below(name) for one in self._own)
        return Level((*git, patterns) if patterns else git, own)

    def with_own(self, patterns: Patterns) -> "Level":
        """These rules and those of the workspace's own ignore files, which apply from here."""
        return Level(self._git, (*self._own, patterns))

    def ignored(self, name: str, *, folder: bool, git: bool = True, own: bool = True) -> Ignored:
        """Which of the requested rules hide this entry."""
        by_git, by_own = self._in_force
        if git and by_git.ignores(name, folder=folder):
            return Ignored.GIT
        if own and by_own.ignores(name, folder=folder):
            return Ignored.OWN
        return Ignored.NO

    def hidden(
        self, names: list[str], *, folder: bool, git: bool = True, own: bool = True
    ) -> dict[str, Ignored]:
        """Those of many entries that the requested rules hide."""
        if not names or not (self._git or self._own):
            return {}
        by_git, by_own = self._in_force
        spoken_of = by_git.spoken_of(names) if git else set[str]()
        if own and self._own:
            spoken_of |= by_own.spoken_of(names)
        found = {name: self.ignored(name, folder=folder, git=git, own=own) for name in spoken_of}
        return {name: why for name, why in found.items() if why}


def _strongest_first(chain: tuple[Patterns, ...]) -> NameRules:
    return name_rules(tuple(rule for patterns in reversed(chain) for rule in patterns.in_force()))


class IgnoreRules:
    """The rules of one workspace directory, read as they are needed."""

    def __init__(self, root: Path, ceilings: Collection[Path] = ()) -> None:
        self.root = root
        self.repository = repository_of(root, ceilings)
        """The directory with `.git`; None outside of one."""
        self._root, self._top = str(root), str(self.repository or root)
        self._within = os.path.join(self._top, "")  # noqa: PTH118 - text
        # By their paths as text: a search asks for many.
        self._levels: dict[str, tuple[Level, Ignored, Ignored]] = {}

    def level(self, folder: Path) -> Level:
        """The rules inside a directory."""
        return self._known(str(folder))[0]

    def patterns_in(self, folder: str) -> Patterns | None:
        """The directory's own `.gitignore`, if git's rules count here."""
        if self.repository is None:
            return None
        text = _text(f"{folder}{os.sep}{GIT_FILE}")
        return Patterns.of(text) if text else None

    def ignored(
        self, path: str | Path, *, folder: bool = False, git: bool = True, own: bool = True
    ) -> Ignored:
        """Which of the requested rules hide this path, itself or a directory above it."""
        whole = str(path)
        if whole in (self._root, self._top) or not whole.startswith(self._within):
            return Ignored.NO
        above, name = os.path.split(whole)
        level, by_git, by_own = self._known(above)
        if git and by_git:
            return by_git
        found = level.ignored(name, folder=folder, git=git, own=False)
        if found:
            return found
        if own and by_own:
            return by_own
        return level.ignored(name, folder=folder, git=False, own=own)

    def own_file_for(self, path: Path) -> str:
        """Name of our own ignore file that hides this path; empty if none does."""
        relative = path.relative_to(self.root)
        for name in OWN_FILES:
            level = Level((), (Patterns.of(_text(str(self.root / name))),))
            *folders, last = relative.parts
            for folder in folders:
                if level.ignored(folder, folder=True):
                    return name
                level = level.below(folder, None)
            if level.ignored(last, folder=False):
                return name
        return ""

    def _known(self, folder: str) -> tuple[Level, Ignored, Ignored]:
        known = self._levels.get(folder)
        if known is None:
            known = self._levels[folder] = self._read(folder)
        return known

    def _read(self, folder: str) -> tuple[Level, Ignored, Ignored]:
        if folder == self._top or not folder.startswith(self._within):
            return self._with_own(folder, Level(self._top_rules(), ())), Ignored.NO, Ignored.NO
        parent, name = os.path.split(folder)
        above, by_git, by_own = self._known(parent)
        by_git = by_git or above.ignored(name, folder=True, own=False)
        by_own = by_own or above.ignored(name, folder=True, git=False)
        level = above.below(name, self.patterns_in(folder))
        return self._with_own(folder, level), by_git, by_own

    def _top_rules(self) -> tuple[Patterns, ...]:
        if self.repository is None:
            return ()
        excluded = _text(str(self.repository / ".git" / "info" / "exclude"))
        first = Patterns.of(f".git\n{excluded}")
        here = self.patterns_in(str(self.repository))
        return (first, here) if here else (first,)

    def _with_own(self, folder: str, level: Level) -> Level:
        if folder != self._root:
            return level
        text = "\n".join(filter(None, (_text(str(self.root / name)) for name in OWN_FILES)))
        return level.with_own(Patterns.of(text)) if text else level


def rules_for(path: Path, workspace: Workspace) -> IgnoreRules:
    """The rules of the workspace directory that holds a real path."""
    roots = [found for root in workspace.roots if (found := real(root)) is not None]
    root = next((root for root in roots if path.is_relative_to(root)), path)
    return IgnoreRules(root, workspace.ceilings)


def repository_of(folder: Path, ceilings: Collection[Path] = ()) -> Path | None:
    """The folder with `.git` at or above this one, below the ceilings; None without one."""
    for parent in (folder, *folder.parents):
        if parent in ceilings and parent != folder:
            return None
        if os.path.lexists(parent / ".git"):
            return parent
    return None


def _text(file: str) -> str:
    try:
        found = os.stat(file)  # noqa: PTH116 - asked in every directory
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return ""
        return Path(file).read_text("utf-8-sig", "replace")
    except (OSError, ValueError):
        return ""


class Filtering(msgspec.Struct, frozen=True):
    """Which ignore rules count; `.toolwireignore` goes with `.geminiignore`."""

    respect_git_ignore: bool = True
    respect_gemini_ignore: bool = True


def filtering_schema(description: str) -> JsonObject:
    """The schema of that part, as the original declares it."""
    return {
        "description": description,
        "type": "object",
        "properties": {
            "respect_git_ignore": {
                "description": "Optional: Whether to respect .gitignore patterns when listing "
                "files. Only available in git repositories. Defaults to true.",
                "type": "boolean",
            },
            "respect_gemini_ignore": {
                "description": "Optional: Whether to respect .geminiignore patterns when listing "
                "files. Defaults to true.",
                "type": "boolean",
            },
        },
    }
