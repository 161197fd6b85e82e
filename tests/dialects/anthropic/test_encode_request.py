"""Requests that were made elsewhere, written in this format."""

import json
from typing import Any

import pytest

from tests.dialects.anthropic.exchange import (
    NAME,
    body,
    body_and_losses,
    request,
    seal,
)
from toolwire.dialects.anthropic import DIALECT
from toolwire.dialects.quirks import Quirks
from toolwire.messages import (
    CacheMark,
    CallKind,
    Citation,
    Kept,
    Media,
    MediaKind,
    Message,
    Origin,
    Outcome,
    Refusal,
    Seal,
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

HI = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
TOOL = ToolSpec(name="f", parameters={"type": "object", "properties": {}})
ANSWER = {"type": "object", "properties": {}, "additionalProperties": False}
OTHER = ToolSpec(name="g", parameters={"type": "object", "properties": {}})


def user(*parts: Any) -> Message:
    return Message(role="user", parts=parts)


def assistant(*parts: Any) -> Message:
    return Message(role="assistant", parts=parts)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_plain_request_names_what_the_vendor_requires() -> None:
    encoded = DIALECT.encode_request(request())
    assert encoded.http.path == "/v1/messages"
    assert ("anthropic-version", "2023-06-01") in encoded.http.headers
    assert body(request()) == {"model": "m", "max_tokens": 8192, "messages": HI}


def test_the_default_of_max_tokens_is_the_providers() -> None:
    assert body(request(), Quirks(default_max_tokens=5))["max_tokens"] == 5
    assert body(request(max_output_tokens=7))["max_tokens"] == 7


def test_leading_system_messages_go_to_the_system_member() -> None:
    first = Message(role="system", parts=(Text("b"),))
    found = body(request(first, user(Text("hi")), system=(Text("a"),)))
    assert found["system"] == [text("a"), text("b")]
    assert found["messages"] == HI


def test_a_later_system_message_becomes_the_users_words() -> None:
    later = Message(role="system", parts=(Text("b"),))
    found, losses = body_and_losses(request(user(Text("hi")), later))
    assert found["messages"] == [{"role": "user", "content": [text("hi"), text("b")]}]
    assert losses == ["messages[1]"]


def test_a_later_system_message_stays_where_the_model_takes_it() -> None:
    later = Message(role="system", parts=(Text("b"),))
    found = body(request(user(Text("hi")), later), Quirks(system_in_messages=True))
    assert found["messages"][1] == {"role": "system", "content": [text("b")]}


def test_all_results_of_a_turn_stand_first_in_one_user_message() -> None:
    calls = [ToolCall(id=key, name="f", arguments="{}") for key in "ab"]
    results = [ToolResult(call_id=key, parts=(Text(key),)) for key in "ab"]
    talk = (
        user(Text("hi")),
        assistant(*calls),
        user(results[0]),
        user(Text("and?"), results[1]),
    )
    assert body(request(*talk))["messages"][2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [text("a")]},
            {"type": "tool_result", "tool_use_id": "b", "content": [text("b")]},
            text("and?"),
        ],
    }


def test_empty_texts_and_turns_are_left_out() -> None:
    talk = (user(Text("hi"), Text("")), assistant(Text("")), user(Text("ho")))
    assert body(request(*talk))["messages"] == [
        {"role": "user", "content": [text("hi"), text("ho")]}
    ]


def test_a_conversation_that_the_assistant_begins_gets_a_user_turn() -> None:
    found, losses = body_and_losses(request(assistant(Text("hello")), user(Text("hi"))))
    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "user"]
    assert losses == ["messages[0]"]


def test_a_request_without_turns_gets_one() -> None:
    built = ModelRequest(model="m", messages=(), system=(Text("a"),))
    found, losses = body_and_losses(built)
    assert [message["role"] for message in found["messages"]] == ["user"]
    assert losses == ["messages"]


def test_the_beginning_of_an_answer_stays_without_its_last_space() -> None:
    found, losses = body_and_losses(request(user(Text("hi")), assistant(Text("So: "))))
    assert found["messages"][1] == {"role": "assistant", "content": [text("So:")]}
    assert losses == ["messages"]


def test_only_thinking_signed_by_this_vendor_is_sent() -> None:
    foreign = Seal(origin=Origin("gemini"), data='{"thoughtSignature":"x"}')
    thoughts = (
        Thinking("mine", seal(signature="s")),
        Thinking("", seal(type="redacted_thinking", data="d")),
        Thinking("unsigned"),
        Thinking("foreign", foreign),
    )
    found, losses = body_and_losses(request(user(Text("hi")), assistant(*thoughts, Text("ok"))))
    assert found["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "mine", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        text("ok"),
    ]
    assert sorted(losses) == [
        "messages[1].parts[2]",
        "messages[1].parts[3]",
        "messages[1].parts[3]",
    ]


