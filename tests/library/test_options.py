import asyncio
import json
import os
import shlex
import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from tests.fakes.scripted import Scripted, calls, says
from tests.fakes.simulated import Place, Simulated
from tests.mcp.servers import SCRIPTED
from toolwire import (
    Agent,
    BadInput,
    Choice,
    Effort,
    Limits,
    Media,
    MediaKind,
    Message,
    Mode,
    ModelSettings,
    Text,
    ToolCall,
    ToolChoice,
    ToolContext,
    ToolResult,
    TurnEnd,
    UnknownName,
    load_settings,
    tool,
)
from toolwire.app.servers import approvals_of, host_choice
from toolwire.events import Finished, StopReason, TextDelta, Usage
from toolwire.mcp.projects import read_file
from toolwire.messages import Outcome
from toolwire.request import ModelRequest, Reasoning
from toolwire.simulator import Call, replies, reply
from toolwire.tools.spec import Effect

PIXEL = (
    b"\x89PNG\r\n\x1a\n"
    + struct.pack(">I4sIIBBBBBI", 13, b"IHDR", 1, 1, 8, 2, 0, 0, 0, 0x907753DE)
    + struct.pack(">I4s", 12, b"IDAT")
    + zlib.compress(b"\x00\xff\x00\x00")
)


@dataclass
class Shop:
    stock: dict[str, int]


class Speaks(Protocol):
    def speak(self) -> str: ...


@tool(effect=Effect.READ)
def in_stock(item: str, context: ToolContext[Shop]) -> int:
    """How many there are."""
    return context.deps.stock[item]


ASKS = calls(("c1", "in_stock", {"item": "tea"}))


def results(messages: tuple[Message, ...]) -> list[tuple[str, Outcome]]:
    return [(one.text, one.outcome) for message in messages for one in message.results]


def test_tools_reach_the_dependencies_of_the_agent_and_of_a_run() -> None:
    model = Scripted(ASKS, says("Some."), ASKS, says("None."))
    with Agent(model, tools=[in_stock], deps=Shop({"tea": 3})) as agent:
        agent.run_sync("?")
        result = agent.run_sync("?", deps=Shop({"tea": 0}))
    assert results(result.messages) == [("3", Outcome.DONE), ("0", Outcome.DONE)]
    (offered,) = model.asked[0].tools
    assert getattr(offered, "parameters", {})["properties"].keys() == {"item"}


@pytest.mark.parametrize(
    ("deps", "words"), [(None, "but none are given"), ("x", "but they are of type str")]
)
def test_missing_or_wrong_dependencies_are_refused_before_any_request(
    deps: object, words: str
) -> None:
    model = Scripted(says("?"))
    with (
        Agent(model, tools=[in_stock], deps=deps) as agent,
        pytest.raises(BadInput, match=f"in_stock needs deps of type Shop, {words}"),
    ):
        agent.run_sync("?")
    assert model.asked == []


def test_a_protocol_that_cannot_be_checked_is_accepted() -> None:
    class Dog:
        def speak(self) -> str:
            return "Woof."

    @tool(effect=Effect.READ)
    def speak(context: ToolContext[Speaks]) -> str:
        return context.deps.speak()

    model = Scripted(calls(("c1", "speak", {})), says(""))
    with Agent(model, tools=[speak], deps=Dog()) as agent:
        assert results(agent.run_sync("?").messages) == [("Woof.", Outcome.DONE)]


def test_model_settings_are_in_every_request_and_a_run_adds_its_own() -> None:
    model = Scripted(says("One."), says("Two."))
    settings = ModelSettings(temperature=0.5, effort="low", stop="END")
    with Agent(model, model_settings=settings) as agent:
        agent.run_sync("1", model_settings=ModelSettings(temperature=0.1, max_tokens=7))
        agent.run_sync("2")
    first, second = model.asked
    assert (first.temperature, first.max_output_tokens, first.stop) == (0.1, 7, ("END",))
    assert first.reasoning == Reasoning(effort=Effort.LOW)
    assert (second.temperature, second.max_output_tokens) == (0.5, None)


def test_a_forced_call_is_forced_once() -> None:
    model = Scripted(ASKS, says("Three."), says("Hello."))
    with Agent(model, tools=[in_stock], deps=Shop({"tea": 3})) as agent:
        agent.run_sync("?", model_settings=ModelSettings(tool_choice="in_stock"))
        agent.run_sync("Hi")
    forced = ToolChoice(mode="required", names=("in_stock",))
    assert [one.tool_choice for one in model.asked] == [forced, None, None]


