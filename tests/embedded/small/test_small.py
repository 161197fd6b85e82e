import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import pytest

from toolwire.embedded import small
from toolwire.embedded.small.fitting import fit
from toolwire.embedded.small.steps import read_plan
from toolwire.embedded.small.tools import TOOLS, KnownFiles, to_real, to_shown
from toolwire.embedded.small.wording import forbidden
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Message, Outcome, Part, Text, ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec
from toolwire.tools.registry import builtins

MAIN = "a = 1\nif a:\n    print(a)\n"
PROJECT = KnownFiles(
    root="/home/me/app",
    files=("main.py", "src/a.py"),
    folders=("src",),
    text={"main.py": MAIN, "src/a.py": "b = 2\n"}.get,
)
OFFERED = {name for name, tool in TOOLS.items() if not tool.planned}
"""What a command may use."""
BUILT_IN = builtins().specs()


class Model:
    """Says the given texts in turn and remembers what it was asked; every request is of a kind."""

    def __init__(self, *texts: str, kind: str = '{"kind": "command"}') -> None:
        self._texts = iter(texts)
        self._kind = kind
        self.asked: list[ModelRequest] = []
        self.kinds: list[ModelRequest] = []

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        assert request.output is not None or not request.tools
        if request.output is not None and request.output.name == "kind":
            self.kinds.append(request)
            text = self._kind
        else:
            self.asked.append(request)
            text = next(self._texts)
        for at in range(0, len(text), 7):
            yield TextDelta(text[at : at + 7])
        yield Finished(reason=StopReason.END, usage=Usage(input=10, output=2))


def user(*parts: Part | str) -> Message:
    made = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Message(role="user", parts=made)


def called(name: str, arguments: dict[str, Any], id: str = "c1") -> Message:
    call = ToolCall(id=id, name=name, arguments=json.dumps(arguments))
    return Message(role="assistant", parts=(call,))


def result(text: str, id: str = "c1") -> Message:
    return user(ToolResult(call_id=id, parts=(Text(text),)))


def request(*messages: Message, tools: Sequence[ToolSpec] | None = None) -> ModelRequest:
    offered = tuple(BUILT_IN if tools is None else tools)
    return ModelRequest(
        model="m", messages=messages, system=(Text("A long prompt"),), tools=offered
    )


def ask(model: Model, asked: ModelRequest, project: KnownFiles = PROJECT) -> list[ModelEvent]:
    ids = count(1)

    async def go() -> list[ModelEvent]:
        wrapped = small.wrap(model, lambda: f"id{next(ids)}", lambda: project)
        return [event async for event in wrapped(asked)]

    return asyncio.run(go())


def branches(sent: ModelRequest) -> dict[str, Any]:
    """The arguments' schema of each call that the response schema allows."""
    assert sent.output is not None
    assert sent.output.schema is not None
    schema = sent.output.schema
    found: dict[str, Any] = {}
    for branch in schema.get("anyOf", [schema]):
        members = branch["properties"]
        name = members["tool"]["const"] if "tool" in members else "reply"
        found[name] = members.get("arguments", {}).get("properties")
    return found


def test_a_short_call_becomes_a_real_one():
    model = Model('{"tool": "read_file", "arguments": {"path": "src/a.py"}}')
    events = ask(model, request(user("show a")))
    assert events == [
        ToolCallStarted("id1", "read_file", made_id=True),
        ToolCallDelta("id1", '{"absolute_path":"/home/me/app/src/a.py"}'),
        ToolCallEnded("id1"),
        Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=10, output=4)),
    ]


def test_a_cut_call_stays_what_the_model_wrote():
    model = Model('{"tool": "write_file", "arguments": {"path": "b.py", "con')
    events = ask(model, request(user("write b")))
    assert ToolCallDelta("id1", '{"path": "b.py", "con') in events
    assert ToolCallEnded("id1", complete=False) in events


def test_only_a_few_tools_are_offered_and_foreign_ones_stay():
    own = ToolSpec(name="deploy", description="Ship it.", parameters={})
    model = Model('{"reply": "hi"}')
    ask(model, request(user("hello"), tools=(*BUILT_IN, own)))
    assert set(branches(model.asked[0])) == {*OFFERED, "deploy", "reply"}


def test_paths_that_exist_are_the_only_choices_for_reading():
    model = Model('{"reply": "hi"}')
    ask(model, request(user("hello")))
    offered = branches(model.asked[0])
    assert offered["read_file"]["path"]["enum"] == ["main.py", "src/a.py"]
    assert offered["list_directory"]["path"]["enum"] == [".", "src"]


