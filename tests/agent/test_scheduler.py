import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.agent.approval import Policy
from toolwire.agent.events import (
    AgentEvent,
    ApprovalOutcome,
    ToolAsked,
    ToolDecided,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    ToolStarted,
)
from toolwire.agent.questions import (
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
    UserAnswer,
)
from toolwire.agent.scheduler import Scheduler
from toolwire.messages import CallKind, Message, Outcome, Text, ToolCall
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry
from toolwire.tools.spec import (
    DiffStat,
    Effect,
    Proposal,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
    ToolSettings,
    Workspace,
)


class Ruling(msgspec.Struct, frozen=True):
    decision: str
    reason: str = ""


def always(decision: str, reason: str = "") -> Policy:
    return lambda call, effect, places, arguments: Ruling(decision, reason)


TEXT = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}


def a_tool(name: str, effect: Effect = Effect.READ, run: Any = None, **more: Any) -> Tool:
    async def echo(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput(text=f"{name}:{arguments['x']}")

    members: dict[str, Any] = {"description": "", "parameters": TEXT, **more}
    return Tool(name=name, effect=effect, run=run or echo, **members)


def call(id: str, name: str, arguments: Any = None, **more: Any) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {"x": id})
    return ToolCall(id=id, name=name, arguments=text, **more)


class Bench:
    """A scheduler on a folder, with all it emitted."""

    def __init__(self, folder: Path, *tools: Tool, **more: Any) -> None:
        self.events: list[AgentEvent] = []
        place = Workspace(roots=(folder,), temp=folder / "temp", home=folder)
        context = ToolContext(workspace=place, **more.pop("context", {}))
        members: dict[str, Any] = {"policy": always("allow"), "emit": self.keep, **more}
        self.scheduler = Scheduler(Registry(tools), context=context, **members)

    async def keep(self, event: AgentEvent) -> None:
        self.events.append(event)

    def run(self, *calls: ToolCall) -> Message:
        return asyncio.run(self.scheduler.run(calls))

    def said(self, *calls: ToolCall) -> list[str]:
        return [result.text for result in self.run(*calls).results]

    def finished(self) -> ToolFinished:
        found = [event for event in self.events if isinstance(event, ToolFinished)]
        assert len(found) == 1
        return found[0]


