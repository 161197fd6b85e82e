"""What our server reads beside h11 and both parsers of aiohttp: one meaning, or refused."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import h11
import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser, HttpRequestParserPy
from aiohttp.streams import EmptyStreamReader
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.wire.http1 import ReceivedBody, RefusedRequest, end_of_head, read_head

Request = tuple[str, str, bytes]
ABSOLUTE = re.compile(r"https?://[^/?#]*")


class Seen(NamedTuple):
    """The requests of one connection, and what its reader does after them."""

    requests: list[Request]
    then: Literal["waits", "closes"]


def by_us(data: bytes) -> Seen:
    rest, requests = bytearray(data), list[Request]()
    while True:
        try:
            while rest.startswith(b"\r\n"):
                del rest[:2]
            end = end_of_head(rest, 0)
            if not end:
                return Seen(requests, "waits")
            head = read_head(bytes(rest[:end]))
            body = ReceivedBody(head.length, 1 << 20)
            rest = bytearray(body.feed(rest[end:]))
        except RefusedRequest:
            return Seen(requests, "closes")
        if not body.ended:
            return Seen(requests, "waits")
        # One parser of aiohttp writes every method in capitals.
        requests.append((head.method.upper(), head.target, body.content))
        if not head.keeps:
            return Seen(requests, "closes")


def by_h11(data: bytes) -> Seen:
    connection, requests = h11.Connection(h11.SERVER), list[Request]()
    method, target, body = "", "", b""
    connection.receive_data(data)
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            return Seen(requests, "closes")
        match event:
            case h11.Request():
                method, target, body = (
                    event.method.decode().upper(),
                    shown(event.target.decode()),
                    b"",
                )
            case h11.Data():
                body += bytes(event.data)
            case h11.EndOfMessage():
                requests.append((method, target, body))
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                try:
                    connection.start_next_cycle()
                except h11.LocalProtocolError:
                    return Seen(requests, "closes")
            case h11.NEED_DATA:
                return Seen(requests, "waits")
            case _:
                return Seen(requests, "closes")


def by_aiohttp(parser: Any, data: bytes) -> Seen:
    loop = asyncio.new_event_loop()
    try:
        protocol = BaseProtocol(loop)
        reader = parser(protocol, loop, 2**16, max_line_size=8190, max_field_size=8190)
        requests: list[Request] = []
        try:
            messages, upgraded, _ = reader.feed_data(data)
        except HttpProcessingError:
            # The parser keeps the messages before a bad one to itself: read them byte by byte.
            return one_by_one(parser, data)
        for message, payload in messages:
            if payload.exception() is not None:
                return Seen(requests, "closes")
            if not payload.is_eof():
                return Seen(requests, "waits")
            requests.append((message.method.upper(), shown(message.path), content(payload)))
            if message.should_close or upgraded:
                return Seen(requests, "closes")
        return Seen(requests, "waits")
    finally:
        loop.close()


def content(payload: Any) -> bytes:
    return b"" if isinstance(payload, EmptyStreamReader) else b"".join(payload._buffer)


def one_by_one(parser: Any, data: bytes) -> Seen:
    """The complete requests that come before the refused bytes."""
    loop = asyncio.new_event_loop()
    requests: list[Request] = []
    open_ones: list[tuple[Any, Any]] = []
    try:
        reader = parser(BaseProtocol(loop), loop, 2**16, max_line_size=8190, max_field_size=8190)
        for number in range(len(data)):
            try:
                messages, upgraded, _ = reader.feed_data(data[number : number + 1])
            except HttpProcessingError:
                break
            open_ones += messages
            if upgraded:
                break
    finally:
        loop.close()
    for message, payload in open_ones:
        if not payload.is_eof() or payload.exception() is not None:
            break
        requests.append((message.method.upper(), shown(message.path), content(payload)))
        if message.should_close:
            break
    return Seen(requests, "closes")


def shown(target: str) -> str:
    """The target in origin form."""
    path = ABSOLUTE.sub("", target, count=1)
    return path if path.startswith(("/", "*")) else f"/{path}"


JUDGES: dict[str, Callable[[bytes], Seen]] = {
    "h11": by_h11,
    "aiohttp in Python": lambda data: by_aiohttp(HttpRequestParserPy, data),
    "aiohttp in C": lambda data: by_aiohttp(HttpRequestParser, data),
}


def difference(data: bytes, judge: str) -> str:
    """How a judge reads other requests than we do; empty if one of both refuses or all agree."""
    ours, theirs = by_us(data), JUDGES[judge](data)
    for mine, other in zip(ours.requests, theirs.requests, strict=False):
        if mine != other:
            return f"{mine} is {other} to {judge}"
    if len(ours.requests) > len(theirs.requests) and theirs.then == "waits":
        return f"{judge} waits where we read {ours.requests[len(theirs.requests)]}"
    if len(theirs.requests) > len(ours.requests) and ours.then == "waits":
        return f"we wait where {judge} reads {theirs.requests[len(ours.requests)]}"
    return ""


METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"get", b"PO ST", b"", b"P\0ST"]
TARGETS = [
    *(b"/a", b"/a?b=c", b"/a%0d%0ab", b"//b", b"/a#b", b"*", b"a", b"/a b", b"/\xff", b"/\0"),
    *(b"http://h/a", b"http://h", b"http://h?q", b"http://other/a", b"http://u@h/", b"h:80"),
]
VERSIONS = [
    *(b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2", b"http/1.1"),
    *(b"HTTP/1.1 ", b"HTTP/01.1", b""),
]
FIELDS = [
    *(b"Content-Length: 3", b"Content-Length: 0", b"Content-Length: 30", b"Content-Length:3"),
    *(b"Content-Length: +3", b"Content-Length: -3", b"Content-Length: 3 ", b"Content-Length: 3, 3"),
    *(b"Content-Length: 0x3", b"Content-Length: 03", b"Content-Length: 3_0", b"Content-Length:"),
    *(b"Content-Length : 3", b"Content-Length\t: 3", b" Content-Length: 3", b"CONTENT-LENGTH: 3"),
    *(
        b"Content-Length: \x0b3",
        b"Content-Length: 3\0",
        b"Content_Length: 3",
        b"Content-Length;: 3",
    ),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding:chunked", b"transfer-encoding: CHUNKED"),
    *(b"Transfer-Encoding : chunked", b"Transfer-Encoding: chunked, identity"),
    *(b"Transfer-Encoding: identity", b"Transfer-Encoding: gzip, chunked"),
    *(b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunked;q=1", b"Transfer-Encoding:"),
    *(b"Transfer-Encoding: \x0bchunked", b'Transfer-Encoding: "chunked"'),
    *(
        b"Transfer-Encoding: chunked\0",
        b"Transfer-Encoding: ,chunked",
        b"Transfer_Encoding: chunked",
    ),
    *(b"Transfer-Encoding:\r\n chunked", b"X: a\r\n Transfer-Encoding: chunked", b"X: a\r\n\tb"),
    *(b"Connection: close", b"Connection: keep-alive", b"Connection: content-length"),
    *(b"Expect: 100-continue", b"Expect: fire", b"Host: b", b"Host:", b"Foo", b": b", b"X: \x7f"),
    *(
        b"X: a\rContent-Length: 30",
        b"X: a\nContent-Length: 30",
        b"X: \xff\xfe",
        b"X" * 300 + b": a",
    ),
    *(
        b"Upgrade: websocket",
        b"Sec-WebSocket-Key1: a",
        b"Trailer: Content-Length",
        b"@: a",
        b"X(: a",
    ),
]
BODIES = [
    *(b"", b"abc", b"abcdef", b"3\r\nabc\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"3\r\nabc\r\n0\r\n"),
    *(b"03\r\nabc\r\n0\r\n\r\n", b"3;a=b\r\nabc\r\n0\r\n\r\n", b"3 ;a\r\nabc\r\n0\r\n\r\n"),
    *(
        b'3;a="\r\nb"\r\nabc\r\n0\r\n\r\n',
        b"3;a\nb\r\nabc\r\n0\r\n\r\n",
        b"0\r\n\r\n",
        b"00\r\n\r\n",
    ),
    *(b"3\r\nabcd\r\n0\r\n\r\n", b"3\r\nab\r\n0\r\n\r\n", b"0x3\r\nabc\r\n0\r\n\r\n", b"-3\r\nabc"),
    *(
        b"+3\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabc0\r\n\r\n",
        b"0\r\nContent-Length: 5\r\n\r\n",
        b"\r\n\r\n",
    ),
    *(
        b"ffffffffffffffff3\r\nabc\r\n0\r\n\r\n",
        b" 3\r\nabc\r\n0\r\n\r\n",
        b"3\r\r\nabc\r\n0\r\n\r\n",
    ),
    *(b"3\r\nabc\r\n0\r\nX: y\r\n folded\r\n\r\n", b"3\r\nabc\r\n0\r\nX\0: y\r\n\r\n", b"0\r\n\n"),
    *(b"3_0\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n0\r\nbad trailer\r\n\r\n", b"3\r\nabc\n0\r\n\r\n"),
]
LINE_ENDS = [b"\r\n"] * 12 + [b"\n", b"\r", b"\r\r\n", b"\n\r"]
NOISE = [b"\r", b"\n", b"\r\n", b" ", b"\t", b"\0", b":", b",", b";", b"0", b"\xff", b"\x0b", b"a"]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One request, with few or many faults."""
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731 - a name for one call
    usual = draw(st.booleans())
    method = pick([b"POST", b"GET"]) if usual else pick(METHODS)
    target = b"/a" if usual else pick(TARGETS)
    version = b"HTTP/1.1" if usual else pick(VERSIONS)
    lines = [b" ".join((method, target, version)), b"Host: h"]
    lines += draw(st.lists(st.sampled_from(FIELDS), max_size=3))
    ends = (
        [b"\r\n"] * (len(lines) + 1) if usual else [pick(LINE_ENDS) for _ in range(len(lines) + 1)]
    )
    head = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    return head + ends[-1] + pick(BODIES)


