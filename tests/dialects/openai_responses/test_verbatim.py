import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.dialects.openai_responses.exchange import (
    COMPLETED,
    Json,
    body_and_losses,
    collected,
    decode,
    done,
    read,
    request,
)
from toolwire import providers
from toolwire.dialects.openai_responses import DIALECT
from toolwire.dialects.quirks import Quirks
from toolwire.messages import Message, Text, ToolCall, ToolResult
from toolwire.request import NO_SOURCE, Effort, ModelRequest, Reasoning, ToolChoice, ToolSpec
from toolwire.wire.names import NameRule

SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "number", "minimum": 1.10}}}
CALL = {"type": "function_call", "call_id": "c", "name": "a b", "arguments": "{ }", "x": 1}
ITEMS: list[Json] = [
    {"role": "developer", "content": [{"type": "input_text", "text": "be brief", "x": 1}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "reasoning", "id": "rs", "summary": [], "content": None, "encrypted_content": "e"},
    {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}],
    },
    {**CALL, "status": None},
    {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": ""}],
    },
]
TOOLS: list[Json] = [
    {"type": "function", "name": "a b", "parameters": SCHEMA, "defer_loading": True},
    {
        "type": "namespace",
        "name": "mcp",
        "tools": [{"type": "function", "name": "r"}, {"type": "custom", "name": "s"}],
    },
    {"type": "web_search", "lat": 1.50},
]
ALLOWED = {
    "type": "allowed_tools",
    "mode": "required",
    "tools": [{"type": "function", "name": "a b"}, {"type": "function", "name": "r"}],
}


def came(**members: Any) -> ModelRequest:
    return read(input=ITEMS, tools=TOOLS, tool_choice=ALLOWED, metadata={"a": "b"}, **members)


def test_a_message_more_leaves_the_others_as_they_came():
    asked = came(top_p=1.0, text={"verbosity": "low"})
    more = Message(role="user", parts=(Text("go on"),))
    found, losses = body_and_losses(replace(asked, messages=(*asked.messages, more)))
    assert found == {
        "model": "m",
        "input": [*ITEMS, {"role": "user", "content": "go on"}],
        "tools": TOOLS,
        "tool_choice": ALLOWED,
        "metadata": {"a": "b"},
        "top_p": 1.0,
        "text": {"verbosity": "low"},
    }
    assert losses == []


def test_a_part_that_changed_leaves_the_items_beside_it():
    asked = came()
    developer, user, answer, results = asked.messages
    text, refusal = answer.parts[1:3]
    assert isinstance(text, Text)
    changed = (answer.parts[0], replace(text, text="A"), refusal, *answer.parts[3:])
    messages = (developer, user, replace(answer, parts=changed), results)
    found = body_and_losses(replace(asked, messages=messages))[0]["input"]
    assert [*found[:3], *found[4:]] == [*ITEMS[:3], *ITEMS[4:]]
    assert found[3] == {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "A", "annotations": []},
            {"type": "refusal", "refusal": "b"},
        ],
    }


def test_members_unknown_to_us_stay_with_a_value_that_changed():
    asked = came()
    answer = asked.messages[2]
    call = answer.parts[-1]
    assert isinstance(call, ToolCall)
    parts = (*answer.parts[:-1], replace(call, arguments='{"a":2}'))
    messages = (*asked.messages[:2], replace(answer, parts=parts), *asked.messages[3:])
    found = body_and_losses(replace(asked, messages=messages))[0]["input"]
    assert found[4] == {**CALL, "arguments": '{"a":2}'}


def test_a_tool_more_leaves_the_others_as_they_came():
    asked = came()
    tools = (ToolSpec(name="new"), *asked.tools)
    found = body_and_losses(replace(asked, tools=tools))[0]["tools"]
    assert found[1:] == TOOLS
    assert found[0] == {
        "type": "function",
        "name": "new",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }


def test_a_new_call_has_the_name_that_the_tool_came_with():
    asked = came()
    more = (
        Message(role="assistant", parts=(ToolCall(id="d", name="a b"),)),
        Message(role="user", parts=(ToolResult(call_id="d", parts=(Text("1"),)),)),
    )
    found = body_and_losses(replace(asked, messages=(*asked.messages, *more)))[0]["input"]
    assert found[-2:] == [
        {"type": "function_call", "call_id": "d", "name": "a b", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "d", "output": "1"},
    ]


