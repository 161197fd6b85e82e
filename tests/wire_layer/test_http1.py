"""Requests as our server reads them: one meaning, or refused; h11 and aiohttp judge."""

import gzip
import zlib
from contextlib import suppress

import h11
import pytest
from aiohttp.http_parser import HttpRequestParserPy
from hypothesis import given
from hypothesis import strategies as st

from toolwire.wire.http1 import (
    LAST_CHUNK,
    MAX_HEAD,
    HeadReader,
    ReceivedBody,
    RefusedRequest,
    end_of_head,
    inflated,
    read_head,
    write_chunk,
    write_head,
)

POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
MOST = 1 << 20


def read(data: bytes, *cuts: int) -> tuple[str, str, bytes, bytes]:
    """Method, target, body and what follows, fed in pieces."""
    pieces = [data[a:b] for a, b in zip((0, *cuts), (*cuts, len(data)), strict=True)]
    received, looked_at, head, body = bytearray(), 0, None, None
    for piece in pieces:
        received += piece
        if head is None:
            end = end_of_head(received, looked_at)
            looked_at = len(received)
            if not end:
                continue
            head = read_head(bytes(received[:end]))
            del received[:end]
            body = ReceivedBody(head.length, MOST)
        assert body is not None
        received = bytearray(body.feed(received))
    if head is None or body is None or not body.ended:
        raise EOFError
    return head.method, head.target, body.content, bytes(received)


def status(data: bytes) -> int:
    with pytest.raises(RefusedRequest) as caught:
        read(data)
    return caught.value.status


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET / http/1.1\r\nHost: a\r\n\r\n",
        b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nnot a field\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        POST + b"Content-Length: 5, 5\r\n\r\nhello",
        POST + b"Content-Length: +5\r\n\r\nhello",
        POST + b"Content-Length: 0x5\r\n\r\nhello",
        POST + b"Content-Length: \xb2\r\n\r\nhello",
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\na\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 17 + b"1\r\na\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ids=lambda data: repr(data[:60]),
)
def test_what_two_readers_could_read_differently_is_refused(data: bytes):
    assert status(data) == 400


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: xchunked\r\n\r\n", 501),
        (POST + b"Content-Length: 99999999\r\n\r\n", 413),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413),
        (POST + b"X: " + b"a" * MAX_HEAD, 431),
        (POST + b"".join(b"X: 1\r\n" for _ in range(100)) + b"\r\n", 431),
        (b"GET /" + b"a" * 8192 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (POST + b"Expect: fire\r\n\r\n", 417),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 4000, 431),
    ],
    ids=lambda value: repr(value[-40:]) if isinstance(value, bytes) else str(value),
)
def test_a_limit_has_its_own_status(data: bytes, wanted: int):
    assert status(data) == wanted


GOOD = [
    (b"GET /a?b=c HTTP/1.1\r\nHost: a:80\r\n\r\n", ("GET", "/a?b=c", b"", b"")),
    (b"GET http://h:1/a HTTP/1.1\r\nHost: h:1\r\n\r\n", ("GET", "/a", b"", b"")),
    (POST + b"Content-Length: 5\r\n\r\nhelloGET", ("POST", "/mcp", b"hello", b"GET")),
    (
        POST + b"Transfer-Encoding: Chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nT: x\r\n\r\nP",
        ("POST", "/mcp", b"hello!", b"P"),
    ),
    (b"GET / HTTP/1.0\r\n\r\n", ("GET", "/", b"", b"")),
]


@pytest.mark.parametrize(("data", "wanted"), GOOD)
def test_a_good_request_is_read(data: bytes, wanted: tuple[str, str, bytes, bytes]):
    assert read(data) == wanted


@given(st.sampled_from(GOOD), st.lists(st.integers(0, 120), max_size=8))
def test_it_does_not_matter_where_a_request_is_cut(
    good: tuple[bytes, tuple[str, str, bytes, bytes]], cuts: list[int]
):
    data, wanted = good
    places = sorted(min(cut, len(data)) for cut in cuts)
    assert read(data, *places) == wanted


LINES = st.lists(
    st.sampled_from(
        [
            *(b"Content-Length: 3\r\n", b"Content-Length: 4\r\n", b"Content-Length:3\r\n"),
            *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n"),
            *(b"Transfer-Encoding : chunked\r\n", b" chunked\r\n", b"X: y\r\n", b"X: y\n"),
            *(b"Connection: close\r\n", b"\tx\r\n", b"Content-Length: 3, 3\r\n", b"Foo\r\n"),
            *(b"Transfer-Encoding:\tchunked\r\n", b"Content-length: 03\r\n", b"X:\r\r\n"),
        ]
    ),
    max_size=4,
)
BODIES = st.sampled_from(
    [
        *(b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"03\r\nabc\r\n0\r\n\r\n"),
        *(b"3;a=b\r\nabc\r\n0\r\n\r\n", b"3 ;a\r\nabc\r\n0\r\n\r\n", b"abcd", b"0\r\n\r\nGET /"),
    ]
)


