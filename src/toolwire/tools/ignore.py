"""Ignore rules, the same in every tool: git's, and those of `.geminiignore`, `.toolwireignore`."""

import os
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from toolwire.tools.paths import real
from toolwire.tools.spec import Workspace

GIT_FILE = ".gitignore"
OWN_FILES = (".geminiignore", ".toolwireignore")
NEVER_SEARCHED = frozenset({"node_modules", ".git", "bower_components", ".svn", ".hg"})
"""Directories whose contents are never listed or searched."""


class Ignored(StrEnum):
    """Which rules hide a file."""

    NO = ""
    GIT = "git"
    OWN = "own"


class Patterns:
    """The lines of one ignore file; the last that fits decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only a workspace with rules needs it

        self._rules: list[tuple[re.Pattern[str], bool]] = []
        for pattern in GitIgnoreSpec.from_lines(lines).patterns:
            expression: re.Pattern[str] | None = getattr(pattern, "regex", None)
            if expression is not None and pattern.include is not None:
                self._rules.insert(0, (expression, pattern.include))
        unnamed = (re.sub(r"\(\?P<\w+>", "(?:", rule.pattern) for rule, _ in self._rules)
        self._any = re.compile("|".join(f"(?:{rule})" for rule in unnamed) or r"(?!)")

    def rule(self, path: str) -> bool | None:
        """True ignores, False brings back, None says nothing; directories end in a slash."""
        if self._any.match(path) is None:
            return None
        return next((include for rule, include in self._rules if rule.match(path)), None)


class Level:
    """The rules in force inside one directory."""

    def __init__(
        self, git: tuple[tuple[str, Patterns], ...], own: tuple[tuple[str, Patterns], ...]
    ):
        self._git = git
        self._own = own
        self.quiet = not git and not own
        """No rule can apply here."""

    def below(self, name: str, patterns: Patterns | None) -> "Level":
        """The rules inside a directory of this one, with those of its own `.gitignore`."""
        git = tuple((f"{prefix}{name}/", rules) for prefix, rules in self._git)
        own = tuple((f"{prefix}{name}/", rules) for prefix, rules in self._own)
        return Level((*git, ("", patterns)) if patterns else git, own)

    def with_own(self, patterns: Patterns) -> "Level":
        """These rules, and ours, which begin here."""
        return Level(self._git, (*self._own, ("", patterns)))

    def ignored(self, name: str, *, folder: bool, git: bool = True, own: bool = True) -> Ignored:
        """Which of the wanted rules hide this entry."""
        entry = f"{name}/" if folder else name
        if git and _decide(self._git, entry):
            return Ignored.GIT
        if own and _decide(self._own, entry):
            return Ignored.OWN
        return Ignored.NO


def _decide(rules: tuple[tuple[str, Patterns], ...], entry: str) -> bool:
    for prefix, patterns in reversed(rules):
        found = patterns.rule(prefix + entry)
        if found is not None:
            return found
    return False


class IgnoreRules:
    """The rules of one workspace directory, read as they are needed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repository = _repository(root)
        """The directory with `.git`; None outside of one."""
        self._levels: dict[Path, tuple[Level, Ignored, Ignored]] = {}

    def level(self, folder: Path) -> Level:
        """The rules inside a directory."""
        return self._known(folder)[0]

    def patterns_in(self, folder: Path) -> Patterns | None:
        """The directory's own `.gitignore`, if git's rules count here."""
        if self.repository is None:
            return None
        lines = _lines(folder / GIT_FILE)
        return Patterns(lines) if lines else None

    def ignored(
        self, path: Path, *, folder: bool = False, git: bool = True, own: bool = True
    ) -> Ignored:
        """Which of the wanted rules hide this path, itself or a directory above it."""
        if path == self.root or not path.is_relative_to(self.top):
            return Ignored.NO
        level, by_git, by_own = self._known(path.parent)
        if git and by_git:
            return by_git
        found = level.ignored(path.name, folder=folder, git=git, own=False)
        if found:
            return found
        if own and by_own:
            return by_own
        return level.ignored(path.name, folder=folder, git=False, own=own)

    @property
    def top(self) -> Path:
        """Where rules begin: the repository, or the directory itself."""
        return self.repository or self.root

    def own_file_for(self, path: Path) -> str:
        """The name of the file of ours that hides this path; empty if none does."""
        relative = path.relative_to(self.root)
        for name in OWN_FILES:
            patterns = Patterns(_lines(self.root / name))
            above = [f"{parent.as_posix()}/" for parent in relative.parents][:-1]
            if any(patterns.rule(one) for one in (relative.as_posix(), *above)):
                return name
        return ""

    def _known(self, folder: Path) -> tuple[Level, Ignored, Ignored]:
        known = self._levels.get(folder)
        if known is None:
            known = self._levels[folder] = self._read(folder)
        return known

    def _read(self, folder: Path) -> tuple[Level, Ignored, Ignored]:
        if folder == self.top or not folder.is_relative_to(self.top):
            return self._with_own(folder, Level(self._top_rules(), ())), Ignored.NO, Ignored.NO
        above, by_git, by_own = self._known(folder.parent)
        by_git = by_git or above.ignored(folder.name, folder=True, own=False)
        by_own = by_own or above.ignored(folder.name, folder=True, git=False)
        level = above.below(folder.name, self.patterns_in(folder))
        return self._with_own(folder, level), by_git, by_own

    def _top_rules(self) -> tuple[tuple[str, Patterns], ...]:
        if self.repository is None:
            return ()
        excluded = _lines(self.repository / ".git" / "info" / "exclude")
        first = Patterns([".git", *excluded])
        here = self.patterns_in(self.repository)
        return (("", first), ("", here)) if here else (("", first),)

    def _with_own(self, folder: Path, level: Level) -> Level:
        if folder != self.root:
            return level
        lines = [line for name in OWN_FILES for line in _lines(self.root / name)]
        return level.with_own(Patterns(lines)) if lines else level


def rules_for(path: Path, workspace: Workspace) -> IgnoreRules:
    """The rules of the workspace directory that holds a real path."""
    roots = [found for root in workspace.roots if (found := real(root)) is not None]
    return IgnoreRules(next((root for root in roots if path.is_relative_to(root)), path))


def _repository(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if os.path.lexists(place / ".git"):
            return place
    return None


def _lines(file: Path) -> list[str]:
    try:
        if not file.is_file() or file.stat().st_size > 1 << 20:
            return []
        return file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
