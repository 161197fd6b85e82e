"""Answers of the client's own format pass byte for byte; everything else goes on as usual."""

import http.client
import json
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN
from tests.fakes.maker import Bytes, MakerGateway
from tests.fakes.simulated import LONGEST
from tests.gateway.test_answering import REQUESTS, post, streamed
from toolwire.gateway.compaction import compaction_item

JSON = "application/json"


def frame(value: object, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()


def chunk(delta: Any, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None, "new_member": {"x": 1}, **more}
    return frame({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "brand_new": [1, {"deep": None}],
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
            ],
        }
    ],
    "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
}
STREAMS: dict[str, list[bytes]] = {
    "openai-chat": [
        b": a comment\n\n",
        chunk({"role": "assistant", "content": ""}, logprobs={"content": []}),
        chunk({"content": "Hel"}, logprobs={"content": [{"token": "Hel", "logprob": -0.25}]}),
        chunk({"content": "two"}, index=1),
        chunk({"content": "lo"}) + b"event: something.new\ndata: {}\n\n",
        chunk({}, finish_reason="stop") + chunk({}, index=1, finish_reason="stop"),
        frame({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}),
        b"data: [DONE]\n\n",
    ],
    "openai-responses": [
        frame({"type": "response.created", "response": {"id": "resp_1"}}, "response.created"),
        frame({"type": "response.never_seen", "what": "?"}, "response.never_seen"),
        frame(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"id": "msg_1", "type": "message", "role": "assistant", "content": []},
            },
            "response.output_item.added",
        ),
        frame(
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "content_index": 0,
                "item_id": "msg_1",
                "delta": "Hello",
                "obfuscation": "xyz",
            },
            "response.output_text.delta",
        ),
        frame(
            {"type": "response.output_item.done", "output_index": 0, "item": RESPONSE["output"][0]},
            "response.output_item.done",
        ),
        frame({"type": "response.completed", "response": RESPONSE}, "response.completed"),
    ],
    "anthropic-messages": [
        frame(
            {
                "type": "message_start",
                "message": {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "m",
                    "content": [],
                    "usage": {"input_tokens": 9, "output_tokens": 1},
                    "container": None,
                },
            },
            "message_start",
        ),
        frame({"type": "ping"}, "ping"),
        frame(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            "content_block_start",
        ),
        frame(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "Hello", "more": True},
            },
            "content_block_delta",
        ),
        frame({"type": "brand_new_event", "value": 2**60}, "brand_new_event"),
        frame({"type": "content_block_stop", "index": 0}, "content_block_stop"),
        frame(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 3},
            },
            "message_delta",
        ),
        frame({"type": "message_stop"}, "message_stop"),
    ],
    "gemini": [
        frame(
            {
                "candidates": [
                    {"content": {"role": "model", "parts": [{"text": "Hel"}]}, "avgLogprobs": -0.5}
                ],
                "createTime": "now",
            }
        ),
        frame(
            {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": "lo"}]},
                        "finishReason": "STOP",
                    }
                ],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
            }
        ),
    ],
}
WHOLES: dict[str, Any] = {
    "openai-chat": {
        "id": "c1",
        "object": "chat.completion",
        "model": "m",
        "system_fingerprint": "fp",
        "choices": [
            {
                "index": n,
                "finish_reason": "stop",
                "logprobs": {"content": [], "refusal": None},
                "message": {"role": "assistant", "content": f"Hello {n}", "annotations": []},
            }
            for n in range(3)
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3},
    },
    "openai-responses": RESPONSE,
    "anthropic-messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hello", "citations": None}],
        "stop_reason": "end_turn",
        "container": {"id": "c"},
        "usage": {"input_tokens": 9, "output_tokens": 3},
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "Hello"}]},
                "finishReason": "STOP",
                "avgLogprobs": -1,
            }
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
        "responseId": "r1",
    },
}


@pytest.fixture(scope="module", params=tuple(STREAMS))
def maker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[str, MakerGateway]]:
    with MakerGateway(request.param, home=tmp_path_factory.mktemp("home")) as served:
        yield request.param, served


def asked_for(dialect: str) -> tuple[str, dict[str, Any]]:
    path, body = streamed(dialect)
    if dialect == "openai-chat":
        body = {**body, "stream_options": {"include_usage": True}}
    return path, body


