import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.tools.shell import protocol
from toolwire.tools.shell.output import Spool, decoded_head, decoded_tail
from toolwire.tools.shell.process_table import table
from toolwire.tools.shell.processes import Ended, ProcessLimits, Shell
from toolwire.tools.shell.shells import Shells
from toolwire.tools.shell.watchdogs import WATCHDOGS

NO_LIMITS = ProcessLimits(wall=0, idle=0)
needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def silent(text: str) -> None:
    del text


def start(folder: Path, command: str) -> tuple[Shell, Spool, Spool]:
    out, err = Spool(1 << 20, folder / "out"), Spool(1 << 20, folder / "err")
    shell = Shell(command, directory=folder, environ=dict(os.environ), out=out, err=err)
    return shell, out, err


def test_a_command_ends_with_its_code_and_its_two_streams(tmp_path: Path) -> None:
    async def run() -> tuple[Ended, bytes, bytes]:
        shell, out, err = start(tmp_path, "echo out; echo err >&2; exit 5")
        return await shell.finish(NO_LIMITS, silent), out.head, err.head

    assert asyncio.run(run()) == (Ended(exit_code=5), b"out\n", b"err\n")


def test_the_directory_is_the_one_given(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        asyncio.run(_started(tmp_path / "missing"))


async def _started(folder: Path) -> None:
    start(folder, "true")


def test_a_start_that_fails_leaves_no_descriptor_open(tmp_path: Path) -> None:
    async def run() -> list[int]:
        counts: list[int] = []
        for _ in range(3):
            with pytest.raises(FileNotFoundError):
                start(tmp_path / "missing", "true")
            counts.append(descriptors())
        return counts

    assert len(set(asyncio.run(run()))) == 1


def test_ended_commands_leave_no_descriptor_and_no_zombie(tmp_path: Path) -> None:
    async def run() -> tuple[set[int], list[str]]:
        counts: set[int] = set()
        for _ in range(3):
            shell, _, _ = start(tmp_path, "true & true")
            await shell.finish(NO_LIMITS, silent)
            await shell.end()
            counts.add(descriptors())
        ours = [one.state for one in table() if one.parent == os.getpid()]
        return counts, ours

    counts, ours = asyncio.run(run())
    assert len(counts) == 1
    assert "Z" not in ours


def test_many_commands_run_side_by_side(tmp_path: Path) -> None:
    async def one(number: int) -> bytes:
        shell, out, _ = start(tmp_path, f"echo {number}; setsid -f sleep 1000")
        ended = await shell.finish(NO_LIMITS, silent)
        assert len(ended.background) == 1
        assert shell.members() == ended.background
        await shell.end()
        assert not alive(ended.background[0])
        return out.head

    async def run() -> list[bytes]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in range(12)]
        return [task.result() for task in tasks]

    assert asyncio.run(run()) == [f"{number}\n".encode() for number in range(12)]


def test_the_watchdog_has_no_terminal_and_no_input(tmp_path: Path) -> None:
    async def run() -> bytes:
        shell, out, _ = start(tmp_path, "readlink /proc/self/fd/0; ps -o tty= -p $$ | tr -d ' '")
        await shell.finish(NO_LIMITS, silent)
        return out.head

    assert asyncio.run(run()) == b"/dev/null\n?\n"


def test_the_command_starts_with_default_signals_and_no_extra_descriptors(tmp_path: Path) -> None:
    async def run() -> bytes:
        command = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '"
        shell, out, _ = start(tmp_path, command)
        await shell.finish(NO_LIMITS, silent)
        return out.head

    blocked, ignored, descriptors = asyncio.run(run()).split(b"\n")
    # Signals 32 and up belong to the C library; whoever started us may have left them ignored.
    ordinary = (1 << 31) - 1
    assert int(blocked.removeprefix(b"SigBlk:\t"), 16) & ordinary == 0
    assert int(ignored.removeprefix(b"SigIgn:\t"), 16) & ordinary == 0
    assert descriptors == b"0 1 2 3 "


def test_closing_ends_every_background_shell(tmp_path: Path) -> None:
    async def run() -> list[bool]:
        shells = Shells()
        pids: list[int] = []
        for number in range(3):
            shell, _, _ = start(tmp_path, "trap '' TERM; setsid -f sleep 1000")
            pids += (await shell.finish(NO_LIMITS, silent)).background
            shells.keep(shell, Spool(1000, tmp_path / f"later-{number}"))
        assert len(shells.running()) == 3
        await shells.aclose()
        return [alive(pid) for pid in pids]

    assert asyncio.run(run()) == [False, False, False]


