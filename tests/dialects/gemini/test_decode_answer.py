import json
from typing import Any

import pytest

from tests.dialects.gemini.exchange import (
    FROM_HERE,
    ORIGIN,
    chunk,
    decode,
    decode_bytes,
    finished,
    kept,
    options,
    seal,
    sse,
)
from toolwire.dialects.code_assist import DIALECT as CODE_ASSIST
from toolwire.dialects.gemini import DIALECT
from toolwire.errors import ErrorKind, IncompleteStream, MalformedStream, ProviderError
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
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
from toolwire.messages import Citation, Media, MediaKind, ServerBlock

STOP = chunk({"text": ""}, finish="STOP")
ODD = {"avgLogprobs": None}
"""A member the typed reader does not know, which sends a chunk the slow way."""


def slowly(body: Any) -> Any:
    return {**body, "candidates": [{**body["candidates"][0], **ODD}]}


def call(name: str, arguments: str = "{}", call_id: str = "made_1") -> list[ModelEvent]:
    made = call_id.startswith("made_")
    return [
        ToolCallStarted(call_id, name, made_id=made),
        ToolCallDelta(call_id, arguments),
        ToolCallEnded(call_id, kept=None if made else FROM_HERE),
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"text": "a"},
        {"text": "a", "thought": True},
        {"text": "a", "thoughtSignature": "s"},
        {"text": "", "thoughtSignature": "s"},
        {"thoughtSignature": "s"},
        {"text": "a", "thought": True, "thoughtSignature": "s"},
        {"functionCall": {"name": "f"}},
        {"functionCall": {"name": "f", "args": {"a": [1, None]}, "id": "x"}},
        {"functionCall": {"name": "f", "args": None, "id": None}, "thoughtSignature": "s"},
        {"functionCall": {"name": "f"}, "thought": True},
        {"functionCall": {"name": "f"}, "text": "before"},
        {"text": None},
        {},
    ],
)
def test_the_typed_way_and_the_slow_way_say_the_same(part: Any) -> None:
    chunks = [chunk({"text": "x"}), chunk(part, {"text": "y"}), STOP]
    assert decode(*map(slowly, chunks)) == decode(*chunks)


def test_a_signed_text_is_not_joined_with_its_unsigned_neighbours() -> None:
    parts = [{"text": "a"}, {"text": "b", "thoughtSignature": "s"}, {"text": "c"}]
    assert decode(*[chunk(part) for part in parts], STOP) == [
        TextDelta("a"),
        TextEnded(),
        TextDelta("b"),
        TextEnded(seal("s")),
        TextDelta("c"),
        finished(),
    ]


def test_signed_thinking_is_closed_with_its_seal() -> None:
    part = {"text": "hm", "thought": True, "thoughtSignature": "s"}
    assert decode(chunk(part, {"text": "a"}), STOP) == [
        ThinkingDelta("hm"),
        ThinkingEnded(seal("s")),
        TextDelta("a"),
        finished(),
    ]


BARE = [*call("f")[:-1], ToolCallEnded("made_1", kept=kept(**{"functionCall.args": None}))]


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("absent", [{}, {"args": None}])
def test_a_call_without_id_and_arguments_gets_both(absent: dict[str, None], slow: bool) -> None:
    body = chunk({"functionCall": {"name": "f", **absent}}, finish="STOP")
    assert decode(slowly(body) if slow else body) == [*BARE, finished(StopReason.TOOL_CALLS)]


def test_numbers_in_arguments_stay_as_they_were_written() -> None:
    body = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":'
    body += b'{"a":1.10,"b":1E2,"c":12345678901234567890123}}}]},"finishReason":"STOP"}]}\n\n'
    assert decode_bytes([body]) == [
        *call("f", '{"a":1.10,"b":1E2,"c":12345678901234567890123}'),
        finished(StopReason.TOOL_CALLS),
    ]


def test_usage_after_the_finish_reason_counts() -> None:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    assert decode(chunk({"text": "a"}, finish="STOP"), {"usageMetadata": usage}) == [
        TextDelta("a"),
        finished(usage=Usage(input=5, output=2, reasoning_in_output=False)),
    ]


def test_a_total_that_does_not_add_up_is_kept() -> None:
    usage = {"promptTokenCount": 5, "toolUsePromptTokenCount": 4, "totalTokenCount": 100}
    rest = {"toolUsePromptTokenCount": 4, "totalTokenCount": 100}
    assert decode(chunk(finish="STOP", usageMetadata=usage)) == [
        finished(usage=Usage(input=5, reasoning_in_output=False), kept=kept(usageMetadata=rest))
    ]


