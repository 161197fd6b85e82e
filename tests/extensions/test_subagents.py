"""Subagents of real sessions, before one scripted model that answers each by its own history."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from tests.examples import ROOT
from tests.extensions.worked_folder import Worked, store, work
from tests.fakes.simulated import LONGEST, Place, Simulated, interrupt
from toolwire import config
from toolwire.agent.events import (
    AgentEnded,
    AgentStarted,
    Checkpointed,
    ChildEvent,
    ToolFinished,
    ToolOutputText,
    TurnEnd,
    UsageCounted,
)
from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.agent.usage import Limits
from toolwire.app.session import AgentSession
from toolwire.app.subagents.catalog import find_agents, tools_of
from toolwire.events import Usage
from toolwire.messages import ToolResult
from toolwire.policy import Mode
from toolwire.request import ToolSpec
from toolwire.sessions.replay import replay
from toolwire.simulator import Question, Reply
from toolwire.simulator.script import Call, Fault, Say
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import approval_store
from toolwire.tools.registry import builtins


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    return place


def agent(name: str, prompt: str, **more: Any) -> Call:
    return Call.of("run_agent", agent=name, prompt=prompt, **more)


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


def asks(*calls: Call, **more: Any) -> Reply:
    return Reply(pieces=calls, **more)


def system_of(question: Question) -> str:
    return next(one.text for one in question.request.messages if one.role == "system")


def texts(question: Question) -> list[str]:
    """What the user's messages say, without the surroundings."""
    found = [one.text for one in question.request.messages if one.role == "user"]
    return [text for text in found if text and not text.startswith("This is")]


def results(worked: Worked) -> list[str]:
    return [
        event.result.text
        for event in worked.events
        if isinstance(event, ToolFinished) and event.name == "run_agent"
    ]


def results_in(question: Question) -> list[ToolResult]:
    parts = (part for one in question.request.messages for part in one.parts)
    return [part for part in parts if isinstance(part, ToolResult)]


def is_child(question: Question) -> bool:
    return "You work for another agent" in system_of(question)


def test_four_at_once_each_with_its_own_history(place: Place) -> None:
    histories: dict[str, list[list[str]]] = {}
    systems: set[str] = set()

    def answer(question: Question) -> Reply:
        if not is_child(question):
            done = results_in(question)
            if done:
                return says("all: " + ", ".join(one.text for one in done))
            return asks(*(agent("explore", f"task {number}") for number in range(4)))
        systems.add(system_of(question))
        [task, *_] = [text for text in texts(question) if text.startswith("task")]
        histories.setdefault(task, []).append(texts(question))
        if not results_in(question):
            return asks(Call.of("read_file", absolute_path=str(place.work / "a.txt")))
        return says(f"answer to {task}", fault=Fault())

    worked = work(place, answering=answer)
    assert worked.ends[0].reason is TurnEnd.DONE
    assert sorted(results(worked)) == [f"answer to task {number}" for number in range(4)]
    assert histories.keys() == {f"task {number}" for number in range(4)}
    for task, seen in histories.items():
        assert all([text for text in one if text.startswith("task")] == [task] for one in seen)
    assert len(systems) == 1
    started = [one for one in worked.events if isinstance(one, AgentStarted)]
    ended = [one for one in worked.events if isinstance(one, AgentEnded)]
    assert len({one.session for one in started}) == 4
    # All began before the first one ended: they ran side by side.
    kinds = [type(one) for one in worked.events if isinstance(one, AgentStarted | AgentEnded)]
    assert kinds[:4] == [AgentStarted] * 4
    assert {(one.reason, one.requests) for one in ended} == {(TurnEnd.DONE, 2)}
    spent = [one for one in worked.events if isinstance(one, UsageCounted)]
    assert [one.purpose for one in spent].count("agent") == 8
    assert worked.ends[0].usage.total_input == sum(one.usage.total_input for one in spent)
    shown = [one.text for one in worked.events if isinstance(one, ToolOutputText)]
    assert any(one.startswith("read_file /") for one in shown)


