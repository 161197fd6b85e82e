import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.scripted import Scripted, calls, says
from tests.fakes.simulated import Place
from toolwire import (
    Agent,
    ChildEvent,
    Choice,
    Confirmation,
    Deny,
    Effect,
    HookedCall,
    Hooks,
    Limits,
    Mode,
    ModelEvent,
    ModelRequest,
    ToolContext,
    TurnEnd,
    load_settings,
    tool,
)
from toolwire.agent.events import ToolFinished, UsageCounted
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import Finished, StopReason, TextDelta, Usage
from toolwire.messages import Outcome


@tool(effect=Effect.READ)
def look(name: str) -> str:
    return f"{name} is small"


def delete(name: str) -> str:
    return f"{name} is gone"


def asks(prompt: str = "Look.") -> list[ModelEvent]:
    return calls(("p1", "helper", {"prompt": prompt}))


def parent(child: Agent[Any], *scripts: Any, **more: Any) -> Agent:
    helper = child.as_tool("helper", "Looks things up.")
    return Agent(Scripted(*(scripts or (asks(), says("Thanks.")))), tools=[helper], **more)


def answer_of(agent: Agent) -> str:
    return agent.messages[2].results[0].text


LOOKS = calls(("c1", "look", {"name": "a"}))
DELETES = calls(("c1", "delete", {"name": "a"}))


def test_an_agent_is_a_tool_with_a_conversation_of_its_own() -> None:
    model = Scripted(LOOKS, says("It is small."), says("Again."))
    child = Agent(model, tools=[look], system="You look.")
    with parent(child, asks(), asks("And b?"), says("Thanks.")) as agent:
        result = agent.run_sync("Ask the helper.")
    assert [one.result.text for one in result.calls] == ["It is small.", "Again."]
    assert [part.text for part in model.asked[0].system] == ["You look."]
    assert [one.text for one in model.asked[2].messages] == ["And b?"]
    assert child.messages == ()


def test_what_a_child_uses_counts_in_its_parent() -> None:
    child = Agent(Scripted(LOOKS, says("Small.")), tools=[look])
    events: list[Any] = []
    with parent(child, on_event=events.append) as agent:
        result = agent.run_sync("?")
    assert (result.requests, result.usage) == (2, Usage(input=40, output=20))
    purposes = [one.purpose for one in events if isinstance(one, UsageCounted)]
    assert purposes == ["turn", "agent", "agent", "turn"]


def test_the_events_of_a_child_carry_its_session() -> None:
    child = Agent(Scripted(LOOKS, says("Small.")), tools=[look])
    events: list[Any] = []
    with parent(child, on_event=events.append) as agent:
        agent.run_sync("?")
        session = agent.session
    inner = [one for one in events if isinstance(one, ChildEvent)]
    assert {(one.call_id, one.agent) for one in inner} == {("p1", "helper")}
    (id,) = {one.session for one in inner if one.session}
    assert id != session
    assert [one.event.name for one in inner if isinstance(one.event, ToolFinished)] == ["look"]


def test_a_child_of_any_mode_needs_what_its_parent_needs() -> None:
    child = Agent(Scripted(DELETES, says("Denied.")), tools=[delete], mode=Mode.YOLO)
    with parent(child) as agent:
        agent.run_sync("?")
        assert answer_of(agent) == "Denied."
    inner: list[Any] = []
    child = Agent(
        Scripted(DELETES, says("?")),
        tools=[delete],
        mode=Mode.YOLO,
        approve=lambda _: True,
        on_event=inner.append,
    )
    with parent(child) as agent:
        agent.run_sync("?")
    (finished,) = [one for one in inner if isinstance(one, ToolFinished)]
    assert finished.outcome is Outcome.DENIED


@pytest.mark.parametrize(("says_yes", "outcome"), [(True, "done"), (False, "denied")])
def test_a_question_of_a_child_goes_to_the_parents_user(says_yes: bool, outcome: str) -> None:
    asked: list[str] = []

    def approve(question: Confirmation) -> bool:
        asked.append(question.call.name)
        return says_yes

    inner: list[Any] = []
    child = Agent(Scripted(DELETES, says("?")), tools=[delete], on_event=inner.append)
    with parent(child, approve=approve) as agent:
        agent.run_sync("?")
    assert [one.outcome for one in inner if isinstance(one, ToolFinished)] == [outcome]
    assert asked == ["delete"]


def test_an_answer_for_the_session_counts_for_the_next_child_too() -> None:
    asked: list[str] = []

    def approve(question: Confirmation) -> Choice:
        asked.append(question.call.name)
        return Choice.SESSION

    inner: list[Any] = []
    child = Agent(
        Scripted(DELETES, says("One."), DELETES, says("Two.")),
        tools=[delete],
        mode=Mode.YOLO,
        on_event=inner.append,
    )
    with parent(child, asks(), asks("Again."), says("Thanks."), approve=approve) as agent:
        agent.run_sync("?")
    assert asked == ["delete"]
    assert [one.outcome for one in inner if isinstance(one, ToolFinished)] == ["done", "done"]


