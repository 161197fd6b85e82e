"""Ways to run the same tasks, measured while they run: what starting and ending costs is left out.

A process that loads the program takes a second of CPU, and Ray starts as many of them as it likes:
divided by a few hundred tasks that is more than the layer costs, and it differs from run to run. So
a figure is what was spent between the end of one task and the end of a later one.
"""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bench.batch_pool import ENDED, PROMPT
from bench.process_tree import tree_cpu

PROCESSES, SESSIONS = 2, 16
SLOTS = PROCESSES * SESSIONS
DAEMONS = ("raylet", "gcs_server", "ray-log-monitor", "ray-dashboard-a", "ray-runtime-env")
"""Processes of Ray itself; the figure is that of the driver, the hosts and their tools."""
_EVERY = 0.01
_LONGEST = 600.0


class Steady(msgspec.Struct, frozen=True):
    """What a task took in the middle of a run."""

    cpu: float
    """Seconds of CPU of each task."""
    rate: float
    """Tasks a second."""


class Mark(msgspec.Struct, frozen=True):
    """A run after so many tasks."""

    ended: int
    cpu: float
    at: float


def pool(folder: Path, upstream: str, tasks: int, environ: Mapping[str, str]) -> Steady:
    """Sessions in processes without a batch."""
    folder.mkdir()
    words = (str(folder), upstream, str(tasks), str(PROCESSES), str(SESSIONS))
    command = [sys.executable, "-m", "bench.batch_pool", *words]
    return _measured(command, folder / ENDED, tasks, environ)


def local(folder: Path, upstream: str, tasks: int, environ: Mapping[str, str]) -> Steady:
    """`toolwire batch run` with hosts of this machine."""
    return _batch(folder, upstream, tasks, environ)


def on_ray(folder: Path, upstream: str, tasks: int, environ: Mapping[str, str]) -> Steady:
    """`toolwire batch run --executor ray`."""
    return _batch(folder, upstream, tasks, environ, "--executor", "ray")


def _batch(
    folder: Path, upstream: str, tasks: int, environ: Mapping[str, str], *options: str
) -> Steady:
    folder.mkdir()
    file, out = folder / "tasks.jsonl", folder / "out"
    file.write_bytes((msgspec.json.encode({"prompt": PROMPT}) + b"\n") * tasks)
    command = (sys.executable, "-m", "toolwire", "batch", "run", str(file), "-o", str(out))
    given = ("--upstream", upstream, "-j", str(SLOTS), "-q", *options)
    return _measured([*command, *given], out / "results.jsonl", tasks, environ)


def _measured(command: list[str], ends: Path, tasks: int, environ: Mapping[str, str]) -> Steady:
    running = subprocess.Popen(
        command, env=dict(environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    lines = _Lines(ends)
    # With as many in flight at both marks, what one began the other ended.
    first, last = (_mark(running, lines, count) for count in (2 * SLOTS, tasks - SLOTS))
    _, errors = running.communicate()
    if running.returncode:
        raise RuntimeError(errors.decode())
    count = last.ended - first.ended
    return Steady(cpu=(last.cpu - first.cpu) / count, rate=count / (last.at - first.at))


def _mark(running: "subprocess.Popen[bytes]", lines: "_Lines", count: int) -> Mark:
    """Waits for so many ends."""
    until = time.monotonic() + _LONGEST
    while (ended := lines.count()) < count:
        if running.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{ended} of {count} tasks ended")
        time.sleep(_EVERY)
    return Mark(ended, tree_cpu(running.pid, DAEMONS), time.monotonic())


class _Lines:
    """The lines of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = self._lines = 0

    def count(self) -> int:
        """Returns how many there are now."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                more = file.read()
            self._read += len(more)
            self._lines += more.count(b"\n")
        return self._lines
