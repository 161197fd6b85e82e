"""The agent as a tool, with a scripted model over HTTP."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place
from tests.mcp_server.served import KINDS, LONGEST, answering, client, running, text_of, wait_until
from toolwire.mcp.connection import ServerConnection
from toolwire.policy import Mode
from toolwire.request import JsonObject
from toolwire.simulator import Reply, Simulator
from toolwire.simulator.script import Call, Fault, Say

HTTP = KINDS[1:]
over_http = pytest.mark.parametrize("kind", HTTP)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@asynccontextmanager
async def agent(
    kind: str, place: Place, *replies: Reply, mode: Mode = Mode.DEFAULT, **more: Any
) -> AsyncGenerator[ServerConnection]:
    (place.home / "config.toml").write_text('default_model = "simulator/simulated"\n')
    async with asyncio.timeout(LONGEST), Simulator(replies) as simulator:
        environ = place.environ(TOOLWIRE_SIMULATOR_BASE_URL=simulator.origin)
        options: dict[str, Any] = {"agent": True, "environ": environ, **more}
        async with client(kind, place, (), mode, **options) as server:
            yield server


def says(text: str) -> Reply:
    return Reply(pieces=(Say(text),))


def writes(path: Path) -> Reply:
    return Reply(pieces=(Call.of("write_file", file_path=str(path), content="new"),))


@over_http
def test_a_task_is_a_session_that_goes_on(kind: str, place: Place):
    (place.work / "a.txt").write_text("content")
    lines: list[str] = []

    async def use() -> None:
        read = Reply(pieces=(Call.of("read_file", absolute_path=str(place.work / "a.txt")),))
        async with agent(kind, place, read, says("It says content."), says("Bye.")) as server:
            result = await server.call("toolwire_run", {"prompt": "read a.txt"}, lines.append)
            found = result["structuredContent"]
            assert (text_of(result), result["isError"]) == ("It says content.", False)
            assert (found["response"], found["stop"]) == ("It says content.", "done")
            assert found["stats"]["tools"]["byName"]["read_file"]["count"] == 1
            more = {"prompt": "and?", "session": found["session_id"]}
            again = await server.call("toolwire_run", more, None)
            assert text_of(again) == "Bye."
            assert again["structuredContent"]["session_id"] == found["session_id"]

    asyncio.run(use())
    assert any("read_file" in line for line in lines)


@over_http
@pytest.mark.parametrize("answer", ["once", "no"])
def test_a_question_of_the_agent_reaches_the_user(kind: str, answer: str, place: Place):
    asked: list[JsonObject] = []
    files = [place.work / "one.txt", place.work / "two.txt"]

    async def use() -> JsonObject:
        replies = (writes(files[0]), writes(files[1]), says("Done."))
        elicit = answering(answer, asked=asked)
        async with agent(kind, place, *replies, elicit=elicit) as server:
            return await server.call("toolwire_run", {"prompt": "write"}, None)

    assert text_of(asyncio.run(use())).startswith("Done." if answer == "once" else "")
    assert [file.exists() for file in files] == [answer == "once"] * 2
    assert len(asked) >= 1


def test_without_a_user_the_agent_cannot_write(place: Place):
    async def use() -> JsonObject:
        replies = (writes(place.work / "one.txt"), says("I may not."))
        async with agent("http-modern", place, *replies) as server:
            return await server.call("toolwire_run", {"prompt": "write"}, None)

    assert text_of(asyncio.run(use())) == "I may not."
    assert list(place.work.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prompt": "x", "approval_mode": "yolo"}, "looser than the server's mode"),
        ({"prompt": "x", "approval_mode": "never"}, "approval_mode"),
        ({"prompt": "  "}, "prompt is empty"),
        ({}, "prompt"),
        ({"prompt": "x", "colour": 1}, "colour"),
        ({"prompt": "x", "session": "no-such-session"}, "no-such-session"),
        ({"prompt": "x", "model": "nobody/nothing"}, "nobody"),
    ],
)
def test_bad_arguments_are_errors_of_the_tool(arguments: JsonObject, words: str, place: Place):
    async def use() -> JsonObject:
        async with agent("http-modern", place, says("never")) as server:
            return await server.call("toolwire_run", arguments, None)

    result = asyncio.run(use())
    assert result["isError"] is True
    assert words in text_of(result)
    assert result["structuredContent"]["stop"] == "failed"


def test_a_stricter_mode_counts(place: Place):
    async def use() -> JsonObject:
        replies = (writes(place.work / "one.txt"), says("Denied."))
        async with agent("http-modern", place, *replies, mode=Mode.YOLO) as server:
            call = {"prompt": "write", "approval_mode": "plan"}
            return await server.call("toolwire_run", call, None)

    assert text_of(asyncio.run(use())) == "Denied."
    assert list(place.work.iterdir()) == []


def test_a_turn_that_fails_says_why(place: Place):
    async def use() -> JsonObject:
        async with agent(
            "http-legacy", place, Reply(fault=Fault(status=400, message="no"))
        ) as server:
            return await server.call("toolwire_run", {"prompt": "x"}, None)

    result = asyncio.run(use())
    assert result["isError"] is True
    assert "[failed]" in text_of(result)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@over_http
def test_a_cancelled_turn_leaves_no_process_and_its_session_can_go_on(kind: str, place: Place):
    mark = f"33{abs(hash(str(place.root))) % 10**6:06}"
    sleeps = Reply(pieces=(Call.of("run_shell_command", command=f"sleep {mark}"),))

    async def use() -> None:
        async with agent(kind, place, sleeps, says("Here."), mode=Mode.YOLO) as server:
            await server.ready(LONGEST)
            task = asyncio.ensure_future(server.call("toolwire_run", {"prompt": "sleep"}, None))
            assert await asyncio.to_thread(wait_until, lambda: bool(running(f"sleep {mark}")))
            task.cancel()
            await asyncio.wait({task})
            assert await asyncio.to_thread(wait_until, lambda: not running(f"sleep {mark}"))
            result = await server.call("toolwire_run", {"prompt": "still there?"}, None)
            assert text_of(result) == "Here."

    asyncio.run(use())
