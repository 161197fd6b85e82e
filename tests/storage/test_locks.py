"""Locks of sessions, with real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolwire.errors import SessionInUse
from toolwire.storage.locks import SessionLock

HOLDS = """
import os, sys, time
from pathlib import Path
from toolwire.storage.locks import SessionLock
lock = SessionLock(Path(sys.argv[1]), "s")
# A child that has not run a program of its own yet.
if os.fork() == 0:
    time.sleep(float(sys.argv[2]))
    os._exit(0)
print("held", flush=True)
time.sleep(60)
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


def killed_holder(path: Path, seconds: float) -> None:
    """A process that held the lock and was killed; its child has the lock for so long."""
    command = [sys.executable, "-c", HOLDS, str(path), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGKILL)


def test_a_lock_that_outlives_its_holder_for_a_moment_is_waited_for(tmp_path: Path):
    path = tmp_path / "s.lock"
    killed_holder(path, 0.7)
    SessionLock(path, "s").release()


def test_a_lock_that_stays_is_refused_with_its_holder(tmp_path: Path):
    path = tmp_path / "s.lock"
    killed_holder(path, 6.0)
    with pytest.raises(SessionInUse, match="process"):
        SessionLock(path, "s")


def test_a_lock_of_a_process_that_runs_is_refused_at_once(tmp_path: Path):
    path = tmp_path / "s.lock"
    held = SessionLock(path, "s")
    begun = time.monotonic()
    with pytest.raises(SessionInUse, match=str(os.getpid())):
        SessionLock(path, "s")
    assert time.monotonic() - begun < 1.5
    held.release()
