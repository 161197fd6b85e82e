"""Random keys before a question and just after it is drawn: nothing is allowed by accident."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fakes.screen import PATIENCE, ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import says
from toolwire.simulator import Question, Reply
from toolwire.simulator.script import Call, Fault
from toolwire.tui.questions import QUIET

pytestmark = pytest.mark.sweep

TESTS, APPS, BURSTS = 4, 3, 84
"""1,008 bursts. Most of the time of each is that in which a question takes no key."""
MARGIN = 0.1
"""Seconds that may pass between a look at the clock and a key."""
LETTERS = [*"yYsagmedn1 "]
EARLY = [
    *LETTERS, "\r", "\t", "yes\r", "a\r", "y\ty\r", "words ", "é日", "\x7f",
    "\x1b[200~y\ry\r\x1b[201~", "\x1b[C", "\x1b[B", "\x1b[I", "\x1b[O", "\x1b[13;2u", "\x1b[13u",
]  # fmt: skip
LATE = [*EARLY, "\x1by", "\x1b\r", "\x1ba", "\x1b[121u", "\x1b[27;2;13~", "\x1bOM"]
"""With Escape, which before a question would stop the turn."""


class Burst:
    """One command, the keys that are typed until its question is drawn, and a few more."""

    def __init__(self, app: ScreenTerminal, number: int, chance: random.Random) -> None:
        self._app = app
        self._number = number
        self._chance = chance
        self._since = time.monotonic()
        """When the question was not on the screen yet, or got its last letter."""
        self.timely = True
        """Whether every key came within the time in which none counts."""

    def type(self) -> None:
        """Asks for the command, types, and denies it."""
        self._app.press(f"go {self._number}.\r")
        until = time.monotonic() + PATIENCE
        while not self._asked():
            self._press(EARLY)
            assert time.monotonic() < until, "\n".join(self._app.see())
            time.sleep(self._chance.random() * 0.02)
        for _ in range(self._chance.randrange(4)):
            self._press(LATE, again=True)
            time.sleep(self._chance.random() * 0.1)
        self._deny(until)

    def _asked(self) -> bool:
        now = time.monotonic()
        rows = self._app.see()
        if any(f"$ touch ran-{self._number}" in row for row in rows):
            return True
        self._since = now
        return False

    def _press(self, keys: list[str], *, again: bool = False) -> None:
        now = time.monotonic()
        if now - self._since > QUIET - 2 * MARGIN:
            # This process was not run for a while: a key now may be meant.
            return
        chosen = self._chance.choices(keys, k=self._chance.randrange(4))
        self._app.press("".join(chosen))
        self.timely = self.timely and time.monotonic() - self._since < QUIET - MARGIN
        if again and any(key in LETTERS for key in chosen):
            # The time begins again with each letter.
            self._since = now

    def _deny(self, until: float) -> None:
        while any(row.startswith("? Shell") for row in self._app.see()):
            self._app.settle(QUIET + 0.05)
            self._app.press("n")
            tried = time.monotonic() + 1.0
            while time.monotonic() < tried and "? Shell" in "\n".join(self._app.see()):
                time.sleep(0.01)
            assert time.monotonic() < until, "\n".join(self._app.see())


class Typist:
    """Types bursts into one app after another; one that took a late key is not judged."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._chance = random.Random(seed)
        self._number = 0
        self._calls: set[int] = set()

    def run(self, count: int) -> None:
        left = count
        with Simulated(self._reply) as sim:
            while left:
                place = Place(self._root / str(self._number))
                place.root.mkdir(parents=True)
                left -= self._in_one_app(place, sim, left)

    def _in_one_app(self, place: Place, sim: Simulated, most: int) -> int:
        env = place.environ(TERM="xterm-256color")
        args = ["chat", "--upstream", sim.upstream()]
        app = ScreenTerminal(args, cwd=place.work, env=env, rows=30)
        try:
            app.wait("›", "default")
            for judged in range(most):
                self._number += 1
                burst = Burst(app, self._number, self._chance)
                burst.type()
                _until_idle(app)
                if not burst.timely:
                    return judged
                assert list(place.work.iterdir()) == [], "\n".join(app.all())
            return most
        finally:
            app.close()

    def _reply(self, question: Question) -> Reply:
        number = self._number
        texts = [message.text for message in question.request.messages if message.role == "user"]
        if number in self._calls or not any(f"go {number}." in text for text in texts):
            return says("I see.")
        self._calls.add(number)
        call = Call.of("run_shell_command", command=f"touch ran-{number}")
        return Reply(pieces=(call,), fault=Fault(wait_first=self._chance.random() * 0.1))


def _until_idle(app: ScreenTerminal) -> None:
    """Waits for the end of all turns, those of typed lines too; clears the composer."""
    until = time.monotonic() + PATIENCE
    while True:
        shown = "\n".join(app.see())
        assert time.monotonic() < until, shown
        if "esc stops" not in shown and "queued:" not in shown:
            if any(row == "›" for row in app.see()):
                return
            app.press("\x0b" + "\x7f" * 100)
        app.settle(0.05)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(TESTS))
def test_a_thousand_bursts_of_keys_allow_nothing(seed: int, tmp_path: Path):
    with ThreadPoolExecutor(APPS) as threads:
        runs = [
            threads.submit(Typist(tmp_path / str(app), seed * APPS + app).run, BURSTS)
            for app in range(APPS)
        ]
        for run in runs:
            run.result()


def test_some_bursts_of_keys_allow_nothing(tmp_path: Path):
    Typist(tmp_path, 99).run(5)
