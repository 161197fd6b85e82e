import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dialects.gemini.exchange import (
    FROM_HERE,
    ORIGIN,
    collected,
    decode_bytes,
    encode_bytes,
    finished,
    ids,
    kept,
    options,
    seal,
)
from toolwire.dialects.code_assist import DIALECT as CODE_ASSIST
from toolwire.dialects.gemini import DIALECT
from toolwire.errors import ToolwireError
from toolwire.events import (
    Finished,
    MediaAdded,
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
from toolwire.messages import Media, MediaKind, ServerBlock

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
PLAIN = st.text('aé数🎉"\\ ', max_size=8)
"""For what is kept as it was written: nothing that is escaped on the way."""
COUNTS = st.none() | st.integers(0, 2**53)
JSON = st.dictionaries(PLAIN, st.integers() | st.booleans() | PLAIN | st.none(), max_size=3)
SIGNATURES = st.text("abcXYZ019+/=", min_size=1, max_size=12)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@st.composite
def texts(draw: st.DrawFn) -> list[ModelEvent]:
    delta, ended = draw(st.sampled_from([(TextDelta, TextEnded), (ThinkingDelta, ThinkingEnded)]))
    if draw(st.booleans()):
        return [delta(text) for text in draw(st.lists(WORDS, min_size=1, max_size=3))]
    text = [delta(draw(WORDS))] if draw(st.booleans()) else []
    return [*text, ended(seal(draw(SIGNATURES)))]


@st.composite
def calls(draw: st.DrawFn) -> list[ModelEvent]:
    call_id = draw(st.none() | st.text("abcdefgh", min_size=8, max_size=16))
    sealed = seal(draw(SIGNATURES)) if draw(st.booleans()) else None
    more = FROM_HERE if call_id else None
    return [
        ToolCallStarted(call_id or "?", draw(st.text("fgh_", min_size=1)), made_id=not call_id),
        ToolCallDelta(call_id or "?", compact(draw(JSON))),
        ToolCallEnded(call_id or "?", seal=sealed, kept=more),
    ]


@st.composite
def blocks(draw: st.DrawFn) -> list[ModelEvent]:
    kind = draw(st.sampled_from(["executableCode", "toolCall", "brandNew"]))
    data = compact({kind: draw(JSON)})
    return [ServerBlockAdded(ServerBlock(origin=ORIGIN, kind=kind, data=data))]


@st.composite
def images(draw: st.DrawFn) -> list[ModelEvent]:
    sealed = seal(draw(SIGNATURES)) if draw(st.booleans()) else None
    image = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA", seal=sealed)
    return [MediaAdded(image)]


def _kind(event: ModelEvent) -> str:
    return type(event).__name__.removesuffix("Delta").removesuffix("Ended")


def _joined(parts: list[list[ModelEvent]]) -> list[ModelEvent]:
    """One answer in normal form: an open part is closed before a signed one of its kind."""
    events: list[ModelEvent] = []
    for part in parts:
        signed = isinstance(part[-1], TextEnded | ThinkingEnded)
        opened = bool(events) and isinstance(events[-1], TextDelta | ThinkingDelta)
        if signed and opened and _kind(events[-1]) == _kind(part[-1]):
            events.append(TextEnded() if isinstance(events[-1], TextDelta) else ThinkingEnded())
        events += part
    return events


def _numbered(events: list[ModelEvent]) -> list[ModelEvent]:
    """Ids that we make are given in the order of the calls."""
    new_id = ids()
    made = ""
    numbered: list[ModelEvent] = []
    for event in events:
        if isinstance(event, ToolCallStarted) and event.made_id:
            made = new_id()
            event = ToolCallStarted(made, event.name, made_id=True)
        elif isinstance(event, ToolCallDelta) and event.id == "?":
            event = ToolCallDelta(made, event.arguments)
        elif isinstance(event, ToolCallEnded) and event.id == "?":
            event = ToolCallEnded(made, seal=event.seal)
        numbered.append(event)
    return numbered


ENDS = [
    (StopReason.LENGTH, ""),
    (StopReason.CONTENT_FILTER, "RECITATION"),
    (StopReason.MALFORMED_CALL, "MALFORMED_FUNCTION_CALL: bad"),
    (StopReason.ERROR, "OTHER"),
    (StopReason.PAUSE, "CONTINUATION"),
]


@st.composite
def answers(draw: st.DrawFn) -> list[ModelEvent]:
    """Answers in normal form: see docs/wire/gemini.md."""
    parts = draw(st.lists(texts() | calls() | blocks() | images(), max_size=6))
    events = _numbered(_joined(parts))
    started = [event.id for event in events if isinstance(event, ToolCallStarted)]
    if len(set(started)) < len(started):
        return draw(answers())
    usual = (StopReason.TOOL_CALLS if started else StopReason.END, "")
    reason, detail = draw(st.sampled_from([usual, *ENDS]))
    usage = Usage(
        input=draw(COUNTS),
        output=draw(COUNTS),
        cached=draw(COUNTS),
        reasoning=draw(COUNTS),
        reasoning_in_output=False,
    )
    more = kept(avgLogprobs=-0.5, usageMetadata={"trafficType": "ON_DEMAND"})
    return [
        *events,
        finished(
            reason, detail, usage=usage, model="m", kept=more if draw(st.booleans()) else None
        ),
    ]


@given(answers())
@settings(max_examples=150)
def test_what_is_written_is_read_back(events: list[ModelEvent]) -> None:
    assert decode_bytes([encode_bytes(events)]) == events


@given(answers())
@settings(max_examples=60)
def test_what_is_written_into_the_envelope_is_read_back(events: list[ModelEvent]) -> None:
    assert decode_bytes([encode_bytes(events, CODE_ASSIST)], CODE_ASSIST) == events


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
    for dialect in (DIALECT, CODE_ASSIST):
        body = dialect.encode_whole(message, last, "m", ids())
        again = list(dialect.decode_whole(body, options()))
        assert again[-1] == last
        assert collected(again) == message


@given(answers(), st.data())
@settings(max_examples=200)
def test_damaged_bytes_end_in_typed_errors_only(
    events: list[ModelEvent], data: st.DataObject
) -> None:
    body = bytearray(encode_bytes(events))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        piece = data.draw(
            st.sampled_from([b"", b"null", b"{}", b"[]", b"-1", b"\xff", b'"', b"\n", b"[0]"])
        )
        body[at : at + data.draw(st.integers(0, 9))] = piece
    with suppress(ToolwireError):
        decode_bytes([bytes(body)])
