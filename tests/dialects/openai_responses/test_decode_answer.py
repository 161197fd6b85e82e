import json

import pytest

from tests.dialects.openai_responses.exchange import (
    COMPLETED,
    added,
    collected,
    decode,
    decode_bytes,
    delta,
    done,
    finished,
    kept,
    seal,
    sse_bytes,
    whole,
)
from toolwire.errors import ErrorKind, IncompleteStream, MalformedStream, ProviderError
from toolwire.events import (
    Finished,
    ServerBlockAdded,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import CallKind, ServerBlock, Text, Thinking, ToolCall

CALL = {"type": "function_call", "call_id": "c", "name": "f"}
CALLED = finished(StopReason.TOOL_CALLS)


def test_the_end_of_an_item_alone_builds_its_call():
    assert decode(done(0, **CALL, arguments='{"a":1}', id="fc"), COMPLETED) == [
        ToolCallStarted("c", "f"),
        ToolCallDelta("c", '{"a":1}'),
        ToolCallEnded("c", seal=seal(id="fc")),
        CALLED,
    ]


def test_the_end_of_an_item_has_the_last_word_on_arguments():
    events = decode(
        added(0, **CALL, arguments=""),
        delta("function_call_arguments", 0, '{"a":'),
        done(0, **CALL, arguments='{"a":2}'),
        COMPLETED,
    )
    assert events[2] == ToolCallEnded("c", '{"a":2}')


def test_items_are_identified_by_index_though_ids_change():
    events = decode(
        added(0, **CALL, id="one"),
        delta("function_call_arguments", 0, "{}", item_id="two"),
        done(0, **CALL, arguments="{}", id="three"),
        COMPLETED,
    )
    assert [call.arguments for call in collected(events).calls] == ["{}"]


def test_items_that_share_one_index_are_identified_by_their_ids():
    other = {"type": "function_call", "call_id": "d", "name": "g"}
    events = decode(
        added(0, **CALL, id="fc1"),
        delta("function_call_arguments", 0, "{}"),
        done(0, **CALL, id="fc1", arguments="{}"),
        added(0, **other, id="fc2"),
        delta("function_call_arguments", 0, '{"b":1}'),
        done(0, **other, id="fc2", arguments='{"b":1}'),
        done(0, **other, id="fc2", arguments='{"b":1}'),
        COMPLETED,
    )
    found = [(call.id, call.name, call.arguments) for call in collected(events).calls]
    assert found == [("c", "f", "{}"), ("d", "g", '{"b":1}')]


def test_a_freeform_call_keeps_its_text():
    item = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch"}
    events = decode(
        added(0, **item, input=""),
        delta("custom_tool_call_input", 0, "*** Begin"),
        done(0, **item, input="*** Begin", status="completed"),
        COMPLETED,
    )
    assert collected(events).parts == (
        ToolCall(
            id="c",
            name="apply_patch",
            arguments="*** Begin",
            kind=CallKind.FREEFORM,
        ),
    )


def test_a_call_without_any_id_gets_one():
    assert decode(done(0, type="function_call", name="f", arguments="{}"), COMPLETED)[0] == (
        ToolCallStarted("made_1", "f", made_id=True)
    )


def test_items_that_were_never_streamed_come_with_the_response():
    text = {"type": "output_text", "text": "hi", "annotations": []}
    message = {"type": "message", "role": "assistant", "id": "m1", "content": [text]}
    response = {**COMPLETED["response"], "output": [message]}
    assert decode({"type": "response.completed", "response": response}) == [
        TextDelta("hi"),
        TextEnded(seal(id="m1")),
        finished(),
    ]


def test_streamed_items_are_not_emitted_again_from_the_response():
    item = {**CALL, "arguments": "{}", "id": "fc"}
    response = {**COMPLETED["response"], "output": [{"type": "reasoning", "summary": []}, item]}
    ended = {"type": "response.completed", "response": response}
    assert [call.id for call in collected(decode(done(1, **item), ended)).calls] == ["c"]
    assert [call.id for call in collected(decode(done(7, **item), ended)).calls] == ["c"]


def test_reasoning_text_and_summary_are_emitted_once_each_and_sealed_at_the_end():
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "S"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    events = decode(
        added(0, type="reasoning", id="rs", summary=[], encrypted_content="early"),
        delta("reasoning_text", 0, "long"),
        delta("reasoning_summary_text", 0, "S"),
        {"type": "response.reasoning_text.done", "output_index": 0, "text": "long"},
        done(0, **item, encrypted_content="late"),
        COMPLETED,
    )
    assert events == [
        ThinkingDelta("long"),
        ThinkingDelta("S"),
        ThinkingEnded(seal(id="rs", encrypted_content="late", content=[4], summary=[1])),
        finished(),
    ]


def test_reasoning_that_ends_after_the_text_it_led_to_is_not_emitted_twice():
    content = [{"type": "reasoning_text", "text": "hm"}]
    text = {"type": "output_text", "text": "4", "annotations": []}
    events = decode(
        delta("reasoning_text", 0, "hm"),
        delta("output_text", 1, "4", content_index=0),
        done(1, type="message", role="assistant", content=[text]),
        done(0, type="reasoning", id="rs", summary=[], content=content),
        COMPLETED,
    )
    assert collected(events).parts == (
        Thinking("hm"),
        Text("4"),
        Thinking("", seal(id="rs"), kept(content=content)),
    )


def test_text_interrupted_by_a_call_is_not_emitted_twice():
    text = {"type": "output_text", "text": "one two", "annotations": []}
    events = decode(
        delta("output_text", 0, "one ", content_index=0),
        added(1, **CALL),
        delta("output_text", 0, "two", content_index=0),
        done(1, **CALL, arguments="{}"),
        done(0, type="message", role="assistant", content=[text]),
        COMPLETED,
    )
    assert collected(events).text == "one two"


def test_an_unknown_item_stays_whole():
    item = {"type": "new_thing", "id": "n", "x": [1]}
    assert decode(done(0, **item), COMPLETED) == [
        ServerBlockAdded(
            ServerBlock(origin=seal().origin, kind="new_thing", data=json.dumps(item))
        ),
        finished(),
    ]


def test_unknown_events_and_late_frames_say_nothing():
    late = delta("output_text", 0, "late", content_index=0)
    strange = {"type": "response.new.delta", "delta": {"x": 1}}
    odd = {"type": "response.mcp_call_arguments.done", "arguments": {"a": 1}}
    body = sse_bytes(strange, odd, COMPLETED, late, added(3, **CALL)) + b"data: [DONE]\n\n"
    assert decode_bytes([body]) == [finished()]


@pytest.mark.parametrize(
    ("status", "details", "reason", "detail"),
    [
        ("incomplete", {"reason": "max_output_tokens"}, StopReason.LENGTH, "max_output_tokens"),
        ("incomplete", {"reason": "content_filter"}, StopReason.CONTENT_FILTER, "content_filter"),
        ("incomplete", {"reason": "steered"}, StopReason.PAUSE, "steered"),
        ("incomplete", None, StopReason.LENGTH, "incomplete"),
        ("queued", None, StopReason.PAUSE, "queued"),
        ("cancelled", None, StopReason.ERROR, "cancelled"),
        ("completed", None, StopReason.END, ""),
        ("complete", None, StopReason.END, ""),
    ],
)
def test_the_end_of_a_response(
    status: str, details: object, reason: StopReason, detail: str
) -> None:
    response = {**COMPLETED["response"], "status": status, "incomplete_details": details}
    assert whole(response) == [finished(reason, detail)]


def test_a_call_cut_by_the_limit_is_incomplete():
    response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events = decode(
        added(0, **CALL),
        delta("function_call_arguments", 0, '{"a'),
        {"type": "response.incomplete", "response": response},
    )
    assert events[2:] == [
        ToolCallEnded("c", complete=False),
        Finished(reason=StopReason.LENGTH, detail="max_output_tokens"),
    ]


def test_usage_is_what_the_vendor_counts():
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": None},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.5,
    }
    last = whole({**COMPLETED["response"], "usage": usage})[-1]
    expected = Usage(input=10, output=5, cached=4, reasoning=3, cost=0.5)
    assert isinstance(last, Finished)
    assert last.usage == expected


