"""A client that goes away: its upstream request is dropped at once."""

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from toolwire.simulator import Fault, Received, reply

USER = [{"role": "user", "content": "hi"}]
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
FORMATS: dict[str, tuple[str, str, Any]] = {
    "openai-chat": ("/v1/chat/completions", "", {"model": "m", "messages": USER}),
    "openai-responses": ("/v1/responses", "", {"model": "m", "input": "hi"}),
    "anthropic-messages": ("/v1/messages", "", {"model": "m", "max_tokens": 9, "messages": USER}),
    "gemini": ("/v1beta/models/m:generateContent", ":streamGenerateContent?alt=sse", CONTENTS),
}
WORDS = "one two three four five six seven eight"
STATES = {
    "held": (True, Fault(wait_first=60)),
    "streaming": (True, Fault(hang_after=2)),
    "whole": (False, Fault(wait_first=60)),
}


def send(origin: str, client: str, *, stream: bool) -> socket.socket:
    path, streamed, body = FORMATS[client]
    if streamed:
        path = path.replace(":generateContent", streamed) if stream else path
    elif stream:
        body = {**body, "stream": True}
    data = json.dumps(body).encode()
    host = origin.partition("://")[2]
    one = socket.create_connection(("127.0.0.1", int(host.partition(":")[2])), timeout=60)
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nx-api-key: {TOKEN}\r\n"
    one.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return one


async def left(received: Received) -> float:
    async with asyncio.timeout(30):
        await received.left.wait()
    return time.monotonic()


def until(done: Any) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("client", FORMATS)
@pytest.mark.parametrize("state", STATES)
def test_the_upstream_sees_the_end_at_once(client: str, state: str, tmp_path: Path):
    stream, fault = STATES[state]
    with ServedGateway("openai-chat", [reply(WORDS, fault=fault)], home=tmp_path) as served:
        one = send(served.origin, client, stream=stream)
        until(lambda: served.received)
        [received] = served.received
        if state == "streaming":
            assert one.recv(100)
        gone = time.monotonic()
        one.close()
        took = served.do(left(received)) - gone
        assert not received.finished
        # 100 ms on an idle machine; a loaded one may be late by itself.
        assert took < 5
        until(lambda: served.records)
        assert served.records[0].disconnected == state
        assert served.running.gateway.open_calls == 0


def test_a_request_in_the_queue_is_dropped_too(tmp_path: Path):
    script = [reply(WORDS, fault=Fault(wait_first=60)), reply("never")]
    with ServedGateway("openai-chat", script, home=tmp_path, max_requests=1) as served:
        first = send(served.origin, "anthropic-messages", stream=False)
        until(lambda: served.received)
        second = send(served.origin, "anthropic-messages", stream=True)
        until(lambda: served.running.gateway.open_calls == 2)
        second.close()
        until(lambda: served.running.gateway.open_calls == 1)
        assert len(served.received) == 1
        first.close()
        until(lambda: served.running.gateway.open_calls == 0)
        assert len(served.received) == 1
