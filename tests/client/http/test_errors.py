"""The same fault is told in the same words, straight or through a proxy."""

import ssl
from contextlib import AbstractAsyncContextManager

import pytest

from tests.client.http.test_pool import ask
from tests.client.raw import raw_server
from tests.client.scripted import run
from toolwire.client.http.aiohttp_proxy import ProxiedHttp
from toolwire.client.http.exchange import HttpLimits, Incoming, read_address
from toolwire.client.http.pool import PlainHttp
from toolwire.errors import ConnectionFailed

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"

FAULTS: dict[str, tuple[list[list[bytes]], bool, HttpLimits, str]] = {
    "no answer": (
        [[]],
        False,
        HttpLimits(),
        "the connection to {host} closed before an answer arrived",
    ),
    "half a body": (
        [[HEAD]],
        False,
        HttpLimits(),
        "the connection to {host} broke in the middle of",
    ),
    "no last chunk": (
        [[CHUNKED]],
        False,
        HttpLimits(),
        "the connection to {host} broke in the middle",
    ),
    "silence": ([[]], True, HttpLimits(read=0.05), "no data from {host} for 0.05 s"),
    "silence later": ([[HEAD]], True, HttpLimits(read=0.05), "no data from {host} for 0.05 s"),
    "too slow": ([[]], True, HttpLimits(total=0.05), "{host} did not finish within 0.05 s"),
    "too slow later": (
        [[HEAD]],
        True,
        HttpLimits(total=0.05),
        "{host} did not finish within 0.05 s",
    ),
    "no HTTP": ([[b"220 mail\r\n"]], False, HttpLimits(), "{host} does not speak HTTP: "),
}


async def _read(opened: AbstractAsyncContextManager[Incoming]) -> None:
    async with opened as incoming:
        async for _ in incoming.chunks:
            pass


async def _failure(opened: AbstractAsyncContextManager[Incoming]) -> ConnectionFailed:
    with pytest.raises(ConnectionFailed) as caught:
        await _read(opened)
    return caught.value


@pytest.mark.parametrize("fault", FAULTS)
def test_both_ways_tell_a_fault_alike(fault: str) -> None:
    answers, stay, limits, words = FAULTS[fault]

    async def work() -> None:
        plain = PlainHttp(limits, ssl.create_default_context)
        proxied = ProxiedHttp(limits, ssl.create_default_context)
        async with raw_server(answers, answers, stay=stay) as server:
            request, host = ask(server.host), server.host
            straight = await _failure(plain.open(request, read_address(request.url)))
            around = await _failure(proxied.open(request, host, f"http://{host}"))
            expected = words.format(host=host)
            assert str(straight).startswith(expected)
            assert str(around).startswith(expected)
            assert (straight.kind, straight.lasting) == (around.kind, around.lasting)
            await plain.aclose()
            await proxied.aclose()

    run(work)
