"""A result or a message whose only part is a file of another vendor is a note, never empty."""

import json
from typing import Any

import pytest

from toolwire.codec import translate

Json = dict[str, Any]
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
IMAGE = {"type": "input_image", "file_id": "file-1"}
BLOCK = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
USE = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
REQUESTS: dict[str, tuple[str, Json]] = {
    "a result of Responses": (
        "openai-responses",
        {
            "input": [
                {"role": "user", "content": "hi"},
                CALL,
                {"type": "function_call_output", "call_id": "c", "output": [IMAGE]},
            ]
        },
    ),
    "a result of Anthropic": (
        "anthropic-messages",
        {
            "max_tokens": 99,
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [USE]},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "c", "content": [BLOCK]}],
                },
            ],
        },
    ),
    "a message of Responses": (
        "openai-responses",
        {"input": [{"role": "user", "content": [IMAGE]}]},
    ),
    "a message of Anthropic": (
        "anthropic-messages",
        {"max_tokens": 99, "messages": [{"role": "user", "content": [BLOCK]}]},
    ),
    "a file of chat": (
        "openai-chat",
        {
            "messages": [
                {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}
            ]
        },
    ),
}
DIALECTS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("target", DIALECTS)
def test_a_lost_file_is_a_note(name: str, target: str) -> None:
    source, body = REQUESTS[name]
    if source == target:
        return
    found = translate(json.dumps({"model": "m", **body}).encode(), source, target, model="m")
    sent = json.loads(found.http.body)
    last = sent.get("messages", sent.get("input", sent.get("contents")))[-1]
    assert "[image]" in json.dumps(last) or "[document]" in json.dumps(last)
    assert any(loss.why.endswith("replaced by a note") for loss in found.losses)


@pytest.mark.parametrize(
    ("target", "result"),
    [
        ("openai-chat", {"role": "tool", "content": "[image]", "tool_call_id": "c"}),
        (
            "anthropic-messages",
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "content": [{"type": "text", "text": "[image]"}],
                    }
                ],
            },
        ),
        (
            "gemini",
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "f", "response": {"output": "[image]"}}}],
            },
        ),
    ],
)
def test_the_note_is_the_content_of_the_result(target: str, result: Json) -> None:
    source, body = REQUESTS["a result of Responses"]
    found = translate(json.dumps({"model": "m", **body}).encode(), source, target, model="m")
    sent = json.loads(found.http.body)
    assert sent.get("messages", sent.get("contents"))[-1] == result
