"""A request that is read and written again is the same, however it was spelled."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.dialects.gemini.exchange import again
from toolwire.dialects.gemini import DIALECT
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import BadInput
from toolwire.history import repair
from toolwire.messages import (
    Media,
    MediaKind,
    Message,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import Effort, Reasoning, ServerTool, ToolChoice, ToolSpec
from toolwire.wire.names import NameRule

HI = [{"role": "user", "parts": [{"text": "hi"}]}]


def history(*parts: Any) -> dict[str, Any]:
    answer = {"role": "user", "parts": list(parts)}
    calls = [{"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "f"}}]
    return {"contents": [*HI, {"role": "model", "parts": calls}, answer]}


def contents(*parts: Any, **members: Any) -> dict[str, Any]:
    return {"contents": [{"parts": list(parts), **members}]}


@pytest.mark.parametrize(
    "body",
    [
        {"contents": HI},
        {"contents": "hi"},
        {"contents": ["hi", "there"]},
        {"contents": HI[0]},
        {"contents": []},
        {},
        {"contents": None, "tools": None, "generationConfig": None},
        {"contents": HI, "systemInstruction": "be brief"},
        {"contents": HI, "systemInstruction": {"parts": {"text": "be brief"}}},
        {"contents": HI, "systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}]}},
        {"contents": HI, "system_instruction": {"role": "user", "parts": [{"text": "a"}]}},
        {
            "contents": HI,
            "systemInstruction": {
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA"}}, {"text": "b"}],
                "odd": 1,
            },
        },
        {"contents": HI, "systemInstruction": {}},
        {
            "contents": [
                {"role": "function", "parts": []},
                {"parts": [{"text": "x"}]},
                {"role": None},
            ]
        },
        {"contents": [{"role": "model", "parts": {"text": "x"}, "odd": [1]}]},
        contents("just a string", role="user"),
        contents({"text": "a", "thought": False, "thoughtSignature": "s"}, role="model"),
        contents({"text": "a", "thought": True, "thought_signature": "s"}, role="model"),
        contents({"thoughtSignature": "s"}, {"thought": True, "thoughtSignature": "s"}, {}),
        contents({"inline_data": {"mime_type": "image/png", "data": "AA"}, "videoMetadata": {}}),
        contents({"inlineData": {"mimeType": "", "data": "AA", "displayName": "n"}}),
        contents({"inlineData": {"mimeType": "application/pdf", "data": "AA", "displayName": "n"}}),
        contents({"fileData": {"fileUri": "gs://b/f", "mimeType": "application/pdf"}}),
        contents(
            {"fileData": {"fileUri": "https://x.example/a"}}, {"file_data": {"file_uri": "x"}}
        ),
        contents({"executableCode": {"language": "PYTHON", "code": "1"}}, {"brandNew": [1, 2.50]}),
        contents(
            {"functionCall": {"id": "i", "name": "f", "args": {"a": 1}, "odd": 1}}, role="model"
        ),
        contents({"function_call": {"id": "", "name": "f", "args": None}, "odd": 2}, role="model"),
        contents({"functionCall": {"name": "f", "args": [1]}}, {"functionCall": {}}, role="model"),
        history({"functionResponse": {"name": "f", "response": {"output": "a"}}}),
        history({"functionResponse": {"id": "invented", "name": "f", "response": {"error": "a"}}}),
        history({"functionResponse": {"name": "f", "response": {"output": "a", "more": None}}}),
        history({"function_response": {"name": "f", "response": {"result": [1, {"a": 2}]}}}),
        history({"functionResponse": {"name": "f", "response": {}}}),
        history({"functionResponse": {"name": "f", "response": "text", "willContinue": True}}),
        history({"functionResponse": {"name": "f", "response": [1]}}, {"functionResponse": {}}),
        history(
            {
                "functionResponse": {
                    "name": "f",
                    "response": {"output": "see"},
                    "parts": [
                        {"inline_data": {"mime_type": "image/png", "data": "AA"}},
                        {"new": 1},
                    ],
                }
            },
            {"inlineData": {"mimeType": "image/png", "data": "BB"}},
        ),
        history({"functionResponse": {"name": "f", "response": {"output": "a"}, "parts": []}}),
        {"contents": HI, "tools": []},
        {"contents": HI, "tools": [{}, {"functionDeclarations": []}]},
        {"contents": HI, "tools": {"function_declarations": [{"name": "f", "description": None}]}},
        {
            "contents": HI,
            "tools": [
                {"googleSearch": {}, "functionDeclarations": [{"name": "a"}, {"name": "b"}]},
                {"url_context": {"x": 1}, "codeExecution": {}},
                {
                    "functionDeclarations": [
                        {"name": "c", "behavior": "BLOCKING", "description": ""}
                    ]
                },
            ],
        },
        {
            "contents": HI,
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "a", "parameters": {}},
                        {"name": "b", "parametersJsonSchema": {}},
                        {"name": "c", "parameters_json_schema": {"type": "object"}},
                        {
                            "name": "d",
                            "parameters": {
                                "type": "OBJECT",
                                "properties": {
                                    "type": {"type": 1, "nullable": True, "enum": ["x"]},
                                    "n": {"any_of": [{"type": "INTEGER"}], "nullable": True},
                                },
                                "propertyOrdering": ["type"],
                            },
                        },
                    ]
                }
            ],
        },
        {"contents": HI, "toolConfig": {}},
        {"contents": HI, "toolConfig": {"functionCallingConfig": {}}},
        {"contents": HI, "tool_config": {"function_calling_config": {"mode": "any"}}},
        {"contents": HI, "toolConfig": {"functionCallingConfig": {"mode": 3}, "odd": 1}},
        {
            "contents": HI,
            "toolConfig": {
                "functionCallingConfig": {
                    "mode": "VALIDATED",
                    "allowedFunctionNames": ["f g", "h"],
                    "streamFunctionCallArguments": True,
                },
                "includeServerSideToolInvocations": True,
            },
        },
        {"contents": HI, "toolConfig": {"functionCallingConfig": {"mode": "NEW"}}},
        {"contents": HI, "generationConfig": {}},
        {
            "contents": HI,
            "generation_config": {
                "temperature": 0,
                "top_p": 0.5,
                "topK": 40.0,
                "max_output_tokens": 5,
                "seed": None,
                "stop_sequences": ["x"],
                "candidateCount": 1,
                "thinking_config": {"include_thoughts": True, "thinkingBudget": -1, "odd": 1},
            },
        },
        {"contents": HI, "generationConfig": {"stopSequences": [], "temperature": "hot"}},
        {"contents": HI, "generationConfig": {"thinkingConfig": {}}},
        {"contents": HI, "generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}},
        {
            "contents": HI,
            "generationConfig": {"thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}},
        },
        {"contents": HI, "generationConfig": {"responseMimeType": "text/plain"}},
        {"contents": HI, "generationConfig": {"responseMimeType": "application/json"}},
        {"contents": HI, "generationConfig": {"responseJsonSchema": {"type": "object"}}},
        {
            "contents": HI,
            "generationConfig": {
                "response_mime_type": "text/x.enum",
                "response_schema": {"type": "STRING", "enum": ["a"]},
            },
        },
        {
            "contents": HI,
            "model": "models/gemini-2.5-pro",
            "safetySettings": [{"category": 7, "threshold": 4}],
            "cachedContent": "c",
            "labels": {"a": "b"},
            "odd": None,
        },
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_a_request_comes_back_as_it_was(body: dict[str, Any]) -> None:
    assert again(body) == body


def read(body: Any) -> Any:
    return DIALECT.decode_request(json.dumps(body).encode(), "m")


def test_parts_become_ours() -> None:
    message = read(
        contents(
            {"text": "a"},
            {"text": "b", "thought": True},
            {"inlineData": {"mimeType": "audio/wav", "data": "AA"}},
            {"fileData": {"fileUri": "https://x.example/v", "mimeType": "video/mp4"}},
            role="model",
        )
    ).messages[0]
    assert message.role == "assistant"
    assert message.parts == (
        Text("a"),
        Thinking("b"),
        Media(kind=MediaKind.AUDIO, mime="audio/wav", base64="AA=="),
        Media(kind=MediaKind.VIDEO, mime="video/mp4", url="https://x.example/v"),
    )


def test_answers_without_ids_are_paired_by_position_among_the_calls_of_their_name() -> None:
    calls = [{"functionCall": {"name": name}} for name in ("f", "g", "f")]
    answers = [
        {"functionResponse": {"name": name, "response": {"output": str(number)}}}
        for number, name in enumerate(("f", "f", "g"))
    ]
    request = read(
        {"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]}
    )
    assert [(call.id, call.made_id) for call in request.messages[0].calls] == [
        ("call_1", True),
        ("call_2", True),
        ("call_3", True),
    ]
    assert [result.call_id for result in request.messages[1].results] == [
        "call_1",
        "call_3",
        "call_2",
    ]


def test_an_id_the_client_invented_for_the_answer_is_not_trusted() -> None:
    body = history({"functionResponse": {"id": "f-1-2", "name": "f", "response": {"output": "a"}}})
    assert [result.call_id for result in read(body).messages[2].results] == ["call_1"]


def test_made_ids_avoid_the_ids_of_the_request() -> None:
    calls = [{"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "id": "call_1"}}]
    request = read({"contents": [{"role": "model", "parts": calls}]})
    assert [call.id for call in request.messages[0].calls] == ["call_2", "call_1"]


@pytest.mark.parametrize(
    ("response", "text", "is_error"),
    [
        ({"output": "x"}, "x", False),
        ({"error": "x"}, "x", True),
        ({"error": {"code": 1}}, '{"error":{"code":1}}', True),
        ({"result": 1}, '{"result":1}', False),
    ],
)
def test_a_response_becomes_its_text_and_whether_it_failed(
    response: Any, text: str, is_error: bool
) -> None:
    body = history({"functionResponse": {"name": "f", "response": response}})
    (result,) = read(body).messages[2].results
    assert isinstance(result, ToolResult)
    assert (result.text, result.is_error) == (text, is_error)


def test_an_openapi_schema_is_read_as_json_schema() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {"type": {"type": "STRING", "nullable": True, "min_length": "3"}},
        "required": ["type"],
    }
    body = {
        "contents": HI,
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
    }
    (tool,) = read(body).tools
    assert isinstance(tool, ToolSpec)
    assert tool.parameters == {
        "type": "object",
        "properties": {"type": {"type": ["string", "null"], "minLength": 3}},
        "required": ["type"],
    }


def test_settings_become_ours() -> None:
    request = read(
        {
            "contents": HI,
            "tools": [{"googleSearch": {}}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
            "generationConfig": {
                "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}
            },
        }
    )
    assert request.tools == (
        ServerTool(dialect="gemini", kind="googleSearch", data='{"googleSearch":{}}'),
    )
    assert request.tool_choice == ToolChoice(mode="required", names=("f",))
    assert request.reasoning == Reasoning(enabled=True, effort=Effort.LOW, visible=True)


def written(request: Any, quirks: Quirks = DEFAULT) -> dict[str, Any]:
    encoded = DIALECT.encode_request(request, quirks)
    assert encoded.losses == ()
    return json.loads(encoded.http.body)


def test_an_edited_request_is_written_with_the_edit_and_the_rest_as_it_was() -> None:
    question = {"parts": {"text": "hi"}, "odd": 1}
    body = {
        "contents": [
            question,
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}, "odd": 2}]},
        ],
        "generation_config": {"max_output_tokens": 5, "candidate_count": 1},
        "system_instruction": "be brief",
        "cached_content": "c",
    }
    request = read(body)
    call = request.messages[1].parts[0]
    assert isinstance(call, ToolCall)
    edited = replace(
        request,
        max_output_tokens=7,
        messages=(
            request.messages[0],
            replace(request.messages[1], parts=(replace(call, arguments='{"a":1}'),)),
            Message(role="user", parts=(ToolResult(call_id=call.id, parts=(Text("x"),)),)),
            Message(role="user", parts=(Text("and"),)),
        ),
    )
    assert written(edited) == {
        "contents": [
            question,
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}, "odd": 2}],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"output": "x"}}},
                    {"text": "and"},
                ],
            },
        ],
        "generationConfig": {"maxOutputTokens": 7, "candidate_count": 1},
        "system_instruction": "be brief",
        "cached_content": "c",
    }


def test_an_added_tool_leaves_the_schemas_of_the_others_as_they_were() -> None:
    openapi = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}
    json_schema = {"type": "object", "properties": {"a": {"not": {}}}}
    body = {
        "contents": HI,
        "tools": [
            {"googleSearch": {}},
            {"function_declarations": [{"name": "f", "parameters": openapi, "behavior": "X"}]},
            {"functionDeclarations": [{"name": "g h", "parametersJsonSchema": json_schema}]},
        ],
    }
    request = read(body)
    edited = replace(request, tools=(*request.tools, ToolSpec(name="new")))
    assert written(edited)["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "parameters": openapi, "behavior": "X"},
                {"name": "g h", "parametersJsonSchema": json_schema},
                {"name": "new"},
            ]
        },
        {"googleSearch": {}},
    ]


def test_a_repaired_request_is_still_written_as_it_was() -> None:
    answer = {"function_response": {"name": "f", "response": {"result": 1}}}
    body = {
        "contents": [
            {"parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"function_call": {"name": "f"}}]},
            {"role": "function", "parts": [answer]},
        ]
    }
    request = read(body)
    repaired = repair(request.messages, Origin("gemini"), DIALECT.history)
    assert written(replace(request, messages=repaired.messages)) == body


def test_what_a_quirk_concerns_is_written_for_the_server_and_the_rest_as_it_was() -> None:
    question = {"parts": {"text": "hi"}}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    body = {
        "contents": [
            question,
            {"role": "model", "parts": [{"function_call": {"name": "f.g"}}]},
            {"role": "function", "parts": [{"functionResponse": {"name": "f.g", "response": {}}}]},
        ],
        "tools": {
            "function_declarations": [{"name": "f.g", "parametersJsonSchema": schema, "odd": 1}]
        },
        "tool_config": {
            "function_calling_config": {"mode": "ANY", "allowed_function_names": ["f.g"]}
        },
        "generation_config": {
            "thinkingConfig": {"thinkingLevel": "low"},
            "responseJsonSchema": schema,
            "candidateCount": 1,
        },
        "safety_settings": [],
    }
    declared = {"name": "f_g", "parameters": schema, "odd": 1}
    quirks = Quirks(
        name_rule=NameRule(),
        gemini_schema="openapi",
        gemini_thinking="budget",
        signature_sentinel="skip",
        send_made_ids=True,
    )
    encoded = DIALECT.encode_request(read(body), quirks)
    sent = json.loads(encoded.http.body)
    alias = sent["contents"][1]["parts"][0]["functionCall"]["name"]
    assert encoded.names.original(alias).name == "f.g"
    declared["name"] = alias
    assert sent == {
        "contents": [
            question,
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"id": "call_1", "name": alias},
                        "thoughtSignature": "skip",
                    }
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "call_1", "name": alias, "response": {}}}],
            },
        ],
        "tools": [{"functionDeclarations": [declared]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [alias]}},
        "generationConfig": {
            "thinkingConfig": {"thinkingBudget": 2048},
            "responseMimeType": "application/json",
            "responseSchema": schema,
            "candidateCount": 1,
        },
        "safety_settings": [],
    }
    assert [loss.path for loss in encoded.losses] == ["reasoning.effort"]


@pytest.mark.parametrize(
    "body",
    ["[]", "nope", '{"contents": 1}', '{"contents": [1]}', '{"contents": [{"parts": [1]}]}'],
)
def test_a_body_that_is_not_a_request_is_bad_input(body: str) -> None:
    with pytest.raises(BadInput):
        DIALECT.decode_request(body.encode())


def test_a_bottomless_schema_is_bad_input() -> None:
    deep = '{"items":' * 700 + "{}" + "}" * 700
    tool = '{"functionDeclarations":[{"name":"f","parameters":' + deep + "}]}"
    with pytest.raises(BadInput):
        DIALECT.decode_request(f'{{"contents":[],"tools":[{tool}]}}'.encode())
