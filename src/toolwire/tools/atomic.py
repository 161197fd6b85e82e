"""Writing a file in one step: at any moment it is the old one or the new one, whole."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from toolwire.tools.paths import parent
from toolwire.tools.spec import ToolFailed, Workspace
from toolwire.tools.textfiles import stamp_of

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def write_new(
    path: Path, data: bytes, workspace: Workspace, like: os.stat_result | None = None
) -> str:
    """Make a file and the directories above it; gives its stamp. FileExistsError if it exists.

    `like` is the file it comes from: its mode and owner are kept.
    """
    with parent(path, workspace, create=True) as (folder, name):
        written = _Written(folder, name, data, like)
        try:
            _name_new(written.temporary, name, folder)
        finally:
            written.discard()
        _settle(folder)
        return written.stamp


def _name_new(temporary: str, name: str, folder: int | None) -> None:
    try:
        # Unlike a rename, a link never takes the place of a file that came in between.
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        # This file system has no hard links: keep the name with an empty file first.
        os.close(os.open(name, _NEW, 0o666, dir_fd=folder))
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def write_over(path: Path, data: bytes, workspace: Workspace, stamp: str) -> str:
    """Replace a file that still has this stamp; mode, owner and attributes are kept.

    The path has no links, so a link that led here goes on leading here. Other hard links keep the
    old contents: they may lie outside the workspace, and nothing there is written.
    """
    with parent(path, workspace) as (folder, name):
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not os.access(name, os.W_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        written = _Written(folder, name, data, before)
        try:
            now = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stamp_of(now) != stamp:
                raise ToolFailed(
                    f"File changed while it was being edited: {path}. No edits made. "
                    "Use read_file to see what it holds now, then try again.",
                    type="file_changed",
                )
            os.replace(written.temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            written.discard()
            raise
        _settle(folder)
        return written.stamp


class _Written:
    """The new contents on disk, under a name nobody looks at yet."""

    def __init__(
        self, folder: int | None, name: str, data: bytes, like: os.stat_result | None
    ) -> None:
        self._folder = folder
        path = Path(name)
        # A name at its full length leaves no room for ours.
        self.temporary = str(path.with_name(f".{path.name[:40]}.{os.urandom(6).hex()}.tmp"))
        # Nobody else reads a private file before it has its own mode.
        mode = 0o666 if like is None else 0o600
        handle = os.open(self.temporary, _NEW, mode, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                if like is not None:
                    _keep_attributes(file.fileno(), name, folder, like)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                self.stamp = stamp_of(os.fstat(file.fileno()))
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Take the name away; the file itself stays if it has another by now."""
        with suppress(FileNotFoundError):
            os.unlink(self.temporary, dir_fd=self._folder)


def _keep_attributes(file: int, name: str, folder: int | None, like: os.stat_result) -> None:
    made = os.fstat(file)
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):
            os.fchown(file, like.st_uid, like.st_gid)
    _keep_extended(file, name, folder)
    os.fchmod(file, like.st_mode & 0o7777)


def _keep_extended(file: int, name: str, folder: int | None) -> None:
    if not hasattr(os, "listxattr"):
        return
    try:
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return
    try:
        for attribute in os.listxattr(old):
            try:
                os.setxattr(file, attribute, os.getxattr(old, attribute))
            except OSError:
                continue
    except OSError:
        return
    finally:
        os.close(old)


def _settle(folder: int | None) -> None:
    """The new name outlives a power cut."""
    if folder is not None:
        os.fsync(folder)
