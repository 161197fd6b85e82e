import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.scripted import Scripted, calls, says
from tests.fakes.simulated import LONGEST, Place
from toolwire import (
    Agent,
    Allow,
    Ask,
    BadInput,
    Blocked,
    Change,
    Confirmation,
    Context,
    Deny,
    Effect,
    EventAnswer,
    Halt,
    HookedCall,
    HookedResult,
    HookEvent,
    Hooks,
    Message,
    ModelRequest,
    ToolFailed,
    ToolOutput,
    tool,
)
from toolwire.agent.events import ToolDecided, ToolStarted
from toolwire.agent.hooks import Stop, UserPromptSubmit
from toolwire.events import Finished
from toolwire.messages import Outcome


@tool(effect=Effect.READ)
def read(name: str) -> str:
    if name == "none":
        raise ToolFailed("there is no none", type="missing")
    return f"contents of {name}"


def delete(name: str) -> str:
    return f"{name} is gone"


def results(agent: Agent[Any]) -> list[tuple[str, Outcome]]:
    return [(one.text, one.outcome) for message in agent.messages for one in message.results]


def ran(hooks: Any, *made: tuple[str, str, Any], **more: Any) -> list[tuple[str, Outcome]]:
    with Agent(
        Scripted(calls(*made), says("Done.")), tools=[read, delete], hooks=hooks, **more
    ) as agent:
        agent.run_sync("?")
        return results(agent)


READS = ("c1", "read", {"name": "a"})
DELETES = ("c1", "delete", {"name": "a"})


class Deciding(Hooks):
    """Answers every call with one decision."""

    def __init__(self, decision: Any) -> None:
        self.decision = decision
        self.seen: list[HookedCall] = []

    def before_call(self, call: HookedCall) -> Any:
        self.seen.append(call)
        return self.decision


def test_a_hook_sees_each_call_before_it_runs() -> None:
    hook = Deciding(None)
    assert ran(hook, READS) == [("contents of a", Outcome.DONE)]
    (seen,) = hook.seen
    assert (seen.id, seen.name, seen.arguments, seen.effect) == (
        "c1",
        "read",
        {"name": "a"},
        Effect.READ,
    )
    assert seen.session != ""


def test_a_denied_call_tells_the_model_why() -> None:
    assert ran(Deciding(Deny("not on Fridays")), READS) == [
        ("Tool execution denied by a hook: not on Fridays", Outcome.DENIED)
    ]


def test_changed_arguments_run_and_the_call_stays_as_the_model_made_it() -> None:
    events: list[Any] = []
    model = Scripted(calls(READS), says("Done."))
    with Agent(
        model, tools=[read], hooks=Deciding(Change({"name": "b"})), on_event=events.append
    ) as agent:
        agent.run_sync("?")
        assert results(agent) == [("contents of b", Outcome.DONE)]
        assert agent.messages[1].calls[0].arguments == '{"name": "a"}'
    assert [one.arguments for one in events if isinstance(one, ToolStarted)] == ['{"name":"b"}']


def test_changed_arguments_are_validated() -> None:
    ((text, outcome),) = ran(Deciding(Change({"nam": "b"})), READS)
    assert outcome is Outcome.DENIED
    assert "denied by a hook: it changed the arguments, and they are no longer valid" in text
    assert "must have required property 'name'" in text


def test_an_allowing_hook_answers_what_would_be_asked() -> None:
    assert ran(Deciding(Allow()), DELETES) == [("a is gone", Outcome.DONE)]
    assert ran(Deciding(None), DELETES)[0][1] is Outcome.DENIED


def test_an_allowing_hook_does_not_lift_a_denial(tmp_path: Path) -> None:
    hook = Deciding(Allow())
    call = ("c1", "write_file", {"file_path": str(tmp_path / "a.txt"), "content": "x"})
    with Agent(
        Scripted(calls(call), says("Done.")),
        builtin_tools=["write_file"],
        hooks=hook,
        mode="plan",
        cwd=tmp_path,
    ) as agent:
        agent.run_sync("?")
        assert results(agent)[0][1] is Outcome.DENIED
    assert hook.seen == []
    assert list(tmp_path.iterdir()) == []


