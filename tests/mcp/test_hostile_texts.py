"""Hostile texts of a server: what reaches a real terminal, and what an "always" is bound to."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_terminal_safety import OURS, UNSAFE, chat
from tests.fakes.simulated import Place, Simulated
from tests.fakes.terminal import Terminal
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Say

EVIL_SERVER = Path(__file__).with_name("evil_server.py")
DONE = Reply(pieces=(Say("done."),))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    words = json.dumps([str(EVIL_SERVER), str(tmp_path)])
    text = f'[mcp_servers.evil]\ncommand = "{sys.executable}"\nargs = {words}\n'
    (place.home / "config.toml").write_text(text)
    # A run waits for the server once; from then on its tools are offered at the start.
    with Simulated([DONE]) as sim:
        assert place.toolwire("run", "hi", "--upstream", sim.upstream()).code == 0
    return place


def asked(tool: str) -> Reply:
    return Reply(pieces=(Call.of(tool, **{"p": "\x1b[2J"}),))


def harmless(shown: str) -> bool:
    return UNSAFE.findall(OURS.sub("", shown)) == []


def test_no_text_of_a_server_reaches_the_terminal_as_it_is(place: Place):
    calls = [asked(name) for name in ("use", "error", "fail", "exit")]
    with Simulated([*calls, DONE]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("/tools")
        terminal.wait_for("> ")
        terminal.type("go")
        for _ in calls:
            terminal.wait_for("run it?")
            terminal.type("y")
        terminal.wait_for("done.")
        terminal.leave()
        shown = terminal.all
        terminal.close()
    assert harmless(shown), shown
    for words in ("title", "error", "failed"):
        assert f"{words} \\u001b[2J" in shown, shown


def test_no_text_of_a_server_reaches_the_errors_of_a_run_as_it_is(place: Place):
    with Simulated([asked("use"), asked("exit"), DONE]) as sim:
        options = ["run", "go", "--upstream", sim.upstream(), "--yolo"]
        terminal = Terminal(options, cwd=place.work, env=place.environ())
        assert terminal.end() == 0, terminal.all
        shown = terminal.all
        terminal.close()
    assert harmless(shown), shown


COMMANDS = (
    "mcp list",
    "mcp test evil",
    "mcp get evil",
    "mcp call evil use {}",
    "mcp call evil fail {}",
    "mcp call evil error {}",
    "mcp call evil exit {}",
    "tools list",
)


def test_no_text_of_a_server_reaches_the_terminal_by_a_command(place: Place):
    for words in COMMANDS:
        terminal = Terminal([*words.split()], cwd=place.work, env=place.environ())
        terminal.end()
        shown = terminal.all
        terminal.close()
        assert shown, words
        assert harmless(shown), shown


def test_a_changed_description_asks_again_after_an_always(place: Place):
    calls = [asked(name) for name in ("use", "use", "change", "use")]
    with Simulated([*calls, DONE]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("go")
        terminal.wait_for("run it?")
        terminal.type("a")
        # The second use is allowed by the answer; the next question is about the other tool.
        terminal.wait_for("run it?")
        between = terminal.all
        terminal.type("y")
        terminal.wait_for("run it?")
        terminal.type("n")
        terminal.wait_for("done.")
        terminal.leave()
        terminal.close()
    assert between.count("run it?") == 2
    answers = [one["content"] for one in sim.bodies[-1]["messages"] if one["role"] == "tool"]
    assert ["result" in json.dumps(each) for each in answers] == [True, True, False, False]
    assert "User did not allow" in json.dumps(answers[3])
