import json
from collections.abc import Iterable
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.collect import Collector
from toolwire.events import ModelEvent, Notice, ToolCallDelta, ToolCallEnded, ToolCallStarted
from toolwire.messages import CallKind, Kept, Origin, Seal, ToolCall
from toolwire.request import FreeformTool, ToolSpec
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.names import ToolNames

SEAL = Seal(origin=Origin("gemini"), data='{"thoughtSignature":"c2ln"}')
Fragment = tuple[
    int | None, str | None, str | None, "str | dict[str, object] | list[object] | None"
]


def tracker(names: ToolNames | None = None) -> ToolCallTracker:
    numbers = count(1)
    return ToolCallTracker(lambda: f"new_{next(numbers)}", names)


def events_of(fragments: Iterable[Fragment], **end: bool) -> list[ModelEvent]:
    calls = tracker()
    events = [event for fragment in fragments for event in calls.fragment(*fragment)]
    return events + calls.end_all(**end)


def calls_of(events: Iterable[ModelEvent]) -> list[ToolCall]:
    collector = Collector()
    collector.add_all(events)
    return list(collector.message().calls)


def call(call_id: str, name: str, arguments: str, *, complete: bool = True) -> ToolCall:
    return ToolCall(
        id=call_id,
        name=name,
        arguments=arguments,
        complete=complete,
        made_id=call_id.startswith("new_"),
    )


def test_a_plain_call_is_emitted_as_it_arrives():
    assert events_of([(0, "a", "f", ""), (0, None, None, '{"x"'), (0, None, None, ":1}")]) == [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"x"'),
        ToolCallDelta("a", ":1}"),
        ToolCallEnded("a"),
    ]


