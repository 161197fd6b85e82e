"""Tool lists that come back with every turn are decoded once, and never taken for another."""

import json
from typing import Any

import pytest

from toolwire import dialects
from toolwire.dialects.tools import ReceivedTools
from toolwire.request import Source, ToolSpec

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
BODIES: dict[str, Any] = {
    "openai-chat": lambda tools: {
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in tools
        ],
    },
    "openai-responses": lambda tools: {
        "input": [{"role": "user", "content": "Hi."}],
        "tools": [
            {"type": "function", "name": name, "parameters": schema} for name, schema in tools
        ],
    },
    "anthropic-messages": lambda tools: {
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [{"name": name, "input_schema": schema} for name, schema in tools],
    },
    "gemini": lambda tools: {
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": name, "parametersJsonSchema": schema} for name, schema in tools
                ]
            }
        ],
    },
}


def body(dialect: str, *tools: tuple[str, Any]) -> bytes:
    return json.dumps({"model": "m", **BODIES[dialect](tools)}).encode()


@pytest.mark.parametrize("dialect", BODIES)
def test_the_same_list_is_decoded_once(dialect: str):
    codec = dialects.get(dialect)
    first = codec.decode_request(body(dialect, ("once", SCHEMA)), "m")
    second = codec.decode_request(body(dialect, ("once", SCHEMA)), "m")
    assert second.tools[0] is first.tools[0]
    assert second == first
    assert codec.encode_request(second).http.body == codec.encode_request(first).http.body


@pytest.mark.parametrize("dialect", BODIES)
def test_a_list_that_differs_in_one_character_is_another(dialect: str):
    codec = dialects.get(dialect)
    for name in ("one_a", "one_b", "one_a"):
        (tool,) = codec.decode_request(body(dialect, (name, SCHEMA)), "m").tools
        assert isinstance(tool, ToolSpec)
        assert (tool.name, tool.parameters) == (name, SCHEMA)


@pytest.mark.parametrize("dialect", BODIES)
def test_the_same_format_writes_the_list_back_as_it_was_both_times(dialect: str):
    codec = dialects.get(dialect)
    data = body(dialect, ("back", {**SCHEMA, "x-own": 1.0}))
    expected = json.loads(data)["tools"]
    for _ in range(2):
        written = codec.encode_request(codec.decode_request(data, "m")).http.body
        assert json.loads(written)["tools"] == expected


@pytest.mark.parametrize("dialect", BODIES)
def test_half_a_character_in_a_list_is_repaired_each_time(dialect: str):
    data = (
        body(dialect, ("half", SCHEMA)).replace(b"Hi.", rb"\ud83d").replace(b"half", rb"h\udc00f")
    )
    for _ in range(2):
        request = dialects.get(dialect).decode_request(data, "m")
        (tool,) = request.tools
        assert isinstance(tool, ToolSpec)
        assert (tool.name, request.messages[0].text) == ("h\ufffdf", "\ufffd")


def test_old_lists_are_dropped_before_two_megabytes():
    received = ReceivedTools()
    for number in range(40):
        raw = json.dumps([{"name": str(number), "text": "x" * 100_000}]).encode()
        value = received.value(raw, json.loads)
        assert received.value(raw, json.loads) is value
    first = json.dumps([{"name": "0", "text": "x" * 100_000}]).encode()
    asked: list[bytes] = []

    def parsing(raw: bytes) -> Any:
        asked.append(raw)
        return json.loads(raw)

    received.value(first, parsing)
    assert asked == [first]


def test_a_list_from_elsewhere_is_read_without_the_cache():
    source = Source("openai-chat")
    spec = ToolSpec(name="f")
    assert ReceivedTools().read([1], source, lambda own: (spec,)) == (spec,)
