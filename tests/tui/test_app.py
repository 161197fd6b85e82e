"""The terminal app on a real terminal, with the simulator as its model."""

import os
import re
import signal
import stat

import pytest

from tests.fakes.screen import ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import Apps, answered, replaces, says, shell
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Fault

EVIL = "\x1b[2J\x1b]0;evil\x07\x1b]52;c;eA==\x07\x9b2Jover\rwritten\u202ebidi\U000e0041end"


def test_an_answer_is_printed_as_blocks(apps: Apps):
    text = "# Title\n\nSome **bold** prose.\n\n- one\n- two\n\n```python\nx = 1\n```\n"
    with Simulated([says(text)]) as sim:
        app = apps.start(sim)
        app.press("hello\r")
        rows = app.wait("• two", "x = 1")
        app.wait_gone("thinking")
        assert "› hello" in rows
        assert "Some bold prose." in rows
        app.press("\x04")
        assert app.end() == 0


def test_an_edit_is_shown_and_made_after_a_yes(apps: Apps, place: Place):
    with Simulated([replaces(place), says("done")]) as sim:
        app = apps.start(sim)
        app.press("edit it\r")
        rows = app.wait("? Edit", "1 - price = 1", "1 + price = 2", "y yes, once")
        assert any("session/always allows" in row for row in rows)
        app.answer("y")
        app.wait("● replace", "+1 −1", "done")
        assert (place.work / "app.py").read_text() == "price = 2\n"


def test_a_no_with_words_reaches_the_model(apps: Apps, place: Place):
    with Simulated([replaces(place), says("I see")]) as sim:
        app = apps.start(sim)
        app.press("edit it\r")
        app.wait("? Edit")
        app.answer("\t")
        app.wait("no, with these words")
        app.press("use 3 instead\r")
        app.wait("⊘ replace", "I see")
        assert (place.work / "app.py").read_text() == "price = 1\n"
        assert "use 3 instead" in str(sim.bodies[1]["messages"])


def test_an_edit_may_be_changed_in_the_editor_and_is_asked_again(apps: Apps, place: Place):
    editor = place.root / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "price = 7\\n" > "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with Simulated([replaces(place), says("done")]) as sim:
        app = apps.start(sim, EDITOR=str(editor), VISUAL=str(editor))
        app.press("edit it\r")
        app.wait("? Edit")
        app.answer("e")
        app.wait("1 + price = 7")
        app.answer("y")
        app.wait("done")
        assert (place.work / "app.py").read_text() == "price = 7\n"


def test_keys_typed_before_a_question_do_not_answer_it(apps: Apps, place: Place):
    slow = replaces(place)
    with Simulated([slow, says("done")]) as sim:
        app = apps.start(sim)
        app.press("edit it\r")
        for _ in range(40):
            app.press("y")
            app.settle(0.05)
        rows = app.wait("? Edit")
        assert (place.work / "app.py").read_text() == "price = 1\n"
        assert any(re.match(r"› y+", row) for row in rows)
        app.answer("n")
        app.wait("⊘ replace")


def test_a_stop_holds_what_is_queued_until_it_is_sent_or_edited(apps: Apps, place: Place):
    with Simulated([shell("sleep 60"), says("first"), shell("sleep 61"), says("other")]) as sim:
        app = apps.start(sim, "--yolo")
        for command in ("sleep 60", "sleep 61"):
            app.press("go\r")
            app.wait(f"run_shell_command {command}")
            app.press("later that\t")
            app.wait("queued: later that")
            app.press("\x1b")
            app.wait("stopped", "queued: later that   (Enter sends it, Up edits it)")
            before = len(sim.bodies)
            app.settle()
            assert len(sim.bodies) == before
            if command == "sleep 60":
                app.press("\r")
                app.wait("first")
            else:
                app.press("\x1b[A")
                app.wait("› later that")
            app.wait_gone("queued")
        app.press(", changed\r")
        app.wait("other")
        assert "later that, changed" in str(sim.bodies[-1]["messages"][-1])


def test_the_transcript_shows_more_of_what_a_running_call_prints(apps: Apps):
    with Simulated([shell("seq 1 20; sleep 60")]) as sim:
        app = apps.start(sim, "--yolo", rows=40)
        app.press("go\r")
        app.wait("    20")
        assert "    17" not in app.see()
        app.press("\x0f")
        app.wait("q close", "    6", "    20")


