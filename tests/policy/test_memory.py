import asyncio
import json
from pathlib import Path

import pytest

from toolwire.agent.events import AgentEvent
from toolwire.agent.questions import Choice, Confirmation, ExecDetails, UserAnswer
from toolwire.agent.scheduler import Scheduler
from toolwire.app.workspace_facts import locations_of
from toolwire.messages import ToolCall
from toolwire.policy.engine import Policy, roots
from toolwire.policy.rules import Rule
from toolwire.policy.ruling import Terms
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolOutput, Workspace


class Desk:
    """A policy on a real folder, and the rules it was told to keep."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.kept: list[Rule] = []
        workspace = Workspace(roots=(self.root,), temp=folder / "temp", home=folder / "home")
        terms = Terms(
            locations=locations_of(workspace, {}), servers={"send": "mail", "list": "mail"}
        )
        self.policy = Policy(terms, self.kept.append)

    def rules(self, call: ToolCall, effect: Effect, *places: Path) -> str:
        return self.policy(call, effect, places, json.loads(call.arguments or "{}")).decision

    def shell(self, command: str) -> str:
        return self.rules(self.call(command), Effect.EXECUTE)

    def call(self, command: str) -> ToolCall:
        arguments = json.dumps({"command": command})
        return ToolCall(id=command, name="run_shell_command", arguments=arguments)

    def answer(self, call: ToolCall, choice: Choice) -> None:
        self.policy.remember(call, choice)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_yes_for_the_session_holds_for_the_root_commands_of_the_text(desk: Desk):
    assert desk.shell("npm test | head") == "ask"
    desk.answer(desk.call("npm test | head"), Choice.SESSION)
    assert desk.shell("npm test --silent") == "allow"
    assert desk.shell("npm install") == "ask"
    assert desk.shell("npm test && rm x") == "ask"
    assert desk.kept == []


def test_a_yes_for_always_is_kept_as_well(desk: Desk):
    desk.shell("npm test")
    desk.answer(desk.call("npm test"), Choice.ALWAYS)
    assert [(rule.command, rule.origin) for rule in desk.kept] == [
        (("npm", "test"), "answer: always")
    ]


def test_a_yes_for_once_is_forgotten(desk: Desk):
    desk.shell("npm test")
    desk.answer(desk.call("npm test"), Choice.ONCE)
    assert desk.shell("npm test") == "ask"


@pytest.mark.parametrize("command", ["$x", "python3 -c x", "npm test; $x", "echo x > .git/config"])
def test_a_yes_to_what_cannot_be_known_or_is_protected_holds_once_only(desk: Desk, command: str):
    assert desk.shell(command) == "ask"
    desk.answer(desk.call(command), Choice.ALWAYS)
    assert desk.kept == []
    assert desk.shell(command) == "ask"


def test_a_yes_for_a_tool_holds_inside_the_workspace(desk: Desk):
    call = ToolCall(id="1", name="write_file")
    inside, outside = desk.root / "a", desk.root.parent / "b"
    assert desk.rules(call, Effect.WRITE, inside) == "ask"
    desk.answer(call, Choice.SESSION)
    assert desk.rules(call, Effect.WRITE, desk.root / "c") == "allow"
    assert desk.rules(call, Effect.WRITE, outside) == "ask"
    desk.answer(call, Choice.SESSION)
    assert desk.rules(call, Effect.WRITE, outside) == "allow"
    assert desk.rules(call, Effect.WRITE, outside.with_name("d")) == "ask"


def test_a_yes_for_a_server_holds_for_all_its_tools(desk: Desk):
    send, listing, other = (ToolCall(id=name, name=name) for name in ("send", "list", "other"))
    assert desk.rules(send, Effect.OTHER) == "ask"
    desk.answer(send, Choice.SERVER)
    assert desk.rules(listing, Effect.OTHER) == "allow"
    assert desk.rules(other, Effect.OTHER) == "ask"
    desk.answer(other, Choice.SERVER)
    assert desk.rules(other, Effect.OTHER) == "ask"


def test_links_are_followed_and_protected_files_known(desk: Desk):
    (desk.root / "out").symlink_to("/etc")
    (desk.root / "loop").symlink_to("loop")
    read = ToolCall(id="1", name="read_file")
    assert desk.rules(read, Effect.READ, desk.root / "a") == "allow"
    assert desk.rules(read, Effect.READ, desk.root / "out" / "passwd") == "ask"
    assert desk.rules(read, Effect.READ, desk.root / "loop") == "ask"
    assert desk.rules(read, Effect.READ, desk.root / ".env") == "ask"
    assert desk.rules(read, Effect.READ, desk.root / "a\0b") == "ask"


def test_patterns_stand_for_the_files_they_match(desk: Desk):
    for name in ("a.txt", "b.txt", "server.pem"):
        (desk.root / name).touch()
    (desk.root / "c.md").symlink_to("/etc/passwd")
    desk.shell("cat a.txt")
    desk.answer(desk.call("cat a.txt"), Choice.SESSION)
    assert desk.shell("cat *.txt") == "allow"
    assert desk.shell("cat *.rst") == "allow"
    for pattern in ("*", "*.md", "*.pem", "s*", ".*", "[ab].txt", "../*", "/etc/*"):
        assert desk.shell(f"cat {pattern}") == "ask", pattern


def test_a_link_to_the_workspace_does_not_open_its_parent(desk: Desk):
    (desk.root / "here").symlink_to(".")
    desk.shell("cat a")
    desk.answer(desk.call("cat a"), Choice.SESSION)
    assert desk.shell("cat here/a") == "allow"
    assert desk.shell("cat here/../a") == "ask"
    assert desk.shell("cd here && cat ../a") == "ask"


def test_the_roots_of_a_text_are_all_programs_it_starts():
    assert roots("timeout 5 git log | head; bash -c 'ls'") == ("git", "head", "bash", "ls")
    assert roots("for x in a; do b; done") == ("for",)


def test_the_scheduler_asks_once_for_what_a_session_allows(desk: Desk):
    asked: list[Confirmation] = []

    async def approve(question: Confirmation) -> UserAnswer:
        asked.append(question)
        return UserAnswer(choice=Choice.SESSION)

    async def ignore(event: AgentEvent) -> None:
        del event

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        del context
        return ToolOutput(text=f"ran {arguments['command']}")

    shell = Tool(
        name="run_shell_command",
        description="",
        parameters={"type": "object"},
        effect=Effect.EXECUTE,
        run=run,
    )
    workspace = Workspace(roots=(desk.root,), temp=desk.root / "temp", home=desk.root)
    scheduler = Scheduler(
        Registry([shell]),
        context=ToolContext(workspace=workspace),
        policy=desk.policy,
        emit=ignore,
        approver=approve,
        remember=desk.policy.remember,
        roots=roots,
    )
    calls = [desk.call(text) for text in ("timeout 5 npm test", "npm test | head")]
    answer = asyncio.run(scheduler.run(calls))
    assert [result.text for result in answer.results] == [
        "ran timeout 5 npm test",
        "ran npm test | head",
    ]
    assert [question.details for question in asked] == [
        ExecDetails(command="timeout 5 npm test", roots=("npm",))
    ]