@pytest.mark.parametrize(
    ("word", "reason", "detail"),
    [
        ("STOP", StopReason.END, ""),
        ("MAX_TOKENS", StopReason.LENGTH, ""),
        ("SAFETY", StopReason.CONTENT_FILTER, "SAFETY"),
        ("RECITATION", StopReason.CONTENT_FILTER, "RECITATION"),
        ("IMAGE_SAFETY", StopReason.CONTENT_FILTER, "IMAGE_SAFETY"),
        ("OTHER", StopReason.ERROR, "OTHER"),
        ("CONTINUATION", StopReason.PAUSE, "CONTINUATION"),
        ("MALFORMED_FUNCTION_CALL", StopReason.MALFORMED_CALL, "MALFORMED_FUNCTION_CALL"),
        (1, StopReason.END, ""),
        (2, StopReason.LENGTH, ""),
        (5, StopReason.ERROR, "OTHER"),
        (10, StopReason.MALFORMED_CALL, "MALFORMED_FUNCTION_CALL"),
        (99, StopReason.ERROR, "99"),
        ("BRAND_NEW", StopReason.ERROR, "BRAND_NEW"),
    ],
)
def test_each_finish_word_has_its_reason(word: str | int, reason: StopReason, detail: str) -> None:
    assert decode(chunk(finish=word)) == [finished(reason, detail)]


def test_vertex_numbers_its_finish_words_differently() -> None:
    assert decode(chunk(finish=9, createTime="2026-01-01T00:00:00Z")) == [
        finished(StopReason.MALFORMED_CALL, "MALFORMED_FUNCTION_CALL")
    ]
    assert decode(chunk(finish=9)) == [finished(StopReason.CONTENT_FILTER, "SPII")]


def test_an_unknown_finish_word_after_words_is_an_end_with_a_notice() -> None:
    assert decode(chunk({"text": "a"}, finish="BRAND_NEW")) == [
        TextDelta("a"),
        Notice("unknown_finish", 'unknown finish reason "BRAND_NEW"'),
        finished(detail="BRAND_NEW"),
    ]


def test_a_malformed_call_wins_over_the_calls_that_came() -> None:
    body = chunk({"functionCall": {"name": "f"}}, finish="UNEXPECTED_TOOL_CALL")
    body["candidates"][0]["finishMessage"] = "no such function"
    assert decode(body) == [
        *BARE,
        finished(StopReason.MALFORMED_CALL, "UNEXPECTED_TOOL_CALL: no such function"),
    ]


NO_MARK = Notice("unmarked_end", "the stream ended without a finishReason")
TEXT = chunk({"text": "a"})
CALL = chunk({"functionCall": {"name": "f", "args": {}}})
THOUGHT = chunk({"text": "hm", "thought": True})
HALF_CALL = chunk({"functionCall": {"name": "f", "willContinue": True, "partialArgs": []}})


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("finish", [None, "FINISH_REASON_UNSPECIFIED"])
def test_whole_text_without_a_finish_reason_ends_with_a_notice(
    finish: str | None, slow: bool
) -> None:
    body = chunk({"text": "a"}, finish=finish)
    assert decode(slowly(body) if slow else body) == [TextDelta("a"), NO_MARK, finished()]


def test_a_whole_call_without_a_finish_reason_ends_with_a_notice() -> None:
    end = [NO_MARK, finished(StopReason.TOOL_CALLS)]
    assert decode(CALL) == [*call("f"), *end]
    assert decode(TEXT, THOUGHT, CALL) == [TextDelta("a"), ThinkingDelta("hm"), *call("f"), *end]
    assert decode(TEXT, THOUGHT) == [TextDelta("a"), ThinkingDelta("hm"), NO_MARK, finished()]


def test_code_assist_ends_in_the_same_way() -> None:
    events = decode_bytes([sse({"response": CALL})], CODE_ASSIST)
    assert events == [*call("f"), NO_MARK, finished(StopReason.TOOL_CALLS)]


@pytest.mark.parametrize(
    "chunks", [(), (THOUGHT,), (chunk({"text": ""}),), (HALF_CALL,), (TEXT, HALF_CALL)]
)
def test_thoughts_and_parts_of_a_call_without_a_finish_reason_are_incomplete(
    chunks: tuple[Any, ...],
) -> None:
    with pytest.raises(IncompleteStream):
        decode(*chunks)


