"""Live requests in a real browser: `toolwire serve` before the simulator, no mocks."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.web.chromium import page_of
from tests.gateway.web.scene import TOKEN, Scene, opened, scene


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("console")) as one:
        yield one


def test_the_link_logs_in_once_and_leaves_the_address(browser: Any, stage: Scene):
    with page_of(browser, stage.origin) as (page, _):
        page.goto(stage.link)
        page.get_by_role("heading", name="Live requests").wait_for()
        assert "login" not in page.url
    with page_of(browser, stage.origin) as (page, watch):
        watch.expected.append("401")
        page.goto(stage.link)
        page.get_by_role("alert").filter(has_text="this link was used before").wait_for()
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Live requests").wait_for()
        page.keyboard.press("Control+k")
        page.keyboard.type("log out")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Log in").wait_for()
        page.reload()
        page.get_by_role("heading", name="Log in").wait_for()


def test_a_request_is_followed_through_its_five_stages(browser: Any, stage: Scene):
    asked = {
        "system": "be brief",
        "top_k": 3,
        "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a wall"}],
            },
        ],
        "stream": True,
    }
    with opened(browser, stage) as (page, _):
        found = stage.ask("", more=asked)
        page.get_by_role("option", name="claude-code").first.click()
        assert page.url.endswith(f"#/live/{found}")
        for number, name in enumerate(
            ("Client bytes", "Canonical", "Upstream bytes", "Upstream answer", "Client answer"), 1
        ):
            page.get_by_role("region", name=f"{number} {name}").wait_for()
        page.get_by_role("button", name="call look").click()
        first, canonical, upstream = (page.locator(".stage").nth(n) for n in range(3))
        first.locator(".lit-up", has_text="tool_use").wait_for()
        canonical.locator(".lit-up", has_text="tool_call").wait_for()
        upstream.locator(".lit-up").wait_for()
        # The same part by a click in another stage.
        page.get_by_role("button", name="call look").click()
        page.locator(".lit-up").first.wait_for(state="detached")
        page.get_by_role("radio", name="Raw").click()
        first.get_by_text("POST /v1/messages").wait_for()
        assert TOKEN not in page.content()
        page.keyboard.press("v")
        page.keyboard.press("5")
        page.locator(".stage").nth(1).wait_for(state="detached")
        page.locator(".frames").get_by_text("message_start").wait_for()
        page.get_by_text("top_k").first.wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("region", name="Request", exact=True).wait_for(state="detached")


def test_the_filter_is_in_the_address_and_the_list_can_be_paused(browser: Any, stage: Scene):
    stage.ask("one", client="codex_cli_rs/0.50")
    stage.ask("two")
    with opened(browser, stage, "live?f=client%3Acodex") as (page, _):
        page.get_by_role("option", name="codex").first.wait_for()
        assert page.get_by_role("option").filter(has_text="claude-code").count() == 0
        page.keyboard.press("/")
        page.keyboard.press("Control+a")
        page.keyboard.type("client:claude")
        page.get_by_role("option").filter(has_text="claude-code").first.wait_for()
        page.wait_for_url(re.compile("claude"))
        page.keyboard.press("Escape")
        page.keyboard.press(".")
        before = page.get_by_role("option").count()
        stage.ask("three")
        page.get_by_role("button", name="1 new").wait_for()
        assert page.get_by_role("option").count() == before
        page.keyboard.press(".")
        page.get_by_role("option").nth(before).wait_for()
