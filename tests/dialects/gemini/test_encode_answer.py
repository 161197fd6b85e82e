import json
from typing import Any

from tests.dialects.gemini.exchange import finished, ids, kept, seal
from toolwire.dialects.gemini import DIALECT
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import (
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    TextEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import CallKind, Origin, Seal


def frames(*events: ModelEvent) -> list[Any]:
    encoder = DIALECT.encoder("m", ids())
    written = [frame for event in events for frame in encoder.feed(event)]
    return [json.loads(frame.data) for frame in written]


def parts(*events: ModelEvent) -> list[Any]:
    return [
        part
        for frame in frames(*events, finished())
        for part in frame["candidates"][0]["content"]["parts"]
    ]


def test_the_finish_reason_comes_with_the_last_part() -> None:
    assert frames(TextDelta("a"), TextDelta("b"), finished()) == [
        {
            "candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}, "index": 0}],
            "modelVersion": "m",
        },
        {
            "candidates": [
                {
                    "content": {"parts": [{"text": "b"}], "role": "model"},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "modelVersion": "m",
        },
    ]


def test_a_signature_is_on_the_part_it_was_decoded_from() -> None:
    assert parts(TextDelta("a"), TextEnded(seal("s"))) == [
        {"text": "a", "thoughtSignature": "s"},
        {"text": ""},
    ]
    assert parts(TextDelta("a"), TextEnded(), TextEnded(seal("s"))) == [
        {"text": "a"},
        {"text": "", "thoughtSignature": "s"},
        {"text": ""},
    ]


def test_foreign_seals_and_notices_are_left_out() -> None:
    foreign = Seal(origin=Origin("anthropic-messages"), data='{"signature":"x"}')
    assert parts(TextDelta("a"), TextEnded(foreign), Notice("n", "m")) == [
        {"text": "a"},
        {"text": ""},
    ]


def test_calls_go_out_whole_and_in_the_order_they_began() -> None:
    assert parts(
        ToolCallStarted("1", "f"),
        ToolCallStarted("2", "g", made_id=True),
        ToolCallDelta("2", '{"b":1}'),
        ToolCallEnded("2"),
        ToolCallDelta("1", '{"a":'),
        ToolCallDelta("1", "2.50}"),
        ToolCallEnded("1"),
    ) == [
        {"functionCall": {"id": "1", "name": "f", "args": {"a": 2.5}}},
        {"functionCall": {"name": "g", "args": {"b": 1}}},
    ]


def test_a_cut_call_is_left_out_and_a_broken_one_is_still_an_object() -> None:
    cut = [ToolCallStarted("1", "f"), ToolCallDelta("1", '{"a'), ToolCallEnded("1", complete=False)]
    assert parts(*cut) == [{"text": ""}]
    broken = [ToolCallStarted("1", "f"), ToolCallDelta("1", "oops"), ToolCallEnded("1")]
    assert parts(*broken) == [
        {"functionCall": {"id": "1", "name": "f", "args": {"_invalid_arguments": "oops"}}}
    ]


def test_free_text_arguments_become_an_object() -> None:
    started = ToolCallStarted("1", "patch", CallKind.FREEFORM)
    assert parts(started, ToolCallDelta("1", "*** Begin"), ToolCallEnded("1")) == [
        {"functionCall": {"id": "1", "name": "patch", "args": {"input": "*** Begin"}}}
    ]


def test_frames_are_one_line_each() -> None:
    encoder = DIALECT.encoder("m", ids())
    events = [ToolCallStarted("1", "f"), ToolCallDelta("1", '{\n "a": 1.50\n}'), ToolCallEnded("1")]
    written = [frame for event in [*events, finished()] for frame in encoder.feed(event)]
    assert all(b"\n" not in frame.data for frame in written)
    assert b'"args":{"a":1.50}' in written[0].data


def test_usage_of_other_vendors_is_counted_the_google_way() -> None:
    usage = Usage(input=10, output=30, cached=4, reasoning=20, cache_in_input=False)
    assert frames(finished(StopReason.LENGTH, usage=usage))[0]["usageMetadata"] == {
        "promptTokenCount": 14,
        "candidatesTokenCount": 10,
        "cachedContentTokenCount": 4,
        "thoughtsTokenCount": 20,
        "totalTokenCount": 44,
    }


def test_a_blocked_prompt_has_no_candidates() -> None:
    feedback = {"blockReason": "SAFETY"}
    end = finished(StopReason.CONTENT_FILTER, "SAFETY", kept=kept(promptFeedback=feedback))
    assert frames(end) == [{"promptFeedback": feedback, "modelVersion": "m"}]


def test_an_error_in_the_middle_follows_what_was_held_back() -> None:
    encoder = DIALECT.encoder("m", ids())
    encoder.feed(TextDelta("a"))
    error = ProviderError(ErrorKind.RATE_LIMIT, "slow down", retry_after=1.5)
    written = [json.loads(frame.data) for frame in encoder.fail(error)]
    assert written[0]["candidates"][0]["content"]["parts"] == [{"text": "a"}]
    assert written[1] == {
        "error": {
            "code": 429,
            "message": "slow down",
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}
            ],
        }
    }
