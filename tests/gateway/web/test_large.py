"""A hundred thousand requests and bodies of megabytes, in a real browser."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.web.chromium import chromium
from tests.gateway.web.history import fill
from tests.gateway.web.measure import FRAMES, LONGEST_TASK, PAINTED, heap, task_seconds
from tests.gateway.web.scene import opened, scene

ROWS = 100_000


@pytest.mark.sweep
def test_a_hundred_thousand_requests_are_scrolled_by_keys_and_wheel(tmp_path: Path):
    (tmp_path / "home").mkdir()
    fill(tmp_path / "home", ROWS)
    flags = ("--enable-precise-memory-info", "--js-flags=--expose-gc")
    wide = {"width": 1440, "height": 900}
    with contextlib.ExitStack() as stack:
        browser = stack.enter_context(chromium(*flags))
        stage = stack.enter_context(scene(tmp_path))
        page, _ = stack.enter_context(opened(browser, stage, viewport=wide))
        options = page.get_by_role("option")
        options.first.wait_for()
        size = 0
        for _ in range(400):
            page.keyboard.press("End")
            size = int(options.first.get_attribute("aria-setsize") or 0)
            if size >= ROWS:
                break
            page.wait_for_timeout(50)
        assert size == ROWS
        assert options.count() < 80
        last = page.get_by_role("option", selected=True)
        assert int(last.get_attribute("aria-posinset") or 0) > ROWS - 1500
        page.keyboard.press("End")
        page.get_by_role("option", selected=True).get_by_text("claude", exact=False)
        box = page.get_by_role("listbox", name="Requests")
        box.hover()
        for _ in range(20):
            page.mouse.wheel(0, -4000)
        assert options.count() > 10
        found = page.evaluate(FRAMES)
        print("frames", found, "heap MB", heap(page))
        assert heap(page) <= 40
        page.keyboard.press("Home")
        options.first.wait_for()
        assert options.first.get_attribute("aria-posinset") == "1"


@pytest.mark.sweep
def test_a_body_of_five_megabytes_opens_in_pieces(tmp_path: Path):
    text = "abc def " * (5 * 1024 * 128)
    with chromium() as browser, scene(tmp_path) as stage:
        found = stage.ask(text)
        line = stage.ask("one long line")
        with opened(browser, stage) as (page, _):
            page.add_init_script(LONGEST_TASK)
            page.reload()
            for request, number in ((found, 1), (line, 5)):
                page.goto(f"{stage.origin}/console/#/live/{request}")
                # A key that comes before the request is open belongs to the list.
                page.get_by_text(request).first.wait_for()
                region = page.locator(".stage").first
                region.wait_for()
                page.keyboard.press(str(number))
                region.get_by_role("button", name="Load the rest").wait_for()
                assert len(region.inner_text()) < 600_000
                region.get_by_role("button", name="Load the rest").click()
                region.get_by_role("button", name="Load the rest").wait_for(state="detached")
                region.locator(".tree, .frames, .said").first.wait_for()
                assert len(region.inner_text()) < 1_200_000
            page.get_by_role("link", name="Keys").click()
            page.get_by_role("heading", name="Keys", exact=True).wait_for()
            print("longest task ms", task_seconds(page))


@pytest.mark.sweep
def test_every_page_is_complete_soon_after_its_data(tmp_path: Path, browser: Any):
    (tmp_path / "home").mkdir()
    fill(tmp_path / "home", 2_000)
    with scene(tmp_path) as stage, opened(browser, stage) as (page, _):
        found: dict[str, int] = {}
        for address in ("sessions", "playground", "models", "keys", "usage", "conformance"):
            page.evaluate(PAINTED, [f"#/{address}", 1500])
        for address in ("live", "sessions", "playground", "models", "keys", "usage", "settings"):
            page.evaluate(PAINTED, ["#/nothing", 200])
            found[address] = page.evaluate(PAINTED, [f"#/{address}", 1500])
        print("complete after ms", found)
