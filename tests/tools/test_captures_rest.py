"""Every capture that calls tools, through the registry, the policy and the scheduler."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import captures
from tests.captures import ABSENT, PRESENT, Capture, Stage
from toolwire import dialects
from toolwire.agent.approval import Policy
from toolwire.agent.scheduler import Scheduler
from toolwire.app.workspace_facts import locations_of
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import Finished, ModelEvent, StopReason, TextDelta
from toolwire.messages import Kept
from toolwire.model import Model
from toolwire.policy import Mode
from toolwire.policy.engine import rule
from toolwire.policy.rule_file import limited
from toolwire.policy.ruling import Terms
from toolwire.request import ModelRequest
from toolwire.tools.registry import Registry, builtins, headless
from toolwire.tools.shell.shells import end_shells
from toolwire.tools.spec import ToolContext, ToolSettings

pytestmark = pytest.mark.skipif(not PRESENT, reason=ABSENT)

CORRECTED = {
    "shell_command_substitution": "command substitution is parsed and ruled on, not refused",
    "write_file_overwrite": "the final newline is not trimmed",
}
LATER = r"^mcp_"
"""Tools of servers are called in runs: `tests/e2e/test_gemini_cli.py`."""
SETTINGS = {
    "truncateToolOutputThreshold": "output_characters",
    "truncateToolOutputLines": "output_lines",
    "core": "core",
    "exclude": "exclude",
}


def _cases() -> list[Capture]:
    found = captures.find(names=".")
    return [one for one in found if one.tools and not re.search(LATER, one.name)]


def _settings(capture: Capture) -> ToolSettings:
    given = capture.data["settings"]
    ours = {SETTINGS[name]: v for name, v in given.get("tools", {}).items() if name in SETTINGS}
    plain = given.get("useSmartEdit") is False
    return msgspec.convert({**ours, "plain_edit": plain}, ToolSettings)


def _registry(capture: Capture, settings: ToolSettings) -> Registry:
    core, exclude = settings.core, settings.exclude
    tools = limited(builtins(settings).permitted(core, exclude), core, exclude)
    return tools if "--yolo" in capture.data["cli_args"] else headless(tools, "default")


def _policy(context: ToolContext) -> Policy:
    terms = Terms(locations=locations_of(context.workspace, {}), mode=Mode.YOLO, headless=True)
    return lambda call, effect, places, arguments: rule(
        call.name, effect, map(str, places), arguments, terms
    )


def _web_model(capture: Capture) -> Model:
    """What the search or fetch model must have said for the capture's result."""
    result = capture.expected[-1]["parts"][0]["functionResponse"]["response"]
    pages = [
        {"web": {"uri": f"https://{letter}.example/{number}", "title": f"{letter.upper()} {word}"}}
        for letter, number, word in (("a", 1, "One"), ("b", 2, "Two"))
    ]

    async def answer(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        asked = capture.data["side_requests"][0]["body"]
        body = json.loads(dialects.get("gemini").encode_request(request).http.body)
        assert body == {key: value for key, value in asked.items() if key != "systemInstruction"}
        if "error" in result:
            said = result["error"].partition("gemini-2.5-flash: ")[2]
            raise ProviderError(ErrorKind.BAD_REQUEST, "bad search", body=said)
        searching = "googleSearch" in asked["tools"][0]
        text = "Alpha fact. Beta fact." if searching else "Page summary."
        ends = ((11, [0]), (22, [0, 1])) if searching else ((13, [0]),)
        metadata = {
            "groundingChunks": pages if searching else pages[:1],
            "groundingSupports": [
                {"segment": {"endIndex": end}, "groundingChunkIndices": which}
                for end, which in ends
            ],
        }
        yield TextDelta(text)
        fields = json.dumps({"groundingMetadata": metadata})
        yield Finished(reason=StopReason.END, kept=Kept(dialect="gemini", fields=fields))

    return answer


async def _replayed(capture: Capture, stage: Stage) -> Any:
    settings = _settings(capture)
    context = stage.context(environ=dict(os.environ), settings=settings)
    if any(name in ("web_fetch", "google_web_search") for name in capture.tools):
        context = stage.context(model=_web_model(capture), model_dialect="gemini")
    scheduler = Scheduler(_registry(capture, settings), context=context, policy=_policy(context))
    said = captures.reply(capture, stage)
    try:
        answers = await scheduler.run(said.calls)
        return captures.without_pids(captures.contents(stage, said, answers))
    finally:
        await end_shells("")


def _difference(capture: Capture, folder: Path) -> str:
    wanted = captures.put_right(capture)
    stage = captures.build(wanted, folder)
    return captures.difference(wanted, stage, asyncio.run(_replayed(wanted, stage)))


@pytest.mark.slow
def test_every_capture_that_calls_tools_is_equal_or_corrected(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    cases = _cases()
    differing = {
        case.name: difference
        for case in cases
        if (difference := _difference(case, tmp_path / case.name))
    }
    wrong = [text for name, text in differing.items() if name not in CORRECTED]
    counted(
        f"captures through the scheduler: {len(cases)}, "
        f"{len(cases) - len(differing)} equal, {len(differing) - len(wrong)} corrected"
    )
    assert len(cases) > 100
    assert not wrong, "\n\n".join(wrong)
    assert set(differing) == set(CORRECTED)
