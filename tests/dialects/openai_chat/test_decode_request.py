import json
from typing import Any

import pytest

from tests.dialects.openai_chat.exchange import NAME, ORIGIN, Json, again, kept, seal
from toolwire.dialects.openai_chat import DIALECT
from toolwire.errors import BadInput
from toolwire.messages import (
    CacheMark,
    CallKind,
    Media,
    MediaKind,
    Message,
    Refusal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import (
    Effort,
    FreeformTool,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)


def body(*messages: Json, **members: Any) -> Json:
    return {"model": "m", "messages": list(messages), **members}


def decode(*messages: Json, **members: Any) -> ModelRequest:
    return DIALECT.decode_request(json.dumps(body(*messages, **members)).encode())


def user(*parts: Any) -> Json:
    return {"role": "user", "content": list(parts)}


def function(name: str = "f", **members: Any) -> Json:
    return {"type": "function", "function": {"name": name, **members}}


def entry(**members: Any) -> Json:
    return {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}} | members


EXACT: list[Json] = [
    body(),
    {"messages": []},
    body(model=None),
    body({"role": "system", "content": "s"}, {"role": "developer", "content": [], "name": "n"}),
    *(body({"role": "user", "content": content}) for content in ("", None, [], "t", {"x": 1})),
    body({"role": "user"}, {"role": "assistant"}, {"role": "critic", "content": "c"}),
    body({"role": "user", "content": "t", "name": None, "tool_calls": None, "images": ["AA"]}),
    *(body({"role": "assistant", "content": c, "tool_calls": [entry()]}) for c in (None, "", "t")),
    body({"role": "assistant", "tool_calls": [entry(), entry(id="b", index=1)]}),
    body({"role": "assistant", "tool_calls": [entry(index=7), entry(type=None), 3]}),
    body({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}),
    body(
        {"role": "assistant", "tool_calls": [{"id": "", "function": {"arguments": None, "x": 1}}]}
    ),
    body(
        {"role": "assistant", "tool_calls": [], "refusal": None, "annotations": [], "prefix": True}
    ),
    body({"role": "assistant", "content": "t", "annotations": [{"type": "url_citation"}]}),
    body({"role": "assistant", "content": "t", "annotations": 5, "images": 5, "audio": 5}),
    body({"role": "assistant", "content": "t", "audio": {"id": "audio_1"}}),
    body({"role": "assistant", "images": [{"type": "image_url", "image_url": {"url": "u"}}]}),
    body({"role": "assistant", "content": "t", "extra_content": {"google": {"s": "x"}}}),
    body({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "n"}),
    body({"role": "assistant", "content": "", "reasoning_content": "", "reasoning": None}),
    body(
        {
            "role": "assistant",
            "reasoning": "r",
            "reasoning_content": "r",
            "reasoning_details": [{"type": "reasoning.text", "text": "r", "index": 0}] * 2,
        }
    ),
    body({"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "closed": True}]}),
    body({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}),
    body(
        {"role": "assistant", "tool_calls": [entry()]},
        {"role": "tool", "tool_call_id": "a", "content": "r", "name": "f"},
        {"role": "tool", "tool_call_id": "b", "content": None},
        {"role": "tool", "content": [{"type": "text", "text": ""}], "cache_control": {}},
        {"role": "function", "name": "f", "content": "r"},
        {"role": "user", "content": "t"},
    ),
    body(
        user(
            {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "text", "text": "t", "cache_control": {"type": "x"}, "image_url": None},
            {"type": "text", "text": None},
            {"type": "image_url", "image_url": {"url": "u", "detail": "low"}, "detail": "high"},
            {"type": "image_url", "image_url": "data:image/png;base64,AA"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}},
            {"type": "image_url", "image_url": {"url": "data:text/plain,hi"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "mp3"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "flac"}},
            {"type": "input_audio", "input_audio": {"data": "AA"}},
            {"type": "file", "file": {"file_id": "f1"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA"}},
            {"type": "file", "file": {"file_data": "AA", "filename": "a.pdf"}},
            {"type": "file", "file": {"file_data": "https://a/b.pdf", "filename": ""}},
            {"type": "video_url", "video_url": {"url": "https://a/b.mp4"}},
            {"type": "document_url", "document_url": "https://a/b.pdf", "document_name": "b"},
            {"role": "user", "content": "nested"},
            "bare",
        )
    ),
    body(tools=[]),
    body(tools=None, tool_choice=None, stop=None, response_format=None),
    body(
        tools=[
            function(description="d", parameters={"type": "object"}, strict=True),
            function(description="", parameters={}, strict=None, extra=1),
            {"function": {"name": "f"}, "parameters": {"a": 1}, "cache_control": {"type": "e"}},
            function() | {"cache_control": {"type": "ephemeral"}, "name": "outer"},
            {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}},
            {
                "type": "custom",
                "custom": {
                    "name": "c",
                    "description": "d",
                    "format": {
                        "type": "grammar",
                        "grammar": {"syntax": "regex", "definition": "x"},
                    },
                },
            },
            {"type": "web_search", "depth": 2},
            {"type": "function"},
        ],
        tool_choice={"type": "custom", "custom": {"name": "c"}},
        parallel_tool_calls=False,
    ),
    *(
        body(tools=[function()], tool_choice=choice)
        for choice in (
            "auto",
            "none",
            "required",
            "any",
            "validated",
            {"type": "function", "function": {"name": "f"}},
            {"function": {"name": "f"}},
            {"type": "function", "function": {"name": "f"}, "x": 1},
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "f"}}],
                },
            },
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        )
    ),
    *(
        body(functions=[{"name": "f", "parameters": {"type": "object"}}], function_call=choice)
        for choice in ("auto", "none", {"name": "f"}, {"name": "f", "x": 1})
    ),
    body(max_tokens=1, max_completion_tokens=2, temperature=0, top_p=1.0, top_k=4, n=1, seed=3),
    body(random_seed=3, stop="x", stream=True, stream_options={"include_usage": True}),
    body(stop=["x", "y"], stream=False, frequency_penalty=0.5, presence_penalty=-1, user="u"),
    body(stop=[], reasoning_effort="high", reasoning={"effort": "low"}),
    body(reasoning_effort=None, reasoning={"max_tokens": 5, "exclude": True, "x": 1}),
    body(reasoning={"enabled": True, "effort": "default"}, thinking={"type": "disabled"}),
    body(thinking={"type": "enabled", "clear_thinking": False}, enable_thinking=True),
    body(enable_thinking=False, reasoning={}),
    *(
        body(response_format=shape)
        for shape in (
            {"type": "text"},
            {"type": "json_object"},
            {"type": "json_object", "schema": {}},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}},
            {"type": "json_schema", "json_schema": {"schema": None, "description": "d"}},
            {"type": "grammar"},
        )
    ),
]


