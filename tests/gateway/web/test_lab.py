"""Playground, models and conformance in a real browser."""

import time
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST
from tests.gateway.web.scene import Scene, opened, scene, start_session
from toolwire.simulator import Call, Fault, Reply, Say

pytestmark = pytest.mark.sweep

WEATHER = '{"name": "weather", "parameters": {"type": "object", "properties": {}}}'
BUSY = "this model is overloaded, come back later"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    replies = (
        Reply(when="is it warm", pieces=(Call.of("weather", city="Oslo"),)),
        Reply(when="minus four", pieces=(Say("No, bring a coat."),)),
        Reply(when="with the word ok", fault=Fault(status=400, message="temperature is fixed")),
        Reply(when="overload it", fault=Fault(status=529, message=BUSY)),
    )
    folder = tmp_path_factory.mktemp("console")
    with scene(folder, replies=replies) as one:
        yield one


def test_two_models_answer_beside_each_other_and_results_are_typed(browser: Any, stage: Scene):
    with opened(browser, stage, "playground") as (page, _):
        page.get_by_role("button", name="Add a model beside").click()
        lanes = [page.get_by_role("region", name=f"Model {number}") for number in (1, 2)]
        page.get_by_label("Tools as JSON Schema").fill(WEATHER)
        page.get_by_label("Prompt").fill("is it warm?")
        page.keyboard.press("Enter")
        for lane in lanes:
            lane.get_by_label("Result").fill("minus four")
            lane.get_by_role("button", name="Send results").click()
            lane.get_by_text("No, bring a coat.").wait_for()
            assert lane.get_by_role("button", name="wire").count() == 2
            facts = lane.locator(".facts").last.inner_text()
            assert all(word in facts for word in ("first", "total", "in", "out"))
        page.reload()
        lanes[1].get_by_text("No, bring a coat.").wait_for()
        page.get_by_role("button", name="Clear").click()
        page.get_by_text("Ask a model").first.wait_for()


def test_a_line_of_five_megabytes_is_shown_in_pieces(browser: Any, stage: Scene):
    shown = "document.querySelector('main').innerText.length"
    with opened(browser, stage, "playground") as (page, _):
        page.get_by_label("Prompt").fill("one long line")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="wire").wait_for()
        page.get_by_role("button", name="Show more").wait_for()
        assert page.evaluate(shown) < 100_000
        page.goto(f"{stage.origin}/console/#/sessions")
        start_session(page, "one long line")
        page.get_by_role("button", name="Stop").wait_for(state="detached")
        page.get_by_role("button", name="Show more").wait_for()
        assert page.evaluate(shown) < 100_000
        page.keyboard.press("g")
        page.keyboard.press("k")
        page.get_by_role("heading", name="Keys", exact=True).wait_for()


def test_stop_ends_the_request_upstream(browser: Any, stage: Scene):
    with opened(browser, stage, "playground") as (page, watch):
        watch.expected.append("ERR_")
        page.get_by_label("Prompt").fill("wait a while")
        page.keyboard.press("Enter")
        page.get_by_text("slow slow").wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("the request upstream was ended too").wait_for()
        until = time.monotonic() + LONGEST
        while not stage.upstream.requests[-1].left.is_set():
            assert time.monotonic() < until
            time.sleep(0.02)


@pytest.mark.parametrize("language", ["curl", "Python", "TypeScript"])
def test_the_request_is_written_for_every_client_format(browser: Any, stage: Scene, language: str):
    marks = {
        "openai-chat": "/v1/chat/completions",
        "openai-responses": "/v1/responses",
        "anthropic-messages": "/v1/messages",
        "gemini": ":streamGenerateContent",
    }
    calls = {
        "openai-chat": ".chat.completions.create",
        "openai-responses": ".responses.create",
        "anthropic-messages": ".messages.",
        "gemini": "generate",
    }
    with opened(browser, stage, "playground") as (page, _):
        page.get_by_label("Prompt").fill("a question of mine")
        page.get_by_role("button", name="As code").click()
        page.get_by_role("radio", name=language).click()
        shown = page.get_by_role("dialog", name="As code")
        for format, words in (marks if language == "curl" else calls).items():
            shown.get_by_label("Format").select_option(format)
            text = shown.locator("pre").filter(has_text=words)
            text.wait_for()
            assert "a question of mine" in text.inner_text()
            assert "TOOLWIRE_TOKEN" in text.inner_text()


def test_a_model_is_tested_fails_in_the_vendors_words_and_is_probed(browser: Any, stage: Scene):
    with opened(browser, stage, "models") as (page, _):
        row = page.get_by_role("row", name="upstream/served-model")
        page.get_by_role("button", name="Test upstream/served-model").click()
        row.get_by_text("without a call of the tool").wait_for()
        stage.ask("overload it")
        # The page follows what happens; it is not loaded again.
        row.get_by_text(BUSY).wait_for()
        page.keyboard.press("/")
        page.keyboard.type("anthropic")
        page.get_by_text("No deployment yet").wait_for()
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        row.get_by_role("link", name="not probed").click()
        page.get_by_role("heading", name="Probe this provider").wait_for()
        page.get_by_role("button", name="Probe", exact=True).click()
        probe = page.get_by_role("article", name="Probe of upstream/served-model")
        probe.get_by_text("Proposed settings").wait_for()
        proposed = tomllib.loads(probe.locator("pre.accent").inner_text())
        assert proposed["providers"]["upstream"]["quirks"]["sampling"] is False
        finding = probe.locator("details").first
        finding.click()
        finding.get_by_text("sent").wait_for()
        assert '"messages"' in finding.text_content()
        page.goto(f"{stage.origin}/console/#/models")
        row.get_by_text("✕ conformance").wait_for()


def test_suites_run_and_the_clients_of_the_last_acceptance_are_listed(browser: Any, stage: Scene):
    with opened(browser, stage, "conformance") as (page, _):
        page.get_by_role("button", name="Run the suites").click()
        row = page.get_by_role("row", name="anthropic-messages")
        row.get_by_text("just now").wait_for()
        # Its suites end one after the other.
        row.get_by_text("✓").nth(1).wait_for()
        clients = page.get_by_role("region", name="Clients")
        clients.get_by_text("acceptance run of").wait_for()
        clients.get_by_role("row", name="Anthropic SDK").get_by_text("10 of 10").first.wait_for()
