"""The prompt is there before the app: no key is lost, and nothing of it is left behind."""

import os
import signal
import termios
import time
from collections.abc import Generator

import pytest

from tests.fakes.screen import PATIENCE, ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import answered, says
from toolwire import __version__
from toolwire.cli import opens_app

HOLD = """
import os, sys, time

class Hold:
    def find_spec(self, name, path=None, target=None):
        while name == "toolwire.cli.chat" and not os.path.exists(os.environ["GO"]):
            time.sleep(0.01)

sys.meta_path.insert(0, Hold())
"""
"""Holds the app back until a file is there."""
TERMINAL = {"TERM": "xterm"}


class Early:
    """Starts apps that stay at their early prompt until `go`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._go = place.root / "go"
        folder = place.root / "hold"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(HOLD)
        self._environ = {"PYTHONPATH": str(folder), "GO": str(self._go), "TERM": "xterm-256color"}
        self._open: list[ScreenTerminal] = []

    def start(self, *args: str, ready: str = "›", **environ: str) -> ScreenTerminal:
        env = self.place.environ(**{**self._environ, **environ})
        app = ScreenTerminal(["chat", *args], cwd=self.place.work, env=env)
        self._open.append(app)
        if ready:
            app.wait(ready)
        return app

    def go(self) -> None:
        self._go.touch()

    def close(self) -> None:
        for app in self._open:
            app.close()


@pytest.fixture
def early(place: Place) -> Generator[Early]:
    found = Early(place)
    yield found
    found.close()


def is_cooked(app: ScreenTerminal) -> bool:
    """Whether the terminal has its usual modes again."""
    flags = termios.tcgetattr(app._main)
    usual = termios.ECHO | termios.ICANON | termios.ISIG
    pastes = app.raw.count(b"\x1b[?2004h") <= app.raw.count(b"\x1b[?2004l")
    return flags[3] & usual == usual and bool(flags[0] & termios.ICRNL) and pastes


def ended(app: ScreenTerminal) -> int:
    code = app.end()
    app.settle(0.1)
    return code


def test_letters_show_at_once_and_are_in_the_composer_later(early: Early):
    with Simulated([says("the answer")]) as sim:
        app = early.start("--upstream", sim.upstream())
        assert app.see() == [f"toolwire {__version__}", "›"]
        app.press("hel")
        app.wait("› hel")
        app.press("lo")
        app.wait("› hello")
        early.go()
        rows = app.wait("default", "› hello")
        assert sum("›" in row for row in rows) == 1
        app.press(" there\r")
        answered(app, "the answer")
        rows = app.all()
        assert [row for row in rows if row.startswith("toolwire")] == [rows[0]]
        assert "upstream/default" in rows[0]
        assert [row for row in rows if "hello" in row] == ["› hello there"]
        assert sim.bodies[0]["messages"][-1]["content"] == "hello there"
        app.press("\x04")
        assert ended(app) == 0
        assert is_cooked(app)


def test_enter_that_is_typed_ahead_sends(early: Early):
    with Simulated([says("the answer"), says("the second")]) as sim:
        app = early.start("--upstream", sim.upstream())
        app.press("one\xe9 \x1b[D\x7f\r")
        app.settle(0.2)
        early.go()
        answered(app, "the answer")
        assert sim.bodies[0]["messages"][-1]["content"].strip() == "one"


def test_a_paste_that_comes_early_sends_nothing(early: Early):
    with Simulated([says("x")]) as sim:
        app = early.start("--upstream", sim.upstream())
        app.press("\x1b[200~one\rtwo\r\x1b[201~ end")
        early.go()
        app.wait("default", "› one", "  two", "end")
        assert not sim.bodies


def test_a_character_may_be_cut_by_the_beginning_of_the_app(early: Early):
    with Simulated([says("x")]) as sim:
        app = early.start("--upstream", sim.upstream())
        first, second = "aé".encode()[:2], "é".encode()[1:]
        os.write(app._main, first)
        app.settle(0.2)
        early.go()
        app.wait("default")
        os.write(app._main, second)
        app.wait("› aé")


@pytest.mark.parametrize("keys", ["\x04", "\x03\x03", "words\x03\x04"])
def test_the_keys_that_leave_do_so_early_too(early: Early, keys: str):
    with Simulated([says("x")]) as sim:
        app = early.start("--upstream", sim.upstream())
        app.press(keys)
        if keys != "\x03\x03":
            app.settle(0.2)
            early.go()
        assert ended(app) == 0
        assert is_cooked(app)
        assert not any("›" in row for row in app.see())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(early: Early, number: int):
    app = early.start("--upstream", "openai-chat=http://127.0.0.1:1,model=m")
    app.press("words")
    app.wait("› words")
    app.process.send_signal(number)
    assert ended(app) in (-number, 128 + number)
    assert is_cooked(app)
    assert app.see() == []


def test_an_error_stands_alone(early: Early, place: Place):
    (place.home / "config.toml").write_text("[ui]\nscreen = 7\n")
    app = early.start("--upstream", "openai-chat=http://127.0.0.1:1,model=m")
    app.press("words\r")
    early.go()
    assert ended(app) != 0
    assert is_cooked(app)
    rows = app.all()
    assert rows[0].startswith("toolwire: ")
    assert not any("›" in row or "words" in row for row in rows)


def test_a_wrong_option_stands_alone(early: Early):
    early.go()
    app = early.start("--no-such-option", ready="")
    assert ended(app) == 2
    assert is_cooked(app)
    assert app.see()[0].startswith("Usage:")


def test_a_session_that_cannot_open_leaves_a_usable_terminal(early: Early):
    early.go()
    app = early.start("--model", "no-such/model", ready="")
    assert ended(app) != 0
    assert is_cooked(app)
    assert sum(row.startswith("toolwire 0") for row in app.all()) <= 1
    assert not any("›" in row for row in app.see())


def test_what_is_typed_ahead_does_not_answer_a_question(early: Early, place: Place):
    settings = place.work / ".toolwire"
    settings.mkdir()
    (settings / "config.toml").write_text('[ui]\ntheme = "dark"\n')
    with Simulated([says("x")]) as sim:
        app = early.start("--upstream", sim.upstream())
        app.press("yes\ryes\r")
        early.go()
        rows = app.wait("Trust ", "[no]:")
        assert not any("›" in row for row in rows)
        app.settle(0.5)
        assert "default" not in "\n".join(app.see())
        app.press("no\r")
        app.wait("›", "default")


def test_keys_that_came_before_the_program_are_no_garbage(place: Place):
    with Simulated([says("the answer")]) as sim:
        env = place.environ(TERM="xterm-256color")
        app = ScreenTerminal(["chat", "--upstream", sim.upstream()], cwd=place.work, env=env)
        app.press("typed ahead\r")
        answered(app, "the answer")
        assert app.all()[0].startswith("toolwire")
        assert [row for row in app.all() if "typed ahead" in row] == ["› typed ahead"]
        app.close()


def test_a_hung_up_terminal_ends_the_program(early: Early):
    app = early.start("--upstream", "openai-chat=http://127.0.0.1:1,model=m")
    app.hang_up()
    early.go()
    until = time.monotonic() + PATIENCE
    while app.process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("args", "environ", "opens"),
    [
        ([], TERMINAL, True),
        (["chat", "-c"], TERMINAL, True),
        (["-m", "sonnet"], TERMINAL, True),
        (["chat", "--plain"], TERMINAL, False),
        (["chat", "--help"], TERMINAL, False),
        (["-p", "words"], TERMINAL, False),
        (["--version"], TERMINAL, False),
        (["run", "words"], TERMINAL, False),
        (["doctor"], TERMINAL, False),
        ([], {"TERM": "dumb"}, False),
        ([], {}, False),
        ([], {**TERMINAL, "ACCESSIBLE": "1"}, False),
    ],
)
def test_it_is_drawn_only_where_the_app_follows(
    args: list[str], environ: dict[str, str], opens: bool
):
    assert opens_app(args, environ) is opens


def test_nothing_is_drawn_where_output_is_no_terminal(place: Place):
    done = place.toolwire("chat", env={"TERM": "xterm"})
    assert "›" not in done.out
