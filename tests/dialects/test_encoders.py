import json
from itertools import count
from typing import Any

import pytest

from toolwire import dialects
from toolwire.dialects import AnswerOptions, DecodeOptions, Encoder
from toolwire.errors import (
    BadInput,
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ModelMissing,
    ProviderError,
    ToolwireError,
    UnknownName,
    as_provider_error,
)
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Message, Origin, Text
from toolwire.wire.sse import Frame, SseEncoder

EVENTS: tuple[ModelEvent, ...] = (
    ThinkingDelta("hm"),
    ThinkingEnded(),
    TextDelta("a"),
    TextDelta("b"),
    ToolCallStarted("call_1", "f"),
    ToolCallDelta("call_1", '{"a":'),
    ToolCallDelta("call_1", "1}"),
    ToolCallEnded("call_1"),
    Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=3, output=4)),
)


def encoder_of(dialect: str, **options: Any) -> Encoder:
    numbers = count(1)
    make_id = lambda: f"call_{next(numbers)}"  # noqa: E731 - as short as it is local
    return dialects.get(dialect).encoder("m", make_id, AnswerOptions(**options))


def decoded(dialect: str, frames: list[Frame]) -> list[ModelEvent]:
    codec = dialects.get(dialect)
    options = DecodeOptions(new_id=lambda: "made", origin=Origin(codec.family))
    body = b"".join(map(SseEncoder().encode, frames))
    events = dialects.decode_stream(codec, [body], options)
    return [event for event in events if not isinstance(event, Notice)]


def streamed(dialect: str, *, beating: bool) -> list[Frame]:
    encoder = encoder_of(dialect)
    frames = [*(encoder.beat() if beating else ())]
    for event in EVENTS:
        frames += encoder.feed(event)
        if beating and not isinstance(event, Finished):
            frames += encoder.beat()
    return [*frames, *encoder.close()]


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_heartbeats_change_no_event(dialect: str):
    plain = decoded(dialect, streamed(dialect, beating=False))
    assert decoded(dialect, streamed(dialect, beating=True)) == plain


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_a_heartbeat_is_an_event_with_data(dialect: str):
    encoder = encoder_of(dialect)
    beats = [*encoder.beat(), *encoder.beat()]
    assert len(beats) >= 2
    assert all(json.loads(frame.data) for frame in beats)


def test_the_heartbeats_are_those_that_clients_accept():
    chat = encoder_of("openai-chat")
    [opening], [second] = chat.beat(), chat.beat()
    assert json.loads(opening.data)["choices"][0]["delta"]["role"] == "assistant"
    assert json.loads(second.data)["choices"][0]["delta"] == {}
    responses = encoder_of("openai-responses")
    frames = [*responses.beat(), *responses.beat(), *responses.feed(TextDelta("a"))]
    found = [json.loads(frame.data) for frame in frames]
    assert [frame.event for frame in frames][:3] == [
        "response.created",
        "response.in_progress",
        "response.in_progress",
    ]
    assert [body["sequence_number"] for body in found] == list(range(len(found)))
    (ping,) = encoder_of("anthropic-messages").beat()
    assert (ping.event, ping.data) == ("ping", b'{"type":"ping"}')
    candidate = {"content": {"role": "model", "parts": []}, "index": 0}
    chunk = {"candidates": [candidate], "modelVersion": "m"}
    assert [json.loads(f.data) for f in encoder_of("gemini").beat()] == [chunk]
    assert [json.loads(f.data) for f in encoder_of("code-assist").beat()] == [{"response": chunk}]


def test_an_encoder_reports_the_id_that_it_sends():
    for dialect, path in (
        ("openai-chat", ("id",)),
        ("anthropic-messages", ("message", "id")),
        ("openai-responses", ("response", "id")),
    ):
        encoder = encoder_of(dialect)
        known = encoder.response_id
        found = json.loads(encoder.feed(TextDelta("a"))[0].data)
        for key in path:
            found = found[key]
        assert known == found


def test_the_clock_of_an_answer_is_the_callers():
    [opening, *_] = encoder_of("openai-chat", created=17).feed(TextDelta("a"))
    assert json.loads(opening.data)["created"] == 17
    [opening, *_] = encoder_of("openai-responses", created=17).feed(TextDelta("a"))
    assert json.loads(opening.data)["response"]["created_at"] == 17
    message, end = Message(role="assistant", parts=(Text("a"),)), Finished(reason=StopReason.END)
    for dialect, member in (("openai-chat", "created"), ("openai-responses", "created_at")):
        codec, options = dialects.get(dialect), AnswerOptions(created=17)
        body = codec.encode_whole(message, end, "m", lambda: "call_x", options)
        assert json.loads(body)[member] == 17


def test_the_opening_of_a_message_has_the_estimated_input():
    [opening, *_] = encoder_of("anthropic-messages", input_tokens=9).feed(TextDelta("a"))
    assert json.loads(opening.data)["message"]["usage"]["input_tokens"] == 9


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (ConnectionFailed("away"), ErrorKind.SERVER, 502),
        (ConnectionFailed("silent", timed_out=True), ErrorKind.TIMEOUT, 504),
        (IncompleteStream("cut"), ErrorKind.SERVER, 502),
        (MalformedStream("odd"), ErrorKind.SERVER, 502),
        (BadInput("odd"), ErrorKind.BAD_REQUEST, 400),
        (UnknownName("model", "x", ()), ErrorKind.NOT_FOUND, 404),
        (ModelMissing("none"), ErrorKind.NOT_FOUND, 404),
    ],
)
def test_every_error_of_a_model_has_a_vendors_form(
    error: ToolwireError, kind: ErrorKind, status: int
):
    error.usage = Usage(input=1)
    found = as_provider_error(error)
    assert (found.kind, found.status, str(found)) == (kind, status, str(error))
    assert found.usage == error.usage


def test_a_vendors_error_stays_itself():
    error = ProviderError(ErrorKind.QUOTA, "spent")
    assert as_provider_error(error) is error
