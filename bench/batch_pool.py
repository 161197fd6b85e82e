"""`python -m bench.batch_pool HOME UPSTREAM TASKS PROCESSES SESSIONS`: sessions without a batch.

A plain process pool: each process runs so many sessions at once on one event loop. HOME/ended gets
a line for each session that ended.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from toolwire import config
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.client.http.transport import HttpTransport
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.providers.custom import read_upstream
from toolwire.sessions.sqlite import SqliteStore

PROMPT = "Count the lines."
ENDED = "ended"


async def work(home: Path, upstream: str, numbers: list[int], sessions: int) -> None:
    """Runs these tasks, so many at once."""
    settings = config.load(os.environ, home)
    gate = asyncio.Semaphore(sessions)
    http = HttpTransport()
    ends = os.open(home / ENDED, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def one(n: int) -> None:
        async with gate:
            folder = home / f"pool{n}"
            folder.mkdir()
            options = SessionOptions(upstream=read_upstream(upstream), mode=Mode.YOLO)
            async with open_session(
                options,
                settings=settings,
                environ=os.environ,
                cwd=folder,
                transport=http,
                store=SqliteStore(home / f"sessions{n}"),
            ) as session:
                ended = await session.send(Message(role="user", parts=(Text(PROMPT),)))
            if ended.reason != "done":
                raise RuntimeError(f"{ended.reason}: {ended.detail}")
            os.write(ends, b"\n")

    async with asyncio.TaskGroup() as group:
        for n in numbers:
            group.create_task(one(n))
    await http.aclose()


def main() -> None:
    """Runs the pool, or one process of it."""
    home, upstream, tasks = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    processes, sessions = int(sys.argv[4]), int(sys.argv[5])
    if len(sys.argv) > 6:
        at = int(sys.argv[6])
        asyncio.run(work(home, upstream, list(range(at, tasks, processes)), sessions))
        return
    started = [
        subprocess.Popen([sys.executable, "-m", "bench.batch_pool", *sys.argv[1:6], str(at)])
        for at in range(processes)
    ]
    if any(process.wait() for process in started):
        raise SystemExit("a process of the pool failed")


if __name__ == "__main__":
    main()
