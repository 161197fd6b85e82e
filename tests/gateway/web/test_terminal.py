"""A question in the terminal app and in the browser is answered once."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place
from tests.gateway.web.scene import CODE, GOOD_LINE, opened, question, scene, start_session
from tests.tui.apps import Apps

pytestmark = pytest.mark.sweep


@pytest.fixture
def apps(tmp_path: Path) -> Iterator[list[Apps]]:
    made: list[Apps] = []
    yield made
    for one in made:
        one.close()


def test_a_question_of_the_terminal_is_shown_and_ends_with_its_answer(
    browser: Any, tmp_path: Path, apps: list[Apps]
):
    with scene(tmp_path) as stage:
        apps.append(Apps(stage.place))
        app = apps[0].start(stage.upstream)
        with opened(browser, stage, "sessions/questions") as (page, watch):
            app.press("fix the discount\r")
            shown = question(page)
            shown.get_by_text(f"answer in the terminal, process {app.process.pid}").wait_for()
            assert shown.get_by_role("button", name="Approve").count() == 0
            watch.expected.append("409")
            assert _answered(page, _open(page)[0]["id"]) == 409
            app.answer("y")
            page.get_by_text("Nothing waits for you").wait_for()
            app.wait("The discount is a share now.")
            assert GOOD_LINE in stage.prices.read_text()


def test_a_question_outlives_the_gateway_and_is_asked_again(browser: Any, tmp_path: Path):
    with contextlib.ExitStack() as stack:
        session, old = _killed_while_it_asks(browser, stack, tmp_path)
        stage = stack.enter_context(scene(tmp_path))
        assert stage.prices.read_text() == CODE
        with opened(browser, stage, f"sessions/{session}") as (page, watch):
            question(page).get_by_text("asked again").wait_for()
            watch.expected.append("404")
            assert _answered(page, old) == 404
            assert len(_open(page)) == 1
            page.keyboard.press("y")
            page.get_by_text("The discount is a share now.").wait_for()
        assert stage.prices.read_text().count(GOOD_LINE) == 1


def test_a_session_that_the_terminal_took_over_asks_there(
    browser: Any, tmp_path: Path, apps: list[Apps]
):
    with contextlib.ExitStack() as stack:
        session, old = _killed_while_it_asks(browser, stack, tmp_path)
        (tmp_path / "other").mkdir()
        stage = stack.enter_context(scene(tmp_path / "other"))
        apps.append(Apps(Place(tmp_path)))
        app = apps[0].start(stage.upstream, "--resume", session)
        app.wait("y yes, once")
        stage = stack.enter_context(scene(tmp_path))
        with opened(browser, stage, f"sessions/{session}") as (page, watch):
            page.get_by_text(f"answer in the terminal, process {app.process.pid}").first.wait_for()
            watch.expected.append("404")
            assert [one["here"] for one in _open(page)] == [False]
            assert _answered(page, old) == 404
            app.answer("n")
            page.wait_for_function(
                "fetch('../api/questions').then(r => r.json()).then(r => !r.questions.length)"
            )
        assert stage.prices.read_text() == CODE


def _killed_while_it_asks(
    browser: Any, stack: contextlib.ExitStack, folder: Path
) -> tuple[str, str]:
    """The session and the question of a gateway that was killed before the answer."""
    stage = stack.enter_context(scene(folder))
    with opened(browser, stage, "sessions") as (page, watch):
        watch.expected += ["ERR_", "Failed to load"]
        start_session(page, "fix the discount")
        question(page)
        found = page.url.rpartition("/")[2], _open(page)[0]["id"]
        stage.process.kill()
        page.get_by_text("Reconnecting").wait_for()
        for name in ("Approve", "Deny"):
            assert page.get_by_role("button", name=name).is_disabled()
    return found


def _open(page: Any) -> list[dict[str, Any]]:
    return page.evaluate("fetch('../api/questions').then(r => r.json())")["questions"]


def _answered(page: Any, name: str) -> int:
    """The status of an answer to a question of that id."""
    return page.evaluate(
        """async (id) => {
          const { csrf } = await (await fetch('../api/login')).json();
          const fields = { 'content-type': 'application/json', 'x-toolwire-csrf': csrf };
          const body = JSON.stringify({ choice: 'once' });
          const sent = { method: 'POST', headers: fields, body };
          return (await fetch(`../api/questions/${id}`, sent)).status;
        }""",
        name,
    )
