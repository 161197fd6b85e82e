"""Connections kept, given up, refused and secured."""

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.http.test_pool import ask, read
from tests.client.raw import raw_server
from tests.client.scripted import run
from toolwire.client.http.exchange import HttpLimits
from toolwire.client.http.transport import HttpTransport, Outgoing
from toolwire.errors import ConnectionFailed

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def test_a_head_request_has_no_body_whatever_its_length_says() -> None:
    async def work() -> None:
        transport = HttpTransport()
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"
        async with raw_server([[answer], [OK]], stay=True) as server:
            assert await read(transport, ask(server.host, "HEAD")) == (200, b"")
            assert await read(transport, ask(server.host)) == (200, b"ok")
            assert server.accepted == 1
            await transport.aclose()

    run(work)


def test_a_connection_is_used_again_and_again() -> None:
    async def work() -> None:
        transport = HttpTransport()
        chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        kept = b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok"
        async with raw_server([[OK], [chunked], [kept], [OK]], stay=True) as server:
            for _ in range(4):
                assert await read(transport, ask(server.host)) == (200, b"ok")
            assert [number for number, _ in server.asked] == [0, 0, 0, 0]
            await transport.aclose()
            await server.left.wait()

    run(work)


def test_requests_at_once_get_connections_of_their_own() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with raw_server([[OK]], [[OK]], [[OK]], stay=True) as server:
            async with (
                transport.open(ask(server.host)) as one,
                transport.open(ask(server.host)) as two,
                transport.open(ask(server.host)) as three,
            ):
                for incoming in (one, two, three):
                    assert [chunk async for chunk in incoming.chunks] == [b"ok"]
            assert server.accepted == 3
            await transport.aclose()

    run(work)


@pytest.mark.parametrize(
    "first",
    [
        OK + b"surplus",
        OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"),
        OK.replace(b"\r\n\r\n", b"\r\nkeep-alive: timeout=1, max=9\r\n\r\n"),
        OK.replace(b"HTTP/1.1", b"HTTP/1.0"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\n\r\n",
    ],
)
def test_a_connection_in_doubt_is_not_used_again(first: bytes) -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with raw_server([[first]], [[OK]], stay=True) as server:
            assert await read(transport, ask(server.host)) == (200, b"ok")
            assert await read(transport, ask(server.host)) == (200, b"ok")
            assert [number for number, _ in server.asked] == [0, 1]
            await transport.aclose()

    run(work)


def test_words_no_one_asked_for_are_not_an_answer_to_the_next_request() -> None:
    async def work() -> None:
        transport = HttpTransport()
        late = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"
        async with raw_server([[OK, late]], [[OK]], stay=True) as server:
            assert await read(transport, ask(server.host)) == (200, b"ok")
            await server.left.wait()
            assert await read(transport, ask(server.host)) == (200, b"ok")
            await transport.aclose()

    run(work)


def test_a_connection_the_server_closed_meanwhile_is_not_used() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with raw_server([[OK]], [[OK]]) as server:
            assert await read(transport, ask(server.host)) == (200, b"ok")
            await server.closed[0].wait()
            assert await read(transport, ask(server.host)) == (200, b"ok")
            assert [number for number, _ in server.asked] == [0, 1]
            await transport.aclose()

    run(work)


def test_a_kept_connection_that_ends_without_a_word_costs_a_get_nothing() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with raw_server([[OK], []], [[OK]]) as server:
            assert await read(transport, ask(server.host, "GET")) == (200, b"ok")
            assert await read(transport, ask(server.host, "GET")) == (200, b"ok")
            assert [number for number, _ in server.asked] == [0, 0, 1]
            await transport.aclose()

    run(work)


@pytest.mark.parametrize(
    ("method", "answers"),
    [("POST", ([[OK], []], [[OK]])), ("GET", ([[OK], [b"HTTP/1.1"]], [[OK]]))],
)
def test_what_may_have_been_received_is_not_sent_twice(method: str, answers: tuple) -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with raw_server(*answers) as server:
            assert await read(transport, ask(server.host, method)) == (200, b"ok")
            with pytest.raises(ConnectionFailed, match="closed before an answer arrived"):
                await read(transport, ask(server.host, method))
            assert server.accepted == 1
            await transport.aclose()

    run(work)


def test_a_fresh_connection_that_ends_without_a_word_is_reported() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with raw_server([[]], [[OK]]) as server:
            with pytest.raises(ConnectionFailed, match="closed before an answer arrived"):
                await read(transport, ask(server.host, "GET"))
            assert server.accepted == 1
        await transport.aclose()

    run(work)


def test_reading_on_after_leaving_is_reported_and_not_taken_for_the_end() -> None:
    async def work() -> None:
        transport = HttpTransport()
        half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
        async with raw_server([[half]], stay=True) as server:
            async with transport.open(ask(server.host)) as incoming:
                assert await anext(incoming.chunks) == b"half"
            with pytest.raises(ConnectionFailed, match="broke in the middle"):
                await anext(incoming.chunks)
            await server.left.wait()
        await transport.aclose()

    run(work)


def test_closing_the_transport_ends_answers_on_the_way() -> None:
    async def work() -> None:
        transport = HttpTransport()
        half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
        async with raw_server([[half]], stay=True) as server:
            async with transport.open(ask(server.host)) as incoming:
                assert await anext(incoming.chunks) == b"half"
                await transport.aclose()
                with pytest.raises(ConnectionFailed, match="broke in the middle"):
                    await anext(incoming.chunks)
            await server.left.wait()

    run(work)


def test_cancelling_in_the_middle_drops_the_connection() -> None:
    async def work() -> None:
        transport = HttpTransport()
        half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
        begun = asyncio.Event()

        async def reading(host: str) -> None:
            async with transport.open(ask(host)) as incoming:
                async for _ in incoming.chunks:
                    begun.set()

        async with raw_server([[half]], stay=True) as server:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(reading(server.host))
                await begun.wait()
                task.cancel()
            await server.left.wait()
        await transport.aclose()

    run(work)


def test_a_reader_that_does_not_read_stops_the_server() -> None:
    async def work() -> None:
        transport = HttpTransport()
        size = 64_000_000
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size
        async with raw_server([[head, bytes(size)]], stay=True) as server:
            async with transport.open(ask(server.host)) as incoming:
                largest = taken = 0
                async for chunk in incoming.chunks:
                    largest, taken = max(largest, len(chunk)), taken + len(chunk)
                assert taken == size
                assert largest <= 2 * 262144
            await transport.aclose()

    run(work)


def test_a_long_request_arrives_whole() -> None:
    async def work() -> None:
        transport = HttpTransport()
        body = bytes(range(256)) * 40_000
        async with raw_server([[OK], [OK]], stay=True) as server:
            for sent in (body, b"short"):
                request = Outgoing(method="POST", url=f"http://{server.host}/", body=sent)
                assert await read(transport, request) == (200, b"ok")
            assert [asked.partition(b"\r\n\r\n")[2] for _, asked in server.asked] == [
                body,
                b"short",
            ]
            await transport.aclose()

    run(work)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (HttpLimits(connect=0.05), "no connection to {host} within 0.05 s"),
        (HttpLimits(total=0.05), "{host} did not finish within 0.05 s"),
    ],
)
def test_a_handshake_that_does_not_come_ends_in_a_timeout(limits: HttpLimits, words: str) -> None:
    async def work() -> None:
        transport = HttpTransport(limits)
        async with raw_server([[OK]], stay=True) as server:
            with pytest.raises(ConnectionFailed) as caught:
                await read(transport, ask(server.host, scheme="https"))
            assert str(caught.value) == words.format(host=server.host)
            assert caught.value.kind == "timeout"
        await transport.aclose()

    run(work)


