import pytest

from tests.acceptance import check
from tests.dialects.openai_responses.exchange import (
    NAME,
    ORIGIN,
    Json,
    again,
    body,
    body_and_losses,
    kept,
    read,
    request,
    seal,
)
from toolwire.dialects.openai_responses import DIALECT
from toolwire.dialects.quirks import Quirks
from toolwire.errors import BadInput
from toolwire.messages import (
    CacheMark,
    CallKind,
    Citation,
    Kept,
    Media,
    MediaKind,
    Message,
    Origin,
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
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)

DEFAULTS: Json = {"model": "m", "store": False}
ENCRYPTED = Quirks(encrypted_reasoning=True)
HI = [{"role": "user", "content": "hi"}]
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string"}}}

INPUTS: list[object] = [
    None,
    "hi",
    "",
    [],
    [{"role": "user", "content": "hi"}],
    [{"type": "message", "role": "user", "content": ""}],
    [{"type": "message", "role": "developer", "content": []}],
    [{"role": "system", "content": None}],
    [{"type": "message", "role": "user", "status": "completed", "id": "msg_u", "content": "a"}],
    [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "x"}},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_image", "image_url": "https://e.org/a.png", "detail": "low"},
                {"type": "input_image", "file_id": "file_1", "image_url": None},
                {"type": "input_image", "image_url": {"url": "chat style"}},
                {"type": "input_file", "file_data": "data:application/pdf;base64,AA"},
                {"type": "input_file", "file_data": "AAAA", "filename": "a.pdf"},
                {"type": "input_file", "file_data": "data:text/plain,hello"},
                {"type": "input_file", "file_url": "https://e.org/a.pdf"},
                {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                {"type": "input_audio", "input_audio": {"data": "AA", "format": "pcm"}},
                {"type": "input_new", "x": 1},
                {"type": "input_text", "text": None},
            ],
        }
    ],
    [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": None},
        {
            "type": "reasoning",
            "id": "rs_2",
            "content": [{"type": "reasoning_text", "text": "a"}],
            "summary": [
                {"type": "summary_text", "text": ""},
                {"type": "summary_text", "text": "b"},
            ],
            "status": None,
        },
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s", "more": 1}]},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [
                {
                    "type": "output_text",
                    "text": "a",
                    "annotations": [{"type": "url_citation", "url": "u", "start_index": 0}],
                    "logprobs": [{"token": "a", "logprob": -1.5}],
                },
                {"type": "output_text", "text": "b", "annotations": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"type": "message", "role": "assistant", "content": [], "new": {"a": [1]}},
        {"role": "assistant", "content": "plain", "phase": None},
        {"role": "assistant", "content": [{"type": "input_text", "text": "odd"}]},
        {"role": "assistant", "content": [{"type": "output_audio", "data": "AA"}]},
        {"role": "assistant"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "d",
            "name": "g",
            "namespace": "mcp__x",
            "arguments": "",
            "status": "incomplete",
            "caller": {"type": "program", "caller_id": "p"},
        },
        {"type": "function_call", "name": "no id", "arguments": {"a": 1}},
        {"type": "custom_tool_call", "call_id": "e", "name": "p", "input": "text", "id": "ctc"},
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        {"type": "image_generation_call", "id": "ig", "result": "AAAA", "status": "completed"},
        {"type": "image_generation_call", "id": "ig"},
        {"id": "msg_2"},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
        {"type": "function_call_output", "call_id": "d", "output": ""},
        {
            "type": "function_call_output",
            "call_id": "d",
            "id": "fco",
            "status": "completed",
            "output": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA"},
            ],
            "caller": {"type": "direct"},
        },
        {"type": "function_call_output", "call_id": "d", "output": []},
        {"type": "function_call_output", "call_id": "d", "output": {"a": 1}},
        {"type": "function_call_output", "output": None},
        {"type": "custom_tool_call_output", "call_id": "e", "output": "ok"},
        {"type": "apply_patch_call_output", "call_id": "x", "status": "completed"},
        {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        {"type": "shell_call_output", "call_id": "x", "output": []},
        {"type": "shell_call_output", "id": "so", "call_id": "x", "output": []},
        {"type": "item_reference", "id": "rs_9"},
        {"type": "compaction", "id": "cmp", "encrypted_content": "z"},
        {"type": "brand_new", "n": 1.10},
        {"role": "critic", "content": "hm"},
    ],
]


