"""Whole screens, compared with text files beside this test: a change of them is reviewed like code.

`SCREENS=write` in the environment writes the files.
"""

import os
import re
from pathlib import Path

import pytest

from tests.fakes.screen import ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import Apps, answered, replaces, says, shell
from toolwire.simulator.script import Fault

FILES = Path(__file__).with_name("screens")
PROSE = """## Prices

The function takes a **share** of the price, so `reduced(100, 0.2)` is 80.

- one point
- another one

| name | price |
|------|-------|
| tea  | 3     |

```python
def reduced(price, share):
    return price * (1 - share)
```
"""
VARYING = (
    (re.compile(r"toolwire \d\S*"), "toolwire 0.0.0"),
    (re.compile(r"\b\d+(\.\d+)? m?s\b"), "N ms"),
    (re.compile("[◐◓◑◒]"), "◐"),
    # A session that takes long to open is named in a line of its own.
    (re.compile(r"0\.0\.0 · ~/work\nupstream/default · "), "0.0.0 · upstream/default · ~/work · "),
    (re.compile(r"changes go to user: .*"), "changes go to user: FILE"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
)


def check(name: str, rows: list[str], place: Place) -> None:
    text = "\n".join(rows).replace(str(place.root), "ROOT") + "\n"
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    file = FILES / f"{name}.txt"
    if os.environ.get("SCREENS") == "write":
        file.write_text(text)
    assert text == file.read_text(), f"SCREENS=write writes {file.name} again"


def calm(app: ScreenTerminal) -> list[str]:
    """The screen when nothing changes any more."""
    app.settle(0.3)
    return app.see()


@pytest.mark.parametrize(
    ("name", "columns", "rows", "environ"),
    [
        ("answer", 80, 40, {}),
        ("narrow", 40, 40, {}),
        ("no-colours", 80, 40, {"NO_COLOR": "1"}),
    ],
)
def test_an_answer(
    name: str, columns: int, rows: int, environ: dict[str, str], apps: Apps, place: Place
):
    with Simulated([says(PROSE)]) as sim:
        app = apps.start(sim, columns=columns, rows=rows, **environ)
        app.press("go\r")
        answered(app, "price * (1 - share)")
        check(name, calm(app), place)


def test_the_start_the_menu_and_pages(apps: Apps, place: Place):
    with Simulated([says("x")]) as sim:
        app = apps.start(sim)
        check("start", calm(app), place)
        app.press("/st")
        app.wait("› /style")
        check("menu", calm(app), place)
        app.press("yle\r")
        app.wait("tool style of")
        check("picker", calm(app), place)
        app.press("\x1b")
        app.wait("why:")
        app.press("/settings\r")
        app.wait("settings; changes go to")
        app.press("/ui.scr")
        app.wait("ui.scr")
        check("settings", calm(app), place)


def test_a_stream_a_call_an_edit_and_an_error(apps: Apps, place: Place):
    stream = says(
        "First, the whole of it.\n\nThen a **part** of", delta=4, fault=Fault(hang_after=12)
    )
    edit = replaces(place, old="price = 1\ntax = 2", new="price = 3\ntax = 2")
    broken = says("", fault=Fault(status=400, message="the window is too small"))
    replies = [stream, edit, shell("touch made && ls made"), says("Both are done."), broken]
    with Simulated(replies) as sim:
        app = apps.start(sim, columns=139, rows=30)
        app.press("explain it\r")
        app.wait("Then a part")
        check("stream", calm(app), place)
        app.press("\x1b")
        app.wait("stopped")
        app.press("change it\r")
        app.wait("? ")
        check("question", calm(app), place)
        app.answer("y")
        app.wait("? Shell")
        check("command", calm(app), place)
        app.answer("y")
        answered(app, "Both are done.")
        app.press("and now\r")
        answered(app, "the window is too small")
        check("calls-and-error", calm(app), place)
