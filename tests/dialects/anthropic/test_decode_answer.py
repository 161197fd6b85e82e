import json

import pytest

from tests.dialects.anthropic.exchange import (
    NAME,
    ORIGIN,
    START,
    STOP,
    Json,
    begin,
    collected,
    decode,
    decode_bytes,
    end,
    ending,
    finished,
    kept,
    more,
    reading,
    seal,
    sse_bytes,
)
from toolwire.dialects.anthropic import DIALECT
from toolwire.errors import (
    BadInput,
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    ToolwireError,
)
from toolwire.events import (
    Notice,
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
from toolwire.messages import ServerBlock, Text

TEXT = (begin(0, "text", text=""), more(0, "text_delta", text="hi"), end(0))
CALL = (
    begin(0, "tool_use", id="a", name="f", input={}),
    more(0, "input_json_delta", partial_json='{"x":1}'),
    end(0),
)
CALLED = [ToolCallStarted("a", "f"), ToolCallDelta("a", '{"x":1}'), ToolCallEnded("a")]


def test_two_text_blocks_in_a_row_stay_two_texts() -> None:
    second = (begin(1, "text", text=""), more(1, "text_delta", text="ho"), end(1))
    events = decode(START, *TEXT, *second, ending("end_turn"), STOP)
    assert events == [TextDelta("hi"), TextEnded(), TextDelta("ho"), finished()]
    assert collected(events).parts == (Text("hi"), Text("ho"))


def test_an_empty_text_block_leaves_no_trace() -> None:
    empty = (begin(1, "text", text=""), end(1))
    assert decode(START, *TEXT, *empty, ending("end_turn"), STOP) == [TextDelta("hi"), finished()]


def test_unknown_members_of_a_text_block_are_kept() -> None:
    blocks = (begin(0, "text", text="", odd=[1]), more(0, "text_delta", text="hi"), end(0))
    events = decode(START, *blocks, ending("end_turn"), STOP)
    assert events == [TextDelta("hi"), TextEnded(kept=kept(odd=[1])), finished()]


def test_thinking_without_a_signature_ends_without_a_seal() -> None:
    blocks = (begin(0, "thinking", thinking=""), more(0, "thinking_delta", thinking="so"), end(0))
    events = decode(START, *blocks, ending("end_turn"), STOP)
    assert events == [ThinkingDelta("so"), ThinkingEnded(), finished()]


def test_a_later_signature_replaces_an_earlier_one() -> None:
    blocks = (
        begin(0, "thinking", thinking="", signature=""),
        more(0, "signature_delta", signature="a"),
        more(0, "signature_delta", signature="b"),
        end(0),
    )
    events = decode(START, *blocks, ending("end_turn"), STOP)
    assert events == [ThinkingEnded(seal(signature="b")), finished()]


def test_a_call_ends_when_the_next_block_begins() -> None:
    sse = [sse_bytes(START, *CALL), sse_bytes(begin(1, "text", text=""))]
    assert decode_bytes([*sse, sse_bytes(ending("tool_use"), STOP)]) == [
        *CALLED,
        finished(StopReason.TOOL_CALLS),
    ]


def test_the_last_call_of_a_length_stop_is_incomplete_though_its_block_was_closed() -> None:
    events = decode(START, *CALL, ending("max_tokens"), STOP)
    assert events == [*CALLED[:2], ToolCallEnded("a", complete=False), finished(StopReason.LENGTH)]


def test_a_call_before_the_text_that_was_cut_is_complete() -> None:
    text = (begin(1, "text", text=""), more(1, "text_delta", text="hi"), end(1))
    events = decode(START, *CALL, *text, ending("max_tokens"), STOP)
    assert events == [*CALLED, TextDelta("hi"), finished(StopReason.LENGTH)]


def test_a_refused_answer_leaves_its_last_call_incomplete() -> None:
    events = decode(START, *CALL, ending("refusal"), STOP)
    assert events[2:] == [ToolCallEnded("a", complete=False), finished(StopReason.REFUSAL)]


def test_interleaved_calls_are_distinguished_by_index() -> None:
    events = decode(
        START,
        begin(0, "tool_use", id="a", name="f", input={}),
        begin(1, "tool_use", id="b", name="g", input={}),
        more(0, "input_json_delta", partial_json='{"x":'),
        more(1, "input_json_delta", partial_json='{"y":'),
        more(0, "input_json_delta", partial_json="1}"),
        more(1, "input_json_delta", partial_json="2}"),
        end(1),
        end(0),
        ending("tool_use"),
        STOP,
    )
    calls = [(call.id, call.arguments, call.complete) for call in collected(events).calls]
    assert calls == [("a", '{"x":1}', True), ("b", '{"y":2}', True)]


def test_a_block_begun_again_under_its_index_leaves_the_first_call_incomplete() -> None:
    half = more(0, "input_json_delta", partial_json='{"x"')
    again = (begin(0, "tool_use", id="b", name="f", input={}), *CALL[1:])
    events = decode(START, CALL[0], half, START, *again, ending("tool_use"), STOP)
    calls = [(call.id, call.arguments, call.complete) for call in collected(events).calls]
    assert calls == [("a", '{"x"', False), ("b", '{"x":1}', True)]


def test_input_deltas_replace_the_input_of_the_start() -> None:
    whole = begin(0, "tool_use", id="a", name="f", input={"x": 0})
    assert decode(START, whole, *CALL[1:], ending("tool_use"), STOP) == [
        *CALLED,
        finished(StopReason.TOOL_CALLS),
    ]


def test_input_of_the_start_counts_when_no_delta_comes() -> None:
    data = sse_bytes(START, begin(0, "tool_use", id="a", name="f", input={}), end(0), STOP)
    data = data.replace(b'"input": {}', b'"input": { "x": 1.50 }')
    assert decode_bytes([data]) == [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{ "x": 1.50 }'),
        ToolCallEnded("a"),
        finished(StopReason.TOOL_CALLS),
    ]


def test_calls_that_came_with_message_start_are_read() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    message = {**START["message"], "content": [block], "stop_reason": "tool_use"}
    events = decode({"type": "message_start", "message": message}, STOP)
    assert events == [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"x": 1}'),
        ToolCallEnded("a"),
        finished(StopReason.TOOL_CALLS),
    ]