def test_what_only_others_understand_is_left_out_and_reported() -> None:
    cited = Citation(dialect="gemini", data="{}", url="u")
    parts = (
        Text("hi", (cited,), kept=Kept(dialect="gemini", fields='{"x":1}')),
        ServerBlock(origin=Origin("gemini"), kind="x", data="{}"),
    )
    found, losses = body_and_losses(
        request(user(*parts), tools=(ServerTool(dialect="gemini", kind="x", data="{}"),))
    )
    assert found["messages"] == HI
    assert sorted(losses) == [
        "messages[0].parts[0].citations[0]",
        "messages[0].parts[0].x",
        "messages[0].parts[1]",
        "tools[0]",
    ]


def test_results_carry_images_and_errors() -> None:
    image = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AA==")
    result = ToolResult(call_id="a", parts=(image,), is_error=True)
    talk = (user(Text("hi")), assistant(ToolCall(id="a", name="f")), user(result))
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    assert body(request(*talk))["messages"][1:] == [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "image", "source": source}],
                    "is_error": True,
                }
            ],
        },
    ]


def test_an_error_without_words_is_given_one() -> None:
    result = ToolResult(call_id="a", is_error=True, outcome=Outcome.DENIED)
    talk = (user(Text("hi")), assistant(ToolCall(id="a", name="f")), user(result))
    assert body(request(*talk))["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "denied", "is_error": True}
    ]


@pytest.mark.parametrize(
    "media",
    [
        Media(kind=MediaKind.AUDIO, mime="audio/mpeg", base64="AA=="),
        Media(kind=MediaKind.VIDEO, url="https://example.org/a.mp4"),
        Media(kind=MediaKind.IMAGE, mime="image/svg+xml", base64="AA=="),
        Media(kind=MediaKind.IMAGE, url="gs://bucket/a.png"),
        Media(kind=MediaKind.DOCUMENT, mime="application/zip", base64="AA=="),
        Media(kind=MediaKind.DOCUMENT, mime="text/plain", base64="not base64"),
    ],
)
def test_media_the_vendor_does_not_take_leave_a_note(media: Media) -> None:
    found, losses = body_and_losses(request(user(media)))
    (block,) = found["messages"][0]["content"]
    assert block["type"] == "text"
    assert block["text"].startswith(f"[{media.kind}")
    assert losses == ["messages[0].parts[0]"]


def test_a_file_of_another_vendor_leaves_a_note() -> None:
    media = Media(kind=MediaKind.IMAGE, file_id="file-1")
    built = request(user(media))
    foreign = request(user(media), kept=Kept(dialect="openai-responses"))
    source = {"type": "file", "file_id": "file-1"}
    assert body(built)["messages"][0]["content"] == [{"type": "image", "source": source}]
    assert body_and_losses(foreign)[1] == ["messages[0].parts[0]"]


def test_images_of_the_assistant_leave_a_note() -> None:
    image = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AA==")
    found, losses = body_and_losses(request(user(Text("hi")), assistant(image)))
    assert found["messages"][1]["content"] == [text("[image image/png]")]
    assert losses == ["messages[1].parts[0]"]


def test_a_refusal_is_sent_as_text() -> None:
    found, losses = body_and_losses(request(user(Text("hi")), assistant(Refusal("no"))))
    assert found["messages"][1]["content"] == [text("no")]
    assert losses == ["messages[1].parts[0]"]


def test_arguments_that_are_not_an_object_are_wrapped() -> None:
    call = ToolCall(id="a", name="f", arguments='{"x":', complete=False)
    found, losses = body_and_losses(request(user(Text("hi")), assistant(call)))
    (block,) = found["messages"][1]["content"]
    assert block["input"] == {"_invalid_arguments": '{"x":'}
    assert losses == ["messages[1].parts[0].arguments"]


def test_names_the_vendor_refuses_are_aliased_both_ways() -> None:
    tool = ToolSpec(name="a.b", parameters={"type": "object"}, namespace="n")
    call = ToolCall(id="a", name="a.b", namespace="n")
    built = request(
        user(Text("hi")),
        assistant(call),
        tools=(tool,),
        tool_choice=ToolChoice(mode="required", names=("a.b",)),
    )
    encoded = DIALECT.encode_request(built)
    sent = body_and_losses(built)[0]["tools"][0]["name"]
    assert encoded.names.original(sent).name == "a.b"
    assert encoded.names.original(sent).namespace == "n"
    assert body_and_losses(built)[0]["messages"][1]["content"][0]["name"] == sent