def test_a_server_without_tls_is_reported() -> None:
    async def work() -> None:
        transport = HttpTransport()

        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            with pytest.raises(ConnectionFailed, match=f"no secure connection to {host}: "):
                await read(transport, ask(host, scheme="https"))
        await transport.aclose()

    run(work)


def test_a_name_no_one_has_is_reported() -> None:
    async def work() -> None:
        transport = HttpTransport(env_proxies=False)
        with pytest.raises(ConnectionFailed, match=r"cannot reach nobody\.invalid: "):
            await read(transport, ask("nobody.invalid"))
        await transport.aclose()

    run(work)


def test_a_name_with_several_addresses_is_reached_at_the_one_that_answers() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with raw_server([[OK]], stay=True) as server:
            host = server.host.replace("127.0.0.1", "localhost")
            assert await read(transport, ask(host)) == (200, b"ok")
            await transport.aclose()

    run(work)


def test_answers_come_over_tls_on_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography", reason="makes the certificates")
    from tests.client.http.test_certificates import make_certificate

    path = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))

    async def work() -> None:
        transport = HttpTransport()
        large = bytes(range(256)) * 2000
        long = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(large)
        last = b"HTTP/1.1 200 OK\r\n\r\nto the end"
        async with raw_server([[OK], [long, large], [OK], [last]], secure=context) as server:
            for expected in (b"ok", large, b"ok", b"to the end"):
                assert await read(transport, ask(server.host, scheme="https")) == (200, expected)
            assert server.accepted == 1
        await transport.aclose()

    run(work)


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="makes the certificates")
    from tests.client.http.test_certificates import make_certificate

    path = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)

    async def work() -> None:
        transport = HttpTransport(ca_file=str(path))
        async with raw_server([[OK]], secure=context) as server:
            host = server.host.replace("127.0.0.1", "localhost")
            with pytest.raises(ConnectionFailed, match="certificate of localhost") as caught:
                await read(transport, ask(host, scheme="https"))
            assert caught.value.lasting
        await transport.aclose()

    run(work)


def test_asking_straight_loads_no_http_library() -> None:
    code = """
import asyncio, sys
from toolwire.client.http.transport import HttpTransport, Outgoing

async def hello(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok")
    writer.close()

async def main():
    server = await asyncio.start_server(hello, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = HttpTransport()
    async with transport.open(Outgoing(method="GET", url=f"http://127.0.0.1:{port}/")) as answer:
        print(b"".join([chunk async for chunk in answer.chunks]).decode())
    await transport.aclose()

asyncio.run(main())
print(sorted({"aiohttp", "yarl", "http.client"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["ok", "[]", ""]


def test_an_answer_that_comes_before_the_request_is_through_is_read() -> None:
    async def work() -> None:
        transport = HttpTransport()
        refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nno!"

        async def impatient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(refusal)
            writer.close()

        server = await asyncio.start_server(impatient, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        request = Outgoing(method="POST", url=f"http://127.0.0.1:{port}/", body=bytes(30_000_000))
        async with server:
            for _ in range(3):
                assert await read(transport, request) == (413, b"no!")
        await transport.aclose()

    run(work)
