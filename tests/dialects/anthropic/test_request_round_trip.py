"""Requests of this format, read and written again."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dialects.anthropic.exchange import NAME, ORIGIN, Json, kept, seal
from toolwire.dialects.anthropic import DIALECT
from toolwire.errors import BadInput
from toolwire.messages import (
    CacheMark,
    Citation,
    Kept,
    Media,
    MediaKind,
    Message,
    Outcome,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import (
    Effort,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)

BASE: Json = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def read(**members: Any) -> ModelRequest:
    return DIALECT.decode_request(json.dumps(BASE | members).encode())


def again(body: Json) -> Json:
    encoded = DIALECT.encode_request(DIALECT.decode_request(json.dumps(body).encode()))
    assert encoded.losses == ()
    return json.loads(encoded.http.body)


def user_turn(*blocks: Json) -> Json:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


BLOCKS: list[Json] = [
    {"type": "text", "text": ""},
    {"type": "text", "text": "x", "citations": None},
    {"type": "text", "text": "x", "citations": [], "cache_control": None},
    {"type": "text", "text": "x", "citations": [{"type": "char_location", "start_char_index": 1}]},
    {"type": "text", "text": "x", "cache_control": MARK, "odd": {"a": [1, None]}},
    {"type": "text", "text": "x", "cache_control": {"type": "new"}},
    {"type": "text", "text": None},
    {"type": "text"},
    {"type": "thinking", "thinking": "so", "signature": "s"},
    {"type": "thinking", "thinking": "so", "signature": ""},
    {"type": "thinking", "thinking": "so"},
    {"type": "thinking", "thinking": "so", "signature": None, "odd": 1},
    {"type": "redacted_thinking", "data": "d", "odd": 1},
    {"type": "redacted_thinking"},
    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 2**70}, "cache_control": HOUR},
    {"type": "tool_use", "id": "a", "name": "f", "input": None},
    {"type": "tool_use", "id": "a", "name": "f", "input": "text"},
    {"type": "tool_use", "id": "a", "name": "f"},
    {"type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": {"type": "direct"}},
    {"type": "tool_use", "name": "f", "input": {}},
    {"type": "tool_result", "tool_use_id": "a"},
    {"type": "tool_result", "tool_use_id": "a", "content": None, "is_error": None},
    {"type": "tool_result", "tool_use_id": "a", "content": "", "is_error": False},
    {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True},
    {"type": "tool_result", "tool_use_id": "a", "content": [], "cache_control": MARK},
    {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [
            {"type": "text", "text": "x"},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "tool_reference", "tool_name": "f"},
            {
                "type": "search_result",
                "source": "https://example.org",
                "title": "t",
                "content": [{"type": "text", "text": "found"}],
                "citations": {"enabled": True},
                "cache_control": MARK,
            },
        ],
    },
    {"type": "tool_result", "content": "x"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AA=="}},
    {"type": "image", "source": {"type": "file", "file_id": "f"}, "transformations": {}},
    {"type": "image", "source": {"type": "url", "url": "u", "odd": 1}, "cache_control": MARK},
    {"type": "image", "source": {"type": "new"}},
    {"type": "image"},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}},
    {"type": "document", "source": {"type": "base64", "media_type": "text/csv", "data": "AA=="}},
    {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
        "title": "t",
        "context": "c",
        "citations": {"enabled": True},
    },
    {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}, "title": None},
    {"type": "document", "source": {"type": "content", "content": "x"}, "title": "t"},
    {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": "x"}]},
    },
    {"type": "search_result", "source": "s", "title": "t", "content": []},
    {"type": "container_upload", "file_id": "f"},
    {"type": "server_tool_use", "id": "s", "name": "w", "input": {"q": 1.50}},
    {"type": "compaction", "content": None},
    {"type": "a_new_one", "x": [1]},
    {"no": "type"},
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: json.dumps(block)[:60])
def test_a_block_comes_back_as_it_was(block: Json) -> None:
    body = BASE | user_turn(block)
    assert again(body) == body


MEMBERS: list[Json] = [
    {},
    {"system": "be kind"},
    {"system": ""},
    {"system": []},
    {"system": None},
    {
        "system": [
            {"type": "text", "text": "a", "cache_control": HOUR},
            {"type": "text", "text": ""},
        ]
    },
    {"messages": []},
    {"messages": [{"role": "assistant", "content": "x "}, {"role": "assistant", "content": []}]},
    {"messages": [{"role": "user", "content": None}, {"role": "user"}]},
    {"messages": [{"role": "system", "content": "x", "clear_at": "never"}]},
    {"tools": []},
    {"tools": None, "tool_choice": None, "thinking": None, "stop_sequences": None},
    {"tools": [{"name": "f", "input_schema": {}}]},
    {"tools": [{"name": "a.b c", "input_schema": {"anyOf": []}, "description": "", "type": None}]},
    {"tools": [{"name": "f", "input_schema": {}, "type": "custom", "strict": False}]},
    {
        "tools": [
            {
                "name": "f",
                "description": "d",
                "input_schema": {"type": "object"},
                "strict": True,
                "defer_loading": True,
                "eager_input_streaming": True,
                "allowed_callers": ["direct"],
                "input_examples": [{}],
                "cache_control": MARK,
            }
        ]
    },
    {"tools": [{"type": "web_search_20250305", "name": "web_search", "cache_control": MARK}]},
    {"tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}, {"name": "no schema"}]},
    {"tool_choice": {"type": "auto"}},
    {"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
    {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
    {"tool_choice": {"type": "tool", "name": "f", "odd": 1}},
    {"tool_choice": {"type": "none"}},
    {"tool_choice": {"type": "new", "disable_parallel_tool_use": True}},
    {"tool_choice": {"type": "tool"}},
    {"tool_choice": {"type": "tool", "disable_parallel_tool_use": True}},
    {"thinking": {"type": "enabled", "budget_tokens": 32000}},
    {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}},
    {"thinking": {"type": "enabled"}},
    {"thinking": {"type": "adaptive", "display": None}},
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "between_tools"}},
    {"thinking": {"type": "new", "display": "new"}},
    {"thinking": {}},
    {"output_config": {"effort": "xhigh", "task_budget": {"type": "tokens", "total": 1}}},
    {"output_config": {"effort": "new", "format": None}},
    {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
    {"output_config": {"format": {"type": "new"}}, "thinking": {"type": "adaptive"}},
    {"output_config": {}},
    {"output_config": None},
    {"output_format": {"type": "json_schema", "schema": {}, "name": "n"}},
    {"temperature": 1, "top_p": 0.5, "top_k": 3, "stop_sequences": [" ", "x"], "stream": True},
    {"temperature": None, "stream": None, "max_tokens": 0},
    {"stop_sequences": []},
    {"metadata": {"user_id": "u"}, "container": "c", "mcp_servers": [], "cache_control": MARK},
    {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}, "betas": ["x"]},
]


@pytest.mark.parametrize("members", MEMBERS, ids=lambda members: json.dumps(members)[:60])
def test_a_request_comes_back_as_it_was(members: Json) -> None:
    body = BASE | members
    assert again(body) == body


@pytest.mark.parametrize("left_out", ["model", "max_tokens", "messages"])
def test_nothing_is_added_to_a_request(left_out: str) -> None:
    body = {key: value for key, value in BASE.items() if key != left_out}
    if left_out == "messages":
        assert again(body) == {**body, "messages": []}
    else:
        assert again(body) == body


def test_a_model_outside_the_body_stays_outside() -> None:
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}
    decoded = DIALECT.decode_request(json.dumps(body).encode(), "claude")
    assert decoded.model == "claude"
    assert json.loads(DIALECT.encode_request(decoded).http.body) == body


def test_a_request_says_what_it_means() -> None:
    decoded = read(
        system="be kind",
        tools=[{"name": "f", "input_schema": {"type": "object"}, "cache_control": HOUR}],
        tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={
            "effort": "high",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
        },
        stop_sequences=["x"],
        metadata={"user_id": "u"},
    )
    assert decoded == ModelRequest(
        model="m",
        messages=(Message(role="user", parts=(Text("hi"),)),),
        system=(Text("be kind"),),
        tools=(ToolSpec(name="f", parameters={"type": "object"}, cache=CacheMark("1h")),),
        tool_choice=ToolChoice(mode="required", names=("f",)),
        parallel_calls=False,
        max_output_tokens=9,
        reasoning=Reasoning(enabled=True, effort=Effort.HIGH, budget=-1, visible=True),
        output=OutputFormat(kind="json_schema", schema={"type": "object"}),
        stop=("x",),
        kept=Kept(dialect=NAME, fields='{"metadata":{"user_id":"u"}}'),
    )


def test_a_server_tool_is_kept_whole() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    data = '{"type":"web_search_20250305","name":"web_search","max_uses":3}'
    assert read(tools=[tool]).tools == (
        ServerTool(dialect=NAME, kind="web_search_20250305", data=data),
    )


def test_blocks_become_parts() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    cited = {"type": "web_search_result_location", "url": "u", "title": "t"}
    blocks: list[Json] = [
        {"type": "thinking", "thinking": "so", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "hi", "citations": [cited], "cache_control": MARK},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1.0}},
        {"type": "server_tool_use", "id": "s"},
        {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True},
        {"type": "image", "source": source},
    ]
    body = json.dumps(BASE | user_turn(*blocks), separators=(",", ":")).encode()
    (message,) = DIALECT.decode_request(body).messages
    data = '{"type":"web_search_result_location","url":"u","title":"t"}'
    assert message.parts == (
        Thinking("so", seal(signature="s")),
        Thinking("", seal(type="redacted_thinking", data="d")),
        Text("hi", (Citation(dialect=NAME, data=data, url="u", title="t"),), CacheMark()),
        ToolCall(id="a", name="f", arguments='{"x":1.0}'),
        ServerBlock(
            origin=ORIGIN, kind="server_tool_use", data='{"type":"server_tool_use","id":"s"}'
        ),
        ToolResult(
            call_id="a",
            name="f",
            parts=(Text("x"),),
            is_error=True,
            outcome=Outcome.FAILED,
        ),
        Media(kind=MediaKind.IMAGE, mime="image/png", base64="AA=="),
    )


def test_a_text_document_can_be_read_by_others() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "grüße"}
    block = {"type": "document", "source": source, "title": "t", "context": "c"}
    (message,) = read(**user_turn(block)).messages
    (media,) = message.parts
    assert isinstance(media, Media)
    assert (media.kind, media.mime, media.name) == (MediaKind.DOCUMENT, "text/plain", "t")
    assert media.data.decode() == "grüße"
    assert media.kept == kept(context="c")


def test_arguments_go_out_as_they_came_in() -> None:
    body = json.dumps(
        BASE | user_turn({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 0}})
    )
    body = body.replace('{"x": 0}', '{ "x": 1.10, "y": 1e5 }')
    sent = DIALECT.encode_request(DIALECT.decode_request(body.encode())).http.body
    assert b'{ "x": 1.10, "y": 1e5 }' in sent


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"messages":3}',
        b'{"messages":[3]}',
        b'{"messages":[{"role":"tool"}]}',
        b'{"messages":[{"role":"user","content":3}]}',
        b'{"messages":[{"role":"user","content":["x"]}]}',
        b'{"messages":[],"tools":[3]}',
        b'{"messages":[],"tools":{}}',
        b'{"messages":[],"max_tokens":"x"}',
        b'{"messages":[],"system":3}',
        b'{"messages":[],"thinking":3}',
        b'{"messages":[],"tool_choice":3}',
        b'{"messages":[],"model":3}',
        b'{"messages":[],"stop_sequences":[3]}',
        b'{"messages":[],"metadata":"\xff"}',
        b'{"messages":' + b"[" * 5000,
    ],
    ids=lambda body: body[:50].decode("utf-8", "replace"),
)
def test_a_body_that_cannot_be_read_is_bad_input(body: bytes) -> None:
    with pytest.raises(BadInput):
        DIALECT.decode_request(body)


def test_half_a_surrogate_pair_is_no_reason_to_refuse_a_request() -> None:
    decoded = read(messages=[{"role": "user", "content": "a\ud800b"}])
    assert decoded.messages[0].parts == (Text("a\ufffdb"),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('aé\\"', max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=3), inner),
    max_leaves=4,
)
ODD = st.sampled_from(
    ["text", "content", "source", "input", "id", "name", "tool_use_id", "citations", "is_error"]
)


@given(st.sampled_from(BLOCKS), ODD, JSON)
@settings(max_examples=300)
def test_a_block_with_an_odd_member_comes_back_as_it_was(block: Json, name: str, odd: Any) -> None:
    body = BASE | user_turn({**block, name: odd})
    assert again(body) == body