@pytest.mark.parametrize("body", [TEXT, CALL])
def test_a_body_cut_in_or_right_after_its_last_frame_is_incomplete(body: Any) -> None:
    whole = sse(TEXT, body)
    for end in range(len(sse(TEXT)) + len("data: {"), len(whole) - 1):
        with pytest.raises(IncompleteStream):
            decode_bytes([whole[:end]])
    with pytest.raises(IncompleteStream):
        decode_bytes([json.dumps([TEXT, body])[:-1].encode()])


def test_a_blocked_prompt_is_a_content_filter_stop() -> None:
    feedback = {"blockReason": "SAFETY", "blockReasonMessage": "no"}
    assert decode({"promptFeedback": feedback}) == [
        finished(StopReason.CONTENT_FILTER, "SAFETY: no", kept=kept(promptFeedback=feedback))
    ]


def test_parts_of_the_server_stay_whole() -> None:
    part = {"toolCall": {"id": "t", "args": {"q": 1}}, "thoughtSignature": "s"}
    assert decode(chunk(part), STOP) == [
        ServerBlockAdded(ServerBlock(origin=ORIGIN, kind="toolCall", data=json.dumps(part))),
        finished(),
    ]


def test_an_image_in_an_answer_is_media() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "s"}
    media = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA", seal=seal("s"))
    assert decode(chunk(part), STOP) == [MediaAdded(media), finished()]


def test_unknown_members_of_a_text_part_are_kept_on_it() -> None:
    assert decode(chunk({"text": "a", "partMetadata": {"k": 1}}), STOP) == [
        TextDelta("a"),
        TextEnded(kept=kept(partMetadata={"k": 1})),
        finished(),
    ]


def test_sources_become_citations_and_stay_whole() -> None:
    metadata = {"groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}]}
    body = chunk({"text": "a"}, finish="STOP")
    body["candidates"][0]["groundingMetadata"] = metadata
    data = '{"web":{"uri":"https://a.example","title":"A"}}'
    citation = Citation(dialect="gemini", data=data, url="https://a.example", title="A")
    assert decode(body) == [
        TextDelta("a"),
        CitationAdded(citation),
        finished(kept=kept(groundingMetadata=metadata)),
    ]


def test_other_candidates_are_dropped_with_one_notice() -> None:
    other = {"content": {"parts": [{"text": "b"}]}, "index": 1}
    body = {"candidates": [chunk({"text": "a"})["candidates"][0], other]}
    assert decode(body, {"candidates": [other]}, STOP) == [
        TextDelta("a"),
        Notice("dropped_choice", "only the first candidate is read"),
        finished(),
    ]


def test_a_growing_call_that_never_closes_is_incomplete() -> None:
    piece = {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}]}
    first = {"functionCall": {"name": "f", "willContinue": True}}
    second = {"functionCall": {**piece, "willContinue": True}}
    assert decode(chunk(first), chunk(second), chunk(finish="MAX_TOKENS")) == [
        ToolCallStarted("made_1", "f", made_id=True),
        ToolCallDelta("made_1", '{"a":"x"}'),
        ToolCallEnded("made_1", complete=False),
        finished(StopReason.LENGTH),
    ]


def test_a_path_into_a_huge_list_is_refused() -> None:
    piece = {"jsonPath": "$.a[999999999]", "numberValue": 1}
    with pytest.raises(MalformedStream):
        decode(chunk({"functionCall": {"name": "f", "partialArgs": [piece]}}))


@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: [error]])
def test_an_error_inside_a_stream_is_raised(wrap: Any) -> None:
    error = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    with pytest.raises(ProviderError) as raised:
        decode(chunk({"text": "a"}), wrap(error))
    assert (raised.value.kind, raised.value.status) == (ErrorKind.OVERLOADED, 503)
    assert raised.value.code == "UNAVAILABLE"


def test_an_unreadable_chunk_is_malformed() -> None:
    with pytest.raises(MalformedStream):
        decode_bytes([b"data: {nonsense}\n\n"])


def test_a_whole_body_without_finish_reason_is_an_end_with_a_notice() -> None:
    body = json.dumps(chunk({"text": "a"})).encode()
    assert list(DIALECT.decode_whole(body, options())) == [
        TextDelta("a"),
        Notice("no_finish_reason", "the answer has no finishReason"),
        finished(),
    ]


def test_a_whole_body_without_candidates_is_an_error() -> None:
    assert list(DIALECT.decode_whole(b"{}", options())) == [
        finished(StopReason.ERROR, "no candidates")
    ]


def test_response_id_and_model_come_with_the_end() -> None:
    events = decode(chunk({"text": "a"}, finish="STOP", responseId="r", modelVersion="g"))
    assert events[-1] == Finished(
        reason=StopReason.END,
        usage=Usage(reasoning_in_output=False),
        response_id="r",
        model="g",
    )
