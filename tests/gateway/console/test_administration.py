"""Keys, usage, models, settings, conformance and the API's own description, over real HTTP."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.console.browser import Browser, fetch
from toolwire.gateway.console.api import table
from toolwire.gateway.console.openapi import described
from toolwire.simulator import Call, reply

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
_WEATHER = reply(Call.of("get_weather", city="Paris"), when="weather", times=1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedGateway]:
    home = tmp_path_factory.mktemp("home")
    script = [_WEATHER, reply("ok", default=True)]
    with ServedGateway("openai-chat", script, home=home, model="served-model") as one:
        yield one


@pytest.fixture(scope="module")
def browser(served: ServedGateway) -> Browser:
    return Browser(served.origin, TOKEN)


def chat(served: ServedGateway, key: str) -> int:
    headers = {"authorization": f"Bearer {key}"}
    return fetch(served.origin, "POST", "/v1/chat/completions", ASKED, headers).status


def test_a_key_lives_from_creation_to_revocation(served: ServedGateway, browser: Browser):
    made = browser.post("/api/keys", {"name": "ci", "budgets": ["20/month"], "rpm": 60})
    assert made.status == 201
    secret, key = made.json["secret"], made.json["key"]
    assert (key["name"], key["state"], key["rpm"]) == ("ci", "active", 60)
    assert key["budgets"][0]["budget"] == "20/month"
    assert chat(served, secret) == 200
    listed = browser.get("/api/keys")
    assert secret not in listed.body.decode()
    assert [one["requests_today"] for one in listed.json["keys"]] == [1]
    assert browser.post("/api/keys", {"name": "ci"}).status == 400
    assert browser.post("/api/keys", {"name": "odd name"}).status == 400
    assert browser.post("/api/keys", {"name": "x", "budgets": ["lots"]}).status == 400
    changed = browser.post(f"/api/keys/{key['id']}", {"rpm": 5, "scopes": ["console:read"]})
    assert (changed.json["key"]["rpm"], changed.json["key"]["budgets"] != []) == (5, True)
    assert browser.post(f"/api/keys/{key['id']}", {"rpm": -5}).status == 400
    reader = {"authorization": f"Bearer {secret}"}
    assert fetch(served.origin, "GET", "/api/usage", None, reader).status == 200
    assert fetch(served.origin, "POST", "/api/reload", {}, reader).status == 403
    rotated = browser.post(f"/api/keys/{key['id']}/rotate").json
    assert rotated["secret"] != secret
    assert rotated["key"]["old_until"] > time.time()
    assert browser.post(f"/api/keys/{key['id']}/revoke").json["key"]["state"] == "revoked"
    assert chat(served, rotated["secret"]) == 401
    assert browser.get("/api/keys").json["keys"] == []
    assert len(browser.get("/api/keys?all=1").json["keys"]) == 1
    assert browser.post(f"/api/keys/{key['id']}/rotate").status == 409
    assert browser.get("/api/keys/nothing").status == 404


def test_usage_is_summed_by_day_key_and_model(served: ServedGateway, browser: Browser):
    before = browser.get("/api/usage").json["total"]["requests"]
    assert chat(served, TOKEN) == 200
    report = browser.get("/api/usage?by=day,key,model").json
    total = report["total"]
    assert (total["requests"], len(report["days"])) == (before + 1, 30)
    assert total["p50"] > 0
    row = next(one for one in report["rows"] if one["key"] == "admin")
    assert (row["model"], row["day"]) == ("upstream/served-model", report["until"])
    assert sum(one["requests"] for one in report["days"]) == total["requests"]
    only = browser.get("/api/usage?by=key&key=admin").json["rows"]
    assert [one["key"] for one in only] == ["admin"]
    assert browser.get("/api/usage?key=nothing").json["rows"] == []
    csv = browser.get("/api/usage?by=model&format=csv")
    assert csv.body.decode().splitlines()[0].startswith("model,requests,errors,input")
    for query in ("by=odd", "since=never", "since=2026-01-02&until=2026-01-01"):
        assert browser.get(f"/api/usage?{query}").status == 400


def test_models_say_their_state_and_are_tested(served: ServedGateway, browser: Browser):
    assert chat(served, TOKEN) == 200
    report = browser.get("/api/models").json
    row = report["deployments"][0]
    assert (row["name"], row["state"]) == ("upstream/served-model", "ready")
    assert row["style"]["style"] == "native"
    assert row["requests"] > 0
    assert {"openai", "anthropic", "google"} <= {one["name"] for one in report["providers"]}
    assert report["names"][0]["id"] == "served-model"
    result = browser.post("/api/models/test", {"model": "served-model"}).json
    assert (result["ok"], result["call"]["name"]) == (True, "get_weather")
    assert json.loads(result["call"]["arguments"]) == {"city": "Paris"}
    assert browser.post("/api/models/test", {}).status == 400


def test_settings_have_their_origin_and_comments_stay(tmp_path: Path):
    with ServedGateway("openai-chat", [reply("ok", default=True)], home=tmp_path) as served:
        browser = Browser(served.origin, TOKEN)
        listed = browser.get("/api/settings").json
        row = next(one for one in listed["settings"] if one["key"] == "gateway.record")
        assert (row["origin"], row["type"], row["needs"]) == ("default", "enum", "none")
        assert set(row["choices"]) == {"off", "meta", "full"}
        user = Path(next(one["path"] for one in listed["files"] if one["layer"] == "user"))
        user.parent.mkdir(parents=True, exist_ok=True)
        user.write_text('# mine\ntool_style = "auto"  # stays\n')
        changed = browser.post("/api/settings", {"key": "gateway.queue", "value": 5}).json
        assert (changed["setting"]["value"], changed["needs"]) == (5, "none")
        assert str(user) in changed["setting"]["origin"]
        assert browser.post("/api/settings", {"key": "gateway.port", "text": "1"}).status == 200
        text = user.read_text()
        assert "# mine" in text
        assert "# stays" in text
        assert "queue = 5" in text
        assert browser.post("/api/settings", {"key": "gateway.queue", "unset": True}).status == 200
        assert "queue = 5" not in user.read_text()
        for body in ({"key": "odd.key", "value": 1}, {"key": "gateway.queue", "value": "x"}, {}):
            assert browser.post("/api/settings", body).status == 400
        style = browser.post("/api/settings/style", {"style": "xml", "model": None}).json
        assert (style["setting"], style["now"]["style"]) == ("xml", "xml")
        assert 'tool_style = "xml"' in user.read_text()
        assert browser.post("/api/reload").json["problem"] == ""


def test_the_style_control_shows_reason_warning_and_preview(
    served: ServedGateway, browser: Browser
):
    report = browser.get("/api/settings/style?model=google/gemini-2.5-pro").json
    assert report["now"]["style"] == "native"
    assert "native tool calls are known to work" in report["now"]["reason"]
    assert [one["style"] for one in report["options"]] == ["auto", "xml", "native", "json"]
    assert "<read_file>" in report["preview"]["xml"]
    assert "functionDeclarations" in report["preview"]["native"]
    assert "read_file" in report["preview"]["json"]
    unknown = browser.get("/api/settings/style?model=deepinfra/unknown-model").json
    native = next(one for one in unknown["options"] if one["style"] == "native")
    assert (native["warning"] != "") == (unknown["options"][0]["style_then"] != "native")
    assert browser.get("/api/settings/style?model=nosuch/x").status == 400


def test_suites_of_every_format_pass(served: ServedGateway, browser: Browser):
    assert browser.post("/api/conformance/run", {"format": "odd"}).status == 400
    assert browser.post("/api/conformance/run", {}).status == 202
    suites = awaited(lambda: _ended(browser.get("/api/conformance").json["suites"]))
    assert {one["format"] for one in suites} >= {"openai-chat", "anthropic-messages", "gemini"}
    assert [one for one in suites if one["failures"]] == []
    assert all(one["passed"] == one["total"] > 20 for one in suites)


def _ended(suites: list[Any]) -> list[Any]:
    return [] if any(one["running"] or not one["date"] for one in suites) else suites


def awaited(look: Any) -> Any:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_a_probe_has_findings_as_bytes(served: ServedGateway, browser: Browser):
    started = browser.post("/api/conformance/probe", {"model": "served-model"}).json["probe"]

    def look() -> Any:
        probe = browser.get(f"/api/conformance/probe/{started['id']}").json["probe"]
        return probe if probe["state"] != "running" else None

    probe = awaited(look)
    findings = {one["check"]: one for one in probe["findings"]}
    assert (probe["state"], len(findings)) == ("done", probe["of"])
    assert findings["stream"]["result"] == "ok"
    assert findings["length"]["result"] == "differs"
    assert json.loads(findings["forced_call"]["sent"])["tool_choice"] == "required"
    assert "get_weather" in findings["forced_call"]["received"]
    assert browser.get("/api/conformance/probe/none").status == 404


def test_the_playground_has_formats_tools_and_programs(served: ServedGateway, browser: Browser):
    found = browser.get("/api/playground").json
    tools = {one["name"] for one in found["tools"]}
    assert "read_file" in tools
    assert "write_file" not in tools
    refused = browser.post("/api/playground/tool", {"name": "write_file", "arguments": {}})
    assert refused.status == 400
    listed = browser.post(
        "/api/playground/tool", {"name": "list_directory", "arguments": {"dir_path": "."}}
    )
    assert listed.status == 200
    for form in ("openai-chat", "anthropic-messages", "gemini", "openai-responses"):
        for language in ("curl", "python", "typescript"):
            body = {"format": form, "language": language, "body": {"a": "it's"}, "model": "m"}
            text = browser.post("/api/playground/code", body).json["text"]
            assert served.origin in text
            assert "TOOLWIRE_TOKEN" in text


def test_the_status_names_the_gateway(served: ServedGateway, browser: Browser):
    found = browser.get("/api/status").json
    assert (found["origin"], found["recording"]) == (served.origin, "meta")


def test_the_description_has_every_route(served: ServedGateway, browser: Browser):
    document = browser.get("/api/openapi.json").json
    named = {(path, method) for path, one in document["paths"].items() for method in one}
    assert named == {(f"/api{one.path}", one.method.lower()) for one in table()}
    needed = (
        *("/requests", "/requests/{id}", "/requests/{id}/stage/{n}", "/requests/{id}/cancel"),
        *("/live", "/sessions", "/sessions/{id}/say", "/sessions/{id}/stop"),
        *("/sessions/{id}/fork", "/questions", "/questions/{id}", "/models", "/models/test"),
        *("/keys", "/usage", "/conformance", "/settings", "/reload", "/login", "/logout"),
    )
    assert {f"/api{one}" for one in needed} <= set(document["paths"])
    assert document == json.loads(json.dumps(described(table())))
    stored = Path("docs/console.openapi.json").read_text()
    assert json.loads(stored) == document, "run make docs"
    references = set(_references(document))
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references <= known


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from _references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _references(one)
