"""The project as data for a small model: which files and folders there are."""

from pathlib import Path

from toolwire.prompted.small_tools import MOST_CHOICES, Ground
from toolwire.tools.breadth import breadth_first
from toolwire.tools.ignore import NEVER_SEARCHED, rules_for
from toolwire.tools.paths import real
from toolwire.tools.spec import ToolFailed, Workspace

_MOST_TEXT = 100_000
"""Bytes of a file whose lines a small model can be offered."""


def ground(workspace: Workspace) -> Ground:
    """The first root, its nearest files first; what is ignored or hidden is left out."""
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
    return Ground(
        root=_text(workspace.roots[0]),
        files=tuple(files[:MOST_CHOICES]),
        folders=tuple(folders[: MOST_CHOICES - 1]),
        more=more,
        text=lambda path: _small_text(root / path),
    )


def _small_text(path: Path) -> str | None:
    try:
        if path.stat().st_size > _MOST_TEXT:
            return None
        return path.read_bytes().decode()
    except (OSError, UnicodeError):
        return None


def _text(path: Path) -> str:
    return str(path).rstrip("/")
