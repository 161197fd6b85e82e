from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.sample_events import (
    MODEL,
    a_session,
    a_turn,
    call,
    finished,
    opened,
    reply,
    said,
    sessions,
    started,
    worked,
)
from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    HistoryReplaced,
    MessageAdded,
    ToolFinished,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.events import Usage
from toolwire.history import repair
from toolwire.messages import Message, Origin, Outcome, Text, calls_without_result
from toolwire.sessions.replay import (
    BROKE_OFF,
    LOST_READ,
    NOT_STARTED,
    UNKNOWN,
    CallStage,
    ModelTotals,
    Session,
    answered,
    open_calls,
    replay,
    resolve_open_calls,
)
from toolwire.tools.spec import Effect

HERE = Origin("gemini", "simulator", "small")
A, B, C = call("a"), call("b"), call("c")


def texts(message: Message) -> list[str]:
    return [result.text for result in message.results]


def test_a_whole_session_is_replayed_to_its_last_word() -> None:
    session = replay(a_session(3))
    assert session == Session(
        id="s1",
        model=MODEL,
        dialect="gemini",
        cwd="/home/me",
        messages=session.messages,
        context=2,
        totals=(
            ModelTotals(
                model=MODEL,
                requests=6,
                failed=3,
                input=900,
                output=120,
                cached=150,
                cost=0.75,
                unpriced=3,
            ),
        ),
        turns=3,
        title="prompt 0 " + "p" * 60 + "…",
        ended=TurnEnded(
            reason=TurnEnd.DONE, requests=2, usage=Usage(input=300, output=40), cost=0.25
        ),
    )
    assert [message.role for message in session.messages] == ["user", "assistant"] * 7
    assert texts(session.messages[4]) == ["result of call_0", "result of call_1"]
    assert session.cost == 0.75


def test_the_last_process_decides_model_mode_and_folder() -> None:
    later = opened("s1", style="xml", mode="plan", forked_from="")
    session = replay([opened("s0", forked_from="old"), *a_turn(1), later])
    assert (session.style, session.mode, session.forked_from) == ("xml", "plan", "old")


def test_a_shortened_conversation_keeps_the_surroundings_it_still_begins_with() -> None:
    before = a_session(1)
    first = before[1:3]
    messages = [event.message for event in first if isinstance(event, MessageAdded)]
    summary = Message(role="user", parts=(Text("so far"),))
    short = HistoryReplaced(messages=(*messages, summary), method="summary", before=99, after=9)
    session = replay([*before, short, *a_turn(1)])
    assert session.context == 2
    assert session.messages[:3] == (*messages, summary)
    assert len(session.messages) == 3 + 4


def test_answers_stand_in_the_order_of_calls_with_what_belongs_beside_them() -> None:
    beside = msgspec.structs.replace(finished(A, "first"), beside=(Text("a picture"),))
    events = [reply(A, B), finished(B, "second"), beside, AnswersGiven(call_ids=("a", "b"))]
    (_, message) = replay(events).messages
    assert message.parts == (beside.result, Text("a picture"), finished(B, "second").result)


def test_an_id_used_in_an_earlier_reply_does_not_bring_its_result_back() -> None:
    events: list[AgentEvent] = [reply(A), *worked((A,)), reply(A)]
    session = replay(events)
    assert [one.state for one in session.open] == [CallStage.NOT_STARTED]


def test_a_used_id_in_one_reply_keeps_each_result_with_its_call() -> None:
    events = [
        reply(A, A),
        started(A),
        finished(A, "refused", "duplicate_id"),
        finished(A, "real"),
        AnswersGiven(call_ids=("a", "a")),
    ]
    assert texts(replay(events).messages[-1]) == ["real", "refused"]


OPEN: list[tuple[str, list[AgentEvent], list[Outcome], list[str]]] = [
    ("nothing began", [reply(A)], [Outcome.NOT_RUN], [NOT_STARTED]),
    ("a writer ran", [reply(A), started(A)], [Outcome.INTERRUPTED], [UNKNOWN]),
    (
        "one is done",
        [reply(A, B, C), started(A), finished(A), started(B, Effect.EXECUTE)],
        [Outcome.DONE, Outcome.INTERRUPTED, Outcome.NOT_RUN],
        ["done", UNKNOWN, NOT_STARTED],
    ),
    ("the reply broke off", [reply(A, finished=None)], [Outcome.NOT_RUN], [BROKE_OFF]),
]


