"""Requests in the console of a real gateway: list, stages, live stream, and what it never shows."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.console.browser import Browser, fetch
from toolwire.client.record import ReplayTransport
from toolwire.simulator import Call, Fault, Think, replies, reply

UPSTREAM_KEY = "sk-upstream-sentinel-0123456789"
TOOL = {
    "name": "read_file",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
ASKED: dict[str, Any] = {
    "model": "claude-x",
    "max_tokens": 100,
    "system": "be brief",
    "tools": [TOOL],
    "messages": [
        {"role": "user", "content": "read it"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "on it"},
                {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "the file"}],
        },
    ],
}


def at(document: Any, pointer: str) -> Any:
    """What a JSON pointer points at."""
    for part in pointer.split("/")[1:]:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def ask(served: ServedGateway, body: dict[str, Any] = ASKED, **headers: str) -> str:
    """Sends a request of Claude Code; returns its id."""
    fields = {"x-api-key": TOKEN, "user-agent": "claude-cli/2.1", **headers}
    got = fetch(served.origin, "POST", "/v1/messages", body, fields)
    return got.fields["x-request-id"]


def ask_and_lose(served: ServedGateway, body: dict[str, Any]) -> None:
    """Sends a request whose answer is cut."""
    with contextlib.suppress(http.client.IncompleteRead):
        ask(served, body)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedGateway]:
    script = [reply("done now", Call.of("read_file", path="b"), default=True)]
    home = tmp_path_factory.mktemp("home")
    with ServedGateway(
        "gemini",
        script,
        home=home,
        record="full",
        upstream_key=UPSTREAM_KEY,
        model="gemini-2.5-pro",
    ) as one:
        yield one


@pytest.fixture(scope="module")
def browser(served: ServedGateway) -> Browser:
    return Browser(served.origin, TOKEN)


def test_the_same_call_is_found_in_all_stages(served: ServedGateway, browser: Browser):
    request = ask(served, {**ASKED, "stream": True})
    detail = browser.get(f"/api/requests/{request}").json
    assert [one["available"] for one in detail["stages"]] == [True] * 5
    stages = {n: browser.get(f"/api/requests/{request}/stage/{n}").json for n in range(1, 6)}
    documents = {n: json.loads(stages[n]["text"]) for n in (1, 2, 3)}
    part = next(one for one in detail["parts"] if one["key"] == "call:1")
    first, middle, third = (at(documents[n], part["at"][str(n)][0]) for n in (1, 2, 3))
    assert first == ASKED["messages"][1]["content"][1]
    assert (middle["type"], middle["name"], middle["id"]) == ("tool_call", "read_file", "toolu_1")
    assert third["functionCall"]["args"] == {"path": "a"}
    result = next(one for one in detail["parts"] if one["kind"] == "result")
    assert at(documents[1], result["at"]["1"][0])["content"] == "the file"
    assert "functionResponse" in at(documents[3], result["at"]["3"][0])
    answered = next(one for one in detail["parts"] if one["key"] == "answer:call:1")
    for n in (4, 5):
        frames = [stages[n]["frames"][i] for i in answered["frames"][str(n)]]
        text = "".join(stages[n]["text"].encode()[f["start"] : f["end"]].decode() for f in frames)
        assert "read_file" in text
    assert {"system:1", "tool:1", "text:1", "answer:text:1"} <= {p["key"] for p in detail["parts"]}


def test_stages_show_heads_without_secrets(served: ServedGateway, browser: Browser):
    request = ask(served, {**ASKED, "metadata": {"user_id": f"x {TOKEN} y"}})
    texts = [browser.get(f"/api/requests/{request}/stage/{n}").body.decode() for n in range(1, 6)]
    texts.append(browser.get(f"/api/requests/{request}/exchange").body.decode())
    texts.append(browser.get(f"/api/requests/{request}/curl").body.decode())
    texts.append(browser.get("/api/requests").body.decode())
    assert not [text for text in texts if TOKEN in text or UPSTREAM_KEY in text]
    first = json.loads(texts[0])
    assert first["head"]["line"] == "POST /v1/messages HTTP/1.1"
    assert ["x-api-key", "[hidden]"] in first["head"]["fields"]
    assert first["size"] == len(json.dumps({**ASKED, "metadata": {"user_id": f"x {TOKEN} y"}}))
    third = json.loads(texts[2])
    assert "/models/gemini-2.5-pro:generateContent" in third["head"]["line"]
    assert "$TOOLWIRE_TOKEN" in json.loads(texts[6])["text"]


def test_bodies_come_in_pages_and_as_files(served: ServedGateway, browser: Browser):
    request = ask(served, {**ASKED, "system": "ü" * 5000})
    page = browser.get(f"/api/requests/{request}/stage/1?from=10&size=100").json
    assert (page["from"], page["truncated"], page["document"]) == (10, True, True)
    assert len(page["text"].encode()) <= 104
    whole = browser.get(f"/api/requests/{request}/stage/1?download=1")
    assert json.loads(whole.body)["system"] == "ü" * 5000
    assert "attachment" in whole.fields["content-disposition"]
    assert browser.get(f"/api/requests/{request}/stage/6").status == 404
    assert browser.get("/api/requests/req_unknown/stage/1").status == 404


def test_an_exchange_can_be_replayed(served: ServedGateway, browser: Browser):
    request = ask(served)
    lines = browser.get(f"/api/requests/{request}/exchange").body.decode().splitlines()
    ReplayTransport(lines)
    recorded = json.loads(lines[0])
    assert (recorded["end"], recorded["response"]["status"]) == ("complete", 200)


def test_what_memory_put_back_is_named(tmp_path: Path):
    script = [reply(Think("Look."), Call.of("read_file", path="b")), reply("done")]
    with ServedGateway(
        "gemini", script, home=tmp_path, record="full", model="gemini-3-pro-preview"
    ) as served:
        browser = Browser(served.origin, TOKEN)
        fields = {"x-api-key": TOKEN, "user-agent": "claude-cli/2.1"}
        first = {**ASKED, "messages": ASKED["messages"][:1]}
        got = fetch(served.origin, "POST", "/v1/messages", first, fields)
        (call,) = [one for one in got.json["content"] if one["type"] == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "text"}
        # The client keeps the call alone, without the model's reasoning.
        later = (
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        )
        asked = ask(served, {**first, "messages": [*first["messages"], *later]})
        found = browser.get(f"/api/requests/{asked}").json
        words = [one["text"] for one in found["reattached"]]
        assert any("thoughtSignature" in one and "1 turn ago" in one for one in words), words


def test_two_requests_are_compared(served: ServedGateway, browser: Browser):
    one, other = ask(served), ask(served, {**ASKED, "max_tokens": 101})
    found = browser.get(f"/api/requests/compare?a={one}&b={other}").json
    assert (found["same"], found["messages_equal"]) == (False, 3)
    assert found["a_context"] != found["b_context"]
    assert found["path"] == "generationConfig.maxOutputTokens"
    assert browser.get(f"/api/requests/compare?a={one}&b={one}").json["same"]


def test_the_list_is_filtered_and_turned_over(served: ServedGateway, browser: Browser):
    made = [ask(served) for _ in range(5)]
    page = browser.get("/api/requests?limit=2&client=claude-code").json
    assert [row["id"] for row in page["requests"]] == made[::-1][:2]
    later = browser.get(f"/api/requests?limit=2&before={page['next']}").json
    assert [row["id"] for row in later["requests"]] == made[::-1][2:4]
    row = page["requests"][0]
    assert (row["client"], row["provider"], row["status"]) == ("claude-code", "upstream", 200)
    assert (row["client_format"], row["upstream_format"]) == ("anthropic-messages", "gemini")
    for query in ("client=nothing", "status=5xx", "state=failed", "min_cost=1000", "loss=99"):
        assert browser.get(f"/api/requests?{query}").json["requests"] == []
    for query in ("q=gemini-2", "status=ok", "status=2xx", "status=200", "state=done"):
        assert browser.get(f"/api/requests?limit=1&{query}").json["requests"][0]["id"] == made[-1]
    for query in ("status=nine", "state=odd", "loss=x", "before=x", "limit=-1"):
        assert browser.get(f"/api/requests?{query}").status == 400


def test_older_requests_come_from_the_ledger(tmp_path: Path):
    with ServedGateway("openai-chat", replies("hi", "hi"), home=tmp_path) as served:
        request = ask(served)
        other = ask(served)
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path) as served:
        newest = ask(served)
        browser = Browser(served.origin, TOKEN)
        rows = browser.get("/api/requests").json["requests"]
        assert [row["id"] for row in rows] == [newest, other, request]
        assert [row["here"] for row in rows] == [True, False, False]
        assert browser.get("/api/requests?limit=1&client=claude").json["next"]
        detail = browser.get(f"/api/requests/{request}").json
        assert (detail["request"]["status"], detail["stages"][0]["available"]) == (200, False)
        filtered = browser.get("/api/requests?status=ok&client=claude&q=claude-x&limit=9").json
        assert len(filtered["requests"]) == 3


def test_with_meta_only_shapes_are_shown_and_it_says_why(tmp_path: Path):
    with ServedGateway("openai-chat", replies("secret answer"), home=tmp_path) as served:
        request = ask(served)
        browser = Browser(served.origin, TOKEN)
        stage = browser.get(f"/api/requests/{request}/stage/1").json
        assert (stage["recorded"], stage["text"]) == ("meta", None)
        assert 'gateway.record is "meta"' in stage["why"]
        assert stage["shape"]["tools"][0]["name"] == "read_file"
        assert [one["role"] for one in stage["shape"]["messages"]] == ["user", "assistant", "user"]
        assert browser.get(f"/api/requests/{request}/exchange").status == 409
        shown = [f"/api/requests/{request}/stage/{n}" for n in range(1, 6)]
        for path in (*shown, f"/api/requests/{request}", "/api/requests"):
            assert b"secret answer" not in browser.get(path).body
            assert b"the file" not in browser.get(path).body


def test_the_playground_may_record_one_request_in_full(tmp_path: Path):
    with ServedGateway("openai-chat", replies("hi", "hi"), home=tmp_path) as served:
        browser = Browser(served.origin, TOKEN)
        got = browser.post("/v1/messages", ASKED, toolwire_record="full", toolwire_style="xml")
        request = got.fields["x-request-id"]
        sent = browser.get(f"/api/requests/{request}/stage/3").json["text"]
        assert "tools" not in json.loads(sent)
        assert "<read_file>" in sent
        assert browser.post("/v1/messages", ASKED, toolwire_style="odd").status == 404


def test_live_events_resume_without_gaps_or_doubles(served: ServedGateway, browser: Browser):
    with browser.events("/api/live") as events:
        hello = events.until("hello").data
        first = ask(served)
        found: dict[str, list[Any]] = {}
        last = 0
        for event in events:
            if event.name == "requests":
                last = int(event.id)
                for row in event.data["requests"]:
                    found.setdefault(row["id"], []).append(row)
                if found[first][-1]["state"] != "running":
                    break
    numbers = [row["n"] for rows in found.values() for row in rows]
    assert len(numbers) == len(set(numbers))
    assert min(numbers) > hello["n"]
    second, third = ask(served), ask(served)
    with browser.events(f"/api/live?after={hello['n']}", last_event_id=str(last)) as events:
        rows = events.until("requests").data["requests"]
    assert [row["id"] for row in rows] == [second, third]


def test_a_stream_resumes_after_a_restart_from_the_ledger(tmp_path: Path):
    with ServedGateway("openai-chat", replies("hi", "hi"), home=tmp_path) as served:
        browser = Browser(served.origin, TOKEN)
        with browser.events("/api/live") as events:
            n = events.until("hello").data["n"]
        missed = ask(served)
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path) as served:
        again = Browser(served.origin, cookie=browser.cookie, csrf=browser.csrf)
        with again.events(f"/api/live?after={n}") as events:
            found = events.until("requests")
            assert [row["id"] for row in found.data["requests"]] == [missed]
        with again.events("/api/live", last_event_id=found.id) as events:
            hello = events.until("hello").data
            assert hello["running"] == []
            new = ask(served)
            assert [r["id"] for r in events.until("requests").data["requests"]] == [new]


def test_a_running_request_is_seen_and_cancelled(tmp_path: Path):
    script = [reply("one " * 50, fault=Fault(wait_each=2.0))]
    with ServedGateway("openai-chat", script, home=tmp_path, record="full") as served:
        browser = Browser(served.origin, TOKEN)
        body = {**ASKED, "stream": True}
        thread = threading.Thread(target=ask_and_lose, args=(served, body))
        thread.start()
        until = time.monotonic() + 30
        rows: list[Any] = []
        while time.monotonic() < until and not (rows and rows[0]["phase"] == "streaming"):
            rows = browser.get("/api/requests?state=running").json["requests"]
        request = rows[0]["id"]
        assert browser.get(f"/api/requests/{request}/stage/5").json["text"].count("one")
        assert browser.post(f"/api/requests/{request}/cancel").status == 202
        thread.join(30)
        row = browser.get(f"/api/requests/{request}").json["request"]
        assert row["state"] == "cancelled"
        assert browser.post(f"/api/requests/{request}/cancel").status == 409


def test_failed_attempts_are_listed(tmp_path: Path):
    script = [reply(fault=Fault(status=429)), reply("hi")]
    with ServedGateway("openai-chat", script, home=tmp_path, record="full") as served:
        browser = Browser(served.origin, TOKEN)
        detail = browser.get(f"/api/requests/{ask(served)}").json
        assert [one["status"] for one in detail["attempts"]] == [429, 200]
        assert browser.get(f"/api/requests/{detail['request']['id']}/stage/4?attempt=1").json["n"]


def test_readers_may_only_read(served: ServedGateway):
    bare = fetch(served.origin, "GET", "/api/requests")
    assert (bare.status, bare.error) == (401, "not logged in")
    admin = {"authorization": f"Bearer {TOKEN}"}
    assert fetch(served.origin, "GET", "/api/requests", None, admin).status == 200
    wrong = {"authorization": "Bearer wrong"}
    assert fetch(served.origin, "GET", "/api/requests", None, wrong).status == 401
