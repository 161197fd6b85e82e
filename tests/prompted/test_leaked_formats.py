import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.prompted.leaked_samples import SAMPLES
from tests.prompted.leaked_speaking import MARKED, notices, pieces, said, spec, told
from toolwire.events import Finished, StopReason, ToolCallEnded, ToolCallStarted
from toolwire.prompted.leaked import FORMATS

TOOLS = (
    spec("find_ship", port="string", berths="integer"),
    spec("name_star", title="string"),
    spec("moon_now"),
)
names = pytest.mark.parametrize("name", sorted(SAMPLES))


def calls(events: Any) -> list[tuple[str, Any]]:
    return [(it[0], json.loads(it[1])) for it in said(events) if isinstance(it, tuple)]


def text(events: Any) -> str:
    return "".join(it for it in said(events) if isinstance(it, str))


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == set(FORMATS)


def test_no_opener_begins_another() -> None:
    openers = {it for name in MARKED for it in FORMATS[name].openers}
    assert not [(a, b) for a in openers for b in openers if a != b and b.startswith(a)]


@names
def test_the_calls_of_a_format_are_made(name: str) -> None:
    sample, expected = SAMPLES[name]
    events = told([sample], TOOLS, [name])
    assert calls(events) == expected
    assert text(events) == ""
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is StopReason.TOOL_CALLS
    started = [event for event in events if isinstance(event, ToolCallStarted)]
    assert [event.id for event in started] == [f"id{n + 1}" for n in range(len(expected))]
    assert all(event.complete for event in events if isinstance(event, ToolCallEnded))


@names
def test_a_format_is_read_among_all_others(name: str) -> None:
    sample, expected = SAMPLES[name]
    formats = MARKED if name in MARKED else (*MARKED, name)
    assert calls(told([sample], TOOLS, formats)) == expected


@pytest.mark.parametrize("name", sorted(MARKED))
def test_text_around_calls_stays_in_order(name: str) -> None:
    sample, expected = SAMPLES[name]
    between = "\n" if name == "fenced" else " "
    told_events = told([f"Before.{between}{sample}{between}After <b>."], TOOLS, [name])
    pieces_said = said(told_events)
    assert pieces_said[0] == f"Before.{between}"
    assert pieces_said[-1] == f"{between}After <b>."
    assert calls(told_events) == expected


@given(name=st.sampled_from(sorted(SAMPLES)), cuts=st.lists(st.integers(0, 900), max_size=60))
def test_what_is_read_does_not_depend_on_chunks(name: str, cuts: list[int]) -> None:
    sample = SAMPLES[name][0]
    whole = sample if name.startswith("bare") else f"Let me `look` <so>.\n{sample}\nDone <|."
    expected = told([whole], TOOLS, [name])
    events = told(pieces(whole, cuts), TOOLS, [name])
    assert said(events) == said(expected)
    assert notices(events) == notices(expected)


@names
def test_a_call_that_was_cut_is_never_made_and_its_text_stays(name: str) -> None:
    sample, expected = SAMPLES[name]
    for end in range(len(sample)):
        events = told([sample[:end]], TOOLS, [name], StopReason.LENGTH)
        made = calls(events)
        assert made == expected[: len(made)]
        if not made:
            assert text(events) == sample[:end]
        # A call is made only when the text that spells it is all there.
        if len(expected) == 1 and made:
            assert sample[end:].strip("\n") in {"", "</tool_calls>", "</function_calls>"} | CLOSING


CLOSING = {
    tail[start:]
    for tail in (
        "</minimax:tool_call>",
        "</dots_function_call>",
        "<｜tool_calls_end｜>",
        "<｜tool▁calls▁end｜>",
    )
    for start in range(len(tail))
}


@names
def test_a_tool_that_is_not_offered_leaves_the_text_as_it_is(name: str) -> None:
    sample = SAMPLES[name][0]
    events = told([sample], [spec("another")], [name])
    assert said(events) == [sample]
    assert "printed_call_refused" in notices(events)
    assert events[-1] == Finished(reason=StopReason.END)


@names
def test_arguments_that_do_not_fit_leave_the_text_as_it_is(name: str) -> None:
    sample = SAMPLES[name][0]
    strict = [spec(tool.name, other="boolean") for tool in TOOLS]
    events = told([sample], strict, [name])
    assert said(events) == [sample]
    assert "printed_call_refused" in notices(events)


@names
def test_a_format_that_is_not_listed_is_plain_text(name: str) -> None:
    sample = SAMPLES[name][0]
    other = "cohere" if name != "cohere" else "phi"
    assert said(told([sample], TOOLS, [other])) == [sample]
