"""Hard cases on their way to Gemini, and Gemini's own on their way back and elsewhere."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.dialects.gemini.exchange import chunk, collected, decode
from toolwire import dialects
from toolwire.codec import translate
from toolwire.dialects.quirks import Quirks
from toolwire.messages import Message, Text
from toolwire.request import Loss, ModelRequest

OTHERS = ("openai-chat", "openai-responses", "anthropic-messages")
GOOGLE = ("gemini", "code-assist")


def convert(
    body: dict[str, Any], source: str, target: str, quirks: Quirks | None = None
) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """The request of a target's body, out of its envelope."""
    quirks = quirks or Quirks()
    made = translate(json.dumps(body).encode(), source, target, model="m", quirks=quirks)
    sent = json.loads(made.http.body)
    return sent["request"] if target == "code-assist" else sent, made.losses


def calls(*ids: str) -> list[dict[str, Any]]:
    return [
        {"id": one, "type": "function", "function": {"name": f"f{one}", "arguments": "{}"}}
        for one in ids
    ]


SWAPPED_CHAT = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "tool_calls": calls("1", "2")},
    {"role": "tool", "tool_call_id": "2", "content": "two"},
    {"role": "tool", "tool_call_id": "1", "content": "one"},
    {"role": "user", "content": "go on"},
]
SWAPPED_ANTHROPIC = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": one, "name": f"f{one}", "input": {}} for one in ("1", "2")
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "2", "content": "two"},
            {"type": "tool_result", "tool_use_id": "1", "content": "one"},
            {"type": "text", "text": "go on"},
        ],
    },
]


@pytest.mark.parametrize("target", GOOGLE)
@pytest.mark.parametrize(
    ("source", "messages"),
    [("openai-chat", SWAPPED_CHAT), ("anthropic-messages", SWAPPED_ANTHROPIC)],
)
def test_the_users_words_stay_behind_results_in_another_order(
    source: str, messages: list[Any], target: str
) -> None:
    body, _ = convert({"model": "m", "max_tokens": 9, "messages": messages}, source, target)
    parts = body["contents"][2]["parts"]
    names = [part.get("functionResponse", {}).get("name") or part["text"] for part in parts]
    assert names == ["f1", "f2", "go on"]


@pytest.mark.parametrize("args", [{}, {"args": {}}, {"args": {"a": 1}}])
def test_a_call_goes_back_with_the_arguments_that_it_came_with(args: dict[str, Any]) -> None:
    part = {"functionCall": {"name": "f", **args}}
    reply = collected(decode(chunk(part, finish="STOP")))
    request = ModelRequest(model="m", messages=(Message(role="user", parts=(Text("hi"),)), reply))
    for name in GOOGLE:
        sent = json.loads(dialects.get(name).encode_request(request).http.body)
        assert sent.get("request", sent)["contents"][1]["parts"] == [part]


@pytest.mark.parametrize("args", [{}, {"args": {}}])
def test_a_call_of_a_request_keeps_its_missing_arguments_when_written_anew(
    args: dict[str, Any],
) -> None:
    call = {"functionCall": {"name": "f", **args}}
    asked = {"role": "user", "parts": [{"text": "hi"}]}
    body = {"contents": [asked, {"role": "model", "parts": [call]}]}
    decoded = dialects.get("gemini").decode_request(json.dumps(body).encode(), "m")
    changed = replace(
        decoded, messages=tuple(replace(one, parts=one.parts) for one in decoded.messages)
    )
    sent = json.loads(dialects.get("gemini").encode_request(changed).http.body)
    assert sent["contents"][1]["parts"] == [call]
    for target in OTHERS:
        assert "null" not in json.dumps(convert(body, "gemini", target)[0]["model"])


@pytest.mark.parametrize("mode", ["VALIDATED", "validated", 4, "SOMETHING_NEW"])
@pytest.mark.parametrize("target", OTHERS)
def test_a_mode_that_only_gemini_has_is_reported(mode: str | int, target: str) -> None:
    tools = [{"functionDeclarations": [{"name": "f"}]}]
    config = {"functionCallingConfig": {"mode": mode}}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    body = {"contents": contents, "tools": tools, "toolConfig": config}
    sent, losses = convert(body, "gemini", target)
    assert Loss("tool_choice.mode", "mode", "only gemini has it") in losses
    assert sent.get("tool_choice", "auto") in ("auto", {"type": "auto"})


@pytest.mark.parametrize("mode", ["VALIDATED", 4])
def test_google_keeps_the_validated_mode(mode: str | int) -> None:
    tools = [{"functionDeclarations": [{"name": "f.g"}]}]
    config = {"functionCallingConfig": {"mode": mode}}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    body = {"contents": contents, "tools": tools, "toolConfig": config}
    for quirks in (Quirks(), Quirks(gemini_thinking="budget")):
        sent, losses = convert(body, "gemini", "code-assist", quirks)
        assert sent["toolConfig"]["functionCallingConfig"]["mode"] in ("VALIDATED", mode)
        assert losses == ()