def test_both_approvers_must_agree_where_both_are_asked() -> None:
    asked: list[str] = []

    def answering(name: str, answer: bool) -> Any:
        def approve(question: Confirmation) -> bool:
            asked.append(name)
            return answer

        return approve

    inner: list[Any] = []
    child = Agent(
        Scripted(DELETES, says("?")),
        tools=[delete],
        approve=answering("child", True),
        on_event=inner.append,
    )
    with parent(child, approve=answering("parent", False)) as agent:
        agent.run_sync("?")
    assert asked == ["child", "parent"]
    assert [one.outcome for one in inner if isinstance(one, ToolFinished)] == ["denied"]


def test_what_the_parent_allows_runs_in_a_child_unasked() -> None:
    child = Agent(Scripted(DELETES, says("Gone.")), tools=[delete], allowed=["delete"])
    with parent(child, allowed=["delete"]) as agent:
        agent.run_sync("?")
        assert answer_of(agent) == "Gone."


def test_the_hooks_of_a_parent_see_the_calls_of_its_children() -> None:
    class Guard(Hooks):
        def __init__(self) -> None:
            self.seen: list[tuple[str, str]] = []

        def before_call(self, call: HookedCall) -> Deny | None:
            self.seen.append((call.name, call.session))
            return Deny("no looking") if call.name == "look" else None

    guard = Guard()
    model = Scripted(LOOKS, says("No."))
    with parent(Agent(model, tools=[look]), hooks=guard) as agent:
        agent.run_sync("?")
    assert [name for name, _ in guard.seen] == ["helper", "look"]
    assert guard.seen[0][1] != guard.seen[1][1]
    assert "no looking" in model.asked[1].messages[-1].results[0].text


def test_a_grandchild_is_held_to_the_policies_above_it() -> None:
    inner: list[Any] = []
    grandchild = Agent(
        Scripted(DELETES, says("?")), tools=[delete], mode=Mode.YOLO, on_event=inner.append
    )
    child = Agent(
        Scripted(calls(("m1", "deep", {"prompt": "Go."})), says("Done.")),
        tools=[grandchild.as_tool("deep", "Goes on.")],
        mode=Mode.YOLO,
    )
    with parent(child) as agent:
        result = agent.run_sync("?")
    assert [one.outcome for one in inner if isinstance(one, ToolFinished)] == ["denied"]
    assert result.usage == Usage(input=60, output=30)


def test_a_child_without_dependencies_has_those_of_its_parent() -> None:
    @tool(effect=Effect.READ)
    def name(context: ToolContext[str]) -> str:
        return context.deps

    model = Scripted(calls(("c1", "name", {})), says("?"))
    with parent(Agent(model, tools=[name]), deps="Ada") as agent:
        agent.run_sync("?")
    assert model.asked[1].messages[-1].results[0].text == "Ada"


def spending(dollars: float, text: str = "Hm.") -> list[ModelEvent]:
    return [
        TextDelta(text),
        Finished(reason=StopReason.PAUSE, usage=Usage(output=9, cost=dollars)),
    ]


def test_the_money_of_the_parent_stops_a_child() -> None:
    model = Scripted(spending(0.2))
    with parent(Agent(model), limits=Limits(cost=0.5)) as agent:
        result = agent.run_sync("?")
        assert "stopped early (cost_limit)" in answer_of(agent)
    assert (result.stop, len(model.asked)) == (TurnEnd.COST_LIMIT, 3)


def test_children_at_once_share_the_money_of_the_parent() -> None:
    model = Scripted(spending(0.2))
    both = calls(("p1", "helper", {"prompt": "1"}), ("p2", "helper", {"prompt": "2"}))
    with parent(Agent(model), both, says("?"), limits=Limits(cost=0.5)) as agent:
        result = agent.run_sync("?")
    assert result.stop is TurnEnd.COST_LIMIT
    assert len(model.asked) <= 4


def test_a_child_stops_at_its_own_limit_with_what_it_has() -> None:
    child = Agent(Scripted(LOOKS), tools=[look], limits=Limits(turns=1))
    with parent(child) as agent:
        result = agent.run_sync("?")
        assert "[helper stopped early (turn_limit): reached the limit" in answer_of(agent)
    assert result.ok


def test_a_child_that_fails_is_a_failed_call() -> None:
    child = Agent(Scripted([ProviderError(ErrorKind.AUTH, "wrong key")]))
    with parent(child) as agent:
        result = agent.run_sync("?")
        assert answer_of(agent) == "helper failed: wrong key"
    assert result.ok
    assert result.calls[0].outcome is Outcome.FAILED


