import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.collect import Collector
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
)
from toolwire.messages import (
    CallKind,
    Citation,
    Kept,
    Media,
    MediaKind,
    Message,
    Origin,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
)

ORIGIN = Origin("anthropic-messages")
SEAL = Seal(origin=ORIGIN, data='{"signature":"c2ln"}')
KEPT = Kept(dialect="anthropic-messages", fields='{"x":1}')
CITATION = Citation(dialect="anthropic-messages", data="{}", url="https://example.org")
IMAGE = Media(kind=MediaKind.IMAGE, base64="AAAA")
BLOCK = ServerBlock(origin=ORIGIN, kind="web_search", data="{}")
DONE = Finished(reason=StopReason.END)


def collected(*events: ModelEvent) -> tuple[Part, ...]:
    collector = Collector()
    collector.add_all(events)
    message = collector.message()
    assert message == Message(role="assistant", parts=message.parts)
    return message.parts


def test_nothing_said_is_a_message_without_parts():
    assert collected() == ()
    assert collected(DONE) == ()


def test_pieces_of_one_kind_are_one_part():
    assert collected(TextDelta("a"), TextDelta("b"), DONE) == (Text("ab"),)


def test_a_part_ends_where_another_kind_begins():
    assert collected(
        ThinkingDelta("h"), TextDelta("a"), ThinkingDelta("m"), RefusalDelta("no"), TextDelta("b")
    ) == (Thinking("h"), Text("a"), Thinking("m"), Refusal("no"), Text("b"))


def test_an_end_keeps_parts_of_one_kind_apart_and_hangs_state_on_them():
    assert collected(
        ThinkingDelta("h"),
        ThinkingEnded(SEAL, KEPT),
        ThinkingDelta("m"),
        ThinkingEnded(),
        TextDelta("a"),
        TextEnded(SEAL, KEPT),
        TextDelta("b"),
        TextEnded(),
        RefusalDelta("no"),
        TextEnded(SEAL),
    ) == (
        Thinking("h", SEAL, KEPT),
        Thinking("m"),
        Text("a", seal=SEAL, kept=KEPT),
        Text("b"),
        Refusal("no", SEAL),
    )


def test_an_end_without_text_stands_for_an_empty_part():
    assert collected(ThinkingEnded(SEAL), TextDelta("a"), ThinkingEnded(SEAL), TextEnded(SEAL)) == (
        Thinking("", SEAL),
        Text("a"),
        Thinking("", SEAL),
        Text("", seal=SEAL),
    )


def test_an_end_of_text_after_thinking_does_not_close_the_thinking():
    assert collected(ThinkingDelta("h"), TextEnded(SEAL)) == (Thinking("h"), Text("", seal=SEAL))


def test_citations_belong_to_the_open_text():
    assert collected(
        TextDelta("a"), CitationAdded(CITATION), TextEnded(), TextDelta("b"), ThinkingDelta("h")
    ) == (Text("a", (CITATION,)), Text("b"), Thinking("h"))
    assert collected(CitationAdded(CITATION), TextDelta("a")) == (Text("a", (CITATION,)),)
    assert collected(ThinkingDelta("h"), CitationAdded(CITATION)) == (
        Thinking("h"),
        Text("", (CITATION,)),
    )


def test_interleaved_calls_keep_the_order_in_which_they_began():
    assert collected(
        TextDelta("so"),
        ToolCallStarted("a", "f"),
        ToolCallStarted("b", "g", CallKind.FREEFORM, "space", made_id=True),
        ToolCallDelta("b", "x"),
        ToolCallDelta("a", "{"),
        ToolCallDelta("a", "}"),
        ToolCallEnded("b", seal=SEAL),
        TextDelta("."),
        ToolCallEnded("a"),
        DONE,
    ) == (
        Text("so"),
        ToolCall(id="a", name="f", arguments="{}"),
        ToolCall(
            id="b",
            name="g",
            arguments="x",
            kind=CallKind.FREEFORM,
            namespace="space",
            made_id=True,
            seal=SEAL,
        ),
        Text("."),
    )


def test_the_last_word_on_a_calls_arguments_wins():
    assert collected(
        ToolCallStarted("a", "f"), ToolCallDelta("a", "{"), ToolCallEnded("a", "", kept=KEPT)
    ) == (ToolCall(id="a", name="f", arguments="", kept=KEPT),)


def test_what_is_kept_at_a_calls_start_stays_unless_its_end_keeps_something():
    other = Kept(dialect="anthropic-messages", fields='{"y":2}')
    started = ToolCallStarted("a", "f", kept=KEPT)
    assert collected(started) == (ToolCall(id="a", name="f", complete=False, kept=KEPT),)
    assert collected(started, ToolCallEnded("a")) == (ToolCall(id="a", name="f", kept=KEPT),)
    assert collected(started, ToolCallEnded("a", kept=other)) == (
        ToolCall(id="a", name="f", kept=other),
    )


def test_a_call_whose_end_was_not_seen_or_was_cut_is_incomplete():
    assert collected(
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", "{"),
        ToolCallStarted("b", "f"),
        ToolCallEnded("b", complete=False),
    ) == (
        ToolCall(id="a", name="f", arguments="{", complete=False),
        ToolCall(id="b", name="f", complete=False),
    )


def test_media_and_server_blocks_stand_where_they_came():
    assert collected(
        TextDelta("a"), MediaAdded(IMAGE), ServerBlockAdded(BLOCK), TextDelta("b")
    ) == (
        Text("a"),
        IMAGE,
        BLOCK,
        Text("b"),
    )


def test_notices_and_the_end_are_kept_beside_the_message():
    collector = Collector()
    assert collector.finished is None
    notice = Notice("duplicate_id", "two calls have one id")
    collector.add_all([TextDelta("a"), notice, TextDelta("b"), DONE])
    assert collector.message().parts == (Text("ab"),)
    assert (collector.notices, collector.finished) == ([notice], DONE)


some_events = st.lists(
    st.sampled_from(
        [
            TextDelta("a"),
            ThinkingDelta("h"),
            RefusalDelta("n"),
            CitationAdded(CITATION),
            TextEnded(SEAL),
            ThinkingEnded(SEAL),
            MediaAdded(IMAGE),
            ServerBlockAdded(BLOCK),
            Notice("x", "y"),
        ]
    )
)


@given(some_events)
def test_looking_at_the_message_early_does_not_change_it(events: list[ModelEvent]):
    watched, left_alone = Collector(), Collector()
    for event in events:
        watched.add(event)
        watched.message()
        left_alone.add(event)
    assert watched.message() == left_alone.message()


@given(some_events)
def test_every_word_is_in_the_message(events: list[ModelEvent]):
    collector = Collector()
    collector.add_all(events)
    message = collector.message()
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    assert (message.text, message.thinking) == (said, thought)


@pytest.mark.parametrize("deltas", [(), (TextDelta("a"),), (TextDelta("a"), TextDelta("b"))])
def test_a_final_text_is_preferred_to_the_deltas(deltas: tuple[TextDelta, ...]):
    collector = Collector()
    collector.add_all([*deltas, TextEnded(SEAL, text="c"), TextDelta("d")])
    assert collector.message().parts == (Text("c", seal=SEAL), Text("d"))
