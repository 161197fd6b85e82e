"""Requests that must not get in: nothing reaches the upstream, no secret comes out."""

import gzip
import json
import logging
import os
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.fakes.gateway import ServedGateway
from toolwire.gateway.access_log import json_line, text_line
from toolwire.simulator import replies

TOKEN = "sentinel-token-5b1f0c77aa"
UPSTREAM = "sentinel-upstream-93c2de01bb"
WRONG = "sentinel-wrong-key-77ab31f0cc"
BODY = (
    b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"sentinel-content-d1e2f3"}]}'
)
CONTENT = "sentinel-content-d1e2f3"
SENTINELS = (TOKEN, UPSTREAM, WRONG, CONTENT)


class Target:
    """A gateway, and everything it sent."""

    def __init__(self, served: ServedGateway, keyless: ServedGateway) -> None:
        self.served = served
        self.keyless = keyless
        self.sent: list[bytes] = []

    def send(self, data: bytes, served: ServedGateway | None = None) -> tuple[int, bytes]:
        """The status and the bytes of the answer."""
        port = int((served or self.served).origin.rpartition(":")[2])
        data = data.replace(b"PORT", str(port).encode())
        received = b""
        with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
            try:
                one.sendall(data)
                while piece := one.recv(65536):
                    received += piece
            except ConnectionError:
                pass
        self.sent.append(received)
        return int(received[9:12] or 0), received


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    home, other = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("keyless")
    script = replies(*(["never"] * 50))
    with (
        ServedGateway(
            "openai-chat",
            script,
            home=home,
            token=TOKEN,
            upstream_key=UPSTREAM,
            hosts=["gw.example.com"],
            cors=["https://app.example.com"],
        ) as served,
        ServedGateway(
            "openai-chat", script, home=other, token=None, upstream_key=UPSTREAM, body_limit=100_000
        ) as keyless,
    ):
        yield Target(served, keyless)


def post(
    *lines: bytes,
    body: bytes = BODY,
    path: bytes = b"/v1/messages",
    host: bytes = b"127.0.0.1:PORT",
    method: bytes = b"POST",
) -> bytes:
    head = b"%b %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n" % (method, path, host)
    sized = b"Content-Length: %d\r\n" % len(body)
    return head + sized + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


KEY = b"x-api-key: " + TOKEN.encode()
JSON = b"Content-Type: application/json"
HOSTS = [
    *(b"evil.com", b"evil.com:PORT", b"localhost", b"localhost:1", b"127.0.0.1", b"127.0.0.1:1"),
    *(b"127.0.0.1.evil.com:PORT", b"localhost.evil.com:PORT", b"127.0.0.1.nip.io:PORT", b"0:PORT"),
    *(b"0.0.0.0:PORT", b"[::]:PORT", b"127.0.0.2:PORT", b"127.1:PORT", b"2130706433:PORT"),
    *(b"gw.example.com.evil.com", b"xgw.example.com", b"example.com", b"localhost.:PORT", b""),
    *(b"169.254.169.254", b"metadata.google.internal", b"[::ffff:127.0.0.1]:PORT", b":PORT"),
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", [b"/v1/messages", b"/healthz", b"/"])
def test_another_host_is_refused_before_anything_else(target: Target, host: bytes, path: bytes):
    assert target.send(post(KEY, JSON, host=host, path=path))[0] in (400, 421)


@pytest.mark.parametrize(
    "target_line",
    [b"http://evil.com/v1/messages", b"http://127.0.0.1:PORT@evil.com/"],
)
def test_a_whole_address_is_no_way_round_the_host(target: Target, target_line: bytes):
    status, _ = target.send(post(KEY, JSON, path=target_line))
    assert status in (400, 404, 421)


CREDENTIALS = [
    b"",
    *(b"x-api-key: " + value for value in (b"", b" ", WRONG.encode(), TOKEN.encode()[:-1])),
    *(b"x-api-key: " + value for value in (TOKEN.encode() + b"x", TOKEN.upper().encode())),
    *(b"x-api-key: %b, %b" % (WRONG.encode(), b"x"), b"x-api-key: '" + TOKEN.encode() + b"'"),
    *(b"x-api-key: ' OR 1=1 --", b"x-api-key: *", b"x-api-key: null", b"x-api-key: undefined"),
    *(b"Authorization: Bearer " + WRONG.encode(), b"Authorization: Basic " + TOKEN.encode()),
    *(b"Authorization: " + TOKEN.encode(), b"Authorization: Bearer", b"authorization: bearer  "),
    *(b"x-goog-api-key: " + WRONG.encode(), b"api-key: " + WRONG.encode()),
    *(b"Cookie: token=" + TOKEN.encode(), b"X-Token: " + TOKEN.encode()),
    *(b"x-api-key: tw-abcdefgh-" + b"A" * 43, b"x-api-key: tw-" + b"\xff" * 40),
]


@pytest.mark.parametrize("line", CREDENTIALS)
def test_without_the_key_no_request_gets_in(target: Target, line: bytes):
    lines = (JSON, line) if line else (JSON,)
    status, _ = target.send(post(*lines))
    assert status in (401, 429)


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/messages?key=" + WRONG.encode(),
        b"/v1/messages?token=" + TOKEN.encode(),
        b"/v1/messages?KEY=" + TOKEN.encode(),
        b"/v1beta/models/m:generateContent?key=" + WRONG.encode(),
        b"/v1/chat/completions",
        b"/v1/responses",
        b"/v1/models",
        b"/v1/models/m",
        b"/v1/messages/count_tokens",
        b"/v1/responses/resp_1",
        b"/v1/responses/compact",
        b"/v1internal:generateContent",
        b"/v1internal:loadCodeAssist",
        b"/m/v1/messages",
        b"/metrics",
        b"/metrics?key=" + WRONG.encode(),
        b"/v1/embeddings",
        b"/raw/openai/files",
        b"/raw/openai/../../etc/passwd",
        b"/api/keys",
        b"/../../etc/passwd",
        b"/%2e%2e/%2e%2e/etc/passwd",
        b"/v1/responses/..%2f..%2fledger.db",
        b"/console/../gateway/token",
    ],
)
@pytest.mark.parametrize("method", [b"GET", b"POST", b"PUT"])
def test_every_route_needs_the_key(target: Target, path: bytes, method: bytes):
    status, answer = target.send(post(JSON, path=path, method=method))
    assert status in (401, 403, 404, 405, 429)
    assert b"root:" not in answer