def test_results_come_in_call_order_with_what_follows_each(tmp_path: Path) -> None:
    async def many(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput(text="ok", beside=(Text("--- a ---"), Text("--- b ---")))

    bench = Bench(tmp_path, a_tool("many", run=many), a_tool("read"))
    answer = bench.run(call("1", "many"), call("2", "read"))
    assert answer.role == "user"
    kinds = [part.text if isinstance(part, Text) else "result" for part in answer.parts]
    assert kinds == ["result", "--- a ---", "--- b ---", "result"]


def test_the_states_of_a_call_are_reported_in_order(tmp_path: Path) -> None:
    async def loud(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        context.emit("half way")
        return ToolOutput(text="done", display="**done**", stat=DiffStat(model_added=2))

    bench = Bench(tmp_path, a_tool("loud", Effect.WRITE, run=loud), clock=iter((5.0, 7.5)).__next__)
    one = call("1", "loud")
    result = bench.run(one).results[0]
    assert bench.events == [
        ToolRequested(call=one),
        ToolDecided(call_id="1", decision=ApprovalOutcome.AUTO_ACCEPT),
        ToolStarted(call_id="1", name="loud", arguments='{"x":"1"}', effect="write"),
        ToolOutputText(call_id="1", text="half way"),
        ToolFinished(
            call_id="1",
            name="loud",
            arguments='{"x":"1"}',
            outcome=Outcome.DONE,
            success=True,
            duration=2.5,
            decision=ApprovalOutcome.AUTO_ACCEPT,
            stat=DiffStat(model_added=2),
            display="**done**",
            result=result,
        ),
    ]


def test_the_start_is_kept_before_the_tool_runs(tmp_path: Path) -> None:
    order: list[str] = []

    async def slow_keeper(event: AgentEvent) -> None:
        await asyncio.sleep(0)
        order.append(type(event).__name__)

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        order.append("runs")
        return ToolOutput(text="")

    Bench(tmp_path, a_tool("t", run=run), emit=slow_keeper).run(call("1", "t"))
    assert order.index("ToolStarted") < order.index("runs")


def test_readers_run_side_by_side_and_writers_alone_and_in_order(tmp_path: Path) -> None:
    running: set[str] = set()
    seen: list[tuple[str, int]] = []
    both = asyncio.Event()

    def worker(effect: Effect) -> Any:
        async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
            running.add(context.call_id)
            if effect is Effect.READ and arguments["x"] == "pair":
                if len(running) == 2:
                    both.set()
                await both.wait()
            seen.append((context.call_id, len(running)))
            await asyncio.sleep(0)
            running.discard(context.call_id)
            return ToolOutput(text=context.call_id)

        return run

    bench = Bench(
        tmp_path,
        a_tool("read", run=worker(Effect.READ)),
        a_tool("write", Effect.WRITE, run=worker(Effect.WRITE)),
    )
    pair = {"x": "pair"}
    said = bench.said(
        call("1", "read", pair),
        call("2", "read", pair),
        call("3", "write"),
        call("4", "write"),
        call("5", "read"),
    )
    assert said == ["1", "2", "3", "4", "5"]
    assert seen[0][1] == 2
    assert seen[2:] == [("3", 1), ("4", 1), ("5", 1)]


def test_an_unknown_tool_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("read_file"), a_tool("glob"), a_tool("replace"), a_tool("zzz"))
    assert bench.said(call("1", "read_fil")) == [
        'Tool "read_fil" not found in registry. Tools must use the exact names that are registered.'
        ' Did you mean one of: "read_file", "replace", "glob"?'
    ]
    assert bench.finished().error_type == "tool_not_registered"
    assert bench.finished().outcome is Outcome.NOT_RUN


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "params must have required property 'a'\nparams must have required property 'b'"),
        ({"a": 1, "b": "no"}, "params/b must be number"),
        ({"a": 1, "b": 0.5}, "params/b must be >= 1"),
        ({"a": 1, "b": 1, "list": []}, "params/list must NOT have fewer than 1 items"),
        ({"a": 1, "b": 1, "list": [""]}, "params/list/0 must NOT have fewer than 1 characters"),
        (
            {"a": 1, "b": 1, "kind": "z"},
            "params/kind must be equal to one of the allowed values\nparams/kind may be x, y",
        ),
        ({"a": 1, "b": 1, "maybe": 2}, "params/maybe must be string,null"),
        ({"b": "no", "a": True}, "params/a must be integer\nparams/b must be number"),
    ],
)
def test_all_that_does_not_fit_is_answered_with_the_originals_words_first(
    tmp_path: Path, arguments: JsonObject, text: str
) -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "number", "minimum": 1},
            "list": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            "kind": {"enum": ["x", "y"]},
            "maybe": {"type": ["string", "null"]},
        },
    }
    bench = Bench(tmp_path, a_tool("t", parameters=schema))
    assert bench.said(call("1", "t", json.dumps(arguments))) == [text]