SECOND_START = Notice("second_start", "another message began inside the answer")
ODD_START = {**START, "message": {**START["message"], "id": ["odd"]}, "more": 1}


@pytest.mark.parametrize("second", [START, ODD_START])
def test_a_second_start_in_the_middle_is_reported_once(second: Json) -> None:
    text = (begin(0, "text", text=""), more(0, "text_delta", text="a"))
    more_text = (more(0, "text_delta", text="b"), end(0), ending("end_turn"), STOP)
    assert decode(START, *text, second, *more_text) == [
        TextDelta("a"),
        SECOND_START,
        TextDelta("b"),
        finished(),
    ]
    assert decode(START, *text, second, second, *more_text).count(SECOND_START) == 1
    assert SECOND_START not in decode(START, START, *text, *more_text)
    given = {**START, "message": {**START["message"], "content": [{"type": "text", "text": "x"}]}}
    again = decode(given, given, begin(1, "text", text="a"), given, ending("end_turn"), STOP)
    assert again.count(SECOND_START) == 1


def test_what_the_server_did_comes_whole_with_its_streamed_input() -> None:
    blocks = (
        begin(0, "server_tool_use", id="s", name="web_search", input={}),
        more(0, "input_json_delta", partial_json='{"q": '),
        more(0, "input_json_delta", partial_json='"x"}'),
        end(0),
    )
    data = '{"type":"server_tool_use","id":"s","name":"web_search","input":{"q": "x"}}'
    block = ServerBlock(origin=ORIGIN, kind="server_tool_use", data=data)
    events = decode(START, *blocks, ending("pause_turn"), STOP)
    assert events == [ServerBlockAdded(block), finished(StopReason.PAUSE)]


def test_streamed_input_that_was_cut_is_carried_as_a_string() -> None:
    blocks = (
        begin(0, "server_tool_use", id="s", name="w", input={}),
        more(0, "input_json_delta", partial_json='{"q'),
    )
    block = decode(START, *blocks, ending("max_tokens"), STOP)[0]
    assert isinstance(block, ServerBlockAdded)
    assert json.loads(block.block.data)["input"] == '{"q'


@pytest.mark.parametrize(
    ("word", "members", "reason", "detail"),
    [
        ("end_turn", {}, StopReason.END, ""),
        ("stop_sequence", {"stop_sequence": "X"}, StopReason.END, "stop_sequence: X"),
        ("tool_use", {}, StopReason.TOOL_CALLS, ""),
        ("max_tokens", {}, StopReason.LENGTH, ""),
        (
            "model_context_window_exceeded",
            {},
            StopReason.LENGTH,
            "model_context_window_exceeded",
        ),
        ("pause_turn", {}, StopReason.PAUSE, ""),
        ("compaction", {}, StopReason.PAUSE, "compaction"),
        ("refusal", {}, StopReason.REFUSAL, ""),
        (
            "refusal",
            {"stop_details": {"type": "refusal", "category": None, "explanation": "no"}},
            StopReason.REFUSAL,
            "no",
        ),
        ("a_new_word", {}, StopReason.END, "a_new_word"),
    ],
)
def test_each_stop_reason_has_its_meaning(
    word: str, members: dict[str, object], reason: StopReason, detail: str
) -> None:
    assert decode(START, ending(word, **members), STOP) == [finished(reason, detail)]


def test_the_category_of_a_refusal_is_kept() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": None}
    events = decode(START, ending("refusal", stop_details=details), STOP)
    assert events == [finished(StopReason.REFUSAL, "bio", kept=kept(stop_details=details))]


def test_counts_of_the_end_replace_those_of_the_start_and_the_others_stay() -> None:
    counts = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 7}
    start = {"type": "message_start", "message": {**START["message"], "usage": counts}}
    stop = ending("end_turn") | {"usage": {"output_tokens": 9, "cache_read_input_tokens": None}}
    usage = Usage(input=5, output=9, cached=7, cache_in_input=False)
    assert decode(start, stop, STOP) == [finished(usage=usage)]


