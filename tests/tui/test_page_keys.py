"""Keys that are pressed as a page opens, closes or opens again: each of them reaches something."""

import random
import re
import signal
import time

import pytest

from tests.fakes.screen import ScreenTerminal
from tests.fakes.simulated import Simulated
from tests.tui.apps import Apps, answered, says, shell

pytestmark = pytest.mark.sweep

ROUNDS = 8


def typed(app: ScreenTerminal) -> str:
    """What is written in the composer."""
    app.wait("default")
    found = [row for row in app.see() if row.startswith("›")]
    return found[-1][1:].strip()


def press_at_random_moments(app: ScreenTerminal, chance: random.Random, keys: str) -> None:
    for key in keys:
        app.press(key)
        if chance.random() < 0.6:
            time.sleep(chance.uniform(0.0, 0.06))
            app.read()


def test_letters_typed_as_a_page_opens_are_all_there_in_their_order(apps: Apps):
    chance = random.Random(17)
    with Simulated([says("x")]) as sim:
        app = apps.start(sim, columns=160)
        for _ in range(ROUNDS):
            letters = "".join(chance.choices("bcdefgh", k=chance.randint(1, 9)))
            press_at_random_moments(app, chance, f"/theme\r{letters}")
            app.wait("theme (now", "Esc closes")
            until = time.monotonic() + 5
            while time.monotonic() < until:
                query = re.search(r"› (\w*)▏", "\n".join(app.see()))
                if query is not None and letters.endswith(query[1]) and query[1]:
                    break
                time.sleep(0.02)
            time.sleep(0.1)
            shown = re.search(r"› (\w*)▏", "\n".join(app.see()))
            app.press("\x1b")
            assert shown is not None
            assert typed(app) + shown[1] == letters
            app.press("\x15")
            app.wait_gone("Esc closes")


def test_escape_closes_the_page_that_opened_again_at_any_moment(apps: Apps):
    chance = random.Random(18)
    with Simulated([says("x")]) as sim:
        app = apps.start(sim, columns=160)
        app.press("hello\r")
        answered(app, "x")
        for _ in range(ROUNDS):
            app.press("/sessions\r")
            app.wait("Esc closes")
            press_at_random_moments(app, chance, "\x01\x01")
            app.press("\x1b")
            app.wait("default ·")
            assert typed(app) == ""


def test_an_escape_cut_from_its_page_is_not_joined_with_the_next_key(apps: Apps):
    with Simulated([says("x")]) as sim:
        app = apps.start(sim, columns=160)
        app.press("\x0f")
        app.wait("q close")
        app.press("q\x1b")
        app.wait("default ·")
        app.settle(0.3)
        app.press("hello")
        app.wait("› hello")


def test_no_key_that_was_typed_on_a_page_answers_the_question_below(apps: Apps):
    with Simulated([shell("touch made"), says("refused")]) as sim:
        app = apps.start(sim, columns=160)
        app.press("go\r")
        app.wait("? Shell")
        app.answer("d")
        app.wait("q close")
        app.press("qy")
        app.wait("? Shell", "› y")
        app.answer("n")
        answered(app, "refused")
        assert not (apps.place.work / "made").exists()


def test_a_signal_ends_the_app_while_a_page_is_open(apps: Apps):
    with Simulated([says("x"), says("x")]) as sim:
        for page in ("/settings\r", "\x0f"):
            app = apps.start(sim, columns=160)
            app.press(page)
            app.wait("close")
            app.process.send_signal(signal.SIGTERM)
            assert app.end() == 0
            for mode in (b"1049", b"2004", b"1004"):
                assert app.raw.rfind(b"?%sl" % mode) > app.raw.rfind(b"?%sh" % mode)
