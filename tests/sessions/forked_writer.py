"""Program that forks a child per line of standard input; the child writes a session and prints
the number of each stored record, until it is killed.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.sessions.sample_events import a_session
from toolwire.sessions.sqlite import SqliteStore


def report(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def write_session(root: Path, turns: int) -> None:
    journal = SqliteStore(root).create(str(root))
    report(f"{os.getpid()} {journal.session}")

    async def write() -> None:
        for event in a_session(turns, journal.session):
            report(str(await journal.append(journal.session, event)))

    asyncio.run(write())
    report("end")
    # It keeps the session locked until it is killed.
    sys.stdin.read()


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            write_session(Path(sys.argv[1]), int(line))
            os._exit(0)
        os.waitpid(child, 0)
        report("gone")