def test_children_are_stored_hidden_and_deleted_with_their_session(place: Place) -> None:
    def answer(question: Question) -> Reply:
        if is_child(question):
            return says("found")
        return says("end") if results_in(question) else asks(agent("explore", "look"))

    worked = work(place, answering=answer)
    [started] = [one for one in worked.events if isinstance(one, AgentStarted)]
    sessions = store(place)
    assert [one.id for one in sessions.list()] == [worked.id]
    assert sessions.latest(str(place.work)).id == worked.id
    listed = place.toolwire("sessions", "list", "--json", "--all-agents")
    assert {(one["id"], one["parent"]) for one in json.loads(listed.out)} == {
        (worked.id, ""),
        (started.session, worked.id),
    }
    shown = json.loads(place.toolwire("sessions", "show", "--json", started.session).out)
    parent = {"session": worked.id, "call_id": started.call_id, "agent": "explore"}
    assert shown["parent"] == parent
    copy = sessions.fork(started.session)
    assert {one.id for one in sessions.list()} == {worked.id, copy}
    place.toolwire("sessions", "delete", "--yes", worked.id)
    assert [one.id for one in sessions.list(children=True)] == [copy]


def test_a_write_in_a_reading_agent_and_an_agent_in_an_agent_are_refused(place: Place) -> None:
    refused: list[str] = []

    def answer(question: Question) -> Reply:
        if not is_child(question):
            return says("end") if results_in(question) else asks(agent("explore", "write"))
        refused.extend(one.text for one in results_in(question))
        tools = question.request.tools
        offered = {one.name for one in tools if isinstance(one, ToolSpec)}
        assert not offered & {"write_file", "replace", "apply_patch", "run_shell_command"}
        assert "run_agent" not in offered
        if refused:
            return says("I cannot")
        target = str(place.work / "b.txt")
        return asks(Call.of("write_file", file_path=target, content="x"), agent("general", "write"))

    worked = work(place, answering=answer)
    assert results(worked) == ["I cannot"]
    assert len(refused) == 2
    assert all("not found in registry" in one for one in refused)
    assert not (place.work / "b.txt").exists()


@pytest.mark.parametrize("allowed", [True, False])
def test_the_same_user_answers_and_reads_who_asks(place: Place, allowed: bool) -> None:
    asked: list[str] = []

    async def approver(question: Confirmation) -> UserAnswer:
        asked.append(question.title)
        return UserAnswer(choice=Choice.SESSION if allowed else Choice.CANCEL)

    def answer(question: Question) -> Reply:
        if not is_child(question):
            return says("end") if results_in(question) else asks(agent("general", "write"))
        number = len(results_in(question))
        if number == 2:
            return says("ready")
        target = str(place.work / f"b{number}.txt")
        return asks(Call.of("write_file", file_path=target, content="x\n"))

    work(place, answering=answer, approver=approver, mode=Mode.DEFAULT)
    assert asked == (["general: WriteFile"] if allowed else ["general: WriteFile"] * 2)
    assert (place.work / "b0.txt").exists() is allowed
    assert (place.work / "b1.txt").exists() is allowed


@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.PLAN])
def test_without_a_user_an_agent_may_do_no_more_than_its_session(place: Place, mode: Mode) -> None:
    def answer(question: Question) -> Reply:
        if not is_child(question):
            return says("end") if results_in(question) else asks(agent("general", "write"))
        if done := results_in(question):
            return says(done[-1].text)
        return asks(Call.of("write_file", file_path=str(place.work / "b.txt"), content="x\n"))

    worked = work(place, answering=answer, mode=mode)
    assert results(worked)[0].startswith("Tool execution denied by policy.")
    assert not (place.work / "b.txt").exists()


def test_the_money_and_the_turns_of_the_session_stop_its_agents(place: Place) -> None:
    def answer(question: Question) -> Reply:
        if not is_child(question):
            return asks(agent("explore", "one"), agent("explore", "two"))
        usage = Usage(input=10, output=5, cost=0.4)
        return asks(Call.of("list_directory", path=str(place.work)), usage=usage)

    worked = work(place, answering=answer, limits=Limits(cost=1.0))
    assert worked.ends[0].reason is TurnEnd.COST_LIMIT
    ended = [one for one in worked.events if isinstance(one, AgentEnded)]
    assert len(ended) == 2
    assert all(one.reason is not TurnEnd.DONE for one in ended)
    costs = [one.cost or 0 for one in worked.events if isinstance(one, UsageCounted)]
    assert sum(costs) <= 1.6
    assert all("stopped early" in one for one in results(worked))


