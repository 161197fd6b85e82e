import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.scripted import Scripted, calls, says
from tests.fakes.simulated import LONGEST, Place, Simulated
from toolwire import (
    Agent,
    AgentEvent,
    BadInput,
    Choice,
    Confirmation,
    Effect,
    Limits,
    Message,
    Mode,
    ModelEvent,
    ModelRequest,
    Text,
    ToolFinished,
    ToolSpec,
    TurnEnd,
    TurnEnded,
    TurnFailed,
    UnknownName,
    load_settings,
    tool,
)
from toolwire.agent.events import ToolStarted
from toolwire.agent.questions import InfoDetails, UserAnswer
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import Finished, StopReason, TextDelta, Usage
from toolwire.messages import Outcome
from toolwire.simulator import Call, refused, replies, reply


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ADDS = calls(("c1", "add", {"a": 1, "b": 2}))
BROKEN = ProviderError(ErrorKind.AUTH, "wrong key")


def adding(**more: Any) -> Agent:
    return Agent(Scripted(ADDS, says("It is 3.")), tools=[add], **more)


def names_of(request: ModelRequest) -> list[str]:
    return [one.name for one in request.tools if isinstance(one, ToolSpec)]


def results(messages: tuple[Message, ...]) -> list[tuple[str, Outcome]]:
    return [(part.parts[0].text, part.outcome) for one in messages for part in one.results]  # pyright: ignore


def test_a_prompt_is_worked_on_with_the_programs_own_tools() -> None:
    model = Scripted(ADDS, says("It is 3."))
    with Agent(model, tools=[add], approve=lambda question: True, system="Be brief.") as agent:
        result = agent.run_sync("1 + 2?")
    assert (result.text, result.stop, result.ok, result.detail) == (
        "It is 3.",
        TurnEnd.DONE,
        True,
        "",
    )
    assert [(one.name, one.arguments, one.success) for one in result.calls] == [
        ("add", '{"a":1,"b":2}', True)
    ]
    assert (result.requests, result.usage, result.cost) == (2, Usage(input=20, output=10), None)
    assert results(result.messages) == [("3", Outcome.DONE)]
    assert [one.role for one in result.messages] == ["user", "assistant", "user", "assistant"]
    asked = model.asked[0]
    assert asked.system == (Text("Be brief."),)
    assert names_of(asked) == ["add"]
    assert asked.messages == (Message(role="user", parts=(Text("1 + 2?"),)),)


def test_without_words_of_its_own_a_program_says_nothing_but_the_prompt() -> None:
    model = Scripted(says("Hi."))
    with Agent(model) as agent:
        agent.run_sync("Hi")
    assert (model.asked[0].system, model.asked[0].tools) == ((), ())
    assert len(model.asked[0].messages) == 1


def test_the_conversation_goes_on_from_prompt_to_prompt() -> None:
    model = Scripted(says("One."), says("Two."))
    with Agent(model) as agent:
        agent.run_sync("1")
        result = agent.run_sync("2")
        assert agent.messages == result.messages
    assert [one.text for one in result.messages] == ["1", "One.", "2", "Two."]
    assert [one.text for one in model.asked[1].messages] == ["1", "One.", "2"]


def test_both_ways_to_run_give_the_same() -> None:
    async def awaited() -> Any:
        async with adding(allowed=["add"]) as agent:
            return await agent.run("1 + 2?")

    with adding(allowed=["add"]) as agent:
        once, other = agent.run_sync("1 + 2?"), asyncio.run(awaited())
    assert (once.text, once.messages, once.usage) == (other.text, other.messages, other.usage)


def test_what_needs_approval_is_refused_where_no_one_approves() -> None:
    with adding() as agent:
        result = agent.run_sync("1 + 2?")
    assert [(one.success, one.result.outcome) for one in result.calls] == [(False, Outcome.DENIED)]
    assert (result.text, result.ok) == ("It is 3.", True)


@pytest.mark.parametrize(
    "more",
    [{"mode": Mode.YOLO}, {"allowed": ["add"]}, {"tools": [tool(effect=Effect.READ)(add)]}],
    ids=["mode", "allowed", "effect"],
)
def test_a_call_runs_unasked_by_mode_list_or_effect(more: dict[str, Any]) -> None:
    given: dict[str, Any] = {"tools": [add], **more}
    with Agent(Scripted(ADDS, says("")), **given) as agent:
        assert [one.success for one in agent.run_sync("?").calls] == [True]


