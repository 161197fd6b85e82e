"""Heads and bodies without a network."""

import gzip
import zlib
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolwire.client.http.body import Body, Chunked, Inflater, Sized, UntilClose, body_of
from toolwire.client.http.exchange import Outgoing, read_address
from toolwire.client.http.head import Head, Unreadable, end_of_head, read_head, write_request
from toolwire.errors import BadInput

CUTS = st.lists(st.integers(0, 400), max_size=20)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(at, len(data)) for at in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


def outcome(body: Body, pieces: list[bytes]) -> tuple[bytes, bool, bool] | tuple[()]:
    """What a body makes of bytes: content, whether it ended, whether more came; or nothing."""
    content = b""
    surplus = False
    try:
        for piece in pieces:
            if body.ended:
                surplus = True
            else:
                content += body.feed(piece)
    except Unreadable:
        return ()
    return content, body.ended, surplus or body.surplus


def chunk(content: bytes, extension: bytes = b"", newline: bytes = b"\r\n") -> bytes:
    return b"%x%b%b%b%b" % (len(content), extension, newline, content, newline)


CHUNKS = st.lists(
    st.builds(
        chunk,
        st.binary(min_size=1, max_size=40),
        st.sampled_from([b"", b";a=b", b" ; x", b';q="1;2"']),
        st.sampled_from([b"\r\n", b"\n"]),
    ),
    max_size=6,
)
ENDS = st.sampled_from([b"0\r\n\r\n", b"000;x\r\n\r\n", b"0\r\nA: b\r\nc:d\r\n\r\n", b"0\n\n"])


@given(chunks=CHUNKS, end=ENDS, cuts=CUTS, rest=st.sampled_from([b"", b"HTTP/1.1 200"]))
def test_chunks_do_not_depend_on_how_the_network_cuts(
    chunks: list[bytes], end: bytes, cuts: list[int], rest: bytes
) -> None:
    data = b"".join(chunks) + end + rest
    whole = outcome(Chunked(), [data])
    assert whole[1:] == (True, bool(rest))
    assert outcome(Chunked(), [*chunks, end + rest]) == whole
    assert outcome(Chunked(), cut(data, cuts)) == whole
    assert outcome(Chunked(), [data[at : at + 1] for at in range(len(data))]) == whole


@given(content=st.lists(st.binary(min_size=1, max_size=40), max_size=6), cuts=CUTS)
def test_the_content_of_chunks_comes_back(content: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(chunk, content)) + b"0\r\n\r\n"
    assert outcome(Chunked(), cut(data, cuts)) == (b"".join(content), True, False)


@given(content=st.lists(st.binary(min_size=1, max_size=20), max_size=4), at=st.integers(0, 200))
def test_a_cut_body_in_chunks_never_ends(content: list[bytes], at: int) -> None:
    data = b"".join(map(chunk, content)) + b"0\r\nx: y\r\n\r\n"
    body = Chunked()
    found = body.feed(data[: min(at, len(data) - 1)])
    assert not body.ended
    assert b"".join(content).startswith(found)


@given(data=st.binary(max_size=60), cuts=CUTS)
@example(data=b"5\r\nhello\r\r\n0\r\n\r\n", cuts=[])
@example(data=b"1\r\na0\r\n\r\n", cuts=[])
@example(data=b"0\r\n\r\r\n", cuts=[])
def test_any_bytes_are_read_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    for made in (Chunked, UntilClose, lambda: Sized(30)):
        assert outcome(made(), cut(data, cuts)) == outcome(made(), [data] if data else [])


@given(
    data=st.text("0123456789abcdefF\r\n;: xX_-+\0", max_size=30).map(str.encode),
    cuts=CUTS,
)
def test_near_misses_are_read_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    assert outcome(Chunked(), cut(data, cuts)) == outcome(Chunked(), [data] if data else [])


@pytest.mark.parametrize(
    "line",
    [
        b"x\r\n",
        b"\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b" 1\r\n",
        b"0x1\r\n",
        b"1_0\r\n",
        b"1 2\r\n",
        b"1\r\r\n",
        b"1;a\0\r\n",
        b"11112222333344445\r\n",
        b"1;" + b"a" * 20000,
        b"1\r\nab",
        b"0\r\nno trailer\r\n\r\n",
        b"0\r\n a: folded\r\n\0\r\n",
        b"0\r\na: " + b"b" * 20000,
    ],
)
def test_sizes_and_trailers_that_make_no_sense_are_refused(line: bytes) -> None:
    assert outcome(Chunked(), [line]) == ()


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (Head(status=200, headers={}), UntilClose),
        (Head(status=200, headers={}, lengths=("5",)), Sized),
        (Head(status=200, headers={}, lengths=("5", "5")), Sized),
        (Head(status=200, headers={}, codings=("chunked",)), Chunked),
        (Head(status=200, headers={}, codings=("chunked",), lengths=("5",)), Chunked),
        (Head(status=204, headers={}, codings=("chunked",)), Sized),
        (Head(status=304, headers={}, lengths=("5",)), Sized),
    ],
)
def test_the_head_says_how_the_body_ends(head: Head, kind: type) -> None:
    assert type(body_of(head, "GET")) is kind
    assert body_of(head, "HEAD").ended


