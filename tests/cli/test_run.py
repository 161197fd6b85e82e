import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST, Place, Simulated
from toolwire.events import StopReason
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Decline, Fault, Say, Think

DIALECTS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini", "code-assist")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


def calls(*wanted: Call, **more: Any) -> Reply:
    return Reply(pieces=wanted, **more)


def reads(path: Path) -> Call:
    return Call.of("read_file", absolute_path=str(path))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_prompt_is_worked_on_with_tools_in_every_wire_format(place: Place, dialect: str):
    note = place.work / "a.txt"
    note.write_text("AAA\n")
    done = says("It says {last_result}.")
    with Simulated([calls(reads(note)), done]) as sim:
        ended = place.run(sim, "what is in a.txt?", dialect=dialect)
    assert (ended.code, ended.out) == (0, "It says AAA\n.\n")
    assert "read_file" in ended.err
    assert len(sim.bodies) == 2
    assert not sim.refusals


def test_an_mcp_server_that_fails_is_reported_and_no_mcp_uses_none(place: Place):
    (place.home / "config.toml").write_text('[mcp_servers.files]\ncommand = "no-such-server"\n')
    with Simulated([says("ok"), says("ok")]) as sim:
        warned = place.run(sim, "hi")
        silent = place.run(sim, "hi", "--no-mcp")
    assert (warned.code, silent.code) == (0, 0)
    assert "MCP server files failed: " in warned.err
    assert "no-such-server is not on the path" in warned.err
    assert "MCP" not in silent.err


def test_standard_input_comes_before_the_prompt(place: Place):
    with Simulated([says("ok")]) as sim:
        place.run(sim, "and say what it is", input="some words")
    assert sim.bodies[0]["messages"][-1]["content"] == "some words\n\nand say what it is"


def test_standard_input_alone_is_a_prompt(place: Place):
    with Simulated([says("ok")]) as sim:
        assert place.run(sim, input="just this\n").code == 0
    assert sim.bodies[0]["messages"][-1]["content"] == "just this\n"


def test_an_open_pipe_that_stays_silent_does_not_hold_up_a_prompt(place: Place):
    with Simulated([says("ok")]) as sim:
        process = place.start("run", "--upstream", sim.upstream(), "hello", stdin=subprocess.PIPE)
        assert process.wait(LONGEST) == 0
        assert process.stdout.read() == b"ok\n"


def test_no_prompt_is_bad_input(place: Place):
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim)
    assert ended.code == 42
    assert "no prompt" in ended.err
    assert not sim.bodies


def test_files_mentioned_in_the_prompt_go_with_it(place: Place):
    (place.work / "notes.txt").write_text("remember\n")
    with Simulated([says("ok")]) as sim:
        place.run(sim, "look at @notes.txt")
    assert "remember" in json.dumps(sim.bodies[0]["messages"][-1])


def test_without_a_key_it_says_how_to_get_one(place: Place):
    ended = place.toolwire("run", "hi")
    assert ended.code == 41
    assert "ANTHROPIC_API_KEY" in ended.err
    assert not list(place.home.rglob("*.sqlite"))


def test_a_refused_key_is_reported_as_such(place: Place):
    with Simulated([says("ok")], key="right") as sim:
        ended = place.toolwire("run", "hi", "--upstream", sim.upstream(key="wrong-key-123"))
    assert ended.code == 41
    assert "wrong-key-123" not in ended.err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--model", "nope/x"), 2),
        (("--model", "justaname"), 42),
        (("--upstream", "chat=http://h"), 2),
        (("--upstream", "openai-chat"), 42),
        (("--session", "nope"), 1),
        (("--continue",), 1),
        (("--max-turns", "-1"), 2),
        (("--yolo", "--approval-mode", "plan"), 2),
        (("--cwd", "/no/such/folder"), 2),
    ],
)
def test_wrong_options_are_reported_before_anything_is_sent(
    place: Place, args: tuple[str, ...], code: int
):
    ended = place.toolwire("run", "hi", *args, env={"OPENAI_API_KEY": "k"})
    assert ended.code == code
    assert ended.err
    assert "Traceback" not in ended.err
    assert not list(place.home.rglob("*.sqlite"))


