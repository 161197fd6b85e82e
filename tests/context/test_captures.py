"""What gemini-cli's first requests hold before the model has said anything, made by our parts."""

import asyncio
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests import captures
from tests.captures import Stage
from toolwire import dialects
from toolwire.context.memory import load_memory
from toolwire.context.mentions import user_message
from toolwire.context.surroundings import surroundings
from toolwire.messages import Message
from toolwire.request import ModelRequest
from toolwire.tools.builtin import save_memory

pytestmark = pytest.mark.skipif(not captures.PRESENT, reason=captures.ABSENT)

DAY = date(2025, 12, 5)
WRITTEN = "Friday, December 5, 2025 (formatted according to the user's locale)"
NAMES = ("This is the Gemini CLI.", "This is toolwire.")
PIPED = "piped text\n"
"""The captures do not hold what was piped; the first request shows it."""


def as_theirs(value: Any) -> Any:
    """Our contents with the two things no two programs share: the name and the date."""
    text = json.dumps(value, ensure_ascii=False)
    assert text.count(NAMES[1]) == text.count(WRITTEN) == 1
    return json.loads(text.replace(NAMES[1], NAMES[0]).replace(WRITTEN, "${DATE}"))


def told(stage: Stage) -> tuple[Message, ...]:
    return surroundings(stage.context().workspace, today=DAY, system="linux")


def sent(stage: Stage, *messages: Message) -> Any:
    request = ModelRequest(model="gemini-2.5-pro", messages=messages)
    encoded = dialects.get("gemini").encode_request(request)
    return as_theirs(stage.blank(json.loads(encoded.http.body)["contents"]))


def first_contents() -> list[tuple[str, dict[str, Any], list[Any]]]:
    """Name, files and contents of every first request of the seed era."""
    found: list[tuple[str, dict[str, Any], list[Any]]] = []
    for version, name, files in (
        ("0.5.5", "first_request", {"a.txt": "a", "src/main.py": "m"}),
        ("0.6.1", "first_request", {"a.txt": "a", "src/main.py": "m"}),
        ("0.6.1", "code_assist_requests", {"a.txt": "a"}),
    ):
        capture = captures.load(version, name).data
        for request in capture["requests_in_order"]:
            body = request.get("body", {})
            contents = body.get("request", body).get("contents")
            if contents:
                place = f"{version}/{name}/{request.get('kind', '')}{len(contents)}"
                found.append((place, {"files": files, "prompt": capture["prompt"]}, contents))
    return found


def test_the_first_requests_of_the_original_are_ours(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    cases = first_contents()
    for place, made, contents in cases:
        capture = captures.Capture("", "", {"workspace_files": made["files"]})
        stage = captures.build(capture, tmp_path / place)
        messages = told(stage)
        if len(contents) > 2:
            said = user_message(contents[2]["parts"][0]["text"], stage.context())
            messages = (*messages, said.message)
        # A later request of the run also holds calls and results, which other tests replay.
        wanted = [{key: one[key] for key in ("role", "parts")} for one in contents[:3]]
        assert sent(stage, *messages) == wanted, place
    assert len(cases) >= 7
    counted(f"captures of first requests: {len(cases)} equal")


@pytest.mark.parametrize(
    ("name", "piped", "files"),
    [("at_image_prompt", "", ("pic.png",)), ("stdin_prompt", PIPED, ())],
)
def test_prompts_with_files_and_piped_text_are_sent_alike(
    name: str,
    piped: str,
    files: tuple[str, ...],
    tmp_path: Path,
    counted: Callable[[str], None],
) -> None:
    capture = captures.load("0.6.1", name)
    stage = captures.build(capture, tmp_path)
    said = user_message(capture.data["prompt"], stage.context(), piped=piped)
    assert sent(stage, *told(stage), said.message) == capture.data["first_request_contents"]
    assert said.files == tuple(str(stage.workspace / file) for file in files)
    assert said.notices == ()
    counted(f"capture {name}: equal")


@pytest.mark.parametrize("version", ["0.5.5", "0.6.1"])
def test_a_fact_that_was_saved_is_memory_of_the_next_session(version: str, tmp_path: Path) -> None:
    capture = captures.load(version, "save_memory_ok")
    stage = captures.build(capture, tmp_path)
    context = stage.context()
    asyncio.run(captures.replay(capture, stage, {"save_memory": save_memory.TOOL}))
    memory = load_memory(context.workspace, global_file=save_memory.memory_file(context))
    written = (stage.home / ".gemini" / "GEMINI.md").read_text().strip()
    assert memory.text == (
        "--- Context from: ../home/.gemini/GEMINI.md ---\n"
        f"{written}\n"
        "--- End of Context from: ../home/.gemini/GEMINI.md ---"
    )
    assert memory.text.count("\n- ") == 1
