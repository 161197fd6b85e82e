import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated
from tests.fakes.terminal import PATIENCE, Terminal
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Fault, Say, Think


class Chat(Terminal):
    """`toolwire chat` on a real pseudo terminal."""

    def __init__(self, place: Place, sim: Simulated, *args: str) -> None:
        options = ["chat", "--upstream", sim.upstream(), *args]
        super().__init__(options, cwd=place.work, env=place.environ(TERM="dumb"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


def writes(place: Place, content: str = "hi\n") -> Reply:
    target = str(place.work / "x.txt")
    return Reply(pieces=(Call.of("write_file", file_path=target, content=content),))


def test_a_conversation_with_a_question_before_a_change(place: Place):
    with Simulated([says("hello"), writes(place), says("written")]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("hi")
        terminal.wait_for("hello")
        terminal.type("write it")
        terminal.wait_for("+hi")
        assert not (place.work / "x.txt").exists()
        terminal.wait_for("run it?")
        terminal.type("y")
        terminal.wait_for("written")
        assert (place.work / "x.txt").read_text() == "hi\n"
        assert terminal.leave() == 0
        terminal.close()


def test_other_words_than_yes_are_a_no_that_the_model_receives(place: Place):
    with Simulated([writes(place), says("I see")]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("write it")
        terminal.wait_for("run it?")
        terminal.type("use y.txt instead")
        terminal.wait_for("I see")
        assert not (place.work / "x.txt").exists()
        assert "use y.txt instead" in str(sim.bodies[1]["messages"][-1])
        terminal.close()


def test_ctrl_c_stops_the_turn_and_a_second_leaves(place: Place):
    slow = says("word " * 4000, fault=Fault(wait_each=0.01))
    with Simulated([slow, says("back again"), slow]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("go")
        terminal.wait_for("word word")
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("cancelled")
        terminal.type("still there?")
        terminal.wait_for("back again")
        terminal.wait_for("> ")
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("again")
        terminal.process.send_signal(signal.SIGINT)
        terminal.process.wait(PATIENCE)
        terminal.close()


def test_words_typed_while_it_works_are_heard_at_the_next_step(place: Place):
    wait = "touch started; while [ ! -e go ]; do sleep 0.2; done"
    shell = Reply(pieces=(Call.of("run_shell_command", command=wait),))
    with Simulated([shell, says("heard you")]) as sim:
        terminal = Chat(place, sim, "--yolo")
        terminal.wait_for("> ")
        terminal.type("wait")
        while not (place.work / "started").exists():
            time.sleep(0.02)
        terminal.type("and be quick")
        terminal.wait_for("and be quick")
        (place.work / "go").touch()
        terminal.wait_for("heard you")
        assert "and be quick" in str(sim.bodies[1]["messages"][-1])
        terminal.close()


def test_commands_of_the_chat(place: Place):
    with Simulated([says("one"), says("two")]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("/help")
        terminal.wait_for("/compress")
        terminal.type("/tools")
        terminal.wait_for("read_file")
        terminal.type("first words")
        terminal.wait_for("one")
        terminal.type("/new")
        terminal.wait_for("/help for help")
        terminal.type("fresh words")
        terminal.wait_for("two")
        assert "first words" not in str(sim.bodies[1])
        terminal.type("/quit")
        assert terminal.process.wait(PATIENCE) == 0
        terminal.close()


def test_model_style_and_mode_are_changed_in_the_conversation(place: Place):
    with Simulated([says("one"), says("two")]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("first words")
        terminal.wait_for("one")
        terminal.type("/mode plan")
        terminal.wait_for("plan\r\n> ")
        terminal.type("/mode loose")
        terminal.wait_for('toolwire: unknown mode "loose"')
        terminal.type("/style xml")
        terminal.wait_for("xml: ")
        terminal.type("/model upstream/other")
        terminal.wait_for("upstream/other\r\n> ")
        terminal.type("second words")
        terminal.wait_for("two")
        assert sim.bodies[1]["model"] == "other"
        assert "first words" in str(sim.bodies[1])
        assert "Plan mode" in str(sim.bodies[1]["messages"][0])
        assert terminal.leave() == 0
        terminal.close()


def test_without_a_terminal_it_points_to_run(place: Place):
    done = place.toolwire("chat")
    assert done.code == 2
    assert "toolwire run" in done.err
    assert place.toolwire().code == 2


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--model", "nosuch/x"], 2, 'unknown provider "nosuch"'),
        (["--model", "sonet"], 42, 'did you mean "anthropic/'),
        (["--model", "openai/gpt-5"], 41, "OPENAI_API_KEY"),
        (["--session", "nope"], 1, 'no session "nope"'),
        (["--continue"], 1, "no session in"),
        (["--resume"], 1, "no session in"),
        (["--upstream", "nosuch=http://x"], 2, 'unknown dialect "nosuch"'),
        (["--system", "@none.md"], 42, "no such file"),
        (["--allowed-tools", "nosuch"], 2, "unknown tool in --allowed-tools"),
        (["--replay", "none.jsonl"], 42, "none.jsonl cannot be read"),
    ],
)
def test_an_error_at_the_start_is_one_line(place: Place, args: list[str], code: int, words: str):
    given = args if {"--model", "--upstream"} & set(args) else [*args, "--model", "ollama/x"]
    terminal = Terminal(["chat", *given], cwd=place.work, env=place.environ(TERM="dumb"))
    assert terminal.end() == code, terminal.all
    terminal.close()
    (line,) = terminal.all.strip().splitlines()
    assert line.startswith("toolwire: ")
    assert words in line


def test_no_consent_to_a_download_is_one_line(place: Place):
    pytest.importorskip("xllamacpp")
    env = place.environ(TERM="dumb", OLLAMA_HOST="127.0.0.1:1")
    options = ["chat", "--model", "local/qwen2.5-coder-0.5b"]
    terminal = Terminal(options, cwd=place.work, env=env)
    terminal.wait_for("Download it now? [y/N] ")
    terminal.type("")
    assert terminal.end() == 41
    assert "Traceback" not in terminal.all
    assert terminal.all.strip().splitlines()[-1].startswith("toolwire: ")
    terminal.close()


def test_an_error_in_a_command_of_the_chat_is_one_line_and_the_chat_goes_on(place: Place):
    with Simulated([says("one")]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        for name, words in (
            ("nosuch/x", 'unknown provider "nosuch"'),
            ("sonet", 'unknown model "sonet"'),
            ("openai/gpt-5", "OPENAI_API_KEY"),
        ):
            terminal.type(f"/model {name}")
            terminal.wait_for("toolwire: ")
            terminal.wait_for(words)
            terminal.wait_for("> ")
        terminal.type("hello")
        terminal.wait_for("one")
        assert "Traceback" not in terminal.all
        terminal.close()


def test_no_line_is_drawn_again_and_working_is_written_once(place: Place):
    with Simulated([says("an answer")]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("go")
        terminal.wait_for("an answer")
        assert terminal.all.count("working") == 1
        assert "\x1b[2K" not in terminal.all
        terminal.close()


@pytest.mark.parametrize(
    ("typed", "made"),
    [
        ("ok", True),
        ("sure", True),
        ("Yes", True),
        ("1", True),
        ("", False),
        ("6", False),
        ("99", False),
        ("nope, not now", False),
    ],
)
def test_an_answer_means_what_the_question_shows(place: Place, typed: str, made: bool):
    with Simulated([writes(place), says("I see")]) as sim:
        terminal = Chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("write x.txt")
        terminal.wait_for("  1. yes, once (y)")
        terminal.wait_for("run it? A number or letter, Enter for no")
        terminal.type(typed)
        terminal.wait_for("I see")
        assert (place.work / "x.txt").exists() == made
        terminal.close()


def test_a_pasted_block_is_one_message(place: Place):
    with Simulated([says("one"), says("two")]) as sim:
        options = ["chat", "--plain", "--upstream", sim.upstream()]
        terminal = Terminal(options, cwd=place.work, env=place.environ(TERM="xterm"))
        terminal.wait_for("\x1b[?2004h")
        terminal.wait_for("> ")
        terminal.type("\x1b[200~first line\nsecond line\n\n  third\x1b[201~ and typed")
        terminal.wait_for("one")
        terminal.wait_for("> ")
        terminal.type("plain")
        terminal.wait_for("two")
        terminal.leave()
        assert terminal.all.rstrip().endswith("\x1b[?2004l")
        assert "^[[" not in terminal.all
        terminal.close()
    messages = [body["messages"][-1]["content"] for body in sim.bodies]
    assert messages == ["first line\nsecond line\n\n  third and typed", "plain"]


def test_nothing_is_written_after_a_question(place: Place):
    with Simulated([writes(place), says("I see")]) as sim:
        options = ["chat", "--plain", "--upstream", sim.upstream()]
        terminal = Terminal(options, cwd=place.work, env=place.environ(TERM="xterm"))
        terminal.wait_for("> ")
        terminal.type("write x.txt")
        terminal.wait_for("working")
        terminal.wait_for("instead: ")
        time.sleep(0.5)
        terminal.read()
        assert terminal.seen == ""
        terminal.type("y")
        terminal.wait_for("I see")
        terminal.close()


def test_a_session_to_resume_is_chosen_from_a_list(place: Place):
    with Simulated([says("one"), says("two"), says("three")]) as sim:
        place.run(sim, "about apples")
        place.run(sim, "about pears")
        terminal = Chat(place, sim, "--resume")
        terminal.wait_for("about pears")
        terminal.wait_for("about apples")
        terminal.wait_for("[1] ")
        terminal.type("2")
        terminal.wait_for("> ")
        terminal.type("go on")
        terminal.wait_for("three")
        terminal.close()
    assert "about apples" in str(sim.bodies[2])


def test_losses_at_no_cost_are_not_shown_after_a_change_of_model(place: Place):
    thinks = Reply(pieces=(Think("hm"), Say("one")))
    with Simulated([thinks, says("two")]) as sim:
        address = sim.upstream("openai-responses").partition("=")[2]
        env = place.environ(
            TERM="dumb",
            OPENAI_API_KEY="k",
            OPENAI_BASE_URL=address,
            ANTHROPIC_API_KEY="k",
            ANTHROPIC_BASE_URL=address.removesuffix("/v1"),
        )
        terminal = Terminal(["chat", "-m", "openai/gpt-5"], cwd=place.work, env=env)
        terminal.wait_for("> ")
        terminal.type("hello")
        terminal.wait_for("one")
        terminal.wait_for("> ")
        terminal.type("/model sonnet")
        terminal.wait_for("anthropic/claude-sonnet")
        terminal.type("again")
        terminal.wait_for("two")
        terminal.close()
    assert "seal" not in terminal.all
    assert "messages[" not in terminal.all
