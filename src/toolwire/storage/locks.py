"""Session lock: one writer, held by the operating system until the process ends."""

import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.errors import SessionError, SessionInUse
from toolwire.platform import lock_file

_PASSING = 2.0
"""Seconds for which a lock may outlive its holder: a child that it had just started has it, too,
until that runs a program of its own."""


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    host: str


class SessionLock:
    """Holds the lock until it is released or the process ends."""

    def __init__(self, path: Path, session: str) -> None:
        self._path = path
        self._handle = _locked(path, session)
        holder = msgspec.json.encode(_Holder(os.getpid(), socket.gethostname()))
        # The holder is only shown to users: a full disk must not stop the session here.
        with suppress(OSError):
            os.write(self._handle, holder)
            # What follows a truncation to nothing, ext4 writes to the disk when it is closed.
            os.truncate(self._handle, len(holder))

    def release(self) -> None:
        """Release the lock; remove the file where it can be removed while locked."""
        if self._handle < 0:
            return
        if sys.platform != "win32":
            with suppress(OSError):
                self._path.unlink()
        os.close(self._handle)
        self._handle = -1


def holding_process(path: Path) -> int | None:
    """The process of this machine that holds a lock; None without one that runs."""
    try:
        holder = msgspec.json.decode(path.read_bytes(), type=_Holder)
    except (OSError, msgspec.MsgspecError):
        return None
    if holder.host != socket.gethostname() or holder.pid <= 0:
        return None
    return holder.pid if _runs(holder.pid) else None


def _runs(pid: int) -> bool:
    if sys.platform == "win32":
        # A signal would end the process there; its lock file is gone if it does not run.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _locked(path: Path, session: str) -> int:
    until = time.monotonic() + _PASSING
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SessionError(
                f'cannot lock session "{session}": {error.strerror}: {path}'
            ) from error
        if not lock_file(handle):
            holder = _holder(handle)
            os.close(handle)
            if holder is not None and not _is_here(holder) and time.monotonic() < until:
                time.sleep(0.02)
                continue
            words = f"process {holder.pid} on {holder.host}" if holder else "another process"
            raise SessionInUse(session, words)
        if _still_named(handle, path):
            return handle
        # The holder unlinked the lock file while we waited; try again on the new one.
        os.close(handle)


def _still_named(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holder(handle: int) -> _Holder | None:
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        return msgspec.json.decode(os.read(handle, 1_000), type=_Holder)
    except (OSError, msgspec.MsgspecError):
        return None


def _is_here(holder: _Holder) -> bool:
    """Whether it may run: on this machine it does, or it is on another one."""
    return holder.host != socket.gethostname() or holder.pid <= 0 or _runs(holder.pid)
