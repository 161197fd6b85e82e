"""Workspace facts for policy: link targets, folder contents, programs git would start."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from glob import iglob
from itertools import islice
from pathlib import Path
from shutil import which

from toolwire.policy.locations import HiddenPaths, Locations
from toolwire.tools.files.paths import real
from toolwire.tools.files.protection import Protection
from toolwire.tools.shell.environment import safe_folders
from toolwire.tools.spec import Workspace

_MOST_MATCHES = 1000
_MOST_ENTRIES = 60_000
"""Maximum number of files listed below a folder."""
_PACKAGES = ("node_modules", "site-packages")
_MOST_HIDDEN = 30
_GIT_SECONDS = 5
_HARMLESS_SETTING = re.compile(
    r"core\.(?!worktree|attributesfile|gitproxy|alternaterefscommand)\w+"
    r"|remote\.(?:.*\.)?(?:url|pushurl|fetch|push|mirror|prune|prunetags|tagopt|skip\w*|gh-resolved|default)"
    r"|extensions\.(?!partialclone)\w+"
    r"|(?:branch|user|author|committer|submodule|rerere|pull|push|fetch|rebase|commit|tag"
    r"|color|column|status|log|index|pack|gc|init|feature|lfs|url|http|credential"
    r"|advice|alias|merge|format|protocol|safe|maintenance|checkout|clone|receive|stash|blame"
    r"|gui|svn|am|apply|revert|showbranch|help|i18n|worktree|repack|transfer|versionsort)\..*"
    r"|diff\.(?!external)\w+|diff\..*\.(?:xfuncname|binary|wordregex|algorithm)",
    re.IGNORECASE | re.DOTALL,
)
"""Settings of a repository that a command which only reads does not start a program for: remotes
are out of reach, hooks, monitors and pagers are switched off, the rest is for commands that write.
"""
_SETTINGS_FILES = (
    ".git",
    ".envrc",
    ".npmrc",
    ".yarnrc.yml",
    ".cargo",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".mvn",
    ".tool-versions",
)


def locations_of(workspace: Workspace, environ: Mapping[str, str]) -> Locations:
    """The workspace as it is on disk, for policy."""
    facts = WorkspaceFacts(workspace, environ)
    return Locations(
        roots=tuple(str(root) for root in workspace.roots),
        home=str(workspace.home),
        temp=str(workspace.temp),
        readable=lambda: tuple(map(str, workspace.readable.paths)),
        resolve=facts.resolve,
        protected=facts.protected,
        matches=_matches,
        is_folder=_is_folder,
        hidden_below=facts.hidden_below,
        programs_of=facts.programs_of,
        foreign=facts.foreign,
        brings_settings=facts.brings_settings,
        refresh=facts.refresh,
        search_path="" if facts.safe else facts.search_path,
    )


def _matches(folder: str, pattern: str) -> tuple[str, ...] | None:
    """Returns a pattern's matches; None where bash may differ, or for too many."""
    if "[" in pattern or "\\" in pattern or "**" in pattern or re.search(r"/\.[^/]*[*?]", pattern):
        return None
    if re.match(r"\.[^/]*[*?]", pattern) or re.search(r"[*?].*\.\.(?:/|$)", pattern):
        return None
    found = tuple(islice(iglob(pattern, root_dir=folder), _MOST_MATCHES + 1))  # noqa: PTH207 - hidden names as in bash
    return None if len(found) > _MOST_MATCHES else tuple(sorted(found))


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() and os.access(path, os.X_OK)


