import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.tools.shell.escapes import escapes
from toolwire.tools.shell import watchdog
from toolwire.tools.shell.sandbox import detect

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")

TOGETHER = 15
ALL = sorted(escapes().items())
BATCHES = [tuple(ALL[start : start + TOGETHER]) for start in range(0, len(ALL), TOGETHER)]
SAMPLE = tuple(ALL[3::13])
WAYS_OUT = ("end", "exit", "kill", "cancel")
LEVELS = ("off", "workspace-write")
GONE_WITHIN = 25.0
_numbers = itertools.count(70_000_000 + os.getpid() * 100)

AGENT = """
import asyncio, json, os, sys
from pathlib import Path
from toolwire.tools.builtin.run_shell_command import TOOL, end_shells
from toolwire.tools.spec import SandboxSpec, ToolContext, Workspace

async def main():
    folder, level, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    commands = json.loads(sys.argv[4])
    (folder / "ws").mkdir(exist_ok=True)
    place = Workspace(roots=(folder / "ws",), temp=folder / "temp", home=folder)
    context = ToolContext(workspace=place, owner="one", environ=dict(os.environ),
        settings={"shell_seconds": 12, "shell_idle_seconds": 12}, emit=lambda text: None,
        sandbox=SandboxSpec(level=level))
    tail = "; sleep 1000" if way == "cancel" else ""
    async def one(number, command):
        at = __import__("msgspec").structs.replace(context, call_id=str(number))
        return await TOOL.run({"command": command + tail}, at)
    tasks = [asyncio.create_task(one(*each)) for each in enumerate(commands)]
    if way == "cancel":
        await asyncio.sleep(2)
        for task in tasks:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print("ready", flush=True)
    if way == "exit":
        os._exit(3)
    if way == "kill":
        await asyncio.sleep(1000)
    await end_shells("one")

asyncio.run(main())
"""


def carrying(numbers: list[int]) -> dict[int, bytes]:
    """Living processes with one of the numbers on their command line, ours aside."""
    found: dict[int, bytes] = {}
    words = [str(number).encode() for number in numbers]
    for process in watchdog.table():
        try:
            line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if (
            process.state != "Z"
            and any(word in line for word in words)
            and AGENT[:60].encode() not in line
        ):
            found[process.pid] = line
    return found


def left(
    folder: Path, level: str, way: str, batch: tuple[tuple[str, str], ...]
) -> dict[str, bytes]:
    """What lives on of a batch of escapes, by the name of the escape."""
    numbers = [next(_numbers) for _ in batch]
    commands = [
        command.replace("{n}", str(number))
        for (_, command), number in zip(batch, numbers, strict=True)
    ]
    words = [sys.executable, "-c", AGENT, str(folder), level, way]
    with subprocess.Popen(
        [*words, msgspec.json.encode(commands).decode()], stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "ready\n"
        if way == "kill":
            agent.send_signal(signal.SIGKILL)
        agent.wait(60)
    until = time.monotonic() + GONE_WITHIN
    while (alive := carrying(numbers)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return {
        name: line
        for (name, _), number in zip(batch, numbers, strict=True)
        for line in alive.values()
        if str(number).encode() in line
    }


def needs(level: str) -> None:
    if level != "off" and detect.kind() not in ("namespaces", "bubblewrap"):
        pytest.skip("this system has no process namespaces")


def test_there_are_enough_escapes() -> None:
    assert len(ALL) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["end", "kill"])
def test_nothing_of_a_sample_of_escapes_is_left(level: str, way: str, tmp_path: Path) -> None:
    needs(level)
    assert left(tmp_path, level, way, SAMPLE) == {}


@pytest.mark.attack
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_nothing_of_any_escape_is_left(level: str, way: str, number: int, tmp_path: Path) -> None:
    needs(level)
    assert left(tmp_path, level, way, BATCHES[number]) == {}
