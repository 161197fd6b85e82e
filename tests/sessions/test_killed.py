import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from tests.sessions.sample_events import a_session, finished, kept
from toolwire.agent.events import AgentEvent, AnswersGiven, MessageAdded, ToolFinished, ToolStarted
from toolwire.history import repair
from toolwire.messages import Origin, Outcome, calls_without_result
from toolwire.sessions.replay import answered, replay, resolve_open_calls
from toolwire.sessions.sqlite import SqliteStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")
TURNS = 4


@pytest.fixture
def writer(tmp_path: Path) -> Iterator["Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.sessions.forked_writer", str(tmp_path / "sessions")],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def killed_at(writer: "Popen[str]", record: int) -> tuple[str, int]:
    """The session of a child that was killed once it had said this record, and what it said."""
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdin.write(f"{TURNS}\n")
    writer.stdin.flush()
    pid, session = writer.stdout.readline().split()
    said = 0
    while said < record:
        said = int(writer.stdout.readline())
    os.kill(int(pid), signal.SIGKILL)
    while (line := writer.stdout.readline().strip()) != "gone":
        said = said if line == "end" else int(line)
    return session, said


def assert_goes_on(sessions: SqliteStore, session: str, said: int) -> None:
    journal = sessions.open(session)
    assert journal.salvaged is None
    events = asyncio.run(journal.read(session))
    whole = kept(a_session(TURNS, session))
    assert events == whole[: len(events)]
    assert len(events) >= said
    past = replay(events)
    todo = resolve_open_calls(past.open)
    made = (*todo.finished, *(finished(one, "again") for one in todo.again))

    async def settle() -> None:
        for event in made:
            await journal.append(session, event)
        if past.open:
            await journal.append(session, AnswersGiven(call_ids=todo.call_ids))

    asyncio.run(settle())
    messages = replay(asyncio.run(journal.read(session))).messages
    journal.close_now()
    expected = (*past.messages, answered(past.open, made)) if past.open else past.messages
    assert messages == expected
    assert list(calls_without_result(repair(messages, Origin("gemini")).messages)) == []
    # Only a call whose start was kept may have done something; none of those is called not run.
    begun, ended = since_reply(events)
    for event in todo.finished:
        lost = event.call_id in begun - ended
        assert event.outcome is (Outcome.INTERRUPTED if lost else Outcome.NOT_RUN)


def since_reply(events: list[AgentEvent]) -> tuple[set[str], set[str]]:
    begun: set[str] = set()
    ended: set[str] = set()
    for event in events:
        if isinstance(event, MessageAdded):
            begun, ended = set(), set()
        elif isinstance(event, ToolStarted):
            begun.add(event.call_id)
        elif isinstance(event, ToolFinished):
            ended.add(event.call_id)
    return begun, ended


def test_a_killed_process_leaves_a_session_that_goes_on(
    writer: "Popen[str]", tmp_path: Path
) -> None:
    session, said = killed_at(writer, 11)
    assert_goes_on(SqliteStore(tmp_path / "sessions"), session, said)


@pytest.mark.slow
def test_killed_at_any_record_a_session_goes_on(writer: "Popen[str]", tmp_path: Path) -> None:
    for record in range(1, len(kept(a_session(TURNS))) + 1):
        session, said = killed_at(writer, record)
        assert_goes_on(SqliteStore(tmp_path / "sessions"), session, said)
