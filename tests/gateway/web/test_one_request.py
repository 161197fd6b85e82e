"""What a page does with one request: marks, compares, replays, and says what was not recorded."""

import base64
import json
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from tests.fakes.simulated import LONGEST
from tests.gateway.web.scene import TOKEN, Scene, opened, scene

TOOL = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}
LONG = {"width": 1280, "height": 400}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("console")) as one:
        yield one


def scrolled(page: Any) -> float:
    return page.evaluate("document.querySelector('.vlist').scrollTop")


def until(look: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST
    while not look():
        assert time.monotonic() < end
        time.sleep(0.05)


def region(page: Any, number: int) -> Any:
    return page.locator(f".stage[aria-label^='{number} ']")


@pytest.mark.sweep
def test_a_call_of_an_answer_lights_up_in_every_stage_that_has_it(browser: Any, stage: Scene):
    found = stage.ask("what is in prices.py", more={"tools": [TOOL], "stream": True})
    with opened(browser, stage, f"live/{found}") as (page, _):
        page.get_by_role("button", name="call read_file").click()
        for number, words in ((2, "tool_call"), (4, "tool_calls"), (5, "tool_use")):
            region(page, number).locator(".lit-up").first.wait_for()
            lit = region(page, number).locator(".lit-up").all_inner_texts()
            assert any(words in text for text in lit), lit
        # The same part is found by a click on its bytes.
        page.get_by_role("button", name="call read_file").click()
        page.locator(".lit-up").first.wait_for(state="detached")
        region(page, 5).locator(".frames pre", has_text="tool_use").first.click()
        region(page, 4).locator(".lit-up").first.wait_for()
        region(page, 2).locator(".lit-up").first.wait_for()


@pytest.mark.sweep
def test_two_requests_are_compared_up_to_the_first_byte_that_differs(browser: Any, stage: Scene):
    first = stage.ask("the price of tea")
    second = stage.ask("the price of milk")
    with opened(browser, stage, f"live/{second}") as (page, _):
        page.get_by_role("region", name="3 Upstream bytes").wait_for()
        page.keyboard.press("c")
        shown = page.get_by_role("dialog", name="Compare with an earlier request")
        shown.get_by_label("Other request").select_option(first)
        shown.get_by_text("messages[0].content").wait_for()
        marks = shown.locator("mark").all_inner_texts()
        assert [mark[:3] for mark in marks] == ["tea", "mil"]


@pytest.mark.sweep
def test_a_downloaded_exchange_is_replayed(browser: Any, tmp_path: Path):
    words = ("-p", "hello there", "--output-format", "json", "--no-session")
    with scene(tmp_path, dialect="anthropic-messages") as stage:
        through = f"anthropic-messages={stage.origin},key={TOKEN},model=served-model"
        done = stage.place.toolwire("run", "--upstream", through, *words)
        assert done.code == 0, done.out
        with opened(browser, stage) as (page, _):
            page.get_by_role("option").first.click()
            with page.expect_download() as file:
                page.get_by_role("link", name="Download for replay").click()
            recorded = tmp_path / "exchange.jsonl"
            recorded.write_bytes(Path(file.value.path()).read_bytes())
        before = len(stage.upstream.requests)
        straight = stage.upstream.upstream("anthropic-messages", model="served-model")
        options = ("--upstream", straight, "--replay", str(recorded))
        done = stage.place.toolwire("run", *options, *words)
        assert done.code == 0, done.out
        assert "You said: hello there" in json.loads(done.out)["response"]
        assert len(stage.upstream.requests) == before


@pytest.mark.sweep
def test_base64_is_a_chip_with_a_look_at_it(browser: Any, stage: Scene):
    picture = base64.b64encode(_png()).decode()
    source = {"type": "base64", "media_type": "image/png", "data": picture}
    words = {"type": "text", "text": "what is this?"}
    content = [{"type": "image", "source": source}, words]
    found = stage.ask("", more={"messages": [{"role": "user", "content": content}]})
    with opened(browser, stage, f"live/{found}") as (page, _):
        page.keyboard.press("1")
        page.get_by_role("button", name="text user").click()
        page.get_by_text("0: {2} image", exact=True).click()
        page.locator("summary", has_text="source").first.click()
        page.get_by_role("button", name="base64 ·").click()
        page.get_by_role("dialog", name="base64 data").get_by_role("img").wait_for()


def _png() -> bytes:
    rows = b"".join(b"\0" + bytes((7 * x * y) % 251 for x in range(96)) for y in range(32))
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.sweep
def test_without_recorded_bytes_shapes_are_shown_with_the_reason(browser: Any, tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[gateway]\nrecord = "meta"\n')
    with scene(tmp_path) as stage:
        found = stage.ask("a secret of mine", more={"system": "be brief"})
        with opened(browser, stage, f"live/{found}") as (page, _):
            client = page.get_by_role("region", name="1 Client bytes")
            page.get_by_text('gateway.record is "meta"').wait_for()
            client.get_by_text("user: text 16 B").wait_for()
            assert "a secret of mine" not in page.content()
            assert page.get_by_role("button", name="Copy as curl").is_disabled()
            assert page.get_by_role("button", name="Compare").is_disabled()
            page.get_by_role("link", name="Change it").click()
            page.get_by_label("gateway.record", exact=True).wait_for()


@pytest.mark.sweep
def test_the_list_stays_where_it_was_scrolled_to_and_says_what_is_new(browser: Any, stage: Scene):
    for number in range(14):
        stage.ask(f"number {number}")
    with opened(browser, stage, viewport=LONG) as (page, _):
        page.get_by_role("option").nth(13).wait_for()
        page.get_by_role("listbox", name="Requests").hover()
        page.mouse.wheel(0, 96)
        until(lambda: scrolled(page) > 60)
        before = scrolled(page)
        for number in range(3):
            stage.ask(f"later {number}")
        newer = page.get_by_role("button", name="3 new")
        newer.wait_for()
        assert scrolled(page) == before + 3 * 32
        newer.click()
        until(lambda: scrolled(page) == 0)
        newer.wait_for(state="detached")


@pytest.mark.sweep
def test_the_list_is_filtered_by_every_column(browser: Any, stage: Scene):
    stage.ask("one", client="codex_cli_rs/0.50")
    stage.ask("too much", client="aider/1")
    wanted = {
        "client:codex": "codex",
        "client:aider status:error": "aider",
        "model:served via:anthropic": "anthropic→chat",
        "tokens:1 cost:0 time:0": "served-model",
    }
    with opened(browser, stage) as (page, _):
        for text, words in wanted.items():
            page.get_by_label("Filter requests").fill(text)
            page.wait_for_url(re.compile(re.escape(quote_plus(text)) + "$"))
            page.get_by_role("option").filter(has_text=words).first.wait_for()
        for text in ("tokens:99999999", "since:2999-01-01", "via:nothing"):
            page.get_by_label("Filter requests").fill(text)
            page.get_by_text("No request matches").wait_for()
            page.get_by_label("Filter requests").fill("")
            page.get_by_role("option").first.wait_for()
