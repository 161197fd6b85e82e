"""Started as a program: for every line on standard input, a child that writes a session and says
each record it kept, until it is killed.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.sessions.happenings import a_session
from toolwire.sessions.store import Sessions


def tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def write_session(root: Path, turns: int) -> None:
    journal = Sessions(root).create(root)
    tell(f"{os.getpid()} {journal.session}")

    async def write() -> None:
        for event in a_session(turns, journal.session):
            tell(str(await journal.append(journal.session, event)))

    asyncio.run(write())
    tell("end")
    # Whoever let it live this long still finds it holding the session.
    sys.stdin.read()


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            write_session(Path(sys.argv[1]), int(line))
            os._exit(0)
        os.waitpid(child, 0)
        tell("gone")