@pytest.mark.parametrize("wanted", EXACT, ids=lambda wanted: json.dumps(wanted)[:70])
def test_a_request_comes_back_as_it_was(wanted: Json):
    assert again(wanted) == wanted


def test_tool_messages_become_one_message_of_results():
    request = decode(
        {"role": "assistant", "tool_calls": [entry(), entry(id="b")], "content": None},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "1"}]},
        {"role": "user", "content": "next"},
    )
    assert request.messages == (
        Message(
            role="assistant",
            parts=(
                ToolCall(id="a", name="f", arguments="{}"),
                ToolCall(id="b", name="f", arguments="{}"),
            ),
        ),
        Message(
            role="user",
            parts=(
                ToolResult(call_id="b", name="f", parts=(Text("2"),)),
                ToolResult(call_id="a", name="f", parts=(Text("1"),)),
            ),
        ),
        Message(role="user", parts=(Text("next"),)),
    )


def test_older_calls_and_results_are_paired_by_name():
    request = decode(
        {"role": "assistant", "content": None, "tool_calls": [entry(id="call_1")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "0"},
        {"role": "assistant", "content": None, "function_call": {"name": "g", "arguments": "{}"}},
        {"role": "function", "name": "g", "content": "1"},
    )
    call = ToolCall(id="call_2", name="g", arguments="{}", made_id=True)
    result = ToolResult(call_id="call_2", name="g", parts=(Text("1"),))
    assert request.messages[2].parts == (call,)
    assert request.messages[3].parts == (result,)


def test_an_assistants_members_become_parts_in_order():
    request = decode(
        {
            "role": "assistant",
            "content": "t",
            "reasoning": "r",
            "refusal": "no",
            "tool_calls": [
                {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}
            ],
        }
    )
    assert request.messages[0].parts == (
        Thinking("r", seal(reasoning="r")),
        Text("t"),
        Refusal("no"),
        ToolCall(id="c", name="sql", arguments="SELECT", kind=CallKind.FREEFORM),
    )


def test_parts_are_read_by_what_they_are():
    request = decode(
        user(
            {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA"}},
            {"type": "mystery"},
        )
    )
    assert request.messages[0].parts == (
        Text("t", cache=CacheMark("1h")),
        Media(kind=MediaKind.IMAGE, mime="image/png", base64="AA"),
        Media(kind=MediaKind.AUDIO, mime="audio/wav", base64="AA"),
        Media(kind=MediaKind.DOCUMENT, mime="application/pdf", base64="AA"),
        ServerBlock(origin=ORIGIN, kind="mystery", data='{"type":"mystery"}'),
    )


def test_settings_tools_and_what_is_left_over_are_separated():
    request = decode(
        tools=[function(parameters={"type": "object"}, strict=True), {"type": "web_search"}],
        functions=[{"name": "old"}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        max_completion_tokens=5,
        reasoning_effort="high",
        response_format={"type": "json_object"},
        stop="x",
        stream=True,
        user="u",
    )
    assert request == ModelRequest(
        model="m",
        messages=(),
        tools=(
            ToolSpec(name="f", parameters={"type": "object"}, strict=True),
            ServerTool(dialect=NAME, kind="web_search", data='{"type":"web_search"}'),
            ToolSpec(name="old"),
        ),
        tool_choice=ToolChoice(mode="required", names=("f",)),
        max_output_tokens=5,
        reasoning=Reasoning(effort=Effort.HIGH),
        output=OutputFormat(kind="json"),
        stop=("x",),
        stream=True,
        kept=kept(user="u"),
    )


def test_a_freeform_tool_has_its_grammar():
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}
    request = decode(tools=[{"type": "custom", "custom": {"name": "c", "format": grammar}}])
    assert request.tools == (FreeformTool(name="c", syntax="lark", grammar="start: /x/"),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"messages":1}',
        '{"messages":[1]}',
        '{"messages":[{"content":"x"}]}',
        '{"messages":[],"temperature":"hot"}',
        '{"messages":[],"stream":1}',
        '{"messages":[],"max_tokens":1.5}',
    ],
)
def test_a_body_that_is_not_a_request_is_bad_input(text: str):
    with pytest.raises(BadInput):
        DIALECT.decode_request(text.encode())
