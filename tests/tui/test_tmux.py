"""The terminal app in tmux, which wraps lines anew when its window changes."""

import shlex
import shutil
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.fakes.simulated import Place, Simulated, command
from toolwire.simulator import Reply
from toolwire.simulator.script import Fault, Say

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]
PATIENCE = 90.0


class Tmux:
    """One window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def start(self, place: Place, args: list[str], columns: int, rows: int) -> None:
        environ = place.environ(TERM="tmux-256color")
        words = ["env", "-i", *(f"{name}={value}" for name, value in environ.items())]
        line = shlex.join([*words, *command(args)])
        size = ("-x", str(columns), "-y", str(rows))
        self.run("new-session", "-d", *size, "-c", str(place.work), f"{line}; sleep 60")

    def all(self) -> list[str]:
        """The scrollback and the screen."""
        return self.run("capture-pane", "-p", "-S", "-").split("\n")

    def wait(self, words: str) -> None:
        until = time.monotonic() + PATIENCE
        while not any(words in line for line in self.all()):
            assert time.monotonic() < until, "\n".join(self.all())
            time.sleep(0.1)


@pytest.fixture
def tmux(tmp_path: Path) -> Generator[Tmux]:
    found = Tmux(tmp_path / "tmux")
    yield found
    found.run("kill-server")


def test_an_answer_is_in_the_scrollback_once_after_many_resizes(tmux: Tmux, tmp_path: Path):
    count = 60
    text = "\n\n".join(
        f"Paragraph {number:03} says a few words, so that it is longer than a narrow window."
        for number in range(count)
    )
    slow = Reply(pieces=(Say(text),), fault=Fault(wait_each=0.01))
    with Simulated([slow]) as sim:
        tmux.start(Place(tmp_path), ["chat", "--upstream", sim.upstream()], 100, 30)
        tmux.wait("›")
        tmux.run("send-keys", "go", "Enter")
        tmux.wait("Paragraph 003")
        for columns in (70, 120, 50, 90, 40, 100, 64, 110, 45, 80, 130, 100):
            tmux.run("resize-window", "-x", str(columns), "-y", "30")
            time.sleep(0.25)
        tmux.wait(f"Paragraph {count - 1:03}")
        time.sleep(1.0)
        lines = tmux.all()
    found = [line.split()[1] for line in lines if line.startswith("Paragraph ")]
    assert found == [f"{number:03}" for number in range(count)]
    assert sum("native" in line for line in lines) == 1


def test_the_screen_is_as_it_was_after_a_page(tmux: Tmux, tmp_path: Path):
    with Simulated([Reply(pieces=(Say("the only answer"),))]) as sim:
        tmux.start(Place(tmp_path), ["chat", "--upstream", sim.upstream()], 80, 24)
        tmux.wait("›")
        tmux.run("send-keys", "go", "Enter")
        tmux.wait("the only answer")
        time.sleep(0.5)
        before = tmux.all()
        tmux.run("send-keys", "C-o")
        tmux.wait("q close")
        tmux.run("send-keys", "q")
        time.sleep(1.0)
        assert tmux.all() == before


def test_the_early_prompt_leaves_nothing_in_the_scrollback(tmux: Tmux, tmp_path: Path):
    with Simulated([Reply(pieces=(Say("the only answer"),))]) as sim:
        tmux.start(Place(tmp_path), ["chat", "--upstream", sim.upstream()], 80, 10)
        tmux.wait("›")
        tmux.run("send-keys", "typed", "Space", "early", "Enter")
        tmux.wait("the only answer")
        tmux.wait("default · native")
        time.sleep(0.5)
        lines = [line for line in tmux.all() if line.strip()]
    assert lines[0].startswith("toolwire")
    assert "upstream/default" in lines[0]
    assert [line for line in lines if "typed early" in line] == ["› typed early"]
    assert sum(line.startswith("toolwire") for line in lines) == 1
    assert [line.strip() for line in lines if line.startswith("›")] == ["› typed early", "›"]