def test_ctrl_c_clears_what_is_written_before_it_leaves(apps: Apps):
    with Simulated([says("x")]) as sim:
        app = apps.start(sim)
        app.press("words")
        app.wait("› words")
        app.press("\x03")
        app.wait_gone("› words")
        app.press("\x03")
        app.wait("press Ctrl-C again to leave")
        app.press("\x03")
        assert app.end() == 0


def test_hooks_learn_that_nothing_was_written_for_a_while(apps: Apps, place: Place):
    noted = place.root / "noted.json"
    (place.home / "config.toml").write_text(
        "[hooks]\nidle_seconds = 1\n[[hooks.Notification]]\n"
        f'matcher = "idle_prompt"\ncommand = "cat > {noted}.part; mv {noted}.part {noted}"\n'
    )
    with Simulated([says("done")]) as sim:
        app = apps.start(sim)
        app.press("hello\r")
        answered(app, "done")
        while not noted.exists():
            app.settle(0.1)
        app.press("\x04")
        assert app.end() == 0
    assert "waits for your input" in noted.read_text()


def test_a_question_mark_shows_the_keys(apps: Apps):
    with Simulated([says("x")]) as sim:
        app = apps.start(sim, columns=120, rows=70)
        app.press("?\r")
        app.wait("/transcript", "Ctrl-O")
        assert not sim.bodies


def test_words_typed_while_it_works_reach_the_next_step(apps: Apps, place: Place):
    with Simulated([shell("sleep 6"), says("heard"), says("after")]) as sim:
        app = apps.start(sim, "--yolo")
        app.press("go\r")
        app.wait("run_shell_command sleep 6")
        app.press("also this\r")
        app.wait("queued: also this")
        app.press("later that\t")
        app.wait("queued: later that")
        app.wait("after")
        app.wait_gone("queued")
        assert "also this" in str(sim.bodies[1]["messages"])
        assert "later that" not in str(sim.bodies[1]["messages"])
        assert "later that" in str(sim.bodies[2]["messages"])


def test_escape_stops_the_turn(apps: Apps):
    words = " ".join(f"word{number}" for number in range(4000))
    with Simulated([says(words, fault=Fault(wait_each=0.01)), says("back again")]) as sim:
        app = apps.start(sim)
        app.press("go\r")
        app.wait("word1 word2")
        app.press("\x1b")
        app.wait("stopped")
        app.press("still there?\r")
        app.wait("back again")


def test_a_prompt_that_was_stopped_before_an_answer_returns(apps: Apps):
    with Simulated([says("x", fault=Fault(wait_first=30.0))]) as sim:
        app = apps.start(sim)
        app.press("my long prompt\r")
        app.wait("thinking")
        app.press("\x1b")
        app.wait("stopped", "› my long prompt")


def test_a_pasted_block_is_one_message(apps: Apps):
    with Simulated([says("answered")]) as sim:
        app = apps.start(sim)
        block = "\n".join(f"line {number}" for number in range(20))
        app.press(f"\x1b[200~{block}\x1b[201~")
        app.wait("[pasted 20 lines #1]")
        app.press(" please\r")
        app.wait("answered")
        assert block in str(sim.bodies[0]["messages"][-1]["content"])


def test_commands_and_files_are_found(apps: Apps, place: Place):
    (place.work / "prices.py").write_text("x\n")
    with Simulated([says("read it")]) as sim:
        app = apps.start(sim)
        app.press("/sty")
        app.wait("› /style")
        app.press("\x1b")
        app.settle()
        app.press("\x7f" * 4 + "see @pric")
        app.wait("prices.py")
        app.press("\t")
        app.wait("› see @prices.py")
        app.press("\r")
        app.wait("read it")
        assert "Content from @" in str(sim.bodies[0]["messages"])


def test_the_style_of_a_running_session_changes_both_ways(apps: Apps):
    with Simulated([says("one"), says("two"), says("three")]) as sim:
        app = apps.start(sim, rows=40)
        app.press("a\r")
        app.wait("one")
        app.press("/style xml\r")
        app.wait("tool style in use: xml", "why:")
        app.press("b\r")
        app.wait("two")
        app.press("/style native\r")
        app.wait("tool style in use: native")
        app.press("c\r")
        app.wait("three")
        assert ["tools" in body for body in sim.bodies] == [True, False, True]


