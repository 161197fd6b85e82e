"""Partial downloads: append, truncate, verify, rename into place."""

import asyncio
import errno
import hashlib
import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from toolwire.errors import BadInput

_CHUNK = 1024 * 1024
_SPARE = 64 * 1024 * 1024
"""Free space required besides the file: archives of pieces, logs, other programs."""


class NoSpace(BadInput):
    """The disk is full; other sources would fail too."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The file's metadata when its hash was last verified."""

    path: str
    size: int
    changed: int
    sha256: str


class Partial:
    """An incomplete download; stays on disk until it is complete or invalid."""

    def __init__(self, target: Path, size: int) -> None:
        self._target = target
        self.path = target.with_name(f"{target.name}.part")
        self.size = size

    @property
    def done(self) -> int:
        """Bytes downloaded so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def append(self, data: bytes) -> int:
        """Append; returns the new size."""
        try:
            with self.path.open("ab") as file:
                file.write(data)
                return file.tell()
        except OSError as error:
            raise self.failure(error) from error

    def cut(self, size: int) -> None:
        """Keep only the first bytes."""
        if self.done > size:
            with self.path.open("rb+") as file:
                file.truncate(size)

    def remove(self) -> None:
        """Delete the partial file."""
        self.path.unlink(missing_ok=True)

    def place(self) -> None:
        """Rename the verified file into place."""
        self.path.replace(self._target)

    def failure(self, error: OSError) -> BadInput:
        """The error for a failed write."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            missing = readable(max(self.size - self.done, 0))
            return NoSpace(
                f"the disk of {self.path.parent} is full, with {missing} still to download; free "
                "some space or set TOOLWIRE_HOME to a larger disk, then start again to resume"
            )
        return BadInput(f"cannot write {self.path}: {error.strerror}")


def check_space(
    partial: Partial, free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
) -> None:
    """Raise if the file does not fit on the disk."""
    needed = partial.size - partial.done + _SPARE
    there = free(partial.path.parent)
    if needed > there:
        raise NoSpace(
            f"{partial.path.parent} needs {readable(needed)} of free space, but only "
            f"{readable(there)} is available; free some space, set TOOLWIRE_HOME to a larger disk, "
            "or use the small model"
        )


async def sha256_of(path: Path) -> str:
    """The file's hash, in lower-case hexadecimal digits."""

    def digest() -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return await asyncio.to_thread(digest)


def remembered(record: Path, path: Path) -> str:
    """The file's stored hash; empty if it changed since or was never verified."""
    try:
        known = msgspec.json.decode(record.read_bytes(), type=Verified)
        now = seen(path, known.sha256)
    except (OSError, msgspec.MsgspecError):
        return ""
    return known.sha256 if known == now else ""


def remember(record: Path, path: Path, sha256: str) -> None:
    """Store the hash: hashing a gigabyte at every start would cost seconds."""
    record.write_bytes(msgspec.json.encode(seen(path, sha256)))


def seen(path: Path, sha256: str) -> Verified:
    """The file as it is now."""
    now = path.stat()
    return Verified(
        path=str(path.resolve()), size=now.st_size, changed=now.st_mtime_ns, sha256=sha256
    )


def readable(size: float) -> str:
    """Size with a unit."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


_WINDOW = 5.0
"""Seconds over which the speed is averaged."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of a download."""

    done: int
    total: int
    speed: float
    """Bytes a second."""
    source: str

    @property
    def remaining(self) -> float | None:
        """Remaining seconds; None while unknown."""
        return (self.total - self.done) / self.speed if self.speed > 0 else None


Report = Callable[[Progress], None]


class DownloadMeter:
    """Turns byte counts into progress; bytes of an earlier run do not count as speed."""

    def __init__(self, total: int, report: Report, clock: Callable[[], float]) -> None:
        self._total = total
        self._report = report
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._source = ""

    def start(self, source: str, done: int) -> None:
        """Start or restart a source at this byte."""
        self._source = source
        self._seen.clear()
        self.at(done)

    def at(self, done: int) -> None:
        """Report the current number of bytes."""
        now = self._clock()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW:
            self._seen.popleft()
        first, before = self._seen[0]
        speed = (done - before) / (now - first) if now > first else 0.0
        self._report(
            Progress(done=done, total=self._total, speed=max(speed, 0.0), source=self._source)
        )
