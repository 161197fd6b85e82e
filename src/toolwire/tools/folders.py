"""Directories that a search begins in."""

import os
from pathlib import Path

from toolwire.tools.paths import locate
from toolwire.tools.spec import Workspace


def resolved(given: str, workspace: Workspace) -> str:
    """A path of a search, from the working directory, without dots."""
    joined = os.path.join(workspace.roots[0], given)  # noqa: PTH118 - keeps the text
    return os.path.normpath(joined)


def starts(given: str, workspace: Workspace) -> list[tuple[str, Path]]:
    """Where to search: each directory as it is shown, and its real path."""
    shown = [resolved(given, workspace)] if given else [str(root) for root in workspace.roots]
    found = [(name, locate(name, workspace)) for name in shown]
    return [(name, path) for name, path in found if path is not None]


def stat_error(path: str, error: OSError) -> str:
    """A failed look at a path, in the words of the original's runtime."""
    reasons = {
        2: "ENOENT: no such file or directory",
        13: "EACCES: permission denied",
        20: "ENOTDIR: not a directory",
        36: "ENAMETOOLONG: name too long",
        40: "ELOOP: too many symbolic links encountered",
    }
    reason = reasons.get(error.errno or 0, error.strerror or "unknown error")
    return f"{reason}, stat '{path}'"
