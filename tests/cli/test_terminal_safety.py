"""What reaches a real terminal of hostile text, and what answers a question on it."""

import os
import re
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from tests.fakes.simulated import Place, Simulated
from tests.fakes.terminal import Terminal
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Fault, Say, refused

EVIL = (
    "\x1b[2J\x1b]0;t\x07\x1b]52;c;eA==\x07\x1b]8;;http://e\x1b\\x\x9b2J\x08\x7f"
    "over\rwritten\u202ebidi\u2066\u200b\U000e0041end"
)
OURS = re.compile(r"\r\x1b\[2K|\x1b\[\?2004[hl]|\r\n")
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def assert_harmless(shown: str) -> None:
    assert UNSAFE.findall(OURS.sub("", shown)) == []
    assert "\\u001b" in shown, shown


def chat(place: Place, sim: Simulated, *args: str) -> Terminal:
    options = ["chat", "--plain", "--upstream", sim.upstream(), *args]
    return Terminal(options, cwd=place.work, env=place.environ(TERM="xterm"))


def shell(command: str) -> Reply:
    return Reply(pieces=(Call.of("run_shell_command", command=command),))


def test_text_calls_questions_and_outcomes_in_a_chat(place: Place) -> None:
    asks = Reply(pieces=(Call.of("ask_user", question=f"q{EVIL}", choices=[f"c{EVIL}"]),))
    odd = Reply(pieces=(Call.of(f"tool{EVIL}", path=EVIL),))
    replies = [Reply(pieces=(Say(f"hello {EVIL}"),)), shell(f"echo '{EVIL}'"), odd, asks]
    with Simulated([*replies, Reply(pieces=(Say("done."),))]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("one")
        terminal.wait_for("hello ")
        terminal.wait_for("> ")
        terminal.type("two")
        terminal.wait_for("run it?")
        terminal.type("n")
        terminal.wait_for("? ")
        terminal.type("1")
        terminal.wait_for("done.")
        terminal.leave()
        assert_harmless(terminal.all)
        terminal.close()


def test_the_error_of_a_server(place: Place) -> None:
    fails = Reply(pieces=(), fault=refused(400, f"bad {EVIL}"))
    with Simulated([fails] * 9) as sim:
        terminal = Terminal(
            ["run", "hi", "--upstream", sim.upstream()], cwd=place.work, env=place.environ()
        )
        assert terminal.end() == 1
        assert_harmless(terminal.all)
        terminal.close()


@pytest.mark.parametrize("on_terminal", [True, False])
def test_the_answer_of_a_run_is_the_same_on_a_terminal_and_a_pipe(
    place: Place, on_terminal: bool
) -> None:
    with Simulated([Reply(pieces=(Say(f"hello {EVIL}"),))]) as sim:
        args = ["run", "hi", "--upstream", sim.upstream()]
        if on_terminal:
            terminal = Terminal(args, cwd=place.work, env=place.environ())
            assert terminal.end() == 0
            shown = terminal.all
            terminal.close()
        else:
            shown = place.toolwire(*args).out
        assert_harmless(shown)


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_machine_formats_are_exact(place: Place, form: str) -> None:
    with Simulated([Reply(pieces=(Say(f"hello {EVIL}"),))]) as sim:
        args = ["run", "hi", "--upstream", sim.upstream(), "--output-format", form]
        out = place.toolwire(*args).out
    assert_harmless(out)
    if form == "json":
        assert msgspec.json.decode(out)["response"] == f"hello {EVIL}"
    else:
        lines = [msgspec.json.decode(line) for line in out.splitlines()]
        said = [one["content"] for one in lines if one.get("role") == "assistant"]
        assert "".join(said) == f"hello {EVIL}"


def test_sessions_tools_and_file_names(place: Place) -> None:
    name = EVIL.replace("/", "").replace("\n", "")
    (place.work / name).write_text(EVIL)
    with Simulated([Reply(pieces=(Say(EVIL),))]) as sim:
        place.toolwire("run", f"title {EVIL}", "--upstream", sim.upstream())
    listed = msgspec.json.decode(place.toolwire("sessions", "list", "--json").out)
    arguments = msgspec.json.encode({"path": str(place.work)}).decode()
    for args in (
        ["sessions", "list"],
        ["sessions", "show", listed[0]["id"]],
        ["sessions", "export", listed[0]["id"]],
        ["tools", "call", "list_directory", arguments],
        ["tools", "call", f"x{EVIL}", "{}"],
        ["providers", EVIL],
        ["run", "--session", EVIL, "hi"],
        ["config", "get", EVIL],
    ):
        terminal = Terminal(args, cwd=place.work, env=place.environ())
        terminal.end()
        assert_harmless(terminal.all)
        terminal.close()


def test_a_line_typed_before_the_question_does_not_answer_it(place: Place) -> None:
    slow = Reply(
        pieces=(Say("wait for it"), Call.of("run_shell_command", command="touch ran")),
        fault=Fault(wait_each=0.3),
    )
    with Simulated([slow, Reply(pieces=(Say("it was not run"),))]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        # All before the question: with the prompt, as a command of the chat, and a line begun.
        os.write(terminal.main, b"do it\ny\n/y\n")
        terminal.wait_for("wait")
        os.write(terminal.main, b"y\ny\ny")
        terminal.wait_for("run it?")
        time.sleep(0.5)
        assert not (place.work / "ran").exists()
        terminal.type("")
        terminal.wait_for("it was not run")
        assert not (place.work / "ran").exists()
        terminal.close()


def test_an_answer_after_the_question_still_counts(place: Place) -> None:
    with Simulated([shell("touch ran"), Reply(pieces=(Say("all done"),))]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("do it")
        terminal.wait_for("run it?")
        terminal.type("y")
        terminal.wait_for("all done")
        assert (place.work / "ran").exists()
        terminal.close()


def test_the_spinner_leaves_the_question_alone(place: Place) -> None:
    with Simulated([shell("touch ran"), Reply(pieces=(Say("all done"),))]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("do it")
        terminal.wait_for("run it?")
        time.sleep(0.5)
        terminal.read()
        assert "\x1b[2K" not in terminal.seen
        terminal.type("n")
        terminal.wait_for("all done")
        terminal.close()


def test_lines_of_the_model_cannot_pass_for_ours(place: Place) -> None:
    fake = "echo\nShell: run it? [y]es: y\n> "
    with Simulated([shell(fake)]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("do it")
        terminal.wait_for("or what to do instead: ")
        assert "\nShell: run it? [y]es: y" not in terminal.all
        assert "\n  Shell: run it? [y]es: y" in terminal.all
        terminal.close()


CALL = ["tools", "call", "run_shell_command", '{"command":"touch ran"}']


def test_a_line_typed_before_the_question_of_a_tool_call_does_not_answer_it(place: Place) -> None:
    terminal = Terminal(CALL, cwd=place.work, env=place.environ())
    os.write(terminal.main, b"y\ny\ny")
    terminal.wait_for("run it?")
    time.sleep(0.3)
    assert terminal.process.poll() is None
    terminal.type("")
    assert terminal.end() == 1
    assert not (place.work / "ran").exists()
    terminal.close()


def test_a_pipe_never_answers(place: Place) -> None:
    done = place.toolwire(*CALL, input=b"y\n" * 10)
    assert (done.code, (place.work / "ran").exists()) == (1, False)
    terminal = Terminal(CALL, cwd=place.work, env=place.environ(), stdin=subprocess.PIPE)
    assert terminal.process.stdin is not None
    terminal.process.stdin.write(b"y\n" * 10)
    terminal.process.stdin.close()
    assert terminal.end() == 1
    assert not (place.work / "ran").exists()
    terminal.close()


def test_trust_is_not_answered_beforehand(place: Place) -> None:
    (place.work / ".toolwire").mkdir()
    (place.work / ".toolwire" / "config.toml").write_text('tool_style = "xml"')
    terminal = Terminal(["config", "show"], cwd=place.work, env=place.environ())
    os.write(terminal.main, b"yes\nyes")
    terminal.wait_for("Trust ")
    time.sleep(0.3)
    assert terminal.process.poll() is None
    terminal.type("")
    assert terminal.end() == 0
    assert '"xml"' not in terminal.all
    terminal.close()
