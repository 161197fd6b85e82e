"""What measurements of the tools share: a place, a call, CPU of processes and children."""

import asyncio
import os
import resource
import subprocess
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from bench.measure import Samples
from toolwire.request import JsonObject
from toolwire.tools.shell.watchdogs import WATCHDOGS
from toolwire.tools.spec import Tool, ToolContext, ToolSettings, Workspace

MB = 1 << 20
_Got = TypeVar("_Got")
LOOP = asyncio.Runner()
"""One loop for all calls, as a session has one; its threads stay warm."""


def context_in(root: Path, place: Path, **settings: Any) -> ToolContext:
    """A session whose workspace is `root`; everything else of it lies in `place`."""
    temp = place / "temp"
    temp.mkdir(exist_ok=True)
    workspace = Workspace(roots=(root,), temp=temp, home=place)
    environ = {"PATH": os.environ["PATH"], "HOME": str(place)}
    return ToolContext(
        workspace=workspace,
        call_id="bench",
        environ=environ,
        settings=ToolSettings(**settings),
        emit=_silent,
    )


def _silent(text: str) -> None:
    del text


def call(tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    """One call of a session."""
    return run(awaited(tool, arguments, context))


def run(work: Coroutine[None, None, _Got]) -> _Got:
    """What it returns; `Runner.run` would spell out a task with its whole result, for a signal."""
    return LOOP.get_loop().run_until_complete(work)


async def awaited(tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    """One call."""
    return await tool.run(arguments, context)


def program(*words: str, directory: Path | None = None) -> bytes:
    """What a program prints."""
    return subprocess.run(words, stdout=subprocess.PIPE, check=True, cwd=directory).stdout


def taken(runs: Mapping[str, Callable[[], object]], rounds: int) -> Samples:
    """CPU of this process and its ended children, in µs, in turns; one round warms up."""
    return apart(runs, rounds)[1]


def apart(
    runs: Mapping[str, Callable[[], object]],
    rounds: int,
    tidy: Callable[[], object] = bool,
) -> tuple[Samples, Samples]:
    """CPU without that of commands (our own and our watchdogs'), and with it.

    After each turn it is tidied, uncounted.
    """
    own, all_ = Samples(), Samples()
    for number in range(rounds + 1):
        for name, work in runs.items():
            alone, together = _own_used(), _used()
            work()
            if number:
                own.add(name, (_own_used() - alone) * 1e6)
                all_.add(name, (_used() - together) * 1e6)
            tidy()
    return own, all_


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


def _own_used() -> float:
    """CPU in seconds of this process and of the watchdogs themselves."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime + sum(map(_process_used, WATCHDOGS.pids))


def _used() -> float:
    """The same with ended children: this process's, and the watchdogs'."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return _own_used() + usage.ru_utime + usage.ru_stime + sum(map(_children_used, WATCHDOGS.pids))


def _process_used(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _children_used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
