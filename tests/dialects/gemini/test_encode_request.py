"""Requests that no Gemini client wrote."""

import json

from tests.dialects.gemini.exchange import (
    FROM_HERE,
    body_and_losses,
    chunk,
    collected,
    decode,
    model,
    request,
    seal,
    user,
)
from toolwire.dialects.gemini import DIALECT
from toolwire.dialects.quirks import Quirks
from toolwire.messages import (
    CacheMark,
    CallKind,
    Citation,
    Media,
    MediaKind,
    Message,
    Origin,
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

IMAGE = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
WIRE_IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def result(call_id: str, *parts: Text | Media, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=call_id, parts=parts, is_error=is_error)


def test_a_turn_with_calls_and_answers() -> None:
    calls = [
        ToolCall(id="1", name="f", arguments='{"a":1.50}', seal=seal("s")),
        ToolCall(id="2", name="g"),
    ]
    answers = [result("2", Text("no"), is_error=True), result("1", Text("yes"))]
    body, losses = body_and_losses(request(user("hi"), model("ok", *calls), user("and", *answers)))
    assert losses == []
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"text": "ok"},
                {
                    "functionCall": {"id": "1", "name": "f", "args": {"a": 1.5}},
                    "thoughtSignature": "s",
                },
                {"functionCall": {"name": "g", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "1", "name": "f", "response": {"output": "yes"}}},
                {"functionResponse": {"name": "g", "response": {"error": "no"}}},
                {"text": "and"},
            ],
        },
    ]


def test_ids_go_back_only_to_the_family_that_issued_them() -> None:
    calls = [
        ToolCall(id="ours", name="f", kept=FROM_HERE),
        ToolCall(id="made", name="f", made_id=True, kept=FROM_HERE),
        ToolCall(id="toolu_1", name="f"),
    ]
    asked = request(user("hi"), model(*calls), user(*[result(call.id) for call in calls]))
    for quirks, wanted in (
        (Quirks(), ["ours", None, None]),
        (Quirks(send_made_ids=True), ["ours", "made", "toolu_1"]),
    ):
        body, _ = body_and_losses(asked, quirks)
        turns = [body["contents"][1]["parts"], body["contents"][2]["parts"]]
        assert [part["functionCall"].get("id") for part in turns[0]] == wanted
        assert [part["functionResponse"].get("id") for part in turns[1]] == wanted


def test_neighbours_of_one_role_are_one_content() -> None:
    body, _ = body_and_losses(request(user("a"), user("b"), model("c"), model("d"), model("")))
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}, {"text": "d"}]},
    ]


def test_leading_system_messages_are_instructions_and_later_ones_the_users_words() -> None:
    def system(text: str) -> Message:
        return Message(role="system", parts=(Text(text),))

    body, losses = body_and_losses(
        request(system("b"), user("hi"), system("c"), system=(Text("a"),))
    )
    assert body == {
        "systemInstruction": {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}, {"text": "c"}]}],
    }
    assert losses == ["messages[2]"]


def test_media_of_results_is_inside_the_response_or_beside_it() -> None:
    call = ToolCall(id="1", name="f", kept=FROM_HERE)
    asked = request(user("hi"), model(call), user(result("1", Text("see"), IMAGE)))
    answer = {"id": "1", "name": "f", "response": {"output": "see"}}
    body, _ = body_and_losses(asked)
    assert body["contents"][2]["parts"] == [{"functionResponse": answer}, WIRE_IMAGE]
    body, _ = body_and_losses(asked, Quirks(media_in_results=True))
    assert body["contents"][2]["parts"] == [{"functionResponse": {**answer, "parts": [WIRE_IMAGE]}}]


def test_media_of_an_answer_goes_back_without_a_guess_of_its_type() -> None:
    part = {"fileData": {"fileUri": "https://a.example/x"}}
    (media,) = collected(decode(chunk(part, finish="STOP"))).parts
    body, _ = body_and_losses(request(user("hi"), model(media)))
    assert body["contents"][1]["parts"] == [part]
    elsewhere = Media(kind=MediaKind.VIDEO, url="https://a.example/x")
    body, _ = body_and_losses(request(user(elsewhere)))
    assert body["contents"][0]["parts"] == [
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.example/x"}}
    ]


def test_what_follows_a_result_is_written_behind_it() -> None:
    calls = [ToolCall(id=id, name="f", kept=FROM_HERE) for id in "12"]
    beside = user(result("1"), "a", IMAGE, result("2"), "b")
    mixed = user(result("2"), "b", result("1"), "a", IMAGE)
    spoken = user("c", result("1"), "d", result("2"))
    kinds = {"1": "result 1", "2": "result 2"}

    def written(*answers: Message) -> list[str]:
        body, _ = body_and_losses(request(user("hi"), model(*calls), *answers))
        return [
            kinds[part["functionResponse"]["id"]]
            if "functionResponse" in part
            else part.get("text", "image")
            for part in body["contents"][2]["parts"]
        ]

    assert written(beside) == ["result 1", "a", "image", "result 2", "b"]
    assert written(mixed) == ["result 1", "a", "image", "result 2", "b"]
    assert written(mixed, user("and")) == ["result 1", "a", "image", "result 2", "b", "and"]
    assert written(spoken) == ["result 1", "result 2", "c", "d"]
    swapped = user(result("2"), result("1"), "go on")
    assert written(swapped) == ["result 1", "result 2", "go on"]
    assert written(swapped, user("and")) == ["result 1", "result 2", "go on", "and"]
    assert written(user(result("2")), user(result("1"), "go on"))[2:] == ["go on"]


