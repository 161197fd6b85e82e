"""The HTTP server over real sockets."""

import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolwire.http_server.exchange import (
    Answering,
    Asked,
    ClientGone,
    Ends,
    Handle,
    Refusal,
    plain_refusal,
)
from toolwire.http_server.listener import HttpLimits, HttpListener
from toolwire.wire.http1 import RequestHead

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HOST = b"Host: localhost\r\n"


async def echo(asked: Asked, answering: Answering) -> None:
    await answering.whole(200, [("x-path", asked.path)], asked.body)


def talked(
    talk: Talk, handle: Handle = echo, limits: HttpLimits | None = None, **options: Any
) -> None:
    async def run() -> None:
        listener = HttpListener(handle, limits, **options)
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


def test_what_must_come_first_is_done_before_anything_goes_out() -> None:
    clients: list[socket.socket] = []
    seen: list[int] = []

    async def handle(asked: Asked, answering: Answering) -> None:
        await answering.begin(200)
        await answering.send(b"x" * 100_000)
        await answering.send(b"y")
        await answering.end()

    def received() -> int:
        try:
            return len(clients[0].recv(1 << 20, socket.MSG_PEEK))
        except BlockingIOError:
            return 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = writer.get_extra_info("socket").dup()
        client.setblocking(False)
        clients.append(client)
        writer.write(post(b"x"))
        answer = b""
        while not answer.endswith(b"0\r\n\r\n"):
            answer += await reader.read(65536)
        client.close()
        assert len(answer) > 100_000

    talked(talk, handle, before_write=lambda: seen.append(received()))
    assert seen[0] == 0
    assert len(seen) == 2


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

    talked(talk, limits=HttpLimits(head_seconds=0.2, silence_seconds=0.2, idle_seconds=0.2))


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