def test_no_sequence_of_a_hostile_model_reaches_the_terminal(apps: Apps):
    odd = Reply(pieces=(Call.of(f"tool{EVIL}", path=EVIL),))
    with Simulated([says(f"hello {EVIL}"), shell(f"echo '{EVIL}'"), odd, says("end.")]) as sim:
        app = apps.start(sim)
        app.press("one\r")
        app.wait("hello", "\\u001b[2J")
        app.press("two\r")
        app.wait("? Shell", "\\u001b")
        app.answer("n")
        app.wait("end.")
        printed = app.raw.decode("utf-8", "replace")
        # Written out, as a text and in a question.
        printed = re.sub(r"(?:\\u001b|‹U\+001B›)\](?:0;evil|52;c;eA)", "", printed)
        for part in ("]0;evil", "]52;c;eA", "\x9b", "\u202e", "\U000e0041", "\x1b[2J"):
            assert part not in printed


def test_a_session_is_resumed_with_its_end_on_the_screen(apps: Apps):
    with Simulated([says("the first answer"), says("the second")]) as sim:
        app = apps.start(sim)
        app.press("first\r")
        app.wait("the first answer")
        app.press("\x04")
        app.end()
        app = apps.start(sim, "--continue")
        app.wait("› first", "the first answer")
        app.press("more\r")
        app.wait("the second")
        assert "the first answer" in str(sim.bodies[1]["messages"])


def test_what_was_written_comes_back_with_up(apps: Apps):
    with Simulated([says("ok"), says("ok")]) as sim:
        app = apps.start(sim)
        app.press("remember me\r")
        app.wait("ok")
        app.press("\x04")
        app.end()
        app = apps.start(sim)
        app.press("\x1b[A")
        app.wait("› remember me")


def test_the_users_own_command_is_shown_and_reported(apps: Apps):
    with Simulated([says("seen")]) as sim:
        app = apps.start(sim)
        app.press("!echo from me; printf '\\033[31min red\\033[0m\\n'\r")
        app.wait("$ echo from me", "from me")
        app.press("what was it?\r")
        app.wait("seen")
        assert "I ran `echo from me; " in str(sim.bodies[0]["messages"])
        assert "in red" in app.all()


def test_the_terminal_is_restored_when_it_is_terminated(apps: Apps):
    with Simulated([says("x")]) as sim:
        app = apps.start(sim)
        os.kill(app.process.pid, signal.SIGTERM)
        app.end()
        assert app.raw.count(b"\x1b[?2004h") <= app.raw.count(b"\x1b[?2004l")
        assert app.raw.count(b"\x1b[?1004h") <= app.raw.count(b"\x1b[?1004l")


@pytest.mark.parametrize(("columns", "rows"), [(20, 6), (300, 80)])
def test_every_size_is_usable(apps: Apps, columns: int, rows: int):
    with Simulated([says("The answer is short. " * 5)]) as sim:
        app = apps.start(sim, columns=columns, rows=rows)
        app.press("hi\r")
        app.wait("short.")
        app.press("\x04")
        assert app.end() == 0


def test_a_long_answer_is_in_the_scrollback_once(apps: Apps):
    text = "\n\n".join(f"Paragraph number {number} of the answer." for number in range(200))
    with Simulated([says(text)]) as sim:
        app = apps.start(sim)
        app.press("long\r")
        app.wait("Paragraph number 199")
        app.settle()
        found = [row for row in app.all() if row.startswith("Paragraph number")]
        assert found == [f"Paragraph number {number} of the answer." for number in range(200)]


def test_no_colour_is_used_where_none_is_wanted(apps: Apps):
    with Simulated([says("**bold** `code`")]) as sim:
        app = apps.start(sim, NO_COLOR="1")
        app.press("hi\r")
        app.wait("bold code")
        assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", app.raw)


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"ACCESSIBLE": "1"}])
def test_plain_lines_where_nothing_can_be_redrawn(place: Place, environ: dict[str, str]):
    with Simulated([says("hello")]) as sim:
        env = place.environ(**{"TERM": "xterm", **environ})
        app = ScreenTerminal(["chat", "--upstream", sim.upstream()], cwd=place.work, env=env)
        app.wait("/help for help", ">")
        app.press("hi\n")
        app.wait("hello")
        assert b"\x1b[?2026h" not in app.raw
        app.close()
