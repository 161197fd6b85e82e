import os
import pwd
from pathlib import Path

import pytest

from tests.fakes.simulated import LONGEST, Done, Place, Simulated
from tests.fakes.terminal import Terminal
from toolwire.simulator import Reply
from toolwire.simulator.script import Say

HELLO = Reply(pieces=(Say("hello"),))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def run(place: Place, sim: Simulated, cwd: Path, *args: str) -> Done:
    process = place.start("run", "--upstream", sim.upstream(), *args, "hi", cwd=cwd)
    out, err = process.communicate(timeout=LONGEST)
    return Done(process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize("folder", [pwd.getpwuid(os.getuid()).pw_dir, "/"])
def test_headless_a_home_folder_has_to_be_named(folder: str, place: Place) -> None:
    with Simulated([HELLO]) as sim:
        done = run(place, sim, Path(folder))
        assert (done.code, done.out) == (42, "")
        assert "home folder" in done.err
        assert f"with --cwd {folder}" in done.err
        named = run(place, sim, place.work, "--cwd", folder)
        assert (named.code, named.out) == (0, "hello\n")


def test_a_home_in_the_temporary_folder_gets_a_notice_only(place: Place) -> None:
    with Simulated([HELLO, HELLO]) as sim:
        for folder in (place.root, place.root.parent):
            done = run(place, sim, folder)
            assert (done.code, done.out) == (0, "hello\n")
            assert "hidden files in it are protected" in done.err
    with Simulated([HELLO]) as sim:
        assert "home folder" not in run(place, sim, place.work).err


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_chat_asks_before_it_works_in_a_home_folder(answer: str, place: Place) -> None:
    with Simulated([HELLO]) as sim:
        options = ["chat", "--upstream", sim.upstream()]
        terminal = Terminal(options, cwd=place.root, env=place.environ(TERM="dumb"))
        terminal.wait_for("Work in it? [y/N]:")
        terminal.type(answer)
        if answer == "y":
            terminal.wait_for("/help for help")
            assert terminal.leave() == 0
        else:
            terminal.wait_for("change to the folder of a project")
        terminal.close()