def test_a_stream_passes_byte_for_byte(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    # Cut anywhere: in frames, between them, and several at once.
    whole = b"".join(STREAMS[dialect])
    for size in (7, 1000, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        limits = (
            ("x-ratelimit-remaining", "5"),
            ("set-cookie", "a=b"),
            ("openai-organization", "o"),
        )
        served.answers.append(Bytes(pieces, headers=limits))
        status, fields, answer = post(served, *asked_for(dialect))
        assert (status, answer) == (200, whole)
        assert fields["x-ratelimit-remaining"] == "5"
        assert not {"set-cookie", "openai-organization"} & fields.keys()
        record = served.records[-1]
        assert (record.usage.input, record.usage.output, record.stop_reason) == (9, 3, "end")
        assert not record.usage_estimated


def test_a_whole_answer_passes_byte_for_byte(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    body = json.dumps(WHOLES[dialect], indent=1).encode()
    served.answers.append(Bytes([body[:9], body[9:]], kind="application/json; charset=utf-8"))
    status, _, answer = post(served, *REQUESTS[dialect])
    assert (status, answer) == (200, body)
    assert (served.records[-1].usage.input, served.records[-1].usage.output) == (9, 3)


def test_a_cut_stream_has_no_end(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    pieces = STREAMS[dialect][: 1 if dialect == "gemini" else 4]
    served.answers.append(Bytes(pieces, cut=True))
    connection = http.client.HTTPConnection(served.origin.removeprefix("http://"), timeout=60)
    path, body = asked_for(dialect)
    headers = {"authorization": f"Bearer {TOKEN}"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    with pytest.raises(http.client.IncompleteRead) as broken:
        answer.read()
    connection.close()
    assert broken.value.partial.startswith(b"".join(pieces))
    assert b"error" in broken.value.partial[len(b"".join(pieces)) :]
    assert served.records[-1].error
    assert served.records[-1].usage.output


def test_an_error_before_the_stream_is_a_status(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    refused = Bytes([b'{"error": {"message": "no such thing"}}'], 400, "application/json")
    served.answers.append(refused)
    status, _, answer = post(served, *asked_for(dialect))
    assert status == 400
    assert b"no such thing" in answer


def test_a_retry_is_not_seen(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    busy = Bytes([b"{}"], 429, "application/json", (("retry-after", "0"),))
    served.answers += [busy, Bytes(STREAMS[dialect])]
    status, _, answer = post(served, *asked_for(dialect))
    assert (status, answer) == (200, b"".join(STREAMS[dialect]))
    assert served.records[-1].retries == 1


def test_a_client_that_leaves_stops_the_server(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    served.left.clear()
    pause = threading.Event()
    first = STREAMS[dialect][0] if dialect == "gemini" else b"".join(STREAMS[dialect][:4])
    endless = [b": more\n\n" * 4096] * 4096
    served.answers.append(Bytes([first, lambda: pause.wait(LONGEST), *endless]))
    connection = http.client.HTTPConnection(served.origin.removeprefix("http://"), timeout=60)
    path, body = asked_for(dialect)
    connection.request("POST", path, json.dumps(body), {"authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    assert answer.read1(10)
    answer.close()
    connection.close()
    pause.set()
    assert served.left.wait(LONGEST)
    until = threading.Event()
    for _ in range(200):
        if served.records and served.records[-1].disconnected:
            break
        until.wait(0.05)
    assert served.records[-1].disconnected == "streaming"


def test_heartbeats_of_the_vendor_pass_at_once(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    seen, got = threading.Event(), bytearray()
    opening = STREAMS[dialect][0] if dialect == "gemini" else b"".join(STREAMS[dialect][:4])
    beat = b": still there\n\n"
    rest = b"".join(STREAMS[dialect]).removeprefix(opening)
    served.answers.append(Bytes([opening, beat, lambda: seen.wait(LONGEST), rest]))
    connection = http.client.HTTPConnection(served.origin.removeprefix("http://"), timeout=60)
    path, body = asked_for(dialect)
    connection.request("POST", path, json.dumps(body), {"authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    while beat not in got:
        got += answer.read1(65536)
    seen.set()
    got += answer.read()
    connection.close()
    assert bytes(got) == opening + beat + rest


def test_what_is_not_the_format_is_translated(maker: tuple[str, MakerGateway]):
    dialect, served = maker
    body = json.dumps(WHOLES[dialect]).encode()
    served.answers.append(Bytes([body], kind="application/json"))
    status, fields, answer = post(served, *asked_for(dialect))
    assert status == 200
    assert fields["content-type"].startswith("text/event-stream")
    assert b"Hello" in answer
    assert b"data: " in answer


def test_a_chat_client_gets_counts_only_on_request(tmp_path: Path):
    pieces = STREAMS["openai-chat"]
    whole = b"".join(pieces)
    with MakerGateway("openai-chat", home=tmp_path) as served:
        for size in (5, len(whole)):
            cuts = [whole[at : at + size] for at in range(0, len(whole), size)]
            served.answers.append(Bytes(cuts))
            status, _, answer = post(served, *streamed("openai-chat"))
            assert (status, answer) == (200, whole.replace(pieces[-2], b""))
            assert served.records[-1].usage.output == 3


@pytest.mark.parametrize("stream", [True, False])
def test_a_passed_response_can_be_continued_and_read(tmp_path: Path, stream: bool):
    with MakerGateway("openai-responses", home=tmp_path) as served:
        whole = json.dumps(RESPONSE).encode()
        answer = Bytes(STREAMS["openai-responses"]) if stream else Bytes([whole], kind=JSON)
        served.answers += [answer, Bytes([whole], kind=JSON)]
        assert post(served, "/v1/responses", {"input": "Hi", "stream": stream})[0] == 200
        more = {"input": "and?", "previous_response_id": "resp_1"}
        assert post(served, "/v1/responses", more)[0] == 200
        sent = json.loads(served.asked[-1].body)
        assert "previous_response_id" not in sent
        assert [one["role"] for one in sent["input"]] == ["user", "assistant", "user"]
        connection = http.client.HTTPConnection(served.origin.removeprefix("http://"), timeout=60)
        connection.request("GET", "/v1/responses/resp_1", headers={"x-api-key": TOKEN})
        assert json.loads(connection.getresponse().read()) == RESPONSE
        connection.close()


def test_another_server_of_the_format_is_translated(tmp_path: Path):
    with MakerGateway("openai-chat", home=tmp_path, faithful=False) as served:
        served.answers.append(Bytes(STREAMS["openai-chat"]))
        _, _, answer = post(served, *asked_for("openai-chat"))
        assert b"Hel" in answer
        assert b"new_member" not in answer


def test_a_renamed_tool_is_translated(tmp_path: Path):
    name = "a.tool.with.dots"
    tool = {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    path, body = asked_for("openai-chat")
    with MakerGateway("openai-chat", home=tmp_path, provider={"quirks": {"sampling": False}}) as it:
        it.answers.append(Bytes(STREAMS["openai-chat"]))
        status, _, answer = post(it, path, {**body, "tools": [tool]})
        sent = json.loads(it.asked[-1].body)["tools"][0]["function"]["name"]
        assert status == 200
        assert sent != name
        assert b"new_member" not in answer


def test_prompted_tools_are_translated(tmp_path: Path):
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    path, body = asked_for("openai-chat")
    with MakerGateway("openai-chat", home=tmp_path, provider={"native_tools": False}) as served:
        served.answers.append(Bytes(STREAMS["openai-chat"]))
        _, _, answer = post(served, path, {**body, "tools": [tool]})
        assert b"new_member" not in answer


COMPACTED = b'{"object": "response.compaction",  "output": [{"type": "compaction"}], "usage": {}}'


def test_the_maker_compacts_its_own_conversations(tmp_path: Path):
    items = [{"role": "user", "content": "Hi"}, {"type": "compaction", "encrypted_content": "gAAA"}]
    with MakerGateway("openai-responses", home=tmp_path) as served:
        served.answers.append(Bytes([COMPACTED], kind=JSON))
        status, _, answer = post(served, "/v1/responses/compact", {"model": "x", "input": items})
        assert (status, answer) == (200, COMPACTED)
        assert served.asked[-1].path == "/v1/responses/compact"
        assert json.loads(served.asked[-1].body) == {"model": "m", "input": items}
        served.answers.append(Bytes(STREAMS["openai-responses"]))
        triggered = [*items, {"type": "compaction_trigger"}]
        status, _, answer = post(served, "/v1/responses", {"input": triggered, "stream": True})
        assert (status, answer) == (200, b"".join(STREAMS["openai-responses"]))
        assert json.loads(served.asked[-1].body)["input"][-1] == {"type": "compaction_trigger"}


def test_a_compaction_of_the_gateway_is_not_sent_to_the_maker(tmp_path: Path):
    items = [{"role": "user", "content": "Hi"}, compaction_item("before", "cmp_1")]
    with MakerGateway("openai-responses", home=tmp_path) as served:
        served.answers.append(Bytes([json.dumps(RESPONSE).encode()], kind=JSON))
        status, _, answer = post(served, "/v1/responses/compact", {"model": "x", "input": items})
        assert status == 200, answer
        assert served.asked[-1].path == "/v1/responses"
        assert b"before" in served.asked[-1].body
