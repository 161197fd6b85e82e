"""Servers and pages made to reach this machine or to hang: refused, bounded, and cancellable."""

import asyncio
import gzip
import sys
import time
import zlib
from collections.abc import Callable

import pytest
from aiohttp import web

from toolwire.tools.builtin.web_fetch import urls_in
from toolwire.tools.web.fetch import (
    LONGEST_URL,
    MOST_BYTES,
    BadBody,
    Fetched,
    Fetching,
    PageBody,
    charset,
    fetch,
    is_private,
    is_public_name,
)
from toolwire.tools.web.page_text import own_text

LIMIT = 20.0
"""Seconds; a watchdog, far above what anything here takes."""


def fullwidth(text: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


def shifted(digits: int) -> Callable[[str], str]:
    return lambda text: "".join(chr(digits + int(one)) if one.isdigit() else one for one in text)


circled = str.maketrans(
    {str(digit): chr(0x2460 + digit - 1) for digit in range(1, 10)} | {"0": "⓪"}
)
SPELLINGS = {
    "plain": "127.0.0.1",
    "short": "127.1",
    "integer": "2130706433",
    "hexadecimal": "0x7f000001",
    "octal": "0177.0.0.1",
    "zero": "0",
    "dot at the end": "127.0.0.1.",
    "full-width": fullwidth("127.0.0.1"),
    "full-width integer": fullwidth("2130706433"),
    "full-width hexadecimal": fullwidth("0x7f000001"),
    "circled": "127.0.0.1".translate(circled),
    "bold": shifted(0x1D7CE)("127.0.0.1"),
    "double-struck": shifted(0x1D7D8)("127.0.0.1"),
    "monospace": shifted(0x1D7F6)("127.0.0.1"),
    "superscript": "¹²⁷.⁰.⁰.¹",
    "ideographic dots": "127。0。0。1",
    "half-width dots": "127｡0｡0｡1",
    "full-width dots": "127．0．0．1",
    "soft hyphens": "12\u00ad7.0.0.1",
    "invisible letters": "127\u200b.0\u2060.0.1",
    "name": "localhost",
    "full-width name": fullwidth("localhost"),
    "circled name": "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "capitals": "LOCALHOST",
    "loopback 6": "[::1]",
    "mapped": "[::ffff:127.0.0.1]",
    "mapped in digits": "[::ffff:7f00:1]",
    "compatible": "[::127.0.0.1]",
    "unspecified 6": "[::]",
    "zone": "[fe80::1%25lo]",
    "user before it": "example.com@127.0.0.1",
    "full-width user sign": "example.com＠127.0.0.1",
    "backslash": "example.com\\@127.0.0.1",
}


class Server:
    """A loopback server that counts what reaches it."""

    def __init__(self, answer: Callable[[web.Request], web.StreamResponse]) -> None:
        self._answer = answer
        self.hits = 0

    async def _served(self, request: web.Request) -> web.StreamResponse:
        self.hits += 1
        return self._answer(request)

    async def __aenter__(self) -> int:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._served)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "0.0.0.0", 0).start()
        return self._runner.addresses[0][1]

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


def plain(request: web.Request) -> web.StreamResponse:
    return web.Response(text="reached", content_type="text/plain")


