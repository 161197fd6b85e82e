"""A request decoded from this format: what is unchanged goes out as it was received."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.dialects.openai_chat.exchange import Json, losses, written
from toolwire import history
from toolwire.dialects.openai_chat import DIALECT
from toolwire.dialects.quirks import Quirks
from toolwire.messages import CacheMark, Message, Origin, Text
from toolwire.request import ModelRequest, ToolChoice, ToolSpec

CALL: Json = {"function": {"name": "math.add", "arguments": {"a": 1}}, "id": "a", "x": 1}
BODY: Json = {
    "model": "m",
    "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "s"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": "u", "detail": "low"}, "x": 1},
                {"type": "video_url", "video_url": "https://a/b.mp4"},
            ],
        },
        {"role": "assistant", "reasoning": "r", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "name": "math.add", "content": []},
        {"role": "user", "content": [{"type": "text", "text": "more"}], "name": None},
    ],
    "tools": [
        {"function": {"name": "math.add", "description": "", "strict": True, "y": 1}, "x": 1},
        {"type": "web_search"},
    ],
    "tool_choice": "any",
    "parallel_tool_calls": True,
    "max_completion_tokens": 5,
    "max_tokens": 6,
    "temperature": 1,
    "random_seed": 1,
    "stop": "x",
    "thinking": {"type": "enabled", "clear_thinking": False},
    "top_k": 5,
    "response_format": {"type": "text"},
    "stream": True,
    "stream_options": {"include_usage": False},
    "user": None,
}


def decoded(**members: Any) -> ModelRequest:
    return DIALECT.decode_request(json.dumps(BODY | members).encode())


def test_it_comes_out_equal_and_without_losses():
    assert written(decoded()) == BODY
    assert losses(decoded()) == []


def test_it_comes_out_equal_after_a_repair_that_changes_nothing():
    request = decoded()
    repaired = history.repair(request.messages, Origin("openai-chat"), DIALECT.history)
    assert written(replace(request, messages=repaired.messages)) == BODY


CHANGES: list[tuple[Json, Json]] = [
    ({"model": "other"}, {"model": "other"}),
    ({"temperature": 0.5}, {"temperature": 0.5}),
    ({"stop": ("y",)}, {"stop": ["y"]}),
    ({"tool_choice": ToolChoice(mode="none")}, {"tool_choice": "none"}),
    ({"tool_choice": None}, {"tool_choice": None}),
    ({"max_output_tokens": 7}, {"max_completion_tokens": None, "max_tokens": 7}),
    ({"seed": 7}, {"random_seed": None, "seed": 7}),
    ({"reasoning": None}, {"thinking": None}),
]


@pytest.mark.parametrize(("changes", "wanted"), CHANGES, ids=str)
def test_a_changed_setting_is_written_anew_and_the_others_stay(changes: Json, wanted: Json):
    expected = {
        key: value for key, value in (BODY | wanted).items() if wanted.get(key, 0) is not None
    }
    assert written(replace(decoded(), **changes)) == expected


def test_a_changed_message_is_written_anew_and_the_others_stay():
    request = decoded()
    user = request.messages[1]
    marked = replace(user, parts=(Text("new", cache=CacheMark("1h")), *user.parts[1:]))
    added = Message(role="user", parts=(Text("end"),))
    messages = (request.messages[0], marked, *request.messages[2:], added)
    part = {"type": "text", "text": "new", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    old = BODY["messages"]
    assert written(replace(request, messages=messages))["messages"] == [
        old[0],
        {"role": "user", "content": [part, *old[1]["content"][1:]]},
        *old[2:],
        {"role": "user", "content": "end"},
    ]


def test_an_added_tool_is_written_anew_and_the_others_stay():
    request = decoded()
    function = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    assert written(replace(request, tools=(*request.tools, ToolSpec(name="f"))))["tools"] == [
        *BODY["tools"],
        {"type": "function", "function": function},
    ]


def test_a_server_gets_what_its_quirks_speak_of_and_the_rest_as_it_was_received():
    request = decoded()
    quirks = Quirks(
        required_word="any",
        stream_usage=False,
        sampling=False,
        parallel_flag=False,
        assistant_between_results_and_user=True,
    )
    alias = DIALECT.encode_request(request, quirks).names.wire_name("math.add")
    old = BODY["messages"]
    call = {"name": alias, "arguments": '{"a":1}'}
    function = {"name": alias, "description": "", "y": 1}
    assert written(request, quirks) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "t"}, *old[1]["content"][1:]]},
            {
                "role": "assistant",
                "content": None,
                "reasoning": "r",
                "tool_calls": [{"id": "a", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "a", "content": ""},
            {"role": "assistant", "content": "I have the results."},
            old[4],
        ],
        "tools": [
            {
                "type": "function",
                "function": function | {"parameters": {"type": "object", "properties": {}}},
                "x": 1,
            },
            {"type": "web_search"},
        ],
        "tool_choice": "any",
        "max_tokens": 5,
        **{
            key: BODY[key]
            for key in ("random_seed", "stop", "thinking", "top_k", "response_format", "stream")
        },
        "user": None,
    }
    assert sorted(losses(request, quirks)) == [
        "max_tokens",
        "messages[1].parts[0].cache",
        "stream_options",
        "temperature",
        "tools[0].strict",
    ]


def test_older_functions_become_tools_for_a_server_with_quirks():
    request = DIALECT.decode_request(
        json.dumps(
            {
                "model": "m",
                "messages": [
                    {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
                    {"role": "function", "name": "f", "content": "r"},
                ],
                "functions": [{"name": "f", "parameters": {"type": "object", "properties": {}}}],
                "function_call": {"name": "f"},
            }
        ).encode()
    )
    function = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert written(request, Quirks(sampling=False)) == {
        "model": "m",
        "messages": [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "r"},
        ],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
    }
