import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated
from tests.fakes.terminal import PATIENCE, Terminal
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Fault, Say


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