@pytest.mark.parametrize("given", INPUTS)
def test_input_comes_back_as_it_was(given: object) -> None:
    assert again({"model": "m", "input": given}) == {"model": "m", "input": given}


MEMBERS: list[Json] = [
    {},
    {"instructions": None},
    {"instructions": ""},
    {"instructions": "be brief", "tools": [], "tool_choice": "auto"},
    {"tools": None, "tool_choice": None},
    {"text": {}},
    {"text": None},
    {"text": {"verbosity": "low"}},
    {"text": {"format": {"type": "text"}, "verbosity": None}},
    {"text": {"format": {"type": "json_object"}}},
    {"text": {"format": {"type": "grammar", "x": 1}}},
    {
        "text": {
            "format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "description": "d"}
        }
    },
    {"text": {"format": {"type": "json_schema", "strict": None}}},
    {"reasoning": {}},
    {"reasoning": {"effort": "high", "summary": "detailed", "context": "auto"}},
    {"reasoning": {"effort": "none"}},
    {"reasoning": {"effort": None, "summary": None}},
    {"reasoning": {"effort": "unknown"}},
    {"max_output_tokens": 5, "temperature": 0, "top_p": 1.0, "stream": True},
    {"max_output_tokens": None, "parallel_tool_calls": False, "previous_response_id": "resp_1"},
    {"store": True, "metadata": {"a": "b"}, "truncation": "auto", "client_metadata": {"x": {}}},
    {"tool_choice": "required"},
    {"tool_choice": "unknown"},
    {"tool_choice": {"type": "function", "name": "f"}},
    {"tool_choice": {"type": "custom", "name": "p", "more": 1}},
    {"tool_choice": {"type": "mcp", "server_label": "s", "name": None}},
    {"tool_choice": {"type": "web_search"}},
    {
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "f"}],
        }
    },
    {
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "custom", "name": "p"}, {"type": "mcp", "server_label": "s"}],
        }
    },
    {
        "tools": [
            {"type": "function", "name": "a b", "parameters": SCHEMA, "strict": True},
            {"type": "function", "name": "f", "parameters": None, "description": ""},
            {"type": "function", "name": "g", "strict": None, "defer_loading": True},
            {"type": "function"},
            {"type": "custom", "name": "p", "format": {"type": "text"}},
            {
                "type": "custom",
                "name": "q",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
            },
            {"type": "web_search", "user_location": {"city": "Rome", "lat": 1.50}},
            {
                "type": "namespace",
                "name": "mcp__x",
                "description": "X",
                "tools": [
                    {"type": "function", "name": "r", "parameters": SCHEMA, "strict": False},
                    {"type": "custom", "name": "s"},
                ],
            },
            {
                "type": "namespace",
                "name": "mcp__x",
                "tools": [{"type": "function", "name": "r", "parameters": {}}],
            },
            {"type": "namespace", "name": "n", "description": "d", "tools": []},
            {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "mcp"}]},
        ]
    },
]


@pytest.mark.parametrize("members", MEMBERS)
def test_settings_and_tools_come_back_as_they_were(members: Json) -> None:
    assert again({"model": "m", "input": "hi", **members}) == {
        "model": "m",
        "input": "hi",
        **members,
    }


