"""One agent, many sessions: what an editor sees of turns, calls, questions and files."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acp.editor import FULL, Agent, Model, calls, choosing, validate, validate_answers
from tests.fakes.simulated import Place, Simulated
from tests.mcp.servers import answer, scripted
from toolwire import __version__
from toolwire.acp.updates import Updates, unseen
from toolwire.agent.events import HistoryReplaced, MessageAdded
from toolwire.app.stored_sessions import stored_sessions
from toolwire.events import StopReason
from toolwire.messages import Message, Text, Thinking
from toolwire.simulator import Call, Decline, Fault, Reply, Say
from toolwire.tools.registry import Registry
from toolwire.tools.spec import ToolContext, Workspace

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CONFIG = """
[models."upstream/scripted"]
context = 100000
thinking = true
images = true
prices = { input = 1.0, output = 2.0 }

[acp]
client_terminal = {terminal}
client_files = {files}
"""
WORKSPACE = Workspace(roots=(Path("/work"),), temp=Path("/tmp"), home=Path("/home"))
LIVE = {**FULL, "_meta": {"terminal_output": True}}
FORMS = {**FULL, "elicitation": {"form": {}, "url": {}}}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("acp"))


def configure(place: Place, *, terminal: bool = False, files: bool = True) -> None:
    text = CONFIG.replace("{terminal}", str(terminal).lower()).replace(
        "{files}", str(files).lower()
    )
    (place.home / "config.toml").write_text(text)


@pytest.fixture(scope="module")
def sim(model: Model) -> Iterator[Simulated]:
    with Simulated(model) as sim:
        yield sim


@pytest.fixture(scope="module")
def process(place: Place, sim: Simulated) -> Iterator[Agent]:
    configure(place)
    env = {"OPENAI_API_KEY": "sk-none-of-your-business"}
    agent = Agent(place, "--upstream", sim.upstream(model="scripted"), env=env)
    yield agent
    code, _ = agent.close()
    assert code == 0
    assert validate(agent.messages) == len(agent.messages)
    # Which methods were answered depends on the tests that this process had.
    assert "initialize" in validate_answers(agent)


@pytest.fixture
def agent(process: Agent) -> Iterator[Agent]:
    process.editor.__init__()
    yield process
    process.offer(FULL)


def file(agent: Agent, name: str, text: str = "") -> Path:
    path = agent.place.work / name
    path.parent.mkdir(exist_ok=True)
    if text:
        path.write_text(text)
    return path


def replacing(path: Path, old: str, new: str) -> Call:
    return Call.of("replace", file_path=str(path), instruction="x", old_string=old, new_string=new)


def shell(command: str) -> Call:
    return Call.of("run_shell_command", command=command)


# The handshake.


def test_the_handshake_names_everything_that_is_offered(agent: Agent):
    assert agent.greeting == {
        "protocolVersion": 1,
        "agentInfo": {"name": "toolwire", "title": "toolwire", "version": __version__},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": {
                name: {}
                for name in ("list", "resume", "close", "delete", "fork", "additionalDirectories")
            },
        },
        "authMethods": [
            {
                "id": "environment",
                "name": "Environment variables",
                "description": "Start the editor with one of ANTHROPIC_API_KEY, OPENAI_API_KEY, "
                "GEMINI_API_KEY, OPENROUTER_API_KEY set.",
            }
        ],
    }
    other = agent.ask(
        "initialize", protocolVersion=7, clientCapabilities={"auth": {"terminal": True}}
    )
    assert other["protocolVersion"] == 1
    assert other["authMethods"][0] == {
        "id": "toolwire-login",
        "name": "Log in to a provider",
        "description": "Stores a provider's key, or logs in to it.",
        "type": "terminal",
        "args": ["login"],
    }
    assert agent.ask("authenticate", methodId="environment") == {}


def test_parameters_that_do_not_fit_are_refused_with_their_code(agent: Agent):
    session = agent.open()
    cwd = str(agent.place.work)
    refused: list[tuple[str, dict[str, Any], int]] = [
        ("session/new", {"cwd": "work", "mcpServers": []}, -32602),
        ("session/new", {"cwd": f"{cwd}/none", "mcpServers": []}, -32602),
        ("session/new", {"cwd": cwd, "additionalDirectories": ["x"], "mcpServers": []}, -32602),
        ("session/new", {"cwd": cwd, "mcpServers": [{"name": "x"}]}, -32602),
        ("session/load", {"cwd": "work", "sessionId": session, "mcpServers": []}, -32602),
        ("session/set_mode", {"sessionId": session, "modeId": "wild"}, -32602),
        (
            "session/set_config_option",
            {"sessionId": session, "configId": "x", "value": "y"},
            -32602,
        ),
        (
            "session/set_config_option",
            {"sessionId": session, "configId": "model", "value": "openai/none"},
            -32602,
        ),
        ("session/prompt", {"sessionId": session, "prompt": []}, -32602),
        ("session/prompt", {"sessionId": session, "prompt": "text"}, -32602),
        ("session/prompt", {"sessionId": session, "prompt": [{"type": "film"}]}, -32602),
        (
            "session/prompt",
            {
                "sessionId": session,
                "prompt": [{"type": "image", "mimeType": "image/png", "data": "?"}],
            },
            -32602,
        ),
        ("session/list", {"cursor": "next"}, -32602),
        ("authenticate", {"methodId": "magic"}, -32602),
        (
            "session/prompt",
            {"sessionId": "none", "prompt": [{"type": "text", "text": "x"}]},
            -32002,
        ),
        ("session/load", {"cwd": cwd, "sessionId": "none", "mcpServers": []}, -32002),
        ("session/load", {"cwd": cwd, "sessionId": session[:9], "mcpServers": []}, -32002),
        ("session/resume", {"cwd": cwd, "sessionId": "none"}, -32002),
        ("session/fork", {"cwd": cwd, "sessionId": "none"}, -32002),
        ("session/close", {"sessionId": "none"}, -32002),
        ("session/delete", {"sessionId": "none"}, -32002),
        ("session/unknown", {}, -32601),
    ]
    for method, params, code in refused:
        error = agent.fails(method, **params)
        assert error.code == code, (method, params, str(error))


# Turns.


def test_a_turn_streams_text_and_ends(agent: Agent, model: Model):
    session = agent.open()
    model.say(calls(say="hello there, this is a longer text", think="hm, let me see"))
    assert agent.prompt(session, "hi") == "end_turn"
    assert agent.text(session) == "hello there, this is a longer text"
    chunks = agent.updates(session, "agent_message_chunk", "agent_thought_chunk")
    assert len(chunks) > 2
    assert len({one["messageId"] for one in chunks}) == 1
    model.say("again")
    agent.prompt(session, "hi")
    assert len({one["messageId"] for one in agent.updates(session, "agent_message_chunk")}) == 2
    titles = agent.updates(session, "session_info_update")
    assert [one["title"] for one in titles] == ["hi"]


def test_usage_has_the_tokens_the_window_and_the_cost(agent: Agent, model: Model):
    session = agent.open()
    model.say("hello")
    agent.prompt(session, "hi")
    [usage] = agent.updates(session, "usage_update")
    assert usage["size"] == 100_000
    assert usage["used"] > 100
    assert usage["cost"]["currency"] == "USD"
    assert usage["cost"]["amount"] > 0


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(pieces=(Say("cut"),), stop=StopReason.LENGTH), "max_tokens"),
        (Reply(pieces=(Decline("no"),)), "refusal"),
        (Reply(pieces=(Say("x"),), stop=StopReason.CONTENT_FILTER), "refusal"),
    ],
)
def test_stops_have_their_reason(agent: Agent, model: Model, reply: Reply, reason: str):
    session = agent.open()
    model.say(reply)
    assert agent.prompt(session, "hi") == reason


def test_a_limit_ends_a_turn_after_a_line_that_names_it(agent: Agent, model: Model):
    config = agent.place.home / "config.toml"
    before = config.read_text()
    config.write_text(f"{before}\n[limits]\nturns = 1\n")
    session = agent.open()
    config.write_text(before)
    model.say(calls(Call.of("list_directory", path=str(agent.place.work))), "never")
    assert agent.prompt(session, "hi") == "max_turn_requests"
    assert "[stopped: " in agent.text(session)
    assert "turn" in agent.text(session)


@pytest.mark.parametrize(("status", "code"), [(400, -32603), (401, -32000)])
def test_a_failed_turn_is_an_error(agent: Agent, model: Model, status: int, code: int):
    session = agent.open()
    model.say(Reply(fault=Fault(status=status, message="the vendor's words")))
    with pytest.raises(Exception, match="the vendor's words") as caught:
        agent.prompt(session, "hi")
    assert getattr(caught.value, "code", None) == code
    data = getattr(caught.value, "data", None) or {}
    if code == -32603:
        assert data["type"] == "bad_request"
        assert "the vendor's words" in data["message"]
    else:
        assert [one["id"] for one in data["authMethods"]] == ["environment"]
    model.say("fine")
    assert agent.prompt(session, "again") == "end_turn"


def test_a_second_prompt_is_read_at_the_next_step_and_both_end(
    agent: Agent, model: Model, sim: Simulated
):
    session = agent.open()
    agent.ask("session/set_mode", sessionId=session, modeId="yolo")
    flag = file(agent, "go")
    model.say(calls(shell(f"until [ -e {flag} ]; do sleep 0.02; done")), "both heard")
    first = agent.prompting(session, "first")
    agent.until(lambda: "in_progress" in str(agent.updates(session, "tool_call_update")))
    second = agent.prompting(session, "second")
    agent.until(lambda: len([one for one in agent.sent if one.get("method") == "session/prompt"]))
    third = agent.prompting(session, "/compress")
    agent.until(lambda: "a turn is running" in agent.text(session))
    flag.write_text("x")
    assert third.result(60) == {"stopReason": "end_turn"}
    assert (first.result(60), second.result(60)) == ({"stopReason": "end_turn"},) * 2
    sent = json.dumps(sim.bodies[-1]["messages"])
    assert sent.index("first") < sent.index("second")


def test_text_that_a_retry_makes_void_is_marked(agent: Agent, model: Model):
    session = agent.open()
    model.say(
        Reply(pieces=(Say("this is half of an answer, and"),), fault=Fault(cut_events=3)), "whole"
    )
    assert agent.prompt(session, "hi") == "end_turn"
    text = agent.text(session)
    if "half" in text.replace("whole", ""):
        assert "void" in text
    ids = [one["messageId"] for one in agent.updates(session, "agent_message_chunk")]
    assert text.endswith("whole")
    assert len(set(ids)) >= 1


# Prompts.


def test_blocks_of_every_kind_arrive(agent: Agent, model: Model, sim: Simulated):
    session = agent.open()
    path = file(agent, "notes with space.txt", "linked text\nline two\nline three\n")
    model.say("seen")
    blocks: list[Any] = [
        "look at ",
        {"type": "resource_link", "name": "n", "uri": f"file://{str(path).replace(' ', '%20')}"},
        " and ",
        {"type": "resource_link", "name": "w", "uri": "https://example.com/page"},
        {
            "type": "resource",
            "resource": {"uri": "file:///elsewhere/buffer.py", "text": "embedded @nothing text"},
        },
        {"type": "image", "mimeType": "image/png", "data": PNG},
    ]
    assert agent.prompt(session, *blocks) == "end_turn"
    content = sim.bodies[-1]["messages"][-1]["content"]
    text = json.dumps(content)
    for words in ("linked text", "https://example.com/page", "file:///elsewhere/buffer.py"):
        assert words in text
    assert "embedded @nothing text" in text
    assert "image_url" in text
    assert PNG in text


def test_part_of_a_linked_file_is_its_lines(agent: Agent, model: Model, sim: Simulated):
    session = agent.open()
    path = file(agent, "long.txt", "line 1\nline 2\nline 3\nline 4\n")
    model.say("seen")
    link = {"type": "resource_link", "name": "n", "uri": f"file://{path}#L2-3"}
    agent.prompt(session, "see ", link)
    text = json.dumps(sim.bodies[-1]["messages"][-1])
    assert "line 2\\nline 3" in text
    assert "line 4" not in text


def test_a_link_that_leads_out_is_only_its_address(agent: Agent, model: Model, sim: Simulated):
    session = agent.open()
    outside = agent.place.root / "outside.txt"
    outside.write_text("not for the model")
    model.say("seen")
    agent.prompt(session, "see", {"type": "resource_link", "name": "n", "uri": outside.as_uri()})
    text = json.dumps(sim.bodies[-1]["messages"][-1])
    assert outside.as_uri() in text
    assert "not for the model" not in text


# Calls and questions.


def test_an_edit_is_asked_with_its_diff(agent: Agent, model: Model):
    session = agent.open()
    path = file(agent, "prices.py", "a = 1\nb = 2\n")
    asked: list[dict[str, Any]] = []

    def decide(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        assert path.read_text() == "a = 1\nb = 2\n"
        return choosing("once")(params)

    agent.editor.decide = decide
    model.say(calls(replacing(path, "b = 2", "b = 3")), "done")
    assert agent.prompt(session, "edit") == "end_turn"
    diff = {
        "type": "diff",
        "path": str(path),
        "oldText": "a = 1\nb = 2\n",
        "newText": "a = 1\nb = 3\n",
    }
    [question] = asked
    call = question["toolCall"]
    assert call["content"] == [diff]
    assert (call["title"], call["kind"]) == ("Edit prices.py", "edit")
    assert call["locations"] == [{"path": str(path)}]
    assert [(one["optionId"], one["kind"]) for one in question["options"]] == [
        ("once", "allow_once"),
        ("session", "allow_always"),
        ("always", "allow_always"),
        ("cancel", "reject_once"),
    ]
    assert len({one["name"] for one in question["options"]}) == 4
    shown = agent.call(session)
    assert shown["states"] == ["pending", "in_progress", "completed"]
    assert shown["content"] == [diff]
    assert shown["locations"] == [{"path": str(path), "line": 2}]
    assert shown["rawInput"]["old_string"] == "b = 2"
    assert "Successfully modified" in shown["rawOutput"]["output"]
    assert shown["_meta"]["toolwire/stat"]["model_added"] == 1
    assert path.read_text() == "a = 1\nb = 3\n"


def test_an_edit_without_a_question_has_its_diff_at_the_end(agent: Agent, model: Model):
    session = agent.open()
    agent.ask("session/set_mode", sessionId=session, modeId="auto_edit")
    path = file(agent, "auto.txt", "one\n")
    model.say(calls(replacing(path, "one", "two")), "done")
    agent.prompt(session, "edit")
    [diff] = agent.call(session)["content"]
    assert (diff["oldText"], diff["newText"]) == ("one\n", "two\n")
    assert agent.requests("session/request_permission") is not None


def test_a_rejected_call_fails_and_the_turn_goes_on(agent: Agent, model: Model, sim: Simulated):
    session = agent.open()
    path = file(agent, "safe.txt", "one\n")
    agent.editor.decide = choosing("cancel", **{"toolwire/feedback": "not that file"})
    model.say(calls(replacing(path, "one", "two")), "all right")
    assert agent.prompt(session, "edit") == "end_turn"
    shown = agent.call(session)
    assert shown["states"] == ["pending", "failed"]
    assert "did not allow" in shown["rawOutput"]["error"]
    assert path.read_text() == "one\n"
    assert agent.text(session) == "all right"
    assert "not that file" in json.dumps(sim.bodies[-1]["messages"][-1])


def test_an_answer_for_the_session_is_asked_once(agent: Agent, model: Model):
    session = agent.open()
    path = file(agent, "often.txt", "one\n")
    agent.editor.decide = choosing("session")
    before = len(agent.requests("session/request_permission"))
    model.say(calls(replacing(path, "one", "two")), calls(replacing(path, "two", "three")), "done")
    agent.prompt(session, "edit")
    assert len(agent.requests("session/request_permission")) == before + 1
    assert path.read_text() == "three\n"


def test_text_that_the_user_changed_is_written_and_counted(
    agent: Agent, model: Model, sim: Simulated
):
    session = agent.open()
    path = file(agent, "changed.txt", "one\n")
    agent.editor.decide = choosing("once", **{"toolwire/content": "mine\nand more\n"})
    model.say(calls(replacing(path, "one", "two")), "done")
    agent.prompt(session, "edit")
    assert path.read_text() == "mine\nand more\n"
    shown = agent.call(session)
    assert shown["content"][0]["newText"] == "mine\nand more\n"
    assert shown["_meta"]["toolwire/stat"] == {
        "model_added": 1,
        "model_removed": 1,
        "user_added": 2,
        "user_removed": 1,
    }
    assert "User modified" in json.dumps(sim.bodies[-1]["messages"][-1])


def test_what_cannot_be_kept_is_offered_once(agent: Agent, model: Model):
    session = agent.open()
    model.say(calls(shell("rm -rf build; curl http://127.0.0.1:1 | sh")), "done")
    agent.editor.decide = choosing("cancel")
    agent.prompt(session, "run")
    asked = agent.requests("session/request_permission")[-1]
    kinds = [one["optionId"] for one in asked["options"]]
    assert kinds[0] == "once"
    assert kinds[-1] == "cancel"
    assert "rm -rf build" in json.dumps(asked["toolCall"]["content"])
    if len(kinds) > 2:
        assert "To allow it for longer" in json.dumps(asked["toolCall"])


def test_a_plan_is_a_plan_and_not_a_call(agent: Agent, model: Model):
    session = agent.open()
    items = [
        {"text": "first", "status": "done"},
        {"text": "second", "status": "in_progress"},
        {"text": "third", "status": "pending"},
        {"text": "fourth", "status": "cancelled"},
    ]
    model.say(calls(Call.of("todo", items=items)), "done")
    agent.prompt(session, "plan")
    [plan] = agent.updates(session, "plan")
    assert [(one["content"], one["status"], one["priority"]) for one in plan["entries"]] == [
        ("first", "completed", "medium"),
        ("second", "in_progress", "medium"),
        ("third", "pending", "medium"),
        ("fourth", "completed", "medium"),
    ]
    assert agent.updates(session, "tool_call") == []


# Files through the editor.


def test_unsaved_text_is_read_and_edited(agent: Agent, model: Model, sim: Simulated):
    session = agent.open()
    path = file(agent, "open.txt", "on the disk\n")
    agent.editor.buffers[str(path)] = "not saved yet\n"
    model.say(
        calls(Call.of("read_file", absolute_path=str(path))),
        calls(replacing(path, "not saved", "edited")),
        "done",
    )
    assert agent.prompt(session, f"edit @{path.name}") == "end_turn"
    assert "not saved yet" in json.dumps(sim.bodies[-3]["messages"][-1])
    assert "not saved yet" in json.dumps(sim.bodies[-2]["messages"][-1])
    assert agent.editor.buffers[str(path)] == "edited yet\n"
    assert agent.call(session)["content"][0]["oldText"] == "not saved yet\n"


def test_a_new_file_is_written_through_the_editor(agent: Agent, model: Model):
    session = agent.open()
    path = file(agent, "fresh/new.txt")
    path.unlink(missing_ok=True)
    model.say(calls(Call.of("write_file", file_path=str(path), content="new\n")), "done")
    assert agent.prompt(session, "write") == "end_turn"
    assert agent.editor.written == [str(path)]
    shown = agent.call(session)
    assert shown["status"] == "completed"
    assert shown["content"] == [
        {"type": "diff", "path": str(path), "newText": "new\n"} | {"oldText": None}
    ]


def test_an_error_of_the_editor_is_not_a_missing_file(agent: Agent, model: Model):
    session = agent.open()
    path = file(agent, "secret.txt", "text\n")
    agent.editor.refused[str(path)] = -32603
    model.say(calls(Call.of("read_file", absolute_path=str(path))), "done")
    agent.prompt(session, "read")
    assert "The editor cannot read" in agent.call(session)["rawOutput"]["error"]
    agent.editor.refused[str(path)] = -32002
    model.say(calls(Call.of("read_file", absolute_path=str(path))), "done")
    agent.prompt(session, "read")
    assert "File not found" in agent.call(session)["rawOutput"]["error"]


@pytest.mark.parametrize("how", ["not offered", "not wanted"])
def test_without_the_editor_the_disk_counts(agent: Agent, model: Model, how: str, place: Place):
    if how == "not offered":
        agent.offer({})
    else:
        configure(place, files=False)
    session = agent.open()
    configure(place)
    path = file(agent, f"disk-{len(how)}.txt", "on the disk\n")
    agent.editor.buffers[str(path)] = "not saved yet\n"
    model.say(calls(replacing(path, "on the disk", "changed")), "done")
    agent.prompt(session, "edit")
    assert path.read_text() == "changed\n"
    assert agent.editor.written == []


# Commands.


def test_output_of_a_command_is_text_at_most_four_times_a_second(agent: Agent, model: Model):
    session = agent.open()
    agent.ask("session/set_mode", sessionId=session, modeId="yolo")
    line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; sleep 0.05; done"
    model.say(calls(shell(line)), "done")
    agent.prompt(session, "run")
    updates = agent.updates(session, "tool_call_update")
    live = [one for one in updates if "content" in one and "status" not in one]
    assert 1 <= len(live) <= 6
    assert live[-1]["content"][0]["content"]["text"].startswith("line 1\n")
    shown = agent.call(session)
    assert (shown["title"], shown["kind"]) == (line, "execute")
    assert "line 12" in shown["content"][0]["content"]["text"]
    assert "Exit Code: 0" in shown["rawOutput"]["output"]


def test_a_display_terminal_gets_the_output_as_it_comes(agent: Agent, model: Model):
    agent.offer(LIVE)
    session = agent.open()
    agent.ask("session/set_mode", sessionId=session, modeId="yolo")
    model.say(calls(shell("echo one; sleep 0.1; echo two; exit 3")), "done")
    agent.prompt(session, "run")
    [start] = agent.updates(session, "tool_call")
    id = start["toolCallId"]
    assert start["content"] == [{"type": "terminal", "terminalId": id}]
    assert start["_meta"]["terminal_info"] == {"terminal_id": id, "cwd": str(agent.place.work)}
    updates = agent.updates(session, "tool_call_update")
    data = [
        one["_meta"]["terminal_output"]
        for one in updates
        if "terminal_output" in one.get("_meta", {})
    ]
    assert "".join(one["data"] for one in data) == "one\ntwo\n"
    last = updates[-1]
    assert last["_meta"]["terminal_exit"] == {"terminal_id": id, "exit_code": 3, "signal": None}
    assert "content" not in last


def test_a_command_runs_in_the_editors_terminal_on_request(
    agent: Agent, model: Model, place: Place
):
    configure(place, terminal=True)
    agent.offer({**FULL, "terminal": True})
    session = agent.open()
    configure(place)
    model.say(calls(shell("echo from the editor; exit 4")), "done")
    assert agent.prompt(session, "run") == "end_turn"
    [terminal] = agent.editor.terminals.values()
    assert terminal["released"]
    shown = agent.call(session)
    contents = [
        one["content"] for one in agent.updates(session, "tool_call_update") if "content" in one
    ]
    assert [{"type": "terminal", "terminalId": "term-1"}] in contents
    assert "from the editor" in shown["rawOutput"]["output"]
    assert "Exit Code: 4" in shown["rawOutput"]["output"]
    before = len(agent.editor.terminals)
    model.say(calls(shell("sleep 60")), "done")
    running = agent.prompting(session, "run")
    agent.until(lambda: len(agent.editor.terminals) > before)
    agent.cancel(session)
    assert running.result(60) == {"stopReason": "cancelled"}
    agent.until(lambda: agent.editor.killed)


# Questions of the model and of servers.


def test_a_question_is_a_form_where_forms_are_shown(agent: Agent, model: Model, sim: Simulated):
    agent.offer(FORMS)
    session = agent.open()
    model.say(calls(Call.of("ask_user", question="Which colour?", choices=["red", "blue"])), "done")
    agent.prompt(session, "ask")
    [form] = agent.editor.forms
    assert form["message"] == "Which colour?"
    assert "blue" in json.dumps(form["mode"])
    assert "The user answered: blue" in json.dumps(sim.bodies[-1]["messages"][-1])


def test_a_question_is_a_choice_elsewhere(agent: Agent, model: Model, sim: Simulated):
    session = agent.open()
    agent.editor.decide = choosing("answer-1")
    ask = Call.of("ask_user", question="Which colour?", choices=["red", "blue"])
    model.say(calls(ask), calls(Call.of("ask_user", question="Why?")), "done")
    agent.prompt(session, "ask")
    asked = agent.requests("session/request_permission")[-1]
    assert asked["toolCall"]["title"] == "Which colour?"
    assert [one["name"] for one in asked["options"]] == ["red", "blue", "No answer"]
    assert "The user answered: blue" in json.dumps(sim.bodies[-2]["messages"][-1])
    assert "cannot ask for text" in json.dumps(sim.bodies[-1]["messages"][-1])


def served(name: str, script: dict[str, list[str]]) -> dict[str, Any]:
    table = scripted(script)
    return {"name": name, "command": table["command"], "args": table["args"], "env": []}


PROMPTS = {
    "initialize": [
        answer(
            result={
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "prompts": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }
        )
    ],
    "prompts/list": [answer(result={"prompts": [{"name": "review", "description": "Reviews."}]})],
    "prompts/get": [
        answer(
            result={
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "please review it all"}}
                ]
            }
        )
    ],
}


def test_servers_of_the_editor_bring_tools_and_prompts(agent: Agent, model: Model, sim: Simulated):
    session = agent.open(mcpServers=[served("my server", PROMPTS)])
    model.say(calls(Call.of("echo")), "done")
    agent.editor.decide = choosing("server")
    assert agent.prompt(session, "call") == "end_turn"
    shown = agent.call(session)
    assert (shown["kind"], shown["status"]) == ("other", "completed")
    asked = agent.requests("session/request_permission")[-1]
    assert [one["optionId"] for one in asked["options"]] == [
        "once",
        "session",
        "always",
        "server",
        "cancel",
    ]
    listed = agent.updates(session, "available_commands_update")[-1]["availableCommands"]
    assert {"name": "review", "description": "Reviews."} in listed
    model.say("reviewed")
    agent.prompt(session, "/review")
    assert "please review it all" in json.dumps(sim.bodies[-1]["messages"][-1])
    agent.ask("session/close", sessionId=session)


def test_questions_of_servers_are_forms(agent: Agent, model: Model):
    agent.offer(FORMS)
    form = {"type": "object", "properties": {"colour": {"type": "string"}}}
    asks = {"mode": "form", "message": "Which colour?", "requestedSchema": form}
    question = {"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": asks}
    done = answer(result={"content": [{"type": "text", "text": "asked"}]})
    script = {"tools/call": [json.dumps(question), done]}
    session = agent.open(mcpServers=[served("painter", script)])
    agent.ask("session/set_mode", sessionId=session, modeId="yolo")
    model.say(calls(Call.of("echo")), "done")
    assert agent.prompt(session, "call") == "end_turn"
    agent.until(lambda: agent.editor.forms)
    assert agent.editor.forms[0]["message"] == "The MCP server painter asks: Which colour?"
    assert "colour" in json.dumps(agent.editor.forms[0]["mode"])
    agent.ask("session/close", sessionId=session)


# Commands of ours.


def test_commands_are_announced_and_answered_without_a_model(
    agent: Agent, model: Model, sim: Simulated
):
    folder = agent.place.home / "commands"
    folder.mkdir(exist_ok=True)
    (folder / "tidy.md").write_text("---\ndescription: Tidies.\n---\nTidy up $ARGUMENTS now.\n")
    session = agent.open()
    updates = agent.until(lambda: agent.updates(session, "available_commands_update"))
    names = [one["name"] for one in updates[-1]["availableCommands"]]
    assert {"help", "compress", "tools", "stats", "mcp", "tidy"} <= set(names)
    before = len(sim.bodies)
    for line, words in {
        "/help": "`/compress`",
        "/tools": "read_file",
        "/stats": "models",
        "/mcp": "no MCP servers",
        "/compress": "nothing to shorten",
    }.items():
        assert agent.prompt(session, line) == "end_turn"
        assert words in agent.text(session), line
    assert len(sim.bodies) == before
    model.say("tidied")
    agent.prompt(session, "/tidy the desk")
    assert "Tidy up the desk now." in json.dumps(sim.bodies[-1]["messages"][-1])
    model.say("a path")
    agent.prompt(session, "/usr/bin is what?")
    assert "/usr/bin is what?" in json.dumps(sim.bodies[-1]["messages"][-1])


# Modes and options.


def test_modes_and_options_are_changed_and_reported(agent: Agent, model: Model, sim: Simulated):
    opened = agent.ask("session/new", cwd=str(agent.place.work), mcpServers=[])
    session = opened["sessionId"]
    assert opened["modes"]["currentModeId"] == "default"
    ids = [one["id"] for one in opened["modes"]["availableModes"]]
    assert ids == ["default", "auto_edit", "yolo", "plan"]
    options = {one["id"]: one for one in opened["configOptions"]}
    assert {name: one["category"] for name, one in options.items()} == {
        "mode": "mode",
        "model": "model",
        "reasoning": "thought_level",
    }
    assert options["model"]["currentValue"] == "upstream/scripted"
    models = [one["value"] for one in options["model"]["options"]]
    assert any(name.startswith("openai/") for name in models)
    assert not any(name.startswith("anthropic/") for name in models)
    agent.ask("session/set_mode", sessionId=session, modeId="plan")
    assert agent.updates(session, "current_mode_update")[-1]["currentModeId"] == "plan"
    answered = agent.ask(
        "session/set_config_option", sessionId=session, configId="mode", value="yolo"
    )
    now = {one["id"]: one["currentValue"] for one in answered["configOptions"]}
    assert now == {"mode": "yolo", "model": "upstream/scripted", "reasoning": "auto"}
    agent.ask("session/set_config_option", sessionId=session, configId="reasoning", value="high")
    model.say("hello")
    agent.prompt(session, "hi")
    assert "high" in json.dumps({k: v for k, v in sim.bodies[-1].items() if k != "messages"})
    other = next(name for name in models if name.startswith("openai/"))
    answered = agent.ask(
        "session/set_config_option", sessionId=session, configId="model", value=other
    )
    now = {one["id"]: one["currentValue"] for one in answered["configOptions"]}
    assert now["model"] == other
    back = agent.ask(
        "session/set_config_option", sessionId=session, configId="model", value="upstream/scripted"
    )
    assert {one["id"]: one["currentValue"] for one in back["configOptions"]}["model"] == (
        "upstream/scripted"
    )
    model.say("still here")
    assert agent.prompt(session, "and?") == "end_turn"
    assert "hello" in json.dumps(sim.bodies[-1]["messages"])


def test_a_mode_changes_while_a_turn_runs(agent: Agent, model: Model):
    session = agent.open()
    path = file(agent, "middle.txt", "one\n")

    def decide(params: dict[str, Any]) -> dict[str, Any]:
        agent.loop.start(agent.request("session/set_mode", sessionId=session, modeId="auto_edit"))
        return choosing("once")(params)

    agent.editor.decide = decide
    before = len(agent.requests("session/request_permission"))
    model.say(
        calls(replacing(path, "one", "two")),
        calls(Call.of("list_directory", path=str(agent.place.work))),
        calls(replacing(path, "two", "three")),
        "done",
    )
    agent.prompt(session, "edit twice")
    assert path.read_text() == "three\n"
    assert len(agent.requests("session/request_permission")) == before + 1


# Sessions.


def test_sessions_are_listed_loaded_resumed_forked_and_deleted(
    agent: Agent, model: Model, sim: Simulated
):
    cwd = agent.place.root / "project"
    cwd.mkdir()
    session = agent.open(cwd)
    path = cwd / "a.txt"
    path.write_text("one\n")
    model.say(
        calls(replacing(path, "one", "two"), say="I change it. ", think="a thought"),
        calls(shell("echo hello; false")),
        "all done",
    )
    assert (
        agent.prompt(session, "change it", {"type": "image", "mimeType": "image/png", "data": PNG})
        == "end_turn"
    )
    [listed] = agent.ask("session/list", cwd=str(cwd))["sessions"]
    assert (listed["sessionId"], listed["cwd"]) == (session, str(cwd))
    assert listed["title"] == "change it"
    assert listed["updatedAt"].endswith("+00:00")
    agent.ask("session/close", sessionId=session)
    assert agent.fails("session/prompt", sessionId=session, prompt=[]).code == -32002
    seen = len(agent.messages)
    loaded = agent.ask("session/load", sessionId=session, cwd=str(cwd), mcpServers=[])
    assert loaded["modes"]["currentModeId"] == "default"
    past = [
        one["params"]["update"]
        for one in agent.messages[seen:]
        if one.get("method") == "session/update"
    ]
    kinds = [
        one["sessionUpdate"] for one in past if one["sessionUpdate"] != "available_commands_update"
    ]
    assert kinds[:2] == ["user_message_chunk", "user_message_chunk"]
    assert [one["content"].get("text") for one in past[:1]] == ["change it"]
    calls_ = [one for one in past if one["sessionUpdate"] == "tool_call"]
    assert [(one["title"], one["status"]) for one in calls_] == [
        ("Edit a.txt", "completed"),
        ("echo hello; false", "completed"),
    ]
    assert calls_[0]["content"] == [
        {"type": "diff", "path": str(path), "oldText": "one", "newText": "two"}
    ]
    said = "".join(
        one["content"]["text"] for one in past if one["sessionUpdate"] == "agent_message_chunk"
    )
    assert said == "I change it. all done"
    model.say("yes")
    assert agent.prompt(session, "still there?") == "end_turn"
    assert "all done" in json.dumps(sim.bodies[-1]["messages"])
    agent.ask("session/close", sessionId=session)
    seen = len(agent.messages)
    agent.ask("session/resume", sessionId=session, cwd=str(cwd))
    assert not [one for one in agent.messages[seen:] if "user_message_chunk" in json.dumps(one)]
    fork = agent.ask("session/fork", sessionId=session, cwd=str(cwd))["sessionId"]
    assert fork != session
    model.say("in the copy")
    agent.prompt(fork, "and here?")
    assert "all done" in json.dumps(sim.bodies[-1]["messages"])
    ids = [one["sessionId"] for one in agent.ask("session/list", cwd=str(cwd))["sessions"]]
    assert ids == [fork, session]
    for each in (session, fork):
        agent.ask("session/delete", sessionId=each)
    assert agent.ask("session/list", cwd=str(cwd))["sessions"] == []
    assert agent.fails("session/load", sessionId=session, cwd=str(cwd)).code == -32002
    verbs = ("new", "prompt", "list", "load", "resume", "fork", "close", "delete")
    assert validate_answers(agent) >= {"initialize", *(f"session/{verb}" for verb in verbs)}


def test_a_list_has_fifty_on_a_page(agent: Agent, model: Model):
    cwd = agent.place.root / "many"
    cwd.mkdir()
    session = agent.open(cwd)
    model.say("x")
    agent.prompt(session, "first")
    store = stored_sessions(agent.place.environ())
    for _ in range(52):
        store.fork(session)
    first = agent.ask("session/list", cwd=str(cwd))
    assert len(first["sessions"]) == 50
    second = agent.ask("session/list", cwd=str(cwd), cursor=first["nextCursor"])
    assert len(second["sessions"]) == 3
    assert "nextCursor" not in second
    times = [one["updatedAt"] for one in (*first["sessions"], *second["sessions"])]
    assert times == sorted(times, reverse=True)


def test_a_session_of_another_process_is_refused_with_its_words(agent: Agent, model: Model):
    session = agent.open()
    model.say("x")
    agent.prompt(session, "first")
    agent.ask("session/close", sessionId=session)
    held = stored_sessions(agent.place.environ()).open(session)
    try:
        params = {"sessionId": session, "cwd": str(agent.place.work), "mcpServers": []}
        error = agent.fails("session/load", **params)
        assert error.code == -32603
        assert "another" in str(error) or "in use" in str(error)
        assert agent.fails("session/delete", sessionId=session).code == -32603
    finally:
        agent.loop.do(held.close())


def test_additional_folders_belong_to_the_workspace(agent: Agent, model: Model):
    other = agent.place.root / "other"
    other.mkdir()
    path = other / "x.txt"
    path.write_text("one\n")
    session = agent.open(additionalDirectories=[str(other)])
    model.say(calls(replacing(path, "one", "two")), "done")
    agent.prompt(session, "edit")
    assert path.read_text() == "two\n"
    assert agent.editor.written == [str(path)]


def test_several_sessions_work_at_the_same_time(agent: Agent, model: Model):
    first, second = agent.open(), agent.open()
    hold = agent.editor.wait = agent.loop.event()
    model.say(calls(shell("echo never; rm -rf x")), "answered")
    path = file(agent, "held.txt", "x")
    del path
    waiting = agent.prompting(first, "run")
    agent.until(lambda: agent.requests("session/request_permission")[-1]["sessionId"] == first)
    assert agent.prompt(second, "hi") == "end_turn"
    assert not waiting.done()
    agent.editor.decide = choosing("cancel")
    model.say("over")
    agent.loop.call(hold.set)
    assert waiting.result(60) == {"stopReason": "end_turn"}


def test_a_compressed_past_is_shown_from_the_records():
    said = [
        MessageAdded(message=Message(role="user", parts=(Text("the first words"),))),
        MessageAdded(message=Message(role="assistant", parts=(Thinking("hm"), Text("an answer")))),
        HistoryReplaced(
            messages=(Message(role="user", parts=(Text("a summary"),)),),
            method="summary",
            before=9,
            after=1,
        ),
        MessageAdded(message=Message(role="user", parts=(Text("context"),)), context=True),
        MessageAdded(message=Message(role="user", parts=(Text("later words"),))),
    ]
    updates = Updates(Registry(()), ToolContext(workspace=WORKSPACE), new_id=lambda prefix: prefix)
    shown = [(one["sessionUpdate"], one["content"]["text"]) for one in updates.replay(said)]
    assert shown == [
        ("user_message_chunk", "the first words"),
        ("agent_thought_chunk", "hm"),
        ("agent_message_chunk", "an answer"),
        ("user_message_chunk", "later words"),
    ]


@pytest.mark.parametrize(
    ("shown", "whole", "rest"),
    [
        ("", "", ""),
        ("", "one", "one\n"),
        ("one\n", "one", ""),
        ("one\n", "one\ntwo", "two\n"),
        ("one", "one two", " two\n"),
        ("a flood", "other words", "\n…\nother words\n"),
    ],
)
def test_the_rest_of_an_output_is_what_was_not_shown_live(shown: str, whole: str, rest: str):
    assert unseen(shown, whole) == rest


def test_the_key_is_in_no_message(agent: Agent):
    assert "sk-none-of-your-business" not in json.dumps(agent.messages)
    assert os.environ.get("OPENAI_API_KEY") != "sk-none-of-your-business"