@st.composite
def connections(draw: st.DrawFn) -> bytes:
    """What a client sends: requests, sometimes with a byte too many or too few."""
    data = bytearray(b"".join(draw(st.lists(requests(), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from(NOISE))
    return bytes(data)


@pytest.mark.parametrize("judge", JUDGES)
@given(data=connections())
@settings(max_examples=400, deadline=None)
def test_no_reader_sees_a_request_that_we_do_not_see(judge: str, data: bytes):
    assert difference(data, judge) == ""


SMUGGLED = b"GET /secret HTTP/1.1\r\nHost: h\r\n\r\n"
PLAIN = b"POST /a HTTP/1.1\r\nHost: h\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("field", FIELDS)
def test_every_odd_field_before_every_body_means_the_same(field: bytes, judge: str):
    for other in (b"", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"):
        for body in BODIES:
            for data in (
                PLAIN + other + field + b"\r\n\r\n" + body + SMUGGLED,
                PLAIN + field + b"\r\n" + other + b"\r\n" + body + SMUGGLED,
            ):
                assert difference(data, judge) == "", data


@pytest.mark.parametrize("judge", JUDGES)
def test_requests_sent_ahead_are_the_same_ones(judge: str):
    chunked = PLAIN + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n"
    sized = PLAIN + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc"
    data = chunked + sized + SMUGGLED
    wanted = [("POST", "/a", b"abc"), ("POST", "/a", b"abc"), ("GET", "/secret", b"")]
    assert by_us(data).requests == JUDGES[judge](data).requests == wanted