def test_a_stream_may_end_after_its_stop_reason() -> None:
    assert decode(START, *TEXT, ending("end_turn")) == [TextDelta("hi"), finished()]


def test_message_stop_alone_is_an_end() -> None:
    assert decode(START, *TEXT, STOP) == [TextDelta("hi"), finished()]


def test_nothing_follows_the_end() -> None:
    assert decode(START, *TEXT, STOP, *TEXT, STOP) == [TextDelta("hi"), finished()]


@pytest.mark.parametrize("events", [(), (START,), (START, *TEXT), (START, *CALL)])
def test_a_stream_without_an_end_mark_is_incomplete(events: tuple[dict[str, object], ...]) -> None:
    with pytest.raises(IncompleteStream):
        decode(*events)


def test_an_error_event_is_the_vendors_error() -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    with pytest.raises(ProviderError) as raised:
        decode(START, *TEXT, {"type": "error", "error": error})
    assert (raised.value.kind, raised.value.code) == (ErrorKind.OVERLOADED, "overloaded_error")
    assert str(raised.value) == "Overloaded"


def test_a_whole_body_where_a_stream_was_asked_for_is_read() -> None:
    message = {**START["message"], "content": [{"type": "text", "text": "hi"}]}
    message["stop_reason"] = "end_turn"
    assert decode_bytes([json.dumps(message).encode()]) == [TextDelta("hi"), finished()]


@pytest.mark.parametrize("data", ["{", "[1]", "3", '{"type":"content_block_start","index":0,"con'])
def test_an_unreadable_frame_is_malformed(data: str) -> None:
    with pytest.raises(MalformedStream):
        decode_bytes([sse_bytes(START) + f"data: {data}\n\n".encode()])


@pytest.mark.parametrize("data", ["", "[DONE]", '{"type":"ping"}', '{"type":"odd"}', "{}"])
def test_frames_that_say_nothing_are_passed_over(data: str) -> None:
    body = sse_bytes(START, *TEXT) + f"data: {data}\n\n".encode() + sse_bytes(STOP)
    assert decode_bytes([body]) == [TextDelta("hi"), finished()]


@pytest.mark.parametrize(
    "event",
    [
        more(0, "text_delta", text=None),
        more(0, "citations_delta", citation=None),
        more(0, "signature_delta", signature=None),
        more(7, "input_json_delta", partial_json="{}"),
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "content_block_stop", "index": None},
        {"type": "content_block_stop", "index": 9},
        {"type": "content_block_start", "index": None, "content_block": None},
        {"type": "message_start", "message": None},
        {"type": "message_delta", "delta": None, "usage": None},
    ],
)
def test_null_where_a_value_was_promised_does_no_harm(event: dict[str, object]) -> None:
    events = decode(START, *TEXT[:2], event, end(0), ending("end_turn"), STOP)
    assert events == [TextDelta("hi"), finished()]


def test_a_whole_answer_gives_the_events_its_stream_would() -> None:
    content = [
        {"type": "thinking", "thinking": "so", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}, "caller": {"type": "x"}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
    ]
    message = {**START["message"], "content": content, "stop_reason": "tool_use"}
    data = json.dumps(message, separators=(",", ":")).encode()
    assert list(DIALECT.decode_whole(data, reading())) == [
        ThinkingDelta("so"),
        ThinkingEnded(seal(signature="s")),
        ThinkingEnded(seal(type="redacted_thinking", data="d")),
        TextDelta("hi"),
        ToolCallStarted("a", "f", kept=kept(caller={"type": "x"})),
        ToolCallDelta("a", '{"x":1}'),
        ToolCallEnded("a"),
        ToolCallStarted("b", "g"),
        ToolCallEnded("b"),
        finished(StopReason.TOOL_CALLS),
    ]


def test_a_whole_answer_that_was_cut_has_its_last_call_incomplete() -> None:
    content = [{"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]
    message = {**START["message"], "content": content, "stop_reason": "max_tokens"}
    events = list(DIALECT.decode_whole(json.dumps(message).encode(), reading()))
    assert events[-2:] == [ToolCallEnded("a", complete=False), finished(StopReason.LENGTH)]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"type":"error","error":{"type":"api_error","message":"x"}}', ProviderError),
        (b'{"message":"no access"}', ProviderError),
        (b"[]", BadInput),
        (b"nonsense", BadInput),
    ],
)
def test_a_body_that_is_not_an_answer_is_a_typed_error(
    body: bytes, error: type[ToolwireError]
) -> None:
    with pytest.raises(error):
        list(DIALECT.decode_whole(body, reading()))


def test_a_character_cut_between_two_frames_is_whole_again() -> None:
    halves = [more(0, "text_delta", text=half) for half in ("a\ud83c", "\udf89b")]
    events = decode(START, TEXT[0], *halves, end(0), ending("end_turn"), STOP)
    assert events == [TextDelta("a"), TextDelta("🎉b"), finished()]


def test_the_dialect_is_found_by_its_name() -> None:
    assert DIALECT.name == NAME