def test_an_allowing_hook_does_not_open_protected_files(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    call = ("c1", "write_file", {"file_path": str(file), "content": "x"})
    with Agent(
        Scripted(calls(call), says("Done.")),
        builtin_tools=["write_file"],
        hooks=Deciding(Allow()),
        cwd=tmp_path,
    ) as agent:
        agent.run_sync("?")
        assert results(agent)[0][1] is Outcome.DENIED
    assert not file.exists()


def test_arguments_changed_by_an_allowing_hook_are_ruled_on_again(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    call = ("c1", "write_file", {"file_path": str(tmp_path / "a.txt"), "content": "x"})
    hook = Deciding(Allow({"file_path": str(file), "content": "x"}))
    with Agent(
        Scripted(calls(call), says("Done.")),
        builtin_tools=["write_file"],
        hooks=hook,
        cwd=tmp_path,
    ) as agent:
        agent.run_sync("?")
        assert results(agent)[0][1] is Outcome.DENIED
    assert list(tmp_path.iterdir()) == []


def test_an_asking_hook_asks_even_where_the_policy_allows() -> None:
    asked: list[str] = []

    def approve(question: Confirmation) -> bool:
        asked.append(question.reason)
        return True

    hook = Deciding(Ask("look first", {"name": "b"}))
    assert ran(hook, READS, approve=approve) == [("contents of b", Outcome.DONE)]
    assert asked == ["look first"]
    assert ran(hook, READS)[0][1] is Outcome.DENIED


def test_the_strictest_of_several_hooks_decides_and_changes_add_up() -> None:
    second = Deciding(Change({"name": "c"}))
    third = Deciding(None)
    assert ran([Deciding(Change({"name": "b"})), second, third], READS) == [
        ("contents of c", Outcome.DONE)
    ]
    assert [one.arguments for one in (*second.seen, *third.seen)] == [{"name": "b"}, {"name": "c"}]
    denied = ran([Deciding(Allow()), Deciding(Deny("no")), third], DELETES)
    assert denied == [("Tool execution denied by a hook: no", Outcome.DENIED)]
    assert len(third.seen) == 1


def test_a_hook_cannot_change_a_call_behind_the_policys_back() -> None:
    class Sneaky(Hooks):
        def before_call(self, call: HookedCall) -> None:
            call.arguments["name"] = "b"

    assert ran(Sneaky(), READS) == [("contents of a", Outcome.DONE)]


class Censor(Hooks):
    def __init__(self) -> None:
        self.seen: list[HookedResult] = []

    async def after_call(self, result: HookedResult) -> ToolOutput | str | None:
        self.seen.append(result)
        if result.call.arguments["name"] == "keep":
            return None
        if result.call.arguments["name"] == "whole":
            return ToolOutput(text="[whole]", display="for people")
        return "[removed]"


def test_a_hook_changes_what_the_model_gets_of_a_result() -> None:
    hook = Censor()
    made = [(f"c{number}", "read", {"name": name}) for number, name in enumerate(NAMES)]
    assert ran(hook, *made) == [
        ("contents of keep", Outcome.DONE),
        ("[whole]", Outcome.DONE),
        ("[removed]", Outcome.DONE),
        ("[removed]", Outcome.FAILED),
    ]
    assert {one.call.arguments["name"]: one.error for one in hook.seen} == {
        "keep": "",
        "whole": "",
        "secret": "",
        "none": "missing",
    }


NAMES = ("keep", "whole", "secret", "none")


def test_a_call_that_did_not_run_has_no_result_to_change() -> None:
    hook = Censor()
    ran(hook, DELETES)
    assert hook.seen == []


def test_hooks_see_requests_and_replies() -> None:
    class Watching(Hooks):
        def __init__(self) -> None:
            self.seen: list[object] = []

        def before_request(self, request: ModelRequest) -> None:
            self.seen.append(len(request.messages))

        async def after_reply(
            self, request: ModelRequest, reply: Message, finished: Finished
        ) -> None:
            self.seen.append((reply.text or reply.calls[0].name, finished.reason.value))

    hook = Watching()
    ran(hook, READS)
    assert hook.seen == [1, ("read", "tool_calls"), 3, ("Done.", "end")]


class Broken(Hooks):
    def __init__(self, where: str) -> None:
        self.where = where

    def _break(self, where: str) -> None:
        if where == self.where:
            raise RuntimeError(f"broken {where}")

    def before_call(self, call: HookedCall) -> None:
        self._break("before_call")

    def after_call(self, result: HookedResult) -> None:
        self._break("after_call")

    def before_request(self, request: ModelRequest) -> None:
        self._break("before_request")

    def after_reply(self, request: ModelRequest, reply: Message, finished: Finished) -> None:
        self._break("after_reply")


@pytest.mark.parametrize("where", ["before_call", "after_call", "before_request", "after_reply"])
def test_a_hook_that_raises_stops_the_turn_with_every_call_answered(where: str) -> None:
    with Agent(Scripted(calls(READS), says("Done.")), tools=[read], hooks=Broken(where)) as agent:
        with pytest.raises(RuntimeError, match=f"broken {where}"):
            agent.run_sync("?")
        made = [call.id for message in agent.messages for call in message.calls]
        answered = [one.call_id for message in agent.messages for one in message.results]
    assert made == answered


def test_a_hook_that_returns_anything_else_is_an_error() -> None:
    with pytest.raises(TypeError, match="before_call returned False; return Allow, Ask"):
        ran(Deciding(False), READS)


def test_a_denial_by_a_hook_is_an_event_with_its_reason() -> None:
    events: list[Any] = []
    ran(Deciding(Deny("no")), READS, on_event=events.append)
    assert [one.reason for one in events if isinstance(one, ToolDecided)] == ["no"]


def test_a_slow_hook_does_not_stop_the_event_loop() -> None:
    class Slow(Hooks):
        def before_call(self, call: HookedCall) -> None:
            # Would deadlock on the loop: only another task sets it.
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(60)

    async def work() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        async with Agent(
            Scripted(calls(READS), says("Done.")), tools=[read], hooks=Slow()
        ) as agent:
            await agent.run("?")

    loop: asyncio.AbstractEventLoop
    asyncio.run(work())


def shell(hooks: Any, command: str, folder: Path, **more: Any) -> list[tuple[str, Outcome]]:
    call = ("c1", "run_shell_command", {"command": command})
    with Agent(
        Scripted(calls(call), says("Done.")),
        builtin_tools=["run_shell_command"],
        hooks=hooks,
        cwd=folder,
        **more,
    ) as agent:
        agent.run_sync("?")
        return results(agent)


def test_a_command_that_a_hook_changes_is_proven_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("here")
    changed = shell(Deciding(Change({"command": "rm a.txt"})), "cat a.txt", tmp_path)
    assert changed[0][1] is Outcome.DENIED
    assert (tmp_path / "a.txt").exists()
    ((text, outcome),) = shell(Deciding(Change({"command": "cat a.txt"})), "ls", tmp_path)
    assert ("here" in text, outcome) == (True, Outcome.DONE)


def test_a_question_shows_the_command_that_a_hook_made(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("here")
    asked: list[str] = []

    def approve(question: Confirmation) -> bool:
        asked.append(question.call.arguments)
        return False

    shell(Deciding(Change({"command": "rm a.txt"})), "ls", tmp_path, approve=approve)
    assert asked == ['{"command":"rm a.txt"}']
    assert (tmp_path / "a.txt").exists()


LOST = """
import os, sys
from toolwire import Agent, Effect, Finished, StopReason, tool
from toolwire.events import ToolCallDelta, ToolCallEnded, ToolCallStarted
async def model(request):
    yield ToolCallStarted("c1", "read")
    yield ToolCallDelta("c1", '{"name": "a"}')
    yield ToolCallEnded("c1")
    yield Finished(reason=StopReason.TOOL_CALLS)
@tool(effect=Effect.READ)
def read(name: str) -> str:
    print(agent.session, flush=True)
    os._exit(1)
agent = Agent(model, tools=[read], kept=True)
agent.run_sync("?")
"""


def test_a_read_that_a_crash_lost_passes_the_hooks_when_it_runs_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LOST],
        cwd=place.work,
        env=place.environ(),
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    hook = Deciding(Change({"name": "b"}))
    with Agent(
        Scripted(says("Done.")),
        tools=[read],
        hooks=hook,
        session=done.stdout.strip(),
        environ=place.environ(),
        cwd=place.work,
    ) as agent:
        agent.run_sync("Go on.")
        assert results(agent) == [("contents of b", Outcome.DONE)]
    assert [one.arguments for one in hook.seen] == [{"name": "a"}]


def test_hooks_may_be_tables_as_in_the_settings():
    denies = {"PreToolUse": [{"matcher": "read", "command": "echo no >&2; exit 2"}]}
    [(text, outcome)] = ran(denies, READS)
    assert (text, outcome) == ("PreToolUse:read hook error: no", Outcome.DENIED)


def test_a_table_that_cannot_be_used_is_an_error():
    with pytest.raises(BadInput, match="hooks: PreToolUse: give one of command, args and url"):
        Agent(Scripted(says("Done.")), hooks={"PreToolUse": [{}]})
    with pytest.raises(BadInput, match='unknown hook event "Pre"'):
        Agent(Scripted(says("Done.")), hooks={"Pre": [{"command": "true"}]})


class Watching(Hooks):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def before_question(self, call: HookedCall, reason: str) -> Allow:
        self.seen.append(f"question {call.name}")
        return Allow()

    async def on_event(self, event: HookEvent) -> EventAnswer | None:
        self.seen.append(type(event).__name__)
        match event:
            case UserPromptSubmit():
                return Context("the year is 2031")
            case Stop(active=False):
                return Blocked("look again")
            case _:
                return None


def test_a_class_receives_the_events_of_a_session():
    hooks, model = Watching(), Scripted(calls(DELETES), says("First."), says("Second."))
    with Agent(model, tools=[delete], hooks=hooks) as agent:
        result = agent.run_sync("go")
    assert result.text == "Second."
    assert [one.text for one in agent.messages if one.role == "user" and one.text] == [
        "the year is 2031",
        "go",
        "Stop hook feedback:\nlook again",
    ]
    assert hooks.seen == [
        "SessionStart",
        "UserPromptSubmit",
        "question delete",
        "Stop",
        "Stop",
        "SessionEnd",
    ]


class Halting(Hooks):
    def before_call(self, call: HookedCall) -> Halt:
        return Halt(f"no {call.name}")


def test_a_class_ends_a_turn():
    model = Scripted(calls(READS), says("Never."))
    with Agent(model, tools=[read], hooks=Halting()) as agent:
        result = agent.run_sync("go")
    assert (len(model.asked), result.ok, result.detail) == (
        1,
        True,
        "a hook ended the turn: no read",
    )