def sync_yes(question: Confirmation) -> bool:
    return True


async def async_yes(question: Confirmation) -> Choice:
    return Choice.ONCE


def later_yes(question: Confirmation) -> Any:
    return async_yes(question)


@pytest.mark.parametrize("approve", [sync_yes, async_yes, later_yes])
def test_an_approver_is_a_function_or_a_coroutine(approve: Any) -> None:
    with adding(approve=approve) as agent:
        assert [one.success for one in agent.run_sync("?").calls] == [True]


def test_an_approver_sees_the_call_and_its_no_comes_with_words() -> None:
    asked: list[Confirmation] = []

    def approve(question: Confirmation) -> UserAnswer:
        asked.append(question)
        return UserAnswer(choice=Choice.CANCEL, feedback="use a calculator")

    with adding(approve=approve) as agent:
        result = agent.run_sync("?")
    assert [(one.call.name, one.call.arguments, one.details) for one in asked] == [
        ("add", '{"a":1,"b":2}', InfoDetails(prompt=""))
    ]
    assert "use a calculator" in results(result.messages)[0][0]


def test_a_yes_for_the_session_holds_over_several_prompts() -> None:
    asked: list[Confirmation] = []

    def approve(question: Confirmation) -> Choice:
        asked.append(question)
        return Choice.SESSION

    model = Scripted(ADDS, says("3"), calls(("c2", "add", {"a": 2, "b": 2})), says("4"))
    with Agent(model, tools=[add], approve=approve) as agent:
        done = [agent.run_sync(prompt).calls[0].success for prompt in ("1 + 2", "2 + 2")]
    assert (done, len(asked)) == ([True, True], 1)


def test_an_approver_that_fails_stops_the_turn_and_its_error_is_raised() -> None:
    def approve(question: Confirmation) -> bool:
        raise KeyError("nobody")

    model = Scripted(ADDS, says("Then not."))
    with Agent(model, tools=[add], approve=approve) as agent:
        with pytest.raises(KeyError, match="nobody"):
            agent.run_sync("?")
        assert [outcome for _, outcome in results(agent.messages)] in (
            [Outcome.DENIED],
            [Outcome.CANCELLED],
        )
        assert agent.run_sync("Go on.").text == "Then not."


def test_an_approver_that_returns_something_else_is_reported() -> None:
    wrong: Any = lambda question: "yes"  # noqa: E731 - a bad answer in one line
    with adding(approve=wrong) as agent, pytest.raises(TypeError, match="approve returned 'yes'"):
        agent.run_sync("?")


def test_a_listener_receives_every_event_and_its_failure_is_raised() -> None:
    heard: list[AgentEvent] = []
    with adding(allowed=["add"], on_event=heard.append) as agent:
        agent.run_sync("?")
    assert isinstance(heard[-1], TurnEnded)
    assert [one.name for one in heard if isinstance(one, ToolFinished)] == ["add"]

    async def refuse(event: AgentEvent) -> None:
        if isinstance(event, ToolStarted):
            raise OSError("the screen is gone")

    with adding(allowed=["add"], on_event=refuse) as agent:
        with pytest.raises(OSError, match="the screen is gone"):
            agent.run_sync("?")
        assert len(results(agent.messages)) == 1


def test_a_failure_of_the_vendor_is_raised_with_what_was_done() -> None:
    model = Scripted(ADDS, [BROKEN], says("Here again."))
    with Agent(model, tools=[add], allowed=["add"]) as agent:
        with pytest.raises(TurnFailed, match="wrong key") as failed:
            agent.run_sync("?")
        assert failed.value.kind == "auth"
        assert failed.value.result.text == ""
        assert [one.name for one in failed.value.result.calls] == ["add"]
        assert agent.run_sync("Go on.").text == "Here again."


