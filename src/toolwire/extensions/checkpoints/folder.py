"""A session's folder of checkpoints: contents by their digest, and a log of what was changed."""

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from toolwire.errors import SessionError
from toolwire.extensions.checkpoints.states import FileState, copied, digest_of

_LOG = "changes.jsonl"

Kind: TypeAlias = Literal["tree", "files", "restore"]


class Snapshot(msgspec.Struct, frozen=True):
    """The tree of a folder, and the table of its permissions and empty folders."""

    tree: str
    table: str


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoint"):
    """The state before a turn's first change, or before a restore."""

    n: int
    """Counts from 1."""
    turn: int
    at: float
    kind: Kind
    roots: tuple[str, ...]
    """The folders of the workspace."""
    snapshot: Snapshot | None = None
    """Of the first root; None if only before-images are stored."""
    top: str = ""
    """The folder that the paths of the snapshot start from."""


class Edited(msgspec.Struct, frozen=True, kw_only=True, tag="edited"):
    """A file that an edit tool changes; stored before it does."""

    path: str
    before: FileState | None
    after: FileState | None
    call: str = ""


class Ran(msgspec.Struct, frozen=True, kw_only=True, tag="ran"):
    """The folder before and after a call that may change any file."""

    call: str
    before: Snapshot
    after: Snapshot


class RestoreStep(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a restore."""

    path: str
    now: FileState | None
    target: FileState | None


class Restoring(msgspec.Struct, frozen=True, kw_only=True, tag="restoring"):
    """A restore is about to change these files; `Restored` follows when it is complete."""

    n: int
    """The checkpoint of the state before."""
    to: int
    steps: tuple[RestoreStep, ...]


class Restored(msgspec.Struct, frozen=True, kw_only=True, tag="restored"):
    """A restore is complete."""

    n: int
    to: int


Entry: TypeAlias = Checkpoint | Edited | Ran | Restoring | Restored


class CheckpointFolder:
    """Reads and appends; every entry is on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> list[Entry]:
        """All complete entries, in order; those of a newer version are left out."""
        try:
            lines = (self.path / _LOG).read_bytes().split(b"\n")
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise SessionError(f"cannot read {self.path / _LOG}: {error.strerror}") from error
        found: list[Entry] = []
        for line in lines:
            with suppress(ValueError, msgspec.ValidationError):
                found.append(msgspec.convert(json.loads(line), Entry))
        return found

    def append(self, entry: Entry) -> None:
        """Store an entry durably."""
        # The standard library's JSON can hold names that are not UTF-8.
        line = json.dumps(msgspec.to_builtins(entry), separators=(",", ":")).encode()
        self.make()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        handle = os.open(self.path / _LOG, flags, 0o600)
        with os.fdopen(handle, "r+b", buffering=0) as log:
            torn = False
            if log.seek(0, os.SEEK_END):
                # A process that was killed may have left half a line.
                log.seek(-1, os.SEEK_END)
                torn = log.read(1) != b"\n"
            log.write((b"\n" if torn else b"") + line + b"\n")
            os.fsync(log.fileno())

    def make(self) -> None:
        """Create the folder, for its owner only."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def blob(self, digest: str) -> Path:
        """The file with these contents, which may not exist."""
        return self.path / "objects" / digest[:2] / digest[2:]

    def keep(self, data: bytes) -> str:
        """Store contents; returns their digest."""
        digest = digest_of(data)
        file = self.blob(digest)
        if not file.exists():
            draft = self._draft()
            draft.write_bytes(data)
            self._settled(draft, file)
        return digest

    def keep_file(self, handle: int) -> FileState:
        """Store the contents of an open file; returns its state. Closes the descriptor."""
        with os.fdopen(handle, "rb") as source:
            about = os.fstat(source.fileno())
            draft = self._draft()
            with draft.open("wb") as copy:
                digest = copied(source, about.st_size, copy.write)
        file = self.blob(digest)
        if file.exists():
            draft.unlink()
        else:
            self._settled(draft, file)
        return FileState("file", digest, stat.S_IMODE(about.st_mode))

    def trash(self, n: int) -> Path:
        """Where a restore moves files that were made since."""
        return self.path / "trash" / str(n)

    def _draft(self) -> Path:
        folder = self.path / "objects"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / f"{os.urandom(8).hex()}.draft"

    def _settled(self, draft: Path, file: Path) -> None:
        file.parent.mkdir(exist_ok=True, mode=0o700)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.chmod(0o600)
        draft.replace(file)


def checkpoints_in(entries: Iterable[Entry]) -> list[Checkpoint]:
    """The checkpoints, in order."""
    return [one for one in entries if isinstance(one, Checkpoint)]


def interrupted(entries: Iterable[Entry]) -> Restoring | None:
    """The last restore, if it was not completed."""
    found: Restoring | None = None
    for one in entries:
        if isinstance(one, Restoring):
            found = one
        elif isinstance(one, Restored):
            found = None
    return found
