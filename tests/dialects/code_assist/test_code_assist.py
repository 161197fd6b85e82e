import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.dialects.gemini.exchange import (
    chunk,
    collected,
    decode_bytes,
    finished,
    ids,
    kept,
    options,
    request,
    sse,
    user,
)
from toolwire import dialects
from toolwire.dialects.code_assist import DIALECT
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.events import TextDelta, ToolCallEnded
from toolwire.messages import Text

GEMINI = dialects.get("gemini")
INNER = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "systemInstruction": {"role": "user", "parts": [{"text": "be brief"}]},
    "safetySettings": [],
}


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "request": INNER},
        {"model": "models/m", "project": "p", "user_prompt_id": "u", "request": INNER},
        {"model": "m", "project": None, "request": {**INNER, "session_id": "s"}},
        {"request": {"model": "models/m", "contents": []}},
        {"model": "m", "request": {"model": "models/other", "contents": []}},
        {"request": {}, "model": "", "enabled_credit_types": ["x"]},
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_a_request_comes_back_as_it_was(body: dict[str, Any]) -> None:
    encoded = DIALECT.encode_request(DIALECT.decode_request(json.dumps(body).encode()))
    assert json.loads(encoded.http.body) == body
    assert encoded.losses == ()


def test_the_envelope_stays_behind_when_the_request_goes_to_gemini() -> None:
    body = {"model": "m", "project": "p", "request": {**INNER, "session_id": "s"}}
    encoded = GEMINI.encode_request(DIALECT.decode_request(json.dumps(body).encode()))
    assert json.loads(encoded.http.body) == INNER
    assert encoded.http.path == "/models/m:generateContent"
    assert [loss.path for loss in encoded.losses] == ["request.session_id", "project"]


def test_a_gemini_request_is_put_into_an_envelope_in_its_usual_spelling() -> None:
    body = {
        "contents": "hi",
        "system_instruction": {"parts": {"text": "be brief"}},
        "tools": {"function_declarations": [{"name": "f", "parameters": {"type": 6}}]},
        "safetySettings": [],
    }
    encoded = DIALECT.encode_request(GEMINI.decode_request(json.dumps(body).encode(), "m"))
    assert encoded.losses == ()
    assert json.loads(encoded.http.body) == {
        "model": "m",
        "request": {
            **INNER,
            "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}],
        },
    }


def test_unchanged_values_of_a_gemini_request_survive_the_envelope() -> None:
    choice = {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}
    config = {
        "responseMimeType": "text/x.enum",
        "responseSchema": {"type": "STRING", "enum": ["a"]},
        "thinkingConfig": {"thinkingBudget": 5},
        "candidateCount": 1,
    }
    body = {
        "contents": [
            {"role": "user", "parts": [{"fileData": {"fileUri": "https://youtu.be/x"}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}, "id": "i"}}]},
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "i",
                            "name": "f",
                            "response": {"result": [1]},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA"}}],
                        }
                    }
                ],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {}}]}],
        "toolConfig": {"functionCallingConfig": choice},
        "generationConfig": config,
    }
    encoded = DIALECT.encode_request(GEMINI.decode_request(json.dumps(body).encode(), "m"))
    assert json.loads(encoded.http.body) == {"model": "m", "request": body}
    assert encoded.losses == ()


def test_an_envelope_stays_around_an_edited_request() -> None:
    body = {
        "model": "models/m",
        "project": "p",
        "request": {**INNER, "session_id": "s", "generation_config": {"seed": 1}},
    }
    request = DIALECT.decode_request(json.dumps(body).encode())
    edited = replace(request, model="other", seed=2)
    inner = {**INNER, "session_id": "s", "generationConfig": {"seed": 2}}
    assert json.loads(DIALECT.encode_request(edited).http.body) == {
        "model": "other",
        "project": "p",
        "request": inner,
    }


def test_a_new_request_names_its_model_in_the_envelope() -> None:
    http = DIALECT.encode_request(request(user("hi"), stream=True, system=(Text("be brief"),))).http
    assert (http.path, http.query) == ("/v1internal:streamGenerateContent", (("alt", "sse"),))
    assert json.loads(http.body)["model"] == "m"


def test_what_has_no_request_inside_is_bad_input() -> None:
    with pytest.raises(BadInput):
        DIALECT.decode_request(b'{"contents": []}')


@pytest.mark.parametrize("wrap", [lambda c: {"response": c, "traceId": "t"}, lambda c: c])
def test_answers_are_read_with_and_without_the_envelope(wrap: Any) -> None:
    chunks = [chunk({"text": "a"}), chunk({"text": "b", "partMetadata": {}}, finish="STOP")]
    events = decode_bytes([sse(*map(wrap, chunks))], DIALECT)
    assert events == decode_bytes([sse(*chunks)])


def test_seals_are_those_of_the_gemini_family() -> None:
    part = {"functionCall": {"name": "f"}, "thoughtSignature": "s"}
    events = decode_bytes([sse({"response": chunk(part, finish="STOP")})], DIALECT)
    ended = next(event for event in events if isinstance(event, ToolCallEnded))
    assert ended.seal is not None
    assert ended.seal.origin.dialect == "gemini"


def test_a_whole_answer_is_in_the_envelope() -> None:
    end = finished(model="m", kept=kept(avgLogprobs=-1))
    body = DIALECT.encode_whole(collected([TextDelta("a"), end]), end, "m", ids())
    assert list(json.loads(body)) == ["response"]
    assert list(DIALECT.decode_whole(body, options())) == [TextDelta("a"), end]


def test_errors_are_outside_the_envelope() -> None:
    error = ProviderError(ErrorKind.PERMISSION, "no")
    status, body = DIALECT.encode_error(error)
    assert (status, json.loads(body)["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert DIALECT.error(status, {}, body).kind is ErrorKind.PERMISSION
    (frame,) = DIALECT.encoder("m", ids()).fail(error)
    assert json.loads(frame.data)["error"]["code"] == 403
