"""Signals, a closed terminal and errors in the middle of a turn: nothing is lost or left behind."""

import os
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.screen import PATIENCE, ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import Apps, answered, says, shell
from toolwire.simulator.script import Fault

pytestmark = pytest.mark.sweep

ON = (b"\x1b[?2004h", b"\x1b[?1004h", b"\x1b[>1u")
OFF = (b"\x1b[?2004l", b"\x1b[?1004l", b"\x1b[<u")
RAISE = """
import ctypes, os, threading, time

def wait():
    while not os.path.exists(os.environ["RAISE"]):
        time.sleep(0.01)
    error = ctypes.py_object(RuntimeError)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), error)

main = threading.get_ident()
threading.Thread(target=wait, daemon=True).start()
"""
"""Raises an error wherever the program is, when a file appears."""


def children(mark: str) -> list[str]:
    """The processes whose command line has a mark."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if mark.encode() in line:
            found.append(entry.name)
    return found


def wait_until(true: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def check_restored(app: ScreenTerminal) -> None:
    for on, off in zip(ON, OFF, strict=True):
        assert app.raw.rfind(on) < app.raw.rfind(off)
    usual = termios.ECHO | termios.ICANON | termios.ISIG
    assert termios.tcgetattr(app._main)[3] & usual == usual


def check_continues(apps: Apps, sim: Simulated) -> None:
    """The session goes on, and its words and calls are all there."""
    app = apps.start(sim, "--continue")
    app.wait("› the first prompt")
    app.press("go on\r")
    answered(app, "the end of it")
    words = str(sim.bodies[-1]["messages"])
    assert "the first prompt" in words
    assert "go on" in words


def running(apps: Apps, sim: Simulated, mark: str, **environ: str) -> ScreenTerminal:
    """An app in the middle of a command, on a terminal with the kitty protocol."""
    app = apps.start(sim, "--yolo", columns=80, rows=24, **environ)
    app.press("\x1b[?1u")
    app.press("the first prompt\r")
    app.wait("    begun")
    assert children(mark)
    return app


def slow_command(place: Place) -> tuple[str, str]:
    """A command that runs on with a child of its own, and its mark."""
    mark = f"31{abs(hash(str(place.root))) % 10**8}"
    return f"sleep {mark} & echo begun; sleep {mark}", mark


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_a_command_runs(apps: Apps, place: Place, number: int):
    command, mark = slow_command(place)
    with Simulated([shell(command), says("the end of it")]) as sim:
        app = running(apps, sim, mark)
        os.kill(app.process.pid, number)
        app.end()
        check_restored(app)
        wait_until(lambda: not children(mark))
        check_continues(apps, sim)


def test_a_terminal_that_is_closed_while_a_command_runs(apps: Apps, place: Place):
    command, mark = slow_command(place)
    with Simulated([shell(command), says("the end of it")]) as sim:
        app = running(apps, sim, mark)
        app.hang_up()
        app.process.wait(PATIENCE)
        wait_until(lambda: not children(mark))
        check_continues(apps, sim)


def test_a_terminal_that_is_closed_while_a_question_waits(apps: Apps, place: Place):
    with Simulated([shell("touch made"), says("the end of it")]) as sim:
        app = apps.start(sim)
        app.press("the first prompt\r")
        app.wait("? Shell", "y yes, once")
        app.hang_up()
        app.process.wait(PATIENCE)
        assert not (place.work / "made").exists()
        check_continues(apps, sim)
        assert not (place.work / "made").exists()
        [result] = [one for one in sim.bodies[-1]["messages"] if one["role"] == "tool"]
        # The user did not say no.
        assert "did not allow" not in result["content"]


def test_a_terminal_that_is_closed_while_text_streams(apps: Apps):
    slow = says("word " * 2000, fault=Fault(wait_each=0.02))
    with Simulated([slow, says("the end of it")]) as sim:
        app = apps.start(sim)
        app.press("the first prompt\r")
        app.wait("word word")
        app.hang_up()
        app.process.wait(PATIENCE)
        check_continues(apps, sim)


@pytest.mark.parametrize("wait", [0.0, 0.1, 0.4])
def test_an_error_of_the_program_itself(apps: Apps, place: Place, wait: float):
    folder, now = place.root / "raise", place.root / "now"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(RAISE)
    command, mark = slow_command(place)
    with Simulated([shell(command), says("the end of it"), says("the end of it")]) as sim:
        app = running(apps, sim, mark, PYTHONPATH=str(folder), RAISE=str(now))
        app.settle(wait)
        now.touch()
        app.settle(1.0)
        if app.process.poll() is None:
            # A part of the screen took it: the app goes on, and can be left.
            app.press("\x03")
            app.settle(0.3)
            app.press("\x03")
        app.end()
        check_restored(app)
        wait_until(lambda: not children(mark))
        check_continues(apps, sim)


@pytest.mark.parametrize(("key", "made"), [("y", True), ("n", False)])
def test_a_question_that_was_open_at_a_crash_is_asked_again(
    apps: Apps, place: Place, key: str, made: bool
):
    with Simulated([shell("touch made"), says("the end of it")]) as sim:
        app = apps.start(sim)
        app.press("the first prompt\r")
        app.wait("? Shell", "y yes, once")
        app.process.kill()
        app.process.wait()
        app = apps.start(sim, "--continue")
        rows = app.wait("? Shell", "$ touch made", "y yes, once")
        assert sum(row.startswith("toolwire") for row in rows) == 1
        assert not (place.work / "made").exists()
        app.answer(key)
        app.wait_gone("? Shell")
        app.press("go on\r")
        answered(app, "the end of it")
        assert (place.work / "made").exists() is made
        [result] = [one for one in sim.bodies[-1]["messages"] if one["role"] == "tool"]
        assert ("Exit Code: 0" in result["content"]) is made
        assert "not run" not in result["content"]
