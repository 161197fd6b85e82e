"""Requests as real clients send them, translated to another format."""

import json
from typing import Any

import msgspec
import pytest

from tests import acceptance
from toolwire import dialects
from toolwire.codec import translate
from toolwire.request import Loss

Json = dict[str, Any]
OTHERS = ("openai-chat", "anthropic-messages", "gemini", "code-assist")
EMPTY: Json = {"type": "object", "properties": {}}


def translated(body: Json, source: str, target: str) -> tuple[Json, list[Loss]]:
    found = translate(json.dumps(body).encode(), source, target)
    written = json.loads(found.http.body)
    acceptance.check(target, written)
    return written, list(found.losses)


def function(name: str, **members: Any) -> Json:
    return {"type": "function", "name": name, "parameters": EMPTY, "strict": False, **members}


def codex(**members: Any) -> Json:
    inner = [function("read_secret")]
    nested = {"type": "namespace", "name": "mcp__mini", "description": "d", "tools": inner}
    return {"model": "m", "input": "hi", "tools": [function("shell"), nested], **members}


def called_names(body: Json) -> list[str]:
    """The names of all calls, in whichever format."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for inner in value:
                walk(inner)
        elif isinstance(value, dict):
            if value.get("type") == "tool_use" or "args" in value or "arguments" in value:
                found.append(value["name"])
            for inner in value.values():
                walk(inner)

    walk(body)
    return found


@pytest.mark.parametrize("target", OTHERS)
def test_a_tool_loaded_late_is_called_by_its_own_name(target: str) -> None:
    late = {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}"}
    body = {
        "model": "m",
        "max_output_tokens": 99,
        "input": [
            {"role": "user", "content": "hi"},
            {**late, "namespace": "weather"},
            {"type": "function_call_output", "call_id": "a", "output": "sunny"},
        ],
        "tools": [function("weather", defer_loading=True)],
    }
    written, losses = translated(body, "openai-responses", target)
    assert called_names(written) == ["weather"]
    assert [loss.path for loss in losses] == ["tools[0].defer_loading"]


@pytest.mark.parametrize(
    ("target", "choice"),
    [
        ("openai-chat", {"type": "function", "function": {"name": "mcp__mini__read_secret"}}),
        ("anthropic-messages", {"type": "tool", "name": "mcp__mini__read_secret"}),
        ("gemini", None),
    ],
)
def test_a_forced_tool_of_a_namespace_is_named_as_it_is_offered(target: str, choice: Any) -> None:
    body = codex(tool_choice={"type": "function", "name": "read_secret"})
    written, _ = translated(body, "openai-responses", target)
    if choice is None:
        config = written["toolConfig"]["functionCallingConfig"]
        assert config == {"mode": "ANY", "allowedFunctionNames": ["mcp__mini__read_secret"]}
    else:
        assert written["tool_choice"] == choice


@pytest.mark.parametrize("target", OTHERS)
def test_a_choice_of_a_server_tool_is_reported_as_lost(target: str) -> None:
    body = codex(tool_choice={"type": "web_search_preview"})
    _, losses = translated(body, "openai-responses", target)
    assert Loss("tool_choice.type", "type", "only openai-responses has it") in losses
    assert translated(body, "openai-responses", "openai-responses") == (body, [])


def test_settings_that_both_openai_formats_have_are_carried() -> None:
    shared: Json = {
        "metadata": {"a": "b"},
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "service_tier": "flex",
        "store": True,
        "user": "u",
    }
    hi = [{"role": "user", "content": "hi"}]
    body = {"model": "m", "messages": hi, "verbosity": "low", **shared}
    written, losses = translated(body, "openai-chat", "openai-responses")
    assert written == {"model": "m", "input": hi, "text": {"verbosity": "low"}, **shared}
    assert losses == []


@pytest.mark.parametrize("detail", ["auto", "low", "high", "original"])
def test_the_detail_of_an_image_is_carried_between_the_openai_formats(detail: str) -> None:
    chat = {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": detail}}
    items = {"type": "input_image", "image_url": "https://a/b.png", "detail": detail}
    asked = {"model": "m", "messages": [{"role": "user", "content": [chat]}]}
    written, losses = translated(asked, "openai-chat", "openai-responses")
    assert (written["input"], losses) == ([{"role": "user", "content": [items]}], [])
    back = {"model": "m", "input": written["input"]}
    assert translated(back, "openai-responses", "openai-chat") == (asked, [])


def test_a_name_that_only_a_past_call_has_is_reported_when_it_changes() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "a.b", "arguments": "{}"}}
    body: Json = {
        "model": "m",
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "b"}]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
        ],
    }
    written, losses = translated(body, "openai-chat", "anthropic-messages")
    sent = called_names(written)[0]
    assert called_names(written) == [sent, sent]
    assert losses == [Loss("messages[1].parts[0].name", "a.b", f'sent as "{sent}"')]


def test_within_one_format_no_name_is_reported_as_changed() -> None:
    tool = {"type": "function", "function": {"name": "a.b", "parameters": EMPTY}}
    body: Json = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    written, losses = translated(body, "openai-chat", "openai-chat")
    assert written == body
    (loss,) = losses
    assert "the vendor rejects it" in loss.why


@pytest.mark.parametrize("source", dialects.NAMES)
@pytest.mark.parametrize("target", dialects.NAMES)
def test_half_a_character_does_not_cost_the_request(source: str, target: str) -> None:
    hi = [{"role": "user", "content": "a\ud83d"}]
    contents = {"contents": [{"role": "user", "parts": [{"text": "a\ud83d"}]}]}
    bodies: dict[str, Json] = {
        "openai-chat": {"model": "m", "messages": hi},
        "openai-responses": {"model": "m", "input": hi},
        "anthropic-messages": {"model": "m", "max_tokens": 9, "messages": hi},
        "gemini": contents,
        "code-assist": {"model": "m", "request": contents},
    }
    written, _ = translated(bodies[source], source, target)
    assert '"a\\ufffd"' in json.dumps(written)


def test_chat_gets_a_schema_whose_root_is_an_object() -> None:
    schema = {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, EMPTY]}
    body: Json = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "f", "input_schema": schema}],
    }
    written, losses = translated(body, "anthropic-messages", "openai-chat")
    parameters = written["tools"][0]["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert [loss.path for loss in losses] == ["tools[0].parameters"]


def test_responses_get_no_word_about_tools_where_none_is_left() -> None:
    body: Json = {
        "model": "m",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    }
    written, losses = translated(body, "anthropic-messages", "openai-responses")
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(written)
    assert [loss.path for loss in losses] == ["tools[0]", "tool_choice", "parallel_calls"]


@pytest.mark.parametrize("arguments", ["[]", "null"])
@pytest.mark.parametrize("target", ["openai-responses", "anthropic-messages", "gemini"])
def test_no_arguments_in_another_spelling_are_none(target: str, arguments: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    body: Json = {
        "model": "m",
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
    }
    written, losses = translated(body, "openai-chat", target)
    assert "_invalid_arguments" not in json.dumps(written)
    place = "messages[1].parts[0].arguments"
    assert losses == [Loss(place, arguments, "sent as an empty object")]


@pytest.mark.parametrize("target", dialects.NAMES)
def test_half_a_character_in_arguments_leaves_a_body_that_every_reader_takes(target: str) -> None:
    text = '{"a":"\\ud83d"}'
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": text}}
    body: Json = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
    }
    found = translate(json.dumps(body).encode(), "openai-chat", target)
    assert called_names(msgspec.json.decode(found.http.body)) == ["f"]
