import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dialects.anthropic.exchange import (
    NAME,
    ORIGIN,
    collected,
    decode_bytes,
    encode_bytes,
    finished,
    ids,
    kept,
    reading,
    seal,
)
from toolwire.dialects.anthropic import DIALECT
from toolwire.errors import ToolwireError
from toolwire.events import (
    CitationAdded,
    Finished,
    ModelEvent,
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
from toolwire.messages import Citation, ServerBlock, ToolCall

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
PLAIN = st.text('aé数🎉"\\ \n', max_size=8)
"""For what is kept as it was written: no line ends that are escaped on the way."""
COUNTS = st.integers(0, 2**53)
JSON = st.dictionaries(PLAIN, st.integers() | st.booleans() | PLAIN | st.none(), max_size=3)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@st.composite
def texts(draw: st.DrawFn) -> list[ModelEvent]:
    events: list[ModelEvent] = [
        TextDelta(text) for text in draw(st.lists(WORDS, min_size=1, max_size=3))
    ]
    for url in draw(st.lists(PLAIN, max_size=2)):
        data = compact({"type": "web_search_result_location", "url": url, "title": "t"})
        events.append(CitationAdded(Citation(dialect=NAME, data=data, url=url, title="t")))
    return events


@st.composite
def thoughts(draw: st.DrawFn) -> list[ModelEvent]:
    if draw(st.booleans()):
        return [ThinkingEnded(seal(type="redacted_thinking", data=draw(st.text("abc"))))]
    signed = draw(st.booleans())
    events: list[ModelEvent] = [
        ThinkingDelta(text)
        for text in draw(st.lists(WORDS, min_size=0 if signed else 1, max_size=2))
    ]
    return [
        *events,
        ThinkingEnded(seal(signature=draw(st.text("abc", min_size=1))) if signed else None),
    ]


@st.composite
def server_blocks(draw: st.DrawFn) -> list[ModelEvent]:
    kind = draw(st.sampled_from(["server_tool_use", "web_search_tool_result", "a_new_one"]))
    member = "input" if kind == "server_tool_use" else "content"
    data = compact({"type": kind, "id": "s", member: draw(JSON), "odd": draw(JSON)})
    return [ServerBlockAdded(ServerBlock(origin=ORIGIN, kind=kind, data=data))]


@st.composite
def calls(draw: st.DrawFn) -> list[ModelEvent]:
    call_id = "toolu_" + draw(st.text("abcdefgh", min_size=8, max_size=16))
    text = compact(draw(JSON))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    more = kept(caller={"type": "direct"}) if draw(st.booleans()) else None
    return [
        ToolCallStarted(call_id, draw(st.text("fgh_", min_size=1)), kept=more),
        *(ToolCallDelta(call_id, piece) for piece in pieces if piece),
        ToolCallEnded(call_id),
    ]


@st.composite
def answers(draw: st.DrawFn) -> list[ModelEvent]:
    """Answers in normal form: see docs/wire/anthropic-messages.md."""
    parts = draw(st.lists(texts() | thoughts() | server_blocks() | calls(), max_size=6))
    events: list[ModelEvent] = []
    for part in parts:
        if events and isinstance(events[-1], TextDelta | CitationAdded):
            events += [TextEnded()] if isinstance(part[0], TextDelta) else []
        events += part
    started = [event.id for event in events if isinstance(event, ToolCallStarted)]
    if len(set(started)) < len(started):
        return draw(answers())
    usage = Usage(
        input=draw(COUNTS),
        output=draw(COUNTS),
        cached=draw(st.none() | COUNTS),
        cache_write=draw(st.none() | COUNTS),
        reasoning=draw(st.none() | COUNTS),
        cache_in_input=False,
    )
    reason, detail = draw(_ends(bool(started)))
    rest = kept(container={"id": "c"}, usage={"service_tier": "standard"})
    more = rest if draw(st.booleans()) else None
    if reason in (StopReason.LENGTH, StopReason.REFUSAL):
        events = [*events[:-1], *(_cut(event) for event in events[-1:])]
    return [*events, finished(reason, detail, usage=usage, kept=more)]


def _ends(has_calls: bool) -> st.SearchStrategy[tuple[StopReason, str]]:
    ends = [(StopReason.LENGTH, ""), (StopReason.REFUSAL, ""), (StopReason.REFUSAL, "no")]
    if has_calls:
        return st.sampled_from([*ends, (StopReason.TOOL_CALLS, "")])
    return st.sampled_from(
        [*ends, (StopReason.END, ""), (StopReason.END, "stop_sequence: X"), (StopReason.PAUSE, "")]
    )


def _cut(event: ModelEvent) -> ModelEvent:
    return ToolCallEnded(event.id, complete=False) if isinstance(event, ToolCallEnded) else event


@given(answers())
@settings(max_examples=150)
def test_what_is_written_is_read_back(events: list[ModelEvent]) -> None:
    assert decode_bytes([encode_bytes(events)]) == events


@given(answers(), st.lists(st.integers(0, 10_000), max_size=20))
@settings(max_examples=60)
def test_events_do_not_depend_on_how_the_bytes_were_cut(
    events: list[ModelEvent], cuts: list[int]
) -> None:
    data = encode_bytes(events)
    places = sorted(min(cut, len(data)) for cut in cuts)
    chunks = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    assert decode_bytes(chunks) == events


@given(answers())
@settings(max_examples=100)
def test_a_whole_answer_is_read_back(events: list[ModelEvent]) -> None:
    last = events[-1]
    assert isinstance(last, Finished)
    message = collected(events)
    body = DIALECT.encode_whole(message, last, "m", ids())
    again = list(DIALECT.decode_whole(body, reading()))
    assert again[-1] == last
    assert _parts(collected(again).parts) == _parts(message.parts)


def _parts(parts: tuple[Any, ...]) -> list[Any]:
    """Empty arguments and `{}` are one; sources may be written with other spaces."""
    return [
        (part.name, part.arguments.replace("{}", ""), part.complete, part.kept)
        if isinstance(part, ToolCall)
        else json.loads(part.data)
        if isinstance(part, ServerBlock)
        else part
        for part in parts
    ]


@given(answers(), st.data())
@settings(max_examples=150)
def test_damaged_bytes_end_in_typed_errors_only(
    events: list[ModelEvent], data: st.DataObject
) -> None:
    body = bytearray(encode_bytes(events))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        piece = data.draw(
            st.sampled_from([b"", b"null", b"{}", b"[]", b"-1", b"\xff", b'"', b"\n"])
        )
        body[at : at + data.draw(st.integers(0, 9))] = piece
    with suppress(ToolwireError):
        decode_bytes([bytes(body)])
