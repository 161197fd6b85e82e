"""What a gateway needs of a server beside events: its bytes, any other request, counts."""

import pytest
from msgspec.structs import replace

from tests.client.scripted import (
    HELLO,
    KEY,
    REQUEST,
    Reply,
    chat_end,
    chat_text,
    key,
    listen,
    provider,
    run,
    serving,
    sse,
)
from toolwire.client.http.transport import HttpTransport
from toolwire.client.model import Endpoint, connect
from toolwire.client.retry import RetryPolicy
from toolwire.events import Finished, Notice
from toolwire.model import reading
from toolwire.request import AnswerTap, HttpRequest, ModelRequest
from toolwire.simulator import Simulator, replies


def endpoint(url: str, dialect: str = "openai-chat") -> Endpoint:
    async def instant(seconds: float) -> None:
        return None

    return connect(
        provider(dialect),
        "m",
        transport=HttpTransport(),
        credential=key,
        base_url=url,
        policy=RetryPolicy(attempts=3),
        sleep=instant,
    )


def tapped(tap: AnswerTap, **members: object) -> ModelRequest:
    return replace(REQUEST, tap=tap, **members)


def test_a_tap_gets_every_byte_of_the_answer_that_counts() -> None:
    pieces = (
        sse(chat_text("hel")),
        sse(chat_text("lo")) + sse(chat_end()),
        b"data: [DO",
        b"NE]\n\n",
    )

    async def work() -> None:
        broken = Reply(chunks=(b"data: {",), cut=True)
        busy = Reply(status=503, chunks=(b"busy",))
        head = (("x-ratelimit-remaining", "7"),)
        async with serving(broken, busy, Reply(headers=head, chunks=pieces)) as server:
            model, tap, parts = endpoint(server.url), AnswerTap(), list[bytes]()
            async with reading(model(tapped(tap))) as events:
                async for event in events:
                    if isinstance(event, Notice):
                        continue
                    if isinstance(event, Finished):
                        assert tap.ending
                    parts.append(tap.take())
            assert b"".join(parts) + tap.take() == b"".join(pieces)
            assert tap.headers["x-ratelimit-remaining"] == "7"
            assert parts[0].startswith(pieces[0])
            await model.transport.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    run(work)


def test_a_whole_answer_is_tapped_too() -> None:
    async def work() -> None:
        whole = (
            b'{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},'
            b'"finish_reason":"stop"}],"new_member":1}'
        )
        async with serving(Reply(chunks=(whole[:20], whole[20:]))) as server:
            model, tap = endpoint(server.url), AnswerTap()
            async with reading(model(tapped(tap, stream=False))) as events:
                kinds = [type(event).__name__ async for event in events]
            assert kinds[-1] == "Finished"
            assert tap.take() == whole
            assert tap.ending

    run(work)


def test_requests_with_and_without_a_tap_are_equal() -> None:
    assert tapped(AnswerTap()) == REQUEST


def test_any_other_request_goes_to_the_same_server_with_its_credentials() -> None:
    async def work() -> None:
        async with serving(Reply(status=418, chunks=(b"a", b"\x00b"))) as server:
            model = endpoint(f"{server.url}/v1")
            http = HttpRequest(
                method="GET", path="/files", body=b"", query=(("after", "x y"),), headers=()
            )
            async with await model.exchange(http) as incoming:
                body = b"".join([chunk async for chunk in incoming.chunks])
            assert (incoming.status, body) == (418, b"a\x00b")
            [asked] = server.asked
            assert (asked.method, asked.path) == ("GET", "/v1/files?after=x+y")
            assert asked.headers["authorization"] == f"Bearer {KEY}"

    run(work)


@pytest.mark.parametrize(
    ("dialect", "counts"),
    [("anthropic-messages", True), ("gemini", True), ("openai-chat", False)],
)
def test_the_vendors_own_count_is_used_where_there_is_one(dialect: str, counts: bool) -> None:
    async def work() -> None:
        async with Simulator(replies("hi")) as sim:
            counted = await endpoint(sim.origin, dialect).count(REQUEST)
            assert (counted is not None and counted > 0) is counts
            assert sim.refusals == []

    run(work)


def test_a_count_that_fails_is_none() -> None:
    async def work() -> None:
        replies = (Reply(status=404, chunks=(b"{}",)), Reply(chunks=(b"not json",)))
        async with serving(*replies) as server:
            model = endpoint(server.url, "anthropic-messages")
            assert await model.count(REQUEST) is None
            assert await model.count(REQUEST) is None

    run(work)


def test_without_a_tap_nothing_changes() -> None:
    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,))) as server:
            events, error = await listen(endpoint(server.url))
            assert error is None
            assert isinstance(events[-1], Finished)

    run(work)
