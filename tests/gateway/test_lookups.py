import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.test_operations import asked
from toolwire.config import Settings
from toolwire.config.gateway import GatewaySettings, RouteTable
from toolwire.gateway.lookups import listed_models
from toolwire.simulator import replies

LONG = "Words of many kinds, and more of them. " * 200
ANTHROPIC = {
    "model": "m1",
    "system": LONG,
    "tools": [{"name": "a", "description": LONG, "input_schema": {"type": "object"}}],
    "messages": [{"role": "user", "content": LONG}],
}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": LONG}]}]}


@pytest.mark.parametrize(
    ("path", "body", "member", "least"),
    [
        ("/v1/messages/count_tokens", ANTHROPIC, "input_tokens", 5400),
        ("/v1beta/models/m1:countTokens", CONTENTS, "totalTokens", 1800),
        (
            "/v1beta/models/m1:countTokens",
            {"generateContentRequest": {"model": "models/m1", **CONTENTS}},
            "totalTokens",
            1800,
        ),
        (
            "/v1internal:countTokens",
            {"request": {"model": "models/m1", **CONTENTS}},
            "totalTokens",
            1800,
        ),
    ],
)
def test_everything_of_a_request_is_counted_here(
    path: str, body: Any, member: str, least: int, tmp_path: Path
):
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path) as served:
        status, fields, answer = asked(served.origin, "POST", path, body, TOKEN)
        assert (status, fields["toolwire-count"]) == (200, "estimated")
        assert least < json.loads(answer)[member] < least * 1.6
        assert served.received == []


def test_the_vendor_counts_if_the_settings_say_so(tmp_path: Path):
    with ServedGateway("anthropic-messages", replies("hi"), home=tmp_path, count="exact") as served:
        path = "/v1/messages/count_tokens"
        status, fields, answer = asked(served.origin, "POST", path, ANTHROPIC, TOKEN)
        assert (status, fields["toolwire-count"]) == (200, "exact")
        [sent] = served.received
        assert sent.path == path
        assert json.loads(answer) == {"input_tokens": len(sent.body) // 4 + 1}
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path, count="exact") as served:
        assert (
            asked(served.origin, "POST", path, ANTHROPIC, TOKEN)[1]["toolwire-count"] == "estimated"
        )


def test_a_count_follows_what_the_vendor_counted_before(tmp_path: Path):
    with ServedGateway("anthropic-messages", replies("hi", "hi"), home=tmp_path) as served:
        path = "/v1/messages/count_tokens"

        def counted() -> int:
            return json.loads(asked(served.origin, "POST", path, ANTHROPIC, TOKEN)[2])[
                "input_tokens"
            ]

        before = counted()
        body = {**ANTHROPIC, "max_tokens": 100}
        answer = json.loads(asked(served.origin, "POST", "/v1/messages", body, TOKEN)[2])
        true = answer["usage"]["input_tokens"]
        assert counted() == pytest.approx(true * 1.1, rel=0.02)
        assert counted() != before


def test_counts_and_lists_need_a_key(tmp_path: Path):
    with ServedGateway("gemini", replies("hi"), home=tmp_path) as served:
        assert asked(served.origin, "POST", "/v1/messages/count_tokens", ANTHROPIC)[0] == 401
        assert asked(served.origin, path="/v1/models")[0] == 401
        assert asked(served.origin, "POST", "/v1/messages/count_tokens", [1], TOKEN)[0] == 400


def test_each_client_gets_its_own_list(tmp_path: Path):
    with ServedGateway("gemini", replies("hi"), home=tmp_path, model="m1") as served:
        status, _, body = asked(served.origin, path="/v1/models", key=TOKEN)
        assert (status, json.loads(body)["data"][0]["id"]) == (200, "m1")
        version: dict[str, Any] = {"anthropic_version": "2023-06-01"}
        body = asked(served.origin, path="/v1/models", key=TOKEN, **version)[2]
        assert [each["id"] for each in json.loads(body)["data"]] == ["m1", "claude-via/m1"]
        body = asked(served.origin, path=f"/v1beta/models?key={TOKEN}")[2]
        assert json.loads(body)["models"][0]["name"] == "models/m1"
        one = asked(served.origin, path="/v1beta/models/m1", key=TOKEN)
        assert json.loads(one[2])["name"] == "models/m1"


def test_routes_come_before_models_and_patterns_are_not_names():
    routes = {
        "fast": RouteTable(to=("groq/qwen-3",)),
        "claude-*": RouteTable(to=("anthropic/claude-sonnet-5",)),
    }
    settings = Settings(gateway=GatewaySettings(routes=routes))
    found = listed_models(settings, ["anthropic"])
    assert found[0].id == "fast"
    assert found[0].model == "groq/qwen-3"
    assert {entry.owner for entry in found[1:]} == {"anthropic"}
    sonnet = next(entry for entry in found if entry.id == "anthropic/claude-sonnet-5")
    assert sonnet.facts.context > 100_000


@pytest.mark.parametrize(
    ("path", "member", "name"),
    [("/v1/models/any/name", "id", "any/name"), ("/v1beta/models/any", "name", "models/any")],
)
def test_every_name_that_is_answered_can_be_looked_up(
    path: str, member: str, name: str, tmp_path: Path
):
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path) as served:
        status, _, answer = asked(served.origin, path=path, key=TOKEN)
        assert (status, json.loads(answer)[member]) == (200, name)
