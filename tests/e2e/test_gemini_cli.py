"""Captures of gemini-cli, run end to end: its prompt, its model's answers, our agent, real HTTP."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import captures
from tests.captures import ABSENT, PRESENT, Capture
from tests.fakes.gemini_cli import Played, play, play_process

pytestmark = pytest.mark.skipif(not PRESENT, reason=ABSENT)

DENIED = (
    "Tool execution denied by policy. {} needs approval. There is no one to approve it here. Reach "
    "the goal with what is allowed, or tell the user what to allow: --allowed-tools, a rule in the "
    "rule file, or another --approval-mode."
)


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """Where ours differs on purpose: why, and what it sends or leaves behind instead."""

    reason: str
    response: dict[str, str] | None = None
    files: dict[str, str] | None = None


CORRECTED = {
    "approval_default_shell": Correction(
        reason="a command that is proven to do nothing but print runs without approval",
        response={
            "output": "Command: echo hi\nDirectory: (root)\nOutput: hi\n"
            "Error: (none)\nExit Code: 0\nSignal: (none)\nBackground PIDs: (none)\n"
            "Process Group PGID: ${PID}"
        },
    ),
    "approval_default_write": Correction(
        reason="tools that need approval are offered; the refusal says what would allow the call",
        response={"error": DENIED.format("write_file on ${WORKSPACE}/n.txt")},
    ),
    "shell_command_substitution": Correction(
        reason="command substitution is read and ruled on like any command, not refused",
        response={
            "output": "Command: echo $(echo inner)\nDirectory: (root)\nOutput: inner\n"
            "Error: (none)\nExit Code: 0\nSignal: (none)\nBackground PIDs: (none)\n"
            "Process Group PGID: ${PID}"
        },
    ),
    "write_file_overwrite": Correction(
        reason="the original trims what overwrites a file",
        files={"n.txt": "new\n"},
    ),
}
NEWEST = "0.61.0"
INSISTING = (
    "empty_stream_retry",
    "finish_safety",
    "http_429_then_ok",
    "http_503_then_ok",
    "max_session_turns",
    "no_finish_reason_retry",
)
"""Where the newest version does as the older ones."""
LEFT_OUT = {
    r"^(first|code_assist)_requests?$": "a list of requests, compared where requests are made",
}
VERSIONS = ("0.6.1", "0.5.5")
PROCESSES = (
    "approval_default_write",
    "at_image_prompt",
    "empty_stream_retry",
    "finish_safety",
    "http_429_then_ok",
    "http_503_then_ok",
    "max_session_turns",
    "no_finish_reason_retry",
    "stdin_prompt",
)
"""Run as commands: exit codes, standard output and input, retries with their real waits."""


def left_out(name: str) -> str:
    return next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, name)), "")


def found() -> dict[str, Capture]:
    """The newer version's captures where the older one has none."""
    return {
        path.stem: captures.load(version, path.stem)
        for version in VERSIONS
        for path in sorted((captures.CAPTURES / version).glob("*.json"))
        if not left_out(path.stem)
    }


CASES = found()


def wanted(capture: Capture) -> Capture:
    """The capture with its corrections."""
    right = captures.put_right(capture)
    correction = CORRECTED.get(capture.name)
    if correction is None:
        return right
    data = dict(right.data)
    if correction.response is not None:
        data["next_request_contents_tail"][-1]["parts"][0]["functionResponse"]["response"] = (
            correction.response
        )
    if correction.files is not None:
        data["workspace_after"] = correction.files
    return Capture(right.version, right.name, data)


def check(capture: Capture, played: Played) -> None:
    """Every fact of the capture: requests, results, files, words, exit code."""
    data = capture.data
    assert played.refusals == []
    tail = data["next_request_contents_tail"]
    asked = len(data.get("main_request_times") or (0.0, 1.0))
    assert len(played.main) == asked, played.err
    if tail is not None:
        got = captures.without_pids(played.tail(1))
        assert captures.difference(capture, played.stage, got) == ""
    if "first_request_contents" in data:
        assert as_theirs(played.main[0]) == data["first_request_contents"]
    check_beside(data.get("side_requests") or [], played.beside)
    if "json" not in data["cli_args"]:
        assert played.out == data.get("stdout", "Done.\n")
    assert played.code == data.get("exit_code", 0)


def check_beside(theirs: list[Any], ours: list[Any]) -> None:
    """As many questions beside the conversation; those to Google's own tools are word for word."""
    assert len(ours) == len(theirs)
    for one, other in zip(theirs, ours, strict=True):
        if "tools" in one["body"]:
            body = {key: one["body"][key] for key in one["body"] if key != "systemInstruction"}
            assert other == body


