from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compaction.conversations import TOOLS, begun, called, said, session
from toolwire import dialects
from toolwire.context.cache import PrefixMeter, Stability, compared, compared_bodies, marked
from toolwire.dialects.quirks import Quirks
from toolwire.messages import Message, Text
from toolwire.request import Effort, ModelRequest, Reasoning, ToolSpec

FIRST = said(begun(), *called(1))


def change(request: ModelRequest, **members: object) -> ModelRequest:
    return msgspec.structs.replace(request, **members)


def edited(at: int, text: str) -> ModelRequest:
    messages = list(FIRST.messages)
    messages[at] = Message(role=messages[at].role, parts=(Text(text),))
    return change(FIRST, messages=tuple(messages))


def test_a_request_that_only_grows_keeps_all_of_its_prefix():
    longer = said(FIRST, *called(2))
    found = compared(FIRST, longer)
    assert (found.shared, found.why, found.stable) == (found.previous, "", True)
    assert found.following > found.previous
    assert compared(FIRST, FIRST).shared == found.previous


@pytest.mark.parametrize(
    ("following", "why"),
    [
        (change(FIRST, model="other"), "the model changed"),
        (change(FIRST, system=(Text("new"),)), "the system prompt changed"),
        (change(FIRST, system=()), "the system prompt is gone"),
        (
            change(FIRST, system=(*FIRST.system, Text("memory"))),
            "system text 2 was added before a setting (tool choice, reasoning or output form)",
        ),
        (
            change(FIRST, tools=(TOOLS[0], ToolSpec(name="replace"), TOOLS[2])),
            "tool replace changed",
        ),
        (change(FIRST, tools=TOOLS[1:]), "tool read_file is gone"),
        (
            change(FIRST, tools=(TOOLS[1], TOOLS[0], TOOLS[2])),
            "tool replace was added before tool read_file",
        ),
        (change(FIRST, tools=TOOLS[:2]), "tool run_shell_command is gone"),
        (
            change(FIRST, reasoning=Reasoning(effort=Effort.HIGH)),
            "a setting (tool choice, reasoning or output form) changed",
        ),
        (edited(0, "other"), "message 1 (user) changed"),
        (edited(3, "other"), "message 4 (assistant) changed"),
        (
            change(FIRST, messages=FIRST.messages[:2]),
            "message 3 (user) is gone; 3 pieces fewer",
        ),
    ],
)
def test_a_change_is_reported_in_words(following: ModelRequest, why: str):
    found = compared(FIRST, following)
    assert found.why == why
    assert not found.stable
    assert found.shared < found.previous


def test_what_stands_before_a_change_is_counted_to_the_byte():
    one = change(begun(), messages=(Message(role="user", parts=(Text("same words, A"),)),))
    two = change(begun(), messages=(Message(role="user", parts=(Text("same words, B and"),)),))
    whole = compared(one, one)
    assert compared(one, two).shared == whole.shared - _tail(one) + _until(one, two)


def _tail(request: ModelRequest) -> int:
    return len(msgspec.json.encode(request.messages[0]))


def _until(one: ModelRequest, two: ModelRequest) -> int:
    pair = zip(
        msgspec.json.encode(one.messages[0]), msgspec.json.encode(two.messages[0]), strict=False
    )
    return next(at for at, (a, b) in enumerate(pair) if a != b)


def test_marks_that_move_change_no_prefix():
    longer = said(FIRST, *called(2))
    one = marked(FIRST, "anthropic-messages", Quirks())
    two = marked(longer, "anthropic-messages", Quirks())
    assert compared(one, two) == compared(FIRST, longer)


def test_a_meter_sums_a_session_up_and_numbers_its_changes():
    meter = PrefixMeter()
    longer = said(FIRST, *called(2))
    assert meter.add(FIRST) is None
    assert meter.add(longer) == compared(FIRST, longer)
    other = change(longer, model="other")
    assert meter.add(other) == compared(longer, other)
    size = compared(FIRST, longer)
    assert meter.total == Stability(
        requests=3,
        bytes=size.previous + size.following,
        shared=size.previous + compared(longer, other).shared,
        changes=("request 3: the model changed",),
    )
    assert PrefixMeter().total.share == 1.0


def test_equal_values_count_as_the_same_whether_or_not_they_are_one_object():
    meter = PrefixMeter()
    copies = [deepcopy(request) for request in session(5)]
    for request in copies:
        meter.add(request)
    assert meter.total.share == 1.0


_STEPS = st.lists(
    st.sampled_from(["grow", "say", "model", "tools", "system", "cut", "same"]), max_size=12
)


@given(_STEPS)
def test_the_meter_finds_what_two_whole_comparisons_find(steps: list[str]):
    meter, request = PrefixMeter(), begun()
    meter.add(request)
    for at, step in enumerate(steps):
        previous = request
        match step:
            case "grow":
                request = said(request, *called(at))
            case "say":
                request = said(request, Message(role="user", parts=(Text(f"{at}"),)))
            case "model":
                request = change(request, model=f"m{at}")
            case "tools":
                request = change(request, tools=request.tools[1:])
            case "system":
                request = change(request, system=(Text(f"s{at}"),))
            case "cut":
                request = change(request, messages=request.messages[-2:])
            case _:
                pass
        assert meter.add(request) == compared(previous, request)
        found = compared(previous, request)
        assert found.shared <= min(found.previous, found.following)
        assert found.stable == (found.shared == found.previous)


def test_a_session_of_a_hundred_turns_keeps_its_prefix(counted: Callable[[str], None]):
    meter = PrefixMeter()
    for request in session(100):
        meter.add(request)
    assert meter.total.changes == ()
    assert meter.total.share == 1.0
    counted(f"prefix: {meter.total.requests} requests, {meter.total.share:.1%} of bytes unchanged")


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_every_wire_format_keeps_the_prefix_too(dialect: str, counted: Callable[[str], None]):
    quirks = Quirks(cache_marks=True)
    bodies = [
        dialects.get(dialect).encode_request(marked(request, dialect, quirks), quirks).http.body
        for request in session(100)
    ]
    found = [compared_bodies(a, b) for a, b in pairwise(bodies)]
    shared, previous = sum(one.shared for one in found), sum(one.previous for one in found)
    assert [one.why for one in found if one.why] == []
    assert previous > 50_000
    counted(
        f"prefix on the wire, {dialect}: {shared / previous:.1%} of {previous:,} bytes unchanged"
    )


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_the_bytes_that_are_sent_begin_as_the_last_ones_did(dialect: str):
    codec = dialects.get(dialect)
    bodies = [codec.encode_request(request, Quirks()).http.body for request in session(100)]
    for earlier, later in pairwise(bodies):
        # All but the brackets that close it.
        assert later.startswith(earlier[:-4])


def test_a_changed_body_is_reported_in_words():
    def body(request: ModelRequest) -> bytes:
        return dialects.get("gemini").encode_request(request).http.body

    assert compared_bodies(body(FIRST), body(edited(0, "other"))).why == "message 1 changed"
    assert compared_bodies(body(FIRST), body(change(FIRST, system=(Text("x"),)))).why == (
        "the system prompt changed"
    )
    assert compared_bodies(body(FIRST), body(change(FIRST, tools=TOOLS[1:]))).why == (
        "the tools changed"
    )
