from typing import Any

import pytest

from tests.dialects.openai_chat.exchange import Json, ask, kept, losses, written
from toolwire.dialects.openai_chat import DIALECT
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
    Part,
    Refusal,
    ServerBlock,
    Text,
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

CALL = ToolCall(id="a", name="f", arguments="{}")
CALLED: Json = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
IMAGE = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AA")
SHOWN: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
HI: Json = {"role": "user", "content": "Hi"}
F = ToolSpec(name="f", parameters={"type": "object", "properties": {}})
G = ToolSpec(name="g")


def said(*parts: Part, role: Any = "assistant") -> ModelRequest:
    return ask(messages=(Message(role=role, parts=parts),))


def messages(request: ModelRequest, quirks: Quirks | None = None) -> list[Json]:
    return written(request, quirks or Quirks())["messages"]


def test_the_smallest_request_has_no_defaults_but_those_asked_for():
    assert written(ask()) == {"model": "m", "messages": [HI]}


def test_a_stream_asks_for_its_usage_where_the_server_knows_it():
    assert written(ask(stream=True))["stream_options"] == {"include_usage": True}
    assert "stream_options" not in written(ask(stream=True), Quirks(stream_usage=False))
    assert "stream_options" not in written(ask(stream=False))


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_length_limit_has_the_servers_name(field: Any):
    body = written(ask(max_output_tokens=5), Quirks(max_tokens_field=field))
    assert body == {"model": "m", "messages": [HI], field: 5}


def test_instructions_come_first_in_the_servers_role():
    request = ask(system=(Text("a"),))
    assert messages(request, Quirks(system_role="developer")) == [
        {"role": "developer", "content": "a"},
        HI,
    ]
    several = ask(system=(Text("a"), Text("b")))
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert messages(several)[0] == {"role": "system", "content": parts}


def test_results_are_tool_messages_and_their_media_follows_them_all():
    request = said(
        ToolResult(call_id="a", parts=(Text("one"), IMAGE)),
        ToolResult(call_id="b", parts=(IMAGE,)),
        Text("go on"),
        role="user",
    )
    assert messages(request) == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "The result is attached below."},
        {"role": "user", "content": [SHOWN, SHOWN, {"type": "text", "text": "go on"}]},
    ]
    assert losses(request) == ["messages[0].parts[0].parts[1]", "messages[0].parts[1].parts[0]"]


@pytest.mark.parametrize(
    ("parts", "content"), [((), "Error"), ((Text("no such file"),), "no such file")]
)
def test_an_error_flag_is_a_loss_and_never_an_empty_result(parts: Any, content: str):
    request = said(ToolResult(call_id="a", parts=parts, is_error=True), role="user")
    assert messages(request) == [{"role": "tool", "tool_call_id": "a", "content": content}]
    assert losses(request) == ["messages[0].parts[0].is_error"]


def test_mistral_gets_an_assistant_between_results_and_user():
    request = said(ToolResult(call_id="a", parts=(Text("r"),)), Text("t"), role="user")
    between = messages(request, Quirks(assistant_between_results_and_user=True))
    assert [message["role"] for message in between] == ["tool", "assistant", "user"]


def test_an_assistants_texts_are_one_string():
    assert messages(said(Text("a"), Text(""), Text("b"), CALL)) == [
        {"role": "assistant", "content": "ab", "tool_calls": [CALLED]}
    ]


def test_calls_without_text_have_no_content():
    assert messages(said(CALL)) == [{"role": "assistant", "content": None, "tool_calls": [CALLED]}]


def test_text_after_a_call_is_reported_as_out_of_order():
    assert losses(said(CALL, Text("a"))) == ["messages[0].parts[1]"]


def test_a_freeform_call_and_a_refusal_are_native():
    call = ToolCall(id="a", name="sql", arguments="SELECT", kind=CallKind.FREEFORM)
    entry = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}
    assert messages(said(Refusal("no"), call)) == [
        {"role": "assistant", "content": None, "refusal": "no", "tool_calls": [entry]}
    ]


def test_arguments_that_are_not_an_object_go_out_as_valid_json():
    broken = ToolCall(id="a", name="f", arguments='{"x"')
    (message,) = messages(said(broken))
    function = message["tool_calls"][0]["function"]
    assert function["arguments"] == '{"_invalid_arguments":"{\\"x\\""}'
    assert losses(said(broken)) == ["messages[0].parts[0].arguments"]


def test_an_assistant_who_only_said_what_was_lost_is_left_out():
    block = ServerBlock(origin=Origin("gemini"), kind="x", data="{}")
    request = ask(messages=(Message(role="assistant", parts=(block,)), *ask().messages))
    assert messages(request) == [HI]
    assert losses(request) == ["messages[0].parts[0]"]