@pytest.mark.parametrize(
    "head",
    [
        Head(status=200, headers={}, lengths=("5", "6")),
        Head(status=200, headers={}, lengths=("-5",)),
        Head(status=200, headers={}, lengths=("+5",)),
        Head(status=200, headers={}, lengths=("",)),
        Head(status=200, headers={}, lengths=("٣",)),
        Head(status=200, headers={}, lengths=("9" * 5000,)),
        Head(status=200, headers={}, codings=("gzip", "chunked")),
        Head(status=200, headers={}, codings=("identity",)),
        Head(status=200, headers={}, codings=("chunked", "chunked")),
    ],
)
def test_a_length_that_makes_no_sense_is_refused(head: Head) -> None:
    with pytest.raises(Unreadable):
        body_of(head, "POST")


def test_a_head_is_read_whole() -> None:
    raw = (
        b"HTTP/1.1 418 I'm a teapot\r\nServer: one\r\nX-Empty:\r\nX-Both:  a \tb \t\r\n"
        b"x-BOTH: last\r\nX-Utf: \xc3\xa9\r\nX-Odd: \xff:\r\nContent-Length: 5, 5\r\n"
        b"Transfer-Encoding: Chunked\r\nConnection: Keep-Alive, Close\r\n\r\n"
    )
    headers = {
        "server": "one",
        "x-empty": "",
        "x-both": "last",
        "x-utf": "é",
        "x-odd": "\udcff:",
        "content-length": "5, 5",
        "transfer-encoding": "Chunked",
        "connection": "Keep-Alive, Close",
    }
    assert read_head(raw) == Head(
        status=418, headers=headers, lengths=("5", "5"), codings=("chunked",), keeps=False
    )
    assert read_head(raw.replace(b"\r\n", b"\n")) == read_head(raw)


@pytest.mark.parametrize(
    ("line", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 200\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", False),
    ],
)
def test_version_and_header_say_whether_the_connection_stays(line: bytes, keeps: bool) -> None:
    assert read_head(line) == Head(
        status=200, headers=read_head(line).headers, keeps=keeps, lengths=(), codings=()
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nfolded: a\r\n b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n first: folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nspace : before\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nnul: \0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbare: \rreturn\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nn\xc3\xa9: 1\r\n\r\n",
    ],
)
def test_a_head_that_makes_no_sense_is_refused(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        read_head(raw)


@given(raw=st.binary(max_size=200))
def test_no_bytes_crash_the_reading_of_heads(raw: bytes) -> None:
    for start in (b"", b"HTTP/1.1 200 OK\r\n"):
        with suppress(Unreadable):
            read_head(start + raw)


@given(raw=st.text("a:\r\n", max_size=40).map(str.encode), at=st.integers(0, 40))
def test_the_end_of_a_head_is_found_wherever_it_is_cut(raw: bytes, at: int) -> None:
    whole = end_of_head(raw, 0)
    early = end_of_head(raw[:at], 0)
    assert (early or end_of_head(raw, min(at, len(raw)))) == whole


PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate ": lambda data: zlib.compress(data)[2:-4],
}


@given(
    coding=st.sampled_from(sorted(PACKERS)),
    data=st.binary(max_size=300),
    cuts=CUTS,
)
def test_compressed_content_comes_back(coding: str, data: bytes, cuts: list[int]) -> None:
    inflater = Inflater(coding.strip())
    packed = PACKERS[coding](data)
    found = [piece for part in cut(packed, cuts) for piece in inflater.feed(part)]
    assert (b"".join(found), inflater.is_whole()) == (data, True)


def test_gzip_after_gzip_and_padding_are_read() -> None:
    inflater = Inflater("gzip")
    packed = gzip.compress(b"one") + gzip.compress(b"two") + b"\0\0\0"
    assert b"".join(inflater.feed(packed)) == b"onetwo"
    assert inflater.is_whole()


def test_cut_compressed_content_is_not_whole() -> None:
    packed = gzip.compress(b"some words")
    for at in range(1, len(packed)):
        inflater = Inflater("gzip")
        list(inflater.feed(packed[:at]))
        assert not inflater.is_whole()
    assert Inflater("gzip").is_whole()