SESSION = """
import asyncio, os, sys
from pathlib import Path
from toolwire.tools.shell.processes import ProcessLimits, Shell
from toolwire.tools.shell.output import Spool

async def main():
    spools = [Spool(1000, Path(sys.argv[1]) / name) for name in "ab"]
    shell = Shell(sys.argv[2], directory=Path(sys.argv[1]), environ=dict(os.environ),
                  out=spools[0], err=spools[1])
    ended = await shell.finish(ProcessLimits(), print)
    print(*ended.background, flush=True)
    {then}

asyncio.run(main())
"""


@needs_pidfd
@pytest.mark.parametrize("then", ["return", "os._exit(0)", "await asyncio.sleep(1000)"])
def test_nothing_outlives_the_program_however_it_ends(then: str, tmp_path: Path) -> None:
    command = "trap '' TERM; sleep 1000 & setsid -f sleep 1000; env -i setsid -f sleep 1000"
    program = SESSION.replace("{then}", then)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), command], stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdout is not None
        try:
            pids = [int(pid) for pid in session.stdout.readline().split()]
            left = [_opened(pid) for pid in pids]
        finally:
            session.send_signal(signal.SIGKILL)
    assert len(pids) == 3
    for process in left:
        if process is not None:
            assert select.select([process], [], [], 10)[0] == [process]
            os.close(process)


