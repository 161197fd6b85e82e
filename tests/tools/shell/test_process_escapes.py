import fcntl
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tests.tools.shell.escapes import ATTACK, escapes, killing_all
from toolwire.tools.shell.cgroups import own_group
from toolwire.tools.shell.process_table import signal_each, table
from toolwire.tools.shell.sandbox import detect

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")

TOGETHER = 25
ALL = sorted(escapes().items())
SAMPLE = tuple(ALL[5::17])
WAYS_OUT = ("end", "exit", "kill", "cancel")
WITHOUT_GROUPS = "off, no control groups"
LEVELS = ("off", WITHOUT_GROUPS, "workspace-write")
_NO_GROUPS = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
GONE_WITHIN = 6.0
"""Seconds: much for a loaded machine, little for a process that sleeps a thousand."""
_numbers = itertools.count(70_000_000 + os.getpid() * 100)
_batches = itertools.count(os.getpid() * 97)

AGENT = """
import asyncio, json, os, resource, sys
from pathlib import Path
from toolwire.tools.builtin.run_shell_command import TOOL
from toolwire.tools.shell.shells import end_shells
from toolwire.tools.spec import SandboxSpec, ToolContext, Workspace, ToolSettings

async def main():
    folder, level, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    commands = json.loads(sys.argv[4])
    mark = int(sys.argv[5])
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (mark, mark))
    (folder / "ws").mkdir(exist_ok=True)
    place = Workspace(roots=(folder / "ws",), temp=folder / "temp", home=folder)
    context = ToolContext(workspace=place, owner="one", environ=dict(os.environ),
        settings=ToolSettings(shell_seconds=12, shell_idle_seconds=12), emit=lambda text: None,
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


def carrying(mark: int) -> dict[int, bytes]:
    """Living processes that inherited a limit of the agent's, by what they call themselves."""
    found: dict[int, bytes] = {}
    for process in table():
        if process.state == "Z":
            continue
        try:
            limits = Path(f"/proc/{process.pid}/limits").read_text()
            line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            continue
        (row,) = [row for row in limits.splitlines() if row.startswith("Max msgqueue size")]
        if row.split()[3] == str(mark):
            found[process.pid] = line
    return found


def end_all(mark: int) -> None:
    """Leave nothing behind where a test fails."""
    for _ in range(300):
        if not (alive := carrying(mark)):
            return
        signal_each(alive, signal.SIGSTOP, signal.SIGKILL)


def groups_left() -> set[str]:
    """Control groups that no process has locked, though an agent made them."""
    found: set[str] = set()
    for folder in Path(own_group() or "/nowhere").glob("toolwire.*"):
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                found.add(str(folder))
            os.close(lock)
    return found


def left(
    folder: Path, level: str, way: str, batch: Sequence[tuple[str, str]]
) -> dict[str, list[str]]:
    """What lives on of a batch of escapes, ours included: command lines by name of the escape."""
    numbers = {name: str(next(_numbers)) for name, _ in batch}
    pids = str(Path("/proc/self/ns/pid").readlink())
    commands = [
        command.replace("{n}", numbers[name]).replace("{pids}", pids) for name, command in batch
    ]
    mark = 10_000 + next(_batches) % 800_000
    words = [sys.executable, "-c", AGENT, str(folder), level.partition(",")[0], way]
    if level == WITHOUT_GROUPS:
        words = ["unshare", "-m", "sh", "-c", _NO_GROUPS, "sh", *words]
    before = groups_left()
    with subprocess.Popen(
        [*words, msgspec.json.encode(commands).decode(), str(mark)],
        stdout=subprocess.PIPE,
        text=True,
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "ready\n"
        assert carrying(mark)
        if way == "kill":
            agent.send_signal(signal.SIGKILL)
        agent.wait(60)
    until = time.monotonic() + GONE_WITHIN
    while ((alive := carrying(mark)) or groups_left() - before) and time.monotonic() < until:
        time.sleep(0.05)
    assert groups_left() <= before
    end_all(mark)
    found: dict[str, list[str]] = {}
    for line in alive.values():
        text = line.decode(errors="replace")
        name = next((name for name, number in numbers.items() if number in text), "unknown")
        found.setdefault(name, []).append(text)
    return found


def needs(level: str) -> None:
    if (
        level == WITHOUT_GROUPS
        and subprocess.run(
            ["unshare", "-m", "sh", "-c", _NO_GROUPS, "sh", "true"], capture_output=True
        ).returncode
    ):
        pytest.skip("control groups cannot be hidden here")
    if not level.startswith("off") and detect.kind() not in ("namespaces", "bubblewrap"):
        pytest.skip("this system has no process namespaces")


def test_there_are_enough_escapes() -> None:
    assert len(ALL) >= 150
    assert {name.rpartition(", ")[2] for name, _ in ALL} == set(ATTACK)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["end", "kill"])
@pytest.mark.sweep
def test_nothing_of_a_sample_of_escapes_is_left(level: str, way: str, tmp_path: Path) -> None:
    needs(level)
    assert left(tmp_path, level, way, SAMPLE) == {}


@pytest.mark.slow
def test_a_command_that_kills_all_it_can_ends_too(tmp_path: Path) -> None:
    needs("workspace-write")
    assert left(tmp_path, "workspace-write", "kill", sorted(killing_all().items())) == {}


@pytest.mark.attack
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("start", range(0, len(ALL), TOGETHER))
def test_nothing_of_any_escape_is_left(level: str, way: str, start: int, tmp_path: Path) -> None:
    needs(level)
    assert left(tmp_path, level, way, ALL[start : start + TOGETHER]) == {}