def test_media_without_a_part_of_its_own_is_a_note():
    request = said(
        Text("t"),
        Media(kind=MediaKind.VIDEO, url="https://a/b"),
        Media(kind=MediaKind.AUDIO, mime="audio/ogg", base64="AA"),
        Media(kind=MediaKind.IMAGE, file_id="x"),
        Media(kind=MediaKind.DOCUMENT, url="https://a/b.pdf"),
        role="user",
    )
    notes = ["[video: https://a/b]", "[audio audio/ogg]", "[image]", "[document: https://a/b.pdf]"]
    content = [{"type": "text", "text": text} for text in ["t", *notes]]
    assert messages(request) == [{"role": "user", "content": content}]
    assert losses(request) == [f"messages[0].parts[{number}]" for number in (1, 2, 3, 4)]


def test_documents_are_files_and_plain_text_is_text():
    request = said(
        Media(kind=MediaKind.DOCUMENT, mime="application/pdf", base64="AA"),
        Media(kind=MediaKind.DOCUMENT, mime="text/plain", base64="aGk=", name="n"),
        role="user",
    )
    file = {"file_data": "data:application/pdf;base64,AA", "filename": "document.pdf"}
    assert messages(request)[0]["content"] == [
        {"type": "file", "file": file},
        {"type": "text", "text": "n\nhi"},
    ]


def test_cache_marks_go_where_they_are_read_and_are_reported_elsewhere():
    request = ask(
        messages=(Message(role="user", parts=(Text("t", cache=CacheMark("1h")),)),),
        tools=(ToolSpec(name="f", cache=CacheMark()),),
    )
    body = written(request, Quirks(cache_marks=True))
    marked = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert body["messages"][0]["content"] == [marked]
    assert body["tools"][0]["cache_control"] == {"type": "ephemeral"}
    assert losses(request) == ["messages[0].parts[0].cache", "tools[0].cache"]


def test_citations_and_foreign_things_are_reported_and_left_out():
    citation = Citation(dialect="gemini", data="{}")
    foreign = Kept(dialect="gemini", fields='{"x":1}')
    request = ask(
        messages=(Message(role="user", parts=(Text("t", (citation,), kept=foreign),)),),
        tools=(ServerTool(dialect="gemini", kind="googleSearch", data="{}"),),
        tool_choice=ToolChoice(mode="required"),
        kept=foreign,
    )
    assert written(request) == {"model": "m", "messages": [{"role": "user", "content": "t"}]}
    assert losses(request) == [
        "x",
        "messages[0].parts[0].x",
        "tools[0]",
        "messages[0].parts[0].citations",
        "tool_choice",
    ]


def test_tools_are_written_in_full():
    request = ask(
        tools=(
            ToolSpec(name="f", description="d", parameters={}, strict=True),
            FreeformTool(name="sql", description="d", syntax="lark", grammar="x"),
        )
    )
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}
    function = {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {}},
    }
    custom = {"name": "sql", "description": "d", "format": grammar}
    assert written(request)["tools"] == [
        {"type": "function", "function": function},
        {"type": "custom", "custom": custom},
    ]
    assert losses(request) == ["tools[0].strict"]


def test_strict_is_only_said_of_a_schema_that_is_strict():
    quirks = Quirks(strict_tools=True)
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    request = ask(tools=(ToolSpec(name="f", parameters=closed, strict=True),))
    function = {"name": "f", "parameters": closed, "strict": True}
    assert written(request, quirks)["tools"] == [{"type": "function", "function": function}]
    open_one = ask(tools=(ToolSpec(name="f", strict=True),))
    function = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    assert written(open_one, quirks)["tools"] == [{"type": "function", "function": function}]
    assert losses(open_one, quirks) == ["tools[0].strict"]


def test_a_mix_of_strict_tools_is_sent_without_where_the_server_rejects_it():
    request = ask(tools=(ToolSpec(name="f", strict=True), G))
    quirks = Quirks(strict_tools=True, strict_all_or_none=True)
    assert all("strict" not in tool["function"] for tool in written(request, quirks)["tools"])
    assert losses(request, quirks) == ["tools[0].strict"]


def named(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


ALL = ("f", "g")
CHOICES: list[tuple[ToolChoice, Quirks, Any, tuple[str, ...]]] = [
    (ToolChoice(), Quirks(), None, ALL),
    (ToolChoice(mode="none"), Quirks(), "none", ALL),
    (ToolChoice(mode="none"), Quirks(tool_choices=frozenset({"auto"})), None, ()),
    (ToolChoice(mode="required"), Quirks(), "required", ALL),
    (ToolChoice(mode="required"), Quirks(required_word="any"), "any", ALL),
    (ToolChoice(mode="required", names=("f",)), Quirks(), named("f"), ALL),
    (
        ToolChoice(mode="required", names=("f",)),
        Quirks(tool_choices=frozenset({"required"})),
        "required",
        ("f",),
    ),
    (
        ToolChoice(mode="auto", names=("g",)),
        Quirks(),
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named("g")]}},
        ALL,
    ),
    (ToolChoice(mode="auto", names=("g",)), Quirks(tool_choices=frozenset({"auto"})), None, ("g",)),
]


