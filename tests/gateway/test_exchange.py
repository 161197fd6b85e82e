"""What a client sees of one request: waiting, heartbeats, errors, cuts and its own leaving."""

import json
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.test_answering import REQUESTS, post, streamed
from toolwire import dialects
from toolwire.dialects import DecodeOptions
from toolwire.errors import ToolwireError
from toolwire.events import Finished, TextDelta
from toolwire.messages import Origin
from toolwire.simulator import Fault, Reply, Say

FORMATS = tuple(REQUESTS)
HELLO = Reply(pieces=(Say("Hello"),))
PATIENCE = 60.0


def slow(**fault: Any) -> Reply:
    return Reply(pieces=(Say("Hello"), Say(" there")), fault=Fault(**fault))


def events_of(dialect: str, body: bytes) -> list[Any]:
    codec = dialects.get(dialect)
    options = DecodeOptions(new_id=lambda: "made", origin=Origin(codec.family))
    return list(dialects.decode_stream(codec, [body], options))


def text_of(events: list[Any]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@contextmanager
def opened(served: ServedGateway, path: str, body: Any) -> Generator[socket.socket]:
    """A raw connection with a request on it."""
    host, _, port = served.origin.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {TOKEN}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        client.sendall(head.encode() + data)
        yield client


def until(done: Any) -> None:
    """Waits for another thread."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


@pytest.mark.parametrize("dialect", FORMATS)
def test_a_long_silence_is_filled_with_events_of_the_format(dialect: str, tmp_path: Path):
    reply = slow(wait_first=0.4, wait_each=0.25)
    quick: dict[str, Any] = {"hold_seconds": 0.05, "heartbeat_seconds": 0.05}
    with ServedGateway("openai-chat", [reply], home=tmp_path, **quick) as served:
        status, fields, body = post(served, *streamed(dialect))
    assert status == 200
    assert fields["content-type"].startswith("text/event-stream")
    assert fields["cache-control"] == "no-cache"
    assert fields["x-accel-buffering"] == "no"
    assert b"\n:" not in body
    assert not body.startswith(b":")
    events = events_of(dialect, body)
    assert text_of(events) == "Hello there"
    frames = body.count(b"data: ")
    with ServedGateway("openai-chat", [slow()], home=tmp_path) as served:
        _, _, body = post(served, *streamed(dialect))
    assert frames > body.count(b"data: ")


@pytest.mark.parametrize("dialect", FORMATS)
def test_an_early_error_is_a_status_in_the_clients_format(dialect: str, tmp_path: Path):
    limited = Reply(fault=Fault(status=429, retry_after="7"))
    with ServedGateway(
        "anthropic-messages", [limited] * 2, home=tmp_path, hold_seconds=1
    ) as served:
        for path, body in (REQUESTS[dialect], streamed(dialect)):
            status, fields, answer = post(served, path, body)
            assert status == 429
            assert fields["content-type"] == "application/json"
            assert (fields["retry-after"], fields["retry-after-ms"]) == ("7", "7000")
            error = dialects.get(dialect).error(status, fields, answer)
            assert error.kind == "rate_limit"
        assert [record.error for record in served.records] == ["rate_limit"] * 2


def test_a_short_limit_is_waited_for_unseen(tmp_path: Path):
    replies = [Reply(fault=Fault(status=429, retry_after="0.05")), HELLO]
    with ServedGateway("gemini", replies, home=tmp_path) as served:
        status, _, answer = post(served, *REQUESTS["openai-chat"])
        assert (status, b"Hello" in answer) == (200, True)
        assert served.records[0].retries == 1


@pytest.mark.parametrize(
    ("upstream", "dialect", "status", "member", "value"),
    [
        (503, "anthropic-messages", 529, ("error", "type"), "overloaded_error"),
        (529, "openai-chat", 503, ("error", "code"), "overloaded"),
        (529, "gemini", 503, ("error", "status"), "UNAVAILABLE"),
        (401, "openai-chat", 502, ("error", "type"), "server_error"),
        (403, "anthropic-messages", 502, ("error", "type"), "api_error"),
        (402, "openai-responses", 429, ("error", "code"), "insufficient_quota"),
        (402, "anthropic-messages", 429, ("error", "type"), "billing_error"),
        (404, "openai-chat", 404, ("error", "code"), "model_not_found"),
        (404, "anthropic-messages", 404, ("error", "type"), "not_found_error"),
        (404, "gemini", 404, ("error", "status"), "NOT_FOUND"),
        (500, "openai-responses", 500, ("error", "type"), "server_error"),
        (504, "anthropic-messages", 504, ("error", "type"), "timeout_error"),
    ],
)
def test_errors_of_the_upstream_are_those_of_the_clients_vendor(
    upstream: int, dialect: str, status: int, member: tuple[str, str], value: str, tmp_path: Path
):
    # Retries are not what is tested: a server that asks for a longer wait than allowed gets none.
    refused = Reply(fault=Fault(status=upstream, retry_after="9"))
    source = "openai-chat" if dialect != "openai-chat" else "anthropic-messages"
    with ServedGateway(source, [refused] * 3, home=tmp_path, hold_seconds=0.1) as served:
        found, fields, answer = post(served, *REQUESTS[dialect])
    error: Any = json.loads(answer)
    for name in member:
        error = error[name]
    assert (found, error) == (status, value), answer
    if upstream in (401, 402, 403):
        assert fields["x-should-retry"] == "false"
    if upstream in (401, 403):
        assert b"the gateway's key for upstream was refused" in answer


def test_an_upstream_that_cannot_be_reached_is_a_bad_gateway(tmp_path: Path):
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        served.do(served.simulator.__aexit__())
        for dialect in FORMATS:
            status, _, answer = post(served, *REQUESTS[dialect])
            assert status == 502, answer
            assert json.loads(answer)["error"]


@pytest.mark.parametrize("dialect", FORMATS)
def test_a_late_error_is_an_event_and_never_an_end(dialect: str, tmp_path: Path):
    reply = Reply(
        pieces=(Say("Hello"), Say(" there")), fault=Fault(error_after=4, message="too much")
    )
    with (
        ServedGateway("anthropic-messages", [reply], home=tmp_path) as served,
        opened(served, *streamed(dialect)) as client,
    ):
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert not received.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in received
    assert b"message_stop" not in received
    assert b"response.completed" not in received
    assert b"too much" in received
    assert served.records[0].error == "overloaded"


@pytest.mark.parametrize("dialect", FORMATS)
def test_a_cut_upstream_is_a_cut_answer(dialect: str, tmp_path: Path):
    reply = Reply(pieces=(Say("Hello"), Say(" there")), fault=Fault(cut_events=3))
    with (
        ServedGateway("anthropic-messages", [reply], home=tmp_path) as served,
        opened(served, *streamed(dialect)) as client,
    ):
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert not received.endswith(b"0\r\n\r\n")
    body = received.partition(b"\r\n\r\n")[2]
    with pytest.raises(ToolwireError):
        events_of(dialect, b"".join(body.split(b"\r\n")[1::2]))


@pytest.mark.parametrize("phase", ["held", "streaming", "whole"])
@pytest.mark.parametrize("dialect", FORMATS)
def test_a_client_that_leaves_stops_the_upstream(dialect: str, phase: str, tmp_path: Path):
    reply = slow(hang_after=0 if phase != "streaming" else 4)
    path, body = REQUESTS[dialect] if phase == "whole" else streamed(dialect)
    with ServedGateway("anthropic-messages", [reply], home=tmp_path) as served:
        with opened(served, path, body) as client:
            if phase == "streaming":
                assert client.recv(1)
            until(lambda: served.received)
            upstream = served.received[0]
            assert not upstream.left.is_set()
        left = time.monotonic()
        until(upstream.left.is_set)
        assert time.monotonic() - left < PATIENCE
        until(lambda: served.records)
        assert served.records[0].disconnected == phase
        assert not upstream.finished


def test_a_slow_client_slows_the_upstream_and_loses_nothing(tmp_path: Path):
    # 30 MB: several times what the buffers of both connections hold while nobody reads.
    pieces = tuple(Say(f"{number:05}" * 20_000) for number in range(300))
    with ServedGateway(
        "openai-chat", [Reply(pieces=pieces, delta=1 << 20)], home=tmp_path
    ) as served:
        with opened(served, *streamed("anthropic-messages")) as client:
            until(lambda: served.received)
            time.sleep(0.3)
            assert not served.received[0].left.is_set()
            received = bytearray()
            while not received.endswith(b"0\r\n\r\n"):
                piece = client.recv(1 << 20)
                assert piece, "the answer was cut"
                received += piece
        until(lambda: served.records)
    assert all(bytes(f"{number:05}" * 20_000, "ascii") in received for number in (0, 150, 299))
    assert served.records[0].disconnected == ""


def test_a_client_that_stops_reading_is_cut(tmp_path: Path):
    pieces = tuple(Say("x" * 50_000) for _ in range(400))
    with (
        ServedGateway(
            "openai-chat", [Reply(pieces=pieces, delta=1 << 20)], home=tmp_path, write_seconds=0.2
        ) as served,
        opened(served, *streamed("openai-chat")),
    ):
        until(lambda: served.records)
        assert served.records[0].disconnected == "streaming"


def test_gemini_without_sse_streams_an_array(tmp_path: Path):
    path, body = streamed("gemini")
    with ServedGateway("openai-chat", [slow(), slow()], home=tmp_path) as served:
        status, fields, answer = post(served, path.partition("?")[0], body)
        assert (status, fields["content-type"]) == (200, "application/json")
        chunks = json.loads(answer)
        parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
        assert "".join(part["text"] for part in parts) == "Hello there"
        late: dict[str, Any] = {"hold_seconds": 0.01, "heartbeat_seconds": 0.01}
    with ServedGateway("openai-chat", [slow(wait_first=0.2)], home=tmp_path, **late) as served:
        _, _, answer = post(served, path.partition("?")[0], body)
        assert len(json.loads(answer)) > len(chunks)


def test_usage_of_a_chat_stream_is_sent_only_on_request(tmp_path: Path):
    path, body = streamed("openai-chat")
    with ServedGateway("anthropic-messages", [HELLO, HELLO], home=tmp_path) as served:
        _, _, plain = post(served, path, body)
        _, _, counted = post(served, path, {**body, "stream_options": {"include_usage": True}})
        assert b'"usage"' not in plain
        assert b'"choices":[],"usage"' in counted
        assert all(record.usage.output for record in served.records)


def test_the_note_of_claude_code_to_its_vendor_is_not_passed_on(tmp_path: Path):
    path, body = REQUESTS["anthropic-messages"]
    note = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=abc;"}
    body = {**body, "system": [note, {"type": "text", "text": "Be kind."}]}
    with ServedGateway("openai-chat", [HELLO], home=tmp_path) as served:
        _, fields, _ = post(served, path, body, {"user-agent": "claude-cli/2.1 (external)"})
        assert "billing" not in json.dumps(served.bodies)
        assert "Be kind." in json.dumps(served.bodies)
        assert int(fields["toolwire-losses"]) >= 1
        assert served.records[0].client == "claude-code"


def test_a_bad_body_names_the_member(tmp_path: Path):
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        for dialect in FORMATS:
            path, _ = REQUESTS[dialect]
            for bad in (b"{", b"[]", b'{"messages": 3, "input": 3, "contents": 3, "request": 3}'):
                status, _, answer = post(served, path, bad)
                assert status == 400, (dialect, bad, answer)
                assert dialects.get(dialect).error(status, {}, answer).kind == "bad_request"
        assert served.received == []


def test_finished_is_the_last_event_of_every_stream(tmp_path: Path):
    with ServedGateway("openai-responses", [HELLO] * 5, home=tmp_path) as served:
        for dialect in FORMATS:
            _, _, body = post(served, *streamed(dialect))
            events = events_of(dialect, body)
            assert isinstance(events[-1], Finished), dialect


@pytest.mark.parametrize(
    ("most", "thinking"),
    [
        (8000, {"type": "enabled", "budget_tokens": 7999}),
        (900, {"type": "disabled"}),
        (40_000, {"type": "enabled", "budget_tokens": 32_000}),
    ],
)
def test_a_budget_above_the_limit_is_lowered(most: int, thinking: Any, tmp_path: Path):
    path, body = REQUESTS["anthropic-messages"]
    given = {"type": "enabled", "budget_tokens": 32_000}
    with ServedGateway("anthropic-messages", [HELLO], home=tmp_path) as served:
        status, fields, answer = post(served, path, {**body, "max_tokens": most, "thinking": given})
        assert status == 200, answer
        assert served.bodies[0]["thinking"] == thinking
        assert (fields["toolwire-losses"] != "0") == (thinking != given)


@pytest.mark.parametrize("member", [{"background": True}, {"conversation": "conv_1"}])
def test_what_needs_a_server_that_keeps_conversations_is_refused(member: Any, tmp_path: Path):
    path, body = REQUESTS["openai-responses"]
    with ServedGateway("openai-chat", [], home=tmp_path) as served:
        status, _, answer = post(served, path, {**body, **member})
        error = json.loads(answer)["error"]
        assert (status, error["param"]) == (400, next(iter(member)))
        assert "not possible through the gateway" in error["message"]
