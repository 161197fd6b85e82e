import json

import pytest

from tests.dialects.anthropic.exchange import (
    ORIGIN,
    START,
    STOP,
    begin,
    decode_bytes,
    encode,
    encode_bytes,
    end,
    finished,
    ids,
    kept,
    more,
    seal,
)
from toolwire.dialects.anthropic import DIALECT
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
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
from toolwire.messages import (
    CallKind,
    Citation,
    Kept,
    Media,
    MediaKind,
    Message,
    Origin,
    Seal,
    ServerBlock,
    Thinking,
)

ELSEWHERE = Origin("openai-chat")


def last(reason: str, **members: object) -> dict[str, object]:
    delta = {"stop_reason": reason, "stop_sequence": None, **members}
    usage = {"input_tokens": 0, "output_tokens": 0}
    return {"type": "message_delta", "delta": delta, "usage": usage}


def test_an_answer_is_written_as_the_server_writes_it() -> None:
    events: list[ModelEvent] = [
        ThinkingDelta("so"),
        ThinkingEnded(seal(signature="s")),
        TextDelta("hi"),
        TextDelta(" there"),
        ToolCallStarted("a", "f", kept=kept(caller={"type": "direct"})),
        ToolCallDelta("a", '{"x":'),
        ToolCallDelta("a", "1}"),
        ToolCallEnded("a"),
        finished(StopReason.TOOL_CALLS),
    ]
    assert encode(events) == [
        START,
        begin(0, "thinking", thinking="", signature=""),
        more(0, "thinking_delta", thinking="so"),
        more(0, "signature_delta", signature="s"),
        end(0),
        begin(1, "text", text=""),
        more(1, "text_delta", text="hi"),
        more(1, "text_delta", text=" there"),
        end(1),
        begin(2, "tool_use", id="a", name="f", input={}, caller={"type": "direct"}),
        more(2, "input_json_delta", partial_json='{"x":'),
        more(2, "input_json_delta", partial_json="1}"),
        end(2),
        last("tool_use"),
        STOP,
    ]


def test_every_frame_carries_its_name() -> None:
    body = encode_bytes([TextDelta("hi"), finished()]).decode()
    names = [line.removeprefix("event: ") for line in body.splitlines() if line[:6] == "event:"]
    types = [json.loads(line[6:])["type"] for line in body.splitlines() if line[:6] == "data: "]
    assert names == types


def test_a_call_that_is_whole_ends_when_another_block_begins() -> None:
    events: list[ModelEvent] = [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"x":1}'),
        ToolCallStarted("b", "g"),
        ToolCallDelta("b", "{}"),
        ToolCallEnded("a"),
        ToolCallEnded("b"),
        finished(StopReason.TOOL_CALLS),
    ]
    kinds = [(frame["type"], frame.get("index")) for frame in encode(events)[1:-2]]
    assert kinds == [
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
    ]


def test_calls_that_are_really_interleaved_stay_open_side_by_side() -> None:
    events: list[ModelEvent] = [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"x":'),
        ToolCallStarted("b", "g"),
        ToolCallDelta("b", '{"y":'),
        ToolCallDelta("a", "1}"),
        ToolCallDelta("b", "2}"),
        ToolCallEnded("a"),
        ToolCallEnded("b"),
        finished(StopReason.TOOL_CALLS),
    ]
    assert decode_bytes([encode_bytes(events)]) == events


def test_a_last_word_completes_what_was_streamed() -> None:
    events: list[ModelEvent] = [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"x":'),
        ToolCallEnded("a", '{"x":1}'),
    ]
    assert encode(events)[3:] == [more(0, "input_json_delta", partial_json="1}"), end(0)]


def test_a_freeform_call_is_written_as_an_object() -> None:
    events: list[ModelEvent] = [
        ToolCallStarted("a", "f", CallKind.FREEFORM),
        ToolCallDelta("a", "*** Begin"),
        ToolCallEnded("a"),
    ]
    text = '{"input":"*** Begin"}'
    assert encode(events)[2:] == [more(0, "input_json_delta", partial_json=text), end(0)]


def test_a_call_left_open_is_closed_at_the_end() -> None:
    frames = encode([ToolCallStarted("a", "f"), finished(StopReason.LENGTH)])
    assert frames[2:] == [end(0), last("max_tokens"), STOP]


