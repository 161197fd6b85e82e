"""Servers that say exactly these bytes, cut exactly there."""

import gzip
import zlib

import pytest

from tests.client.raw import raw_server
from tests.client.scripted import run
from toolwire.client.http.transport import HttpTransport, Outgoing
from toolwire.errors import ConnectionFailed

PACKED = gzip.compress(b"hello")

READ: dict[str, tuple[bytes, tuple[int, bytes]]] = {
    "by length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", (200, b"hello")),
    "nothing": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, b"")),
    "no reason": (b"HTTP/1.1 500\r\nContent-Length: 5\r\n\r\nhello", (500, b"hello")),
    "bare line feeds": (b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello", (200, b"hello")),
    "blank lines first": (
        b"\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        (200, b"hello"),
    ),
    "length said twice": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        (200, b"hello"),
    ),
    "until the end": (b"HTTP/1.1 200 OK\r\n\r\nhello", (200, b"hello")),
    "old": (b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello", (200, b"hello")),
    "chunks": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        (200, b"hello"),
    ),
    "odd chunks": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
        b'0002;a="b"\r\nhe\r\n3 ;x\nllo\n0\r\nTrailer: 1\r\nOther: 2\r\n\r\n',
        (200, b"hello"),
    ),
    "chunks and a length": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n0\r\n\r\n",
        (200, b"hello"),
    ),
    "hints before": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
        b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nhello",
        (201, b"hello"),
    ),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", (304, b"")),
    "gzip": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: GZIP\r\ncontent-length: %d\r\n\r\n%b"
        % (len(PACKED), PACKED),
        (200, b"hello"),
    ),
    "gzip in chunks": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
        b"%x\r\n%b\r\n0\r\n\r\n" % (len(PACKED), PACKED),
        (200, b"hello"),
    ),
    "deflate": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ncontent-length: 13\r\n\r\n"
        + zlib.compress(b"hello"),
        (200, b"hello"),
    ),
}
ENDS_WITH_CONNECTION = {"until the end", "old"}

REFUSED: dict[str, tuple[bytes, str]] = {
    "mail": (b"220 mail.example ESMTP\r\n", "it began with"),
    "HTTP/2": (b"HTTP/2 200 OK\r\n\r\n", "it began with"),
    "no status": (b"HTTP/1.1 OK\r\n\r\n", "it began with"),
    "folded": (b"HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n", "a header line"),
    "no colon": (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "a header line"),
    "two lengths": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        "the content length '5, 6' makes no sense",
    ),
    "unknown coding": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        "the transfer encoding 'gzip, chunked' is unknown",
    ),
    "other protocol": (b"HTTP/1.1 101 Switching\r\n\r\n", "it switches to another protocol"),
    "long head": (
        b"HTTP/1.1 200 OK\r\n" + b"a: bcdef\r\n" * 10000 + b"\r\n",
        "its head is longer than 65536 bytes",
    ),
    "endless head": (b"HTTP/1.1 200 OK\r\na: " + b"a" * 70000, "its head is longer"),
    "bad chunk": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        "the size of a chunk",
    ),
    "bad chunk later": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        "the size of a chunk",
    ),
    "unknown compression": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\na",
        "it compressed the answer as 'br'",
    ),
    "bad gzip": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello",
        "its compressed answer cannot be read",
    ),
}


def ask(host: str, method: str = "POST", scheme: str = "http") -> Outgoing:
    return Outgoing(method=method, url=f"{scheme}://{host}/v1", body=b"{}")


async def read(transport: HttpTransport, request: Outgoing) -> tuple[int, bytes]:
    async with transport.open(request) as incoming:
        return incoming.status, b"".join([chunk async for chunk in incoming.chunks])


@pytest.mark.parametrize("name", READ)
def test_answers_are_read_however_they_are_cut(name: str) -> None:
    raw, expected = READ[name]
    splits = [[raw[:at], raw[at:]] for at in range(1, len(raw))]
    splits += [[raw], [raw[at : at + 1] for at in range(len(raw))]]

    async def work() -> None:
        transport = HttpTransport()
        async with raw_server(*([pieces] for pieces in splits)) as server:
            for number, pieces in enumerate(splits):
                assert await read(transport, ask(server.host)) == expected, pieces
                await server.closed[number].wait()
        await transport.aclose()

    run(work)


@pytest.mark.parametrize("name", READ)
def test_an_answer_cut_off_anywhere_is_reported_or_was_whole(name: str) -> None:
    raw, (_, body) = READ[name]
    # Where nothing but the connection's end is the body's, a cut after the head cannot be seen.
    unseen = raw.index(b"\r\n\r\n") + 4 if name in ENDS_WITH_CONNECTION else len(raw)

    async def work() -> None:
        transport = HttpTransport()
        async with raw_server(*([[raw[:at]]] for at in range(len(raw)))) as server:
            for at in range(len(raw)):
                got, failed = await read_until_it_breaks(transport, ask(server.host))
                await server.closed[at].wait()
                assert body.startswith(got), at
                assert failed.endswith(EARLY) if failed else got == body or at >= unseen, at
        await transport.aclose()

    run(work)


EARLY = ("closed before an answer arrived", "broke in the middle of the answer")


async def read_until_it_breaks(transport: HttpTransport, request: Outgoing) -> tuple[bytes, str]:
    got = b""
    try:
        async with transport.open(request) as incoming:
            async for chunk in incoming.chunks:
                got += chunk
    except ConnectionFailed as failed:
        return got, str(failed)
    return got, ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_an_answer_is_reported_at_once(name: str) -> None:
    raw, words = REFUSED[name]

    async def work() -> None:
        transport = HttpTransport()
        # The server stays: nothing but what it said can end the wait.
        async with raw_server([[raw]], stay=True) as server:
            with pytest.raises(ConnectionFailed) as caught:
                await read(transport, ask(server.host))
            assert str(caught.value).startswith(f"{server.host} does not speak HTTP: {words}")
            await transport.aclose()
            await server.left.wait()

    run(work)
