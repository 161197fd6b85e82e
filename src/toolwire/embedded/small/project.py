"""The files of the workspace that a small model may know of."""

from collections.abc import Mapping
from pathlib import Path

from toolwire.embedded.small.tools import MOST_CHOICES, KnownFiles
from toolwire.tools.files.paths import locate, open_file, real
from toolwire.tools.files.protection import Protection
from toolwire.tools.search.ignore import NEVER_SEARCHED, rules_for
from toolwire.tools.search.walk import breadth_first
from toolwire.tools.spec import ToolFailed, Workspace

_MOST_TEXT = 100_000
"""Largest file whose lines are offered to a small model, in bytes."""


def known_files(workspace: Workspace, environ: Mapping[str, str] = {}) -> KnownFiles:
    """The files of the first root, nearest first, without ignored and hidden ones."""
    root = real(workspace.roots[0]) or workspace.roots[0]
    files: list[str] = []
    folders: list[str] = []
    more = False
    try:
        for listing in breadth_first(root, workspace, rules_for(root, workspace)):
            before = f"{listing.path}/" if listing.path else ""
            files += [before + it.name for it in listing.files if not it.ignored]
            folders += [
                before + it.name
                for it in listing.folders
                if not it.ignored and it.name not in NEVER_SEARCHED
            ]
            if len(files) > MOST_CHOICES or len(folders) >= MOST_CHOICES:
                more = True
                break
    except (OSError, ToolFailed):
        more = True
    return KnownFiles(
        root=str(workspace.roots[0]).rstrip("/"),
        files=tuple(files[:MOST_CHOICES]),
        folders=tuple(folders[: MOST_CHOICES - 1]),
        more=more,
        text=lambda path: _small_text(root / path, workspace, environ),
    )


def _small_text(path: Path, workspace: Workspace, environ: Mapping[str, str]) -> str | None:
    """The text of a small file that may be read without approval; None for any other."""
    found = locate(path, workspace)
    protection = Protection(workspace, environ)
    if found is None or protection.hides(path) or protection.hides(found):
        return None
    try:
        with open(open_file(found, workspace), "rb") as file:  # noqa: PTH123 - a descriptor
            data = file.read(_MOST_TEXT + 1)
        return data.decode() if len(data) <= _MOST_TEXT else None
    except (OSError, UnicodeError, ToolFailed):
        return None