def test_in_default_mode_only_what_needs_no_approval_runs(place: Place):
    target = place.work / "x.txt"
    write = Call.of("write_file", file_path=str(target), content="hi\n")
    with Simulated([calls(write), says("{last_result}")]) as sim:
        ended = place.run(sim, "write")
    assert ended.code == 0
    assert not target.exists()
    assert "--allowed-tools" in ended.out


@pytest.mark.parametrize(
    "args",
    [
        ("--yolo",),
        ("--approval-mode", "auto_edit"),
        ("--allowed-tools", "list_directory,write_file"),
    ],
)
def test_approval_given_beforehand_lets_it_run(place: Place, args: tuple[str, ...]):
    target = place.work / "x.txt"
    write = Call.of("write_file", file_path=str(target), content="hi\n")
    with Simulated([calls(write), says("done")]) as sim:
        assert place.run(sim, "write", *args).code == 0
    assert target.read_text() == "hi\n"


def test_one_command_may_be_allowed_by_its_prefix(place: Place):
    shells = [Call.of("run_shell_command", command=one) for one in ("echo yes", "touch no")]
    with Simulated([calls(*shells), says("done")]) as sim:
        place.run(sim, "go", "--allowed-tools", "run_shell_command(echo)")
    assert not (place.work / "no").exists()
    results = [one["content"] for one in sim.bodies[1]["messages"] if one["role"] == "tool"]
    assert "Output: yes" in results[0]
    assert "denied" in results[1]


def test_json_output_is_one_object(place: Place):
    note = place.work / "a.txt"
    note.write_text("AAA\n")
    with Simulated([calls(reads(note)), says("done")]) as sim:
        ended = place.run(sim, "go", "--output-format", "json")
    body = json.loads(ended.out)
    assert list(body) == ["session_id", "response", "stop", "error", "stats", "approval_mode"]
    assert (body["response"], body["stop"], body["error"]) == ("done", "done", None)
    assert body["stats"]["models"]["default"]["api"]["totalRequests"] == 2
    assert body["stats"]["tools"]["byName"]["read_file"]["decisions"]["auto_accept"] == 1
    assert list(body["stats"]["files"]) == ["totalLinesAdded", "totalLinesRemoved"]
    assert ended.err == ""


def test_stream_json_output_is_one_event_a_line(place: Place):
    note = place.work / "a.txt"
    note.write_text("AAA\n")
    first = Reply(pieces=(Think("**Plan** look"), Say("Let me look."), reads(note)))
    with Simulated([first, says("done", delta=0)]) as sim:
        ended = place.run(sim, "go", "--output-format", "stream-json")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["type"] for line in lines] == [
        "init",
        "message",
        "thinking",
        "message",
        "tool_use",
        "tool_result",
        "message",
        "result",
    ]
    assert all("timestamp" in line for line in lines)
    assert lines[0]["model"] == "upstream/default"
    assert lines[1]["role"] == "user"
    assert lines[3] | {"timestamp": ""} == {
        "type": "message",
        "timestamp": "",
        "role": "assistant",
        "content": "Let me look.",
        "delta": True,
    }
    assert lines[4]["parameters"] == {"absolute_path": str(note)}
    assert lines[5]["output"] == "AAA\n"
    assert lines[7]["status"] == "success"


def test_the_turn_limit_has_its_own_code(place: Place):
    with Simulated(lambda question: calls(reads(place.work / f"{question.number}"))) as sim:
        ended = place.run(sim, "go", "--max-turns", "3", "--output-format", "json")
    assert ended.code == 53
    assert len(sim.bodies) == 3
    body = json.loads(ended.out)
    assert body["stop"] == "turn_limit"
    assert body["error"]["type"] == "turn_limit"


def test_a_loop_has_its_own_code(place: Place):
    note = place.work / "a.txt"
    note.write_text("AAA\n")
    with Simulated(lambda question: calls(reads(note))) as sim:
        ended = place.run(sim, "go")
    assert ended.code == 54
    assert "Potential loop detected" in json.dumps(sim.bodies[-1]["messages"])
    assert "Repeated tool call" in ended.err


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (Reply(pieces=(Decline("I would rather not."),)), "declined"),
        (Reply(pieces=(Say("half"),), stop=StopReason.LENGTH), "output limit"),
        (Reply(fault=Fault(status=400, message="no such thing")), "no such thing"),
    ],
)
def test_what_is_not_done_is_not_called_done(place: Place, reply: Reply, word: str):
    with Simulated([reply]) as sim:
        ended = place.run(sim, "go")
    assert ended.code == 1
    assert word in ended.err
    assert "--session" in ended.err


