"""Addresses beside the requests for an answer, and headers to the upstream."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.test_answering import REQUESTS, post, streamed
from toolwire import dialects
from toolwire.gateway.paths import NoSuchAddress, find_address
from toolwire.simulator import Reply, Say

HELLO = Reply(pieces=(Say("Hello"),))


def ask(
    served: ServedGateway, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(served.origin.removeprefix("http://"), timeout=60)
    connection.request(method, path, headers={"x-api-key": TOKEN} | (headers or {}))
    answer = connection.getresponse()
    body = answer.read()
    fields = {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    return answer.status, fields, body


@pytest.mark.parametrize(
    ("path", "dialect", "does", "model", "route"),
    [
        ("/v1/chat/completions", "openai-chat", "answer", "", ""),
        ("/chat/completions", "openai-chat", "answer", "", ""),
        ("/v1/responses", "openai-responses", "answer", "", ""),
        ("/responses/compact", "openai-responses", "compact", "", ""),
        ("/fast/v1/messages", "anthropic-messages", "answer", "", "fast"),
        ("/a/b/v1/messages/count_tokens", "anthropic-messages", "count", "", "a/b"),
        ("/v1beta/models/m:generateContent", "gemini", "answer", "m", ""),
        ("/v1/models/m:streamGenerateContent", "gemini", "stream", "m", ""),
        ("/models/a/b:countTokens", "gemini", "count", "a/b", ""),
        ("/v1beta/models/a%2Fb:generateContent", "gemini", "answer", "a/b", ""),
        ("/v1internal:streamGenerateContent", "code-assist", "stream", "", ""),
        ("/v1internal:loadCodeAssist", "code-assist", "load", "", ""),
        ("/v1internal:listExperiments", "code-assist", "acknowledge", "", ""),
        ("/v1internal:setSomeGlobalUserSetting", "code-assist", "acknowledge", "", ""),
    ],
)
def test_addresses(path: str, dialect: str, does: str, model: str, route: str):
    found = find_address("POST", path)
    assert (found.dialect, found.does, found.model, found.route) == (dialect, does, model, route)


def test_lookups_have_addresses():
    assert find_address("GET", "/v1/models").does == "models"
    assert find_address("GET", "/v1beta/models/a%2Fb").model == "a/b"
    assert find_address("GET", "/v1/responses/resp_1").item == "resp_1"
    assert find_address("DELETE", "/v1/responses/resp_1").does == "delete"
    assert find_address("GET", "/v1/responses/resp_1/input_items").does == "input_items"
    assert find_address("POST", "/v1/responses/resp_1/cancel").does == "cancel"


@pytest.mark.parametrize("path", ["/v1/unknown", "/v1beta/models/m:sing", "/v1internal:sing"])
def test_an_unknown_address_names_the_known_ones(path: str, tmp_path: Path):
    with pytest.raises(NoSuchAddress, match="/v1/chat/completions"):
        find_address("POST", path)
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        status, _, answer = post(served, path, {})
        assert status == 404
        assert b"/v1/chat/completions" in answer


def test_a_wrong_method_names_the_right_one(tmp_path: Path):
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
            status, fields, _ = ask(served, "GET", path)
            assert (status, fields["allow"]) == (405, "POST")


def test_a_probe_of_the_root_needs_no_key(tmp_path: Path):
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        assert ask(served, "HEAD", "/", {"x-api-key": ""})[::2] == (200, b"")
        status, _, body = ask(served, "GET", "/", {"x-api-key": ""})
        assert (status, list(json.loads(body))) == (200, ["toolwire"])


def test_a_websocket_is_refused_so_that_codex_uses_http(tmp_path: Path):
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        upgrade = {"upgrade": "websocket", "connection": "upgrade"}
        assert ask(served, "GET", "/v1/responses", upgrade)[0] == 426


def test_code_assist_gets_a_project(tmp_path: Path):
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        _, _, loaded = post(served, "/v1internal:loadCodeAssist", {})
        assert json.loads(loaded)["cloudaicompanionProject"] == "toolwire"
        _, _, done = post(served, "/v1internal:onboardUser", {})
        assert json.loads(done)["response"]["cloudaicompanionProject"]["id"] == "toolwire"
        assert post(served, "/v1internal:retrieveUserQuota", {})[::2] == (200, b"{}")


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {TOKEN}"},
        {"authorization": f"bearer {TOKEN}"},
        {"x-api-key": TOKEN},
        {"x-goog-api-key": TOKEN},
        {"api-key": TOKEN},
        {"authorization": "Bearer other", "x-api-key": TOKEN},
    ],
)
def test_a_key_may_be_in_any_usual_header(headers: dict[str, str], tmp_path: Path):
    path, body = REQUESTS["openai-chat"]
    with ServedGateway("gemini", [HELLO], home=tmp_path, upstream_key="key-of-upstream") as served:
        status, _, _ = post(served, path, body, {"authorization": "", **headers})
        assert status == 200
        sent = served.received[0].headers
        assert TOKEN not in json.dumps(dict(sent))
        assert sent["x-goog-api-key"] == "key-of-upstream"


def test_a_key_may_be_in_the_query(tmp_path: Path):
    path, body = REQUESTS["gemini"]
    with ServedGateway("openai-chat", [HELLO], home=tmp_path) as served:
        status, _, _ = post(served, f"{path}?key={TOKEN}", body, {"authorization": ""})
        assert status == 200
        assert TOKEN not in served.received[0].query
        assert TOKEN not in repr(served.records)


@pytest.mark.parametrize("dialect", list(REQUESTS))
def test_a_wrong_key_is_refused_in_the_clients_format(dialect: str, tmp_path: Path):
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        for key in ("", "Bearer wrong"):
            status, _, answer = post(served, *REQUESTS[dialect], {"authorization": key})
            assert status == 401
            assert dialects.get(dialect).error(status, {}, answer).kind == "auth"
        assert served.received == []


def test_beta_features_reach_only_servers_of_their_format(tmp_path: Path):
    given = {"anthropic-beta": "interleaved-thinking-2025-05-14, context-1m-2025-08-07"}
    path, body = REQUESTS["anthropic-messages"]
    for upstream in ("anthropic-messages", "openai-chat"):
        with ServedGateway(upstream, [HELLO], home=tmp_path) as served:
            assert post(served, path, body, given)[0] == 200
            found = served.received[0].headers.get("anthropic-beta")
            sent = "interleaved-thinking-2025-05-14,context-1m-2025-08-07"
            assert found == (sent if upstream == "anthropic-messages" else None)


def test_stored_answers(tmp_path: Path):
    path, body = REQUESTS["openai-responses"]
    with ServedGateway("anthropic-messages", [HELLO] * 5, home=tmp_path) as served:
        for made in (body, {**body, "stream": True}):
            status, _, answer = post(served, path, made)
            assert status == 200
            first = _response(answer)
            assert first["store"] is True
            stored = json.loads(ask(served, "GET", f"{path}/{first['id']}")[2])
            assert stored == first
            items = json.loads(ask(served, "GET", f"{path}/{first['id']}/input_items")[2])
            assert [item["role"] for item in items["data"]] == ["user"]
        follow = {"model": "m", "input": "And now?", "previous_response_id": first["id"]}
        status, _, answer = post(served, path, follow)
        assert status == 200, answer
        assert [turn["role"] for turn in served.bodies[-1]["messages"]] == [
            "user",
            "assistant",
            "user",
        ]
        assert json.loads(answer)["previous_response_id"] == first["id"]
        assert ask(served, "DELETE", f"{path}/{first['id']}")[0] == 200
        assert ask(served, "GET", f"{path}/{first['id']}")[0] == 404
        status, _, answer = post(served, path, follow)
        assert status == 400
        assert json.loads(answer)["error"]["code"] == "previous_response_not_found"
        private = _response(post(served, path, {**body, "store": False})[2])
        assert private["store"] is False
        assert ask(served, "GET", f"{path}/{private['id']}")[0] == 404


def _response(answer: bytes) -> dict[str, Any]:
    if answer.startswith(b"{"):
        return json.loads(answer)
    last = [line for line in answer.split(b"\n") if line.startswith(b"data: ")][-1]
    return json.loads(last[6:])["response"]


def test_an_id_is_new_for_each_answer_and_in_the_clients_form(tmp_path: Path):
    with ServedGateway("openai-chat", [HELLO] * 4, home=tmp_path) as served:
        for dialect, prefix in (("anthropic-messages", "msg_"), ("openai-responses", "resp_")):
            whole = json.loads(post(served, *REQUESTS[dialect])[2])
            assert whole["id"].startswith(prefix)
            assert prefix in post(served, *streamed(dialect))[2].decode()
