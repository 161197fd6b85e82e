"""Every capture of gemini-cli that concerns files, replayed through our tools."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from tests import captures
from toolwire.tools.builtin import replace
from toolwire.tools.search.grep import ripgrep
from toolwire.tools.spec import SearchWay, Tool, ToolSettings

pytestmark = pytest.mark.skipif(not captures.PRESENT, reason=captures.ABSENT)

NAMES = (
    "list_directory",
    "read_file",
    "search_file_content",
    "glob",
    "replace",
    "write_file",
    "read_many_files",
)
TOOLS: dict[str, Tool] = {
    name: import_module(f"toolwire.tools.builtin.{name}").TOOL for name in NAMES
}
CORRECTED = {"write_file_overwrite": "the original trims the final newline on overwrite"}
OTHERS = {"approval_default_write": "the registry leaves the tool out"}
CASES = [
    capture
    for capture in captures.find(tools=NAMES)
    if capture.name not in OTHERS and set(capture.tools) <= set(NAMES)
]
WAYS = ("rg", "git", "own")


@pytest.mark.parametrize("capture", CASES, ids=lambda capture: capture.name)
def test_what_is_sent_next_equals_the_capture(capture: captures.Capture, tmp_path: Path) -> None:
    if capture.name in CORRECTED:
        pytest.skip(f"corrected: {CORRECTED[capture.name]}")
    assert outcome(capture, tmp_path) == ""


def outcome(capture: captures.Capture, folder: Path, way: SearchWay | None = None) -> str:
    stage = captures.build(capture, folder)
    plain = capture.data["settings"].get("useSmartEdit") is False
    settings = ToolSettings(plain_edit=plain, search_with=way)
    tools = {**TOOLS, "replace": replace.tool_for(settings)}
    context = stage.context(settings=settings)
    got = asyncio.run(captures.replay(capture, stage, tools, context))
    return captures.difference(capture, stage, got)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_searching_gives_what_the_captures_show(way: SearchWay, tmp_path: Path) -> None:
    if way == "rg" and not ripgrep({}):
        pytest.skip("no ripgrep on this machine")
    for capture in captures.find(tools=["search_file_content"]):
        assert outcome(capture, tmp_path / capture.name, way) == ""


def test_an_overwritten_file_keeps_the_final_newline_that_the_original_trims(
    tmp_path: Path,
) -> None:
    capture = captures.load("0.5.5", "write_file_overwrite")
    stage = captures.build(capture, tmp_path)
    got = asyncio.run(captures.replay(capture, stage, TOOLS, stage.context()))
    assert captures.normal(got) == captures.normal(capture.expected)
    assert capture.data["workspace_after"] == {"n.txt": "new"}
    assert (stage.workspace / "n.txt").read_bytes() == b"new\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_declaration_equals_the_captured_one(name: str) -> None:
    declared = captures.declarations()[name]
    spec = TOOLS[name].spec
    ours = {
        "name": spec.name,
        "description": spec.description,
        "parametersJsonSchema": spec.parameters,
    }
    assert ours == declared


def test_the_captures_are_counted(counted: Callable[[str], None], tmp_path: Path) -> None:
    equal = [
        capture.name
        for capture in CASES
        if capture.name not in CORRECTED and not outcome(capture, tmp_path / capture.name)
    ]
    counted(
        f"captures of the file tools: {len(equal)} equal, {len(CORRECTED)} corrected, "
        f"of {len(CASES)}"
    )
    assert len(equal) + len(CORRECTED) == len(CASES)