def as_theirs(contents: Any) -> Any:
    """Without what no two programs share: the name and the date."""
    text = json.dumps(contents, ensure_ascii=False)
    text = text.replace("This is toolwire.", "This is the Gemini CLI.")
    return json.loads(re.sub(r"(Today's date is ).*?\)\.", r"\1${DATE}.", text))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_capture_is_equal_or_corrected(name: str, tmp_path: Path) -> None:
    capture = wanted(CASES[name])
    check(capture, play(capture, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", INSISTING)
def test_retries_and_limits_are_those_of_the_newest_version_too(name: str, tmp_path: Path) -> None:
    capture = captures.load(NEWEST, name)
    check(capture, play(capture, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_the_command_does_what_the_capture_shows(name: str, tmp_path: Path) -> None:
    capture = wanted(CASES[name])
    check(capture, play_process(capture, tmp_path))


def test_json_output_holds_what_the_capture_shows(tmp_path: Path) -> None:
    capture = wanted(CASES["output_json"])
    played = play_process(capture, tmp_path)
    check(capture, played)
    theirs, ours = json.loads(capture.data["stdout"]), json.loads(played.out)
    assert shared(theirs, timeless(ours)) == theirs
    assert played.out.startswith('{\n  "session_id": "')


SAME = frozenset({"type", "role", "content", "delta", "status", "tool_name"})


def test_streamed_events_come_in_the_order_of_the_newest_version(tmp_path: Path) -> None:
    theirs = captures.load(NEWEST, "output_stream_json").data["stdout"].splitlines()
    capture = wanted(CASES["output_json"])
    played = play_process(capture, tmp_path, "--output-format", "stream-json")
    assert (played.code, played.refusals) == (0, [])
    ours = list(map(json.loads, played.out.splitlines()))
    for one, other in zip(map(json.loads, theirs), ours, strict=True):
        same = {key: one[key] for key in SAME & one.keys()}
        assert shared(same, other) == same
        assert one.keys() <= other.keys()
    used, done = ours[2], ours[3]
    # Its own name before the id, and an empty output, are the newest version's.
    assert used["tool_id"] == done["tool_id"] == "fc1"
    assert done["output"] == "AAA\n"


def shared(theirs: Any, ours: Any) -> Any:
    """Of ours, the members that theirs has too."""
    if not isinstance(theirs, dict):
        return ours
    return {key: shared(value, ours[key]) for key, value in theirs.items()}


def timeless(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: 0 if key.endswith("Ms") else timeless(item) for key, item in value.items()}


MCP = sorted((captures.CAPTURES / "0.5.5").glob("mcp_*.json"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [path.stem for path in MCP])
def test_a_servers_result_is_sent_as_captured_in_both_versions(
    version: str, name: str, tmp_path: Path
) -> None:
    capture = captures.load(version, name)
    played = play(capture, tmp_path)
    check(capture, played)
    declared = played.bodies[0]["tools"][0]["functionDeclarations"]
    names = [tool["name"] for tool in declared]
    assert "weird_name_with_chars_and_a____goes_past_sixty_three_characters" in names
    assert "mini__read_file" in names
    echo = next(tool for tool in declared if tool["name"] == "echo_text")
    assert echo["parametersJsonSchema"] == {
        "type": "object",
        "properties": {"x": {"type": "string", "description": "anything"}},
        "required": ["x"],
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_first_request_offers_the_same_tools_in_the_same_order(
    version: str, tmp_path: Path
) -> None:
    listed = captures.load(version, "first_request").data
    first = next(one["body"] for one in listed["requests_in_order"] if one["kind"] == "main")
    files = {"a.txt": "a", "src/main.py": "m"}
    capture = bare(workspace_files=files, prompt=listed["prompt"])
    body = play(capture, tmp_path).bodies[0]
    assert as_theirs(body["contents"]) == first["contents"]
    assert body.keys() <= first.keys()
    # The texts are those of 0.5.5; other tests compare them one by one.
    theirs = [tool["name"] for tool in first["tools"][0]["functionDeclarations"]]
    ours = [tool["name"] for tool in body["tools"][0]["functionDeclarations"]]
    assert ours[: len(theirs)] == theirs


def test_a_vendors_id_comes_back_unchanged_and_one_of_ours_never_leaves(tmp_path: Path) -> None:
    given = {"a": {"id": "odd/1: ü"}, "b": {}, "c": {}}
    parts = [
        {"functionCall": {"name": "read_file", "args": {"absolute_path": path}, **more}}
        for path, more in ((f"${{WORKSPACE}}/{one}", more) for one, more in given.items())
    ]
    chunk = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    files = {one: f"{one}\n" for one in given}
    capture = bare(workspace_files=files, model_response_chunks=[[chunk]])
    played = play(capture, tmp_path)
    answers = [
        {"functionResponse": {"name": "read_file", "response": {"output": f"{one}\n"}, **more}}
        for one, more in given.items()
    ]
    assert played.tail(1) == [
        {"role": "model", "parts": parts},
        {"role": "user", "parts": answers},
    ]
    assert (played.refusals, played.out) == ([], "Done.\n")


def test_memory_files_follow_the_instructions_the_outer_ones_first(tmp_path: Path) -> None:
    notes = {"GEMINI.md": "Use tabs.\n", "deep/er/GEMINI.md": "Test it.\n"}
    capture = bare(workspace_files=notes, home_files={".gemini/GEMINI.md": "I like tea.\n"})
    body = play(capture, tmp_path).bodies[0]
    text = body["systemInstruction"]["parts"][0]["text"]
    told = (
        ("../home/.gemini/GEMINI.md", "I like tea."),
        ("GEMINI.md", "Use tabs."),
        ("deep/er/GEMINI.md", "Test it."),
    )
    files = (
        f"--- Context from: {path} ---\n{words}\n--- End of Context from: {path} ---"
        for path, words in told
    )
    assert text.endswith("\n\n---\n\n" + "\n\n".join(files))
    assert body["systemInstruction"]["role"] == "user"


def bare(**members: Any) -> Capture:
    """A case of our own in the captures' form."""
    data = {"settings": {}, "cli_args": [], "prompt": "go", "workspace_files": {}, **members}
    return Capture("", "", data)


def test_the_captures_are_counted(counted: Callable[[str], None]) -> None:
    names = {path.stem for version in VERSIONS for path in (captures.CAPTURES / version).iterdir()}
    corrected = len(CORRECTED.keys() & CASES.keys())
    counted(
        f"captures of gemini-cli, end to end: {len(CASES)}, {len(CASES) - corrected} equal, "
        f"{corrected} corrected; {len(PROCESSES) + 1} of them as commands too; "
        f"{len(names) - len(CASES)} left out (MCP servers, lists of requests)"
    )
    assert len(CASES) >= 115
    assert corrected == len(CORRECTED)
