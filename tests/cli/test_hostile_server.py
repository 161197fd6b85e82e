"""`toolwire run` before model servers that try to hang it or to speak for the model."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.hostile import bomb, endless, fragment, frame, hostile, once
from tests.fakes.simulated import LONGEST, Place

SOON = 15.0
"""Seconds for what takes less than one on an idle machine."""
TEXT = frame({"choices": [{"delta": {"content": "word "}}]})
FLOODS = {
    "text": endless(TEXT),
    "text in a bomb": bomb(TEXT),
    "comments": endless(b":\n\n"),
    "comments in a bomb": bomb(b": a\n\n"),
    "thoughts": endless(frame({"choices": [{"delta": {"reasoning_content": "so "}}]})),
    "arguments": endless(
        fragment(0, arguments="a"), first=fragment(0, id="a", name="x", arguments='{"')
    ),
    "an error": endless(b"x", status=500),
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("name", FLOODS)
@pytest.mark.parametrize("form", ["text", "stream-json"])
@pytest.mark.sweep
def test_ctrl_c_ends_any_flood(place: Place, name: str, form: str) -> None:
    begun = threading.Event()

    def attack() -> Iterator[bytes]:
        for piece in FLOODS[name]():
            yield piece
            begun.set()

    with hostile(attack) as origin, (place.work / "out").open("wb") as out:
        process = place.start(
            *("run", "hi", "--upstream", f"openai-chat={origin}/v1", "--output-format", form),
            stdout=out,
            stderr=out,
        )
        assert begun.wait(LONGEST)
        time.sleep(1)
        if "text" in name:
            # The loop detection ends it before a key is pressed.
            assert process.wait(LONGEST) == 54
            return
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(LONGEST) == 130
        # The first Ctrl-C stops the turn; the session is written before the program ends.
        assert time.monotonic() - began < SOON


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_run_that_failed_has_no_response(place: Place, status: int) -> None:
    attack = once(b'{"error":{"message":"no"}}', "x-should-retry: false", status=status)
    with hostile(attack) as origin:
        done = place.toolwire(
            *("run", "hi", "--upstream", f"openai-chat={origin}/v1", "--output-format", "json")
        )
        ended = json.loads(done.out)
        assert (ended["response"], ended["stop"]) == ("", "failed")
        done = place.toolwire(
            *(
                "run",
                "hi",
                "--upstream",
                f"openai-chat={origin}/v1",
                "--output-format",
                "stream-json",
            )
        )
        lines = [json.loads(line) for line in done.out.splitlines()]
        assert not [one for one in lines if one.get("role") == "assistant"]
        assert place.toolwire("run", "hi", "--upstream", f"openai-chat={origin}/v1").out == ""


def test_a_name_of_300_kb_ends_in_a_clear_error(place: Place) -> None:
    name = "x" * 300_000
    with hostile(once(fragment(0, id="a", name=name, arguments="{}"))) as origin:
        began = time.monotonic()
        done = place.toolwire("run", "hi", "--upstream", f"openai-chat={origin}/v1")
    assert done.code == 1
    assert "the name of a tool is longer than 1024 characters" in done.err
    assert time.monotonic() - began < LONGEST
