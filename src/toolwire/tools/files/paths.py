"""Paths of the workspace, opened so that no link leads out of it."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolwire.platform import FILE, FOLDER, mkdir_at, open_at, stat_at
from toolwire.request import JsonObject
from toolwire.tools.spec import ToolContext, ToolFailed, TouchedPaths, Workspace

_LONGEST = 4096


def named(workspace: Workspace) -> str:
    """The workspace's directories as messages name them."""
    return ", ".join(str(root) for root in workspace.roots)


def real(path: str | Path) -> Path | None:
    """The path with every link followed, as far as it exists; None if it cannot be one."""
    try:
        # A path too long for the system: its links cannot be resolved.
        if len(os.fsencode(path)) >= _LONGEST:
            return None
        found = os.path.realpath(path)
        os.stat(path)  # noqa: PTH116 - only its error matters
    except (ValueError, UnicodeError):
        return None
    except OSError as error:
        return None if error.errno == errno.ELOOP else _as_far_as_it_exists(path)
    return Path(found)


def _as_far_as_it_exists(path: str | Path) -> Path | None:
    try:
        return Path(os.path.realpath(path))
    except OSError:
        # It changed meanwhile.
        return None


def locate(path: str | Path, workspace: Workspace, *, temp: bool = False) -> Path | None:
    """The real path if it is in the workspace (or in the project's temp directory), else None."""
    found = real(path)
    return found if found is not None and _root_of(found, workspace, temp=temp) else None


def located(path: str | Path, workspace: Workspace, *, temp: bool = False) -> Path:
    """The real path of a checked call; ToolFailed if it left the workspace since."""
    found = locate(path, workspace, temp=temp)
    if found is None:
        raise ToolFailed(f"{path} is outside the workspace", type="path_not_in_workspace")
    return found


def touching(argument: str, *, temp: bool = False) -> TouchedPaths:
    """`touches` of a tool that has one path: the real one if it is in the workspace."""

    def touches(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
        given = str(arguments.get(argument, ""))
        return (locate(given, context.workspace, temp=temp) or Path(given),) if given else ()

    return touches


def search_touches(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    """`touches` of a search below `path`, which is the working directory if it is not given."""
    where = resolved(str(arguments.get("path") or "."), context.workspace)
    return (locate(where, context.workspace) or Path(where),)


def _root_of(path: Path, workspace: Workspace, *, temp: bool) -> Path | None:
    roots = workspace.roots
    if temp:
        roots = (*roots, workspace.temp, *workspace.readable.paths)
    for root in roots:
        base = real(root)
        if base is not None and path.is_relative_to(base):
            return base
    return None


def shown(path: str | Path, workspace: Workspace) -> str:
    """The path for display, relative to the working directory."""
    return os.path.relpath(path, workspace.roots[0])


def open_file(path: Path, workspace: Workspace, *, temp: bool = False) -> int:
    """A descriptor for reading a regular file at a path from `locate`.

    The path has no links; one that appears since is a race, and is refused.
    """
    with parent(path, workspace, temp=temp) as (folder, name):
        found = _step(path, name, os.O_RDONLY | FILE, folder)
    try:
        kind = os.fstat(found).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise ToolFailed(f"Path is not a regular file: {path}", type="not_a_file")
    except BaseException:
        os.close(found)
        raise
    return found


def open_folder(path: Path, workspace: Workspace) -> int:
    """A descriptor of a directory at a path from `locate`."""
    if _root_of(path, workspace, temp=False) == path:
        return open_at(path, FOLDER)
    with parent(path, workspace) as (folder, name):
        return _step(path, name, FOLDER | FILE, folder)


@contextmanager
def parent(
    path: Path, workspace: Workspace, *, temp: bool = False, create: bool = False
) -> Generator[tuple[int, str]]:
    """The directory that contains the path, opened step by step from its root, and the name."""
    root = _root_of(path, workspace, temp=temp)
    if path == root:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if root is None:
        raise ToolFailed(f"not a file of the workspace: {path}", type="path_not_in_workspace")
    *folders, name = path.relative_to(root).parts
    held = open_at(root, FOLDER)
    try:
        for folder in folders:
            if create:
                _make(folder, held)
            below = _step(path, folder, FOLDER | FILE, held)
            os.close(held)
            held = below
        yield held, name
    finally:
        os.close(held)


def _make(name: str, folder: int) -> None:
    try:
        mkdir_at(name, dir_fd=folder)
    except FileExistsError:
        return


def _step(path: Path, name: str, flags: int, folder: int) -> int:
    try:
        return open_at(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK) and _is_link(name, folder):
            raise ToolFailed(
                f"a link appeared on the way to {path} while it was opened; nothing was done",
                type="path_not_in_workspace",
            ) from error
        if error.errno == errno.ENXIO:
            raise ToolFailed(f"Path is not a regular file: {path}", type="not_a_file") from error
        raise


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(stat_at(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


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
    """Message of a failed stat, as Node.js words it."""
    reasons = {
        2: "ENOENT: no such file or directory",
        13: "EACCES: permission denied",
        20: "ENOTDIR: not a directory",
        36: "ENAMETOOLONG: name too long",
        40: "ELOOP: too many symbolic links encountered",
    }
    reason = reasons.get(error.errno or 0, error.strerror or "unknown error")
    return f"{reason}, stat '{path}'"
