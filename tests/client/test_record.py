import asyncio
import json

import msgspec
import pytest

from tests.client.scripted import (
    HELLO,
    KEY,
    REQUEST,
    Reply,
    Sleeper,
    failing,
    key,
    listen,
    provider,
    run,
    serving,
)
from toolwire.client.http.transport import HttpTransport, Outgoing, Transport
from toolwire.client.model import connect
from toolwire.client.record import RecordingTransport, ReplayTransport
from toolwire.errors import BadInput, ConnectionFailed
from toolwire.messages import Message, Text


def asking(text: str):
    talk = Message(role="user", parts=(Text(text),))
    return msgspec.structs.replace(REQUEST, messages=(talk,))


def model_over(transport: Transport, base_url: str, **more):
    return connect(
        provider(),
        "m-1",
        transport=transport,
        credential=key,
        base_url=base_url,
        sleep=Sleeper(),
        jitter=lambda: 0.0,
        make_id=lambda: "call_made",
        **more,
    )


async def recorded(*replies: Reply, questions: tuple[str, ...] = ("hi",)):
    lines: list[str] = []
    transport = HttpTransport()
    async with serving(*replies) as server:
        model = model_over(RecordingTransport(transport, lines.append), server.url)
        heard = [await listen(model, asking(question)) for question in questions]
    await transport.aclose()
    return lines, heard


REPLIES = [
    (Reply(chunks=(HELLO[:50], HELLO[50:51], HELLO[51:])),),
    (failing(429, "slow", (("retry-after", "2"),)), Reply(chunks=(HELLO,))),
    (Reply(chunks=(HELLO[:300],), cut=True), Reply(chunks=(HELLO,))),
    (Reply(refuse=True), Reply(chunks=(HELLO,))),
    (failing(400, "no"),),
    (Reply(status=502, chunks=(b"\xff\xfe not utf-8",)), Reply(chunks=(HELLO,))),
]


@pytest.mark.parametrize("replies", REPLIES)
def test_a_recording_plays_back_as_it_happened(replies: tuple[Reply, ...]) -> None:
    async def work() -> None:
        lines, heard = await recorded(*replies)
        model = model_over(ReplayTransport(lines), "http://elsewhere.example")
        events, error = await listen(model, asking("hi"))
        expected, failure = heard[0]
        assert events == expected
        assert (type(error), str(error)) == (type(failure), str(failure))

    run(work)


def test_a_line_is_readable_and_true_to_the_byte() -> None:
    async def work() -> None:
        odd = b"data: \xc3\xa9\xff\n\n"
        lines: list[str] = []
        inner = HttpTransport()
        transport = RecordingTransport(inner, lines.append)
        async with serving(Reply(chunks=(HELLO,)), Reply(status=500, chunks=(odd,))) as server:
            for _ in range(2):
                request = Outgoing(method="POST", url=f"{server.url}/p", body='{"a":"é"}'.encode())
                async with transport.open(request) as incoming:
                    assert [chunk async for chunk in incoming.chunks]
        await inner.aclose()
        first, second = map(json.loads, lines)
        assert first["request"]["body"] == {"text": '{"a":"é"}'}
        assert first["response"]["body"] == {"text": HELLO.decode()}
        assert sum(first["response"]["chunks"]) == len(HELLO)
        assert "base64" in second["response"]["body"]
        assert (second["response"]["status"], second["end"]) == (500, "complete")
        replay = ReplayTransport(lines)
        request = Outgoing(method="POST", url="http://other/p", body='{"a":"é"}'.encode())
        for expected in (HELLO, odd):
            async with replay.open(request) as incoming:
                assert b"".join([chunk async for chunk in incoming.chunks]) == expected

    run(work)


def test_no_key_is_on_a_line() -> None:
    async def work() -> None:
        lines, _ = await recorded(failing(401, f"bad {KEY}"))
        assert KEY not in lines[0]
        shown = dict(json.loads(lines[0])["request"]["headers"])
        assert shown["authorization"] == "[hidden]"

    run(work)


