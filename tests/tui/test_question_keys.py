"""Answers to questions on a real terminal: all at once, on a page, with an edited command."""

import stat
from pathlib import Path

from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import Apps, answered, replaces, says, shell
from toolwire.simulator import Reply
from toolwire.simulator.script import Call


def touches(*names: str) -> Reply:
    """A reply with several calls that each make a file."""
    calls = (Call.of("run_shell_command", command=f"touch {name}") for name in names)
    return Reply(pieces=tuple(calls))


def editor(place: Place, text: str) -> str:
    file = place.root / "editor.sh"
    file.write_text(f'#!/bin/sh\nprintf "{text}" > "$1"\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def made(place: Place) -> set[str]:
    return {path.name for path in place.work.iterdir()}


def test_several_calls_are_counted_and_allowed_at_once(apps: Apps, place: Place):
    with Simulated([touches("a", "b", "c"), touches("d"), says("done")]) as sim:
        app = apps.start(sim)
        app.press("go\r")
        app.wait("? Shell", "1 of 3", "$ touch a", "Y yes to all 3", "then run_shell_command")
        app.answer("n")
        rows = app.wait("2 of 3", "$ touch b", "Y yes to all 2")
        assert any("touch c" in row for row in rows)
        app.answer("Y")
        rows = app.wait("$ touch d", "y yes, once")
        assert not any("yes to all" in row for row in rows)
        app.answer("n")
        answered(app, "done")
        assert made(place) == {"b", "c"}


def test_a_command_is_edited_in_the_composer_before_it_runs(apps: Apps, place: Place):
    with Simulated([shell("touch wrong"), says("I see")]) as sim:
        app = apps.start(sim)
        app.press("go\r")
        app.wait("? Shell", "$ touch wrong", "e edit the command first")
        app.press("my draft")
        app.answer("e")
        app.wait("› touch wrong", "this command instead")
        app.press("\x7f" * 5 + "right\r")
        rows = app.wait("? Shell", "$ touch right")
        assert any("› my draft" in row for row in rows)
        assert made(place) == set()
        app.answer("y")
        answered(app, "I see")
        assert made(place) == {"right"}
        assert "Command: touch right" in str(sim.bodies[1]["messages"])


def test_an_edited_command_may_be_left_and_refused(apps: Apps, place: Place):
    with Simulated([shell("touch wrong"), says("I see")]) as sim:
        app = apps.start(sim)
        app.press("go\r")
        app.wait("? Shell")
        app.answer("e")
        app.wait("this command instead")
        app.press("\x1b")
        app.wait("y yes, once")
        app.answer("n")
        answered(app, "I see")
        assert made(place) == set()


def test_an_edited_command_that_only_reads_runs_at_once(apps: Apps, place: Place):
    with Simulated([shell("touch wrong"), says("I see")]) as sim:
        app = apps.start(sim)
        app.press("go\r")
        app.wait("? Shell")
        app.answer("e")
        app.wait("this command instead")
        app.press("\x15echo mine\r")
        answered(app, "I see", "● run_shell_command echo mine")
        assert made(place) == set()


def test_the_whole_diff_is_a_page_with_the_same_keys(apps: Apps, place: Place):
    target = place.work / "long.py"
    target.write_text("".join(f"old {number}\n" for number in range(60)))
    new = "".join(f"new {number}\n" for number in range(60))
    write = Reply(pieces=(Call.of("write_file", file_path=str(target), content=new),))
    with Simulated([write, says("done")]) as sim:
        app = apps.start(sim, columns=120)
        app.press("go\r")
        app.wait("more lines: d", "y yes, once")
        app.answer("d")
        app.wait("22 of", "y yes, once", "n no")
        app.press("G")
        app.wait("new 59")
        app.press("q")
        app.wait("more lines: d")
        assert target.read_text().startswith("old 0")
        app.answer("d")
        app.wait("22 of")
        app.answer("y")
        answered(app, "done")
        assert target.read_text() == new


def test_lines_of_the_model_and_the_user_are_counted_apart(apps: Apps, place: Place):
    with Simulated([replaces(place), says("done")]) as sim:
        program = editor(place, "price = 2\\nmine = 3\\n")
        app = apps.start(sim, columns=100, EDITOR=program, VISUAL=program)
        app.press("edit it\r")
        app.wait("? Edit", "+1 −1")
        app.answer("e")
        app.wait("you: +1 −0", "2 + mine = 3")
        app.answer("y")
        answered(app, "done", "+2 −1 (model +1 −1, you +1 −0)")
        assert (place.work / "app.py").read_text() == "price = 2\nmine = 3\n"


def test_an_answer_for_always_names_its_file_and_is_stored(apps: Apps, place: Place):
    with Simulated([shell("git init -q ."), shell("git init -q ."), says("done")]) as sim:
        app = apps.start(sim, columns=160)
        app.press("go\r")
        app.wait("session/always allows", "always is stored in ~/home/policy.toml")
        app.answer("a")
        answered(app, "done")
        [file] = Path(place.home).rglob("policy.toml")
        assert "git" in file.read_text()


def test_ctrl_c_refuses_and_stops_the_turn(apps: Apps, place: Place):
    with Simulated([shell("mkdir made"), says("still here")]) as sim:
        app = apps.start(sim)
        app.press("go\r")
        app.wait("? Shell")
        app.answer("\x03")
        app.wait_gone("esc stops")
        assert not (place.work / "made").exists()
        app.press("again\r")
        answered(app, "still here")
