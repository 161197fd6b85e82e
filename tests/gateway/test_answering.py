import gc
import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.test_operations import until
from toolwire.gateway.answering import ModelCall
from toolwire.request import ModelRequest
from toolwire.simulator import Call, Reply, Say, Think

UPSTREAMS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini", "code-assist")
_FREED = (ModelCall, ModelRequest)
USER = [{"role": "user", "content": "Hi"}]
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", {"model": "m", "messages": USER}),
    "openai-responses": ("/v1/responses", {"model": "m", "input": "Hi"}),
    "anthropic-messages": ("/v1/messages", {"model": "m", "max_tokens": 99, "messages": USER}),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    ),
    "code-assist": (
        "/v1internal:generateContent",
        {"model": "m", "request": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}},
    ),
}


def post(
    served: ServedGateway, path: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    host = served.origin.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=60)
    given = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, data, given | (headers or {}))
    answer = connection.getresponse()
    found = answer.read()
    fields = {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    return answer.status, fields, found


def streamed(dialect: str) -> tuple[str, dict[str, Any]]:
    path, body = REQUESTS[dialect]
    if "generateContent" in path:
        return path.replace("generateContent", "streamGenerateContent") + "?alt=sse", body
    return path, {**body, "stream": True}


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_every_client_format_is_answered(upstream: str, tmp_path: Path):
    replies = [Reply(pieces=(Think("hm"), Say("Hello"))) for _ in range(2 * len(REQUESTS))]
    with ServedGateway(upstream, replies, home=tmp_path) as served:
        for dialect in REQUESTS:
            for path, body in (REQUESTS[dialect], streamed(dialect)):
                status, fields, answer = post(served, path, body)
                assert status == 200, answer
                assert b"Hello" in answer
                assert fields["x-request-id"] == fields["request-id"] == served.records[-1].id
                assert fields["toolwire-route"] == "upstream/m"
        assert served.simulator.refusals == []
        assert [record.status for record in served.records] == [200] * 10
        assert {record.stop_reason for record in served.records} == {"end"}


def test_a_call_goes_through(tmp_path: Path):
    replies = [Reply(pieces=(Call(name="f", arguments='{"a":1}'),))]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    with ServedGateway("anthropic-messages", replies, home=tmp_path) as served:
        path, body = REQUESTS["openai-chat"]
        status, _, answer = post(served, path, {**body, "tools": [tool]})
        assert status == 200
        [call] = json.loads(answer)["choices"][0]["message"]["tool_calls"]
        assert call["function"] == {"name": "f", "arguments": '{"a":1}'}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", ["anthropic-messages", "openai-responses"])
def test_a_request_leaves_nothing_for_the_garbage_collector(
    client: str, stream: bool, tmp_path: Path
):
    path, body = REQUESTS[client]
    script = [Reply(pieces=(Say("hello"),))] * 2
    with ServedGateway("openai-chat", script, home=tmp_path) as served:
        # The first one loads modules.
        assert post(served, path, {**body, "stream": stream})[0] == 200
        gc.collect()
        # Another test of this process may have kept some.
        others = [one for one in gc.get_objects() if isinstance(one, _FREED)]
        known = {id(one) for one in others}
        gc.disable()
        try:
            assert post(served, path, {**body, "stream": stream})[0] == 200
            until(
                lambda: (
                    not any(
                        isinstance(one, _FREED) and id(one) not in known for one in gc.get_objects()
                    )
                )
            )
        finally:
            gc.enable()