def test_what_is_written_in_one_turn_of_the_loop_is_one_piece():
    pieces: list[bytes] = []

    async def handle(asked: Asked, answering: Answering) -> None:
        await answering.begin(200)
        for number in range(50):
            await answering.send(b"data: %d\n\n" % number)
        await answering.end()

    complete = asyncio.Event()

    class Client(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            pieces.append(data)
            if data.endswith(b"0\r\n\r\n"):
                complete.set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(Client, "127.0.0.1", port)
        transport.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        await complete.wait()
        transport.close()

    talked(talk, handle)
    assert len(pieces) == 1
    assert pieces[0].count(b"data: ") == 50


def test_a_handler_that_asked_for_it_is_cancelled_when_its_client_goes():
    ended = asyncio.Event()

    async def handle(asked: Asked, answering: Answering) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.set()
            raise

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(post(b"x"))
        await asyncio.sleep(0.05)
        writer.close()
        await ended.wait()

    talked(talk, handle, cancels=True)


def test_a_cut_answer_arrives_as_far_as_it_was_sent_and_has_no_end():
    async def handle(asked: Asked, answering: Answering) -> None:
        await answering.begin(200)
        await answering.send(b"half" * 100_000)
        await answering.send(b"error")
        answering.cut()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        received = await reader.read()
        assert received.endswith(b"5\r\nerror\r\n")

    talked(talk, handle)


def test_a_client_that_never_reads_the_end_is_closed_after_a_while():
    async def handle(asked: Asked, answering: Answering) -> None:
        answering.keeps = False
        with pytest.raises(ClientGone):
            await answering.whole(200, (), bytes(1 << 24))

    async def short(asked: Asked, answering: Answering) -> None:
        await answering.begin(200)
        await answering.send(bytes(200_000))
        answering.cut()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader._transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        sock = writer.get_extra_info("socket")
        assert sock.getpeername()
        await asyncio.sleep(0.8)

    talked(talk, handle, HttpLimits(write_seconds=0.3))
    talked(talk, short, HttpLimits(write_seconds=0.3))


def test_one_address_takes_only_so_many_connections():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        writer.write(post(b"x"))
        await answer(reader)
        other, more = await asyncio.open_connection("127.0.0.1", port)
        assert (await answer(other))[0] == 503
        more.close()
        third, last = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        last.write(post(b"z"))
        assert (await answer(third))[2] == b"z"
        last.close()

    talked(talk, limits=HttpLimits(connections_per_address=1))


def test_clients_behind_one_proxy_are_not_counted_as_one():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        other, more = await asyncio.open_connection("127.0.0.1", port)
        more.write(post(b"z"))
        assert (await answer(other))[2] == b"z"
        more.close()

    limits = HttpLimits(connections_per_address=1)
    talked(talk, limits=limits, proxies=frozenset({"127.0.0.1"}))


def test_bodies_in_arrival_have_a_limit_together():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        writer.write(post(bytes(700))[:-100])
        await asyncio.sleep(0.1)
        other, more = await asyncio.open_connection("127.0.0.1", port)
        more.write(post(bytes(700))[:-100])
        assert (await answer(other))[0] == 503
        more.close()
        writer.write(bytes(100))
        assert (await answer(reader))[2] == bytes(700)
        writer.write(post(bytes(900))[:-100])
        await asyncio.sleep(0.05)
        writer.write(bytes(100))
        assert (await answer(reader))[2] == bytes(900)

    talked(talk, limits=HttpLimits(pending_bytes=1000))


def test_a_request_is_checked_before_its_body_is_read():
    seen: list[tuple[str, str]] = []

    def check(head: RequestHead, ends: Ends) -> Refusal | None:
        seen.append((head.target, ends.client))
        return plain_refusal(421, "not here") if head.host != "localhost" else None

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(post(b"fine"))
        assert (await answer(reader))[2] == b"fine"
        bad = b"POST /b HTTP/1.1\r\nHost: evil\r\nContent-Length: 10000\r\n\r\n"
        writer.write(bad + post(b"next"))
        status, _, body = await answer(reader)
        assert (status, body) == (421, b"not here\n")
        assert await reader.read() == b""

    talked(talk, check=check)
    assert seen == [("/a", "127.0.0.1"), ("/b", "127.0.0.1")]


def test_a_body_is_inflated_for_the_handler_that_wants_it():
    async def handle(asked: Asked, answering: Answering) -> None:
        await answering.whole(200, (), asked.plain_body(100))

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for size, wanted in ((100, (200, bytes(100))), (101, (413, None))):
            writer.write(post(gzip.compress(bytes(size)), b"Content-Encoding: gzip"))
            status, _, body = await answer(reader)
            assert (status, body if status == 200 else None) == wanted

    talked(talk, handle)


def test_draining_ends_idle_connections_and_waits_for_answers():
    release = asyncio.Event()

    async def handle(asked: Asked, answering: Answering) -> None:
        await answering.begin(200)
        await release.wait()
        await answering.send(b"whole")
        await answering.end()

    async def run() -> None:
        listener = HttpListener(handle)
        port = await listener.start("127.0.0.1", 0)
        idle, _keep = await asyncio.open_connection("127.0.0.1", port)
        busy, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        await busy.readuntil(b"\r\n\r\n")
        draining = asyncio.ensure_future(listener.drain())
        assert await idle.read() == b""
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)
        assert not draining.done()
        assert listener.busy == 1
        release.set()
        assert (await busy.read()).endswith(b"whole\r\n0\r\n\r\n")
        await draining
        await listener.aclose()

    asyncio.run(run())


def test_nothing_is_left_of_connections_that_ended():
    async def run() -> None:
        listener = HttpListener(echo, HttpLimits(head_seconds=0.2, silence_seconds=0.2))
        port = await listener.start("127.0.0.1", 0)
        for data in (
            b"",
            post(b"x"),
            post(b"x")[:-1],
            b"GET / HTTP/1.1\r\n",
            b"\0\0",
            post(b"x") * 5,
        ):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            await writer.drain()
            writer.close()
        async with asyncio.timeout(10):
            while listener.open:  # noqa: ASYNC110 - connections end by themselves
                await asyncio.sleep(0.05)
        assert (listener.pending, dict(listener.by_address), listener.busy) == (0, {}, 0)
        await listener.aclose()

    asyncio.run(run())