def test_a_schema_that_points_elsewhere_is_never_fetched(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t", parameters={"$ref": "http://127.0.0.1:1/s.json"}))
    assert "may not point to http://127.0.0.1:1/s.json" in bench.said(call("1", "t"))[0]


def test_extra_arguments_are_no_error(tmp_path: Path) -> None:
    assert Bench(tmp_path, a_tool("t")).said(call("1", "t", {"x": "a", "y": 1})) == ["t:a"]


def test_a_cut_call_never_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t"))
    assert "cut off" in bench.said(call("1", "t", complete=False))[0]
    assert not [event for event in bench.events if isinstance(event, ToolStarted)]


def test_repaired_arguments_run_a_reader_and_are_shown(tmp_path: Path) -> None:
    said = Bench(tmp_path, a_tool("t")).said(call("1", "t", '{"x": "a",}'))[0]
    assert said.startswith('t:a\n\n[The arguments were not valid JSON and were read as {"x":"a"}:')


def test_repaired_arguments_never_run_a_tool_with_an_effect(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t", Effect.WRITE))
    said = bench.said(call("1", "t", '{"x": "a",}'))[0]
    assert "Nothing was run" in said
    assert '{"x":"a"}' in said
    assert not [event for event in bench.events if isinstance(event, ToolStarted)]


def test_arguments_that_stop_in_the_middle_never_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t"))
    assert "stop in the middle" in bench.said(call("1", "t", '{"x": "a'))[0]


def test_of_two_calls_with_one_id_only_the_first_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t"))
    first, second = bench.said(call("1", "t"), call("1", "t"))
    assert first == "t:1"
    assert "was used by an earlier call" in second


def test_an_alias_runs_the_tool_and_the_answer_keeps_the_models_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("replace", aliases=("smart_edit",)))
    assert bench.run(call("1", "smart_edit")).results[0].name == "smart_edit"
    assert bench.finished().name == "replace"


def test_free_text_becomes_the_one_string_a_tool_takes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t"))
    assert bench.said(call("1", "t", "*** raw", kind=CallKind.FREEFORM)) == ["t:*** raw"]


def test_what_a_tool_complains_about_is_an_error_before_any_ruling(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t", check=lambda a, c: "no sense"), policy=always("deny"))
    result = bench.run(call("1", "t")).results[0]
    assert (result.text, result.is_error, result.outcome) == ("no sense", True, Outcome.NOT_RUN)


def test_a_failing_tool_and_a_broken_one_answer_with_their_words(tmp_path: Path) -> None:
    async def fails(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        raise ToolFailed("File not found: /a", type="file_not_found")

    async def breaks(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        raise KeyError("oops")

    bench = Bench(tmp_path, a_tool("fails", run=fails), a_tool("breaks", run=breaks))
    assert bench.said(call("1", "fails"), call("2", "breaks")) == ["File not found: /a", "'oops'"]
    types = [event.error_type for event in bench.events if isinstance(event, ToolFinished)]
    assert types == ["file_not_found", "unhandled_exception"]


def test_a_denied_call_says_why(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t", Effect.WRITE), policy=always("deny", "Not in plan mode."))
    assert bench.said(call("1", "t")) == ["Tool execution denied by policy. Not in plan mode."]
    assert bench.finished().decision is ApprovalOutcome.REJECT


def test_a_call_that_no_one_can_approve_is_answered(tmp_path: Path) -> None:
    bench = Bench(tmp_path, a_tool("t", Effect.WRITE), policy=always("ask", "It writes."))
    assert bench.said(call("1", "t")) == [
        "Tool execution needs approval, and no user is present to give it. It writes."
    ]


def test_a_policy_that_breaks_means_ask(tmp_path: Path) -> None:
    def broken(*_: object) -> Ruling:
        raise RuntimeError("boom")

    said = Bench(tmp_path, a_tool("t"), policy=broken).said(call("1", "t"))[0]
    assert "needs approval" in said
    assert "the policy failed: boom" in said


def test_the_policy_sees_the_real_name_the_effect_and_the_places(tmp_path: Path) -> None:
    asked: list[Any] = []

    def policy(
        call: ToolCall, effect: Effect, places: tuple[Path, ...], arguments: JsonObject
    ) -> Ruling:
        asked.append((call.name, call.arguments, effect, places, arguments))
        return Ruling("allow")

    tool = a_tool(
        "t", Effect.WRITE, aliases=("u",), touches=lambda args, c: (Path("/at") / args["x"],)
    )
    Bench(tmp_path, tool, policy=policy).run(call("1", "u", '{"x":  "f"}'))
    assert asked == [("t", '{"x":"f"}', Effect.WRITE, (Path("/at/f"),), {"x": "f"})]


def test_arguments_are_parsed_once_for_check_policy_and_tool(tmp_path: Path) -> None:
    received: list[JsonObject] = []

    def check(arguments: JsonObject, context: ToolContext) -> str:
        received.append(arguments)
        return ""

    def policy(call: ToolCall, effect: Effect, places: object, arguments: JsonObject) -> Ruling:
        received.append(arguments)
        return Ruling("allow")

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        received.append(arguments)
        return ToolOutput(text="done")

    Bench(tmp_path, a_tool("t", run=run, check=check), policy=policy).run(
        call("1", "t", '{"x":"f"}')
    )
    assert [id(one) for one in received] == [id(received[0])] * 3


class Person:
    """Answers in turn, and keeps what was asked."""

    def __init__(self, *answers: UserAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[Confirmation] = []

    async def __call__(self, question: Confirmation) -> UserAnswer:
        self.asked.append(question)
        return self.answers.pop(0)


def yes(choice: Choice = Choice.ONCE, **more: Any) -> UserAnswer:
    return UserAnswer(choice=choice, **more)


def writing(folder: Path) -> Tool:
    """A tool that writes `x` into one file, with a preview."""
    file = folder / "f.txt"

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        file.write_text(arguments["x"])
        return ToolOutput(text="written", stat=DiffStat(model_added=99))

    def preview(arguments: JsonObject, context: ToolContext) -> tuple[Proposal, ...]:
        before = file.read_text() if file.exists() else ""
        new = not file.exists()
        return (Proposal(path=file, before=before, after=arguments["x"], new_file=new),)

    def adopt(arguments: JsonObject, proposal: Proposal, content: str) -> JsonObject:
        return {**arguments, "x": content, "modified_by_user": True}

    return a_tool("write", Effect.WRITE, run=run, preview=preview, adopt=adopt)


def test_an_edit_is_shown_as_a_diff_before_it_is_approved(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("one\ntwo\n")
    person = Person(yes())
    bench = Bench(tmp_path, writing(tmp_path), policy=always("ask", "why"), approver=person)
    assert bench.said(call("1", "write", {"x": "one\n2\n3\n"})) == ["written"]
    details = person.asked[0].details
    assert isinstance(details, EditDetails)
    assert details.diff.splitlines()[2:] == ["@@ -1,2 +1,3 @@", " one", "-two", "+2", "+3"]
    assert details.stat == DiffStat(model_added=2, model_removed=1)
    assert details.paths == (tmp_path / "f.txt",)
    assert details.editable
    assert person.asked[0].reason == "why"
    assert [type(event).__name__ for event in bench.events] == [
        "ToolRequested",
        "ToolAsked",
        "ToolDecided",
        "ToolStarted",
        "ToolFinished",
    ]


def test_text_changed_in_place_is_adopted_and_its_lines_distinguished(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("a\n")
    person = Person(yes(content="b\nmine\n"))
    bench = Bench(tmp_path, writing(tmp_path), policy=always("ask"), approver=person)
    bench.run(call("1", "write", {"x": "b\n"}))
    assert (tmp_path / "f.txt").read_text() == "b\nmine\n"
    done = bench.finished()
    assert done.decision is ApprovalOutcome.MODIFY
    assert done.stat == DiffStat(model_added=1, model_removed=1, user_added=1)
    assert json.loads(done.arguments) == {"x": "b\nmine\n", "modified_by_user": True}


def test_text_changed_in_the_editor_is_shown_again_before_it_runs(tmp_path: Path) -> None:
    async def editor(proposal: Proposal) -> str:
        return proposal.after + "more\n"

    person = Person(yes(Choice.MODIFY), yes(Choice.MODIFY), yes())
    bench = Bench(tmp_path, writing(tmp_path), policy=always("ask"), approver=person, editor=editor)
    bench.run(call("1", "write", {"x": "b\n"}))
    assert (tmp_path / "f.txt").read_text() == "b\nmore\nmore\n"
    shown = [question.details for question in person.asked]
    assert [one.stat.user_added for one in shown if isinstance(one, EditDetails)] == [0, 1, 2]


def test_a_command_that_the_user_wrote_is_ruled_on_and_asked_again(tmp_path: Path) -> None:
    ran: list[str] = []

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        ran.append(arguments["command"])
        return ToolOutput(text="ran")

    def policy(
        call: ToolCall, effect: Effect, paths: tuple[Path, ...], arguments: JsonObject
    ) -> Ruling:
        word = str(arguments["command"]).split()[0]
        return Ruling({"look": "allow", "never": "deny"}.get(word, "ask"), f"it is {word}")

    def bench(*answers: UserAnswer) -> tuple[list[str], Bench, Person]:
        person = Person(*answers)
        tool = a_tool("sh", Effect.EXECUTE, run=run, parameters={"type": "object"})
        made = Bench(tmp_path, tool, policy=policy, approver=person)
        return made.said(call("1", "sh", {"command": "touch a"})), made, person

    said, asked, person = bench(yes(Choice.MODIFY, content="touch b"), yes())
    assert (said, ran) == (["ran"], ["touch b"])
    assert [question.reason for question in person.asked] == ["it is touch"] * 2
    assert asked.finished().decision is ApprovalOutcome.MODIFY
    assert json.loads(asked.finished().arguments) == {"command": "touch b"}
    ran.clear()
    said, asked, person = bench(yes(Choice.MODIFY, content="look b"))
    assert (said, ran, len(person.asked)) == (["ran"], ["look b"], 1)
    ran.clear()
    said, asked, person = bench(yes(Choice.MODIFY, content="never b"))
    assert (ran, len(person.asked)) == ([], 1)
    assert asked.finished().outcome is Outcome.DENIED


def test_a_file_that_changed_under_the_question_is_asked_about_again(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_text("a\n")
    asked: list[Confirmation] = []

    async def person(question: Confirmation) -> UserAnswer:
        asked.append(question)
        file.write_text("changed\n")
        return yes()

    Bench(tmp_path, writing(tmp_path), policy=always("ask"), approver=person).run(
        call("1", "write", {"x": "b\n"})
    )
    assert len(asked) == 2
    assert file.read_text() == "b\n"


def test_an_edit_that_cannot_be_done_fails_without_a_question(tmp_path: Path) -> None:
    def preview(arguments: JsonObject, context: ToolContext) -> tuple[Proposal, ...]:
        raise ToolFailed("0 occurrences")

    person = Person()
    tool = a_tool("t", Effect.WRITE, preview=preview)
    bench = Bench(tmp_path, tool, policy=always("ask"), approver=person)
    assert bench.said(call("1", "t")) == ["0 occurrences"]
    assert person.asked == []


def test_a_no_is_reported_to_the_model_with_the_persons_words(tmp_path: Path) -> None:
    person = Person(yes(Choice.CANCEL), yes(Choice.CANCEL, feedback="use b.txt"))
    bench = Bench(tmp_path, a_tool("t"), policy=always("ask"), approver=person)
    no = "[Operation Cancelled] Reason: User did not allow tool call"
    assert bench.said(call("1", "t"), call("2", "t")) == [no, f"{no}\nuse b.txt"]


def test_a_lasting_yes_is_remembered_and_settles_calls_that_wait(tmp_path: Path) -> None:
    kept: list[tuple[str, Choice]] = []

    def policy(*_: object) -> Ruling:
        return Ruling("allow" if kept else "ask")

    def remember(approved: ToolCall, choice: Choice) -> None:
        kept.append((approved.name, choice))

    person = Person(yes(Choice.SESSION))
    bench = Bench(tmp_path, a_tool("t"), policy=policy, approver=person, remember=remember)
    assert bench.said(call("1", "t"), call("2", "t"), call("3", "t")) == ["t:1", "t:2", "t:3"]
    assert kept == [("t", Choice.SESSION)]


@pytest.mark.parametrize(
    ("tool", "arguments", "details"),
    [
        (
            a_tool("sh", Effect.EXECUTE, parameters={}),
            {"command": "git log", "directory": "d"},
            ExecDetails(command="git log", roots=("git",), directory="d"),
        ),
        (
            a_tool("m", Effect.OTHER, parameters={}, server="s"),
            {"x": 1},
            McpDetails(server="s", tool="m", arguments='{\n  "x": 1\n}'),
        ),
        (
            a_tool("fetch", Effect.NETWORK, parameters={}),
            {"prompt": "sum https://a.example/1 up"},
            InfoDetails(prompt="sum https://a.example/1 up", urls=("https://a.example/1",)),
        ),
    ],
)
def test_each_kind_of_call_is_shown_in_its_own_way(
    tmp_path: Path, tool: Tool, arguments: JsonObject, details: Any
) -> None:
    person = Person(yes(Choice.CANCEL))
    bench = Bench(tmp_path, tool, policy=always("ask"), approver=person)
    bench.run(call("1", tool.name, arguments))
    assert person.asked[0].details == details


def hanging(started: asyncio.Event) -> Callable[..., Any]:
    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        started.set()
        await asyncio.Event().wait()
        return ToolOutput(text="never")

    return run


def test_cancelling_answers_every_open_call(tmp_path: Path) -> None:
    async def scenario() -> Message:
        started = asyncio.Event()
        bench = Bench(
            tmp_path, a_tool("read"), a_tool("hang", Effect.EXECUTE, run=hanging(started))
        )
        async with asyncio.TaskGroup() as group:
            calls = (call("1", "read"), call("2", "hang"), call("3", "read"))
            run = group.create_task(bench.scheduler.run(calls))
            await started.wait()
            bench.scheduler.cancel()
        return run.result()

    results = asyncio.run(scenario()).results
    assert [result.outcome for result in results] == [
        Outcome.DONE,
        Outcome.INTERRUPTED,
        Outcome.CANCELLED,
    ]
    cancelled = "[Operation Cancelled] Reason: Tool call cancelled by user."
    assert results[1].text.startswith(f"{cancelled}\n")
    assert results[2].text == cancelled


def test_a_run_cancelled_from_outside_still_answers_and_stays_cancelled(tmp_path: Path) -> None:
    async def scenario() -> Bench:
        started = asyncio.Event()
        bench = Bench(tmp_path, a_tool("hang", Effect.EXECUTE, run=hanging(started)))
        async with asyncio.TaskGroup() as group:
            run = group.create_task(bench.scheduler.run([call("1", "hang"), call("2", "hang")]))
            await started.wait()
            run.cancel()
        assert run.cancelled()
        return bench

    bench = asyncio.run(scenario())
    assert bench.scheduler.answers is not None
    assert [result.call_id for result in bench.scheduler.answers.results] == ["1", "2"]
    ends = [event.call_id for event in bench.events if isinstance(event, ToolFinished)]
    assert ends == ["1", "2"]


def test_questions_of_tools_wait_for_each_other(tmp_path: Path) -> None:
    asking: list[str] = []
    most = 0

    async def person(question: str, choices: tuple[str, ...]) -> str:
        nonlocal most
        asking.append(question)
        most = max(most, len(asking))
        await asyncio.sleep(0)
        asking.remove(question)
        return "fine"

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        assert context.ask is not None
        return ToolOutput(text=await context.ask(arguments["x"], ()))

    bench = Bench(tmp_path, a_tool("t", run=run), context={"ask": person})
    assert bench.said(call("1", "t"), call("2", "t")) == ["fine", "fine"]
    assert most == 1


def test_a_result_over_the_limit_is_cut_and_kept_whole_in_a_file(tmp_path: Path) -> None:
    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput(text="a" * 500 + "z" * 500)

    bench = Bench(
        tmp_path, a_tool("t", run=run), context={"settings": ToolSettings(output_limit=100)}
    )
    said = bench.said(call("c/1", "t"))[0]
    file = tmp_path / "temp" / "c_1.output"
    assert said == (
        "Output too large. Showing first 20 and last 80 characters. "
        f"For full output see: {file}\n{'a' * 20}\n\n"
        f"... [900 characters omitted] ...\n\n{'z' * 80}"
    )
    assert file.read_text() == "a" * 500 + "z" * 500


def test_no_calls_give_an_empty_message(tmp_path: Path) -> None:
    assert Bench(tmp_path).run().parts == ()


def test_asked_events_carry_the_question(tmp_path: Path) -> None:
    person = Person(yes())
    bench = Bench(tmp_path, a_tool("t"), policy=always("ask"), approver=person)
    bench.run(call("1", "t"))
    asked = [event for event in bench.events if isinstance(event, ToolAsked)]
    assert [event.confirmation for event in asked] == person.asked
    assert msgspec.json.decode(msgspec.json.encode(asked[0]), type=ToolAsked) == asked[0]


NAMES = st.sampled_from(["read", "write", "breaks", "unknown", "ask"])
TEXTS = st.sampled_from(['{"x":"a"}', "{}", '{"x":1}', '{"x":"a",}', '{"x":"a', "[]", "", "null"])
CALLS = st.lists(st.tuples(st.sampled_from("123"), NAMES, TEXTS, st.booleans()), max_size=6)


@settings(max_examples=60)
@given(made=CALLS)
def test_each_call_gets_exactly_one_result_in_order(made: list[tuple[str, str, str, bool]]) -> None:
    async def breaks(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        raise ValueError("broken")

    def policy(call: ToolCall, *_: object) -> Ruling:
        return Ruling("ask" if call.name == "ask" else "allow")

    tools = (a_tool("read"), a_tool("write", Effect.WRITE), a_tool("breaks", run=breaks))
    bench = Bench(Path("/nowhere"), *tools, a_tool("ask"), policy=policy)
    calls = [call(id, name, text, complete=whole) for id, name, text, whole in made]
    results = bench.run(*calls).results
    assert [(one.call_id, one.name) for one in results] == [(one.id, one.name) for one in calls]
    ends = [event for event in bench.events if isinstance(event, ToolFinished)]
    assert len(ends) == len(calls)
    started = [event.call_id for event in bench.events if isinstance(event, ToolStarted)]
    assert len(started) == len(set(started))
