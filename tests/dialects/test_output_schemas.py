"""Schemas of answers reach each vendor in a form that it accepts; what they lose is reported."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.schema.schema_judge import Maker, refused_output, uncovered
from toolwire import dialects
from toolwire.codec import translate
from toolwire.dialects.quirks import Quirks
from toolwire.messages import Message, Text
from toolwire.prompted.json import prepare
from toolwire.request import JsonObject, Loss, ModelRequest, OutputFormat, ToolSpec

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.exists(), reason="the shared corpus is not here")
OPEN: JsonObject = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "description": "Where."},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "notes": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    },
    "required": ["city"],
}
CLOSED: JsonObject = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where.\nminLength: 1"},
        "days": {"type": "integer", "description": "minimum: 1; maximum: 9"},
        "notes": {"type": "array", "items": {"type": "string"}, "description": "maxItems: 3"},
    },
    "required": ["city"],
    "additionalProperties": False,
}
MOVED = "not taken in output schemas; moved to the description"
CLOSING = "output objects are closed: members that are not described are not accepted"
LOSSES = {
    Loss("output.schema.properties.city", "minLength: 1", MOVED),
    Loss("output.schema.properties.days", "minimum: 1", MOVED),
    Loss("output.schema.properties.days", "maximum: 9", MOVED),
    Loss("output.schema.properties.notes", "maxItems: 3", MOVED),
    Loss("output.schema", "additionalProperties: true", CLOSING),
}
CHAT = {"messages": [{"role": "user", "content": "plan"}], "model": "m"}
ASKED = (Message(role="user", parts=(Text("plan"),)),)


def _request(source: str, schema: JsonObject) -> dict[str, Any]:
    if source == "openai-chat":
        shape = {"name": "plan", "schema": schema}
        return {**CHAT, "response_format": {"type": "json_schema", "json_schema": shape}}
    if source == "openai-responses":
        shape = {"type": "json_schema", "name": "plan", "schema": schema}
        return {"input": "plan", "model": "m", "text": {"format": shape}}
    if source == "anthropic-messages":
        config = {"format": {"type": "json_schema", "schema": schema}}
        return {**CHAT, "max_tokens": 99, "output_config": config}
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    return {"contents": [{"parts": [{"text": "plan"}]}], "generationConfig": config}


def _sent(request: Any, source: str, target: str) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    translated = translate(json.dumps(request).encode(), source, target, model="m")
    return json.loads(translated.http.body), translated.losses


@pytest.mark.parametrize("source", ["openai-chat", "openai-responses", "gemini"])
def test_anthropic_gets_closed_objects_without_bounds_and_each_is_reported(source: str) -> None:
    body, losses = _sent(_request(source, OPEN), source, "anthropic-messages")
    assert body["output_config"]["format"] == {"type": "json_schema", "schema": CLOSED}
    assert set(losses) >= LOSSES


def test_anthropics_own_output_schema_stays_as_it_came() -> None:
    request = _request("anthropic-messages", OPEN)
    written, losses = _sent(request, "anthropic-messages", "anthropic-messages")
    assert written == request
    assert ["the vendor rejects it" in loss.why for loss in losses] == [True]
    quirks = Quirks(adaptive_thinking=False)
    request["output_config"]["effort"] = "high"
    body = translate(
        json.dumps(request).encode(), "anthropic-messages", "anthropic-messages", quirks=quirks
    ).http.body
    assert json.loads(body)["output_config"]["format"]["schema"] == OPEN


@pytest.mark.parametrize("target", ["gemini", "anthropic-messages"])
def test_the_root_of_an_answer_may_be_a_list(target: str) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    source = "anthropic-messages" if target == "gemini" else "gemini"
    body, _ = _sent(_request(source, schema), source, target)
    found = body.get("generationConfig", {}).get("responseJsonSchema")
    assert (found or body["output_config"]["format"]["schema"]) == schema


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_openai_gets_an_object_around_a_list_and_it_is_reported(target: str) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    body, losses = _sent(_request("gemini", schema), "gemini", target)
    shape = body.get("response_format", {}).get("json_schema") or body["text"]["format"]
    wrapped = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    assert shape["schema"] == wrapped
    assert [loss.path for loss in losses] == ["output.schema"]


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_the_json_style_keeps_its_alternatives_for_local_servers(target: str) -> None:
    decoded = dialects.get("gemini").decode_request(
        json.dumps({"contents": [{"parts": [{"text": "hi"}]}]}).encode(), "m"
    )
    prepared = prepare(replace(decoded, tools=(ToolSpec(name="plan", parameters=OPEN),)))
    assert prepared is not None
    body = json.loads(dialects.get(target).encode_request(prepared.request).http.body)
    shape = body.get("response_format", {}).get("json_schema") or body["text"]["format"]
    assert len(shape["schema"]["anyOf"]) == 2


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (OPEN, False),
        ({**OPEN, "properties": {}, "required": [], "additionalProperties": False}, True),
    ],
)
def test_anthropic_gets_strict_only_beside_a_schema_that_allows_it(
    schema: JsonObject, sent: bool
) -> None:
    tool = ToolSpec(name="t", parameters=schema, strict=True)
    request = ModelRequest(model="m", messages=ASKED, tools=(tool,))
    encoded = dialects.get("anthropic-messages").encode_request(request, Quirks(strict_tools=True))
    assert ("strict" in json.loads(encoded.http.body)["tools"][0]) is sent
    assert any(loss.path == "tools[0].strict" for loss in encoded.losses) is not sent


def test_the_json_style_sends_anthropic_a_schema_that_it_accepts() -> None:
    tool = ToolSpec(name="plan", parameters=OPEN)
    answer = OutputFormat(kind="json_schema", schema=OPEN)
    request = ModelRequest(
        model="m", messages=ASKED, tools=(tool,), parallel_calls=True, output=answer
    )
    prepared = prepare(request)
    assert prepared is not None
    encoded = dialects.get("anthropic-messages").encode_request(prepared.request)
    schema = json.loads(encoded.http.body)["output_config"]["format"]["schema"]
    assert refused_output(schema) == []
    reported = {loss.what for loss in encoded.losses}
    assert {"minLength: 1", "minimum: 1", "maximum: 9", "maxItems: 3"} <= reported


@needs_corpus
@pytest.mark.parametrize("source", ["openai-chat", "openai-responses", "gemini"])
def test_every_recorded_output_schema_is_accepted_by_anthropic(source: str) -> None:
    count = 0
    with gzip.open(CORPUS / f"{source}.jsonl.gz", "rt", encoding="utf-8") as lines:
        requests = [json.loads(line).get("request") for line in lines]
    for request in filter(None, requests):
        decoded = dialects.get(source).decode_request(json.dumps(request).encode(), "m")
        if decoded.output is None or decoded.output.schema is None:
            continue
        count += 1
        encoded = dialects.get("anthropic-messages").encode_request(decoded)
        after = json.loads(encoded.http.body)["output_config"]["format"]["schema"]
        assert refused_output(after) == []
        before = decoded.output.schema
        losses = tuple(
            Loss(f"${loss.path.removeprefix('output.schema')}", loss.what, loss.why)
            for loss in encoded.losses
            if loss.path.startswith("output.schema")
        )
        assert uncovered(before, after, losses, Maker(before, 1).values(12)) == []
    assert count > 30