TORTURE: dict[str, tuple[list[Fragment], list[ToolCall]]] = {
    "parallel calls interleave by index": (
        [(0, "a", "f", ""), (1, "b", "g", ""), (1, None, None, "{}"), (0, None, None, "{ }")],
        [call("a", "f", "{ }"), call("b", "g", "{}")],
    ),
    "calls are keyed by id alone": (
        [(None, "a", "f", '{"x"'), (None, "b", "g", "{}"), (None, "a", None, ":1}")],
        [call("a", "f", '{"x":1}'), call("b", "g", "{}")],
    ),
    "pieces with neither belong to the call opened last": (
        [
            (None, "a", "f", '{"x"'),
            (None, None, None, ":1}"),
            (None, "b", "g", None),
            (None, None, None, "{}"),
        ],
        [call("a", "f", '{"x":1}'), call("b", "g", "{}")],
    ),
    "id and name are repeated on every piece": (
        [(0, "a", "f", '{"x"'), (0, "a", "f", ":"), (0, "a", "f", "1}"), (0, "a", "f", "")],
        [call("a", "f", '{"x":1}')],
    ),
    "id and name are empty on later pieces": (
        [(0, "a", "f", '{"x"'), (0, "", "", ":1}")],
        [call("a", "f", '{"x":1}')],
    ),
    "index 0 for all, told apart by id": (
        [
            (0, "a", "f", '{"x":1}'),
            (0, "b", "f", '{"x"'),
            (0, None, None, ":2}"),
            (0, "a", "f", " "),
        ],
        [call("a", "f", '{"x":1} '), call("b", "f", '{"x":2}')],
    ),
    "index 0 for all, told apart by name": (
        [(0, None, "f", "{}"), (0, None, "g", "{ }")],
        [call("new_1", "f", "{}"), call("new_2", "g", "{ }")],
    ),
    "index 0 for all, told apart by nothing but whole arguments": (
        [(0, None, "f", '{"x":1}'), (0, None, "f", '{"x":2}')],
        [call("new_1", "f", '{"x":1}'), call("new_2", "f", '{"x":2}')],
    ),
    "whole calls with neither index nor id": (
        [(None, None, "f", '{"x":1}'), (None, None, "f", '{"x":2}'), (None, None, "g", "{}")],
        [call("new_1", "f", '{"x":1}'), call("new_2", "f", '{"x":2}'), call("new_3", "g", "{}")],
    ),
    "the name comes in pieces": (
        [(0, "a", "read", None), (0, None, "_file", None), (0, None, None, "{}")],
        [call("a", "read_file", "{}")],
    ),
    "the name comes after the arguments began": (
        [(0, "a", None, '{"x"'), (0, None, "f", ":1}"), (0, "a", "f", " ")],
        [call("a", "f", '{"x":1} ')],
    ),
    "the id comes late": (
        [(0, None, "f", '{"x"'), (0, "a", None, ":1}"), (1, "b", "g", "{}"), (0, "a", None, " ")],
        [call("a", "f", '{"x":1} '), call("b", "g", "{}")],
    ),
    "the id comes late and index 0 is for all": (
        [(0, None, "f", '{"x"'), (0, "a", None, ":1"), (0, "b", "g", "{}"), (0, "a", None, "}")],
        [call("a", "f", '{"x":1}'), call("b", "g", "{}")],
    ),
    "there is no id": (
        [(0, "", "f", '{"x"'), (0, "", None, ":1}"), (1, None, "f", "{}")],
        [call("new_1", "f", '{"x":1}'), call("new_2", "f", "{}")],
    ),
    "arguments are null": ([(0, "a", "f", None)], [call("a", "f", "")]),
    "arguments are empty": ([(0, "a", "f", ""), (0, None, None, "")], [call("a", "f", "")]),
    "arguments are null first": (
        [(0, "a", "f", None), (0, None, None, "{}")],
        [call("a", "f", "{}")],
    ),
    "arguments are an object": ([(0, "a", "f", {"x": [1]})], [call("a", "f", '{"x":[1]}')]),
    "arguments are an empty object": ([(0, "a", "f", {})], [call("a", "f", "{}")]),
    "arguments are a list": ([(0, "a", "f", [1])], [call("a", "f", "[1]")]),
    "arguments are no JSON": ([(0, "a", "f", "rm -rf")], [call("a", "f", "rm -rf")]),
    "arguments are a string with braces": (
        [(0, "a", "f", '{"x":"} {"}'), (0, None, None, "")],
        [call("a", "f", '{"x":"} {"}')],
    ),
    "an id is used again for another call": (
        [(0, "a", "f", "{}"), (1, "a", "g", "{}")],
        [call("a", "f", "{}"), call("new_1", "g", "{}")],
    ),
    "an id is used again at the same index": (
        [(0, "a", "f", '{"x":1}'), (0, "a", "f", '{"x":2}')],
        [call("a", "f", '{"x":1}'), call("new_1", "f", '{"x":2}')],
    ),
    "a call is sent twice": (
        [(0, "a", "f", '{"x":1}'), (0, "a", "f", '{"x":1}')],
        [call("a", "f", '{"x":1}')],
    ),
    "calls come glued together": (
        [(0, "a", "f", '{"x":1}\n'), (0, None, None, '{"x":2}'), (0, None, None, "{}")],
        [call("a", "f", '{"x":1}'), call("new_1", "f", '{"x":2}'), call("new_2", "f", "{}")],
    ),
    "what is between objects is not thrown away": (
        [(0, "a", "f", '{"x": "  "},{"y":1}{}')],
        [call("a", "f", '{"x": "  "},{"y":1}{}')],
    ),
    "an unfinished second object is left as it is": (
        [(0, "a", "f", '{"x":1}{"y"')],
        [call("a", "f", '{"x":1}{"y"')],
    ),
    "indexes come out of order": (
        [(2, "c", "f", ""), (0, "a", "g", ""), (2, None, None, "{}"), (0, None, None, "{ }")],
        [call("c", "f", "{}"), call("a", "g", "{ }")],
    ),
    "nothing is called": ([], []),
}


@pytest.mark.parametrize("case", TORTURE)
def test_fragments_of_any_shape_become_the_calls_they_mean(case: str):
    fragments, expected = TORTURE[case]
    assert calls_of(events_of(fragments)) == expected


@pytest.mark.parametrize("case", TORTURE)
def test_each_call_starts_once_ends_once_and_has_its_own_id(case: str):
    assert_well_formed(events_of(TORTURE[case][0]))