def test_a_tool_that_is_not_offered_cannot_be_forced() -> None:
    with (
        Agent(Scripted(says("")), tools=[in_stock], deps=Shop({})) as agent,
        pytest.raises(UnknownName, match='unknown tool "in_stok"; did you mean "in_stock"'),
    ):
        agent.run_sync("?", model_settings=ModelSettings(tool_choice="in_stok"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"temperature": -1}, "temperature is -1; it must be at least 0"),
        ({"top_p": 1.5}, "top_p is 1.5; it must be from 0 to 1"),
        ({"max_tokens": 0}, "max_tokens is 0; it must be at least 1"),
        ({"effort": "hihg"}, 'unknown effort "hihg"; did you mean "high"'),
    ],
)
def test_settings_no_model_has_are_refused_at_once(values: dict[str, Any], words: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=words):
        ModelSettings(**values)


def test_every_setting_reaches_the_request() -> None:
    values: dict[str, Any] = {
        "temperature": 0.1,
        "top_p": 0.2,
        "top_k": 3,
        "max_tokens": 4,
        "effort": "high",
        "tool_choice": "none",
        "parallel_calls": False,
        "stop": ("a", "b"),
        "seed": 5,
        "frequency_penalty": 0.6,
        "presence_penalty": 0.7,
    }
    assert values.keys() == set(ModelSettings.__struct_fields__)
    request = ModelSettings(**values).applied(ModelRequest(model="m", messages=()))
    renamed = {"max_tokens": "max_output_tokens"}
    for name, value in values.items():
        if name == "effort":
            assert request.reasoning == Reasoning(effort=Effort.HIGH)
        elif name == "tool_choice":
            assert request.tool_choice == ToolChoice(mode="none")
        else:
            assert getattr(request, renamed.get(name, name)) == value


def test_a_setting_the_provider_cannot_take_is_a_loss(tmp_path: Path) -> None:
    with Simulated(replies("Hi.")) as sim:
        upstream = sim.upstream("anthropic-messages", key="k", model="claude-sonnet-5")
        with Agent(upstream, environ=Place(tmp_path).environ()) as agent:
            result = agent.run_sync("Hi", model_settings=ModelSettings(seed=7, max_tokens=99))
        assert sim.bodies[0]["max_tokens"] == 99
        assert "seed" not in sim.bodies[0]
        assert sim.refusals == []
    assert [loss.path for loss in result.losses] == ["seed"]


def test_a_run_has_limits_of_its_own() -> None:
    model = Scripted(ASKS, says("Three."), ASKS, says("Three."))
    with Agent(model, tools=[in_stock], deps=Shop({"tea": 3})) as agent:
        first = agent.run_sync("?", limits=Limits(turns=1))
        second = agent.run_sync("?")
    assert (first.stop, first.ok, second.stop) == (TurnEnd.TURN_LIMIT, False, TurnEnd.DONE)


def test_a_run_has_an_approver_of_its_own() -> None:
    def delete(path: str) -> str:
        return f"{path} is gone"

    call = calls(("c1", "delete", {"path": "a"}))
    model = Scripted(call, says(""), call, says(""), call, says(""))
    with Agent(model, tools=[delete]) as agent:
        for approve in (None, lambda _: True, lambda _: Choice.CANCEL):
            result = agent.run_sync("?", approve=approve)
    outcomes = [outcome for _, outcome in results(result.messages)]
    assert outcomes == [Outcome.DENIED, Outcome.DONE, Outcome.DENIED]
    assert "no one to approve" in results(result.messages)[0][0]


def test_the_options_hold_in_a_stream_too() -> None:
    model = Scripted(ASKS, says("Three."))

    async def read() -> list[str]:
        async with Agent(model, tools=[in_stock]) as agent:
            events = agent.stream(
                "?", deps=Shop({"tea": 3}), model_settings=ModelSettings(temperature=0)
            )
            return [type(event).__name__ async for event in events]

    assert asyncio.run(read())[-1] == "TurnEnded"
    assert [one.temperature for one in model.asked] == [0, 0]


PAST = (
    Message(role="user", parts=(Text("My name is Ada."),)),
    Message(role="assistant", parts=(Text("Hello Ada."),)),
)


