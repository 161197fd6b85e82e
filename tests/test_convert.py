"""Recorded requests converted between all formats: accepted by the rules, or reported."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import corpus_harness as harness
from toolwire import dialects
from toolwire.acceptance import violations
from toolwire.acceptance.limits import demands
from toolwire.codec import Translated, translate
from toolwire.errors import ToolwireError
from toolwire.providers import catalogue
from toolwire.request import Loss

Body = dict[str, Any]
MODELS: dict[str, tuple[str, ...]] = {
    "openai-chat": ("", "gpt-5.6", "gpt-4o"),
    "openai-responses": ("", "gpt-5.6", "gpt-4o"),
    "anthropic-messages": ("", "claude-sonnet-5", "claude-sonnet-4-5"),
    "gemini": ("", "gemini-3.5-flash", "gemini-2.5-pro"),
    "code-assist": ("", "gemini-3.5-flash", "gemini-2.5-pro"),
}
HI = [{"role": "user", "content": "Hi"}]
TURN = [{"role": "user", "parts": [{"text": "Hi"}]}]
with_corpus = pytest.mark.skipif(
    not harness.CORPUS.is_dir(), reason="the recorded corpus is beside the project, not in it"
)


def recorded(dialect: str) -> Iterator[tuple[str, Body]]:
    """Every recorded request; those of Gemini stand in for Code Assist, inside its envelope."""
    source = "gemini" if dialect == "code-assist" else dialect
    for row in harness.rows(source):
        request = row["request"]
        if isinstance(request, dict):
            inner = {key: value for key, value in request.items() if key != "model"}
            envelope = {"model": row["model"] or "", "request": inner}
            yield row["id"], envelope if dialect == "code-assist" else request


def unreported(found: Translated, target: str, model: str) -> list[str]:
    """Violations of the result that no loss names."""
    vendor = catalogue.vendor(target, model)
    server = demands(vendor.name if vendor else "", model)
    body = json.loads(found.http.body)
    told = {(loss.path, loss.why.partition(": ")[2]) for loss in found.losses}
    broken = violations(target, body, model, demands=server)
    return [one.message for one in broken if (one.path, one.message) not in told]


def counts_of(source: str, target: str, every: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for number, (row, request) in enumerate(recorded(source)):
        if number % every:
            continue
        model = MODELS[target][number // every % 3]
        try:
            found = translate(json.dumps(request).encode(), source, target, model=model)
        except ToolwireError:
            counts["typed error"] += 1
            continue
        named = model or str(request.get("model") or "")
        assert unreported(found, target, named) == [], row
        rejected = any(loss.why.startswith("the vendor rejects it") for loss in found.losses)
        counts["reported" if rejected else "accepted"] += 1
    return counts


@with_corpus
@pytest.mark.parametrize("target", dialects.NAMES)
@pytest.mark.parametrize("source", dialects.NAMES)
def test_a_converted_request_is_accepted_or_reported(source: str, target: str) -> None:
    counts_of(source, target, every=7)


@with_corpus
@pytest.mark.slow
@pytest.mark.parametrize("source", dialects.NAMES)
def test_every_recorded_request_converts_to_one_that_is_accepted_or_reported(
    source: str, counted: Callable[[str], None]
) -> None:
    for target in dialects.NAMES:
        counts = counts_of(source, target, every=1)
        counted(f"converted, {source} to {target}: {dict(sorted(counts.items()))}")
        assert counts["typed error"] == 0


def converted(body: Body, source: str, target: str, model: str = "") -> tuple[Body, list[Loss]]:
    found = translate(json.dumps(body).encode(), source, target, model=model)
    return json.loads(found.http.body), list(found.losses)


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("openai-responses", "gpt-5-mini"),
        ("openai-chat", "o3"),
        ("anthropic-messages", "claude-sonnet-5"),
    ],
)
def test_sampling_goes_only_to_models_that_take_it(target: str, model: str) -> None:
    body = {"model": "m", "temperature": 0.2, "top_p": 0.9, "max_tokens": 99, "messages": HI}
    written, losses = converted(body, "openai-chat", target, model)
    assert {"temperature", "top_p"}.isdisjoint(written)
    assert {"temperature", "top_p"} <= {loss.path for loss in losses}


def test_sampling_goes_to_models_that_take_it() -> None:
    body = {"model": "m", "temperature": 0.2, "max_tokens": 99, "messages": HI}
    for model in ("gpt-4o", "gpt-4.1-mini"):
        written, losses = converted(body, "openai-chat", "openai-responses", model)
        assert (written["temperature"], losses) == (0.2, [])
    written, losses = converted(body, "openai-chat", "anthropic-messages", "claude-haiku-4-5")
    assert (written["temperature"], losses) == (0.2, [])


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-sonnet-5", 32000),
        ("claude-opus-4-1", 32000),
        ("claude-3-5-haiku-20241022", 8192),
        ("claude-3-haiku-20240307", 4096),
        ("unknown", 8192),
    ],
)
def test_a_limit_that_was_put_in_fits_the_model_and_is_reported(model: str, limit: int) -> None:
    body = {"model": "m", "messages": HI}
    written, losses = converted(body, "openai-chat", "anthropic-messages", model)
    assert written["max_tokens"] == limit
    why = f"put in as {limit}: the format requires it and the request has none"
    assert losses == [Loss("max_tokens", "max_tokens", why)]


def test_a_limit_with_room_for_thinking_stays_within_the_model() -> None:
    body = {"contents": TURN, "generationConfig": {"thinkingConfig": {"thinkingBudget": 9000}}}
    written, _ = converted(body, "gemini", "anthropic-messages", "claude-opus-4-1")
    assert (written["max_tokens"], written["thinking"]["budget_tokens"]) == (32000, 9000)


@pytest.mark.parametrize("target", [name for name in dialects.NAMES if name != "gemini"])
def test_a_request_without_a_model_says_so(target: str) -> None:
    written, losses = converted({"contents": TURN}, "gemini", target)
    assert not written.get("model")
    assert "model" in [loss.path for loss in losses]
    named, losses = converted({"contents": TURN}, "gemini", target, "m")
    assert named["model"] == "m"
    assert "model" not in [loss.path for loss in losses]


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_a_named_model_replaces_one_that_is_absent(dialect: str) -> None:
    bodies: dict[str, Body] = {
        "openai-chat": {"messages": HI},
        "openai-responses": {"input": HI},
        "anthropic-messages": {"max_tokens": 9, "messages": HI},
        "gemini": {"contents": TURN},
        "code-assist": {"request": {"contents": TURN}},
    }
    found = translate(json.dumps(bodies[dialect]).encode(), dialect, dialect, model="m")
    body = json.loads(found.http.body)
    assert body.get("model") == "m" or "/m:" in found.http.path
    assert found.losses == ()


def test_settings_that_a_model_rejects_are_left_out() -> None:
    effort = {"model": "m", "reasoning_effort": "low", "max_tokens": 20000, "messages": HI}
    written, losses = converted(effort, "openai-chat", "openai-responses", "gpt-4o")
    assert "reasoning" not in written
    assert written["max_output_tokens"] == 16384
    assert [loss.path for loss in losses] == ["max_output_tokens", "reasoning"]
    stops = {"contents": TURN, "generationConfig": {"stopSequences": ["x"], "presencePenalty": 1}}
    written, losses = converted(stops, "gemini", "openai-chat", "gpt-5")
    assert {"stop", "presence_penalty"}.isdisjoint(written)
    assert [loss.path for loss in losses] == ["stop", "presence_penalty"]
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    shaped = {
        "model": "m",
        "input": "Hi",
        "tools": [tool],
        "text": {"format": {"type": "json_object"}},
    }
    written, losses = converted(shaped, "openai-responses", "gemini", "gemini-2.5-pro")
    assert "responseMimeType" not in written.get("generationConfig", {})
    assert [loss.path for loss in losses] == ["output"]


def test_text_after_a_call_goes_before_it_to_anthropic() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    contents = [
        *TURN,
        {"role": "model", "parts": [call, {"text": "Looking."}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"output": "1"}}}],
        },
    ]
    body = {"contents": contents, "generationConfig": {"maxOutputTokens": 99}}
    written, losses = converted(body, "gemini", "anthropic-messages", "claude-haiku-4-5")
    assert [block["type"] for block in written["messages"][1]["content"]] == ["text", "tool_use"]
    assert [loss.what for loss in losses] == ["text after a call"]


def test_a_signed_step_of_the_server_stays_one_part() -> None:
    step = {"toolCall": {"id": "1", "args": {}}, "thoughtSignature": "c2VhbA=="}
    contents = [*TURN, {"role": "model", "parts": [step, {"text": "Yes."}]}, *TURN]
    written, losses = converted({"contents": contents}, "gemini", "code-assist", "gemini-3.5-flash")
    assert written["request"]["contents"][1]["parts"][0] == step
    assert losses == []


def test_encrypted_reasoning_is_not_requested_of_models_without_any() -> None:
    body = {"model": "m", "input": "Hi", "include": ["reasoning.encrypted_content", "x"]}
    written, losses = converted(body, "openai-responses", "openai-responses", "gpt-4o")
    assert written == {"model": "gpt-4o", "input": "Hi", "include": ["x"]}
    assert [loss.path for loss in losses] == ["include"]
    written, losses = converted(body, "openai-responses", "openai-responses", "gpt-5.6")
    assert (written["include"], losses) == (body["include"], [])


@pytest.mark.parametrize("target", ["gemini", "code-assist"])
def test_media_in_a_response_goes_beside_it_to_older_models(target: str) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    response = {"name": "f", "response": {"output": "1"}, "parts": [image]}
    contents = [
        *TURN,
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]
    written, losses = converted({"contents": contents}, "gemini", target, "gemini-2.5-pro")
    parts = written.get("request", written)["contents"][2]["parts"]
    assert [next(iter(part)) for part in parts] == ["functionResponse", "inlineData"]
    assert (parts[1], losses) == (image, [])
