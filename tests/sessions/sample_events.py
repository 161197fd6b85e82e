"""Sessions as the agent tells them: fixed ones for files, random ones for properties."""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    ApprovalOutcome,
    HistoryReplaced,
    MessageAdded,
    ModelAsked,
    SessionOpened,
    Streaming,
    Thought,
    ToolDecided,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.events import Finished, StopReason, TextDelta, Usage
from toolwire.messages import Message, Outcome, Text, ToolCall, ToolResult
from toolwire.tools.spec import Effect

MODEL = "simulator/small"
DONE = Finished(reason=StopReason.END)


def opened(session: str = "s1", **more: Any) -> SessionOpened:
    return SessionOpened(session=session, model=MODEL, dialect="gemini", cwd="/home/me", **more)


def said(text: str) -> MessageAdded:
    return MessageAdded(message=Message(role="user", parts=(Text(text),)))


def reply(*calls: ToolCall, text: str = "well", finished: Finished | None = DONE) -> MessageAdded:
    parts = (Text(text), *calls)
    return MessageAdded(message=Message(role="assistant", parts=parts), finished=finished)


def call(id: str, name: str = "write_file", complete: bool = True) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=f'{{"x": "{id}"}}', complete=complete)


def started(one: ToolCall, effect: Effect = Effect.WRITE) -> ToolStarted:
    return ToolStarted(call_id=one.id, name=one.name, arguments=one.arguments, effect=effect)


def finished(one: ToolCall, text: str = "done", error_type: str = "") -> ToolFinished:
    outcome = Outcome.NOT_RUN if error_type else Outcome.DONE
    return ToolFinished(
        call_id=one.id,
        name=one.name,
        arguments=one.arguments,
        outcome=outcome,
        success=not error_type,
        duration=0.5,
        error_type=error_type,
        display=text,
        result=ToolResult(
            call_id=one.id,
            name=one.name,
            parts=(Text(text),),
            is_error=bool(error_type),
            outcome=outcome,
        ),
    )


def worked(calls: tuple[ToolCall, ...], effect: Effect = Effect.WRITE) -> Iterator[AgentEvent]:
    for one in calls:
        yield ToolRequested(call=one)
    for one in calls:
        yield ToolDecided(call_id=one.id, decision=ApprovalOutcome.AUTO_ACCEPT)
        yield started(one, effect)
        yield ToolOutputText(call_id=one.id, text="…")
        yield finished(one, f"result of {one.id}")
    yield AnswersGiven(call_ids=tuple(one.id for one in calls))


def a_turn(number: int, calls: int = 2, size: int = 100) -> Iterator[AgentEvent]:
    yield TurnStarted()
    yield said(f"prompt {number} " + "p" * size)
    yield ModelAsked(model=MODEL)
    yield Streaming(TextDelta("we"))
    yield Thought(subject="plan", description="think " * 5)
    yield UsageCounted(model=MODEL, usage=Usage(input=100, output=20, cached=50), cost=0.25)
    made = tuple(call(f"call_{place}") for place in range(calls))
    yield reply(*made, text="answer " + "a" * size)
    yield from worked(made, Effect.READ if number % 2 else Effect.WRITE)
    yield ModelAsked(model=MODEL)
    yield UsageCounted(model=MODEL, usage=Usage(input=200, output=20), failed=True)
    yield reply(text="all is done")
    yield TurnEnded(reason=TurnEnd.DONE, requests=2, usage=Usage(input=300, output=40), cost=0.25)


def a_session(turns: int, session: str = "s1", calls: int = 2) -> list[AgentEvent]:
    events: list[AgentEvent] = [opened(session)]
    events += (
        MessageAdded(message=Message(role="user", parts=(Text("surroundings"),)), context=True),
        MessageAdded(message=Message(role="assistant", parts=(Text("Got it."),)), context=True),
    )
    for number in range(turns):
        events += a_turn(number, calls)
    return events


def kept(events: list[AgentEvent]) -> list[AgentEvent]:
    return [event for event in events if not isinstance(event, Streaming | ToolOutputText)]


_IDS = st.sampled_from(["a", "b", "c", "a"])
_TEXTS = st.text(max_size=8)


@st.composite
def _calls(draw: st.DrawFn) -> tuple[ToolCall, ...]:
    ids = draw(st.lists(_IDS, min_size=1, max_size=4))
    return tuple(call(one, complete=draw(st.integers(0, 9)) > 0) for one in ids)


@st.composite
def _work(draw: st.DrawFn, calls: tuple[ToolCall, ...]) -> list[AgentEvent]:
    """The calls in any order of ending, some refused, those with a used id always."""
    events: list[AgentEvent] = [ToolRequested(call=one) for one in calls]
    seen: set[str] = set()
    steps: list[list[AgentEvent]] = []
    for one in calls:
        duplicate = one.id in seen
        seen.add(one.id)
        if duplicate or not one.complete or draw(st.booleans()):
            why = "duplicate_id" if duplicate else "denied"
            steps.append([finished(one, f"no {len(steps)}", why)])
        else:
            effect = draw(st.sampled_from(Effect))
            steps.append([started(one, effect), finished(one, f"yes {len(steps)}")])
    while any(steps):
        place = draw(st.sampled_from([at for at, step in enumerate(steps) if step]))
        events.append(steps[place].pop(0))
    events.append(AnswersGiven(call_ids=tuple(one.id for one in calls)))
    return events


@st.composite
def sessions(draw: st.DrawFn) -> list[AgentEvent]:
    """A session as the agent may tell it, from its first event to its last."""
    events: list[AgentEvent] = [opened()]
    spoken: list[Message] = []
    for _ in range(draw(st.integers(1, 4))):
        events += (TurnStarted(), said(draw(_TEXTS)))
        for _ in range(draw(st.integers(0, 3))):
            calls = draw(_calls())
            if draw(st.integers(0, 5)) == 0:
                events.append(reply(*calls, finished=None))
                break
            events += (reply(*calls), *draw(_work(calls)))
            if draw(st.integers(0, 5)) == 0:
                spoken = [Message(role="user", parts=(Text("a summary"),))]
                events.append(
                    HistoryReplaced(messages=tuple(spoken), method="summary", before=9, after=1)
                )
        events += (reply(), TurnEnded(reason=TurnEnd.DONE))
    return events