@pytest.mark.parametrize(
    ("script", "limits", "stop"),
    [
        (says("Half", StopReason.LENGTH), None, TurnEnd.LENGTH),
        (says("No.", StopReason.REFUSAL), None, TurnEnd.REFUSAL),
        (ADDS, Limits(turns=1), TurnEnd.TURN_LIMIT),
    ],
)
def test_a_cut_a_refusal_and_a_limit_are_results(
    script: list[ModelEvent], limits: Limits | None, stop: TurnEnd
) -> None:
    with Agent(Scripted(script), tools=[add], allowed=["add"], limits=limits) as agent:
        result = agent.run_sync("?")
    assert (result.stop, result.ok, result.detail != "") == (stop, False, True)


def test_a_tool_that_raises_reports_to_the_model() -> None:
    def broken() -> str:
        raise ValueError("no ink left")

    model = Scripted(calls(("c1", "broken", {})), says("Too bad."))
    with Agent(model, tools=[broken], mode=Mode.YOLO) as agent:
        result = agent.run_sync("?")
    assert results(result.messages) == [("no ink left", Outcome.FAILED)]


def streamed(agent: Agent, prompt: str, upto: type | None = None) -> list[str]:
    async def read() -> list[str]:
        names: list[str] = []
        async with agent:
            async for event in agent.stream(prompt):
                names.append(type(event).__name__)
                if upto is not None and isinstance(event, upto):
                    break
        return names

    return asyncio.run(read())


def test_a_stream_gives_every_event_in_order() -> None:
    heard: list[str] = []
    agent = adding(allowed=["add"], on_event=lambda event: heard.append(type(event).__name__))
    names = streamed(agent, "?")
    assert names == heard
    assert (names[0], names[-1]) == ("SessionOpened", "TurnEnded")


def test_a_stream_of_a_failed_turn_raises_after_its_last_event() -> None:
    events: list[AgentEvent] = []

    async def read() -> None:
        async with Agent(Scripted([BROKEN])) as agent:
            async for event in agent.stream("?"):
                events.append(event)

    with pytest.raises(TurnFailed, match="wrong key"):
        asyncio.run(read())
    assert isinstance(events[-1], TurnEnded)


def test_leaving_a_stream_stops_the_work_and_the_next_prompt_goes_on() -> None:
    ended = threading.Event()

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async def leave() -> tuple[Message, ...]:
        model = Scripted(calls(("c1", "wait", {})), says("Gone on."))
        async with Agent(model, tools=[wait], mode=Mode.YOLO) as agent:
            async for event in agent.stream("?"):
                if isinstance(event, ToolStarted):
                    break
            result = await agent.run("Go on.")
            assert (result.text, ended.is_set()) == ("Gone on.", True)
            return result.messages

    messages = asyncio.run(leave())
    assert [outcome for _, outcome in results(messages)] == [Outcome.INTERRUPTED]


def test_a_cancelled_run_leaves_every_call_answered() -> None:
    async def cancel() -> tuple[Message, ...]:
        started = asyncio.Event()

        async def wait() -> str:
            started.set()
            await asyncio.Event().wait()
            return ""

        model = Scripted(calls(("c1", "wait", {})), says("Gone on."))
        async with Agent(model, tools=[wait], mode=Mode.YOLO) as agent:
            run = asyncio.ensure_future(agent.run("?"))
            await started.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            return agent.messages

    assert [outcome for _, outcome in results(asyncio.run(cancel()))] == [Outcome.INTERRUPTED]


def test_prompts_given_at_once_are_worked_on_one_after_the_other() -> None:
    async def both() -> tuple[Message, ...]:
        async with Agent(Scripted(says("One."), says("Two."))) as agent:
            await asyncio.gather(agent.run("1"), agent.run("2"))
            return agent.messages

    assert [one.text for one in asyncio.run(both())] == ["1", "One.", "2", "Two."]


def test_an_agent_stays_in_its_event_loop() -> None:
    agent = Agent(Scripted(says("Hi.")))
    asyncio.run(agent.run("Hi"))
    with pytest.raises(BadInput, match="in use in another event loop"):
        agent.run_sync("Hi")
    with pytest.raises(BadInput, match="another event loop"):
        asyncio.run(agent.run("Hi"))


def test_an_agent_forgotten_with_its_event_loop_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    agent = Agent(echo)
    asyncio.run(agent.run("Hi"))
    assert len(list(tmp_path.iterdir())) == 1
    del agent
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_run_sync_works_where_an_event_loop_runs_already() -> None:
    async def notebook() -> str:
        with Agent(Scripted(says("Hi."))) as agent:
            return agent.run_sync("Hi").text

    assert asyncio.run(notebook()) == "Hi."


