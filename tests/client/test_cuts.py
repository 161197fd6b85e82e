"""Connections that break at every byte of recorded answers."""

from pathlib import Path

import pytest

from tests.client.scripted import Reply, listen, model_of, provider, run, serving
from toolwire.client.retry import RetryPolicy
from toolwire.collect import Collector
from toolwire.errors import IncompleteStream, ProviderError, ToolwireError
from toolwire.events import Finished, Notice, ToolCallEnded
from toolwire.messages import Message
from toolwire.providers._spec import Provider

WIRE = Path(__file__).parent.parent / "wire"
DIALECTS = {
    "anthropic": "anthropic-messages",
    "gemini": "gemini",
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
}
SAMPLES = {
    f"{path.parent.name}/{path.stem}": path.read_bytes() for path in sorted(WIRE.glob("*/*.sse"))
}
WITH_CALLS = (
    "anthropic/thinking_and_calls",
    "gemini/thinking_and_calls",
    "openai_chat/parallel_calls",
    "openai_responses/cut_by_length",
)
ONCE = RetryPolicy(attempts=1)


def collected(events: list) -> Message:
    collector = Collector()
    collector.add_all(events)
    return collector.message()


def vendor(name: str) -> Provider:
    return provider(DIALECTS[name.partition("/")[0]])


async def _sweep(name: str, steps: range, **cut) -> None:
    body, entry = SAMPLES[name], vendor(name)
    replies = [Reply(chunks=(body[:at],) if at else (), **cut) for at in steps]
    async with (
        serving(Reply(chunks=(body,)), *replies) as server,
        model_of(server, entry, policy=ONCE) as model,
    ):
        whole, failure = await listen(model)
        calls = {call.id: call for call in collected(whole).calls if call.complete}
        for at in steps:
            events, error = await listen(model)
            _check(whole, failure, calls, events, error, f"{name} cut at byte {at}")


def _check(whole, failure, calls, events, error, where: str) -> None:
    finished = [event for event in events if isinstance(event, Finished)]
    assert len(finished) <= 1, where
    assert bool(finished) is (error is None), where
    if error is not None:
        assert isinstance(error, ToolwireError), where
        assert isinstance(error, IncompleteStream) or (
            isinstance(error, ProviderError) and failure is not None
        ), where
    for event in events:
        if isinstance(event, ToolCallEnded) and event.complete:
            # Ids made here differ from one reading to the next; what is called does not.
            made = [call for call in collected(events).calls if call.id == event.id]
            said = {(call.name, call.arguments) for call in calls.values()}
            assert {(call.name, call.arguments) for call in made} <= said, where


@pytest.mark.sweep
@pytest.mark.parametrize("name", WITH_CALLS)
def test_a_broken_connection_never_makes_half_a_call_whole(name: str) -> None:
    run(lambda: _sweep(name, range(len(SAMPLES[name])), cut=True), seconds=240)


@pytest.mark.sweep
@pytest.mark.parametrize("name", WITH_CALLS)
def test_a_body_that_just_ends_never_makes_half_a_call_whole(name: str) -> None:
    run(lambda: _sweep(name, range(len(SAMPLES[name])), close_delimited=True), seconds=240)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_connection_that_breaks_here_and_there_is_reported(name: str) -> None:
    size = len(SAMPLES[name])
    run(lambda: _sweep(name, range(0, size, max(1, size // 20)), cut=True))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_break_before_the_first_event_is_healed_in_silence_but_for_a_notice(name: str) -> None:
    async def work() -> None:
        body, entry = SAMPLES[name], vendor(name)
        good = Reply(chunks=(body,))
        broken = Reply(chunks=(body[:3],), cut=True)
        async with (
            serving(good, broken, good) as server,
            model_of(server, entry, make_id=lambda: "call_made") as model,
        ):
            expected, failure = await listen(model)
            events, error = await listen(model)
        assert isinstance(events[0], Notice)
        assert (events[1:], type(error)) == (expected, type(failure))

    run(work)


@pytest.mark.parametrize("name", SAMPLES)
def test_an_answer_in_single_bytes_is_the_same_answer(name: str) -> None:
    async def work() -> None:
        body, entry = SAMPLES[name][:2500], vendor(name)
        pieces = tuple(body[at : at + 1] for at in range(len(body)))
        replies = (Reply(chunks=(body,)), Reply(chunks=pieces))
        async with (
            serving(*replies) as server,
            model_of(server, entry, policy=ONCE, make_id=lambda: "call_made") as model,
        ):
            expected, failure = await listen(model)
            events, error = await listen(model)
        assert collected(events) == collected(expected)
        assert type(error) is type(failure)

    run(work)


GEMINI_CALL = (
    b'data: {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": '
    b'{"name": "f", "args": {}}}]}, "index": 0}]}\r\n\r\n'
)


@pytest.mark.parametrize("dialect", ["gemini", "code-assist"])
@pytest.mark.parametrize("cut", [False, True])
def test_only_the_whole_body_of_an_answer_without_an_end_mark_is_accepted(
    dialect: str, cut: bool
) -> None:
    body = GEMINI_CALL
    if dialect == "code-assist":
        body = body.replace(b"data: {", b'data: {"response": {').replace(b"\r\n\r\n", b"}\r\n\r\n")

    async def work() -> None:
        async with (
            serving(Reply(chunks=(body,), cut=cut)) as server,
            model_of(server, provider(dialect), policy=ONCE) as model,
        ):
            events, error = await listen(model)
        assert [call.name for call in collected(events).calls if call.complete] == ["f"]
        ended = [type(event) for event in events[-2:]] == [Notice, Finished]
        assert (isinstance(error, IncompleteStream), ended) == (cut, not cut)

    run(work)
