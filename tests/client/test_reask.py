import pytest

from tests.client.scripted import REQUEST, listen, run
from tests.client.speaking import DONE, Scripted, finished
from toolwire.client.reask import EMPTY_NOTE, MALFORMED_NOTE, with_reask
from toolwire.collect import Collector
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    Retry,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import Message, Origin, Seal, Text, Thinking

MALFORMED = Finished(reason=StopReason.MALFORMED_CALL, detail="MALFORMED_FUNCTION_CALL")
SEAL = Seal(origin=Origin("anthropic-messages"), data='{"signature":"s"}')


def noted(note: str) -> tuple[Message, ...]:
    return (*REQUEST.messages, Message(role="user", parts=(Text(note),)))


GOOD: list[list[ModelEvent]] = [
    [TextDelta("hi"), DONE],
    [ThinkingDelta("hm"), ThinkingEnded(SEAL), TextDelta("hi"), TextEnded(), DONE],
    [TextDelta("\n"), TextDelta("hi"), DONE],
    [
        ThinkingEnded(SEAL),
        ThinkingDelta("b"),
        ToolCallStarted("a", "look"),
        ToolCallEnded("a"),
        finished(StopReason.TOOL_CALLS),
    ],
    [TextDelta("half"), MALFORMED],
    [ThinkingDelta("long"), finished(StopReason.LENGTH)],
    [TextDelta("half"), finished(StopReason.CONTENT_FILTER)],
    [finished(StopReason.REFUSAL)],
    [ThinkingDelta("a"), ThinkingEnded(SEAL), finished(StopReason.PAUSE)],
]


@pytest.mark.parametrize("answer", GOOD)
def test_an_answer_passes_unchanged(answer: list[ModelEvent]) -> None:
    async def work() -> None:
        script = Scripted(answer)
        assert await listen(with_reask(script)) == (answer, None)
        assert len(script.asked) == script.closed == 1

    run(work)


@pytest.mark.parametrize(
    ("bad", "note"),
    [
        ([DONE], EMPTY_NOTE),
        ([TextDelta(" \n"), TextEnded(), DONE], EMPTY_NOTE),
        ([finished(StopReason.TOOL_CALLS)], EMPTY_NOTE),
        ([MALFORMED], MALFORMED_NOTE),
        ([ProviderError(ErrorKind.MALFORMED_CALL, "tool_use_failed")], MALFORMED_NOTE),
    ],
)
def test_an_answer_of_nothing_is_asked_for_again_with_a_note(bad: list, note: str) -> None:
    async def work() -> None:
        script = Scripted(bad, [TextDelta("hi"), DONE])
        events, error = await listen(with_reask(script))
        assert error is None
        assert isinstance(events[0], Notice)
        assert events[1:] == [TextDelta("hi"), DONE]
        assert script.asked[1].messages == noted(note)

    run(work)


FILTERED = Finished(reason=StopReason.CONTENT_FILTER, detail="SAFETY")


def test_an_answer_that_a_filter_swallowed_is_asked_for_again_without_a_note() -> None:
    async def work() -> None:
        script = Scripted([FILTERED], [TextDelta("hi"), DONE])
        events, error = await listen(with_reask(script))
        assert error is None
        words = "a content filter removed the whole answer: SAFETY; retrying (2 of 2 tries left)"
        told = Notice("retry", words, retry=Retry(attempt=2))
        assert events == [told, TextDelta("hi"), DONE]
        assert script.asked == [REQUEST, REQUEST]

    run(work)


def test_a_filter_that_swallows_every_answer_ends_it_under_its_own_name() -> None:
    async def work() -> None:
        bad: list[ModelEvent] = [TextDelta("\n"), TextEnded(), FILTERED]
        script = Scripted(bad, bad, bad)
        events, error = await listen(with_reask(script))
        assert error is None
        assert events[2:] == bad
        assert all(isinstance(event, Notice) for event in events[:2])
        assert len(script.asked) == 3

    run(work)


def test_thoughts_stream_and_do_not_run_into_those_of_the_next_answer() -> None:
    async def work() -> None:
        script = Scripted(
            [ThinkingDelta("one"), ThinkingEnded(SEAL), DONE],
            [ThinkingDelta("two"), ThinkingEnded(SEAL), TextDelta("hi"), DONE],
        )
        events, error = await listen(with_reask(script))
        assert error is None
        assert events[:2] == [ThinkingDelta("one"), ThinkingEnded()]
        collector = Collector()
        collector.add_all(events)
        parts = collector.message().parts
        assert parts == (Thinking("one"), Thinking("two", SEAL), Text("hi"))

    run(work)


def test_text_is_passed_on_as_it_comes() -> None:
    async def work() -> None:
        script = Scripted([TextDelta("a"), TextDelta("b"), DONE])
        stream = with_reask(script)(REQUEST)
        assert await anext(stream) == TextDelta("a")
        assert script.closed == 0
        await stream.aclose()  # type: ignore[attr-defined]
        assert script.closed == 1

    run(work)


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        ([DONE], ErrorKind.SERVER, "the model returned nothing (3 times in a row)"),
        (
            [ThinkingDelta("h"), DONE],
            ErrorKind.SERVER,
            "the model returned only thinking (3 times in a row)",
        ),
        ([MALFORMED], ErrorKind.MALFORMED_CALL, "cannot be read: MALFORMED_FUNCTION_CALL (3 times"),
    ],
)
def test_after_the_last_try_comes_a_clear_error(bad: list, kind: ErrorKind, words: str) -> None:
    async def work() -> None:
        script = Scripted(bad, bad, bad)
        events, error = await listen(with_reask(script))
        assert isinstance(error, ProviderError)
        assert error.kind == kind
        assert words in str(error)
        assert not any(isinstance(event, Finished) for event in events)
        assert len(script.asked) == 3

    run(work)


def test_other_errors_pass() -> None:
    async def work() -> None:
        failure = ProviderError(ErrorKind.QUOTA, "empty")
        assert await listen(with_reask(Scripted([failure]))) == ([], failure)
        late = ProviderError(ErrorKind.MALFORMED_CALL, "late")
        script = Scripted([TextDelta("a"), late])
        assert await listen(with_reask(script)) == ([TextDelta("a")], late)

    run(work)
