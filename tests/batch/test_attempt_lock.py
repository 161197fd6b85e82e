"""An attempt is locked once, between processes and within one."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.batch.attempt_lock import AttemptLock
from toolwire.batch.workspaces import Workspaces
from toolwire.errors import SessionInUse

_HOLDS = """
import sys
from pathlib import Path
from toolwire.batch.attempt_lock import AttemptLock
from toolwire.batch.workspaces import Workspaces
lock = AttemptLock(Workspaces(Path(sys.argv[1]), "b"), 1, "t")
print("held", flush=True)
sys.stdin.read()
"""


def test_each_attempt_has_a_lock_of_its_own_in_one_process_too(tmp_path: Path):
    spaces = Workspaces(tmp_path, "b")
    spaces.place(1).parent.mkdir()
    first, other = AttemptLock(spaces, 1, "t"), AttemptLock(spaces, 2, "u")
    with pytest.raises(SessionInUse):
        AttemptLock(spaces, 1, "t")
    other.release()
    with pytest.raises(SessionInUse):
        AttemptLock(spaces, 1, "t")
    first.release()
    AttemptLock(spaces, 1, "t").release()


def test_a_killed_host_leaves_its_locks_to_others(tmp_path: Path):
    spaces = Workspaces(tmp_path, "b")
    spaces.place(1).parent.mkdir()
    command = [sys.executable, "-c", _HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"held\n"
        with pytest.raises(SessionInUse):
            AttemptLock(spaces, 1, "t")
        host.kill()
        host.wait()
        AttemptLock(spaces, 1, "t").release()