def test_items_of_one_side_make_one_message():
    found = read(
        input=[
            {"role": "user", "content": "go"},
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"},
            {"role": "assistant", "content": "on it"},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "id": "fc"},
            {"type": "custom_tool_call", "call_id": "b", "name": "p", "input": "x"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": "2"},
            {"role": "user", "content": "thanks"},
        ]
    )
    assert found.messages == (
        Message(role="user", parts=(Text("go"),)),
        Message(
            role="assistant",
            parts=(
                Thinking("", seal(id="rs", encrypted_content="e")),
                Text("on it"),
                ToolCall(id="a", name="f", arguments="{}", seal=seal(id="fc")),
                ToolCall(id="b", name="p", arguments="x", kind=CallKind.FREEFORM),
            ),
        ),
        Message(
            role="user",
            parts=(
                ToolResult(call_id="a", name="f", parts=(Text("1"),)),
                ToolResult(call_id="b", name="p", parts=(Text("2"),), kind=CallKind.FREEFORM),
            ),
        ),
        Message(role="user", parts=(Text("thanks"),)),
    )


def test_outputs_of_the_clients_own_tools_are_in_a_user_message():
    item = {"type": "apply_patch_call_output", "call_id": "x", "status": "completed"}
    found = read(input=[{"type": "apply_patch_call", "call_id": "x"}, item])
    assert [message.role for message in found.messages] == ["assistant", "user"]


def test_a_namespace_becomes_tools_that_know_it():
    inner = {"type": "function", "name": "r", "parameters": SCHEMA}
    space = {"type": "namespace", "name": "mcp__x", "description": "X", "tools": [inner]}
    assert read(input="hi", tools=[space]).tools == (
        ToolSpec(
            name="r",
            parameters=SCHEMA,
            namespace="mcp__x",
            kept=kept(**{"item.description": "X"}),
        ),
    )


