"""The whole app as a user drives it in tmux: at two sizes, and with a terminal far away."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated, command
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Fault, Say

PATIENCE = 90.0
EVIL = "\x1b[2J\x1b]0;evil\x07\x1b]52;c;eA==\x07\x9b2Jover\u202ebidi"
OPTIONS = """
set-option -g focus-events on
set-option -g set-clipboard on
set-option -g history-limit 20000
set-option -g status off
"""
SETTINGS = {"usual": (120, 40, 0.0), "small": (80, 24, 0.0), "far": (120, 40, 0.05)}

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
    pytest.mark.long,
]


class Desk:
    """One window of a tmux server of its own, and the program in it."""

    def __init__(self, place: Place, setting: str) -> None:
        self.place = place
        self.columns, self.rows, self._delay = SETTINGS[setting]
        self._started = 0
        self._options = place.root / "tmux.conf"
        self._options.write_text(OPTIONS)

    def run(self, *words: str) -> str:
        # A server of its own each time: one that ends still takes new windows for a moment.
        socket = self.place.root / f"tmux{self._started}"
        done = subprocess.run(
            ["tmux", "-S", str(socket), "-f", str(self._options), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def start(self, sim: Simulated, *args: str, ready: str = "default", **environ: str) -> None:
        variables = self.place.environ(
            **{"TERM": "tmux-256color", "TMUX": "x", "PYTHONPATH": str(Path.cwd()), **environ}
        )
        words = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
        program = command(["chat", "--upstream", sim.upstream(), *args])
        far = [sys.executable, "-m", "tests.tui.latency", str(self._delay)] if self._delay else []
        line = shlex.join([*words, *far, *program])
        size = ("-x", str(self.columns), "-y", str(self.rows))
        self.end()
        self._started += 1
        self.run("new-session", "-d", *size, "-c", str(self.place.work), f"{line}; sleep 300")
        self.wait(ready)

    def end(self) -> None:
        if self._started:
            self.run("kill-server")

    def keys(self, *names: str) -> None:
        self.run("send-keys", *names)

    def type(self, text: str) -> None:
        self.run("send-keys", "-l", text)

    def say(self, text: str) -> None:
        self.type(text)
        time.sleep(0.3 + 4 * self._delay)
        self.keys("Enter")

    def screen(self) -> list[str]:
        return self.run("capture-pane", "-p").rstrip("\n").split("\n")

    def all(self) -> list[str]:
        return self.run("capture-pane", "-p", "-S", "-").rstrip("\n").split("\n")

    def wait(self, *words: str) -> list[str]:
        until = time.monotonic() + PATIENCE
        while True:
            rows = self.screen()
            if all(any(one in row for row in rows) for one in words):
                return rows
            assert time.monotonic() < until, "\n".join([str(words), *rows])
            time.sleep(0.1)

    def times(self, words: str, count: int) -> None:
        """Waits until so many rows begin with the words."""
        until = time.monotonic() + PATIENCE
        while sum(row.startswith(words) for row in self.all()) < count:
            assert time.monotonic() < until, "\n".join(self.all())
            time.sleep(0.1)

    def gone(self, words: str) -> None:
        until = time.monotonic() + PATIENCE
        while any(words in row for row in self.screen()):
            assert time.monotonic() < until, "\n".join(self.screen())
            time.sleep(0.1)

    def answer(self, key: str) -> None:
        """Answers a question after it was on the screen for a while."""
        time.sleep(1.0 + 4 * self._delay)
        self.keys(key)

    @property
    def process(self) -> int:
        """The program itself, below the shell and the relay."""
        pid = int(self.run("display-message", "-p", "#{pane_pid}").strip())
        while True:
            found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
            if not found.stdout.strip():
                return pid
            pid = int(found.stdout.split()[0])


@pytest.fixture(params=list(SETTINGS))
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Desk]:
    found = Desk(Place(tmp_path), request.param)
    yield found
    found.end()


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


def shell(line: str) -> Reply:
    return Reply(pieces=(Call.of("run_shell_command", command=line),))


def edit(desk: Desk, before: str, after: str) -> Reply:
    path = str(desk.place.work / "app.py")
    words = {"instruction": "x", "old_string": before, "new_string": after}
    return Reply(pieces=(Call.of("replace", file_path=path, **words),))


def test_start_stream_scrollback_and_copy(desk: Desk):
    wide = "x" * (desk.columns + 40)
    text = "\n\n".join(f"Paragraph {number:03} of the answer." for number in range(150))
    with Simulated([says(f"{text}\n\n```\n{wide}\n```\n\nThe end.")]) as sim:
        desk.start(sim)
        assert desk.screen()[0].startswith("toolwire")
        desk.say("go")
        desk.wait("The end.")
        found = [row for row in desk.all() if row.startswith("Paragraph ")]
        assert found == [f"Paragraph {number:03} of the answer." for number in range(150)]
        joined = desk.run("capture-pane", "-p", "-J", "-S", "-")
        assert wide in joined.split("\n") or any(
            line.rstrip() == wide for line in joined.split("\n")
        )
        desk.keys("C-y")
        desk.wait("copied")
        assert desk.run("show-buffer") == f"{text}\n\n```\n{wide}\n```\n\nThe end."
        desk.keys("C-d")
        desk.gone("default · native")


def test_cancel_and_go_on(desk: Desk):
    slow = says(" ".join(f"word{n}" for n in range(3000)), fault=Fault(wait_each=0.02))
    with Simulated([slow, says("still here")]) as sim:
        desk.start(sim)
        desk.say("go")
        desk.wait("word1 word2")
        desk.keys("Escape")
        desk.wait("stopped")
        desk.say("again")
        desk.wait("still here")


def test_resume_after_a_kill(desk: Desk):
    slow = says("partial words " * 400, fault=Fault(wait_each=0.05))
    with Simulated([says("the first answer"), slow, says("went on")]) as sim:
        desk.start(sim)
        desk.say("first")
        desk.wait("the first answer")
        desk.say("second")
        desk.wait("partial words")
        os.kill(desk.process, 9)
        desk.start(sim, "--continue")
        desk.wait("› first", "the first answer")
        desk.say("third")
        desk.wait("went on")
        assert "the first answer" in str(sim.bodies[-1]["messages"])


def test_two_thousand_lines_are_there_once_after_twenty_resizes(desk: Desk):
    text = "\n\n".join(f"Paragraph {number:04} with a few words." for number in range(1000))
    with Simulated([says(text, delta=64, fault=Fault(wait_each=0.02))]) as sim:
        desk.start(sim)
        desk.say("go")
        desk.wait("Paragraph 00")
        for turn in range(20):
            columns = (60, 110, 45, 90, 130)[turn % 5]
            desk.run("resize-window", "-x", str(columns), "-y", str(20 + turn % 3 * 10))
            time.sleep(0.4)
        desk.run("resize-window", "-x", str(desk.columns), "-y", str(desk.rows))
        desk.wait("Paragraph 0999")
        time.sleep(1.0)
        found = [row.split()[1] for row in desk.all() if row.startswith("Paragraph ")]
        assert found == [f"{number:04}" for number in range(1000)]
        assert sum("default · native" in row for row in desk.all()) == 1


def test_every_answer_of_a_question(desk: Desk):
    work = desk.place.work
    (work / "app.py").write_text("price = 1\n")
    replies = [
        shell("touch once"), says("one."),
        shell("touch never"), says("two."),
        shell("touch words"), says("three."),
        shell("touch session"), says("four."),
        shell("touch session"), says("five."),
    ]  # fmt: skip
    with Simulated(replies) as sim:
        desk.start(sim)
        desk.say("a")
        desk.wait("? Shell", "touch once")
        desk.answer("y")
        desk.wait("one.")
        assert (work / "once").exists()
        desk.say("b")
        desk.wait("touch never", "? Shell")
        desk.answer("n")
        desk.wait("two.")
        assert not (work / "never").exists()
        desk.say("c")
        desk.wait("touch words", "? Shell")
        desk.answer("Tab")
        desk.wait("Enter: no, with these words")
        desk.say("do something else")
        desk.wait("three.")
        assert not (work / "words").exists()
        assert "do something else" in str(sim.bodies[-1]["messages"])
        desk.say("d")
        desk.wait("touch session", "? Shell", "touch")
        desk.answer("s")
        desk.wait("four.")
        desk.say("e")
        desk.wait("five.")


def test_answers_that_last_edit_or_stop(desk: Desk):
    work = desk.place.work
    replies = [
        shell("touch always"), says("one."),
        shell("touch always"), says("two."),
        shell("mkdir whole"), says("three."),
        shell("rmdir before"), says("four."),
        shell("chmod 600 stopped"),
    ]  # fmt: skip
    with Simulated(replies) as sim:
        desk.start(sim)
        desk.say("a")
        desk.wait("? Shell", "always is stored in")
        desk.answer("a")
        desk.wait("one.")
        desk.say("b")
        desk.wait("two.")
        desk.say("c")
        desk.wait("? Shell", "mkdir whole")
        desk.answer("d")
        desk.wait("q close")
        desk.answer("y")
        desk.wait("three.")
        assert (work / "whole").is_dir()
        desk.say("e")
        desk.wait("? Shell", "rmdir before")
        desk.answer("e")
        desk.wait("› rmdir before")
        desk.keys("C-u")
        desk.say("rmdir whole")
        desk.wait("? Shell", "rmdir whole")
        desk.answer("y")
        desk.wait("four.")
        assert not (work / "whole").exists()
        desk.say("f")
        desk.wait("? Shell", "chmod 600 stopped")
        desk.answer("C-c")
        desk.wait("stopped")
        desk.gone("esc stops")


def test_all_calls_of_a_reply_at_once_and_keys_that_come_early(desk: Desk):
    work = desk.place.work
    names = ("x", "y", "z")
    both = Reply(
        pieces=tuple(Call.of("run_shell_command", command=f"mkdir {name}") for name in names)
    )
    with Simulated([both, says("done."), shell("mkdir early"), says("refused.")]) as sim:
        desk.start(sim)
        desk.say("go")
        desk.wait("? Shell", "1 of 3", "Y")
        desk.answer("Y")
        desk.wait("done.")
        assert all((work / name).is_dir() for name in names)
        desk.type("again")
        time.sleep(0.5)
        # Typed ahead, and so before the question is on the screen.
        desk.keys("Enter", "y", "y", "y")
        desk.wait("? Shell", "mkdir early")
        time.sleep(1.0)
        assert not (work / "early").exists()
        desk.answer("Escape")
        desk.wait("refused.")
        assert not (work / "early").exists()


def test_the_composer_in_the_editor(desk: Desk):
    editor = desk.place.root / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "written\\nelsewhere\\n" > "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with Simulated([says("seen")]) as sim:
        desk.start(sim, EDITOR=str(editor), VISUAL=str(editor))
        desk.type("draft")
        desk.wait("› draft")
        desk.keys("C-g")
        desk.wait("› written", "  elsewhere")
        desk.keys("Enter")
        desk.wait("seen")
        assert sim.bodies[0]["messages"][-1]["content"] == "written\nelsewhere"


def test_the_terminal_scrolls_and_searches_during_a_stream(desk: Desk):
    text = "\n\n".join(f"Paragraph {number:03} of the answer." for number in range(400))
    with Simulated([says(text, delta=16, fault=Fault(wait_each=0.02))]) as sim:
        desk.start(sim)
        desk.say("go")
        desk.wait("Paragraph 06")
        desk.run("copy-mode")
        desk.run("send-keys", "-X", "search-backward", "Paragraph 002")
        desk.run("send-keys", "-X", "begin-selection")
        desk.run("send-keys", "-X", "end-of-line")
        desk.run("send-keys", "-X", "copy-selection-and-cancel")
        assert desk.run("show-buffer").strip() == "Paragraph 002 of the answer."
        desk.wait("Paragraph 399 of the answer.")
        found = [row for row in desk.all() if row.startswith("Paragraph ")]
        assert found == [f"Paragraph {number:03} of the answer." for number in range(400)]


def test_a_session_is_chosen_shown_whole_and_goes_on(desk: Desk):
    with Simulated([says("one"), says("two"), says("went on")]) as sim:
        desk.start(sim)
        desk.say("the first of them")
        desk.wait("one")
        desk.gone("esc stops")
        desk.say("/new")
        time.sleep(1.5)
        desk.say("another one")
        desk.wait("two")
        desk.gone("esc stops")
        desk.say("/sessions")
        desk.wait("sessions of this folder", "the first of them")
        desk.keys("Enter")
        desk.gone("sessions of this folder")
        # The first time was in the session itself, the second when it is resumed.
        desk.times("› the first of them", 2)
        desk.keys("C-o")
        desk.wait("q close", "the first of them")
        desk.keys("q")
        desk.gone("q close")
        desk.say("and now")
        desk.wait("went on")
        assert "the first of them" in str(sim.bodies[2]["messages"])
        assert "another one" not in str(sim.bodies[2]["messages"])


def test_the_terminal_is_usable_after_a_signal(desk: Desk):
    modes = "#{alternate_on}#{cursor_flag}#{mouse_any_flag}#{keypad_cursor_flag}"
    with Simulated([says("one")]) as sim:
        for page in ("", "/settings"):
            desk.start(sim)
            if page:
                desk.say(page)
                desk.wait("Esc closes" if desk.columns > 100 else "Enter")
            os.kill(desk.process, 15)
            until = time.monotonic() + PATIENCE
            while desk.run("display-message", "-p", "#{pane_current_command}").strip() != "sleep":
                assert time.monotonic() < until
                time.sleep(0.1)
            assert desk.run("display-message", "-p", modes).strip() == "0100"


def test_the_editor_before_an_edit(desk: Desk):
    (desk.place.work / "app.py").write_text("price = 1\n")
    editor = desk.place.root / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "price = 7\\n" > "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with Simulated([edit(desk, "price = 1", "price = 2"), says("done.")]) as sim:
        desk.start(sim, EDITOR=str(editor), VISUAL=str(editor))
        desk.say("edit")
        desk.wait("1 + price = 2")
        desk.answer("e")
        desk.wait("1 + price = 7")
        desk.answer("y")
        desk.wait("done.")
        assert (desk.place.work / "app.py").read_text() == "price = 7\n"


def test_steering_and_queueing(desk: Desk):
    with Simulated([shell("sleep 4"), says("heard"), says("after")]) as sim:
        desk.start(sim, "--yolo", ready="yolo")
        desk.say("go")
        desk.wait("sleep 4")
        desk.say("also this")
        desk.wait("queued: also this")
        desk.type("later that")
        time.sleep(0.5)
        desk.keys("Tab")
        desk.wait("queued: later that")
        desk.wait("after")
        assert "also this" in str(sim.bodies[1]["messages"])
        assert "later that" in str(sim.bodies[2]["messages"])


def test_menus_files_paste_and_history(desk: Desk):
    (desk.place.work / "prices.py").write_text("x = 1\n")
    block = "\n".join(f"line {number}" for number in range(30))
    with Simulated([says("seen"), says("received")]) as sim:
        desk.start(sim)
        desk.type("/sty")
        desk.wait("› /style")
        desk.keys("Escape")
        time.sleep(0.5)
        desk.keys("C-u")
        desk.type("see @pric")
        desk.wait("prices.py")
        desk.keys("Tab")
        desk.wait("› see @prices.py")
        desk.keys("Enter")
        desk.wait("seen")
        (desk.place.root / "block").write_text(block)
        desk.run("load-buffer", str(desk.place.root / "block"))
        desk.run("paste-buffer", "-p")
        desk.wait("[pasted 30 lines #1]")
        desk.keys("Enter")
        desk.wait("received")
        assert block in str(sim.bodies[1]["messages"][-1]["content"])
        time.sleep(0.5)
        desk.keys("C-r")
        desk.wait("search:")
        desk.type("see")
        desk.wait("› see @prices.py")
        desk.keys("Enter")
        time.sleep(0.5)
        assert any(row.startswith("› see @prices.py") for row in desk.screen())


def test_modes_style_and_sessions(desk: Desk):
    with Simulated([says("one"), says("two"), says("three")]) as sim:
        desk.start(sim)
        desk.say("first")
        desk.wait("one")
        desk.keys("BTab")
        desk.wait("native · auto_edit")
        desk.say("/style xml")
        desk.wait("tool style in use: xml")
        desk.say("second")
        desk.wait("two")
        assert ["tools" in body for body in sim.bodies] == [True, False]
        desk.say("/new")
        time.sleep(1.5)
        desk.say("third")
        desk.wait("three")
        assert "first" not in str(sim.bodies[2]["messages"][-1])
        desk.say("/sessions")
        desk.wait("first")
        desk.keys("Escape")
        desk.wait("three")


def test_hostile_text_changes_nothing(desk: Desk):
    with Simulated([says(f"hello {EVIL}"), shell(f"echo '{EVIL}'"), says("end.")]) as sim:
        desk.start(sim)
        before = desk.run("display-message", "-p", "#{pane_title}")
        desk.say("one")
        desk.wait("hello")
        desk.say("two")
        desk.wait("? Shell")
        desk.answer("n")
        desk.wait("end.")
        assert any(row.startswith("› one") for row in desk.all())
        assert "evil" not in desk.run("display-message", "-p", "#{pane_title}")
        assert before is not None


def test_idle_costs_nothing(desk: Desk):
    with Simulated([says("x")]) as sim:
        desk.start(sim)
        time.sleep(3.0)
        before = _ticks(desk.process)
        time.sleep(5.0)
        assert _ticks(desk.process) - before <= 5


def test_no_colour(desk: Desk):
    with Simulated([says("**bold** `code`")]) as sim:
        desk.start(sim, NO_COLOR="1")
        desk.say("hi")
        desk.wait("bold code")
        drawn = desk.run("capture-pane", "-p", "-e", "-S", "-")
        assert not re.search(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]", drawn)


def test_a_dumb_terminal(desk: Desk):
    with Simulated([says("plain answer")]) as sim:
        desk.start(sim, ready="/help for help", TERM="dumb")
        desk.say("hi")
        desk.wait("plain answer")


def _ticks(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
