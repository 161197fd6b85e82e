"""`python -m bench.batch_store STORE RECORDS`: what a record costs the process that writes it.

STORE is a folder or the address of a PostgreSQL server. Prints the CPU per record in milliseconds,
of all threads of this process; what opening the store costs is not counted.
"""

import asyncio
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolwire.agent.events import AgentEvent, MessageAdded, ModelAsked, ToolFinished, ToolStarted
from toolwire.messages import Message, Outcome, Text, ToolResult
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import SessionStore
from toolwire.tools.spec import Effect

_TEXT = "what a command printed, or a model wrote " * 16


def events(count: int) -> Generator[AgentEvent]:
    """Events as in a session with calls, about 800 bytes each; half of them are synced."""
    arguments = f'{{"x": "{_TEXT}"}}'
    for n in range(count // 4):
        id = f"c{n}"
        yield ModelAsked(model=f"p/{_TEXT}")
        yield MessageAdded(message=Message(role="assistant", parts=(Text(_TEXT),)))
        yield ToolStarted(call_id=id, name="x", arguments=arguments, effect=Effect.WRITE)
        yield ToolFinished(
            call_id=id,
            name="x",
            arguments="{}",
            outcome=Outcome.DONE,
            success=True,
            duration=0.1,
            result=ToolResult(call_id=id, name="x", parts=(Text(_TEXT),)),
        )


@contextmanager
def server() -> Generator[str]:
    """The server of TOOLWIRE_TEST_POSTGRES, or one of our own; empty if there is none."""
    if url := os.environ.get("TOOLWIRE_TEST_POSTGRES"):
        yield url
        return
    try:
        from tests.fakes.postgres import postgres_url
    except ImportError:
        yield ""
        return
    yield postgres_url()


def _opened(name: str) -> SessionStore:
    if not name.startswith("postgresql://"):
        return SqliteStore(Path(name))
    from toolwire.sessions.postgres.store import PostgresStore

    return PostgresStore(name)


async def _written(store: SessionStore, count: int) -> float:
    journal = store.create("/bench")
    before = 0.0
    for n, event in enumerate(events(count)):
        if n == count // 10:
            before = time.process_time()
        await journal.append(journal.session, event)
    spent = time.process_time() - before
    await journal.close()
    return spent * 1e3 / (count - count // 10)


def main() -> None:
    """Writes the records and prints what one of them cost."""
    print(asyncio.run(_written(_opened(sys.argv[1]), int(sys.argv[2]))))


if __name__ == "__main__":
    main()