def test_run_sync_inside_the_agents_own_work_is_refused() -> None:
    agent: Agent

    async def again() -> str:
        return agent.run_sync("?").text

    agent = Agent(Scripted(calls(("c1", "again", {})), says("")), tools=[again], mode=Mode.YOLO)
    with agent:
        result = agent.run_sync("?")
    assert "run_sync would deadlock" in results(result.messages)[0][0]


def test_a_closed_agent_is_not_used_again() -> None:
    with Agent(Scripted(says("Hi."))) as agent:
        agent.run_sync("Hi")
    with pytest.raises(BadInput, match="the agent is closed"):
        agent.run_sync("Hi")
    agent.close()


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "toolwire-agent"]


def test_a_forgotten_agent_ends_its_thread() -> None:
    others = threads()
    agent = Agent(Scripted(says("Hi.")))
    agent.run_sync("Hi")
    (thread,) = (one for one in threads() if one not in others)
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None
    thread.join(LONGEST)
    assert not thread.is_alive()


def test_nothing_is_written_unless_the_session_is_kept(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with adding(environ=place.environ(), cwd=place.work, approve=lambda _: Choice.ALWAYS) as agent:
        agent.run_sync("?")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_kept_session_goes_on_in_another_agent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    where: dict[str, Any] = {"environ": place.environ(), "cwd": place.work}
    with Agent(Scripted(says("One.")), kept=True, **where) as agent:
        agent.run_sync("1")
        session = agent.session
    with Agent(Scripted(says("Two.")), session=session, **where) as agent:
        result = agent.run_sync("2")
    assert [one.text for one in result.messages] == ["1", "One.", "2", "Two."]
    assert result.session == session
    shown = place.toolwire("sessions", "list", "--json")
    assert json.loads(shown.out)[0]["id"] == session


def test_long_outputs_of_a_passing_session_are_gone_with_it(tmp_path: Path) -> None:
    def much() -> str:
        return "x" * 500_000

    model = Scripted(calls(("c1", "much", {})), says(""))
    with Agent(model, tools=[much], mode=Mode.YOLO, environ=Place(tmp_path).environ()) as agent:
        text = results(agent.run_sync("?").messages)[0][0]
        file = Path(text.partition("see: ")[2].partition("\n")[0])
        assert file.stat().st_size == 500_000
    assert not file.exists()


def test_built_in_tools_are_offered_only_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    model = Scripted(
        calls(("c1", "read_file", {"absolute_path": str(tmp_path / "a.txt")})), says("")
    )
    with Agent(model, builtin_tools=["read_file", "glob"], cwd=tmp_path) as agent:
        assert results(agent.run_sync("?").messages) == [("hello", Outcome.DONE)]
    assert names_of(model.asked[0]) == ["read_file", "glob"]
    with pytest.raises(UnknownName, match='did you mean "read_file"'):
        Agent(model, builtin_tools=["read_fil"])
    with pytest.raises(BadInput, match='write \\["glob"\\]'):
        Agent(model, builtin_tools="glob")


def test_an_own_tool_takes_the_place_of_a_built_in_one() -> None:
    def glob(pattern: str) -> str:
        """Ours."""
        return pattern

    model = Scripted(says(""))
    with Agent(model, tools=[glob], builtin_tools=True) as agent:
        agent.run_sync("?")
    offered = {
        one.name: one.description for one in model.asked[0].tools if isinstance(one, ToolSpec)
    }
    assert offered["glob"] == "Ours."
    assert "run_shell_command" in offered


def test_a_named_model_is_asked_over_http(tmp_path: Path) -> None:
    place = Place(tmp_path)
    script = replies(reply(Call.of("add", a=1, b=2)), "It is {last_result}.")
    with Simulated(script) as sim:
        upstream = sim.upstream("anthropic-messages", key="sk-own", model="claude-sonnet-5")
        with Agent(upstream, tools=[add], allowed=["add"], environ=place.environ()) as agent:
            result = agent.run_sync("1 + 2?")
        assert result.text == "It is 3."
        assert sim.bodies[0]["model"] == "claude-sonnet-5"
        assert sim.refusals == []


def test_a_server_that_refuses_raises_its_kind(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with (
        Simulated(replies(reply(fault=refused(401, "bad key")))) as sim,
        Agent(sim.upstream(), environ=place.environ()) as agent,
        pytest.raises(TurnFailed, match="bad key") as failed,
    ):
        agent.run_sync("?")
    assert failed.value.kind == "auth"


def test_settings_count_only_when_they_are_given(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.home / "config.toml").write_text("[limits]\nturns = 1\n")
    (place.home / "policy.toml").write_text('[[rule]]\ntool = "add"\ndecision = "allow"\n')
    where: dict[str, Any] = {"environ": place.environ(), "cwd": place.work}
    with adding(**where) as agent:
        result = agent.run_sync("?")
        assert (result.stop, result.calls[0].success) == (TurnEnd.DONE, False)
    settings = load_settings(place.work, place.environ())
    with adding(settings=settings, **where) as agent:
        result = agent.run_sync("?")
        assert (result.stop, result.calls[0].success) == (TurnEnd.TURN_LIMIT, True)


@pytest.mark.parametrize(
    ("model", "words"),
    [("", "no model is named"), ("openai-chat=nowhere", "is not an address")],
)
def test_a_model_that_cannot_be_is_refused_at_once(model: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Agent(model)


def test_an_unknown_provider_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with (
        Agent("antropic/claude", environ=Place(tmp_path).environ()) as agent,
        pytest.raises(UnknownName, match='did you mean "anthropic"'),
    ):
        agent.run_sync("?")


def test_an_empty_prompt_is_refused() -> None:
    with Agent(Scripted(says(""))) as agent, pytest.raises(BadInput, match="the prompt is empty"):
        agent.run_sync(" \n")


def test_a_prompt_is_the_users() -> None:
    words = Message(role="assistant", parts=(Text("I said so."),))
    with Agent(echo) as agent:
        assert agent.run_sync(Message(role="user", parts=(Text("Hi."),))).text == "Hi."
        with pytest.raises(BadInput, match="must be a user message, not one of the role assistant"):
            agent.run_sync(words)


def test_no_secret_shows_in_what_an_agent_prints(tmp_path: Path) -> None:
    environ = Place(tmp_path).environ(ANTHROPIC_API_KEY="sk-environ")
    agent = Agent("anthropic/claude-sonnet-5", key="sk-argument", environ=environ)
    shown = f"{agent!r} {vars(agent)} {vars(agent._conversation)}"
    assert "sk-" not in shown


SCRIPT = """
import sys
from toolwire import Agent, Finished, StopReason, TextDelta
async def model(request):
    yield TextDelta("Hi.")
    yield Finished(reason=StopReason.END)
agent = Agent(model, kept=True)
print(agent.run_sync("Hi").text)
"""
WAITING = """
import asyncio, sys
from toolwire import Agent, Finished, Mode, StopReason
from toolwire.events import ToolCallDelta, ToolCallEnded, ToolCallStarted
async def model(request):
    yield ToolCallStarted("c1", "wait")
    yield ToolCallDelta("c1", "{}")
    yield ToolCallEnded("c1")
    yield Finished(reason=StopReason.TOOL_CALLS)
async def wait() -> str:
    print("waiting", flush=True)
    await asyncio.Event().wait()
    return ""
agent = Agent(model, tools=[wait], mode=Mode.YOLO)
try:
    agent.run_sync("?")
except KeyboardInterrupt:
    print(agent.messages[-1].results[0].outcome)
"""


def test_a_script_that_closes_nothing_ends_well(tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", SCRIPT],
        cwd=place.work,
        env=place.environ(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hi.\n", "")
    suffixes = {path.suffix for path in (place.home / "sessions").rglob("*") if path.is_file()}
    assert suffixes == {".sqlite"}


def test_ctrl_c_ends_the_turn_in_order(tmp_path: Path) -> None:
    place = Place(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        cwd=place.work,
        env=place.environ(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=LONGEST)[0] == "interrupted\n"
    assert process.returncode == 0


async def echo(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    yield TextDelta(request.messages[-1].text)
    yield Finished(reason=StopReason.END)


def test_any_coroutine_of_a_request_is_a_model() -> None:
    with Agent(echo) as agent:
        assert agent.run_sync("Hello?").text == "Hello?"
