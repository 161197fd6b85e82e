"""Removes what no live attempt owns: hosts, their programs, workspaces, containers."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from toolwire.batch.containers import LABEL
from toolwire.batch.local import HOSTS
from toolwire.batch.workspaces import STARTS, WORK, remove_tree

_WITHIN = 10.0


def end_hosts(out: Path, batch: str) -> list[int]:
    """Kills hosts of a driver that died, and programs that they left; returns what it killed."""
    folder = out / HOSTS
    found = [int(note.name) for note in folder.glob("[0-9]*")] if folder.is_dir() else []
    killed = [pid for pid in found if _is_host(pid, out)]
    killed += _marked(batch)
    for pid in killed:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + _WITHIN
    while any(_alive(pid) for pid in killed) and time.monotonic() < until:
        time.sleep(0.01)
    for pid in found:
        (folder / str(pid)).unlink(missing_ok=True)
    return killed


def _is_host(pid: int, out: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"toolwire.batch.host_process" in words and os.fsencode(out) in words


def _marked(batch: str) -> list[int]:
    """Programs that carry the batch in their environment, such as git."""
    mark = f"TOOLWIRE_BATCH={batch}".encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with suppress(OSError):
            if pid != os.getpid() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] != [b"Z"]


def remove_leftovers(out: Path, kept: set[str]) -> list[str]:
    """Removes workspaces other than these; returns their names."""
    removed: list[str] = []
    for folder in (out / WORK, out / STARTS):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name.partition(".")[0] not in kept:
                remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)
                removed.append(path.name)
    return removed


def remove_containers(batch: str) -> int:
    """Removes the containers of a batch, running or not; returns how many."""
    docker = shutil.which("docker")
    if docker is None:
        return 0
    listed = subprocess.run(  # noqa: S603 - our own arguments
        [docker, "ps", "-a", "-q", "--filter", f"label={LABEL}={batch}"],
        capture_output=True,
        text=True,
        check=False,
    )
    names = listed.stdout.split() if not listed.returncode else []
    if names:
        subprocess.run(  # noqa: S603 - ids that docker printed
            [docker, "rm", "-f", *names], capture_output=True, check=False
        )
    return len(names)