def test_freeform_tools_become_functions_of_one_string() -> None:
    call = ToolCall(id="a", name="patch", arguments="*** Begin", kind=CallKind.FREEFORM)
    built = request(user(Text("hi")), assistant(call), tools=(FreeformTool(name="patch"),))
    found, losses = body_and_losses(built)
    assert found["tools"][0]["input_schema"]["required"] == ["input"]
    assert found["messages"][1]["content"][0]["input"] == {"input": "*** Begin"}
    assert losses == ["tools[0]"]


@pytest.mark.parametrize(
    ("schema", "sent", "losses"),
    [
        ({}, {"type": "object", "properties": {}}, []),
        (
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
            [],
        ),
        (
            {"type": "string"},
            {
                "type": "object",
                "properties": {"value": {"type": "string"}},
                "required": ["value"],
            },
            ["tools[0].parameters"],
        ),
    ],
)
def test_a_schema_is_an_object_at_its_root(
    schema: dict[str, Any], sent: dict[str, Any], losses: list[str]
) -> None:
    found, lost = body_and_losses(request(tools=(ToolSpec(name="f", parameters=schema),)))
    assert found["tools"] == [{"name": "f", "input_schema": sent}]
    assert lost == losses


def test_strict_is_sent_where_the_provider_takes_it() -> None:
    built = request(tools=(ToolSpec(name="f", strict=True),))
    assert body(built, Quirks(strict_tools=True))["tools"][0]["strict"] is True
    assert body_and_losses(built)[1] == ["tools[0].strict"]


