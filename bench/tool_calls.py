"""What measurements of the tools share: a place, a call, CPU of processes and children."""

import asyncio
import os
import resource
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.measure import Samples
from toolwire.request import JsonObject
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


def peak() -> float:
    """The most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _used() -> float:
    spent = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        spent += usage.ru_utime + usage.ru_stime
    return spent
