import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from toolwire.errors import ToolwireError
from toolwire.gateway.lifecycle import Lifecycle, LoopLag, State
from toolwire.gateway.sockets import bind
from toolwire.gateway.workers import Workers, worker_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers need POSIX signals")

PROGRAM = """
import asyncio, os, signal, socket
from toolwire.gateway.workers import inherited

async def main():
    descriptors, parent = inherited(os.environ)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: os._exit(3))

    async def answer(reader, writer):
        await reader.readline()
        writer.write(b"%d\\n" % os.getpid())
        await writer.drain()
        writer.close()

    for number in descriptors:
        await asyncio.start_server(answer, sock=socket.socket(fileno=number))
    await parent.ready()
    gone = asyncio.ensure_future(parent.gone())
    await asyncio.wait({gone, asyncio.ensure_future(stop.wait())}, return_when="FIRST_COMPLETED")
    os._exit(7 if gone.done() else 0)

asyncio.run(main())
"""


async def asked(port: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"who\n")
    line = await reader.readline()
    writer.close()
    return int(line)


def with_workers(
    work: Callable[[Workers, int], Awaitable[None]], notices: list[str], program: str = PROGRAM
) -> int:
    async def run() -> int:
        sockets = bind("127.0.0.1", 0, 2)
        workers = Workers(
            [sys.executable, "-c", program],
            [[one] for one in sockets],
            environ={**os.environ, "NOTIFY_SOCKET": "/nowhere"},
            notice=notices.append,
            first_wait=0.05,
        )
        ready = asyncio.Event()
        running = asyncio.create_task(workers.run(ready.set))
        try:
            async with asyncio.timeout(60):
                waiting = asyncio.create_task(ready.wait())
                await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if not running.done():
                    await work(workers, sockets[0].getsockname()[1])
                    workers.stop(signal.SIGTERM)
                return await running
        finally:
            workers.send(signal.SIGKILL)
            for one in sockets:
                one.close()

    return asyncio.run(run())


@pytest.mark.slow
def test_workers_share_the_work_and_one_that_dies_is_replaced():
    notices: list[str] = []

    async def work(workers: Workers, port: int) -> None:
        before = set(workers.pids())
        assert len(before) == 2
        seen = {await asked(port) for _ in range(40)}
        assert seen <= before
        dead = workers.pids()[0]
        os.kill(dead, signal.SIGKILL)
        while len(workers.pids()) < 2 or dead in workers.pids():  # noqa: ASYNC110 - of processes
            await asyncio.sleep(0.05)
        # No connection is lost meanwhile: the parent has the socket too.
        seen = {await asked(port) for _ in range(40)}
        assert dead not in seen

    assert with_workers(work, notices) == 0
    assert notices == ["worker 1 ended with SIGKILL; it is started again in 0.05 s"]


def test_workers_that_cannot_start_end_the_program():
    async def work(workers: Workers, port: int) -> None:
        raise AssertionError("they were ready")

    with pytest.raises(ToolwireError, match="ended with exit code 4 before it was ready"):
        with_workers(work, [], "raise SystemExit(4)")


@pytest.mark.slow
def test_a_worker_ends_with_its_parent(tmp_path: Path):
    parent = (
        "import asyncio, os, sys\n"
        "from toolwire.gateway.sockets import bind\n"
        "from toolwire.gateway.workers import Workers\n"
        "async def main():\n"
        "    sockets = bind('127.0.0.1', 0)\n"
        "    command = [sys.executable, '-c', open(sys.argv[1]).read()]\n"
        "    workers = Workers(command, [sockets], environ=os.environ, notice=print)\n"
        "    await workers.run(lambda: print(*workers.pids(), flush=True))\n"
        "asyncio.run(main())\n"
    )
    (tmp_path / "worker.py").write_text(PROGRAM)

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", parent, str(tmp_path / "worker.py")),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        pid = int(await process.stdout.readline())
        process.kill()
        await process.wait()
        async with asyncio.timeout(30):
            while b"Z" not in state(pid):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)

    asyncio.run(run())


def state(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return b"Z"


def test_the_command_of_a_worker_is_this_program():
    assert worker_command(["serve", "--port", "0"])[1:] == [
        "-m",
        "toolwire",
        "serve",
        "--port",
        "0",
    ]


def test_a_process_is_ready_between_its_start_and_its_first_signal():
    async def run() -> None:
        problem = ""
        life = Lifecycle(lambda: problem)
        assert life.not_ready() == "starting"
        life.state = State.READY
        assert life.not_ready() == ""
        problem = "the ledger cannot be written"
        assert life.not_ready() == problem
        life.stop()
        await life.stopping()
        assert life.not_ready() == "draining"

    asyncio.run(run())


def test_draining_ends_with_the_last_request_the_time_or_a_second_signal():
    async def run() -> None:
        life = Lifecycle()
        life.stop()
        assert await life.drained(asyncio.sleep(0), 60) is True
        assert await life.drained(asyncio.sleep(60), 0.05) is False
        waiting = asyncio.create_task(life.drained(asyncio.sleep(60), 60))
        await asyncio.sleep(0.05)
        life.stop()
        assert await waiting is False

    asyncio.run(run())


def test_a_blocked_loop_shows():
    async def run() -> float:
        lag = LoopLag()
        measuring = asyncio.create_task(lag.measure())
        await asyncio.sleep(0.1)
        time.sleep(0.8)  # noqa: ASYNC251 - what is measured
        await asyncio.sleep(0.1)
        measuring.cancel()
        return next(iter(lag.samples())).value

    assert asyncio.run(run()) > 0.2