def test_an_agent_ends_at_its_own_limit_with_what_it_has(place: Place) -> None:
    folder = place.home / "agents"
    folder.mkdir()
    (folder / "short.md").write_text(
        "---\nname: short\ndescription: d\nmax_turns: 2\n---\nYou work for another agent.\n"
    )
    asked: list[int] = []

    def answer(question: Question) -> Reply:
        if not is_child(question):
            return says("end") if results_in(question) else asks(agent("short", "x"))
        asked.append(len(results_in(question)))
        call = Call.of("read_file", absolute_path=str(place.work / "a.txt"), offset=len(asked) - 1)
        return Reply(pieces=(Say(f"step {len(asked)}"), call))

    worked = work(place, answering=answer)
    assert len(asked) == 2
    assert results(worked) == [
        "step 2\n\n[short stopped early (turn_limit): reached the limit of 2 requests; raise it "
        "with --max-turns]"
    ]


def test_changes_of_an_agent_are_undone_with_the_turn(place: Place) -> None:
    def answer(question: Question) -> Reply:
        if not is_child(question):
            return says("end") if results_in(question) else asks(agent("general", "change"))
        if len(results_in(question)) == 2:
            return says("changed")
        if results_in(question):
            return asks(Call.of("run_shell_command", command="echo x > made.txt"))
        return asks(Call.of("write_file", file_path=str(place.work / "a.txt"), content="two\n"))

    async def undo(session: AgentSession) -> None:
        checkpoints = session.checkpoints
        assert checkpoints is not None
        assert (place.work / "a.txt").read_text() == "two\n"
        done = await checkpoints.restore(checkpoints.undoable())
        assert done.conflicts == ()

    worked = work(place, answering=answer, then=undo)
    assert (place.work / "a.txt").read_text() == "one\n"
    assert not (place.work / "made.txt").exists()
    assert any(isinstance(one, Checkpointed) and one.files for one in worked.events)


def test_one_agent_is_stopped_and_the_others_go_on(place: Place) -> None:
    def answer(question: Question) -> Reply:
        if not is_child(question):
            if results_in(question):
                return says("end")
            return asks(agent("explore", "slow"), agent("explore", "fast"))
        if any("slow" in text for text in texts(question)):
            return says("never ends " * 500, fault=Fault(wait_each=0.5))
        return says("fast is done")

    sessions: list[AgentSession] = []
    stopped: list[bool] = []

    environ = place.environ(TOOLWIRE_TOOLS_SANDBOX="off")
    events: list[Any] = []

    async def run(upstream: str) -> None:
        from toolwire import config
        from toolwire.agent.events import reader_of
        from toolwire.app.builder import open_session
        from toolwire.app.options import SessionOptions
        from toolwire.messages import Message, Text
        from toolwire.providers.custom import read_upstream

        async def receive(event: Any) -> None:
            events.append(event)
            if isinstance(event, ChildEvent) and sessions and not stopped:
                slow = next(one.session for one in events if isinstance(one, AgentStarted))
                if any(isinstance(one, AgentEnded) for one in events):
                    stopped.append(sessions[0].subagents.stop(slow))  # type: ignore[union-attr]

        options = SessionOptions(upstream=read_upstream(upstream), mode=Mode.YOLO)
        async with open_session(
            options,
            settings=config.load(environ, place.work),
            environ=environ,
            cwd=place.work,
            readers=(reader_of(receive),),
        ) as session:
            sessions.append(session)
            await session.send(Message(role="user", parts=(Text("go"),)))

    with Simulated(answer) as sim:
        asyncio.run(run(sim.upstream()))
    assert stopped == [True]
    found = [
        one.result.text
        for one in events
        if isinstance(one, ToolFinished) and one.name == "run_agent"
    ]
    assert sorted(one.split("[")[-1] for one in found) == [
        "explore stopped early (cancelled): stopped by the user]",
        "fast is done",
    ]