def assert_well_formed(events: list[ModelEvent]) -> None:
    open_ids: set[str] = set()
    seen: set[str] = set()
    for event in events:
        if isinstance(event, ToolCallStarted):
            assert event.id not in seen
            seen.add(event.id)
            open_ids.add(event.id)
        elif isinstance(event, ToolCallDelta):
            assert event.id in open_ids
            assert event.arguments
        elif isinstance(event, ToolCallEnded):
            open_ids.remove(event.id)
    assert not open_ids


def test_a_call_without_an_id_keeps_its_place_before_one_with():
    events = events_of([(0, None, "f", "{}"), (1, "b", "g", "{}")])
    assert [event.name for event in events if isinstance(event, ToolCallStarted)] == ["f", "g"]


def test_a_reused_id_is_reported():
    assert events_of([(0, "a", "f", "{}"), (1, "a", "g", "{}")])[2:4] == [
        Notice("duplicate_id", 'two calls have the id "a"; one is now "new_1"'),
        ToolCallStarted("new_1", "g", made_id=True),
    ]


def test_a_call_sent_twice_is_reported():
    assert Notice("duplicate_call", 'call "a" was sent twice') in events_of(
        [(0, "a", "f", "{}"), (0, "a", "f", "{}")]
    )


def test_glued_calls_are_reported_and_the_first_ends_with_its_own_arguments():
    assert events_of([(0, "a", "f", '{"x":1}{"x":2}')]) == [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"x":1}{"x":2}'),
        Notice("glued_arguments", '2 calls of "f" came glued together'),
        ToolCallEnded("a", '{"x":1}'),
        ToolCallStarted("new_1", "f", made_id=True),
        ToolCallDelta("new_1", '{"x":2}'),
        ToolCallEnded("new_1"),
    ]


def test_pieces_after_the_end_are_reported_and_change_nothing():
    calls = tracker()
    events = [*calls.fragment(0, "a", "f", "{}"), *calls.end_all()]
    late = Notice("late_arguments", 'call "a" got more arguments after its end')
    assert calls.fragment(0, None, None, "x") == [late]
    assert calls.fragment(0, "a", "f", "x") == [late]
    assert calls.append(0, "x") == [late]
    assert calls.append(0, "") == []
    assert calls.end(0) == []
    assert calls.end_all() == []
    assert calls_of(events) == [call("a", "f", "{}")]


def test_a_length_stop_leaves_the_last_call_incomplete():
    fragments: list[Fragment] = [(0, "a", "f", "{}"), (1, "b", "g", "{}")]
    assert calls_of(events_of(fragments, cut=True)) == [
        call("a", "f", "{}"),
        call("b", "g", "{}", complete=False),
    ]


def test_a_length_stop_leaves_an_earlier_call_incomplete_if_its_json_is():
    fragments: list[Fragment] = [(0, "a", "f", '{"x'), (1, "b", "g", "{}")]
    assert [made.complete for made in calls_of(events_of(fragments, cut=True))] == [False, False]


def test_a_length_stop_leaves_an_earlier_freeform_call_whole():
    calls = tracker()
    events = [
        *calls.fragment(0, "a", "patch", "*** Begin", CallKind.FREEFORM),
        *calls.fragment(1, "b", "patch", "*** Beg", CallKind.FREEFORM),
        *calls.end_all(cut=True),
    ]
    assert [made.complete for made in calls_of(events)] == [True, False]


def test_a_broken_stream_leaves_every_open_call_incomplete():
    fragments: list[Fragment] = [(0, "a", "f", "{}"), (1, "b", "g", "{}")]
    assert [made.complete for made in calls_of(events_of(fragments, complete=False))] == [
        False,
        False,
    ]


def test_marked_calls_are_emitted_as_they_arrive():
    calls = tracker()
    kept = Kept(dialect="anthropic-messages", fields='{"caller":1}')
    events = [
        *calls.start("item", "f", "a", namespace="math"),
        *calls.append("item", "{"),
        *calls.append("item", ""),
        *calls.append("item", "}"),
        *calls.end("item", arguments="{}", seal=SEAL, kept=kept),
    ]
    assert events == [
        ToolCallStarted("a", "f", namespace="math"),
        ToolCallDelta("a", "{"),
        ToolCallDelta("a", "}"),
        ToolCallEnded("a", seal=SEAL, kept=kept),
    ]
    assert "item" in calls
    assert "other" not in calls
    assert len(calls) == 1