CROSS_SITE = [
    (JSON, b"Origin: https://evil.com"),
    (JSON, b"Origin: null"),
    (JSON, b"Origin: http://localhost:1"),
    (JSON, b"Origin: http://127.0.0.1"),
    (JSON, b"Origin: https://127.0.0.1:PORT"[:-5]),
    (JSON, b"Origin: http://127.0.0.1:PORT.evil.com"),
    (JSON, b"Origin: http://evil.com#127.0.0.1:PORT"),
    (JSON, b"Origin: http://127.0.0.1:PORT@evil.com"),
    (JSON, b"Origin: file://"),
    (JSON, b"Origin: chrome-extension://abcdef"),
    (JSON, b"Sec-Fetch-Site: cross-site"),
    (JSON, b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: no-cors"),
    (b"Content-Type: text/plain",),
    (b"Content-Type: application/x-www-form-urlencoded",),
    (b"Content-Type: multipart/form-data; boundary=x",),
    (b"Content-Type: text/plain;application/json",),
    (b"Content-Type: text/html, application/json",),
    (b"X: y",),
]


@pytest.mark.parametrize("lines", CROSS_SITE)
@pytest.mark.parametrize("path", [b"/v1/messages", b"/v1/chat/completions"])
def test_without_keys_no_page_of_another_site_gets_in(
    target: Target, lines: tuple[bytes, ...], path: bytes
):
    assert target.send(post(*lines, path=path), target.keyless)[0] in (400, 403, 415)


SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n" + KEY + b"\r\n\r\n"
P = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n"
SMUGGLING = [
    P + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    P + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    P + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
    P + b"Content-Length: 4, 4\r\n\r\nabcd",
    P + b"Content-Length: +4\r\n\r\nabcd",
    P + b"Content-Length: -4\r\n\r\nabcd",
    P + b"Content-Length: 0x4\r\n\r\nabcd",
    P + b"Content-Length: 4_0\r\n\r\nabcd",
    P + b"Content-Length : 4\r\n\r\nabcd",
    P + b"Content-Length: 99999999999999999999\r\n\r\n",
    P + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    P + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\n\r\n0 \r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\n\r\n1\nZ\n0\n\n",
    P + b"Transfer-Encoding: chunked\r\n\r\n1;\nZ\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\n\r\n1\r\nZZ\r\n0\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\n\r\n0\r\nbad\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    P + b"X: a\r\n Content-Length: 4\r\n\r\nabcd",
    P + b"X: a\nContent-Length: 4\r\n\r\nabcd",
    P + b"X: a\rContent-Length: 4\r\n\r\nabcd",
    P + b"X: a\x00b\r\n\r\n",
    P + b"\x00X: a\r\n\r\n",
    P + b"X\r\n\r\n",
    P + b": a\r\n\r\n",
    P + b"Host: evil.com\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\nHost: 127.0.0.1:PORT\n\n",
    b"POST /v1/messages HTTP/1.1\r\n\r\n",
    b"POST /v1/messages HTTP/2.0\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    b"POST  /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    b"POST /v1/mess ages HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    b"POST /\x00 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    b"CONNECT evil.com:443 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50),
    b"POST /v1/messages HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
]


@pytest.mark.parametrize("data", SMUGGLING)
def test_what_follows_a_doubtful_request_is_never_answered(target: Target, data: bytes):
    status, answer = target.send(data + SMUGGLED)
    assert status in (400, 413, 501)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b'"object":"list"' not in answer


DEEP = b"[" * 100_000 + b"]" * 100_000


def _within(levels: int) -> bytes:
    """A good request in every format with a member nested so deep."""
    text = b'"messages":[{"role":"user","content":"x"}],"input":"x","max_tokens":9'
    return b'{"model":"m",%b,"unknown":%b1%b}' % (text, b"[" * levels, b"]" * levels)


BODIES = [
    (b"", 400),
    (b"null", 400),
    (b"[]", 400),
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b'{"messages":' + DEEP + b"}", 400),
    (b'{"model":"m","messages":[{"role":"user","content":' + DEEP + b"}]}", 400),
    (b'{"model":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", 400),
    (b'{"model":"m","metadata":' + b'{"a":' * 600 + b"1" + b"}" * 600 + b',"messages":[]}', 400),
    (_within(512), 400),
]


@pytest.mark.parametrize(("body", "wanted"), BODIES)
@pytest.mark.parametrize("path", [b"/v1/messages", b"/v1/chat/completions", b"/v1/responses"])
def test_odd_bodies_are_refused(target: Target, body: bytes, wanted: int, path: bytes):
    assert target.send(post(KEY, JSON, body=body, path=path))[0] == wanted


@pytest.mark.parametrize(
    ("lines", "body", "wanted"),
    [
        ((b"Content-Encoding: br",), BODY, 415),
        ((b"Content-Encoding: zstd",), BODY, 415),
        ((b"Content-Encoding: gzip, gzip",), BODY, 415),
        ((b"Content-Encoding: gzip",), BODY, 400),
        ((b"Content-Encoding: gzip",), gzip.compress(bytes(1 << 24), mtime=0), 413),
        ((b"Content-Encoding: deflate",), zlib.compress(bytes(1 << 24)), 413),
        ((b"Content-Encoding: gzip",), gzip.compress(BODY, mtime=0)[:-4], 400),
        ((), b" " * 100_001, 413),
    ],
)
def test_bodies_that_grow_are_refused(
    target: Target, lines: tuple[bytes, ...], body: bytes, wanted: int
):
    assert target.send(post(JSON, *lines, body=body), target.keyless)[0] == wanted


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (post(KEY, b"X: " + b"a" * 70_000), 431),
        (post(KEY, *(b"X%d: y" % number for number in range(120))), 431),
        (post(KEY, path=b"/" + b"a" * 9000), 414),
        (post(KEY, b"X" * 300 + b": y"), 400),
        (post(KEY, b"Expect: 200-maybe"), 417),
    ],
)
def test_heads_have_limits(target: Target, data: bytes, wanted: int):
    assert target.send(data)[0] == wanted


