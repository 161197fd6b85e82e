import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolwire.tools.shell import cgroups
from toolwire.tools.shell.output import Spool
from toolwire.tools.shell.process_table import is_alive
from toolwire.tools.shell.processes import Ended, ProcessLimits, Shell
from toolwire.tools.shell.watchdogs import Watchdogs

UNIFIED = next(
    (root for root in cgroups.ROOTS if Path(root, "cgroup.controllers").exists()), "/nowhere"
)
NO_LIMITS = ProcessLimits(wall=0, idle=0)
FORKS_AT_ONCE = """import os
while True:
    if os.fork(): os._exit(0)
    os.setsid()
"""
HIDES_GROUPS = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
ENDS = """
import asyncio, os, sys, time
from pathlib import Path
from toolwire.tools.shell.processes import ProcessLimits, Shell
from toolwire.tools.shell.output import Spool

async def main(folder):
    spools = [Spool(1 << 20, folder / name) for name in "oe"]
    command = f"{sys.executable} {folder}/forks.py & sleep 0.2"
    shell = Shell(command, directory=folder, environ=dict(os.environ), out=spools[0], err=spools[1])
    await shell.finish(ProcessLimits(), print)
    begun = time.monotonic()
    await shell.end()
    print(time.monotonic() - begun, bool(shell._group))

asyncio.run(main(Path(sys.argv[1])))
"""
AGENT = """
import asyncio, json, os, sys
from pathlib import Path
from toolwire.tools.shell.processes import ProcessLimits, Shell
from toolwire.tools.shell.output import Spool
from toolwire.tools.shell.watchdogs import WATCHDOGS

async def main(folder):
    spools = [Spool(1 << 20, folder / name) for name in "oe"]
    command = "setsid -f sleep 1000"
    shell = Shell(command, directory=folder, environ=dict(os.environ), out=spools[0], err=spools[1])
    ended = await shell.finish(ProcessLimits(), print)
    ours = [os.getpid(), WATCHDOGS.pids[0], shell._watchdog]
    print(json.dumps([ours, ended.background, shell._group]), flush=True)
    await asyncio.sleep(1000)

asyncio.run(main(Path(sys.argv[1])))
"""


def can_make_groups() -> bool:
    groups = cgroups.Groups()
    try:
        return bool(groups.add())
    finally:
        groups.close()


needs_groups = pytest.mark.skipif(not can_make_groups(), reason="no control group can be made here")


def start(folder: Path, command: str) -> tuple[Shell, Spool]:
    out, err = Spool(1 << 20, folder / "out"), Spool(1 << 20, folder / "err")
    return Shell(command, directory=folder, environ=dict(os.environ), out=out, err=err), out


@needs_groups
def test_a_command_is_in_a_group_from_its_first_instruction(tmp_path: Path) -> None:
    async def run() -> tuple[str, str]:
        shell, out = start(tmp_path, "cat /proc/self/cgroup")
        await shell.finish(NO_LIMITS, print)
        await shell.end()
        (row,) = [row for row in out.head.decode().splitlines() if row.startswith("0::")]
        return shell._group, row[3:]

    group, seen = asyncio.run(run())
    assert group
    assert group.endswith(seen)


@needs_groups
def test_commands_that_run_together_are_in_groups_of_their_own(tmp_path: Path) -> None:
    async def run() -> set[str]:
        shells = [start(tmp_path, "sleep 0.2")[0] for _ in range(3)]
        for shell in shells:
            await shell.finish(NO_LIMITS, print)
        return {shell._group for shell in shells}

    assert len(asyncio.run(run())) == 3


@needs_groups
def test_groups_that_a_command_made_are_ended_and_removed_too(tmp_path: Path) -> None:
    async def run() -> tuple[Ended, str]:
        group = f"{UNIFIED}$(grep ^0:: /proc/self/cgroup | cut -c4-)"
        hides = f"g={group}; mkdir $g/a $g/a/b; (echo 0 > $g/a/b/cgroup.procs; exec sleep 1000) &"
        shell, _ = start(tmp_path, f"{hides}\nsleep 0.1; trap '' TERM; kill -9 $PPID")
        ended = await shell.finish(NO_LIMITS, print)
        await shell.end()
        return ended, shell._group

    ended, group = asyncio.run(run())
    assert ended.signal == signal.SIGKILL
    assert group
    assert not Path(group).exists()


@needs_groups
def test_what_outlived_agent_and_servers_is_ended_by_the_next_start(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        ours, (stray,), group = json.loads(agent.stdout.readline())
        for pid in ours:
            os.kill(pid, signal.SIGSTOP)
        # From here on the start of any other test's server may end it too.
        assert is_alive(stray)
        for pid in ours:
            os.kill(pid, signal.SIGKILL)
    server = Watchdogs()
    server.open()
    until = time.monotonic() + 10
    while (is_alive(stray) or Path(group).parent.exists()) and time.monotonic() < until:
        time.sleep(0.01)
    server.close()
    assert not is_alive(stray)
    assert not Path(group).parent.exists()


@needs_groups
def test_closing_a_fork_server_removes_its_groups(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        _, (stray,), group = json.loads(agent.stdout.readline())
        agent.kill()
    until = time.monotonic() + 10
    while Path(group).parent.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(group).parent.exists()
    assert not is_alive(stray)


@pytest.mark.parametrize("grouped", [True, False])
def test_a_command_that_does_nothing_but_fork_is_ended_at_once(
    grouped: bool, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", ENDS, str(tmp_path)]
    (tmp_path / "forks.py").write_text(FORKS_AT_ONCE)
    if not grouped:
        hide = ["unshare", "-m", "sh", "-c", HIDES_GROUPS, "sh"]
        if not shutil.which("unshare") or subprocess.run([*hide, "true"]).returncode:
            pytest.skip("control groups cannot be hidden here")
        words = [*hide, *words]
    elif not can_make_groups():
        pytest.skip("no control group can be made here")
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    seconds, in_group = done.stdout.split()
    assert (float(seconds) < 5, in_group) == (True, str(grouped))
    assert not [one for one in forkers(tmp_path) if is_alive(one)]


def forkers(folder: Path) -> list[int]:
    """Processes of the program that forks."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{folder}/forks.py".encode() in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found
