"""The HTTP server over real sockets."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from toolwire.http_server.exchange import Answering, Asked, ClientGone, Handle
from toolwire.http_server.listener import HttpLimits, HttpListener

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HOST = b"Host: localhost\r\n"


async def echo(asked: Asked, answering: Answering) -> None:
    await answering.whole(200, [("x-path", asked.path)], asked.body)


def talked(talk: Talk, handle: Handle = echo, limits: HttpLimits | None = None) -> None:
    async def run() -> None:
        listener = HttpListener(handle, limits)
        port = await listener.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(30):
                await talk(reader, writer)
        finally:
            writer.close()
            await listener.aclose()

    asyncio.run(run())


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """The next answer of a known length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    return int(head[0].split()[1]), fields, body


def post(body: bytes, *lines: bytes) -> bytes:
    more = b"".join(line + b"\r\n" for line in lines)
    return b"POST /a HTTP/1.1\r\n%bContent-Length: %d\r\n%b\r\n%b" % (HOST, len(body), more, body)


def test_one_connection_carries_many_requests_also_sent_ahead():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(post(b"one") + post(b"two") + b"\r\n" + post(b"three")[:20])
        assert (await answer(reader))[2] == b"one"
        assert (await answer(reader))[2] == b"two"
        writer.write(post(b"three")[20:])
        assert (await answer(reader))[2] == b"three"
        writer.write(post(b"last", b"Connection: close"))
        status, fields, _ = await answer(reader)
        assert (status, fields["connection"]) == (200, "close")
        assert await reader.read() == b""

    talked(talk)


def test_a_large_body_arrives_whole():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = bytes(range(256)) * 20000
        writer.write(post(body))
        assert (await answer(reader))[2] == body

    talked(talk)


def test_a_client_that_waits_for_leave_gets_it():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        whole = post(b"body", b"Expect: 100-continue")
        writer.write(whole[:-4])
        assert (await answer(reader))[0] == 100
        writer.write(b"body")
        assert (await answer(reader))[2] == b"body"

    talked(talk)


def test_a_body_that_is_too_long_is_refused_before_it_is_sent():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n")
        assert (await answer(reader))[0] == 413
        assert await reader.read() == b""

    talked(talk, limits=HttpLimits(body_bytes=100))


def test_what_follows_a_refused_request_is_never_read_as_another():
    handled: list[str] = []

    async def handle(asked: Asked, answering: Answering) -> None:
        handled.append(asked.path)
        await answering.whole(200)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        smuggled = b"0\r\n\r\nGET /secret HTTP/1.1\r\n" + HOST + b"\r\n"
        writer.write(b"POST / HTTP/1.1\r\n" + HOST + both + smuggled)
        assert (await answer(reader))[0] == 400
        assert await reader.read() == b""

    talked(talk, handle)
    assert handled == []


@pytest.mark.parametrize("start", [b"", b"POST / HTTP/1.1\r\n", post(b"abc")[:-1]])
def test_a_client_that_sends_too_slowly_is_dropped(start: bytes):
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        received = await reader.read()
        assert received.startswith(b"HTTP/1.1 408") if start else received == b""

    talked(talk, limits=HttpLimits(request_seconds=0.2, idle_seconds=0.2))


def test_one_connection_too_many_is_refused():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        writer.write(post(b"x"))
        await answer(reader)
        other, more = await asyncio.open_connection("127.0.0.1", port)
        assert (await answer(other))[0] == 503
        more.close()
        writer.write(post(b"y"))
        assert (await answer(reader))[0] == 200

    talked(talk, limits=HttpLimits(connections=1))


def test_a_failing_handler_is_an_error_and_a_cut_answer_no_whole_one():
    async def handle(asked: Asked, answering: Answering) -> None:
        if asked.path == "/begun":
            await answering.begin(200)
            await answering.send(b"half")
        raise RuntimeError("broken")

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        writer.write(post(b""))
        assert (await answer(reader))[0] == 500
        assert await reader.read() == b""
        other, more = await asyncio.open_connection("127.0.0.1", port)
        more.write(b"GET /begun HTTP/1.1\r\n" + HOST + b"\r\n")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await other.readuntil(b"0\r\n\r\n")
        more.close()

    talked(talk, handle)


def test_a_stream_is_chunked_and_ends_with_the_connection_in_http_1_0():
    async def handle(asked: Asked, answering: Answering) -> None:
        await answering.begin(200, [("content-type", "text/event-stream")])
        for piece in (b"data: 1\n\n", b"", b"data: 2\n\n"):
            await answering.send(piece)
        await answering.end()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b"chunked" in await reader.readuntil(b"\r\n\r\n")
        body = await reader.readuntil(b"0\r\n\r\n")
        assert body == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
        old, more = await asyncio.open_connection("127.0.0.1", port)
        more.write(b"GET / HTTP/1.0\r\n\r\n")
        received = await old.read()
        assert received.endswith(b"\r\n\r\ndata: 1\n\ndata: 2\n\n")
        assert b"chunked" not in received
        more.close()

    talked(talk, handle)


def test_a_handler_learns_that_its_client_has_gone():
    gone = asyncio.Event()

    async def handle(asked: Asked, answering: Answering) -> None:
        await answering.begin(200)
        await answering.gone.wait()
        with pytest.raises(ClientGone):
            await answering.send(b"more")
        gone.set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await gone.wait()

    talked(talk, handle)


def test_a_client_that_does_not_read_makes_the_handler_wait_and_then_leave():
    sent = 0
    left = asyncio.Event()

    async def handle(asked: Asked, answering: Answering) -> None:
        nonlocal sent
        await answering.begin(200)
        try:
            while True:
                await answering.send(bytes(1 << 20))
                sent += 1
        except ClientGone:
            left.set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        await left.wait()

    talked(talk, handle, HttpLimits(write_seconds=0.5))
    assert sent < 100


def test_an_answer_to_head_has_no_body():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HEAD /x HTTP/1.1\r\n" + HOST + b"\r\n" + post(b"next"))
        assert b"content-length: 0" in await reader.readuntil(b"\r\n\r\n")
        assert (await answer(reader))[2] == b"next"

    talked(talk)
