import contextlib
import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dialects.openai_responses.exchange import (
    NAME,
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
from tests.dialects.openai_responses.test_requests import INPUTS, MEMBERS
from tests.samples import own
from toolwire.dialects.openai_responses import DIALECT
from toolwire.errors import ToolwireError
from toolwire.events import (
    CitationAdded,
    Finished,
    ModelEvent,
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
from toolwire.messages import CallKind, Citation, ServerBlock

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
PLAIN = st.text('aé数🎉"\\ \n', max_size=8)
COUNTS = st.integers(0, 2**53)
STREAMS = own(NAME)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Answer:
    """Grows an answer in normal form: each item has the id that the encoder gives it."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.events: list[ModelEvent] = []
        self.items = 0
        self.called = False
        self.refused = False

    def item_id(self, prefix: str) -> str:
        self.items += 1
        return f"{prefix}_tw1_{self.items - 1}"

    def message(self) -> None:
        parts = self.draw(st.integers(1, 3))
        for number in range(parts):
            last = number == parts - 1
            refusal = self.draw(st.booleans())
            self.refused = self.refused or refusal
            kind = RefusalDelta if refusal else TextDelta
            texts = self.draw(st.lists(WORDS, min_size=1 if refusal else 0, max_size=3))
            self.events += [kind(text) for text in texts]
            cited = not refusal and self.draw(st.booleans())
            if cited:
                data = compact({"type": "url_citation", "url": "u", "title": "t"})
                source = Citation(dialect=NAME, data=data, url="u", title="t")
                self.events.append(CitationAdded(source))
            extra: dict[str, Any] = {}
            if not refusal and self.draw(st.booleans()):
                extra["logprobs"] = [1]
            if last and self.draw(st.booleans()):
                extra["item.agent"] = {"name": "a"}
            if not last:
                extra["item.more"] = None
            members = {"phase": "commentary"} if self.draw(st.booleans()) else {}
            members |= {"status": "incomplete"} if self.draw(st.booleans()) else {}
            sealed = seal(id=self.item_id("msg"), **members) if last else None
            self.events.append(TextEnded(sealed, kept(**extra) if extra else None))

    def thought(self) -> None:
        pieces = self.draw(st.lists(WORDS, max_size=3))
        self.events += [ThinkingDelta(piece) for piece in pieces]
        members: dict[str, Any] = {"id": self.item_id("rs")}
        if self.draw(st.booleans()):
            members["encrypted_content"] = "gAAA"
        key = self.draw(st.sampled_from(["summary", "content"]))
        if len(pieces) > 1 or (pieces and key == "content"):
            members[key] = [len(piece) for piece in pieces]
        self.events.append(ThinkingEnded(seal(**members)))

    def call(self) -> None:
        self.called = True
        free = self.draw(st.booleans())
        kind = CallKind.FREEFORM if free else CallKind.JSON
        call_id = f"call_{self.items}"
        sealed = seal(id=self.item_id("ctc" if free else "fc"))
        name = self.draw(st.text("fgh_", min_size=1))
        space = self.draw(st.sampled_from(["", "mcp__x"]))
        pieces = self.draw(st.lists(PLAIN.filter(bool), max_size=3))
        last_word = self.draw(st.none() | PLAIN.filter(bool))
        last_word = None if last_word == "".join(pieces) else last_word
        cut = not self.draw(st.booleans())
        extra = kept(caller={"type": "direct"}) if self.draw(st.booleans()) else None
        self.events += [
            ToolCallStarted(call_id, name, kind, space),
            *(ToolCallDelta(call_id, piece) for piece in pieces),
            ToolCallEnded(call_id, last_word, not cut, sealed, extra),
        ]

    def server(self) -> None:
        data = compact({"type": "new", "id": self.item_id("new"), "x": self.draw(PLAIN)})
        block = ServerBlock(origin=ORIGIN, kind="new", data=data)
        self.events.append(ServerBlockAdded(block))

    def end(self) -> Finished:
        reason = StopReason.REFUSAL if self.refused else StopReason.END
        reason = StopReason.TOOL_CALLS if self.called else reason
        detail = self.draw(st.sampled_from(["", "max_output_tokens", "content_filter", "steered"]))
        reasons = {
            "max_output_tokens": StopReason.LENGTH,
            "content_filter": StopReason.CONTENT_FILTER,
            "steered": StopReason.PAUSE,
        }
        usage = Usage(
            input=self.draw(COUNTS),
            output=self.draw(COUNTS),
            cached=self.draw(COUNTS),
            cache_write=self.draw(COUNTS),
            reasoning=self.draw(COUNTS),
        )
        return finished(reasons.get(detail, reason), detail, usage=usage)


@st.composite
def answers(draw: st.DrawFn) -> list[ModelEvent]:
    answer = Answer(draw)
    kinds = [answer.message, answer.thought, answer.call, answer.server]
    for _ in range(draw(st.integers(0, 5))):
        draw(st.sampled_from(kinds))()
    return [*answer.events, answer.end()]


@given(answers())
def test_what_is_written_reads_as_the_same_events(events: list[ModelEvent]) -> None:
    assert decode_bytes([encode_bytes(events)]) == events


@given(answers())
@settings(max_examples=50)
def test_a_whole_answer_reads_as_the_same_message(events: list[ModelEvent]) -> None:
    message, last = collected(events), events[-1]
    assert isinstance(last, Finished)
    body = DIALECT.encode_whole(message, last, "m", ids())
    again = list(DIALECT.decode_whole(body, options()))
    assert (collected(again), again[-1]) == (message, last)


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 12_000), max_size=30))
@settings(max_examples=60)
def test_events_do_not_depend_on_the_chunks(body: bytes, cuts: list[int]) -> None:
    places = sorted(min(cut, len(body)) for cut in cuts)
    chunks = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
    assert decode_bytes(chunks) == decode_bytes([body])


@given(st.sampled_from(STREAMS), st.data())
@settings(max_examples=300)
def test_damaged_streams_end_in_events_or_typed_errors(body: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        to = at + data.draw(st.integers(0, 40))
        new = data.draw(
            st.sampled_from([b"", b"null", b"[]", b"{}", b'""', b"-1", b"\xff", b"1e999"])
        )
        body = body[:at] + new + body[to:]
    with contextlib.suppress(ToolwireError):
        collected(decode_bytes([body]))


REPLACEMENTS: list[Any] = [None, "", "x", [], {}, 0, 1.5, True, False, ["x"], {"x": None}]


def damage(value: Any, data: st.DataObject) -> None:
    """Puts something else somewhere into a JSON value."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
            value = inner
            continue
        if isinstance(value, dict) and data.draw(st.booleans()):
            del value[key]
        else:
            value[key] = copy.deepcopy(data.draw(st.sampled_from(REPLACEMENTS)))
        return


@given(st.sampled_from(INPUTS), st.sampled_from(MEMBERS), st.data())
@settings(max_examples=400)
def test_damaged_requests_come_back_as_they_were_or_are_typed_errors(
    given_input: Any, members: dict[str, Any], data: st.DataObject
) -> None:
    body = copy.deepcopy({"model": "m", "input": given_input, **members})
    for _ in range(data.draw(st.integers(1, 3))):
        damage(body, data)
    try:
        request = DIALECT.decode_request(json.dumps(body).encode())
    except ToolwireError:
        return
    assert json.loads(DIALECT.encode_request(request).http.body) == body