CHOICES: list[tuple[dict[str, Any], dict[str, Any] | None, list[str]]] = [
    ({"tool_choice": ToolChoice()}, {"type": "auto"}, []),
    ({"tool_choice": ToolChoice(mode="none")}, {"type": "none"}, []),
    ({"tool_choice": ToolChoice(mode="required")}, {"type": "any"}, []),
    (
        {"tool_choice": ToolChoice(mode="required", names=("f",)), "parallel_calls": False},
        {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        [],
    ),
    ({"parallel_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}, []),
    (
        {"tool_choice": ToolChoice(mode="none"), "parallel_calls": False},
        {"type": "none"},
        ["parallel_calls"],
    ),
    (
        {"tool_choice": ToolChoice(mode="required"), "reasoning": Reasoning(enabled=True)},
        {"type": "auto"},
        ["tool_choice"],
    ),
    (
        {"tool_choice": ToolChoice(mode="required"), "reasoning": Reasoning(enabled=False)},
        {"type": "any"},
        [],
    ),
    ({"tool_choice": ToolChoice(mode="required"), "tools": ()}, None, ["tool_choice"]),
]


@pytest.mark.parametrize(("members", "sent", "losses"), CHOICES)
def test_each_tool_choice_has_its_form(
    members: dict[str, Any], sent: dict[str, Any] | None, losses: list[str]
) -> None:
    found, lost = body_and_losses(request(**{"tools": (TOOL, OTHER), **members}))
    assert found.get("tool_choice") == sent
    assert lost == losses


def test_a_subset_of_tools_is_all_that_is_offered() -> None:
    choice = ToolChoice(mode="auto", names=("g",))
    found, losses = body_and_losses(request(tools=(TOOL, OTHER), tool_choice=choice))
    assert [tool["name"] for tool in found["tools"]] == ["g"]
    assert losses == ["tool_choice", "tools[0]"]


ADAPTIVE = {"type": "adaptive"}
OFF = {"type": "disabled"}
THINKING: list[tuple[Reasoning, int | None, dict[str, Any], list[str]]] = [
    (Reasoning(), None, {}, []),
    (Reasoning(enabled=True), None, {"thinking": ADAPTIVE}, []),
    (Reasoning(enabled=False), None, {"thinking": OFF}, []),
    (Reasoning(budget=-1), None, {"thinking": ADAPTIVE}, []),
    (Reasoning(budget=0), None, {"thinking": OFF}, ["reasoning.budget"]),
    (Reasoning(effort=Effort.NONE), None, {"thinking": OFF}, ["reasoning.effort"]),
    (
        Reasoning(effort=Effort.HIGH, visible=False),
        None,
        {"thinking": ADAPTIVE | {"display": "omitted"}, "output_config": {"effort": "high"}},
        [],
    ),
    (
        Reasoning(effort=Effort.MINIMAL),
        None,
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["reasoning.effort"],
    ),
    (
        Reasoning(budget=2000),
        None,
        {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 10192},
        [],
    ),
    (
        Reasoning(budget=32000),
        8000,
        {"thinking": {"type": "enabled", "budget_tokens": 7999}},
        ["reasoning.budget"],
    ),
    (
        Reasoning(budget=10),
        8000,
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        ["reasoning.budget"],
    ),
    (Reasoning(budget=2000), 1000, {}, ["reasoning.budget"]),
]


@pytest.mark.parametrize(("reasoning", "most", "sent", "losses"), THINKING)
def test_thinking_is_asked_for_in_a_way_the_vendor_takes(
    reasoning: Reasoning, most: int | None, sent: dict[str, Any], losses: list[str]
) -> None:
    found, lost = body_and_losses(request(reasoning=reasoning, max_output_tokens=most))
    usual = {"model": "m", "max_tokens": most or 8192, "messages": HI}
    assert found == usual | sent
    assert lost == losses


def test_models_without_adaptive_thinking_get_a_budget() -> None:
    built = request(reasoning=Reasoning(effort=Effort.LOW))
    found, losses = body_and_losses(built, Quirks(adaptive_thinking=False))
    assert found["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert found["max_tokens"] == 8192 + 2048
    assert losses == ["reasoning.effort"]


def test_a_budget_is_not_asked_for_inside_a_turn_begun_without_signed_thinking() -> None:
    call, result = ToolCall(id="a", name="f"), ToolResult(call_id="a", parts=(Text("x"),))
    talk = (user(Text("hi")), assistant(call), user(result))
    found, losses = body_and_losses(request(*talk, reasoning=Reasoning(budget=2000)))
    assert found["thinking"] == {"type": "disabled"}
    assert losses == ["reasoning"]


@pytest.mark.parametrize(
    ("members", "sent", "losses"),
    [
        ({"temperature": 0.5, "top_k": 3}, {"temperature": 0.5, "top_k": 3}, []),
        ({"temperature": 1.5}, {"temperature": 1}, ["temperature"]),
        ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5}, ["top_p"]),
        ({"top_p": 0.9}, {"top_p": 0.9}, []),
        ({"stop": ("a", " ")}, {"stop_sequences": ["a"]}, ["stop"]),
        ({"stream": True}, {"stream": True}, []),
        (
            {"seed": 1, "frequency_penalty": 0.1, "presence_penalty": 0.1},
            {},
            ["seed", "frequency_penalty", "presence_penalty"],
        ),
        ({"previous_response_id": "r"}, {}, ["previous_response_id"]),
        ({"output": OutputFormat(kind="json")}, {}, ["output"]),
        (
            {"output": OutputFormat(kind="json_schema", schema=ANSWER, name="n")},
            {"output_config": {"format": {"type": "json_schema", "schema": ANSWER}}},
            ["output.name"],
        ),
        (
            {"output": OutputFormat(kind="json_schema", schema={"type": "object"}, name="n")},
            {},
            ["output"],
        ),
    ],
)
def test_settings_are_sent_or_reported(
    members: dict[str, Any], sent: dict[str, Any], losses: list[str]
) -> None:
    found, lost = body_and_losses(request(**members))
    assert found == {"model": "m", "max_tokens": 8192, "messages": HI} | sent
    assert lost == losses


def test_sampling_is_left_out_beside_thinking_and_where_the_model_takes_none() -> None:
    thinking = request(temperature=0.5, reasoning=Reasoning(enabled=True))
    assert body_and_losses(thinking)[1] == ["temperature"]
    plain = request(temperature=0.5, top_p=0.5, top_k=5)
    assert body_and_losses(plain, Quirks(sampling=False))[1] == ["temperature", "top_p", "top_k"]


def test_cache_marks_are_sent_up_to_the_vendors_limit() -> None:
    marked = [Text(word, cache=CacheMark()) for word in "abcd"]
    tool = ToolSpec(name="f", parameters={"type": "object"}, cache=CacheMark("1h"))
    built = request(user(*marked), system=(Text("s", cache=CacheMark()),), tools=(tool,))
    found, losses = body_and_losses(built)
    assert found["tools"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert found["system"][0]["cache_control"] == {"type": "ephemeral"}
    marked_texts = [
        block["text"] for block in found["messages"][0]["content"] if "cache_control" in block
    ]
    assert marked_texts == ["c", "d"]
    assert losses == ["messages[0].parts[0].cache", "messages[0].parts[1].cache"]


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert body(request(user(Text("a\ud800b"))))["messages"][0]["content"] == [text("a\ufffdb")]


def test_members_kept_from_this_vendors_answers_go_back() -> None:
    call = ToolCall(
        id="a",
        name="f",
        arguments="{}",
        kept=Kept(dialect=NAME, fields='{"caller":{"type":"direct"}}'),
    )
    found = body(request(user(Text("hi")), assistant(call)))
    assert found["messages"][1]["content"][0]["caller"] == {"type": "direct"}


def test_thinking_that_the_vendor_would_refuse_is_disabled_for_a_client_of_the_format_too():
    body = {
        "model": "m",
        "max_tokens": 9000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}],
            },
        ],
    }
    request = DIALECT.decode_request(json.dumps(body).encode())
    encoded = DIALECT.encode_request(request)
    assert json.loads(encoded.http.body)["thinking"] == {"type": "disabled"}
    assert [loss.path for loss in encoded.losses] == ["reasoning"]