def test_settings_of_tools_go_with_the_last_tool():
    asked = replace(came(parallel_tool_calls=False), tools=())
    found, losses = body_and_losses(asked)
    assert found == {"model": "m", "input": ITEMS, "metadata": {"a": "b"}}
    assert losses == ["tool_choice", "parallel_calls"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model": "n"}, {"model": "n"}),
        ({"temperature": None}, {"temperature": ...}),
        ({"temperature": 1}, {"temperature": 1}),
        ({"max_output_tokens": 50}, {"max_output_tokens": 50}),
        ({"system": (Text("x"),)}, {"instructions": "x"}),
        ({"output": None}, {"text": {"verbosity": "low"}}),
        (
            {"reasoning": Reasoning(effort=Effort.LOW)},
            {"reasoning": {"effort": "low"}},
        ),
        ({"tool_choice": ToolChoice(mode="none")}, {"tool_choice": "none"}),
    ],
)
def test_a_setting_that_changed_leaves_the_others(change: Json, expected: Json) -> None:
    members: Json = {
        "input": "hi",
        "tools": TOOLS,
        "tool_choice": {"type": "web_search"},
        "temperature": 0,
        "top_p": None,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "reasoning": {"effort": "high", "summary": "detailed"},
        "instructions": None,
        "stream": True,
    }
    found, losses = body_and_losses(replace(read(**members), **change))
    body = {"model": "m", **members, **expected}
    assert found == {key: value for key, value in body.items() if value is not ...}
    assert losses == []


QUIRKS: list[tuple[Quirks, Json, list[str]]] = [
    (
        Quirks(sampling=False),
        {"temperature": ..., "top_p": ...},
        ["temperature", "top_p"],
    ),
    (Quirks(parallel_flag=False), {"parallel_tool_calls": ...}, ["parallel_calls"]),
    (
        Quirks(tool_choices=frozenset({"auto", "required"})),
        {"tool_choice": "auto"},
        ["tool_choice"],
    ),
    (Quirks(store=True), {}, []),
]


@pytest.mark.parametrize(("quirks", "expected", "lost"), QUIRKS)
def test_a_quirk_decides_also_for_a_request_of_the_same_format(
    quirks: Quirks, expected: Json, lost: list[str]
) -> None:
    members: Json = {"temperature": 0.5, "top_p": 1.0, "parallel_tool_calls": True}
    plain, _ = body_and_losses(came(**members))
    found, losses = body_and_losses(came(**members), quirks)
    assert found == {key: v for key, v in (plain | expected).items() if v is not ...}
    assert losses == lost


def test_a_server_with_stricter_names_gets_them_everywhere():
    asked = came()
    quirks = Quirks(name_rule=NameRule(limit=20))
    found, _ = body_and_losses(asked, quirks)
    alias = DIALECT.encode_request(asked, quirks).names.wire_name("a b")
    assert NameRule(limit=20).accepts(alias)
    assert [tool.get("name") for tool in found["tools"]] == [alias, "mcp", None]
    assert found["tools"][0]["defer_loading"] is True
    assert found["input"][4] == {**CALL, "name": alias}
    assert [*found["input"][:4], found["input"][5]] == [*ITEMS[:4], ITEMS[5]]
    assert found["tool_choice"]["tools"][0]["name"] == alias


SERVERS = [
    provider.with_dialect("openai-responses")
    for provider in map(providers.get, providers.names())
    if "openai-responses" in (provider.dialect, *dict(provider.other_dialects))
]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_every_server_of_this_format_gets_only_what_it_takes(server: providers.Provider) -> None:
    asked = came(temperature=0.5, parallel_tool_calls=False)
    found, _ = body_and_losses(asked, server.quirks)
    built, _ = body_and_losses(replace(asked, kept=None, source=NO_SOURCE), server.quirks)
    for key in ("temperature", "parallel_tool_calls"):
        assert found.get(key) == built.get(key)
    assert ("subset" in server.quirks.tool_choices) == (found["tool_choice"] == ALLOWED)


def test_an_answer_that_was_stored_goes_back_as_the_items_it_came_in():
    items: list[Json] = [
        {
            "type": "reasoning",
            "id": "rs",
            "encrypted_content": "e",
            "summary": [
                {"type": "summary_text", "text": "one "},
                {"type": "summary_text", "text": "two"},
            ],
            "content": [{"type": "reasoning_text", "text": "three"}],
        },
        {
            "type": "message",
            "id": "msg",
            "role": "assistant",
            "status": "incomplete",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [{"type": "x", "url": "u"}]},
                {"type": "output_text", "text": "b", "annotations": []},
                {"type": "refusal", "refusal": "c"},
            ],
        },
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{ }"},
        {"type": "web_search_call", "id": "ws", "n": 1.5},
        {"type": "image_generation_call", "id": "ig", "result": "AAAA", "status": "completed"},
    ]
    events = decode(*(done(number, **item) for number, item in enumerate(items)), COMPLETED)
    stored = msgspec.json.decode(msgspec.json.encode(collected(events)), type=Message)
    assert body_and_losses(request(stored))[0]["input"] == items


def test_numbers_stay_as_they_were_spelled():
    data = b'{"model":"m","input":[{"type":"new","n":1.10}],"tools":[{"type":"t","n":2.50}],"x":1}'
    asked = DIALECT.decode_request(data)
    assert DIALECT.encode_request(asked).http.body == data
    again = replace(asked, model="n")
    assert DIALECT.encode_request(again).http.body == data.replace(b'"m"', b'"n"')
    assert json.loads(DIALECT.encode_request(asked).http.body)["input"][0]["n"] == 1.1