def test_streamed_input_of_the_servers_own_calls_comes_in_a_delta() -> None:
    data = '{"type":"server_tool_use","id":"s","name":"w","input":{"q":"x"}}'
    block = ServerBlock(origin=ORIGIN, kind="server_tool_use", data=data)
    assert encode([ServerBlockAdded(block)])[1:] == [
        begin(0, "server_tool_use", id="s", name="w", input={}),
        more(0, "input_json_delta", partial_json='{"q":"x"}'),
        end(0),
    ]


def test_what_only_others_understand_is_left_out() -> None:
    events: list[ModelEvent] = [
        CitationAdded(Citation(dialect="gemini", data="{}")),
        ThinkingEnded(Seal(origin=ELSEWHERE, data='{"signature":"x"}')),
        TextEnded(Seal(origin=ELSEWHERE, data="{}")),
        ServerBlockAdded(ServerBlock(origin=ELSEWHERE, kind="x", data="{}")),
        Notice("x", "y"),
        ToolCallStarted("a", "f", kept=Kept(dialect="gemini", fields='{"x":1}')),
        ToolCallEnded("a"),
    ]
    assert encode(events)[1:] == [begin(0, "tool_use", id="a", name="f", input={}), end(0)]


def test_refusals_and_media_become_text() -> None:
    media = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AA==")
    frames = encode([RefusalDelta("no"), TextEnded(), MediaAdded(media)])
    texts = [frame["delta"]["text"] for frame in frames if "delta" in frame]
    assert texts == ["no", "[image image/png]"]


@pytest.mark.parametrize(
    ("reason", "detail", "members"),
    [
        (StopReason.END, "", {"stop_reason": "end_turn"}),
        (StopReason.END, "STOP", {"stop_reason": "end_turn"}),
        (
            StopReason.END,
            "stop_sequence: X",
            {"stop_reason": "stop_sequence", "stop_sequence": "X"},
        ),
        (StopReason.LENGTH, "", {"stop_reason": "max_tokens"}),
        (
            StopReason.LENGTH,
            "model_context_window_exceeded",
            {"stop_reason": "model_context_window_exceeded"},
        ),
        (StopReason.PAUSE, "compaction", {"stop_reason": "compaction"}),
        (StopReason.REFUSAL, "", {"stop_reason": "refusal"}),
        (
            StopReason.CONTENT_FILTER,
            "SAFETY",
            {
                "stop_reason": "refusal",
                "stop_details": {"type": "refusal", "category": None, "explanation": "SAFETY"},
            },
        ),
        (StopReason.MALFORMED_CALL, "x", {"stop_reason": "end_turn"}),
        (StopReason.ERROR, "x", {"stop_reason": "end_turn"}),
    ],
)
def test_each_stop_reason_is_encoded(
    reason: StopReason, detail: str, members: dict[str, object]
) -> None:
    delta = encode([finished(reason, detail)])[1]["delta"]
    assert delta == {"stop_sequence": None, **members}


def test_counts_made_elsewhere_are_counted_as_this_vendor_counts() -> None:
    usage = Usage(input=100, output=20, cached=30, reasoning=5, reasoning_in_output=False)
    assert encode([Finished(reason=StopReason.END, usage=usage)])[1]["usage"] == {
        "input_tokens": 70,
        "output_tokens": 25,
        "cache_read_input_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 5},
    }


def test_an_error_in_the_middle_is_an_error_event() -> None:
    encoder = DIALECT.encoder("m", ids())
    encoder.feed(TextDelta("hi"))
    (frame,) = encoder.fail(ProviderError(ErrorKind.OVERLOADED, "busy"))
    error = {"type": "overloaded_error", "message": "busy"}
    assert frame.event == "error"
    assert json.loads(frame.data) == {"type": "error", "error": error}
    assert encoder.close() == ()


def test_a_whole_answer_shows_thinking_made_elsewhere_without_a_signature() -> None:
    message = Message(role="assistant", parts=(Thinking("so"),))
    body = json.loads(DIALECT.encode_whole(message, finished(), "m", ids()))
    assert body["content"] == [{"type": "thinking", "thinking": "so", "signature": ""}]
