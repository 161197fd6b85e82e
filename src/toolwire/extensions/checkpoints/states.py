"""The state of one file: its kind, contents and permissions."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

_PIECE = 1 << 20


class FileState(msgspec.Struct, frozen=True):
    """A file or a link; a path without one is None."""

    kind: Literal["file", "link"]
    digest: str
    """Git's object id of the contents (SHA-256), or of the target of a link."""
    mode: int = 0
    """Permission bits; 0 for a link, -1 if any will do."""


def same(one: FileState | None, other: FileState | None) -> bool:
    """Whether two states are equal, as far as both are known."""
    if one is None or other is None or one == other:
        return one == other
    known = -1 in (one.mode, other.mode)
    return known and (one.kind, one.digest) == (other.kind, other.digest)


def digest_of(data: bytes) -> str:
    """The object id of these contents."""
    return hashlib.sha256(b"blob %d\0" % len(data) + data).hexdigest()


def copied(source: BinaryIO, size: int, write: Callable[[bytes], object]) -> str:
    """The object id of a file of this size, whose pieces `write` receives.

    OSError if the file has another size by now.
    """
    digest = hashlib.sha256(b"blob %d\0" % size)
    left = size
    while piece := source.read(_PIECE):
        left -= len(piece)
        digest.update(piece)
        write(piece)
    if left:
        raise OSError(f"it changed while it was read: {source.name}")
    return digest.hexdigest()


def state_of(path: Path) -> FileState | None:
    """The present state of a path; None if it is neither a file nor a link."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return FileState("link", digest_of(os.fsencode(path.readlink())))
        if not stat.S_ISREG(found.st_mode):
            return None
        with path.open("rb") as file:
            digest = copied(file, os.fstat(file.fileno()).st_size, _unused)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileState("file", digest, stat.S_IMODE(found.st_mode))


def _unused(piece: bytes) -> None:
    del piece