DEFINED = """---
name: {name}
description: Reviews code.
{more}
---
You work for another agent. You review.
"""


def defined(place: Place, folder: str, name: str, more: str = "") -> Path:
    file = place.work / folder / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(DEFINED.format(name=name, more=more))
    return file


def agents_in(place: Place) -> dict[str, Any]:
    done = place.toolwire("agents", "list", "--json")
    assert done.code == 0, done.err
    return {one["name"]: one for one in json.loads(done.out)}


def test_definitions_of_four_programs_are_read_with_our_tool_names(place: Place) -> None:
    defined(place, ".toolwire/agents", "own", "tools: [read_file, glob]")
    defined(place, ".claude/agents", "claude", "tools: Read, Grep, Glob\nmodel: haiku")
    defined(place, ".gemini/agents", "gemini", "tools:\n  - read_file\n  - grep_search")
    defined(place, ".opencode/agent", "opencode", "mode: subagent\ntools:\n  bash: false")
    defined(place, ".opencode/agent", "main", "mode: primary")
    (place.work / ".claude/agents/broken.md").write_text("no front matter")
    assert agents_in(place).keys() == {"explore", "general"}
    place.toolwire("config", "trust")
    found = agents_in(place)
    assert found["own"]["tools"] == ["read_file", "glob"]
    assert found["claude"]["tools"] == ["read_file", "search_file_content", "glob"]
    assert found["gemini"]["tools"] == ["read_file", "search_file_content"]
    assert "main" not in found
    assert (found["claude"]["approved"], found["opencode"]["approved"]) == (True, False)
    assert found["opencode"]["skipped_because"] == "it waits for approval: toolwire approve"
    done = place.toolwire("agents", "list")
    assert "broken.md does not define a subagent: it has no front matter" in done.err
    approved = place.toolwire("approve", "opencode")
    assert approved.code == 0, approved.err
    assert agents_in(place)["opencode"]["approved"] is True
    defined(place, ".opencode/agent", "opencode", "mode: subagent\ntools:\n  write: false")
    assert agents_in(place)["opencode"]["approved"] is False


def test_an_agent_of_another_program_gets_no_tool_that_its_definition_denies(place: Place) -> None:
    denies = "mode: subagent\npermission:\n  edit: deny\n  bash: deny\n  webfetch: allow"
    defined(place, ".opencode/agent", "reviewer", denies)
    defined(place, ".opencode/agent", "none", "mode: subagent\npermission: deny")
    defined(place, ".claude/agents", "planner", "permissionMode: plan")
    settings = config.load(place.environ(), place.work, trusted=True)
    known, problems = find_agents(settings, place.environ(), place.work)
    assert problems == ()
    every = builtins(settings.tools)
    names = {one.name: {tool.name for tool in tools_of(one, every)} for one in known.values()}
    changing = {"replace", "write_file", "apply_patch", "run_shell_command"}
    assert changing <= names["general"]
    for agent in ("reviewer", "none", "planner"):
        assert not changing & names[agent]
        assert "read_file" in names[agent]
    assert ("web_fetch" in names["reviewer"], "web_fetch" in names["none"]) == (True, False)


def test_a_session_offers_what_is_approved_and_not_excluded(place: Place) -> None:
    file = defined(place, ".claude/agents", "writer")
    defined(place, ".claude/agents", "reader", "tools: Read")
    untrusted = work(place, answering=lambda question: says("end"))
    assert "the subagents of .claude/agents are not used" in str(untrusted.events)
    place.toolwire("config", "trust")
    offered: list[str] = []

    def answer(question: Question) -> Reply:
        tools = (one for one in question.request.tools if isinstance(one, ToolSpec))
        [found] = [one.parameters for one in tools if one.name == "run_agent"]
        offered[:] = cast(Any, found)["properties"]["agent"]["enum"]
        return says("end")

    env = {"TOOLWIRE_AGENTS_EXCLUDE": "general"}
    worked = work(place, answering=answer, env=env)
    assert offered == ["explore", "reader"]
    assert "writer" in str([one for one in worked.events if "approval" in str(one)])
    import hashlib

    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    answers = approval_store(state_paths(place.environ()).config)
    answers.keep(place.work, "agent:writer", digest, allowed=True)
    work(place, answering=answer, env=env)
    assert offered == ["explore", "reader", "writer"]


