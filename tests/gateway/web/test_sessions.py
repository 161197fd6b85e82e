"""Sessions in a real browser: live output, commands that are asked about, the list of questions."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.web.scene import CODE, Scene, opened, question, scene, start_session
from toolwire.simulator import Call, Reply, Say

pytestmark = pytest.mark.sweep

COUNT = "seq 1 3000 && sleep 2 && rm -f count.txt"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    replies = (
        Reply(when="count them", pieces=(Call.of("run_shell_command", command=COUNT),)),
        Reply(when="2999", pieces=(Say("There are three thousand."),)),
    )
    with scene(tmp_path_factory.mktemp("console"), replies=replies) as one:
        yield one


def test_a_command_is_shown_with_its_programs_and_its_output_as_it_comes(
    browser: Any, stage: Scene
):
    with opened(browser, stage, "sessions") as (page, _):
        start_session(page, "count them")
        asked = question(page)
        programs = asked.locator("p code").all_inner_texts()
        assert {"seq", "sleep", "rm"} <= set(programs)
        assert COUNT in asked.inner_text()
        page.keyboard.press("y")
        call = page.locator("details.call", has_text="run_shell_command")
        # Before the command has ended, and without a click.
        call.get_by_label("running").wait_for()
        call.locator(".tail").get_by_text("2999").wait_for()
        page.get_by_text("There are three thousand.").wait_for()
        call.locator("summary").click()
        assert len(call.locator(".tail").inner_text()) < 5_000
        call.get_by_role("button", name="Show all").click()
        assert len(call.locator(".tail").inner_text()) > 12_000


# Presses `j` as soon as two questions stand in the page, before it is painted.
AT_ONCE = """() => new Promise((found) => {
  const look = () => {
    if (document.querySelectorAll("article").length < 2) return;
    seen.disconnect();
    dispatchEvent(new KeyboardEvent("keydown", { key: "j" }));
    const second = () => document.querySelectorAll("article")[1]?.className;
    setTimeout(() => found([location.hash, second()]), 200);
  };
  const seen = new MutationObserver(look);
  seen.observe(document.body, { childList: true, subtree: true });
  for (const key of ["g", "q"]) dispatchEvent(new KeyboardEvent("keydown", { key }));
})"""


def test_a_key_reaches_what_is_shown_and_not_what_was_there_before(browser: Any, stage: Scene):
    stage.prices.write_text(CODE)
    with opened(browser, stage, "sessions") as (page, _):
        for prompt in ("fix the discount", "count them"):
            start_session(page, prompt)
            question(page)
        page.get_by_label("2 open questions").wait_for()
        shown = ["#/sessions/questions", "question active"]
        assert page.evaluate(AT_ONCE) == shown
        # Opened at once instead of from a session: the list of sessions does not take the key.
        page.reload()
        page.get_by_role("article").nth(1).wait_for()
        page.keyboard.press("j")
        page.locator("article.active").nth(0).wait_for()
        assert page.evaluate("location.hash") == shown[0]
        assert page.get_by_role("article").nth(1).get_attribute("class") == shown[1]
        for _ in range(2):
            before = page.get_by_role("article").count()
            page.get_by_role("button", name="Deny").first.click()
            page.keyboard.press("Control+Enter")
            page.get_by_role("article").nth(before - 1).wait_for(state="detached")


def test_questions_of_all_sessions_are_in_one_list(browser: Any, stage: Scene):
    stage.prices.write_text(CODE)
    with opened(browser, stage, "sessions") as (page, _):
        for prompt in ("fix the discount", "count them"):
            start_session(page, prompt)
            question(page)
        page.keyboard.press("g")
        page.keyboard.press("q")
        asked = page.get_by_role("article")
        asked.nth(1).wait_for()
        assert page.get_by_label("2 open questions").count() == 1
        page.keyboard.press("j")
        page.keyboard.press("n")
        page.keyboard.type("share of one")
        page.keyboard.press("Control+Enter")
        asked.nth(1).wait_for(state="detached")
        asked.filter(has_text="prices.py").get_by_role("button", name="For this session").click()
        page.get_by_text("Nothing waits for you").wait_for()
        page.goto(f"{stage.origin}/console/#/sessions")
        page.get_by_role("link", name="fix the discount").first.click()
        page.get_by_text("The discount is a share now.").wait_for()
