"""Removes what no live attempt owns: hosts, their programs, workspaces, containers."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.batch.containers import FOLDER, LABEL, TASK
from toolwire.batch.local import HOSTS
from toolwire.batch.workspace_files import remove_tree
from toolwire.batch.workspaces import STARTS, WORK
from toolwire.tools.shell.docker import QUICK

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


def stop_containers(batch: str) -> None:
    """Ends what runs in the containers of a batch; they can be started again."""
    for container in _containers(batch):
        if container.running:
            _docker("stop", "-t", "0", container.id)


def remove_containers(batch: str, kept: Collection[str] = ()) -> int:
    """Removes the containers of a batch, running or not, and stops those of the tasks that are
    `kept`; returns how many it removed.
    """
    stop_containers(batch)
    gone = [container for container in _containers(batch) if container.task not in kept]
    for container in gone:
        if os.getuid():
            # What root made in it can be removed only from inside.
            _docker("start", container.id)
            _docker("exec", container.id, "chmod", "-R", "a+rwX", container.folder)
        _docker("rm", "-f", "-v", container.id)
    return len(gone)


class _Container(msgspec.Struct, frozen=True):
    id: str
    task: str
    running: bool
    folder: str
    """Of the workspace."""


def _containers(batch: str) -> list[_Container]:
    fields = (".ID", f'.Label "{TASK}"', ".State", f'.Label "{FOLDER}"')
    form = "\t".join(f"{{{{{field}}}}}" for field in fields)
    listed = _docker("ps", "-a", "--filter", f"label={LABEL}={batch}", "--format", form)
    rows = [line.split("\t") for line in listed.splitlines()]
    return [
        _Container(id, task, state in ("running", "paused", "restarting"), folder)
        for id, task, state, folder in rows
    ]


def _docker(*words: str) -> str:
    """Runs docker, if it is there; returns what it printed, nothing if it failed."""
    program = shutil.which("docker")
    if program is None:
        return ""
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(  # noqa: S603 - our own arguments, and what docker printed
            [program, *words], capture_output=True, text=True, check=False, timeout=QUICK
        )
        return "" if done.returncode else done.stdout
    return ""