def test_an_agents_request_is_stateless_and_carries_its_reasoning():
    asked = request(
        Message(role="user", parts=(Text("hi"),)),
        Message(
            role="assistant",
            parts=(
                Thinking("hm", seal(id="rs", encrypted_content="e")),
                ToolCall(id="c", name="f", arguments='{"a":1}', seal=seal(id="fc")),
            ),
        ),
        Message(role="user", parts=(ToolResult(call_id="c", parts=(Text("1"),)),)),
        system=(Text("Be"), Text("brief")),
        tools=(ToolSpec(name="f", description="d"), FreeformTool(name="p")),
        tool_choice=ToolChoice(mode="required"),
        parallel_calls=False,
        max_output_tokens=90,
        temperature=0.5,
        top_p=0.9,
        reasoning=Reasoning(effort=Effort.LOW, visible=True),
        output=OutputFormat(kind="json_schema", schema=SCHEMA),
        stream=True,
        previous_response_id="resp_0",
    )
    found = body(asked, ENCRYPTED)
    check(NAME, found)
    assert found == {
        **DEFAULTS,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be\n\nbrief",
        "input": [
            *HI,
            {
                "type": "reasoning",
                "id": "rs",
                "encrypted_content": "e",
                "summary": [{"type": "summary_text", "text": "hm"}],
            },
            {
                "type": "function_call",
                "id": "fc",
                "call_id": "c",
                "name": "f",
                "arguments": '{"a":1}',
            },
            {"type": "function_call_output", "call_id": "c", "output": "1"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": "d",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
            {"type": "custom", "name": "p"},
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_output_tokens": 90,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "schema": SCHEMA, "name": "answer"}},
        "stream": True,
        "previous_response_id": "resp_0",
    }


def test_a_server_that_stores_is_asked_for_no_encrypted_reasoning():
    assert body(request(), Quirks(store=True)) == {"model": "m", "input": HI}


def test_media_is_native_in_messages_and_results():
    image = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
    file = Media(kind=MediaKind.DOCUMENT, mime="application/pdf", base64="BBBB")
    picture = {
        "type": "input_image",
        "image_url": "data:image/png;base64,AAAA",
        "detail": "auto",
    }
    paper = {
        "type": "input_file",
        "file_data": "data:application/pdf;base64,BBBB",
        "filename": "document.pdf",
    }
    asked = request(
        Message(role="user", parts=(Text("see"), image)),
        Message(role="assistant", parts=(ToolCall(id="c", name="f"),)),
        Message(role="user", parts=(ToolResult(call_id="c", parts=(image, file)), Text("ok"))),
    )
    found = body(asked)
    check(NAME, found)
    assert found["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "see"}, picture]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [picture, paper]},
        {"role": "user", "content": "ok"},
    ]


def test_what_this_format_cannot_carry_is_reported():
    foreign = Origin("anthropic-messages")
    asked = request(
        Message(
            role="user",
            parts=(
                Text("hi", cache=CacheMark()),
                Media(kind=MediaKind.AUDIO, mime="audio/wav", base64="AA"),
                Media(kind=MediaKind.IMAGE, file_id="file_of_another"),
            ),
        ),
        Message(
            role="assistant",
            parts=(
                Thinking("hm", Seal(origin=foreign, data='{"signature":"s"}')),
                Text("a", (Citation(dialect="gemini", data="{}", url="u"),)),
                Refusal("no"),
                ServerBlock(origin=foreign, kind="server_tool_use", data="{}"),
                ToolCall(id="c", name="f", arguments="[1"),
            ),
        ),
        Message(role="user", parts=(ToolResult(call_id="c", is_error=True),)),
        tools=(ToolSpec(name="f"), ServerTool(dialect="gemini", kind="googleSearch", data="{}")),
        top_k=3,
        seed=1,
        stop=("x",),
        frequency_penalty=0.1,
        presence_penalty=0.1,
        reasoning=Reasoning(budget=4000),
        kept=Kept(dialect="anthropic-messages", fields='{"metadata":{"user_id":"u"}}'),
    )
    found, losses = body_and_losses(asked)
    check(NAME, found)
    texts = ["hi", "[audio audio/wav]", "[image]"]
    assert found["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "no"},
        {
            "type": "function_call",
            "call_id": "c",
            "name": "f",
            "arguments": '{"_invalid_arguments":"[1"}',
        },
        {"type": "function_call_output", "call_id": "c", "output": ""},
    ]
    assert found["reasoning"] == {"effort": "medium"}
    assert sorted(losses) == sorted(
        [
            "metadata",
            "messages[0].parts[0].cache",
            "messages[0].parts[1]",
            "messages[0].parts[2]",
            "messages[1].parts[0]",
            "messages[1].parts[0]",
            "messages[1].parts[1].citations[0]",
            "messages[1].parts[2].refusal",
            "messages[1].parts[3]",
            "messages[1].parts[4].arguments",
            "messages[2].parts[0].is_error",
            "tools[1]",
            "top_k",
            "seed",
            "stop",
            "frequency_penalty",
            "presence_penalty",
            "reasoning.budget",
        ]
    )


def test_ids_that_we_made_up_are_not_sent_to_the_vendor():
    item = {"type": "reasoning", "id": "rs_tw1_0", "summary": [], "encrypted_content": "e"}
    assert again({"model": "m", "input": [item]})["input"] == [
        {"type": "reasoning", "summary": [], "encrypted_content": "e"}
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(), "auto"),
        (ToolChoice(mode="none"), "none"),
        (ToolChoice(mode="required", names=("f",)), {"type": "function", "name": "f"}),
        (ToolChoice(mode="required", names=("p",)), {"type": "custom", "name": "p"}),
        (
            ToolChoice(mode="auto", names=("f", "p")),
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "p"}],
            },
        ),
    ],
)
def test_a_choice_of_tools(choice: ToolChoice, expected: object) -> None:
    tools = (ToolSpec(name="f"), FreeformTool(name="p"))
    found = body(request(tools=tools, tool_choice=choice))
    check(NAME, found)
    assert found["tool_choice"] == expected


def test_a_choice_that_the_server_does_not_take_is_left_to_it():
    asked = request(tools=(ToolSpec(name="f"),), tool_choice=ToolChoice(mode="required"))
    found, losses = body_and_losses(asked, Quirks(tool_choices=frozenset({"auto"})))
    assert (found["tool_choice"], losses) == ("auto", ["tool_choice"])


