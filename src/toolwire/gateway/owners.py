"""Which processes that use a store still run: what the others left is dropped."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from toolwire.gateway.database import SqlConnection
from toolwire.platform import lock_file


class Owners(Protocol):
    """A lock for each process, which ends with it however it ends."""

    def hold(self, base: SqlConnection) -> None:
        """Holds the lock of this process, from its first use on."""
        ...

    def ended(self, base: SqlConnection, owner: str) -> bool:
        """Whether another process has ended."""
        ...

    def tidy(self) -> None:
        """Removes what ended processes left of their locks."""
        ...

    def close(self) -> None:
        """Ends the lock of this process."""
        ...


class FileOwners:
    """Locks on files, for the processes of one machine."""

    def __init__(self, folder: Path, owner: str) -> None:
        self._folder = folder
        self._owner = owner
        self._lock = -1

    def hold(self, base: SqlConnection) -> None:
        """Holds a file lock for as long as this process runs."""
        del base
        if self._lock >= 0:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(self._folder / self._owner, os.O_RDWR | os.O_CREAT, 0o600)
        lock_file(self._lock)

    def ended(self, base: SqlConnection, owner: str) -> bool:
        """Whether the process that holds a lock has ended."""
        del base
        return _is_free(self._folder / owner)

    def tidy(self) -> None:
        """Removes the files of ended processes."""
        for file in self._folder.iterdir() if self._folder.is_dir() else ():
            if file.name != self._owner and _is_free(file):
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """Removes the file of this process."""
        if self._lock >= 0:
            with suppress(OSError):
                (self._folder / self._owner).unlink()
            os.close(self._lock)
            self._lock = -1


def _is_free(lock: Path) -> bool:
    try:
        handle = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        return lock_file(handle)
    finally:
        os.close(handle)
