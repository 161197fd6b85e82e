"""Private copies of shared folders: reads show the system's, writes stay in the session.

Standard library only: it runs in a bare interpreter.
"""

import os
from collections.abc import Callable
from typing import Any

from toolwire.tools.shell.sandbox import mounts


def prepare(store: str, paths: list[str], *, user: bool) -> dict[str, str]:
    """Mount a copy of each folder below the store; the copies by folder."""
    if not store:
        return {}
    os.makedirs(store, exist_ok=True)
    copies: dict[str, str] = {}
    in_memory = False
    for number, path in enumerate(paths):
        if not os.path.isdir(path):
            continue
        copy = f"{store}/{number}"
        try:
            _overlay(path, copy, user=user)
        except OSError:
            # The store may be part of the folder, or on a file system that cannot hold changes.
            if not in_memory and not copies:
                mounts.fresh(store, "mode=755,size=50%")
                in_memory = True
            _overlay_or_empty(path, copy, user=user)
        copies[path] = f"{copy}/merged"
    return copies


def remove(store: str, count: int) -> None:
    """Delete the store with all changes."""
    import shutil  # noqa: PLC0415 - slow to load, and only at the end

    for number in range(count):
        mounts.detach(f"{store}/{number}/merged")
    mounts.detach(store)
    shutil.rmtree(store, onerror=_force)


def _force(function: Callable[..., Any], path: str, _: object) -> None:
    """An overlay leaves folders without permissions behind."""
    try:
        os.chmod(path, 0o700)
        function(path)
    except OSError:
        return


def _overlay_or_empty(path: str, copy: str, *, user: bool) -> None:
    try:
        _overlay(path, copy, user=user)
    except OSError:
        mounts.fresh(f"{copy}/merged", "mode=1777,size=50%")


def _overlay(path: str, copy: str, *, user: bool) -> None:
    names = [f"{copy}/{name}" for name in ("upper", "work", "merged")]
    for name in names:
        os.makedirs(name, exist_ok=True)
    os.chmod(names[0], os.stat(path).st_mode & 0o7777)
    lower, upper, work = (_escaped(name) for name in (path, names[0], names[1]))
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    mounts.mount("overlay", names[2], 0, options + (",userxattr" if user else ""))


def _escaped(path: str) -> str:
    for letter in "\\:,":
        path = path.replace(letter, f"\\{letter}")
    return path
