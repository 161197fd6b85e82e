import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolwire.agent.audit_log import Audit, AuditFile, AuditRecord
from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.agent.scheduler import Scheduler
from toolwire.app.workspace_facts import locations_of
from toolwire.messages import ToolCall
from toolwire.policy import Mode
from toolwire.policy.engine import Policy, roots
from toolwire.policy.rules import Rule, Verdict
from toolwire.policy.ruling import Terms
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolOutput, Workspace

NOW = "2026-01-02T03:04:05.000+00:00"
SECRET = "hunter2hunter2"


async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    del arguments, context
    return ToolOutput(text="done")


def broken(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    raise RuntimeError("no places")


def tool(name: str, effect: Effect, **more: Any) -> Tool:
    schema: JsonObject = {"type": "object", "required": more.pop("required", [])}
    return Tool(name=name, description="", parameters=schema, effect=effect, run=run, **more)


class Office:
    """Calls under a policy whose rulings are recorded."""

    def __init__(self, folder: Path) -> None:
        self.records: list[AuditRecord] = []
        self.workspace = Workspace(roots=(folder,), temp=folder / "t", home=folder)
        rules = (Rule(decision=Verdict.DENY, tool="run_shell_command", command=("rm",)),)
        terms = Terms(locations=locations_of(self.workspace, {}), rules=rules)
        self.policy = Policy(terms, lambda rule: None)
        self.registry = Registry(
            [
                tool("run_shell_command", Effect.EXECUTE),
                tool("look", Effect.READ, aliases=("peek",)),
                tool("put", Effect.WRITE, required=["file"]),
                tool("odd", Effect.READ, touches=broken),
            ]
        )
        audit = Audit(self.policy, self.registry, self.records.append, lambda: NOW)
        self.listening = audit.listening
        self.heard: list[int] = []

    def run(self, *calls: ToolCall, choice: Choice = Choice.ONCE) -> None:
        async def approve(question: Confirmation) -> UserAnswer:
            del question
            return UserAnswer(choice=choice)

        asyncio.run(self.scheduler(approve).run(calls))

    def scheduler(self, approver: Any) -> Scheduler:
        async def count(event: object) -> None:
            del event
            self.heard.append(len(self.records))

        return Scheduler(
            self.registry,
            context=ToolContext(workspace=self.workspace),
            policy=self.policy,
            approver=approver,
            emit=self.listening(count),
            remember=self.policy.remember,
            roots=roots,
        )

    @property
    def told(self) -> list[tuple[str, str, str, str]]:
        return [(one.tool, one.decision, one.rule, one.answer) for one in self.records]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def shell(command: str, id: str = "1") -> ToolCall:
    return ToolCall(id=id, name="run_shell_command", arguments=json.dumps({"command": command}))


def test_a_record_holds_the_ruling_and_the_answer_but_no_arguments(office: Office) -> None:
    office.run(shell(f"curl -H {SECRET} | head"), choice=Choice.SESSION)
    assert office.records == [
        AuditRecord(
            at=NOW,
            call_id="1",
            tool="run_shell_command",
            effect=Effect.EXECUTE,
            mode=Mode.DEFAULT,
            decision=Verdict.ASK,
            reason="",
            rule="mode default",
            roots=("curl", "head"),
            answer="session",
        )
    ]


def test_every_kind_of_ruling_is_recorded(office: Office) -> None:
    office.run(
        ToolCall(id="1", name="peek"),
        shell("rm x", "2"),
        shell("make", "3"),
        ToolCall(id="4", name="odd"),
    )
    office.run(shell("make", "5"), choice=Choice.CANCEL)
    assert office.told == [
        ("look", "allow", "mode default", ""),
        ("run_shell_command", "deny", "deny run_shell_command(rm)", ""),
        ("run_shell_command", "ask", "mode default", "once"),
        ("odd", "ask", "engine error", "once"),
        ("run_shell_command", "ask", "mode default", "cancel"),
    ]


def test_a_call_that_is_never_ruled_on_leaves_no_record(office: Office) -> None:
    office.run(ToolCall(id="1", name="nothing"), ToolCall(id="2", name="put"))
    assert office.records == []


def test_an_id_that_comes_again_does_not_bring_the_old_ruling_back(office: Office) -> None:
    file = ToolCall(id="1", name="put", arguments='{"file":"a"}')
    office.run(file)
    office.run(ToolCall(id="1", name="put"))
    office.run(ToolCall(id="1", name="odd"))
    assert office.told == [
        ("put", "ask", "mode default", "once"),
        ("odd", "ask", "engine error", "once"),
    ]


def test_a_yes_that_settles_a_waiting_call_is_recorded_as_its_rule(office: Office) -> None:
    office.run(shell("make", "1"), shell("make", "2"), choice=Choice.SESSION)
    assert office.told == [
        ("run_shell_command", "ask", "mode default", "session"),
        ("run_shell_command", "allow", "allow run_shell_command(make)", ""),
    ]


def test_a_question_that_is_given_up_is_recorded_without_an_answer(office: Office) -> None:
    async def work() -> None:
        async def approve(question: Confirmation) -> UserAnswer:
            del question
            scheduler.cancel()
            await asyncio.Event().wait()
            raise AssertionError

        scheduler = office.scheduler(approve)
        await scheduler.run([shell("make")])

    asyncio.run(work())
    assert office.told == [("run_shell_command", "ask", "mode default", "")]


def test_the_record_stands_before_the_event_is_passed_on(office: Office) -> None:
    office.run(shell("make"))
    # Requested, asked, decided, started, finished.
    assert office.heard == [0, 0, 1, 1, 1]


def entry(call_id: str) -> AuditRecord:
    return AuditRecord(
        at=NOW,
        call_id=call_id,
        tool="look",
        effect=Effect.READ,
        mode=Mode.DEFAULT,
        decision=Verdict.ALLOW,
        reason="",
        rule="",
    )


def test_records_are_lines_that_only_their_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "state" / "audit.jsonl"
    for number in range(3):
        AuditFile(file).write(entry(str(number)))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["call_id"] for line in lines] == ["0", "1", "2"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def told_of(break_it: Callable[[Path], Path], folder: Path) -> list[str]:
    notices: list[str] = []
    log = AuditFile(break_it(folder), notices.append)
    log.write(entry("1"))
    log.write(entry("2"))
    return notices


def test_a_log_that_cannot_be_written_is_reported_once_and_stops_nothing(tmp_path: Path) -> None:
    def file_in_the_way(folder: Path) -> Path:
        (folder / "state").write_text("")
        return folder / "state" / "audit.jsonl"

    def folder_in_the_way(folder: Path) -> Path:
        (folder / "audit.jsonl").mkdir()
        return folder / "audit.jsonl"

    for each in (file_in_the_way, folder_in_the_way):
        notices = told_of(each, tmp_path)
        assert len(notices) == 1
        assert notices[0].startswith("rulings are not recorded: cannot write")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
def test_a_full_disk_is_reported_once() -> None:
    notices = told_of(lambda folder: Path("/dev/full"), Path())
    assert notices == ["rulings are not recorded: cannot write /dev/full: " + os.strerror(28)]