def test_nothing_got_in_and_no_secret_came_out(
    target: Target, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    with caplog.at_level(logging.DEBUG):
        # One good request with everything planted, and one whose upstream repeats its key.
        assert target.send(post(KEY, JSON, b"Authorization: Bearer " + WRONG.encode()))[0] == 200
        port = target.served.origin.rpartition(":")[2].encode()
        status, metrics = target.send(post(KEY, path=b"/metrics", method=b"GET", body=b""))
        assert (status, bool(port)) == (200, True)
    assert len(target.served.received) == 1
    assert target.keyless.received == []
    [received] = target.served.received
    shown = json.dumps(dict(received.headers)) + received.query + received.path
    assert TOKEN not in shown
    assert WRONG not in shown
    records = [*target.served.records, *target.keyless.records]
    written = [json_line(each) + text_line(each) + repr(each) for each in records]
    written += [msgspec.json.encode(msgspec.to_builtins(each)).decode() for each in records]
    written += [caplog.text, metrics.decode(), *os.environ.values()]
    written += [data.decode("latin-1") for data in target.sent]
    for folder in (target.served.home, target.keyless.home):
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "token":
                written.append(path.read_bytes().decode("latin-1"))
    for sentinel in SENTINELS:
        found = [text[:200] for text in written if sentinel in text]
        assert found == [], sentinel
