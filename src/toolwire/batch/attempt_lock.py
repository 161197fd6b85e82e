"""The lock of a running attempt, so that no other host of this machine runs it too."""

import os

from toolwire.batch.workspaces import Workspaces
from toolwire.errors import SessionInUse
from toolwire.platform import lock_part
from toolwire.storage.locks import SessionLock

FILE = "attempts.lock"
"""Its byte `n` is locked while attempt `n` runs.

A file for each attempt would be made and removed: ext4 looks at every inode that was removed in the
last minute before it gives one to a new file.
"""


class AttemptLock:
    """Holds the lock until it is released or the process ends; SessionInUse if another has it."""

    def __init__(self, spaces: Workspaces, n: int, id: str) -> None:
        self._handle = -1
        self._file: SessionLock | None = None
        if lock_part is None:
            self._file = SessionLock(spaces.place(n).with_suffix(".lock"), id)
            return
        handle = os.open(spaces.out / FILE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not lock_part(handle, n):
                raise SessionInUse(id, "another host")
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def release(self) -> None:
        """Releases the lock."""
        if self._file is not None:
            self._file.release()
        elif self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
