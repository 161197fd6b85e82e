"""Colours and type of the console: the table of its pairs, and pages that keep their look."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.web.history import fill
from tests.gateway.web.scene import Scene, opened, scene
from tests.gateway.web.test_files import WEB

STYLE = (WEB / "style.css").read_text()
PAIRS = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}, #\w{6})\)", STYLE))
TABLE = {
    "bg": ("#fbfbfa", "#141413"),
    "panel": ("#ffffff", "#1b1b1a"),
    "line": ("#e4e4e0", "#31312f"),
    "text": ("#1c1c1a", "#ecece8"),
    "dim": ("#5f5f59", "#a3a39b"),
    "accent": ("#0b6e6e", "#5cc8c2"),
    "accent-soft": ("#e2f1f0", "#16302f"),
    "good": ("#1a7f37", "#6fcf87"),
    "warn": ("#8a5a00", "#e3b341"),
    "warn-soft": ("#fdf3dc", "#2e2612"),
    "bad": ("#b42318", "#ff8a80"),
    "bad-soft": ("#fdecea", "#331b19"),
}
READ = [
    *(
        (word, ground)
        for word in ("text", "dim", "accent", "good", "warn", "bad")
        for ground in ("bg", "panel")
    ),
    *(("text", f"{name}-soft") for name in ("accent", "warn", "bad", "good")),
    *((name, f"{name}-soft") for name in ("accent", "warn", "bad")),
    *(("text", "hover"), ("dim", "hover"), ("text", "mark"), ("on-accent", "accent")),
]
"""What is written in which colour on which ground."""


def colour(name: str, theme: int) -> str:
    return PAIRS[name].split(", ")[theme]


def light(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_colours_are_those_of_the_table():
    assert {name: tuple(PAIRS[name].split(", ")) for name in TABLE} == TABLE


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_everything_that_is_written_can_be_read(theme: int):
    found = {pair: contrast(*(colour(name, theme) for name in pair)) for pair in READ}
    assert {pair: value for pair, value in found.items() if value < 4.5} == {}
    inked = {pair: value for pair, value in found.items() if pair[1] in ("bg", "panel")}
    assert {pair: value for pair, value in inked.items() if value < 4.9} == {}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("console")
    (folder / "home").mkdir()
    fill(folder / "home", 300)
    with scene(folder) as one:
        yield one


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("width", "theme"), [(1440, "light"), (1280, "dark"), (900, "light"), (360, "dark")]
)
def test_every_page_fits_its_window(browser: Any, stage: Scene, width: int, theme: str):
    found = stage.ask("hello", more={"system": "be brief"})
    places = (
        "live",
        f"live/{found}",
        "sessions",
        "sessions/questions",
        "sessions/new",
        "playground",
    )
    places = (*places, "models", "keys", "keys/new", "usage", "conformance", "settings")
    options: dict[str, Any] = {"viewport": {"width": width, "height": 740}, "color_scheme": theme}
    with opened(browser, stage, **options) as (page, _):
        for place in places:
            page.goto(f"{stage.origin}/console/#/{place}")
            page.locator("main > *").last.wait_for()
            page.wait_for_load_state("networkidle" if "live" not in place else "load")
            assert page.evaluate("document.documentElement.scrollWidth") == width, place
            for item in page.locator("nav .item:visible").all():
                box = item.bounding_box()
                assert 0 <= box["x"] <= box["x"] + box["width"] <= width, place
            if page.get_by_role("dialog").count():
                page.keyboard.press("Escape")
                page.get_by_role("dialog").wait_for(state="detached")


@pytest.mark.sweep
def test_on_a_phone_every_page_is_two_taps_away(browser: Any, stage: Scene):
    narrow: Any = {"width": 360, "height": 740}
    with opened(browser, stage, viewport=narrow) as (page, _):
        for title in ("Usage", "Settings", "Conformance", "Keys"):
            page.get_by_role("button", name="More").click()
            page.get_by_role("option", name=f"Go to {title}").click()
            page.get_by_role("heading", name=title, exact=True).wait_for()
        page.get_by_role("button", name="More").click()
        page.get_by_role("option", name="Theme: dark").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 20, 19)"


@pytest.mark.sweep
def test_the_focus_goes_from_the_menu_to_the_page(browser: Any, stage: Scene):
    with opened(browser, stage, "settings") as (page, _):
        page.get_by_role("heading", name="How tools are offered").wait_for()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        inside = "document.querySelector('main').contains(document.activeElement)"
        assert page.evaluate(inside)
        page.locator("main").focus()
        page.keyboard.press("End")
        below = "document.querySelector('.page > .body').scrollTop"
        assert page.evaluate(below) > 1000
        page.keyboard.press("Home")
        assert page.evaluate(below) == 0
