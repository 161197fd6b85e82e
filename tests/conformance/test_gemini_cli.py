"""What we send to Gemini for gemini-cli's own tools is what gemini-cli sends."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.driving import Case, driven, only, run
from toolwire import providers
from toolwire.messages import Message, Text
from toolwire.request import Effort, Reasoning, ToolSpec
from toolwire.simulator import reply

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "reference" / "gemini-cli-wire"

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the captures lie beside the project, not in it"
)


def captured(version: str) -> tuple[str, dict[str, Any]]:
    """The first real question of gemini-cli: its model and its body."""
    capture = json.loads((CAPTURES / version / "first_request.json").read_text())
    found = next(sent for sent in capture["requests_in_order"] if sent["kind"] == "main")
    return found["path"].rpartition("/")[2].partition(":")[0], found["body"]


def reasoning(config: dict[str, Any]) -> Reasoning:
    level = config.get("thinkingLevel")
    return Reasoning(
        effort=Effort(level.lower()) if level else None,
        budget=config.get("thinkingBudget"),
        visible=config["includeThoughts"],
    )


@pytest.mark.parametrize("version", ["0.5.5", "0.6.1", "0.61.0"])
def test_a_request_with_gemini_clis_tools_equals_its_own(version: str) -> None:
    model, body = captured(version)
    config = body["generationConfig"]
    tools = tuple(
        ToolSpec(
            name=declared["name"],
            description=declared["description"],
            parameters=declared["parametersJsonSchema"],
        )
        for declared in body["tools"][0]["functionDeclarations"]
    )

    async def scenario() -> None:
        case = Case(providers.get("google"), model)
        async with driven(case, only(reply("Hi."))) as d:
            await d.answer(
                messages=tuple(
                    Message(
                        role="assistant" if content["role"] == "model" else "user",
                        parts=tuple(Text(part["text"]) for part in content["parts"]),
                    )
                    for content in body["contents"]
                ),
                system=tuple(Text(part["text"]) for part in body["systemInstruction"]["parts"]),
                tools=tools,
                temperature=config["temperature"],
                top_p=config["topP"],
                top_k=config.get("topK"),
                max_output_tokens=None,
                reasoning=reasoning(config["thinkingConfig"]),
            )
            received = d.sim.requests[0]
            assert received.refusal == ""
            assert received.path == f"/v1beta/models/{model}:streamGenerateContent"
            assert received.query == "alt=sse"
            sent = received.json
            assert sent["tools"] == without_dialect(body["tools"])
            assert sent["generationConfig"] == config
            assert sent["systemInstruction"] == body["systemInstruction"]
            # Neighbours of one role are one turn to us: the words are the same, in their order.
            assert merged(sent["contents"]) == merged(body["contents"])
            assert sent.keys() == body.keys()

    run(scenario())


def without_dialect(tools: Any) -> Any:
    """The tools without the name of the schema's dialect, which says nothing to a model."""
    if isinstance(tools, list):
        return [without_dialect(tool) for tool in tools]
    if not isinstance(tools, dict):
        return tools
    return {key: without_dialect(value) for key, value in tools.items() if key != "$schema"}


def merged(contents: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    turns: list[tuple[str, list[Any]]] = []
    for content in contents:
        if turns and turns[-1][0] == content["role"]:
            turns[-1][1].extend(content["parts"])
        else:
            turns.append((content["role"], list(content["parts"])))
    return turns