def test_odd_usage_does_not_hide_the_answer():
    assert whole({**COMPLETED["response"], "usage": {"input_tokens": "many"}}) == [finished()]


def test_a_stream_without_its_end_is_incomplete():
    with pytest.raises(IncompleteStream):
        decode(delta("output_text", 0, "hi", content_index=0))


@pytest.mark.parametrize(
    "frames",
    [
        [{"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}],
        [{"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow"}}],
        [{"error": {"type": "rate_limit_exceeded", "message": "slow"}}],
        [
            {
                "type": "response.failed",
                "response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}},
            }
        ],
    ],
)
def test_an_error_in_the_stream_is_raised_with_the_vendors_message(frames: list) -> None:
    with pytest.raises(ProviderError, match="slow") as caught:
        decode(*frames)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.RATE_LIMIT, "rate_limit_exceeded")


def test_the_status_inside_an_error_event_decides_on_a_retry():
    with pytest.raises(ProviderError) as caught:
        decode({"type": "error", "code": 502, "message": "upstream is gone", "param": None})
    error = caught.value
    assert (error.kind, error.status, str(error)) == (ErrorKind.SERVER, 502, "upstream is gone")


def test_an_error_event_without_a_code_has_none():
    with pytest.raises(ProviderError) as caught:
        decode({"type": "error", "code": None, "message": "odd", "param": None})
    assert (caught.value.code, caught.value.status) == ("", None)


def test_a_failed_response_is_an_error():
    with pytest.raises(ProviderError, match="boom"):
        whole({"status": "failed", "error": {"code": "server_error", "message": "boom"}})


def test_an_answer_in_one_piece_where_a_stream_was_asked_is_read():
    body = {**COMPLETED["response"], "object": "response"}
    assert decode_bytes([json.dumps(body).encode()]) == [finished()]


@pytest.mark.parametrize("data", [b"{", b'{"type":"response.output_item.done","item":3}'])
def test_a_frame_that_does_not_fit_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedStream):
        decode_bytes([b"data: %b\n\n" % data])


def test_a_character_cut_between_two_frames_is_joined():
    members = b'"type":"response.output_text.delta","output_index":0,"content_index":0'
    frame = b'data: {%b,"delta":"%%b"}\n\n' % members
    body = frame % b"a\\ud83d" + frame % b"\\ude00b" + sse_bytes(COMPLETED)
    assert collected(decode_bytes([body])).text == "a\U0001f600b"