def test_a_few_bytes_that_hold_a_lot_come_in_pieces() -> None:
    inflater = Inflater("gzip")
    sizes = [len(piece) for piece in inflater.feed(gzip.compress(bytes(10_000_000)))]
    assert (sum(sizes), max(sizes), inflater.is_whole()) == (10_000_000, 262144, True)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "nonsense"])
def test_unknown_compressions_are_refused(coding: str) -> None:
    with pytest.raises(Unreadable, match=coding):
        Inflater(coding)


def request(method: str = "POST", url: str = "http://h/", **more) -> bytes:
    outgoing = Outgoing(method=method, url=url, **more)
    return write_request(outgoing, read_address(outgoing.url))


def test_a_request_is_written_with_its_length_said_once() -> None:
    headers = (("Authorization", "Bearer k"), ("Content-Length", "7"), ("transfer-encoding", "x"))
    written = request(url="http://h:8080/a%20b?c=%2F#top", headers=headers, body=b"{}")
    assert written.decode().split("\r\n") == [
        "POST /a%20b?c=%2F HTTP/1.1",
        "host: h:8080",
        "accept: */*",
        "accept-encoding: identity",
        *[line for line in written.decode().split("\r\n") if line.startswith("user-agent: ")],
        "Authorization: Bearer k",
        "content-type: application/octet-stream",
        "content-length: 2",
        "",
        "",
    ]


def test_headers_of_the_request_go_before_the_usual_ones() -> None:
    headers = (
        ("Accept-Encoding", "gzip"),
        ("USER-AGENT", "me"),
        ("Host", "other"),
        ("accept", "x"),
    )
    written = request(method="GET", headers=headers)
    assert written == (
        b"GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\nUSER-AGENT: me\r\nHost: other\r\n"
        b"accept: x\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("url", "host", "line"),
    [
        ("http://h:80/", "h", "POST / HTTP/1.1"),
        ("https://h:443", "h", "POST / HTTP/1.1"),
        ("http://[::1]:11434/v1?a", "[::1]:11434", "POST /v1?a HTTP/1.1"),
        ("http://bücher.example/ü?ö", "xn--bcher-kva.example", "POST /%C3%BC?%C3%B6 HTTP/1.1"),
    ],
)
def test_addresses_are_written_as_servers_want_them(url: str, host: str, line: str) -> None:
    lines = request(url=url).decode().split("\r\n")
    assert lines[:2] == [line, f"host: {host}"]


def test_printing_an_address_shows_no_credentials() -> None:
    address = read_address("https://me:pass@h:1/?key=k")
    assert repr(address) == "Address(https://h:1)"


def test_a_login_in_the_address_becomes_a_header() -> None:
    assert b"\r\nauthorization: Basic bWU6cEBzcw==\r\n" in request(url="http://me:p%40ss@h/")
    with pytest.raises(BadInput, match="contains a login") as caught:
        request(url="http://me:pass@h/", headers=(("authorization", "Bearer k"),))
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "POST / HTTP/1.1\r\nx: y\r\n\r\nGET"},
        {"method": "GET /"},
        {"method": ""},
        {"headers": (("a\r\nb", "c"),)},
        {"headers": (("a", "b\r\nc: d"),)},
        {"headers": (("a", "b\nc"),)},
        {"headers": (("a", "b\0c"),)},
        {"headers": (("a b", "c"),)},
        {"headers": (("a:", "c"),)},
        {"headers": (("", "c"),)},
        {"url": "http://h/a b"},
        {"url": "http://h/\x7f"},
        {"url": "http://h h/"},
        {"url": "http://a..ü/"},
        {"url": "ftp://h/"},
        {"url": "http://h:99999/"},
        {"url": "http://h/\ud800"},
        {"headers": (("a", "\ud800"),)},
    ],
)
def test_nothing_can_be_smuggled_into_a_request(changes: dict) -> None:
    with pytest.raises(BadInput):
        request(**changes)


@given(
    path=st.text(st.characters(), max_size=20),
    name=st.text("ab-:\r\n é", max_size=10).map("x-".__add__),
    value=st.text(st.characters(), max_size=20),
)
def test_a_request_has_one_line_per_header_whatever_is_in_it(
    path: str, name: str, value: str
) -> None:
    try:
        written = request(url=f"http://h/{path}", headers=((name, value),))
    except BadInput:
        return
    first, *others = written.removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert first.count(b" ") == 2
    assert len(others) == 6
    assert b"\r" not in written.replace(b"\r\n", b"")
    assert written.count(b"\n") == len(others) + 2