def test_a_conversation_starts_from_given_messages() -> None:
    model = Scripted(says("Ada."))
    with Agent(model, messages=PAST) as agent:
        assert agent.messages == PAST
        result = agent.run_sync("What is my name?")
    assert model.asked[0].messages[:2] == PAST
    assert [one.text for one in result.messages] == [
        "My name is Ada.",
        "Hello Ada.",
        "What is my name?",
        "Ada.",
    ]


def test_a_call_without_a_result_gets_one() -> None:
    cut = (
        *PAST,
        Message(role="user", parts=(Text("And?"),)),
        Message(role="assistant", parts=(ToolCall(id="c1", name="add", arguments="{}"),)),
    )
    model = Scripted(says("Ada."))
    with Agent(model, messages=cut) as agent:
        result = agent.run_sync("Go on.")
    sent = model.asked[0].messages
    assert [(one.call_id, one.outcome) for message in sent for one in message.results] == [
        ("c1", Outcome.INTERRUPTED)
    ]
    assert [loss.path for loss in result.losses] == ["messages[3].parts[0]"]


def test_a_result_without_its_call_is_reported() -> None:
    odd = (Message(role="user", parts=(Text("Hi"), ToolResult(call_id="x", parts=(Text("9"),)))),)
    events: list[Any] = []
    with Agent(Scripted(says("Hi.")), messages=odd, on_event=events.append) as agent:
        agent.run_sync("Go on.")
    assert [one.loss.path for one in events if type(one).__name__ == "Noticed"] == [
        "messages[0].parts[1]"
    ]


def test_given_messages_are_stored_with_a_kept_session(tmp_path: Path) -> None:
    place = Place(tmp_path)
    where: dict[str, Any] = {"environ": place.environ(), "cwd": place.work}
    with Agent(Scripted(says("Ada.")), messages=PAST, kept=True, **where) as agent:
        agent.run_sync("What is my name?")
        session = agent.session
    with Agent(Scripted(says("Yes.")), session=session, **where) as agent:
        assert [one.text for one in agent.run_sync("Sure?").messages][:3] == [
            "My name is Ada.",
            "Hello Ada.",
            "What is my name?",
        ]
    shown = place.toolwire("sessions", "export", session, "--format", "markdown")
    assert "Hello Ada." in shown.out


def test_what_is_not_a_message_is_refused() -> None:
    bad: Any = [{"role": "user", "content": "Hi"}]
    with pytest.raises(BadInput, match=r"messages\[0\] is of type dict; build it"):
        Agent(Scripted(says("")), messages=bad)
    with pytest.raises(BadInput, match="pass messages or session, not both"):
        Agent(Scripted(says("")), messages=PAST, session="s1")