def by_h11(data: bytes) -> bytes | None:
    """The body as h11 reads it; None if it refuses or waits."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return body
            elif not isinstance(event, h11.Request):
                return None
    except h11.RemoteProtocolError:
        return None


@given(LINES, BODIES)
def test_what_is_accepted_means_the_same_to_h11(lines: list[bytes], body: bytes):
    data = POST + b"".join(lines) + b"\r\n" + body
    try:
        ours = read(data)[2]
    except (RefusedRequest, EOFError):
        return
    assert by_h11(data) == ours


@given(LINES)
def test_a_head_that_is_accepted_is_accepted_by_aiohttp(lines: list[bytes]):
    data = POST + b"".join(lines) + b"\r\n"
    received = bytearray(data)
    try:
        end = end_of_head(received, 0)
        head = read_head(bytes(received[:end]))
    except RefusedRequest:
        return
    parser = HttpRequestParserPy(None, None, 65536)  # pyright: ignore[reportArgumentType]
    parsed = parser.parse_message(bytes(received[:end]).split(b"\r\n")[:-1])
    assert (parsed.method, parsed.path, parsed.chunked) == (
        head.method,
        head.target,
        head.length is None,
    )


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes):
    with suppress(RefusedRequest, EOFError):
        read(POST + data)


AROUND = st.sampled_from(
    [
        (b"content-length: ", b"\r\n"),
        (b"Content-Length:", b"\r\nx-a: 1\r\n"),
        (b"content-length: 5\r\nContent-Length: ", b"\r\n"),
        (b"x: content-length: 3\r\ncontent-length: ", b" \r\n"),
        (b"transfer-encoding: chunked\r\nx-n: ", b"\r\n"),
        (b"x-content-length: ", b"\r\n"),
        (b"x-long: " + b"a" * 5000 + b"\r\ncontent-length: ", b"\r\n"),
    ]
)
LENGTHS = st.sampled_from([b"0", b"5", b"12", b"007", b"9" * 15, b"9" * 16, b"", b"-1", b"5, 5"])


@given(st.lists(st.tuples(AROUND, LENGTHS), min_size=2, max_size=6))
def test_a_connection_reads_each_head_like_the_first(
    heads: list[tuple[tuple[bytes, bytes], bytes]],
):
    reader = HeadReader()
    for (before, after), length in heads:
        data = POST + before + length + after + b"\r\n"
        wanted: object = None
        with suppress(RefusedRequest):
            wanted = read_head(data)
        if wanted is None:
            with pytest.raises(RefusedRequest):
                reader.read(data)
        else:
            assert reader.read(data) == wanted


def test_a_head_in_single_bytes_costs_no_more_than_it_should():
    received, looked_at, end = bytearray(), 0, 0
    for byte in POST + b"X: " + b"a" * 20000 + b"\r\n\r\n":
        received.append(byte)
        end = end_of_head(received, looked_at)
        looked_at = len(received)
    assert end == len(received)


def coded(name: str, data: bytes, most: int = MOST) -> bytes:
    head = read_head(POST + f"Content-Encoding: {name}\r\n\r\n".encode())
    return inflated(head, data, most)


RAW = zlib.compressobj(wbits=-15)
LONG = b"0123456789" * 1000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("gzip", gzip.compress(LONG)),
        ("GZIP", gzip.compress(LONG[:5000]) + gzip.compress(LONG[5000:])),
        ("deflate", zlib.compress(LONG)),
        ("deflate", RAW.compress(LONG) + RAW.flush()),
        ("identity", LONG),
        ("", LONG),
    ],
    ids=["gzip", "two members", "zlib", "raw deflate", "identity", "none"],
)
def test_a_compressed_body_is_inflated(name: str, data: bytes):
    assert coded(name, data) == LONG
    assert coded(name, data, len(LONG)) == LONG
    if name:
        for most in (len(LONG) - 1, 0):
            with pytest.raises(RefusedRequest) as caught:
                coded(name if name != "identity" else "gzip", gzip.compress(LONG), most)
            assert caught.value.status in (400, 413)


@pytest.mark.parametrize(
    ("name", "data", "wanted"),
    [
        ("br", b"x", 415),
        ("zstd", b"x", 415),
        ("gzip, gzip", gzip.compress(gzip.compress(LONG)), 415),
        ("gzip", LONG, 400),
        ("gzip", b"", 400),
        ("gzip", gzip.compress(LONG)[:-9], 400),
        ("gzip", gzip.compress(LONG) + b"tail", 400),
        ("gzip", gzip.compress(b"") * 9, 400),
        ("deflate", zlib.compress(LONG) + b"tail", 400),
        ("gzip", gzip.compress(bytes(1 << 26)), 413),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_that_cannot_be_inflated_is_refused(name: str, data: bytes, wanted: int):
    with pytest.raises(RefusedRequest) as caught:
        coded(name, data)
    assert caught.value.status == wanted


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate"]))
def test_any_bytes_are_inflated_or_refused(data: bytes, name: str):
    with suppress(RefusedRequest):
        assert len(coded(name, data, 1000)) <= 1000


def test_an_answer_is_written():
    assert write_head(200, [("a", "b")]) == b"HTTP/1.1 200 OK\r\na: b\r\n\r\n"
    assert write_chunk(b"hello") + write_chunk(b"") + LAST_CHUNK == b"5\r\nhello\r\n0\r\n\r\n"
    with pytest.raises(ValueError, match="line break"):
        write_head(200, [("a", "b\r\nc: d")])