@pytest.mark.parametrize(
    "project",
    [
        KnownFiles(root="/r", files=("a",), more=True),
        KnownFiles(root="/r", files=tuple(f"f{n}" for n in range(201))),
        KnownFiles(root="/r"),
    ],
)
def test_in_a_large_or_empty_project_any_path_may_be_written(project: KnownFiles):
    model = Model('{"reply": "hi"}')
    ask(model, request(user("hello")), project)
    assert branches(model.asked[0])["read_file"]["path"] == {"type": "string"}


def test_the_beginning_is_the_same_in_every_project_and_at_every_step():
    model = Model(*['{"reply": "hi"}'] * 3)
    ask(model, request(user("hello")))
    ask(model, request(user("other")), KnownFiles(root="/elsewhere", files=("x.c",)))
    steps = [called("glob", {"pattern": "*"}, f"c{n}") for n in range(9)]
    answers = [result("nothing", f"c{n}") for n in range(9)]
    talk = [message for pair in zip(steps, answers, strict=True) for message in pair]
    ask(model, request(user("go"), *talk))
    systems = {sent.system for sent in model.asked}
    assert len(systems) == 1
    assert "/home/me" not in systems.pop()[0].text


def test_what_was_sent_before_is_sent_again_byte_for_byte():
    model = Model('{"reply": "1"}', '{"reply": "2"}')
    grounds = iter(
        (PROJECT, KnownFiles(root="/home/me/app", files=("main.py", "src/a.py", "new.py")))
    )
    wrapped = small.wrap(model, lambda: "id", lambda: next(grounds))

    async def go(asked: ModelRequest) -> None:
        async for _ in wrapped(asked):
            pass

    first = request(user("go on with new.py"))
    step = called("write_file", {"file_path": "/home/me/app/new.py", "content": ""})
    asyncio.run(go(first))
    asyncio.run(go(request(*first.messages, step, result("Successfully wrote"))))
    before, after = model.asked
    assert after.messages[: len(before.messages)] == before.messages
    assert branches(after)["read_file"]["path"]["enum"][-1] == "new.py"


def test_the_first_request_names_the_files_and_a_result_names_the_request():
    model = Model('{"reply": "hi"}')
    step = called("read_file", {"absolute_path": "/home/me/app/main.py"})
    ask(model, request(user("what is main?"), step, result("see /home/me/app/src/a.py")))
    first, call, answer = model.asked[0].messages
    assert first.text == "Files: main.py, src/a.py\n\nRequest: what is main?"
    assert call.text == '{"tool": "read_file", "arguments": {"path":"main.py"}}'
    assert answer.text == (
        "Result of read_file:\n(1 lines)\nsee src/a.py\n\n(The request was: what is main?\n"
        "If this answers the whole request, reply with all facts that it asks for: values, "
        "names and numbers, and the file.)"
    )


def test_a_long_result_is_cut_and_the_cut_is_reported_to_both():
    model = Model('{"reply": "hi"}')
    step = called("read_file", {"absolute_path": "/home/me/app/main.py"})
    events = ask(model, request(user("read"), step, result("a" * 1000 + "b" * 1000)))
    heard = model.asked[0].messages[-1].text
    assert "[… 400 characters left out here …]" in heard
    assert len(heard) < 1850
    assert events[0] == Notice(
        "result_cut", "400 characters of the result of read_file were left out for this small model"
    )


def searched(times: int) -> list[Message]:
    talk: list[Message] = []
    for number in range(times):
        talk.append(called("search_file_content", {"pattern": "TODO"}, f"c{number}"))
        talk.append(result("none", f"c{number}"))
    return talk


def test_a_call_made_twice_takes_its_tool_away_and_made_thrice_leaves_only_the_reply():
    model = Model(*['{"reply": "none"}'] * 3)
    for times in (1, 2, 3):
        ask(model, request(user("find TODO"), *searched(times)))
    once, twice, thrice = (set(branches(sent)) for sent in model.asked)
    assert once == {*OFFERED, "reply"}
    assert twice == once - {"search_file_content"}
    assert thrice == {"reply"}
    assert len({sent.system for sent in model.asked}) == 1


def test_a_new_request_begins_anew():
    model = Model('{"reply": "none"}')
    ask(model, request(user("find TODO"), *searched(3), user("and now?")))
    assert set(branches(model.asked[0])) == {*OFFERED, "reply"}


def test_after_a_failure_another_way_is_asked_for():
    model = Model('{"reply": "no"}')
    failed = user(ToolResult(call_id="c1", parts=(Text("no such file"),), is_error=True))
    ask(model, request(user("read"), called("glob", {"pattern": "x"}), failed))
    assert model.asked[0].messages[-1].text.endswith("That did not work. Do it another way.)")


def test_a_conversation_without_tools_goes_as_it_is():
    model = Model("plain words")
    asked = request(user("sum up"), tools=())
    assert isinstance(ask(model, asked)[-1], Finished)
    assert model.asked == [asked]
    assert model.kinds == []