@pytest.mark.parametrize(
    ("events", "outcomes", "words"), [case[1:] for case in OPEN], ids=[case[0] for case in OPEN]
)
def test_open_calls_are_answered_with_what_is_known(
    events: list[AgentEvent], outcomes: list[Outcome], words: list[str]
) -> None:
    found = open_calls(events)
    todo = resolve_open_calls(found)
    message = answered(found, todo.finished)
    assert [result.outcome for result in message.results] == outcomes
    assert texts(message) == words
    assert todo.again == ()


@pytest.mark.parametrize("effect", Effect)
def test_only_what_reads_is_run_again(effect: Effect) -> None:
    found = open_calls([reply(A, B), started(A, effect)])
    reads = effect in (Effect.READ, Effect.NETWORK)
    assert resolve_open_calls(found).again == ((A,) if reads else ())
    assert resolve_open_calls(found, run_again=False).again == ()
    assert texts(answered(found)) == [LOST_READ if reads else UNKNOWN, NOT_STARTED]


def test_a_second_run_of_a_reader_gives_the_answer() -> None:
    found = open_calls([reply(A, B), started(A, Effect.READ)])
    todo = resolve_open_calls(found)
    message = answered(found, (*todo.finished, finished(A, "read at last")))
    assert texts(message) == ["read at last", NOT_STARTED]
    assert todo.call_ids == ("a", "b")


def test_calls_of_a_reply_that_broke_off_are_answered_before_the_next_word() -> None:
    session = replay([said("go"), reply(A, finished=None), TurnStarted(), said("again")])
    assert [message.role for message in session.messages] == ["user", "assistant", "user", "user"]
    assert texts(session.messages[2]) == [BROKE_OFF]
    assert session.open == ()


def test_an_answer_whose_record_is_missing_is_not_made_to_look_done() -> None:
    session = replay([reply(A, B), started(A), AnswersGiven(call_ids=("a", "b"))])
    assert texts(session.messages[-1]) == [UNKNOWN, NOT_STARTED]


def test_a_turn_that_did_not_end_has_no_end() -> None:
    assert replay([*a_session(1), TurnStarted()]).ended is None


@given(events=sessions(), data=st.data())
def test_any_prefix_settles_to_a_balanced_conversation(
    events: list[AgentEvent], data: st.DataObject
) -> None:
    prefix = events[: data.draw(st.integers(0, len(events)))]
    session = replay(prefix)
    todo = resolve_open_calls(session.open)
    made = (*todo.finished, *(finished(one, "again") for one in todo.again))
    messages = session.messages
    if session.open:
        messages = (*messages, answered(session.open, made))
    assert_balanced(messages)
    assert_balanced(session.settled_messages)
    kept = [*prefix, *made, AnswersGiven(call_ids=todo.call_ids)] if session.open else prefix
    assert replay(kept).messages == messages


@given(events=sessions())
def test_no_known_result_is_lost_or_told_of_another_call(events: list[AgentEvent]) -> None:
    for place in range(len(events) + 1):
        session = replay(events[:place])
        if session.open:
            last = answered(session.open).results
            assert len(last) == len(session.open)
            assert {one.result for one in _since_reply(events[:place])} <= set(last)


def _since_reply(events: Sequence[AgentEvent]) -> list[ToolFinished]:
    found: list[ToolFinished] = []
    for event in events:
        if isinstance(event, MessageAdded):
            found = []
        elif isinstance(event, ToolFinished):
            found.append(event)
    return found


def assert_balanced(messages: tuple[Message, ...]) -> None:
    for message, after in zip(messages, (*messages[1:], None), strict=False):
        ids = [one.id for one in message.calls]
        if ids:
            assert after is not None
            assert [result.call_id for result in after.results] == ids
    mended = repair(messages, HERE)
    assert list(calls_without_result(mended.messages)) == []
    assert not [change for change in mended.changes if "answered the call" in change.what]