def test_a_secret_across_two_chunks_is_found() -> None:
    async def work() -> None:
        body = f"data: {KEY}\n\n".encode()
        lines, _ = await recorded(Reply(status=400, chunks=(body[:15], body[15:])))
        response = json.loads(lines[0])["response"]
        assert KEY not in lines[0]
        assert "0123456789" not in lines[0]
        assert sum(response["chunks"]) == len(body)

    run(work)


def test_requests_find_their_answers_out_of_order() -> None:
    async def work() -> None:
        replies = [Reply(chunks=(HELLO.replace(b"hel", b"%d" % n),)) for n in range(3)]
        lines, heard = await recorded(*replies, questions=("a", "b", "a"))
        model = model_over(ReplayTransport(lines), "http://elsewhere.example")
        played = [await listen(model, asking(question)) for question in ("b", "a", "a")]
        assert played == [heard[1], heard[0], heard[2]]

    run(work)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (
            asking("ho"),
            'recorded request 1 of 1: body.messages[0].content at character 1 is "hi", now "ho"',
        ),
        (
            msgspec.structs.replace(asking("hi"), seed=4),
            "recorded request 1 of 1: body.seed is missing, now 4",
        ),
    ],
)
def test_a_request_no_one_recorded_is_reported_with_the_first_difference(
    request_, words: str
) -> None:
    async def work() -> None:
        lines, _ = await recorded(Reply(chunks=(HELLO,)))
        model = model_over(ReplayTransport(lines), "http://elsewhere.example")
        _, error = await listen(model, request_)
        assert isinstance(error, BadInput)
        assert words in str(error)

    run(work)


def test_other_methods_paths_and_bytes_are_reported() -> None:
    async def work() -> None:
        lines, _ = await recorded(Reply(chunks=(HELLO,)))
        for changed, words in (
            ({"method": "GET"}, "method POST, now GET"),
            ({"url": "http://x/other?a=1"}, "path /chat/completions, now /other?a=1"),
            ({"body": b"\xff"}, "body at byte 0: b'{"),
        ):
            sent = Outgoing(method="POST", url="http://x/chat/completions", body=b"{}")
            with pytest.raises(BadInput) as caught:
                async with ReplayTransport(lines).open(msgspec.structs.replace(sent, **changed)):
                    pass
            assert words in str(caught.value)

    run(work)


def test_a_recording_that_is_used_up_says_so() -> None:
    async def work() -> None:
        lines, _ = await recorded(Reply(chunks=(HELLO,)))
        model = model_over(ReplayTransport(lines), "http://elsewhere.example")
        await listen(model, asking("hi"))
        _, error = await listen(model, asking("hi"))
        assert isinstance(error, BadInput)
        assert "used up: all 1 of its answers were given" in str(error)

    run(work)


def test_a_broken_line_is_named() -> None:
    with pytest.raises(BadInput, match="line 2 of the recording"):
        ReplayTransport(["", "{"])


def test_an_exchange_that_is_cancelled_is_still_written() -> None:
    async def work() -> None:
        lines: list[str] = []
        inner = HttpTransport()
        async with serving(Reply(chunks=(HELLO[:40],), stall=True)) as server:
            model = model_over(RecordingTransport(inner, lines.append), server.url)
            async with asyncio.TaskGroup() as group:
                task = group.create_task(listen(model))
                await server.stalled.wait()
                task.cancel()
            await server.dropped.wait()
        await inner.aclose()
        assert json.loads(lines[0])["end"] == "closed"

    run(work)


def test_what_was_closed_early_plays_up_to_there() -> None:
    async def work() -> None:
        lines: list[str] = []
        inner = HttpTransport()
        request = Outgoing(method="POST", url="")
        async with serving(Reply(chunks=(b"one",), stall=True)) as server:
            request = Outgoing(method="POST", url=f"{server.url}/")
            async with RecordingTransport(inner, lines.append).open(request) as incoming:
                assert await anext(incoming.chunks) == b"one"
        await inner.aclose()
        async with ReplayTransport(lines).open(request) as incoming:
            assert await anext(incoming.chunks) == b"one"
            with pytest.raises(ConnectionFailed, match="its reader stopped"):
                await anext(incoming.chunks)

    run(work)