def test_a_child_whose_provider_is_unknown_is_a_failed_call(tmp_path: Path) -> None:
    child = Agent("antropic/claude", environ=Place(tmp_path).environ())
    with parent(child) as agent:
        agent.run_sync("?")
        assert 'did you mean "anthropic"' in answer_of(agent)


def test_a_cancelled_parent_ends_its_child() -> None:
    async def work() -> tuple[list[str], bool]:
        started, ended = asyncio.Event(), asyncio.Event()

        async def wait() -> str:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return ""

        child = Agent(Scripted(calls(("c1", "wait", {})), says("")), tools=[wait], allowed=["wait"])
        agent = parent(child, allowed=["wait"])
        async with agent:
            run = asyncio.ensure_future(agent.run("?"))
            await started.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            outcomes = [one.outcome for one in agent.messages[-1].results]
        return [str(one) for one in outcomes], ended.is_set()

    assert asyncio.run(work()) == (["interrupted"], True)


def test_children_run_at_the_same_time() -> None:
    async def work() -> str:
        waiting = 0
        both = asyncio.Event()

        async def meet(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            nonlocal waiting
            waiting += 1
            if waiting == 2:
                both.set()
            async with asyncio.timeout(60):
                await both.wait()
            yield TextDelta("Met.")
            yield Finished(reason=StopReason.END)

        twice = calls(("p1", "helper", {"prompt": "1"}), ("p2", "helper", {"prompt": "2"}))
        async with parent(Agent(meet), twice, says("Good.")) as agent:
            return (await agent.run("?")).text

    assert asyncio.run(work()) == "Good."


def test_the_tool_of_an_agent_has_the_effect_of_its_tools() -> None:
    assert Agent(Scripted(), tools=[look]).as_tool("a", "A.").effect is Effect.READ
    assert Agent(Scripted(), tools=[look, delete]).as_tool("a", "A.").effect is Effect.OTHER


def test_a_child_is_not_confined_less_than_its_parent(tmp_path: Path) -> None:
    from toolwire.config import Settings
    from toolwire.tools.spec import ToolSettings

    seen: list[str] = []

    @tool(effect=Effect.READ)
    def level(context: ToolContext) -> str:
        seen.append(context.settings.sandbox)
        return ""

    loose = Settings(tools=ToolSettings(sandbox="off"))
    child = Agent(Scripted(calls(("c1", "level", {})), says("")), tools=[level], settings=loose)
    where: dict[str, Any] = {"environ": Place(tmp_path).environ(), "cwd": tmp_path}
    with parent(child, **where) as agent:
        agent.run_sync("?")
    assert seen == ["auto"]


class Broken(Hooks):
    def before_call(self, call: HookedCall) -> None:
        if call.name == "look":
            raise RuntimeError("broken hook")


@pytest.mark.parametrize("whose", ["parent", "child"])
def test_a_hook_that_raises_inside_a_child_stops_the_parent(whose: str) -> None:
    child = Agent(
        Scripted(LOOKS, says("Small.")), tools=[look], hooks=Broken() if whose == "child" else ()
    )
    with parent(child, hooks=Broken() if whose == "parent" else ()) as agent:
        with pytest.raises(RuntimeError, match="broken hook"):
            agent.run_sync("?")
        answered = [one.call_id for message in agent.messages for one in message.results]
    assert answered == ["p1"]


def test_an_approver_that_raises_inside_a_child_stops_the_parent() -> None:
    def approve(question: Confirmation) -> bool:
        raise RuntimeError("broken approver")

    child = Agent(Scripted(DELETES, says("?")), tools=[delete])
    with parent(child, approve=approve) as agent, pytest.raises(RuntimeError, match="broken app"):
        agent.run_sync("?")


def test_a_rule_of_the_parent_hides_files_from_the_searches_of_a_child(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.work / "secret").mkdir()
    (place.work / "secret" / "a.txt").write_text("needle")
    (place.work / "b.txt").write_text("needle")
    rule = '[[rule]]\ntool = "*"\npath = "secret/**"\ndecision = "deny"\n'
    (place.home / "policy.toml").write_text(rule)
    where: dict[str, Any] = {"environ": place.environ(), "cwd": place.work}
    search = calls(("c1", "search_file_content", {"pattern": "needle"}))
    model = Scripted(search, says("?"))
    child = Agent(model, builtin_tools=["search_file_content"], **where)
    settings = load_settings(place.work, place.environ())
    with parent(child, settings=settings, **where) as agent:
        agent.run_sync("?")
    text = model.asked[1].messages[-1].results[0].text
    assert ("b.txt" in text, "secret" in text) == (True, False)