def test_a_session_goes_on_under_another_wire_format(place: Place):
    note = place.work / "a.txt"
    note.write_text("AAA\n")
    replies = [calls(reads(note)), says("first"), says("second")]
    with Simulated(replies) as sim:
        place.run(sim, "one", dialect="gemini")
        ended = place.run(sim, "two", "--continue", dialect="anthropic-messages")
    assert (ended.code, ended.out) == (0, "second\n")
    texts = json.dumps(sim.bodies[2]["messages"])
    assert "AAA" in texts
    assert texts.index("one") < texts.index("first") < texts.index("two")
    assert not sim.refusals


def test_a_session_is_named_by_its_id(place: Place):
    with Simulated([says("a"), says("b"), says("c")]) as sim:
        first = json.loads(place.run(sim, "the first", "--output-format", "json").out)["session_id"]
        place.run(sim, "elsewhere entirely")
        place.run(sim, "three", "--session", first)
    texts = json.dumps(sim.bodies[2]["messages"])
    assert "the first" in texts
    assert "elsewhere entirely" not in texts


def test_ctrl_c_ends_the_turn_and_the_session_goes_on(place: Place):
    command = Call.of("run_shell_command", command="echo started > mark; sleep 600")
    with Simulated([calls(command), says("{last_result}")]) as sim:
        process = place.start("run", "--upstream", sim.upstream(), "go", "--yolo")
        while not (place.work / "mark").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(LONGEST) == 130
        ended = place.run(sim, "go on", "--continue")
    assert ended.code == 0
    assert "cancelled" in ended.out.lower()
    assert not sim.refusals


def test_ctrl_c_while_the_model_speaks_keeps_its_words(place: Place):
    slow = says("word " * 400, fault=Fault(wait_each=0.02))
    with Simulated([slow, says("fine")]) as sim:
        process = place.start("run", "--upstream", sim.upstream(), "go")
        assert process.stdout.read(5) == b"word "
        process.send_signal(signal.SIGINT)
        assert process.wait(LONGEST) == 130
        assert place.run(sim, "go on", "--continue").code == 0
    roles = [one["role"] for one in sim.bodies[1]["messages"]]
    assert roles[-3:] == ["user", "assistant", "user"]


def test_it_stops_when_its_reader_leaves(place: Place):
    slow = says("word " * 4000, fault=Fault(wait_each=0.005))
    with Simulated([slow]) as sim:
        process = place.start("run", "--upstream", sim.upstream(), "go")
        process.stdout.read(5)
        process.stdout.close()
        assert process.wait(LONGEST) != 0
        assert b"Traceback" not in process.stderr.read()


def test_a_run_is_recorded_and_played_back(place: Place):
    note, tape = place.work / "a.txt", place.root / "tape.jsonl"
    note.write_text("AAA\n")
    with Simulated([calls(reads(note)), says("It is {last_result}")], key="s3cret-key") as sim:
        upstream = sim.upstream(key="s3cret-key")
        first = place.toolwire("run", "--upstream", upstream, "go", "--record", str(tape))
    again = place.toolwire("run", "--upstream", upstream, "go", "--replay", str(tape))
    assert (again.code, again.out) == (first.code, first.out) == (0, "It is AAA\n")
    assert "s3cret-key" not in tape.read_text()
    changed = place.toolwire("run", "--upstream", upstream, "something else", "--replay", str(tape))
    assert changed.code != 0
    assert "recording" in changed.err


def test_the_prompt_of_the_system_may_be_a_file(place: Place):
    (place.root / "mine.md").write_text("You are a parrot.")
    with Simulated([says("ok")]) as sim:
        place.run(sim, "hi", "--system", str(place.root / "mine.md"))
        missing = place.run(sim, "hi", "--system", str(place.root / "none.md"))
    assert sim.bodies[0]["messages"][0]["content"] == "You are a parrot."
    assert missing.code == 42
    assert len(sim.bodies) == 1
