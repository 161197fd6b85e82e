import asyncio

import msgspec
import pytest

from tests.client.scripted import (
    REQUEST,
    Reply,
    Sleeper,
    chat_text,
    failing,
    listen,
    model_of,
    provider,
    run,
    saying,
    serving,
    sse,
)
from toolwire.client.retry import Learned, RetryPolicy
from toolwire.dialects.quirks import Quirks
from toolwire.errors import (
    ErrorKind,
    IncompleteStream,
    ProviderError,
)
from toolwire.events import Notice, Retry, TextDelta
from toolwire.request import ToolChoice, ToolSpec

CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
TOOL = ToolSpec(name="look", parameters=CLOSED, strict=True)


def spoken(events: list) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def notices(events: list) -> list[str]:
    return [event.message for event in events if isinstance(event, Notice)]


FORMS = [
    ((("retry-after-ms", "1500"),), 1.5),
    ((("retry-after", "7"),), 7.0),
    (
        (
            ("date", "Wed, 21 Oct 2026 07:28:00 GMT"),
            ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"),
        ),
        30.0,
    ),
    ((), 0.5),
]


@pytest.mark.parametrize(("headers", "wait"), FORMS)
def test_a_429_waits_as_long_as_the_server_asks(headers, wait: float) -> None:
    async def work() -> None:
        sleeper = Sleeper()
        limit = failing(429, "slow down", headers)
        async with serving(limit, saying()) as server, model_of(server, sleep=sleeper) as model:
            events, error = await listen(model)
        assert error is None
        assert sleeper.waits == [wait]
        told = f"429 slow down; waiting {wait:.1f} s (attempt 2 of 5)"
        assert events[0] == Notice("retry", told, retry=Retry(status=429, attempt=2, wait=wait))
        assert spoken(events) == "hello"

    run(work)


