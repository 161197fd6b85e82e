import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.openai_chat.exchange import (
    Json,
    decode_bytes,
    done,
    encode_bytes,
    ids,
    kept,
    seal,
    thought,
)
from toolwire.dialects import AnswerOptions
from toolwire.dialects.openai_chat import DIALECT
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
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
from toolwire.messages import CallKind, Citation, Media, MediaKind, Origin, Seal

RESPONSE_ID = "chatcmpl-made_1"
words = st.text(min_size=1, max_size=8)
counts = st.integers(0, 10**6)
extra = st.none() | words.map(lambda text: seal(extra_content={"google": {"sig": text}}))


@st.composite
def thinking(draw: st.DrawFn) -> list[ModelEvent]:
    pieces = draw(st.lists(words, max_size=3))
    details = draw(st.lists(words.map(lambda text: {"type": "x", "data": text}), max_size=2))
    members: dict[str, Any] = {}
    if pieces:
        members["reasoning_content"] = "".join(pieces)
    if details:
        members["reasoning_details"] = details
    return [*map(ThinkingDelta, pieces), thought(**members)] if members else []


@st.composite
def speech(draw: st.DrawFn) -> list[ModelEvent]:
    events: list[ModelEvent] = [*map(TextDelta, draw(st.lists(words, max_size=4)))]
    if draw(st.booleans()):
        data = json.dumps({"type": "url_citation", "url_citation": {"url": draw(words)}})
        url = json.loads(data)["url_citation"]["url"]
        events.append(CitationAdded(Citation(dialect="openai-chat", data=data, url=url)))
    if draw(st.booleans()):
        image = Media(kind=MediaKind.IMAGE, url="https://a/b", kept=kept())
        events.append(MediaAdded(image))
    signed = draw(extra)
    return [*events, TextEnded(signed)] if signed else events


@st.composite
def calls(draw: st.DrawFn) -> list[ModelEvent]:
    started: list[ModelEvent] = []
    ended: list[ModelEvent] = []
    for number in range(draw(st.integers(0, 3))):
        name = f"call_{number}"
        freeform = draw(st.booleans())
        kind = CallKind.FREEFORM if freeform else CallKind.JSON
        started.append(ToolCallStarted(name, draw(st.sampled_from(["f", "read"])), kind))
        pieces = draw(st.lists(words, max_size=3)) if freeform else draw(_json_pieces())
        started.extend(ToolCallDelta(name, piece) for piece in pieces)
        ended.append(ToolCallEnded(name, seal=draw(extra)))
    return started + ended


@st.composite
def _json_pieces(draw: st.DrawFn) -> list[str]:
    text = json.dumps({"a": draw(words)}, ensure_ascii=draw(st.booleans()))
    at = draw(st.integers(1, len(text) - 1))
    return draw(st.sampled_from([[], [text], [text[:at], text[at:]]]))


@st.composite
def answers(draw: st.DrawFn) -> list[ModelEvent]:
    """Answers in the order and form in which chat can say them."""
    said = draw(calls())
    refused = not said and draw(st.booleans())
    events = draw(thinking()) + draw(speech())
    if refused:
        events = [event for event in events if not isinstance(event, TextEnded)]
        events.append(RefusalDelta(draw(words)))
    reason = StopReason.TOOL_CALLS if said else StopReason.END
    reason = StopReason.REFUSAL if refused else reason
    usage = draw(
        st.just(Usage())
        | st.builds(
            Usage,
            input=counts,
            output=counts,
            cached=st.none() | counts,
            cache_write=st.none() | counts,
            reasoning=st.none() | counts,
        )
    )
    end = Finished(reason=reason, usage=usage, response_id=RESPONSE_ID, model="m")
    return [*events, *said, end]


@given(answers())
def test_what_is_written_reads_as_the_same_events(events: list[ModelEvent]):
    assert decode_bytes([encode_bytes(events)]) == events


def frames(*events: ModelEvent) -> list[Json]:
    encoder = DIALECT.encoder("m", ids())
    found = [frame for event in events for frame in encoder.feed(event)]
    return [json.loads(frame.data) for frame in found]


def deltas(*events: ModelEvent) -> list[Json]:
    return [frame["choices"][0]["delta"] for frame in frames(*events)[1:]]


def test_the_frames_are_openais():
    usage = Usage(input=1, output=2)
    head = {"id": RESPONSE_ID, "object": "chat.completion.chunk", "created": 0, "model": "m"}
    role = {"role": "assistant", "content": "", "refusal": None}

    def choice(delta: Json, finish: str | None = None) -> Json:
        entry = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**head, "choices": [entry]}

    assert frames(TextDelta("a"), Finished(reason=StopReason.END, usage=usage)) == [
        choice(role),
        choice({"content": "a"}),
        choice({}, "stop"),
        {
            **head,
            "choices": [],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        },
    ]


def test_the_end_mark_follows_only_a_finished_answer():
    assert encode_bytes([TextDelta("a"), done()]).endswith(b"data: [DONE]\n\n")
    assert b"[DONE]" not in encode_bytes([TextDelta("a")])


def test_arguments_known_only_at_the_end_still_go_out():
    events = (
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"x"'),
        ToolCallEnded("a", '{"x":1}'),
    )
    assert deltas(*events)[-1] == {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}


def test_a_namespace_is_part_of_the_name():
    (start,) = deltas(ToolCallStarted("a", "f", namespace="mcp"))
    assert start["tool_calls"][0]["function"]["name"] == "mcp__f"


def test_what_only_others_understand_is_left_out():
    foreign = Seal(origin=Origin("gemini"), data='{"thoughtSignature":"x"}')
    events = (ThinkingEnded(foreign), TextEnded(foreign), Notice("k", "m"), ToolCallEnded("no"))
    assert frames(*events) == []


def test_ends_without_a_word_of_their_own_get_the_nearest():
    words = {
        reason: frames(done(reason))[-1]["choices"][0]["finish_reason"] for reason in StopReason
    }
    assert words == {
        StopReason.END: "stop",
        StopReason.TOOL_CALLS: "tool_calls",
        StopReason.LENGTH: "length",
        StopReason.REFUSAL: "content_filter",
        StopReason.CONTENT_FILTER: "content_filter",
        StopReason.PAUSE: "stop",
        StopReason.MALFORMED_CALL: "stop",
        StopReason.ERROR: "error",
    }


@pytest.mark.parametrize(
    ("kind", "empty"),
    [
        (CallKind.JSON, {"function": {"arguments": ""}}),
        (CallKind.FREEFORM, {"custom": {"input": ""}}),
    ],
)
def test_the_delta_of_a_calls_seal_names_the_kind_of_the_call(kind: CallKind, empty: Json):
    extra = {"google": {"thought_signature": "c2ln"}}
    found = deltas(
        ToolCallStarted("a", "f", kind), ToolCallEnded("a", seal=seal(extra_content=extra))
    )
    assert found[-1] == {"tool_calls": [{"index": 0, **empty, "extra_content": extra}]}


def test_usage_is_streamed_only_on_request():
    encoder = DIALECT.encoder("m", ids(), AnswerOptions(usage_chunk=False))
    end = Finished(reason=StopReason.END, usage=Usage(input=1, output=2))
    found = [json.loads(f.data) for e in (TextDelta("a"), end) for f in encoder.feed(e)]
    assert [len(frame["choices"]) for frame in found] == [1, 1, 1]
    assert all("usage" not in frame for frame in found)
