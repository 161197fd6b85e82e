"""Model, style and mode of an open session are changed; the history stays."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolwire.agent.events import Noticed, SessionEvent, TurnEnded, TurnStarted
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.session import AgentSession
from toolwire.config import Settings
from toolwire.errors import BadInput, UnknownName
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.simulator import Reply, Simulator
from toolwire.simulator.script import Call, Say

CLAUDE, GPT = "anthropic/claude-sonnet-5", "openai/gpt-5.6"


def says(text: str) -> Reply:
    return Reply(pieces=(Say(text),))


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text),))


class House:
    """A folder, a home, and the sessions opened there."""

    def __init__(self, root: Path, sim: Simulator, **more: str) -> None:
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        self.sim = sim
        self.environ = {
            "TOOLWIRE_HOME": str(root / "home"),
            "HOME": str(root),
            "PATH": "/usr/bin:/bin",
            "ANTHROPIC_API_KEY": "sk-one",
            "OPENAI_API_KEY": "sk-two",
            "ANTHROPIC_BASE_URL": sim.origin,
            "OPENAI_BASE_URL": f"{sim.origin}/v1",
            **more,
        }
        self.received: list[SessionEvent] = []

    async def _receive(self, event: SessionEvent) -> None:
        self.received.append(event)

    @asynccontextmanager
    async def session(self, **options: Any) -> AsyncGenerator[AgentSession]:
        async with open_session(
            SessionOptions(**options),
            settings=Settings(),
            environ=self.environ,
            cwd=self.work,
            readers=(self._receive,),
        ) as session:
            yield session

    @property
    def notices(self) -> list[str]:
        events = [one.event for one in self.received]
        return [event.message for event in events if isinstance(event, Noticed)]

    def bodies(self) -> list[Any]:
        return [msgspec.json.decode(one.body) for one in self.sim.requests]


def test_another_model_continues_the_conversation_and_is_resumed(tmp_path: Path) -> None:
    async def work() -> None:
        async with Simulator([says("first"), says("second"), says("third")]) as sim:
            house = House(tmp_path, sim)
            async with house.session(model=CLAUDE) as session:
                await session.send(user("one"))
                await session.change_model(GPT)
                assert session.opened.name == GPT
                await session.send(user("two"))
            async with house.session(session=session.id) as again:
                assert again.opened.name == GPT
                await again.send(user("three"))
        paths = [one.path for one in sim.requests]
        assert paths[0] == "/v1/messages"
        assert paths[1] == paths[2] != paths[0]
        assert [body["model"] for body in house.bodies()[1:]] == ["gpt-5.6", "gpt-5.6"]
        for words in ("one", "first", "two", "second", "three"):
            assert words in str(house.bodies()[2])

    asyncio.run(work())


def test_another_style_is_used_and_resumed(tmp_path: Path) -> None:
    async def work() -> None:
        async with Simulator([says("first"), says("second"), says("third")]) as sim:
            house = House(tmp_path, sim)
            async with house.session(model=CLAUDE) as session:
                await session.send(user("one"))
                await session.change_style("xml")
                await session.send(user("two"))
                with pytest.raises(UnknownName):
                    await session.change_style("yaml")
            async with house.session(session=session.id) as again:
                assert again.opened.style.style == "xml"
                await again.send(user("three"))
        assert ["tools" in body for body in house.bodies()] == [True, False, False]

    asyncio.run(work())


def test_a_tighter_mode_is_resumed_and_a_looser_one_only_on_request(tmp_path: Path) -> None:
    writes = Reply(pieces=(Call.of("run_shell_command", command="touch made"),))

    async def work() -> None:
        script = [writes, says("no"), writes, says("yes")]
        async with Simulator(script) as sim:
            house = House(tmp_path, sim)
            async with house.session(model=CLAUDE) as session:
                await session.set_mode(Mode.PLAN)
                await session.send(user("one"))
                assert not (house.work / "made").exists()
                planned = session.request.system
            async with house.session(session=session.id) as again:
                assert again.mode is Mode.PLAN
                assert again.request.system == planned
                await again.set_mode(Mode.YOLO)
                assert again.request.system != planned
                await again.send(user("two"))
                assert (house.work / "made").exists()
            async with house.session(session=session.id) as last:
                assert last.mode is Mode.DEFAULT
                assert any("--approval-mode yolo" in words for words in house.notices)
            async with house.session(session=session.id, mode=Mode.YOLO) as flagged:
                assert flagged.mode is Mode.YOLO

    asyncio.run(work())


def test_a_model_that_cannot_be_opened_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with Simulator([says("first")]) as sim:
            house = House(tmp_path, sim)
            async with house.session(model=CLAUDE) as session:
                with pytest.raises(UnknownName):
                    await session.change_model("nowhere/model")
                assert session.opened.name == CLAUDE
                await session.send(user("one"))
        assert [one.path for one in sim.requests] == ["/v1/messages"]

    asyncio.run(work())


def test_the_address_and_key_of_one_provider_are_not_used_for_another(tmp_path: Path) -> None:
    async def work() -> None:
        async with Simulator([says("a")]) as first, Simulator([says("b")]) as second:
            house = House(tmp_path, second)
            options = {"model": CLAUDE, "base_url": first.origin, "key": "sk-flag"}
            async with house.session(**options) as session:
                await session.send(user("one"))
                await session.change_model(GPT)
                await session.send(user("two"))
        assert (len(first.requests), len(second.requests)) == (1, 1)
        assert "sk-flag" not in str(second.requests[0])

    asyncio.run(work())


def test_while_a_turn_runs_only_the_mode_is_changed(tmp_path: Path) -> None:
    refused: list[str] = []

    async def work() -> None:
        async with Simulator([says("first"), says("second")]) as sim:
            house = House(tmp_path, sim)

            async def change(event: SessionEvent) -> None:
                if isinstance(event.event, TurnStarted) and not refused:
                    try:
                        await session.change_style("xml")
                    except BadInput as error:
                        refused.append(str(error))
                    await session.set_mode(Mode.PLAN)

            async with open_session(
                SessionOptions(model=CLAUDE),
                settings=Settings(),
                environ=house.environ,
                cwd=house.work,
                readers=(change,),
            ) as session:
                await session.send(user("one"))
                assert session.mode is Mode.PLAN
                assert session.toolbox.policy.terms.mode is Mode.PLAN
                await session.send(user("two"))
            first, second = house.bodies()
            assert first["system"] == second["system"]
            assert "changed the approval mode to plan" in str(first["messages"])

    asyncio.run(work())
    assert refused == ["a turn is running; change the style when it has ended"]


def test_a_message_after_the_last_step_waits_for_the_next_turn(tmp_path: Path) -> None:
    async def work() -> None:
        async with Simulator([says("first"), says("second")]) as sim:
            house = House(tmp_path, sim)
            late = [user("late words")]

            async def type_late(event: SessionEvent) -> None:
                if isinstance(event.event, TurnEnded) and late:
                    session.say(late.pop())

            async with open_session(
                SessionOptions(model=CLAUDE),
                settings=Settings(),
                environ=house.environ,
                cwd=house.work,
                readers=(type_late,),
            ) as session:
                await session.send(user("one"))
                assert session.waiting
                await session.send()
                assert not session.waiting
        assert "late words" in str(house.bodies()[1])

    asyncio.run(work())