def test_the_vendors_last_word_on_the_arguments_wins():
    calls = tracker()
    events = [*calls.start(0, "f", "a"), *calls.append(0, "{"), *calls.end(0, arguments='{"x":1}')]
    assert events[-1] == ToolCallEnded("a", '{"x":1}')
    assert calls_of(events) == [call("a", "f", '{"x":1}')]


def test_state_that_comes_before_the_end_is_carried_by_the_end():
    calls = tracker()
    calls.start(0, "f", "a")
    calls.attach(0, SEAL)
    assert calls.end_all() == [ToolCallEnded("a", seal=SEAL)]


def test_names_come_back_as_the_tools_are_called():
    names = ToolNames([ToolSpec(name="math.hypot"), ToolSpec(name="add", namespace="math")])
    calls = tracker(names)
    events = [
        *calls.start(0, names.wire_name("math.hypot"), "a"),
        *calls.start(1, "math__add", "b"),
        *calls.start(2, "unknown!", "c"),
    ]
    assert events == [
        ToolCallStarted("a", "math.hypot"),
        ToolCallStarted("b", "add", namespace="math"),
        ToolCallStarted("c", "unknown!"),
    ]


@pytest.mark.parametrize(
    ("pieces", "text", "complete"),
    [
        (['{"inp', 'ut":"ls -l\\n"}'], "ls -l\n", True),
        (['{"input":""}'], "", True),
        (['{"inp'], '{"inp', False),
        (['{"other":"x"}'], '{"other":"x"}', False),
        (['{"input":1}'], '{"input":1}', False),
        ([], "", False),
    ],
)
def test_a_wrapped_freeform_call_is_unwrapped_at_its_end(
    pieces: list[str], text: str, complete: bool
):
    calls = tracker(ToolNames([FreeformTool(name="sh")], wrap_freeform=True))
    events = calls.start(0, "sh", "a")
    events += [event for piece in pieces for event in calls.append(0, piece)]
    events += calls.end(0)
    assert calls_of(events) == [
        ToolCall(id="a", name="sh", arguments=text, kind=CallKind.FREEFORM, complete=complete)
    ]


some_fragments = st.lists(
    st.tuples(
        st.none() | st.integers(0, 2),
        st.sampled_from([None, "", "a", "b", "c"]),
        st.sampled_from([None, "", "f", "g", "_h"]),
        st.sampled_from([None, "", "{", "}", "{}", '{"x":1}', '"', " ", "x", '{"x":1}{}'])
        | st.just({"x": 1}),
    ),
    max_size=12,
)


@given(some_fragments, st.booleans())
def test_any_fragments_give_well_formed_calls(fragments: list[Fragment], cut: bool):
    assert_well_formed(events_of(fragments, cut=cut))


arguments = st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.integers(), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["f", "g"]), arguments), max_size=4), st.data())
def test_interleaved_pieces_of_indexed_calls_come_together_again(
    wanted: list[tuple[str, dict[str, object]]], data: st.DataObject
):
    texts = [json.dumps(value) for _, value in wanted]
    queues: list[list[Fragment]] = []
    for index, ((name, _), text) in enumerate(zip(wanted, texts, strict=True)):
        cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=3))
        places = [0, *sorted(cuts), len(text)]
        repeats = data.draw(st.booleans())
        queues.append(
            [
                (index, f"id_{index}", name, text[start:end])
                if start == 0 or repeats
                else (index, None, None, text[start:end])
                for start, end in pairwise(places)
            ]
        )
    # The first pieces come in order; the others as they like.
    fragments = [queue.pop(0) for queue in queues]
    while any(queues):
        fragments.append(data.draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    assert calls_of(events_of(fragments)) == [
        call(f"id_{index}", name, text)
        for index, ((name, _), text) in enumerate(zip(wanted, texts, strict=True))
    ]