def _opened(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


FLOOD = """
import asyncio, os, resource, sys
from pathlib import Path
from toolwire.tools.builtin.run_shell_command import TOOL
from toolwire.tools.spec import ToolContext, Workspace

async def main():
    folder = Path(sys.argv[1])
    place = Workspace(roots=(folder,), temp=folder / "temp", home=folder)
    context = ToolContext(
        workspace=place, call_id="flood", environ=dict(os.environ), emit=lambda text: None)
    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await TOOL.run({"command": "seq 1 10"}, context)
    before = peak()
    text = (await TOOL.run({"command": sys.argv[2]}, context)).text
    print(peak() - before, len(text))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "head -c 100000000 /dev/zero | tr '\\0' x",
        "head -c 100000000 /dev/urandom",
        "head -c 50000000 /dev/zero & head -c 50000000 /dev/urandom >&2; wait",
    ],
)
def test_a_hundred_megabytes_cost_no_memory(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FLOOD, str(tmp_path), command],
        capture_output=True,
        text=True,
        check=True,
    )
    kilobytes, characters = map(int, done.stdout.split())
    assert kilobytes < 16 * 1024
    assert characters < 402_000
    assert (tmp_path / "temp" / "flood.output").stat().st_size == 100_000_000


@given(
    pieces=st.lists(st.binary(max_size=40)), memory=st.integers(5, 60), limit=st.integers(0, 300)
)
def test_a_spool_holds_head_tail_and_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], memory: int, limit: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "spool" / "file"
    spool = Spool(memory, file, file_limit=limit)
    for piece in pieces:
        spool.add(piece)
    whole = b"".join(pieces)
    assert spool.total == len(whole)
    assert spool.whole == (len(whole) <= memory)
    if spool.whole:
        assert (spool.head, spool.tail) == (whole, b"")
    else:
        assert whole.startswith(spool.head)
        assert whole.endswith(spool.tail)
        assert len(spool.head) == memory // 5
        assert len(spool.tail) == memory - memory // 5
    spool.save()
    assert file.read_bytes() == whole[:limit]
    assert spool.unsaved == max(0, len(whole) - limit)
    spool.close()


class Pipe:
    """A pipe that is filled and read by turns."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        os.set_blocking(self.reading, False)

    def into(self, spool: Spool, data: bytes, most: int) -> None:
        os.write(self._writing, data)
        while data:
            data = data[spool.take(self.reading, most) :]
        with pytest.raises(BlockingIOError):
            spool.take(self.reading, most)

    def close(self, spool: Spool) -> None:
        os.close(self._writing)
        assert spool.take(self.reading, 10) == 0
        os.close(self.reading)


@given(
    pieces=st.lists(st.binary(min_size=1, max_size=40)),
    memory=st.integers(5, 60),
    limit=st.integers(0, 300),
    most=st.integers(1, 50),
    added=st.sets(st.integers(0, 9)),
)
def test_a_pipe_taken_is_the_same_as_its_bytes_added(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[bytes],
    memory: int,
    limit: int,
    most: int,
    added: set[int],
) -> None:
    place = tmp_path_factory.getbasetemp() / "taken"
    taken, plain = (Spool(memory, place / name, file_limit=limit) for name in "ab")
    pipe = Pipe()
    for number, piece in enumerate(pieces):
        plain.add(piece)
        if number in added:
            taken.add(piece)
        else:
            pipe.into(taken, piece, most)
        assert (taken.total, taken.last(7)) == (plain.total, plain.last(7))
    pipe.close(taken)
    facts = [(one.whole, one.head, one.tail, one.unsaved) for one in (taken, plain)]
    assert facts[0] == facts[1]
    for spool in (taken, plain):
        spool.save()
        spool.close()
    assert (taken.tail, taken.file.read_bytes()) == (plain.tail, plain.file.read_bytes())


def test_a_spool_without_a_place_for_its_file_keeps_head_and_tail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    spool = Spool(10, tmp_path / "file" / "out")
    pipe = Pipe()
    pipe.into(spool, b"0123456789", 100)
    pipe.into(spool, b"abcdefghij", 100)
    pipe.close(spool)
    assert (spool.head, spool.tail, spool.total, spool.unsaved) == (b"01", b"cdefghij", 20, 20)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_costs_the_middle_only(tmp_path: Path) -> None:
    spool = Spool(10, tmp_path / "out")
    pipe = Pipe()
    pipe.into(spool, b"0123456789abcdef", 100)
    full = os.open("/dev/full", os.O_WRONLY)
    assert spool._out is not None
    os.dup2(full, spool._out.fileno())
    os.close(full)
    pipe.into(spool, b"ghij", 100)
    pipe.into(spool, b"klmnop", 100)
    pipe.close(spool)
    assert (spool.head, spool.tail[-10:], spool.total) == (b"01", b"ijklmnop"[-8:], 26)
    assert spool.unsaved == 10


@given(text=st.text(), cut=st.integers(0, 100))
def test_a_character_cut_in_two_is_left_out_not_garbled(text: str, cut: int) -> None:
    data = text.encode()
    assert text.startswith(decoded_head(data[:cut]))
    assert text.endswith(decoded_tail(data[cut:]))


@needs_pidfd
@pytest.mark.parametrize("which", [slice(0, 1), slice(1, None), slice(None)])
def test_processes_that_stand_ready_are_replaced_when_killed(which: slice, tmp_path: Path) -> None:
    async def run() -> list[bytes]:
        said: list[bytes] = []
        for _ in range(3):
            shell, out, _ = start(tmp_path, "echo here")
            await shell.finish(NO_LIMITS, silent)
            await shell.end()
            said.append(out.head)
            assert len(WATCHDOGS.pids) > 1
            for pid in WATCHDOGS.pids[which]:
                ended(pid)
        return said

    assert asyncio.run(run()) == [b"here\n"] * 3


def ended(pid: int) -> None:
    ready = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([ready], [], [], 10)[0] == [ready]
    os.close(ready)


async def _parent(folder: Path, command: str = "echo $PPID") -> bytes:
    shell, out, _ = start(folder, command)
    await shell.finish(NO_LIMITS, silent)
    await shell.end()
    return out.head


def test_a_watchdog_takes_the_next_command_in_a_new_place(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()

    async def run() -> tuple[bytes, bytes, bytes]:
        first = await _parent(tmp_path)
        other = await _parent(tmp_path / "b", "echo $PPID; pwd")
        where = other.split(b"\n")
        return first, where[0], where[1]

    first, watchdog_of_other, folder = asyncio.run(run())
    assert (first, folder) == (watchdog_of_other + b"\n", bytes(tmp_path / "b"))


def test_a_watchdog_with_something_left_takes_no_other_command(tmp_path: Path) -> None:
    async def run() -> tuple[bytes, bytes]:
        busy, out, _ = start(tmp_path, "echo $PPID; setsid -f sleep 1000")
        await busy.finish(NO_LIMITS, silent)
        other = await _parent(tmp_path)
        await busy.end()
        return out.head, other

    busy, other = asyncio.run(run())
    assert busy != other


def test_an_end_that_comes_too_late_does_not_touch_the_next_command(tmp_path: Path) -> None:
    async def run() -> Ended:
        WATCHDOGS.close()
        await _parent(tmp_path)
        watched = WATCHDOGS._spare[-1]  # the order may cross the news that all is done
        watched.channel.send(protocol.END)
        shell, _, _ = start(tmp_path, "sleep 0.05; exit 3")
        assert shell._watchdog == watched.watchdog
        return await shell.finish(NO_LIMITS, silent)

    assert asyncio.run(run()) == Ended(exit_code=3)


def test_a_stopped_watchdog_takes_the_next_command(tmp_path: Path) -> None:
    async def run() -> bytes:
        await _parent(tmp_path)
        for pid in WATCHDOGS.pids:
            os.kill(pid, signal.SIGSTOP)
        return await _parent(tmp_path, "echo on")

    assert asyncio.run(run()) == b"on\n"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="stops are seen in /proc")
def test_a_command_that_keeps_stopping_its_watchdog_is_ended(tmp_path: Path) -> None:
    async def run() -> tuple[Ended, bool]:
        shell, _, _ = start(tmp_path, "while :; do kill -STOP $PPID; done")
        ended = await shell.finish(ProcessLimits(wall=30, live=0.1), silent)
        return ended, alive(shell.pid)

    ended, is_left = asyncio.run(run())
    assert ended.problem.startswith("the command kept stopping")
    assert not is_left


@needs_pidfd
def test_what_a_killed_watchdog_cannot_end_is_ended_though_it_hid(tmp_path: Path) -> None:
    async def run() -> tuple[int, ...]:
        shell, _, _ = start(tmp_path, "env -i setsid -f sleep 1000")
        ended = await shell.finish(NO_LIMITS, silent)
        left = [os.pidfd_open(pid) for pid in ended.background]
        os.kill(shell._watchdog, signal.SIGKILL)
        assert select.select(left, [], [], 10)[0] == left
        for one in left:
            os.close(one)
        await shell.end()
        return ended.background

    assert len(asyncio.run(run())) == 1


def test_a_command_outlives_the_process_that_stood_ready(tmp_path: Path) -> None:
    async def run() -> tuple[Ended, bytes]:
        shell, out, _ = start(tmp_path, f"kill -9 {WATCHDOGS.pids[0]}; echo still; exit 3")
        return await shell.finish(NO_LIMITS, silent), out.head

    asyncio.run(_started(tmp_path))
    assert asyncio.run(run()) == (Ended(exit_code=3), b"still\n")


FORKED = """
import asyncio, os, sys
from pathlib import Path
from toolwire.tools.shell.processes import ProcessLimits, Shell
from toolwire.tools.shell.output import Spool

async def main(word):
    folder = Path(sys.argv[1])
    out, err = Spool(1 << 20, folder / "out"), Spool(1 << 20, folder / "err")
    shell = Shell(f"echo {word}", directory=folder, environ=dict(os.environ), out=out, err=err)
    await shell.finish(ProcessLimits(wall=0, idle=0), print)
    await shell.end()
    os.write(1, out.head)

asyncio.run(main("parent"))
child = os.fork()
if child == 0:
    asyncio.run(main("child"))
    sys.exit(0)
os.waitpid(child, 0)
asyncio.run(main("parent"))
"""


def test_a_fork_of_ours_gets_a_line_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["parent", "child", "parent"]


_NESTED = """
import asyncio, os, resource, sys
from pathlib import Path
from toolwire.tools.shell.output import Spool
from toolwire.tools.shell.processes import ProcessLimits, Shell

resource.setrlimit(10, (int(sys.argv[1]), int(sys.argv[1])))

async def main():
    out = Spool(1 << 20, Path("out"))
    command = "grep 'file locks' /proc/self/limits"
    shell = Shell(command, directory=Path.cwd(), environ=dict(os.environ), out=out, err=out)
    await shell.finish(ProcessLimits(), lambda text: None)
    print(out.head.decode().split()[3])

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the marker is a limit of Linux")
def test_a_command_below_another_is_marked_with_a_lower_limit(tmp_path: Path) -> None:
    outer = (1 << 58) + 12345
    words = [sys.executable, "-c", _NESTED, str(outer)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert 0 < int(done.stdout) < outer, done.stderr