@pytest.mark.parametrize(("choice", "quirks", "wanted", "tools"), CHOICES)
def test_tool_choice_is_sent_in_the_servers_words(
    choice: ToolChoice, quirks: Quirks, wanted: Any, tools: tuple[str, ...]
):
    request = ask(tools=(F, G), tool_choice=choice)
    body = written(request, quirks)
    assert body.get("tool_choice") == wanted
    assert tuple(tool["function"]["name"] for tool in body.get("tools", ())) == tools
    assert losses(request, quirks) == []


def test_a_forced_choice_no_server_word_can_say_is_reported():
    request = ask(tools=(F,), tool_choice=ToolChoice(mode="required"))
    quirks = Quirks(tool_choices=frozenset({"auto"}))
    assert "tool_choice" not in written(request, quirks)
    assert losses(request, quirks) == ["tool_choice"]


def test_the_parallel_switch_goes_only_with_tools_and_to_servers_that_know_it():
    request = ask(tools=(F,), parallel_calls=False)
    assert written(request)["parallel_tool_calls"] is False
    assert losses(request, Quirks(parallel_flag=False)) == ["parallel_calls"]
    assert "parallel_tool_calls" not in written(ask(parallel_calls=True))


def test_names_a_server_would_reject_are_sent_as_aliases_everywhere():
    request = ask(
        tools=(ToolSpec(name="math.add"), ToolSpec(name="read", namespace="mcp")),
        messages=(
            Message(role="assistant", parts=(ToolCall(id="a", name="math.add", arguments="{}"),)),
        ),
        tool_choice=ToolChoice(mode="required", names=("math.add",)),
    )
    encoded = DIALECT.encode_request(request)
    body = written(request)
    alias = body["tools"][0]["function"]["name"]
    assert encoded.names.original(alias).name == "math.add"
    assert encoded.names.original("mcp__read").namespace == "mcp"
    assert body["tools"][1]["function"]["name"] == "mcp__read"
    assert body["messages"][0]["tool_calls"][0]["function"]["name"] == alias
    assert body["tool_choice"] == named(alias)
    assert encoded.losses == ()


REASONINGS: list[tuple[Reasoning, str | None, list[str]]] = [
    (Reasoning(effort=Effort.HIGH), "high", []),
    (Reasoning(enabled=False), "none", ["reasoning.enabled"]),
    (Reasoning(budget=2048), "low", ["reasoning.budget"]),
    (Reasoning(budget=-1), None, ["reasoning.budget"]),
    (Reasoning(enabled=True), None, ["reasoning.enabled"]),
    (Reasoning(effort=Effort.LOW, visible=True), "low", ["reasoning.visible"]),
]


@pytest.mark.parametrize(("reasoning", "effort", "lost"), REASONINGS)
def test_thinking_is_asked_for_by_effort(reasoning: Reasoning, effort: str | None, lost: list[str]):
    request = ask(reasoning=reasoning)
    assert written(request).get("reasoning_effort") == effort
    assert losses(request) == lost


def test_settings_a_model_rejects_are_reported():
    request = ask(temperature=0.5, top_p=0.5, top_k=3, previous_response_id="r")
    assert losses(request, Quirks(sampling=False)) == [
        "temperature",
        "top_p",
        "top_k",
        "previous_response_id",
    ]


def test_an_output_schema_always_has_a_name():
    request = ask(output=OutputFormat(kind="json_schema", schema={"type": "object"}))
    assert written(request)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": {"type": "object"}},
    }


def test_members_that_no_value_carries_go_back_to_their_object():
    image = Media(kind=MediaKind.IMAGE, url="u", kept=kept(x=1, **{"/detail": "low"}))
    request = ask(
        messages=(Message(role="user", parts=(image,), kept=kept(name="n")),),
        tools=(ToolSpec(name="f", kept=kept(x=1, **{"/y": 2, "/strict": None})),),
        kept=kept(user="u"),
    )
    shown = {"type": "image_url", "image_url": {"url": "u", "detail": "low"}, "x": 1}
    function = {"name": "f", "y": 2, "parameters": {"type": "object", "properties": {}}}
    assert written(request) == {
        "model": "m",
        "messages": [{"role": "user", "content": [shown], "name": "n"}],
        "tools": [{"type": "function", "x": 1, "function": function}],
        "user": "u",
    }


def test_half_a_surrogate_pair_is_replaced():
    (message,) = messages(said(Text("a\ud800b"), role="user"))
    assert message["content"] == "a\ufffdb"