def test_the_first_unsigned_call_of_each_step_gets_the_sentinel() -> None:
    calls = [ToolCall(id="1", name="f"), ToolCall(id="2", name="f")]
    signed = ToolCall(id="3", name="f", seal=seal("s"))
    asked = request(
        user("hi"), model(*calls), user(result("1"), result("2")), model(signed), user(result("3"))
    )
    body, _ = body_and_losses(asked, Quirks(signature_sentinel="skip"))
    signatures = [
        part.get("thoughtSignature")
        for content in body["contents"]
        for part in content["parts"]
        if "functionCall" in part
    ]
    assert signatures == ["skip", None, "s"]


def test_tools_choice_and_schemas() -> None:
    tools = (
        ToolSpec(name="f", description="d", parameters=SCHEMA),
        ToolSpec(name="nothing"),
        ToolSpec(name="9 lives", namespace="cats"),
    )
    asked = request(user("hi"), tools=tools, tool_choice=ToolChoice(mode="auto", names=("f",)))
    encoded = DIALECT.encode_request(asked)
    body = json.loads(encoded.http.body)
    declared = body["tools"][0]["functionDeclarations"]
    assert declared[:2] == [
        {"name": "f", "description": "d", "parametersJsonSchema": SCHEMA},
        {"name": "nothing"},
    ]
    original = encoded.names.original(declared[2]["name"])
    assert (original.name, original.namespace) == ("9 lives", "cats")
    assert body["toolConfig"] == {
        "functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}
    }
    body, _ = body_and_losses(asked, Quirks(gemini_schema="openapi"))
    assert body["tools"][0]["functionDeclarations"][0]["parameters"] == SCHEMA


def test_freeform_tools_become_functions_of_one_string() -> None:
    call = ToolCall(id="1", name="patch", arguments="*** Begin", kind=CallKind.FREEFORM)
    body, losses = body_and_losses(
        request(user("hi"), model(call), tools=(FreeformTool(name="patch", description="d"),))
    )
    assert body["contents"][1]["parts"] == [
        {"functionCall": {"name": "patch", "args": {"input": "*** Begin"}}}
    ]
    declared = body["tools"][0]["functionDeclarations"][0]
    assert declared["parametersJsonSchema"]["required"] == ["input"]
    assert losses == ["tools[0]"]


def test_what_gemini_cannot_carry_is_reported() -> None:
    foreign = Origin("anthropic-messages")
    citation = Citation(dialect="anthropic-messages", data="{}", url="https://a.example")
    asked = request(
        user(
            Text("a", citations=(citation,), cache=CacheMark()),
            Media(kind=MediaKind.IMAGE, mime="image/png", file_id="file_1"),
        ),
        model(
            Thinking("hm", seal=Seal(origin=foreign, data='{"signature":"x"}')),
            ServerBlock(origin=foreign, kind="web_search", data="{}"),
        ),
        tools=(
            ServerTool(dialect="anthropic-messages", kind="bash", data="{}"),
            ToolSpec(name="f", strict=True, cache=CacheMark()),
        ),
        parallel_calls=False,
        previous_response_id="r",
    )
    body, losses = body_and_losses(asked)
    parts = [{"text": "a"}, {"text": "[image image/png]"}]
    assert body["contents"] == [{"role": "user", "parts": parts}]
    assert sorted(losses) == [
        "messages[0].parts[0].cache",
        "messages[0].parts[0].citations[0]",
        "messages[0].parts[1]",
        "messages[1].parts[0]",
        "messages[1].parts[1]",
        "parallel_calls",
        "previous_response_id",
        "tools[0]",
        "tools[1].cache",
        "tools[1].strict",
    ]


def thinking(reasoning: Reasoning, quirks: Quirks | None = None) -> tuple[object, list[str]]:
    body, losses = body_and_losses(request(user("hi"), reasoning=reasoning), quirks or Quirks())
    return body["generationConfig"]["thinkingConfig"], losses


def test_thinking_is_a_level_or_a_budget() -> None:
    assert thinking(Reasoning(effort=Effort.LOW)) == (
        {"thinkingLevel": "LOW", "includeThoughts": True},
        [],
    )
    assert thinking(Reasoning(effort=Effort.MAX, visible=False)) == (
        {"thinkingLevel": "HIGH", "includeThoughts": False},
        ["reasoning.effort"],
    )
    assert thinking(Reasoning(effort=Effort.LOW), Quirks(gemini_thinking="budget")) == (
        {"thinkingBudget": 2048, "includeThoughts": True},
        ["reasoning.effort"],
    )
    assert thinking(Reasoning(enabled=True, budget=99)) == (
        {"thinkingBudget": 99, "includeThoughts": True},
        [],
    )
    assert thinking(Reasoning(enabled=True)) == (
        {"thinkingBudget": -1, "includeThoughts": True},
        [],
    )
    assert thinking(Reasoning(enabled=False)) == ({"thinkingBudget": 0}, [])


def test_an_output_schema_is_a_json_schema() -> None:
    output = OutputFormat(kind="json_schema", schema=SCHEMA, name="thing")
    body, losses = body_and_losses(request(user("hi"), output=output))
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    }
    assert losses == ["output.name"]


def test_the_address_names_model_and_verb() -> None:
    plain = DIALECT.encode_request(request(user("hi"))).http
    assert (plain.path, plain.query) == ("/models/m:generateContent", ())
    stream = DIALECT.encode_request(request(user("hi"), stream=True)).http
    assert (stream.path, stream.query) == ("/models/m:streamGenerateContent", (("alt", "sse"),))
