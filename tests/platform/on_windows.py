"""`python on_windows.py SRC`: what only a real Windows can show. It needs no pytest.

Commands in job objects, the worker, locks, directories that are held open. Prints a last line
`all of it holds`, or fails.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from toolwire.platform import FILE, FOLDER, lock_file, open_at, replace_at
from toolwire.tools.shell.limits import Ended, ProcessLimits
from toolwire.tools.shell.output import Spool
from toolwire.tools.shell.shells import Shell
from toolwire.tools.workers import TookTooLong, Worker

HERE = Path.cwd()
_SLEEPER = "import time; time.sleep(90)"
_AGENT = f"""
import asyncio, os, sys
sys.path.insert(0, {sys.argv[1]!r})
from pathlib import Path
from toolwire.tools.shell.output import Spool
from toolwire.tools.shell.shells import Shell
async def main():
    out, err = Spool(9, Path("o")), Spool(9, Path("e"))
    words = (sys.executable, "-c", {_SLEEPER!r})
    shell = Shell("", directory=Path.cwd(), environ=os.environ, out=out, err=err, words=words)
    print(shell.pid, flush=True)
    await asyncio.sleep(90)
asyncio.run(main())
"""


def shell(*words: str) -> tuple[Shell, Spool, Spool]:
    """A command with its outputs."""
    out, err = Spool(10_000, HERE / "out.tmp"), Spool(10_000, HERE / "err.tmp")
    made = Shell("", directory=HERE, environ=os.environ, out=out, err=err, words=words)
    return made, out, err


async def commands() -> None:
    """Exit codes, output, limits, and what is left in the background."""
    one, out, err = shell("cmd.exe", "/c", "echo hi& echo bad 1>&2& exit 3")
    assert await one.finish(ProcessLimits(), print) == Ended(exit_code=3)
    assert (out.head.split(), err.head.split()) == ([b"hi"], [b"bad"])
    one, out, _ = shell(sys.executable, "-c", "print('x' * 3_000_000)")
    assert (await one.finish(ProcessLimits(), lambda _: None)).exit_code == 0
    assert out.total == 3_000_002
    one, _, _ = shell(sys.executable, "-c", _SLEEPER)
    ended = await one.finish(ProcessLimits(wall=2), print)
    assert ended.problem.startswith("stopped after 2 seconds"), ended
    assert not one.running
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_SLEEPER!r}])"
    one, _, _ = shell(sys.executable, "-c", child)
    ended = await one.finish(ProcessLimits(), print)
    assert ended.exit_code == 0
    assert ended.background
    assert one.running
    await one.end()
    assert (one.running, one.members()) == (False, ())


def agent_killed() -> None:
    """A command ends with the process that started it, even if that is killed."""
    agent = subprocess.Popen([sys.executable, "-c", _AGENT], stdout=subprocess.PIPE)
    assert agent.stdout is not None
    pid = int(agent.stdout.readline())
    agent.kill()
    agent.wait()
    until = time.monotonic() + 20
    while _is_alive(pid):
        assert time.monotonic() < until, "the command outlived its agent"
        time.sleep(0.1)


def _is_alive(pid: int) -> bool:
    listed = subprocess.run(
        [sys.executable, "-c", f"import os; os.kill({pid}, 0)"], capture_output=True, check=False
    )
    return listed.returncode == 0


def work() -> None:
    """The worker answers, and is ended at its limit."""
    with Worker("lines", "a+b", "", seconds=30, stopped=lambda: False) as worker:
        assert worker.ask(b"x\naab\ny") == b"\0\0\0\0\0\0\0\1"
    with Worker("lines", "(a+)+$", "", seconds=2, stopped=lambda: False) as worker:
        try:
            worker.ask(b"a" * 40 + b"b")
        except TookTooLong:
            return
    raise AssertionError("the worker was not ended")


def files() -> None:
    """Names are literal, an open directory stays, a replaced file has the new contents."""
    (HERE / "held").mkdir()
    (HERE / "held" / "a").write_bytes(b"old")
    (HERE / "held" / "b").write_bytes(b"new")
    top = open_at(HERE, FOLDER)
    held = open_at("held", FOLDER | FILE, dir_fd=top)
    for name in ("a:stream", "..", "x\\y", "x/y", ""):
        try:
            os.close(open_at(name, os.O_RDONLY | FILE, dir_fd=held))
        except OSError:
            continue
        raise AssertionError(f"{name} was opened")
    try:
        (HERE / "held").rename(HERE / "moved")
    except PermissionError:
        pass
    else:
        raise AssertionError("a directory was moved while it was open")
    replace_at("b", "a", src_dir_fd=held, dst_dir_fd=held)
    assert (HERE / "held" / "a").read_bytes() == b"new"
    one, two = (os.open(HERE / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert lock_file(one)
    assert not lock_file(two)
    for descriptor in (one, two, held, top):
        os.close(descriptor)


asyncio.run(commands())
agent_killed()
work()
files()
print("all of it holds")