def test_pictures_and_files_are_given_by_path(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(PIXEL)
    (tmp_path / "notes.txt").write_text("to be done")
    model = Scripted(says("A cat."))
    with Agent(model, cwd=tmp_path) as agent:
        agent.run_sync(["What is this?", Path("cat.png"), tmp_path / "notes.txt"])
    picture = Media.of_bytes(MediaKind.IMAGE, "image/png", PIXEL, "cat.png")
    assert model.asked[0].messages[0].parts == (
        Text("What is this?"),
        picture,
        Text("notes.txt:\nto be done\n"),
    )


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-chat", "gemini"])
def test_a_picture_reaches_the_vendor(dialect: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    # The name is wrong: the bytes decide, since vendors reject a wrong type.
    (place.work / "cat.jpg").write_bytes(PIXEL)
    with Simulated(replies("Red.")) as sim:
        upstream = sim.upstream(dialect, key="k", model="m")
        with Agent(upstream, environ=place.environ(), cwd=place.work) as agent:
            assert agent.run_sync(["Which colour?", Path("cat.jpg")]).text == "Red."
        assert sim.refusals == []
        assert "image/png" in msgspec.json.encode(sim.bodies[0]).decode()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("none.png", None, "cannot read .*none.png: No such file"),
        ("data.bin", b"\0\1\2\0", "data.bin is neither text nor a picture"),
    ],
)
def test_a_file_that_cannot_be_sent_is_refused(
    name: str, data: bytes | None, words: str, tmp_path: Path
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with Agent(Scripted(says("")), cwd=tmp_path) as agent, pytest.raises(BadInput, match=words):
        agent.run_sync(Path(name))


def test_what_is_not_a_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with Agent(Scripted(says("")), cwd=tmp_path) as agent:
        for name in ("pipe", "."):
            with pytest.raises(BadInput, match="is not a regular file"):
                agent.run_sync(Path(name))


def test_a_prompt_of_nothing_is_refused() -> None:
    odd: Any = ["Hi", 3]
    with Agent(Scripted(says(""))) as agent:
        with pytest.raises(BadInput, match="the prompt is empty"):
            agent.run_sync(["", " "])
        with pytest.raises(BadInput, match="texts, paths and media, not of int"):
            agent.run_sync(odd)


def test_a_costly_run_is_stopped_by_its_own_limit() -> None:
    spends = [TextDelta("Hm."), Finished(reason=StopReason.PAUSE, usage=Usage(output=9, cost=0.3))]
    with Agent(Scripted(spends), mode=Mode.DEFAULT) as agent:
        result = agent.run_sync("?", limits=Limits(cost=0.5))
    assert (result.stop, result.cost) == (TurnEnd.COST_LIMIT, 0.6)


def test_the_simulator_takes_the_settings_of_a_run(tmp_path: Path) -> None:
    script = replies(reply(Call.of("in_stock", item="tea")), "{last_result}")
    with Simulated(script) as sim:
        upstream = sim.upstream("openai-chat", key="k", model="m")
        with Agent(
            upstream, tools=[in_stock], deps=Shop({"tea": 3}), environ=Place(tmp_path).environ()
        ) as agent:
            result = agent.run_sync("?", model_settings=ModelSettings(tool_choice="required"))
        assert [body.get("tool_choice") for body in sim.bodies] == ["required", None]
    assert result.text == "3"


def test_a_mode_is_given_by_name_too() -> None:
    unknown: Any = "yollo"
    with pytest.raises(UnknownName, match='unknown mode "yollo"; did you mean "yolo"'):
        Agent(Scripted(says("")), mode=unknown)
    with Agent(Scripted(says("Hi.")), mode="plan") as agent:
        assert agent.run_sync("Hi").text == "Hi."


@pytest.mark.parametrize("configured", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_servers_of_a_project_start_only_with_the_users_settings(
    configured: bool, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    started = tmp_path / "started"
    entry = {"command": "touch", "args": [str(started)]}
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": entry}}))
    (found,) = read_file(place.work, print).values()
    approvals_of(place.environ()).keep(place.work, "own", found, allowed=True)
    where: dict[str, Any] = {"environ": place.environ(), "cwd": place.work}
    settings = load_settings(place.work, place.environ()) if configured else None
    with Agent(Scripted(says("Hi.")), settings=settings, **where) as agent:
        assert agent.run_sync("Hi").text == "Hi."
    assert started.exists() is configured


def test_a_session_changes_no_tools_of_the_agent(tmp_path: Path) -> None:
    agent = Agent(Scripted(says("Hi.")), builtin_tools=["ask_user", "glob"], cwd=tmp_path)
    with agent:
        agent.run_sync("Hi")
        assert agent._conversation.plan.own.tools.names == ("ask_user", "glob")  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("form", ["command", "table"])
def test_a_program_gives_its_agent_mcp_servers(form: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.work / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "false"}}}')
    line = [sys.executable, str(SCRIPTED)]
    servers: Any = [shlex.join(line)]
    if form == "table":
        servers = {"scripted_server": {"command": line[0], "args": line[1:]}}
    model = Scripted(calls(("c1", "echo", {})), says("Done."))
    events: list[Any] = []
    with Agent(
        model,
        mcp=servers,
        approve=lambda question: question.call.name == "echo",
        environ=place.environ(),
        cwd=place.work,
        on_event=events.append,
    ) as agent:
        result = agent.run_sync("?")
    assert results(result.messages) == [("hello", Outcome.DONE)]
    assert result.calls[0].server == "scripted_server"
    assert [one.message for one in events if type(one).__name__ == "Noticed"] == []


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ("https://one.example/mcp", "mcp is a list of addresses and commands; write"),
        ({"a b": {"command": "x"}}, "a server name has letters"),
        ({"a": {"comand": "x"}}, 'did you mean "command"'),
        ([""], "give either command or url"),
    ],
)
def test_a_server_that_cannot_be_is_refused_at_once(servers: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Agent(Scripted(says("")), mcp=servers)


def test_servers_of_one_name_are_numbered() -> None:
    choice = host_choice(
        ["https://one.example/a", "https://one.example/b", "npx -y @scope/files"], users=False
    )
    assert choice.only == ("one_example", "one_example-2", "files")