@pytest.mark.parametrize("host", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_no_spelling_of_this_machine_reaches_it(host: str) -> None:
    async def scenario() -> tuple[Fetched, int]:
        server = Server(plain)
        async with server as port:
            return await fetch(f"http://{host}:{port}/", Fetching(seconds=LIMIT)), server.hits

    fetched, hits = asyncio.run(scenario())
    assert (fetched.text, hits) == ("", 0)
    assert fetched.error


@pytest.mark.parametrize("host", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_no_spelling_of_this_machine_is_given_to_the_vendor(host: str) -> None:
    assert not is_public_name(f"http://{host}/")


@pytest.mark.parametrize(
    "address",
    [
        *("::7f00:1", "::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:a00:1::1"),
        *(
            "2001:0:7f00:1::",
            "2001:0:4136:e378:8000:63bf:80ff:fffe",
            "fec0::1",
            "ff02::1",
            "fe80::1",
        ),
        *("2001:470:1:2:0:5efe:7f00:1", "100::1", "2001:db8::1", "5f00::1", "4000::1"),
        *(
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "240.0.0.1",
            "192.0.2.1",
        ),
        *("fd00:ec2::254", "169.254.170.2", "::ffff:0:7f00:1"),
    ],
)
def test_addresses_that_end_at_private_ones_are_private(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2a00:1450:4001::1", "::ffff:8.8.8.8", "::8.8.8.8"])
def test_public_addresses_stay_public(address: str) -> None:
    assert not is_private(address)


def answered(
    answer: Callable[[web.Request], web.StreamResponse],
    seconds: float = LIMIT,
    bytes: int = MOST_BYTES,
) -> Fetched:
    async def scenario() -> Fetched:
        async with Server(answer) as port:
            allowed = Fetching(private=True, seconds=seconds, bytes=bytes)
            return await fetch(f"http://127.0.0.1:{port}/", allowed)

    return asyncio.run(scenario())


def page(body: str | bytes, **headers: str) -> Callable[[web.Request], web.StreamResponse]:
    data = body.encode() if isinstance(body, str) else body
    given = {"Content-Type": "text/html", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return lambda request: web.Response(body=data, headers=given)


@pytest.mark.skipif(sys.platform != "linux", reason="one loopback address only")
@pytest.mark.parametrize("host", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_redirect_is_checked_again(host: str) -> None:
    async def scenario() -> tuple[Fetched, int, int]:
        inner = Server(plain)
        async with inner as port:
            target = f"http://{host}:{port}/"
            outer = Server(lambda _: web.Response(status=302, headers={"Location": target}))
            async with outer as first:
                # Stands for a public server, which cannot be reached from here.
                rules = Fetching(seconds=LIMIT, except_for=frozenset({"127.0.0.2"}))
                fetched = await fetch(f"http://127.0.0.2:{first}/", rules)
            return fetched, outer.hits, inner.hits

    fetched, outer, inner = asyncio.run(scenario())
    assert (fetched.text, outer, inner) == ("", 1, 0)
    assert fetched.error


HANGING = {
    "nested lists": "<ul><li>" * 100_000 + "x",
    "nested ordered lists": "<ol><li>" * 60_000 + "x" + "</ol>" * 60_000,
    "nested divisions": "<div>" * 200_000 + "x" + "</div>" * 200_000,
    "nested links": "<a href='https://a.example/'>" * 50_000 + "x" + "</a>" * 50_000,
    "nested quotes": "<blockquote>" * 50_000 + "x",
    "nested tables": "<table><tr><td>" * 30_000 + "x",
    "nested emphasis": "<b><i>" * 100_000 + "x",
    "unclosed attribute": "<a href='" + "x" * 1_000_000,
    "unclosed attributes": "<a b='" * 100_000,
    "unclosed tags": "<a " * 300_000,
    "attributes": "<a " + "b " * 300_000 + ">x</a>",
    "attribute values": "<a " + "b=c " * 200_000,
    "quotes": "<a b=" + "'\"" * 200_000,
    "slashes": "<a" + "/" * 500_000,
    "equals": "<a" + "=" * 500_000 + ">",
    "huge attribute": f"<a href='{'x' * 3_000_000}'>x</a>",
    "many comments": "<!--" * 200_000,
    "comment dashes": "<!--" + "-" * 500_000,
    "comment signs": "<!-" * 200_000,
    "declarations": "<!DOCTYPE " * 100_000,
    "sections": "<![CDATA[" * 100_000,
    "marked sections": "<![if " * 100_000,
    "instructions": "<?" * 200_000,
    "end tags": "</" * 200_000,
    "open end tags": "</a " * 200_000,
    "signs": "<" * 500_000,
    "entities": "&" * 500_000,
    "open entities": "&am" * 200_000,
    "large numbers": "&#" + "9" * 100_000 + ";",
    "many numbers": "&#x" * 200_000,
    "white space": "<pre>" + " " * 1_000_000 + "x",
    "white space and ends": ("<pre>" + " " * 2000 + "x\n") * 400,
    "empty lines": "<br>" * 300_000,
    "cells": "<td>" * 300_000,
    "skipped": "<script>" * 100_000 + "</style>" * 100_000,
    "scripts": "<script><!--" * 50_000,
    "titles": "<title>" * 100_000,
    "nulls": "\0" * 500_000,
    "text areas": "<textarea><plaintext>" * 50_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("html", HANGING.values(), ids=HANGING.keys())
@pytest.mark.sweep
def test_a_page_that_would_hang_is_read_or_refused_in_time(html: str) -> None:
    start = time.monotonic()
    fetched = answered(page(html), seconds=1)
    assert time.monotonic() - start < LIMIT
    assert not (fetched.text and fetched.error)
    assert len(fetched.text) < 10_000_000


@pytest.mark.parametrize(
    "name", ["nested lists", "nested links", "cells", "empty lines", "white space and ends"]
)
def test_our_own_converter_is_quick_with_nested_elements(name: str) -> None:
    start = time.process_time()
    own_text(HANGING[name])
    assert time.process_time() - start < LIMIT


def test_a_cancel_ends_the_conversion_at_once() -> None:
    async def scenario() -> float:
        async with Server(page(HANGING["unclosed attributes"] * 5)) as port:
            url = f"http://127.0.0.1:{port}/"
            task = asyncio.ensure_future(fetch(url, Fetching(private=True, seconds=60)))
            await asyncio.sleep(0.5)
            start = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.get_running_loop().shutdown_default_executor()
            return time.monotonic() - start

    assert asyncio.run(scenario()) < LIMIT


CODECS = [
    *("hex", "rot13", "zip", "zlib", "bz2", "base64", "uu", "quopri", "idna", "punycode"),
    *("unicode_escape", "raw_unicode_escape", "undefined", "utf-7", "mbcs", "oem", "hex_codec"),
    *("os", "../x", "a\0b", "x" * 1000, "utf-32", "utf_8_sig", "charmap"),
]


@pytest.mark.parametrize("name", CODECS)
def test_only_encodings_of_text_are_taken(name: str) -> None:
    assert charset(f"text/html; charset={name}", b"") == "utf-8"
    assert charset("text/html", f"<meta charset='{name}'>".encode()) == "utf-8"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *(("latin-1", "iso8859-1"), ("windows-1252", "cp1252"), ("UTF-8", "utf-8")),
        *(("Shift_JIS", "shift_jis"), ("GBK", "gbk"), ("euc-kr", "euc_kr"), ("utf-16", "utf-16")),
    ],
)
def test_encodings_of_text_are_known(name: str, found: str) -> None:
    assert charset(f'text/html; charset="{name}"', b"") == found


@pytest.mark.parametrize("name", ["hex", "rot13", "zip", "punycode", "idna", "unicode_escape"])
def test_a_page_in_such_a_codec_is_read_as_plain_text(name: str) -> None:
    body = f"<meta charset={name}><p>words \\u0041 a-bc</p>"
    assert answered(page(body)).text == "words \\u0041 a-bc"


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: gzip.compress(b"\0" * 200_000_000, 9),
    "x-gzip": lambda: gzip.compress(b"<ul>" * 20_000_000, 9),
    "deflate": lambda: zlib.compress(b"x" * 200_000_000, 9),
}


@pytest.mark.parametrize("encoding", BOMBS)
def test_a_compressed_body_is_unpacked_no_further_than_the_limit(encoding: str) -> None:
    bomb = BOMBS[encoding]()
    body = PageBody(encoding, 1000)
    assert not body.add(bomb)
    assert len(body.text("")) == 1000
    answer = page(bomb, Content_Encoding=encoding, Content_Type="text/plain")
    assert len(answered(answer, bytes=5000).text) == 5000


def test_compressed_pages_are_read() -> None:
    for encoding, data in {
        "gzip": gzip.compress(b"<p>hello</p>"),
        "deflate": zlib.compress(b"<p>hello</p>"),
        "Deflate": zlib.compress(b"<p>hello</p>")[2:-4],
    }.items():
        assert answered(page(data, Content_Encoding=encoding)).text == "hello"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "x" * 100])
def test_other_ways_of_compressing_are_refused_with_the_reason(encoding: str) -> None:
    with pytest.raises(BadBody, match="not supported"):
        PageBody(encoding, 10)
    assert "not supported" in answered(page(b"xx", Content_Encoding=encoding)).error


def test_a_broken_body_is_refused_with_the_reason() -> None:
    assert "cannot be read" in answered(page(b"no gzip", Content_Encoding="gzip")).error


def test_a_redirect_without_end_or_to_a_huge_address_is_refused() -> None:
    def onwards(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/" + "x" * 7000})

    assert answered(onwards).error == "more than 10 redirects"
    assert (
        "not an http address"
        in asyncio.run(fetch("http://a.example/" + "x" * LONGEST_URL, Fetching())).error
    )


@pytest.mark.parametrize("tail", [")" * 300_000, "]" * 300_000, ".,;" * 100_000, "(" * 300_000])
def test_addresses_are_trimmed_at_once(tail: str) -> None:
    start = time.monotonic()
    assert urls_in(f"see https://a.example/x{tail}")
    assert time.monotonic() - start < LIMIT