def test_an_unspecified_mode_is_nothing_to_report() -> None:
    config = {"functionCallingConfig": {"mode": "MODE_UNSPECIFIED"}}
    body = {
        "contents": [{"parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "toolConfig": config,
    }
    assert convert(body, "gemini", "openai-chat")[1] == ()


FILE_RESULT = {
    "model": "m",
    "input": [
        {"type": "message", "role": "user", "content": "read"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_file", "file_id": "file-1"}],
        },
    ],
}


def test_a_result_that_is_a_file_of_another_vendor_says_so() -> None:
    body, losses = convert(FILE_RESULT, "openai-responses", "gemini")
    response = body["contents"][2]["parts"][0]["functionResponse"]["response"]
    assert response == {"output": "[document]"}
    why = "only the vendor that stores it can read it; replaced by a note"
    assert Loss("messages[2].parts[0].parts[0]", "stored file", why) in losses
    body, losses = convert(FILE_RESULT, "openai-responses", "anthropic-messages")
    assert body["messages"][2]["content"][0]["content"] == [{"type": "text", "text": "[document]"}]
    assert any("replaced by a note" in loss.why for loss in losses)


@pytest.mark.parametrize("target", GOOGLE)
def test_a_message_that_is_a_file_of_another_vendor_is_a_note(target: str) -> None:
    content = [{"type": "input_image", "file_id": "file-1"}]
    message = {"type": "message", "role": "user", "content": content}
    body, _ = convert({"model": "m", "input": [message]}, "openai-responses", target)
    assert body["contents"] == [{"role": "user", "parts": [{"text": "[image]"}]}]


@pytest.mark.parametrize("target", [*GOOGLE, "anthropic-messages"])
@pytest.mark.parametrize(
    ("source", "request_body"),
    [
        ("openai-chat", {"messages": [{"role": "system", "content": "be brief"}]}),
        ("openai-chat", {"messages": []}),
        ("openai-responses", {"instructions": "be brief", "input": []}),
    ],
)
def test_a_request_of_instructions_alone_gets_a_user_turn(
    source: str, request_body: dict[str, Any], target: str
) -> None:
    body, losses = convert({"model": "m", **request_body}, source, target)
    turns = body["messages"] if target == "anthropic-messages" else body["contents"]
    assert [turn["role"] for turn in turns] == ["user"]
    assert "begins here" in json.dumps(turns)
    assert Loss("messages", "no turn", "a user turn was added") in losses


def test_geminis_own_request_without_contents_stays_as_it_came() -> None:
    body = {"systemInstruction": {"parts": [{"text": "be brief"}]}, "contents": []}
    written, losses = convert(body, "gemini", "gemini")
    assert written == body
    assert ["the vendor rejects it" in loss.why for loss in losses] == [True]


@pytest.mark.parametrize("extra", [{}, {"thoughtSignature": "s"}])
@pytest.mark.parametrize("part", [{"toolCall": {"id": "1"}}, {"tool_response": {"id": "1"}}])
def test_a_part_of_the_server_is_written_anew_with_its_own_members_only(
    part: dict[str, Any], extra: dict[str, str]
) -> None:
    turn = {"role": "model", "parts": [{**part, **extra}, {"text": "done"}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, turn]}
    sent, losses = convert(body, "gemini", "code-assist")
    assert (sent["contents"][1], losses) == (turn, ())
    for target in OTHERS:
        assert any(
            "only gemini reads it" in loss.why for loss in convert(body, "gemini", target)[1]
        )


def test_a_signature_alone_stays_a_signed_text() -> None:
    turn = {"role": "model", "parts": [{"text": "a"}, {"thoughtSignature": "s"}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, turn]}
    sent, _ = convert(body, "gemini", "code-assist")
    assert sent["contents"][1]["parts"] == [{"text": "a"}, {"text": "", "thoughtSignature": "s"}]


@pytest.mark.parametrize(
    ("target", "given", "sent"),
    [
        ("gemini", -0.5, 0),
        ("gemini", 2.5, 2),
        ("gemini", 1.5, 1.5),
        ("anthropic-messages", -1, 0),
        ("anthropic-messages", 1.5, 1),
    ],
)
def test_a_temperature_out_of_range_is_the_nearest(target: str, given: float, sent: float) -> None:
    request = {"model": "m", "messages": SWAPPED_CHAT[:1], "temperature": given}
    body, losses = convert(request, "openai-chat", target)
    assert body.get("generationConfig", body)["temperature"] == sent
    assert any(loss.path == "temperature" for loss in losses) is (sent != given)
