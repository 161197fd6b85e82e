"""Requests of this format, sent to servers that take less, or changed on their way."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.dialects.anthropic.exchange import NAME, Json
from toolwire.dialects.anthropic import DIALECT
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.history import repair
from toolwire.messages import CacheMark, Message, Origin, Text
from toolwire.request import ModelRequest, ToolSpec
from toolwire.wire.names import NameRule

HI = {"role": "user", "content": "hi"}
TOOL = {"name": "f", "input_schema": {"type": "object"}, "type": "custom", "strict": False}
BASE: Json = {"model": "m", "max_tokens": 9000, "messages": [HI], "odd": {"a": 1}}


def decoded(**members: Any) -> ModelRequest:
    return DIALECT.decode_request(json.dumps(BASE | members).encode())


def sent(request: ModelRequest, quirks: Quirks = DEFAULT) -> tuple[Json, list[str]]:
    encoded = DIALECT.encode_request(request, quirks)
    return json.loads(encoded.http.body), [loss.path for loss in encoded.losses]


FORCED = {"tools": [TOOL], "tool_choice": {"type": "any"}}
NAMED = {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}}
ONLY_AUTO = Quirks(tool_choices=frozenset({"auto"}))
BUDGET = Quirks(adaptive_thinking=False)
FIXED = {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}}
QUIRKS: list[tuple[Quirks, Json, Json, list[str]]] = [
    (Quirks(sampling=False), {"temperature": 0, "top_k": 3}, {}, ["temperature", "top_k"]),
    (
        BUDGET,
        {"thinking": {"type": "adaptive"}},
        {"thinking": {"type": "enabled", "budget_tokens": 8192}},
        ["reasoning.budget"],
    ),
    (
        BUDGET,
        {"output_config": {"effort": "low", "task_budget": 1}},
        {
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "output_config": {"task_budget": 1},
        },
        ["reasoning.effort"],
    ),
    (BUDGET, FIXED, FIXED, []),
    (BUDGET, {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}, []),
    (ONLY_AUTO, FORCED, {"tools": [TOOL], "tool_choice": {"type": "auto"}}, ["tool_choice"]),
    (ONLY_AUTO, NAMED, {"tools": [TOOL], "tool_choice": {"type": "auto"}}, ["tool_choice"]),
    (Quirks(tool_choices=frozenset({"required"})), FORCED, FORCED, []),
    (Quirks(default_max_tokens=5, strict_tools=True), NAMED, NAMED, []),
]


@pytest.mark.parametrize(("quirks", "given", "members", "losses"), QUIRKS)
def test_a_quirk_decides_on_its_members_and_no_others(
    quirks: Quirks, given: Json, members: Json, losses: list[str]
) -> None:
    assert sent(decoded(**given), quirks) == (BASE | members, losses)


def test_names_the_server_refuses_are_replaced_everywhere() -> None:
    call = {"type": "tool_use", "id": "a", "name": "a.b", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": False}
    talk = [HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    request = decoded(
        messages=talk,
        tools=[{"name": "a.b", "input_schema": {"type": "object", "properties": {}}}],
        tool_choice={"type": "tool", "name": "a.b"},
    )
    body, losses = sent(request, Quirks(name_rule=NameRule(limit=32)))
    name = body["tools"][0]["name"]
    assert NameRule(limit=32).accepts(name)
    assert body["tool_choice"] == {"type": "tool", "name": name}
    assert body["messages"] == [
        talk[0],
        {"role": "assistant", "content": [call | {"name": name}]},
        talk[2],
    ]
    assert losses == []


def test_a_message_that_is_added_leaves_the_others_as_they_were() -> None:
    talk = [HI, {"role": "assistant", "content": [{"type": "text", "text": "ho", "odd": 1}]}]
    request = decoded(messages=talk)
    more = Message(role="user", parts=(Text("and?"),))
    body, _ = sent(replace(request, messages=(*request.messages, more)))
    assert body["messages"] == [
        *talk,
        {"role": "user", "content": [{"type": "text", "text": "and?"}]},
    ]


def test_a_message_that_is_added_joins_its_neighbour_of_the_same_role() -> None:
    request = decoded(messages=[HI])
    more = Message(role="user", parts=(Text("and?"),))
    body, _ = sent(replace(request, messages=(*request.messages, more)))
    texts = [{"type": "text", "text": text} for text in ("hi", "and?")]
    assert body["messages"] == [{"role": "user", "content": texts}]


SEARCH = {
    "type": "search_result",
    "source": "https://example.org",
    "title": "t",
    "content": [{"type": "text", "text": "found"}],
}
DOCUMENT = {"type": "document", "source": {"type": "content", "content": "x"}, "title": "t"}


@pytest.mark.parametrize("block", [SEARCH, DOCUMENT], ids=["search result", "document"])
def test_a_block_that_is_changed_keeps_the_members_we_do_not_model(block: Json) -> None:
    request = decoded(messages=[{"role": "user", "content": [block]}])
    (message,) = request.messages
    marked = tuple(replace(part, cache=CacheMark()) for part in message.parts)
    body, losses = sent(replace(request, messages=(replace(message, parts=marked),)))
    assert body["messages"][0]["content"] == [block | {"cache_control": {"type": "ephemeral"}}]
    assert losses == []


def test_a_tool_that_is_added_leaves_the_others_as_they_were() -> None:
    request = decoded(tools=[TOOL])
    added = ToolSpec(name="g", parameters={})
    body, _ = sent(replace(request, tools=(*request.tools, added)))
    assert body["tools"] == [
        TOOL,
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]


def test_a_choice_goes_with_the_tools() -> None:
    body, losses = sent(replace(decoded(**FORCED), tools=()))
    assert body == BASE
    assert losses == ["tool_choice"]


@pytest.mark.parametrize(
    ("field", "value", "members"),
    [
        ("temperature", 0.5, {"temperature": 0.5}),
        ("max_output_tokens", None, {}),
        ("system", (Text("b"),), {"system": [{"type": "text", "text": "b"}]}),
        ("stop", ("x",), {"stop_sequences": ["x"]}),
        ("stream", True, {"stream": True}),
    ],
)
def test_a_field_that_is_changed_is_encoded_and_the_rest_stays(
    field: str, value: Any, members: Json
) -> None:
    request = decoded(system="a", temperature=None, top_p=0.5, top_k=None)
    expected = BASE | {"system": "a", "temperature": None, "top_p": 0.5, "top_k": None}
    if field == "max_output_tokens":
        del expected["max_tokens"]
    assert sent(replace(request, **{field: value}))[0] == expected | members


def test_a_conversation_that_needs_no_repair_goes_out_as_it_came() -> None:
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": False}
    talk = [HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    request = decoded(messages=talk)
    repaired = repair(request.messages, Origin(NAME, "anthropic", "m"), DIALECT.history)
    assert sent(replace(request, messages=repaired.messages)) == (BASE | {"messages": talk}, [])