class WorkspaceFacts:
    """Answers for one workspace; which paths are protected is determined once per ruling."""

    def __init__(self, workspace: Workspace, environ: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._environ = environ
        self._protection = Protection(workspace, environ)
        self._roots = tuple(str(real(root) or root) for root in workspace.roots)
        folders = (environ.get("PATH") or os.defpath).split(os.pathsep)
        self.search_path = os.pathsep.join(safe_folders(folders, workspace.roots))
        """Returns the PATH folders outside the workspace."""
        self.safe = self.search_path == os.pathsep.join(folders)

    def resolve(self, path: str) -> str:
        """Returns the path with links resolved; the root folder if it is invalid."""
        found = real(path)
        return "/" if found is None else str(found)

    def refresh(self) -> None:
        """Follows the links to protected folders again: commands may have changed them."""
        self._protection = Protection(self._workspace, self._environ)

    def protected(self, path: str) -> str:
        """Returns why a path is protected."""
        return self._protection.why_followed(path)

    def hidden_below(
        self, folder: str, denied: Callable[[str], bool] | None, links: bool
    ) -> tuple[HiddenPaths, ...] | None:
        """Returns the protected files below a folder; None if there are too many."""
        # Installed packages are public, keys for their tests among them; links in them may not be.
        skipped = frozenset({".git"} if links or denied else {".git", *_PACKAGES})
        found: list[HiddenPaths] = []
        left = _MOST_ENTRIES
        open_ = [folder]
        while open_:
            try:
                entries = list(os.scandir(open_.pop()))
            except OSError:
                continue
            left -= len(entries)
            if left < 0 or len(found) > _MOST_HIDDEN:
                return None
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                path = os.path.relpath(entry.path, folder) + "/" * is_folder
                if denied is not None and denied(entry.path):
                    found.append(HiddenPaths(path, "a rule denies it", denied=True))
                elif why := self._protection.hides(entry.path):
                    found.append(HiddenPaths(path, why))
                elif entry.is_symlink():
                    if links and (why := self._linked(entry.path)):
                        found.append(HiddenPaths(path, why, link=True))
                elif is_folder and entry.name not in skipped:
                    open_.append(entry.path)
        return tuple(found)

    def _linked(self, path: str) -> str:
        """Returns why a link's target is protected."""
        found = real(path)
        if found is None or not self._is_inside(path):
            return "a link that leads outside"
        return self._protection.hides(found)

    def _is_inside(self, path: str) -> bool:
        found = real(path)
        return found is not None and any(found.is_relative_to(root) for root in self._roots)

    def programs_of(self, folder: str) -> tuple[str, ...]:
        """Returns settings of the enclosing repository through which git may start programs."""
        git = which("git", path=self.search_path)
        if git is None:
            return ()
        environ = {"PATH": os.defpath, "HOME": str(self._workspace.home), "LC_ALL": "C"}
        command = (git, "-c", "safe.bareRepository=explicit", "-C", folder, "config", "--list")
        options = ("--show-scope", "--name-only", "--includes", "-z")
        try:
            done = subprocess.run(  # noqa: S603 - reads settings only
                (*command, *options),
                env=environ,
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_GIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ("settings that cannot be read",)
        fields = done.stdout.decode("utf-8", "replace").split("\0")
        names = [
            name
            for scope, name in zip(fields[::2], fields[1::2], strict=False)
            if scope in ("local", "worktree")
        ]
        if done.returncode not in (0, 1, 128):
            return ("settings that cannot be read",)
        return tuple(name for name in names if not _HARMLESS_SETTING.fullmatch(name))

    def foreign(self, name: str) -> str:
        """Returns the path of a program inside the workspace; empty for a system program."""
        if "/" in name:
            return "" if name.startswith("/") and not self._is_inside(name) else name
        if which(name, path=self.search_path):
            return ""
        return which(name, path=self._environ.get("PATH") or os.defpath) or ""

    def brings_settings(self, folder: str) -> str:
        """Returns a file in a folder that changes which programs run there."""
        if folder in self._roots:
            return ""
        path = Path(folder)
        found = next((name for name in _SETTINGS_FILES if (path / name).exists()), "")
        if not found and (path / "HEAD").is_file() and (path / "objects").is_dir():
            return "a git repository of its own"
        return found
