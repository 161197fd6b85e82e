import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests import captures
from toolwire.tools.builtin.run_shell_command import TOOL
from toolwire.tools.shell.shells import end_shells
from toolwire.tools.spec import ToolSettings

CORRECTED = {
    "shell_command_substitution": "command substitution runs; the policy rules on what it runs",
}
ELSEWHERE = {
    "approval_default_shell": "whether the tool is offered at all is the registry's",
    "shell_core_allowlist": "allow lists are the registry's and the policy's",
    "shell_excluded_by_settings": "deny lists are the registry's and the policy's",
}
SETTINGS = {
    "truncateToolOutputThreshold": "output_characters",
    "truncateToolOutputLines": "output_lines",
}
"""Ours for the original's; its on-switch has none, for ours is always on."""
CASES = {
    path.stem: captures.load(version, path.stem)
    for version in ("0.6.1", "0.5.5")
    for path in sorted((captures.CAPTURES / version).glob("*shell*.json"))
}
"""Those of 0.5.5, and those of 0.6.1 that it lacks."""

pytestmark = pytest.mark.skipif(not captures.PRESENT, reason=captures.ABSENT)


def replayed(capture: captures.Capture, folder: Path) -> tuple[captures.Stage, Any]:
    async def run() -> Any:
        stage = captures.build(capture, folder)
        given = capture.data["settings"].get("tools", {})
        settings = ToolSettings(
            **{SETTINGS[name]: value for name, value in given.items() if name in SETTINGS}
        )
        context = stage.context(environ=dict(os.environ), settings=settings)
        try:
            got = await captures.replay(capture, stage, {"run_shell_command": TOOL}, context)
            return stage, captures.without_pids(got)
        finally:
            await end_shells("")

    return asyncio.run(run())


@pytest.mark.parametrize("name", sorted(set(CASES) - set(CORRECTED)))
def test_shell_results_equal_the_captured_ones(name: str, tmp_path: Path) -> None:
    if name in ELSEWHERE:
        pytest.skip(ELSEWHERE[name])
    capture = captures.put_right(CASES[name])
    stage, got = replayed(capture, tmp_path)
    assert captures.difference(capture, stage, got) == ""


def test_command_substitution_is_not_refused_by_the_tool_itself(tmp_path: Path) -> None:
    capture = captures.load("0.5.5", "shell_command_substitution")
    _, got = replayed(capture, tmp_path)
    response = got[1]["parts"][0]["functionResponse"]["response"]
    assert response["output"].startswith(
        "Command: echo $(echo inner)\nDirectory: (root)\nOutput: inner\nError: (none)\nExit Code: 0"
    )


def test_the_declaration_equals_the_captured_one() -> None:
    declared = captures.declarations()["run_shell_command"]
    spec = TOOL.spec
    ours = {
        "name": spec.name,
        "description": spec.description,
        "parametersJsonSchema": spec.parameters,
    }
    assert ours == declared


def test_every_shell_capture_is_replayed_or_has_a_reason(counted: Any) -> None:
    assert set(CORRECTED) | set(ELSEWHERE) <= set(CASES)
    equal = len(CASES) - len(CORRECTED) - len(ELSEWHERE)
    counted(
        f"shell captures: {equal} equal, {len(CORRECTED)} corrected on purpose, "
        f"{len(ELSEWHERE)} shown by the registry and the policy"
    )
    assert equal >= 20
