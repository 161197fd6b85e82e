"""A chat client's request to each server of the format: as that server takes it, like any other."""

import json
import re
from typing import Any

import pytest

from tests.conformance.driving import Case, driven, only, run
from tests.dialects.openai_chat.exchange import Json
from toolwire import dialects, providers
from toolwire.codec import translate
from toolwire.collect import Collector
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.providers import Provider, catalogue
from toolwire.simulator import reply

SCHEMA: Json = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
CHAT: Json = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "callid001",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"a"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "callid001", "content": "hi"},
        {"role": "user", "content": "And b."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "read",
                "description": "Read a file.",
                "parameters": SCHEMA,
                "strict": True,
            },
        }
    ],
    "tool_choice": "required",
    "max_completion_tokens": 4000,
    "stream": True,
    "stream_options": {"include_usage": True},
}
ANTHROPIC: Json = {
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Read a."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "callid001", "name": "read", "input": {"path": "a"}}
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "callid001", "content": "hi"},
                {"type": "text", "text": "And b."},
            ],
        },
    ],
    "tools": [
        {"name": "read", "description": "Read a file.", "input_schema": SCHEMA, "strict": True}
    ],
    "tool_choice": {"type": "any"},
    "max_tokens": 4000,
    "stream": True,
}


def servers() -> list[Any]:
    """Every provider that answers in this format with quirks, once for each set of them."""
    found: list[Any] = []
    for name in providers.names():
        provider = providers.get(name)
        seen: list[Quirks] = []
        for model in models_of(provider):
            entry = provider.for_model(model)
            if "openai-chat" in dict(entry.other_dialects):
                entry = entry.with_dialect("openai-chat")
            quirks = entry.quirks_for(model)
            if entry.dialect == "openai-chat" and quirks != DEFAULT and quirks not in seen:
                seen.append(quirks)
                found.append(pytest.param(entry, model, id=f"{name}-{model}"))
    return found


def models_of(provider: Provider) -> list[str]:
    known = [info.id for info in catalogue.models(provider.name)]
    fitting = [re.sub(r"\*|\[(.)[^]]*\]", r"\1", rule.pattern) for rule in provider.rules]
    return [usual_model(provider), *known, *fitting]


def usual_model(provider: Provider) -> str:
    return provider.default_model or "some-model"


SERVERS = servers()
USUAL = [param for param in SERVERS if param.values[1] == usual_model(param.values[0])]
"""Each provider's default model, which is the one its simulated demands are those of."""


def sent(body: Json, source: str, model: str, quirks: Quirks) -> Json:
    asked = written(body, model)
    return json.loads(translate(asked, source, "openai-chat", quirks=quirks).http.body)


def written(body: Json, model: str) -> bytes:
    return json.dumps({"model": model, **body}, separators=(",", ":")).encode()


def test_the_table_has_the_servers_known_to_differ():
    names = {param.values[0].name for param in SERVERS}
    assert names >= {"mistral", "deepseek", "groq", "zai", "moonshot", "openai", "openrouter"}


@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_the_body_is_what_the_server_takes_and_the_same_from_another_format(
    provider: Provider, model: str
):
    quirks = provider.quirks_for(model)
    body = sent(CHAT, "openai-chat", model, quirks)
    assert body == sent(ANTHROPIC, "anthropic-messages", model, quirks)
    lengths = {name: body.get(name) for name in ("max_tokens", "max_completion_tokens")}
    assert lengths == {"max_tokens": None, "max_completion_tokens": None} | {
        quirks.max_tokens_field: 4000
    }
    assert ("stream_options" in body) == quirks.stream_usage
    forced = "required" in quirks.tool_choices
    assert body.get("tool_choice") == (quirks.required_word if forced else None)
    assert ("strict" in body["tools"][0]["function"]) == quirks.strict_tools
    roles = [message["role"] for message in body["messages"]]
    between = ["assistant"] if quirks.assistant_between_results_and_user else []
    assert roles == [quirks.system_role, "user", "assistant", "tool", *between, "user"]
    called = body["messages"][2]
    assert [name for name in called if name.startswith("reasoning")] == [
        name for name in (quirks.reasoning_field,) if name
    ]


@pytest.mark.parametrize(("provider", "model"), USUAL)
def test_the_server_accepts_it_over_http_and_gets_the_same_from_another_format(
    provider: Provider, model: str
):
    async def scenario() -> None:
        async with driven(Case(provider, model), only(reply("Done."), reply("Done."))) as d:
            for source, body in (("openai-chat", CHAT), ("anthropic-messages", ANTHROPIC)):
                request = dialects.get(source).decode_request(written(body, "another"))
                collector = Collector()
                async for event in d.model(request):
                    collector.add(event)
                assert collector.message().text == "Done."
            assert d.sim.refusals == []
            chat, anthropic = (json.loads(received.body) for received in d.sim.requests)
            assert chat == anthropic

    run(scenario())