def test_stream_json_names_the_agent_of_each_event(place: Place) -> None:
    def answer(question: Question) -> Reply:
        if not is_child(question):
            return says("end") if results_in(question) else asks(agent("explore", "look"))
        if results_in(question):
            return says("found it")
        return asks(Call.of("read_file", absolute_path=str(place.work / "a.txt")))

    with Simulated(answer) as sim:
        done = place.run(sim, "--output-format", "stream-json", "go")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    mine = [one for one in lines if one.get("agent") == "explore"]
    [call] = [one for one in lines if one["type"] == "tool_use" and "agent" not in one]
    assert {one["parent_call"] for one in mine} == {call["tool_id"]}
    assert [one["type"] for one in mine if one["type"] != "message"] == [
        "agent_start",
        "tool_use",
        "tool_result",
        "agent_end",
    ]
    assert "".join(one["content"] for one in mine if one.get("delta")) == "found it"
    assert [one["api"]["totalRequests"] for one in lines[-1]["stats"]["models"].values()] == [4]


def test_files_of_the_task_and_mentions_reach_the_model(place: Place) -> None:
    seen: list[str] = []

    def answer(question: Question) -> Reply:
        if is_child(question):
            seen.append(str([one.text for one in question.request.messages]))
            return says("read")
        if results_in(question):
            return says("end")
        seen.append(str([one.text for one in question.request.messages]))
        return asks(agent("explore", "look", files=[str(place.work / "a.txt")]))

    with Simulated(answer) as sim:
        place.run(sim, "@agent-explore look at it")
    assert "call run_agent" in seen[0]
    assert "one\\n" in seen[1]


def test_ctrl_c_ends_all_agents_and_their_commands(place: Place) -> None:
    def answer(question: Question) -> Reply:
        if not is_child(question):
            return asks(*(agent("general", f"task {number}") for number in range(3)))
        if "task 2" in str(texts(question)):
            return says("slow " * 4000, fault=Fault(wait_each=0.5))
        return asks(Call.of("run_shell_command", command="echo begun; sleep 300"))

    with Simulated(answer) as sim:
        process = place.start(
            *("run", "--yolo", "--upstream", sim.upstream(), "--output-format", "stream-json", "x")
        )
        begun = 0
        for line in process.stdout:
            event = json.loads(line)
            begun += event["type"] == "tool_output" and "begun" in event["content"]
            if begun == 2:
                break
        interrupt(process)
        out, _ = process.communicate(timeout=LONGEST)
    assert process.returncode == 130
    ends = [json.loads(line) for line in out.splitlines()]
    assert sorted(one["stop"] for one in ends if one["type"] == "agent_end") == ["cancelled"] * 3
    [main] = store(place).list()
    past = replay(store(place).read(main.id).events)
    assert not past.open
    marks = [one for one in Path("/proc").glob("[0-9]*/cmdline") if _is(one, b"sleep\x00300")]
    assert marks == []


def _is(file: Path, command: bytes) -> bool:
    try:
        cwd = (file.parent / "cwd").readlink()
        return command in file.read_bytes() and "test_ctrl_c_ends_all" in str(cwd)
    except OSError:
        return False


def test_the_page_shows_what_the_command_prints(place: Place) -> None:
    page = (ROOT / "docs" / "subagents.md").read_text("utf-8")
    folder = place.work / ".toolwire" / "agents"
    folder.mkdir(parents=True)
    (folder / "reviewer.md").write_text(page.split("```markdown\n")[1].split("```")[0])
    place.toolwire("config", "trust")
    shown = page.split("```console\n")[1].split("```")[0]
    command, _, printed = shown.partition("\n")
    done = place.toolwire(*command.split()[2:])
    assert (done.out, done.err) == (printed, "")
    table = page.split("```toml\n")[1].split("```")[0]
    (place.home / "config.toml").write_text(table)
    assert place.toolwire(*command.split()[2:]).out == printed
