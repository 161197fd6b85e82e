import asyncio
import os
import shlex
import sys
from pathlib import Path

import pytest

from toolwire.tools.shell.output import Spool
from toolwire.tools.shell.processes import Confined, Ended, ProcessLimits, Shell
from toolwire.tools.shell.sandbox import detect
from toolwire.tools.shell.sandbox.plan import PROCESSES, make_plan, memory, paths_of
from toolwire.tools.shell.watchdogs import Watchdogs
from toolwire.tools.spec import SandboxSpec, Workspace

if detect.kind() != "namespaces":
    pytest.skip("needs namespaces", allow_module_level=True)

MEMORY = 150 << 20
FEW = 40
HOG = """import os, time
for _ in range(4):
    if os.fork() == 0:
        x = bytearray(os.urandom(1)) * (80 << 20)
        time.sleep(1000)
print("ended by", -os.waitstatus_to_exitcode(os.wait()[1]))"""
BOMB = """import os, time
count = 0
try:
    while count < 500:
        if os.fork() == 0: time.sleep(1000)
        count += 1
except OSError as error:
    print("stopped", count, error.errno)"""
STOPS = "while :; do kill -STOP $PPID; done"


class Session:
    """Namespaces with limits of our own, and commands in them."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self._folder = folder
        self._server = Watchdogs(options={"kind": "namespaces", **limits})
        workspace = Workspace(roots=(folder,), temp=folder / "temp", home=folder)
        spec = SandboxSpec(level="workspace-write")
        paths = paths_of(spec, workspace, {"TOOLWIRE_HOME": str(folder / "state")})
        self._confined = Confined(
            watchdogs=self._server, plan=make_plan("namespaces", spec, paths, ())
        )

    def run(self, *commands: str, limits: ProcessLimits | None = None) -> list[tuple[Ended, str]]:
        async def each() -> list[tuple[Ended, str]]:
            found: list[tuple[Ended, str]] = []
            for command in commands:
                out, err = Spool(1 << 20, self._folder / "o"), Spool(1 << 20, self._folder / "e")
                shell = Shell(
                    command,
                    directory=self._folder,
                    environ=dict(os.environ),
                    out=out,
                    err=err,
                    confined=self._confined,
                )
                ended = await shell.finish(limits or ProcessLimits(), print)
                await shell.end()
                found.append((ended, (out.head + err.head).decode()))
            return found

        try:
            return asyncio.run(each())
        finally:
            self._server.close()


def python(program: str) -> str:
    return f"{sys.executable} -c {shlex.quote(program)}"


def groups(controller: str) -> Path | None:
    """Where this process is in a hierarchy of control groups that we may change."""
    for row in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = row.split(":", 2)
        folder = Path("/sys/fs/cgroup", controllers, path.lstrip("/"))
        if controllers in (controller, "") and os.access(folder / "cgroup.procs", os.W_OK):
            name = f"{controller}.max" if not controllers else f"{controller}.*limit_in_bytes"
            if controllers or any(folder.glob(name)):
                return folder
    return None


def needs_group(controller: str) -> None:
    if os.geteuid() != 0 or groups(controller) is None:
        pytest.skip("no control group can be made here")


def test_processes_that_take_too_much_memory_together_are_ended(tmp_path: Path) -> None:
    needs_group("memory")
    session = Session(tmp_path, memory=MEMORY)
    first, second = session.run(python(HOG), "echo on", limits=ProcessLimits(wall=30))
    assert first[1] == "ended by 9\n"
    assert second == (Ended(exit_code=0), "on\n")


def test_one_process_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    ((ended, text),) = Session(tmp_path).run(python(f"bytearray({memory()} + 1)"))
    assert ended.exit_code == 1
    assert "MemoryError" in text


def test_a_fork_bomb_is_bounded(tmp_path: Path) -> None:
    needs_group("pids")
    first, second = Session(tmp_path, processes=FEW).run(python(BOMB), "echo on")
    word, count, _ = first[1].split()
    assert word == "stopped"
    assert 0 < int(count) < FEW
    assert second == (Ended(exit_code=0), "on\n")


def test_control_groups_have_the_limits(tmp_path: Path) -> None:
    needs_group("pids")
    needs_group("memory")
    ((_, text),) = Session(tmp_path, processes=PROCESSES, memory=MEMORY).run(
        "for g in $(cut -d: -f3 /proc/self/cgroup | sort -u); do cat /sys/fs/cgroup$g/pids.max "
        "/sys/fs/cgroup/pids$g/pids.max /sys/fs/cgroup$g/memory.max "
        "/sys/fs/cgroup/memory$g/memory.limit_in_bytes; done 2>/dev/null"
    )
    assert {str(PROCESSES), str(MEMORY)} <= set(text.split())


def test_a_command_that_keeps_stopping_its_watchdog_is_ended(tmp_path: Path) -> None:
    limits = ProcessLimits(wall=30, live=0.1)
    ((ended, _),) = Session(tmp_path).run(STOPS, limits=limits)
    assert ended.problem.startswith("the command kept stopping")