def test_names_that_do_not_fit_are_aliased_everywhere():
    asked = request(
        Message(role="assistant", parts=(ToolCall(id="c", name="a.b"),)),
        Message(role="user", parts=(ToolResult(call_id="c", name="a.b"),)),
        tools=(ToolSpec(name="a.b"), ToolSpec(name="r", namespace="mcp")),
        tool_choice=ToolChoice(mode="required", names=("a.b",)),
    )
    encoded = DIALECT.encode_request(asked)
    found = body(asked)
    alias = encoded.names.wire_name("a.b")
    assert alias != "a.b"
    assert found["tools"][0]["name"] == alias
    assert found["tools"][1]["name"] == "mcp"
    assert found["tools"][1]["tools"][0]["name"] == "r"
    assert found["input"][0]["name"] == alias
    assert found["tool_choice"]["name"] == alias
    check(NAME, found)


def test_half_surrogate_pairs_are_replaced_before_sending():
    assert body(request(Message(role="user", parts=(Text("a\ud800b"),))))["input"] == [
        {"role": "user", "content": "a\ufffdb"}
    ]


def test_an_answer_goes_back_as_the_items_it_came_in():
    parts = (
        Text("a", seal=seal(id="msg_1", phase="commentary")),
        Text("b", seal=seal(id="msg_2")),
        ServerBlock(origin=ORIGIN, kind="web_search_call", data='{"id":"ws","n":1.10}'),
    )
    encoded = DIALECT.encode_request(request(Message(role="assistant", parts=parts)))
    assert b'{"id":"ws","n":1.10}' in encoded.http.body
    content = {"type": "output_text", "annotations": []}
    assert body(request(Message(role="assistant", parts=parts)))["input"][:2] == [
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "phase": "commentary",
            "content": [{**content, "text": "a"}],
        },
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_2",
            "status": "completed",
            "content": [{**content, "text": "b"}],
        },
    ]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b"\xff", b'{"model":3}', b'{"input":[3]}', b'{"tools":["x"]}', b"[" * 5000],
)
def test_a_body_that_is_not_a_request_is_bad_input(body: bytes) -> None:
    with pytest.raises(BadInput):
        DIALECT.decode_request(body)


@pytest.mark.parametrize("limit", [-1, 0, 1, 15])
def test_a_limit_that_the_vendor_refuses_is_raised_and_reported(limit: int):
    asked = request(max_output_tokens=limit)
    assert body_and_losses(asked) == (
        DEFAULTS | {"input": HI, "max_output_tokens": 16},
        ["max_output_tokens"],
    )
    assert body(request(max_output_tokens=16))["max_output_tokens"] == 16


def test_a_limit_of_a_client_of_this_format_is_its_own():
    sent = {"model": "m", "input": "hi", "max_output_tokens": 5}
    assert again(sent) == sent


@pytest.mark.parametrize(
    ("quirks", "requested"),
    [
        (Quirks(), False),
        (Quirks(encrypted_reasoning=False), False),
        (ENCRYPTED, True),
        (Quirks(encrypted_reasoning=True, store=True), False),
    ],
)
def test_encrypted_reasoning_is_requested_only_of_models_that_reason(
    quirks: Quirks, requested: bool
):
    assert ("include" in body(request(), quirks)) is requested


@pytest.mark.parametrize(
    ("members", "quirks", "sent"),
    [
        ({"encrypted_content": "e"}, Quirks(), True),
        ({"summary": []}, Quirks(), False),
        ({}, Quirks(), False),
        ({"content": [2]}, Quirks(), True),
        ({}, Quirks(store=True), True),
    ],
)
def test_reasoning_that_the_server_cannot_know_is_left_out(
    members: Json, quirks: Quirks, sent: bool
):
    thought = Thinking("hm", seal(id="rs", **members))
    asked = request(Message(role="assistant", parts=(thought, Text("a"))))
    found, losses = body_and_losses(asked, quirks)
    assert [item.get("type") for item in found["input"]] == (
        ["reasoning", None] if sent else [None]
    )
    assert losses == ([] if sent else ["messages[0].parts[0]"])
