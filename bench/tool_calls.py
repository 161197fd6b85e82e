"""What measurements of the tools share: a place, a call, CPU of processes and children."""

import asyncio
import os
import resource
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from bench.measure import Samples
from toolwire.request import JsonObject
from toolwire.tools.keepers import KEEPERS
from toolwire.tools.spec import Tool, ToolContext, Workspace

MB = 1 << 20
LOOP = asyncio.Runner()
"""One loop for all calls, as a session has one; its threads stay warm."""


def context_in(root: Path, place: Path, **settings: object) -> ToolContext:
    """A session whose workspace is `root`; everything else of it lies in `place`."""
    temp = place / "temp"
    temp.mkdir(exist_ok=True)
    workspace = Workspace(roots=(root,), temp=temp, home=place)
    environ = {"PATH": os.environ["PATH"], "HOME": str(place)}
    return ToolContext(
        workspace=workspace, call_id="bench", environ=environ, settings=settings, emit=_silent
    )


def _silent(text: str) -> None:
    del text


def call(tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    """One call of a session."""
    return LOOP.run(awaited(tool, arguments, context))


async def awaited(tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    """One call."""
    return await tool.run(arguments, context)


def program(*words: str, directory: Path | None = None) -> bytes:
    """What a program prints."""
    return subprocess.run(words, stdout=subprocess.PIPE, check=True, cwd=directory).stdout


def taken(runs: Mapping[str, Callable[[], object]], rounds: int) -> Samples:
    """CPU of this process and its ended children, in µs, in turns; one round warms up."""
    samples = Samples()
    for number in range(rounds + 1):
        for name, work in runs.items():
            before = _used()
            work()
            if number:
                samples.add(name, (_used() - before) * 1e6)
    return samples


def growth(work: Callable[[], object]) -> float:
    """By how many MB the memory of this process grows at most while it works; Linux only."""
    with suppress(OSError):
        # Forgets the peak so far, which would hide a lower one.
        Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    work()
    return max(_status("VmHWM") - before, 0) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _used() -> float:
    """CPU in seconds so far, ended children included, and those of the keepers' process."""
    spent = _keepers_used()
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        spent += usage.ru_utime + usage.ru_stime
    return spent


def _keepers_used() -> float:
    return sum(_process_used(pid) for pid in KEEPERS.pids)


def _process_used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
