"""The composer and the terminal's own reports, in the real program on a real terminal."""

import json
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.screen import ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Fault, Say

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
OFF = (b"\x1b[?2004l", b"\x1b[?1004l", b"\x1b[<u")
ON = (b"\x1b[?2004h", b"\x1b[?1004h", b"\x1b[>1u")


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Running:
    """Starts programs, and ends them with the test."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._open: list[ScreenTerminal] = []

    def start(self, sim: Simulated, *args: str, **environ: str) -> ScreenTerminal:
        env = self._place.environ(**{"TERM": "xterm-256color", **environ})
        options = ["chat", "--upstream", sim.upstream(), *args]
        app = ScreenTerminal(options, cwd=self._place.work, env=env)
        self._open.append(app)
        app.wait("›", "yolo" if "--yolo" in args else "default")
        return app

    def close(self) -> None:
        for app in self._open:
            app.close()


@pytest.fixture
def running(place: Place) -> Generator[Running]:
    found = Running(place)
    yield found
    found.close()


def test_reports_of_the_terminal_are_not_typed_and_kitty_keys_are_read(running: Running):
    with Simulated([says("answered")]) as sim:
        app = running.start(sim)
        app.press("\x1b[?1u\x1b]11;rgb:1e1e/1e1e/2e2e\x07\x1b[O\x1b[I\x1b[24;80R\x1b[?62;4c")
        app.press("one\x1b[13;2utwo\x1b[27;2;13~three")
        rows = app.wait("› one", "  two", "  three")
        assert not any("rgb" in row or "62;4c" in row for row in rows)
        app.press("\x1b[13u")
        app.wait("answered")
        assert sim.bodies[0]["messages"][-1]["content"] == "one\ntwo\nthree"
        app.press("\x1b[100;5u")
        assert app.end() == 0
        for on, off in zip(ON, OFF, strict=True):
            assert app.raw.rfind(on) < app.raw.rfind(off)


def test_a_picture_is_attached_by_its_path_and_a_prompt_is_found_again(
    running: Running, place: Place
):
    image = place.work / "the picture.png"
    image.write_bytes(PNG)
    with Simulated([says("seen"), says("again")]) as sim:
        app = running.start(sim)
        app.press(f"\x1b[200~'{image}'\x1b[201~")
        app.wait("› [image 1]")
        app.press("what is it?\r")
        app.wait("seen")
        # Its mark is in what was sent, once.
        assert not any(row.startswith("  [image") for row in app.see())
        assert "image_url" in str(sim.bodies[0]["messages"][-1]["content"])
        app.press("\x12what")
        app.wait("search: what", "› [image 1] what is it?")
        app.press("\r")
        app.wait("› [image 1] what is it?")
        app.press("\x03")


def test_what_was_written_comes_back_after_a_crash(running: Running):
    with Simulated([says("x")]) as sim:
        app = running.start(sim)
        app.press("half a thought")
        app.wait("› half a thought")
        app.settle(1.5)
        os.kill(app.process.pid, signal.SIGKILL)
        app.end()
        app = running.start(sim)
        app.wait("› half a thought")


def test_a_custom_command_asks_before_its_shell_part(running: Running, place: Place):
    folder = place.home / "commands" / "git"
    folder.mkdir(parents=True)
    (folder / "sum.toml").write_text(
        'description = "Add up"\nprompt = "Add {{args}} to !{touch made; echo 41 @secret.txt}"\n'
    )
    (place.work / "secret.txt").write_text("do not read me\n")
    with Simulated([says("42")]) as sim:
        app = running.start(sim)
        app.press("/git")
        app.wait("› /git:sum", "Add up")
        app.press("\t1\r")
        app.wait("? Shell", "touch made")
        app.answer("y")
        app.wait("42")
        body = json.dumps(sim.bodies[0]["messages"][-1]["content"])
        assert "Add 1 to 41 @secret.txt" in body
        assert "do not read me" not in body


def test_keys_themes_and_the_status_line_follow_the_settings(running: Running, place: Place):
    (place.home / "config.toml").write_text(
        '[keys]\ntranscript = ["f5"]\n[ui]\nstatus = ["mode", "model", "command"]\n'
        'status_command = "echo all well; echo more"\n'
    )
    with Simulated([says("x")]) as sim:
        app = running.start(sim, TOOLWIRE_TRUST_WORKSPACE="1")
        app.wait("ask · default · all well")
        app.press("/theme light\r")
        app.wait("theme: light")
        assert 'theme = "light"' in (place.home / "config.toml").read_text()
        app.press("\x1b[15~")
        app.wait("q close")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_restored_in_the_middle_of_a_turn(running: Running, number: int):
    with Simulated([says("word " * 2000, fault=Fault(wait_each=0.02))]) as sim:
        app = running.start(sim)
        app.press("\x1b[?1u")
        app.press("go\r")
        app.wait("word word")
        os.kill(app.process.pid, number)
        app.end()
        for on, off in zip(ON, OFF, strict=True):
            assert app.raw.rfind(on) < app.raw.rfind(off)


def test_a_question_rings_where_the_terminal_is_not_watched(running: Running):
    asks = Reply(pieces=(Call.of("run_shell_command", command="touch x"),))
    with Simulated([asks, says("done")]) as sim:
        app = running.start(sim)
        app.press("\x1b[Ogo\r")
        app.wait("? Shell")
        app.answer("n")
        app.wait("done")
        assert b"\x1b[?2026h\x07" in app.raw


def test_a_running_command_goes_on_in_the_background(running: Running, place: Place):
    slow = Reply(
        pieces=(Call.of("run_shell_command", command="echo begun; sleep 30; touch never"),)
    )
    with Simulated([slow, says("it runs on")]) as sim:
        app = running.start(sim, "--yolo")
        app.press("go\r")
        app.wait("    begun")
        app.press("\x02")
        app.wait("it runs on")
        body = str(sim.bodies[1]["messages"][-1])
        assert "let this command run on in the background" in body
        assert "begun" in body
        assert not (place.work / "never").exists()


def test_the_picture_in_the_clipboard_is_attached(running: Running, place: Place):
    program = place.root / "bin" / "wl-paste"
    program.parent.mkdir()
    (place.root / "clip.png").write_bytes(PNG)
    program.write_text(f"#!/bin/sh\ncat {place.root}/clip.png\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    with Simulated([says("seen")]) as sim:
        app = running.start(sim, PATH=path, WAYLAND_DISPLAY="wayland-0")
        app.press("\x16")
        app.wait("› [image 1]")
        (place.root / "clip.png").write_text("words")
        app.press("\x1bv")
        app.wait("the clipboard holds no picture")
        app.press("look\r")
        app.wait("seen")
        assert "image_url" in str(sim.bodies[0]["messages"][-1]["content"])


def test_wide_letters_keep_the_screen_whole(running: Running):
    words = "".join(f"日本語の文章{number}です。" for number in range(30))
    text = f"{words}\n\n| 名前 | 値 |\n|---|---|\n| 🍎 | 一 |\n\nend 👩‍👩‍👧 é"
    with Simulated([says(text), says("second")]) as sim:
        app = running.start(sim)
        app.press("你好 👍🏽 wörld\r")
        rows = app.wait("end ", "› 你")
        assert all(len(row) <= 80 for row in rows)
        app.press("more\r")
        rows = app.wait("second")
        assert sum("default · native" in row for row in rows) == 1


def test_an_error_at_the_start_leaves_the_terminal_as_it_was(place: Place):
    with Simulated([says("x")]) as sim:
        env = place.environ(TERM="xterm-256color")
        options = ["chat", "--continue", "--upstream", sim.upstream()]
        app = ScreenTerminal(options, cwd=place.work, env=env)
        assert app.end() != 0
        assert any("no session" in row for row in app.see())
        for on, off in zip(ON[:2], OFF[:2], strict=True):
            assert app.raw.rfind(on) < app.raw.rfind(off)
        app.close()


def test_a_closed_terminal_ends_the_program(running: Running):
    slow = says("word " * 2000, fault=Fault(wait_each=0.02))
    with Simulated([slow]) as sim:
        app = running.start(sim)
        app.press("go\r")
        app.wait("word word")
        app.hang_up()
        app.process.wait(60)