@pytest.mark.parametrize("name", TOOLS)
def test_every_short_tool_is_the_real_one_in_other_words(name: str):
    spec = next(spec for spec in BUILT_IN if spec.name == name)
    short = {argument.shown: "src/a.py" for argument in TOOLS[name].arguments}
    made = to_real(name, dict(short), KnownFiles(root="/r"))
    assert set(spec.parameters["required"]) <= set(made) <= set(spec.parameters["properties"])
    assert to_shown(name, made, "/r") == short


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (".", "/r"),
        ("./", "/r"),
        ("a.py", "/r/a.py"),
        ("./a.py", "/r/a.py"),
        ("src/", "/r/src"),
        ("/r/a.py", "/r/a.py"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_paths_are_meant_from_the_root(written: str, meant: str):
    assert to_real("list_directory", {"path": written}, KnownFiles(root="/r")) == {"path": meant}


def test_every_example_is_an_answer_that_some_question_allows():
    told = fit(request(user("x")), PROJECT, listed=PROJECT).instructions
    lines = [line for line in told.partition("Examples:")[2].splitlines() if line[:1] == "{"]
    assert len(lines) > 12
    for line in lines:
        value = json.loads(line)
        if "tool" in value:
            shown = TOOLS[value["tool"]]
            assert set(value["arguments"]) == {argument.shown for argument in shown.arguments}
        elif "steps" in value:
            assert read_plan(line).steps
        else:
            assert {*value} < {"reply", "changes", "add", "text"}
    assert re.search(r"\{\w+\}", told) is None


def test_no_name_in_the_instructions_can_be_a_file_or_a_command_that_changes_one():
    told = fit(request(user("x")), PROJECT, listed=PROJECT).instructions
    assert re.search(r"\b(?:rm|mv|cp|dd)\b", told) is None
    assert re.findall(r"[\w/-]+\.(?:py|js|md|txt|csv|ini|sh|log|css|json)\b", told) == []
    for command in re.findall(r'"command": "([^"]+)"', told):
        assert command.startswith(("git log", "ruff check")) or forbidden(
            command, "run it", PROJECT
        )


def test_examples_of_tools_that_are_not_offered_are_left_out():
    some = tuple(spec for spec in BUILT_IN if spec.name in ("glob", "read_file"))
    told = fit(request(user("x"), tools=some), PROJECT, listed=PROJECT).instructions
    assert "run_shell_command" not in told
    assert '{"tool": "glob"' in told


READ_MAIN = called("read_file", {"absolute_path": "/home/me/app/main.py"})


def test_the_kind_of_a_request_is_asked_once_behind_the_same_words():
    model = Model(*['{"reply": "hi"}'] * 3)
    wrapped = small.wrap(model, lambda: "id", lambda: PROJECT)

    async def go(*messages: Message) -> None:
        async for _ in wrapped(request(*messages)):
            pass

    said = Message(role="assistant", parts=(Text("hi"),))
    asyncio.run(go(user("one")))
    asyncio.run(go(user("one"), READ_MAIN, result(MAIN)))
    asyncio.run(go(user("one"), said, user("two")))
    assert len(model.kinds) == 2
    for kind, sent in zip(model.kinds, (model.asked[0], model.asked[2]), strict=True):
        assert kind.system == sent.system
        assert kind.messages[:-1] == sent.messages[:-1]
        assert kind.messages[-1].text.startswith(sent.messages[-1].text)


def test_a_question_is_looked_at_and_talk_is_not():
    model = Model('{"tool": "glob", "arguments": {"pattern": "*"}}', kind='{"kind": "question"}')
    ask(model, request(user("how is the code organised?")))
    assert "reply" not in branches(model.asked[0])
    talk = Model('{"reply": "hi"}', kind='{"kind": "talk"}')
    ask(talk, request(user("hello")))
    assert set(branches(talk.asked[0])) == {"reply"}


def test_a_question_gets_neither_the_shell_nor_a_tool_that_writes():
    model = Model('{"reply": "1"}', kind='{"kind": "question"}')
    ask(model, request(user("what is a?"), READ_MAIN, result(MAIN)))
    assert set(branches(model.asked[0])) == OFFERED - {"run_shell_command"} | {"reply"}


@pytest.mark.parametrize("kind", ["", "what?", '{"kind": "poem"}', "[]"])
def test_a_kind_that_cannot_be_read_is_a_question(kind: str):
    model = Model('{"reply": "hi"}', kind=kind)
    ask(model, request(user("go"), READ_MAIN, result(MAIN)))
    assert set(branches(model.asked[0])) == OFFERED - {"run_shell_command"} | {"reply"}


def shell(command: str) -> str:
    return json.dumps({"tool": "run_shell_command", "arguments": {"command": command}})


def test_a_command_that_the_request_does_not_name_is_never_proposed():
    model = Model(shell("rm -r src"), shell("mv main.py b.py"), '{"reply": "I deleted src."}')
    events = ask(model, request(user("run the tests")))
    assert not any(isinstance(event, ToolCallStarted) for event in events)
    assert set(branches(model.asked[2])) == {"reply"}
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == (
        "Nothing was changed: no call changed a file."
    )


def test_a_refused_call_is_reported_without_the_model():
    run = called("run_shell_command", {"command": "python3 main.py"})
    denied = user(ToolResult(call_id="c1", is_error=True, outcome=Outcome.DENIED))
    model = Model()
    events = ask(model, request(user("run main.py"), run, denied))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == (
        "`python3 main.py` was not allowed and did not run, so I stopped there."
    )
    assert model.asked == []


def test_files_that_a_question_names_are_read_without_a_word_of_the_model():
    model = Model(kind='{"kind": "question"}')
    events = ask(model, request(user("compare main.py with src/a.py")))
    read = [json.loads(event.arguments) for event in events if isinstance(event, ToolCallDelta)]
    assert [it["absolute_path"] for it in read] == ["/home/me/app/main.py", "/home/me/app/src/a.py"]
    assert model.asked == []
    assert events[-1] == Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=10, output=2))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a", "a"),
        ("nowhere", "nowhere"),
        ("a = 1", "a = 1"),
        ("print or a", "print"),
        ("if a", "if a"),
        ("IF  a", "IF  a"),
        ("of it", "of|it"),
        ("x.* y", "x.* y"),
    ],
)
def test_words_that_stand_nowhere_together_are_looked_for_one_by_one(written: str, meant: str):
    assert to_real("search_file_content", {"pattern": written}, PROJECT) == {"pattern": meant}


