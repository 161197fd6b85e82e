"""The console in a real browser: `toolwire serve` before the simulator, no mocks."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.web.chromium import page_of
from tests.gateway.web.proxy import PathProxy
from tests.gateway.web.scene import (
    BAD_LINE,
    CODE,
    GOOD_LINE,
    Scene,
    opened,
    question,
    scene,
    start_session,
)

PAGES = {
    "l": ("live", "Live requests"),
    "s": ("sessions", "Sessions"),
    "p": ("playground", "Playground"),
    "m": ("models", "Models and providers"),
    "k": ("keys", "Keys"),
    "u": ("usage", "Usage"),
    "c": ("conformance", "Conformance"),
    ",": ("settings", "Settings"),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("console")) as one:
        yield one


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_every_page_opens_by_keys_and_everything_on_it_has_a_name(browser: Any, stage: Scene):
    stage.ask("hello")
    with opened(browser, stage) as (page, _):
        for key, (address, title) in PAGES.items():
            page.keyboard.press("g")
            page.keyboard.press(key)
            page.get_by_role("heading", name=title, exact=True).wait_for()
            assert f"#/{address}" in page.url
            page.wait_for_load_state("networkidle" if address != "live" else "load")
            names = page.locator("body").aria_snapshot()
            assert f'heading "{title}"' in names
            assert f'link "{title.split()[0]}' in names
            nameless = [
                line.strip()
                for line in names.splitlines()
                if line.strip().rstrip(":")
                in {"- button", "- link", "- textbox", "- combobox", "- checkbox", "- radio"}
            ]
            assert nameless == [], names
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Command").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keys").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")


def test_a_key_pressed_in_the_frame_in_which_a_dialog_closes_is_not_typed_into_it(
    browser: Any, stage: Scene
):
    with opened(browser, stage) as (page, _):
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Command").wait_for()
        page.evaluate(
            """() => {
                const field = document.querySelector("dialog input");
                field.closest("dialog").close();
                field.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
            }"""
        )
        page.get_by_role("dialog", name="Keys").wait_for()


@pytest.mark.sweep
def test_a_running_request_is_cancelled(browser: Any, stage: Scene):
    with opened(browser, stage, "playground") as (page, watch):
        watch.expected.append("ERR_INCOMPLETE_CHUNKED_ENCODING")
        page.get_by_label("Prompt").fill("wait a while")
        page.keyboard.press("Enter")
        page.get_by_text("slow slow").wait_for()
        with page.context.expect_page() as other:
            page.evaluate("open('#/live')")
        live = other.value
        live.get_by_label("running").first.wait_for()
        live.get_by_role("option").first.click()
        live.get_by_role("button", name="Cancel").click()
        live.get_by_text("cancelled").first.wait_for()
        page.get_by_role("button", name="Send").wait_for()


@pytest.mark.parametrize("answer", ["approve", "deny", "edit"])
def test_a_question_is_answered_by_keyboard_alone(browser: Any, stage: Scene, answer: str):
    stage.prices.write_text(CODE)
    with opened(browser, stage, "sessions") as (page, _):
        start_session(page, "fix the discount")
        shown = question(page)
        listed = page.get_by_role("region", name="Sessions", exact=True)
        listed.get_by_role("link", name="fix the discount").first.wait_for()
        assert GOOD_LINE.strip() in shown.inner_text()
        assert shown.locator(".add mark").count() > 0
        if answer == "approve":
            page.keyboard.press("y")
            page.get_by_text("The discount is a share now.").wait_for()
            assert GOOD_LINE in stage.prices.read_text()
        elif answer == "deny":
            page.keyboard.press("n")
            page.get_by_role("dialog", name="Deny").wait_for()
            page.keyboard.type("it is a share of one")
            page.keyboard.press("Control+Enter")
            page.get_by_text("I leave the file as it is.").wait_for()
            assert stage.prices.read_text() == CODE
        else:
            page.keyboard.press("e")
            page.locator("textarea:focus").wait_for()
            page.keyboard.press("Control+a")
            page.keyboard.type("# changed by hand\n")
            page.keyboard.press("Control+Enter")
            page.get_by_text("The discount is a share now.").wait_for()
            assert stage.prices.read_text() == "# changed by hand\n"
        page.get_by_role("article").wait_for(state="detached")


def test_a_phone_approves_from_the_inbox_in_the_dark(browser: Any, stage: Scene):
    stage.prices.write_text(CODE)
    narrow: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with opened(browser, stage, "sessions", **narrow) as (page, _):
        start_session(page, "fix the discount")
        question(page)
        page.goto(f"{stage.origin}/console/#/live")
        page.get_by_role("link", name="Answer").click()
        asked = question(page)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide == 360
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == "rgb(20, 20, 19)"
        asked.get_by_role("button", name="Approve").click()
        page.get_by_text("Nothing waits for you").wait_for()
        page.get_by_role("link", name="Sessions").click()
        page.get_by_role("link", name="fix the discount").first.click()
        page.get_by_text("The discount is a share now.").wait_for()
        assert BAD_LINE not in stage.prices.read_text()


def test_hostile_words_stay_text(browser: Any, stage: Scene):
    stage.ask("say the hostile words")
    with opened(browser, stage, "playground") as (page, _):
        page.get_by_label("Prompt").fill("hostile words, please")
        page.keyboard.press("Enter")
        page.get_by_text("<script>document.title").first.wait_for()
        page.locator(".md strong", has_text="bold").wait_for()
        assert page.locator(".md script, .md img, .md a[href^=javascript]").count() == 0
        text = page.locator(".md").inner_text()
        assert "⟨U+202E⟩rtl" in text
        assert "⟨ESC⟩[31mred" in text
        page.goto(f"{stage.origin}/console/#/live")
        page.get_by_role("option").first.click()
        page.get_by_role("radio", name="Raw").click()
        page.get_by_text("<script>document.title").first.wait_for()
        page.goto(f"{stage.origin}/console/#/sessions")
        start_session(page, "hostile words")
        page.locator(".md strong", has_text="bold").wait_for()
        assert "owned" not in page.title()
        assert page.locator(".transcript script, .transcript img").count() == 0


@pytest.mark.sweep
def test_a_page_resumes_after_a_restart_without_a_doubled_event(browser: Any, tmp_path: Path):
    port = free_port()
    with contextlib.ExitStack() as stack:
        running = contextlib.ExitStack()
        stack.push(running)
        stage = running.enter_context(scene(tmp_path, port=port))
        page, watch = stack.enter_context(opened(browser, stage))
        watch.expected += ["ERR_CONNECTION_", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY"]
        # A connection of the old server that the browser had kept.
        watch.expected.append("ERR_SOCKET_NOT_CONNECTED")
        stage.ask("first")
        page.get_by_role("option").first.wait_for()
        start_session(page, "fix the discount")
        question(page)
        address = page.url
        running.close()
        page.get_by_text("Reconnecting").wait_for()
        assert page.get_by_role("button", name="Approve").is_disabled()
        stage = stack.enter_context(scene(tmp_path, port=port))
        page.get_by_text("Reconnecting").wait_for(state="hidden")
        page.locator("button:enabled", has_text="Approve").wait_for()
        again = question(page)
        assert page.url == address
        assert again.count() == 1
        assert page.locator(".turn.user").count() == 1
        page.keyboard.press("y")
        page.get_by_text("The discount is a share now.").wait_for()
        assert page.locator(".turn.user").count() == 1
        page.goto(f"{stage.origin}/console/#/live")
        stage.ask("second")
        page.get_by_role("option").nth(1).wait_for()
        ids = page.evaluate("[...document.querySelectorAll('[role=option]')].map(o => o.innerText)")
        assert len(ids) == len(set(ids))


@pytest.mark.sweep
def test_a_question_is_gone_everywhere_once_it_is_answered(browser: Any, stage: Scene):
    stage.prices.write_text(CODE)
    with opened(browser, stage, "sessions") as (page, _):
        start_session(page, "fix the discount")
        question(page)
        with page.context.expect_page() as other:
            page.evaluate("open('#/sessions/questions')")
        second = other.value
        question(second)
        page.keyboard.press("y")
        page.get_by_text("The discount is a share now.").wait_for()
        second.get_by_text("Nothing waits for you").wait_for()


@pytest.mark.sweep
def test_a_session_is_stopped_talked_to_forked_and_exported(browser: Any, stage: Scene):
    with opened(browser, stage, "sessions") as (page, _):
        start_session(page, "wait a while")
        page.get_by_text("slow slow").wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Turn ended: cancelled").wait_for()
        page.keyboard.press("i")
        page.keyboard.type("hello again")
        page.keyboard.press("Enter")
        page.get_by_text("You said: hello again").wait_for()
        with page.expect_download() as file:
            page.get_by_role("link", name="Export").click()
        assert "hello again" in Path(file.value.path()).read_text()
        before = page.url
        page.get_by_role("button", name="Fork").click()
        page.get_by_role("dialog", name="Fork this session").get_by_label("Up to").select_option(
            index=1
        )
        page.get_by_role("dialog").get_by_role("button", name="Fork").click()
        page.wait_for_url(lambda address: address != before)
        page.get_by_text("wait a while").first.wait_for()
        assert page.get_by_text("You said: hello again").count() == 0


def test_tools_of_the_playground_run_and_the_wire_is_shown(browser: Any, stage: Scene):
    with opened(browser, stage, "playground") as (page, _):
        page.get_by_role("checkbox", name="read_file").check()
        page.get_by_label("Prompt").fill("what is in prices.py")
        page.keyboard.press("Enter")
        page.get_by_text("It has one function").wait_for()
        page.get_by_text("What is paid").first.wait_for()
        page.get_by_role("button", name="wire").first.click()
        wire = page.get_by_role("dialog", name="Wire of this turn")
        wire.get_by_role("region", name="3 Upstream bytes").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="As code").click()
        page.get_by_role("radio", name="Python").click()
        page.get_by_role("dialog").get_by_text("what is in prices.py").wait_for()
        page.get_by_label("Format").select_option("gemini")
        page.get_by_role("dialog").get_by_text("functionDeclarations").wait_for()


def test_a_key_is_shown_once(browser: Any, stage: Scene):
    with opened(browser, stage, "keys/new") as (page, _):
        page.get_by_label("Name").fill("ci")
        page.get_by_label("Budgets in dollars").fill("20/month")
        page.get_by_role("button", name="Create", exact=True).click()
        secret = page.locator("[data-secret]").inner_text()
        page.get_by_role("button", name="Done").click()
        page.get_by_role("row", name="ci").get_by_text("of 20/month").wait_for()
        page.reload()
        page.get_by_role("row", name="ci").wait_for()
        assert secret not in page.content()


def test_settings_show_their_origin_and_the_tool_style_its_reason(browser: Any, stage: Scene):
    with opened(browser, stage, "settings") as (page, _):
        page.get_by_role("heading", name="How tools are offered").wait_for()
        page.get_by_role("radio", name="Tags (XML)").click()
        page.get_by_text("Now").get_by_text("xml").wait_for()
        page.get_by_text("What the model is shown").click()
        page.keyboard.press("/")
        page.keyboard.type("gateway.record")
        page.get_by_label("gateway.record", exact=True).wait_for()
        row = page.locator(".setting", has_text="gateway.record").first
        assert "user" in row.inner_text()
        assert 'tool_style = "xml"' in (stage.place.home / "config.toml").read_text()


@pytest.mark.sweep
def test_it_works_below_a_path_of_a_proxy(browser: Any, tmp_path: Path):
    port = free_port()
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(PathProxy("/tw", port))
        stage = stack.enter_context(scene(tmp_path, settings=f'cors = ["{proxy.origin}"]'))
        proxy.target = stage.origin
        page, _ = stack.enter_context(page_of(browser, proxy.origin))
        page.goto(f"{proxy.origin}/tw/console/#{stage.link.partition('#')[2]}")
        page.get_by_role("heading", name="Live requests").wait_for()
        stage.ask("hello")
        page.get_by_role("option").first.click()
        page.get_by_role("region", name="1 Client bytes").wait_for()
        page.keyboard.press("g")
        page.keyboard.press("p")
        page.get_by_label("Prompt").fill("hello there")
        page.keyboard.press("Enter")
        page.get_by_text("You said: hello there").wait_for()
