"""Keys, usage and settings in a real browser."""

import contextlib
import csv
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST
from tests.gateway.web.history import fill
from tests.gateway.web.scene import Scene, opened, scene

pytestmark = pytest.mark.sweep

SETTINGS = """# why this stays
drain_seconds = 60

[models."openrouter/tiny/talker"]
context = 8000
tools = false
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("console")
    (folder / "home").mkdir()
    fill(folder / "home", 400)
    with scene(folder, settings=SETTINGS) as one:
        yield one


def test_a_key_is_followed_limited_rotated_and_revoked(browser: Any, stage: Scene):
    with opened(browser, stage, "keys/new") as (page, _):
        page.get_by_label("Name").fill("robot")
        page.get_by_role("button", name="Create", exact=True).click()
        secret = page.locator("[data-secret]").inner_text()
        page.get_by_role("button", name="Done").click()
        row = page.get_by_role("row", name="robot")
        row.get_by_text("never").wait_for()
        _ask(stage, secret)
        # The counters follow what happens; the page is not loaded again.
        row.get_by_text("just now").wait_for()
        assert row.locator("[data-label=today]").inner_text() == "1"
        page.get_by_role("button", name="Limits of robot").click()
        page.get_by_label("Requests a minute").fill("30")
        page.get_by_label("Budgets in dollars").fill("5/day")
        page.get_by_role("button", name="Save").click()
        row.get_by_text("of 5/day").wait_for()
        assert row.get_by_role("meter").count() == 1
        assert row.locator("[data-label='per minute']").inner_text() == "30"
        page.get_by_role("button", name="Rotate robot").click()
        page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
        assert page.locator("[data-secret]").inner_text() != secret
        page.get_by_role("button", name="Done").click()
        page.get_by_role("button", name="Revoke robot").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        row.wait_for(state="detached")
        page.get_by_role("checkbox", name="revoked too").check()
        row.get_by_text("revoked").wait_for()


def _ask(stage: Scene, key: str) -> None:
    body = {"model": "served-model", "messages": [{"role": "user", "content": "hi"}]}
    fields = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    address = f"{stage.origin}/v1/chat/completions"
    asked = urllib.request.Request(address, json.dumps(body).encode(), fields)
    with urllib.request.urlopen(asked, timeout=LONGEST) as answer:
        answer.read()


def test_usage_is_grouped_sorted_and_taken_away_as_a_file(browser: Any, stage: Scene):
    with opened(browser, stage, "usage") as (page, _):
        page.get_by_role("radio", name="Day × key × model").click()
        page.get_by_role("columnheader", name="key").wait_for()
        page.get_by_role("img").wait_for()
        page.get_by_role("button", name="cost").click()
        cells = page.locator("tbody tr td:last-child").all_inner_texts()
        costs = [float(text.removeprefix("$")) for text in cells if text.startswith("$")]
        assert costs == sorted(costs, reverse=True)
        with page.expect_download() as file:
            page.get_by_role("link", name="CSV").click()
        rows = list(csv.DictReader(Path(file.value.path()).read_text().splitlines()))
        assert len(rows) == len(cells)
        assert {"day", "key", "model", "cost", "p95"} <= set(rows[0])
        page.get_by_label("Key", exact=True).select_option("ada")
        page.wait_for_url("**key=ada**")
        page.get_by_role("cell", name="ci", exact=True).first.wait_for(state="detached")


def test_a_setting_is_written_and_the_comments_of_its_file_stay(browser: Any, stage: Scene):
    file = stage.place.home / "config.toml"
    with opened(browser, stage, "settings?q=default_model") as (page, _):
        box = page.get_by_label("default_model", exact=True)
        box.fill("anthropic/claude-sonnet-5")
        box.press("Enter")
        row = page.locator(".setting", has_text="default_model").first
        row.get_by_text("user", exact=True).wait_for()
        assert 'default_model = "anthropic/claude-sonnet-5"' in file.read_text()
        assert "# why this stays" in file.read_text()
        page.get_by_role("button", name="Unset default_model").click()
        row.get_by_text("default", exact=True).wait_for()
        assert "default_model" not in file.read_text()


def test_a_style_for_one_model_shows_its_warning_and_its_preview(browser: Any, stage: Scene):
    with opened(browser, stage, "settings") as (page, watch):
        style = page.get_by_role("region", name="Tool style")
        chosen = style.get_by_label("Model of the tool style")
        chosen.select_option("openrouter/tiny/talker")
        style.get_by_role("radio", name="Constrained JSON").click()
        style.get_by_role("note").filter(has_text="not known to take a schema").wait_for()
        style.get_by_role("radio", name="Native").click()
        style.get_by_role("note").filter(has_not_text="schema").wait_for()
        style.get_by_text("What the model is shown").click()
        style.get_by_role("radio", name="Tags (XML)").click()
        style.locator("pre").get_by_text("<read_file>").first.wait_for()
        style.get_by_text("running sessions keep theirs").wait_for()
        chosen.select_option("")
        style.get_by_text("Effective for openrouter/tiny/talker: xml").wait_for()
        # The command line decides for its own upstream.
        watch.expected.append("409")
        chosen.select_option("upstream/served-model")
        style.get_by_role("radio", name="Native").click()
        page.get_by_role("alert").filter(has_text="style=native").wait_for()


def test_a_value_that_a_variable_or_a_flag_decides_says_so(browser: Any, tmp_path: Path):
    variable = {"TOOLWIRE_APPROVAL_MODE": "plan"}
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(scene(tmp_path, environ=variable))
        page, _ = stack.enter_context(opened(browser, stage, "settings?q=approval_mode"))
        row = page.locator(".setting", has_text="approval_mode").first
        row.get_by_text("variable").wait_for()
        page.get_by_label("approval_mode", exact=True).select_option("default")
        words = "TOOLWIRE_APPROVAL_MODE decides"
        page.get_by_role("alert").filter(has_text=words).wait_for()
        page.get_by_label("Filter settings").fill("gateway.port")
        page.locator(".setting", has_text="gateway.port").get_by_text("flag").wait_for()