def test_a_reply_that_goes_on_and_on_ends_with_a_sentence():
    sentence = "It is written in Python 3.11. "
    model = Model(json.dumps({"reply": sentence * 40}))
    events = ask(model, request(user("go")))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == (sentence * 14).strip()
    assert [type(event) for event in events[-2:]] == [Notice, Finished]
    assert events[-1] == Finished(reason=StopReason.END, usage=Usage(input=10, output=2))


def test_a_long_list_of_files_is_summarised_by_folder():
    paths = [f"/home/me/app/src/part{n}.py" for n in range(200)] + ["/home/me/app/main.py"]
    head = 'Found 201 file(s) matching "**/*.py" within /home/me/app, sorted by time:'
    model = Model('{"reply": "hi"}')
    step = called("glob", {"pattern": "**/*.py"})
    events = ask(model, request(user("go"), step, result("\n".join([head, *paths]))))
    told = model.asked[0].messages[-1].text.partition("\n\n(The request")[0]
    assert told == (
        'Result of glob:\nFound 201 file(s) matching "**/*.py", by folder:\n'
        "src/ (200): such as part0.py, part1.py, part10.py\n"
        "the top folder (1): such as main.py"
    )
    assert isinstance(events[0], Notice)


def test_a_call_that_was_made_is_not_made_again():
    again = json.dumps({"tool": "search_file_content", "arguments": {"pattern": "TODO"}})
    model = Model(again, '{"reply": "There is none."}', kind='{"kind": "question"}')
    look = Message(
        role="assistant",
        parts=(ToolCall(id="c1", name="search_file_content", arguments='{"pattern":"TODO"}'),),
    )
    events = ask(model, request(user("which TODO is there?"), look, result("a.py: TODO x")))
    assert not any(isinstance(event, ToolCallStarted) for event in events)
    assert "search_file_content" not in branches(model.asked[1])


def test_a_folder_that_a_question_names_is_listed_first():
    model = Model(kind='{"kind": "question"}')
    events = ask(model, request(user("can we do without src/")))
    assert ToolCallStarted("id1", "list_directory", made_id=True) in events
    assert ToolCallDelta("id1", '{"path":"/home/me/app/src"}') in events


def test_a_setting_that_is_nowhere_is_not_given_a_value():
    model = Model(kind='{"kind": "question"}')
    asked = request(user("which page_limit does main.py set"), READ_MAIN, result(MAIN))
    events = ask(model, asked)
    assert TextDelta("page_limit does not occur in any file of the project.") in events
    assert model.asked == []


def test_a_script_of_the_project_is_started_by_its_interpreter():
    run = to_real("run_shell_command", {"command": "src/a.py 5"}, PROJECT)
    assert run == {"command": "python3 src/a.py 5"}
    assert to_real("run_shell_command", {"command": "ls"}, PROJECT) == {"command": "ls"}