def test_google_s_retry_info_is_waited_for() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}
    body = {
        "error": {
            "code": 429,
            "message": "slow",
            "status": "RESOURCE_EXHAUSTED",
            "details": [info],
        }
    }
    answer = {"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}

    async def work() -> None:
        sleeper = Sleeper()
        replies = (
            Reply(status=429, chunks=(msgspec.json.encode(body),)),
            Reply(chunks=(sse(answer),)),
        )
        async with (
            serving(*replies) as server,
            model_of(server, provider("gemini"), sleep=sleeper) as model,
        ):
            events, error = await listen(model)
        assert (spoken(events), error, sleeper.waits) == ("ok", None, [3.5])

    run(work)


def test_a_wait_too_long_ends_with_the_time_named() -> None:
    async def work() -> None:
        sleeper = Sleeper()
        limit = failing(429, "slow", (("retry-after", "900"),))
        async with serving(limit) as server, model_of(server, sleep=sleeper) as model:
            events, error = await listen(model)
        assert events == []
        assert isinstance(error, ProviderError)
        assert error.kind == ErrorKind.RATE_LIMIT
        assert "900 s" in str(error)
        assert sleeper.waits == []

    run(work)


@pytest.mark.parametrize(
    "failure",
    [
        failing(500, "oops"),
        failing(408, "late"),
        failing(409, "lock"),
        Reply(refuse=True),
        Reply(chunks=(b": keep-alive\n\n",), cut=True),
        Reply(chunks=()),
        Reply(chunks=(sse({"error": {"message": "at capacity", "code": 503}}),)),
    ],
)
def test_a_passing_failure_before_the_first_event_is_tried_again(failure: Reply) -> None:
    async def work() -> None:
        sleeper = Sleeper()
        async with serving(failure, saying()) as server, model_of(server, sleep=sleeper) as model:
            events, error = await listen(model)
        assert (spoken(events), error) == ("hello", None)
        assert len(notices(events)) == 1
        assert sleeper.waits == [0.5]

    run(work)


def test_retries_end() -> None:
    async def work() -> None:
        sleeper = Sleeper()
        policy = RetryPolicy(attempts=3)
        async with (
            serving(*[failing(500, "oops")] * 3) as server,
            model_of(server, sleep=sleeper, policy=policy) as model,
        ):
            events, error = await listen(model)
        assert str(error) == "oops (gave up after 3 attempts)"
        assert sleeper.waits == [0.5, 1.0]
        assert len(notices(events)) == 2

    run(work)


def test_the_header_x_should_retry_is_obeyed() -> None:
    async def work() -> None:
        no = failing(500, "oops", (("x-should-retry", "false"),))
        async with serving(no, saying()) as server, model_of(server) as model:
            _, error = await listen(model)
            assert isinstance(error, ProviderError)
            assert len(server.asked) == 1

    run(work)


def test_nothing_is_retried_once_an_event_was_passed_on() -> None:
    async def work() -> None:
        half = Reply(chunks=(sse(chat_text("hel")),), close_delimited=True)
        async with serving(half, saying()) as server, model_of(server) as model:
            events, error = await listen(model)
            assert spoken(events) == "hel"
            assert isinstance(error, IncompleteStream)
            assert len(server.asked) == 1

    run(work)


REFUSALS = [
    ("tool_choice", "tool_choice 'required' is not supported", "tool_choice"),
    ("parallel_tool_calls", "Unknown parameter: 'parallel_tool_calls'", "parallel_tool_calls"),
    ("strict", "tools.0.function.strict: Extra inputs are not permitted", None),
    ("stream_options", "Unrecognized request argument: stream_options", "stream_options"),
    ("max_tokens", "'max_tokens' is not supported, use 'max_completion_tokens'", "max_tokens"),
    (
        "temperature",
        "'temperature' does not support 0.5 with this model: unsupported",
        "temperature",
    ),
    ("top_p", "top_p is deprecated for this model", "top_p"),
]
FULL = msgspec.structs.replace(
    REQUEST,
    tools=(TOOL,),
    tool_choice=ToolChoice(mode="required"),
    parallel_calls=True,
    max_output_tokens=100,
    temperature=0.5,
    top_p=0.5,
)


@pytest.mark.parametrize(("member", "message", "key"), REFUSALS)
def test_a_refused_member_is_dropped_once_and_remembered(
    member: str, message: str, key: str | None
) -> None:
    async def work() -> None:
        learned, sleeper = Learned(), Sleeper()
        entry = provider(quirks=Quirks(strict_tools=True))
        async with serving(failing(400, message), saying(), saying()) as server:
            async with model_of(server, entry, learned=learned, sleep=sleeper) as model:
                events, error = await listen(model, FULL)
                assert (spoken(events), error) == ("hello", None)
                await listen(model, FULL)
            before, after, later = (asked.json for asked in server.asked)
        assert f"retrying without {member}" in notices(events)[0]
        assert sleeper.waits == []
        assert learned.entries() == (("acme", "m-1", member),)
        assert after == later != before
        if key is None:
            assert "strict" not in after["tools"][0]["function"]
        else:
            assert key in before
            assert key not in after
        assert ("max_completion_tokens" in after) is (member == "max_tokens")

    run(work)


def test_a_complaint_that_dropping_does_not_cure_is_raised_and_not_remembered() -> None:
    async def work() -> None:
        learned = Learned()
        no = failing(400, "tool_choice is not supported")
        async with serving(no, no) as server, model_of(server, learned=learned) as model:
            _, error = await listen(model, FULL)
            assert isinstance(error, ProviderError)
            assert error.kind == ErrorKind.BAD_REQUEST
            assert len(server.asked) == 2
        assert learned.entries() == ()

    run(work)


def test_a_complaint_about_something_not_sent_is_raised_at_once() -> None:
    async def work() -> None:
        async with serving(failing(400, "temperature is not supported")) as server:
            async with model_of(server) as model:
                _, error = await listen(model)
            assert isinstance(error, ProviderError)
            assert len(server.asked) == 1

    run(work)


class _Renewing:
    """A login that hands out a new token when the old one is refused."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    async def __call__(self, refresh: bool) -> tuple[tuple[str, str], ...]:
        self.asked.append(refresh)
        return (("authorization", f"Bearer token-number-{self.asked.count(True)}"),)


def test_a_401_asks_once_for_fresh_credentials() -> None:
    async def work() -> None:
        login = _Renewing()
        expired = failing(401, "token expired")
        async with serving(expired, saying()) as server:
            async with model_of(server, credential=login) as model:
                events, error = await listen(model)
            assert (spoken(events), error) == ("hello", None)
            assert login.asked == [False, True]
            shown = [asked.headers["authorization"] for asked in server.asked]
            assert shown == ["Bearer token-number-0", "Bearer token-number-1"]
        async with serving(expired, expired, saying()) as server:
            async with model_of(server, credential=_Renewing()) as model:
                _, error = await listen(model)
            assert isinstance(error, ProviderError)
            assert error.kind == ErrorKind.AUTH
            assert len(server.asked) == 2

    run(work)


def test_a_key_that_cannot_be_renewed_is_not_shown_twice() -> None:
    async def work() -> None:
        async with serving(failing(401, "bad key"), saying()) as server:
            async with model_of(server) as model:
                _, error = await listen(model)
            assert str(error) == "bad key"
            assert len(server.asked) == 1

    run(work)


def test_cancelling_a_wait_ends_it() -> None:
    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    waiting = asyncio.Event()

    async def work() -> None:
        broken = failing(500, "oops")
        async with serving(broken) as server, model_of(server, sleep=forever) as model:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(listen(model))
                await waiting.wait()
                task.cancel()
            assert task.cancelled()

    run(work)
