import asyncio
import os
import subprocess
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client.scripted import Reply, run, serving
from toolwire.client.http.aiohttp_proxy import showable
from toolwire.client.http.connection import Connection
from toolwire.client.http.exchange import HttpLimits
from toolwire.client.http.transport import HttpTransport, Outgoing, Proxies
from toolwire.errors import BadInput, ConnectionFailed


def post(url: str, body: bytes = b"{}") -> Outgoing:
    return Outgoing(method="POST", url=url, headers=(("x-one", "1"),), body=body)


async def read(transport: HttpTransport, request: Outgoing) -> tuple[int, bytes]:
    async with transport.open(request) as incoming:
        return incoming.status, b"".join([chunk async for chunk in incoming.chunks])


@contextmanager
def environment(**variables: str) -> Generator[None]:
    kept = dict(os.environ)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def test_importing_the_client_loads_no_http_library() -> None:
    code = (
        "import sys, toolwire.client.model, toolwire.client.http.transport, "
        "toolwire.client.record, toolwire.client.reask; "
        "print('aiohttp' in sys.modules, 'ssl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"


def test_bytes_come_back_as_they_were_sent() -> None:
    async def work() -> None:
        odd = bytes(range(256)) * 100
        transport = HttpTransport()
        async with serving(Reply(status=418, chunks=(odd[:77], odd[77:]))) as server:
            assert await read(transport, post(f"{server.url}/a%20b?c=%2F", odd)) == (418, odd)
            asked = server.asked[0]
            assert (asked.path, asked.body) == ("/a%20b?c=%2F", odd)
        await transport.aclose()

    run(work)


def test_header_names_come_in_lower_case() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with (
            serving(Reply(headers=(("X-Request-ID", "7"),))) as server,
            transport.open(post(server.url)) as incoming,
        ):
            assert incoming.headers["x-request-id"] == "7"
        await transport.aclose()

    run(work)


def test_leaving_early_drops_the_connection_and_reading_on_keeps_it() -> None:
    async def work() -> None:
        transport = HttpTransport()
        script = (Reply(chunks=(b"a",)), Reply(chunks=(b"b",), stall=True), Reply(chunks=(b"c",)))
        async with serving(*script) as server:
            await read(transport, post(server.url))
            async with transport.open(post(server.url)) as incoming:
                assert await anext(incoming.chunks) == b"b"
            await server.dropped.wait()
            await read(transport, post(server.url))
            assert [asked.connection for asked in server.asked] == [0, 0, 1]
        await transport.aclose()

    run(work)


def test_cancelling_before_the_head_drops_the_connection() -> None:
    async def work() -> None:
        transport = HttpTransport()
        accepted, gone = asyncio.Event(), asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            accepted.set()
            while await reader.read(100):
                pass
            gone.set()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(read(transport, post(f"http://127.0.0.1:{port}")))
                await accepted.wait()
                task.cancel()
            await gone.wait()
        await transport.aclose()

    run(work)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (HttpLimits(read=0.05), "no data from 127.0.0.1:{port} for 0.05 s"),
        (HttpLimits(total=0.05), "127.0.0.1:{port} did not finish within 0.05 s"),
    ],
)
@pytest.mark.parametrize("chunks", [(), (b"a",)])
def test_silence_ends_in_a_timeout_that_says_how_long(
    limits: HttpLimits, words: str, chunks: tuple[bytes, ...]
) -> None:
    async def work() -> None:
        transport = HttpTransport(limits)
        async with serving(Reply(chunks=chunks, stall=True)) as server:
            with pytest.raises(ConnectionFailed) as caught:
                await read(transport, post(server.url))
            port = server.url.rpartition(":")[2]
            assert str(caught.value) == words.format(port=port)
            assert caught.value.kind == "timeout"
            await server.dropped.wait()
        await transport.aclose()

    run(work)


def test_a_slow_reader_is_not_taken_for_a_silent_server() -> None:
    async def work() -> None:
        transport = HttpTransport(HttpLimits(read=0.05))
        body = b"a" * 8_000_000
        async with (
            serving(Reply(chunks=(body,))) as server,
            transport.open(post(server.url)) as incoming,
        ):
            taken = len(await anext(incoming.chunks))
            assert taken < len(body)
            # Time is the subject: the reader takes longer than a server may.
            await asyncio.sleep(0.15)
            async for chunk in incoming.chunks:
                taken += len(chunk)
            assert taken == len(body)
        await transport.aclose()

    run(work)


def test_a_broken_body_is_reported() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with serving(Reply(chunks=(b"a",), cut=True), Reply(refuse=True)) as server:
            with pytest.raises(ConnectionFailed, match="broke in the middle of the answer"):
                await read(transport, post(server.url))
            with pytest.raises(ConnectionFailed, match="closed before an answer arrived"):
                await read(transport, post(server.url))
        await transport.aclose()

    run(work)


def test_a_server_that_does_not_speak_http_is_reported() -> None:
    async def work() -> None:
        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"220 mail.example ESMTP\r\n")
            writer.close()

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = HttpTransport()
        async with server:
            request = post(f"http://127.0.0.1:{port}/?key=AIza-0123456789")
            with pytest.raises(ConnectionFailed, match="does not speak HTTP") as caught:
                await read(transport, request)
        assert "AIza" not in "".join(traceback.format_exception(caught.value))
        await transport.aclose()

    run(work)


@pytest.mark.parametrize("url", ["", "nonsense", "http://", "http://[::1", "http://h:port/"])
def test_an_address_that_is_none_is_bad_input(url: str) -> None:
    async def work() -> None:
        transport = HttpTransport()
        with pytest.raises(BadInput, match="address"):
            await read(transport, post(url))
        await transport.aclose()

    run(work)


def test_the_environment_s_proxy_is_used_but_not_for_this_machine() -> None:
    async def work() -> None:
        async with serving(Reply(chunks=(b"by proxy",)), Reply(chunks=(b"straight",))) as server:
            with environment(http_proxy=server.url.replace("http://", "http://me:pass@")):
                transport = HttpTransport()
                answer = await read(transport, post("http://api.example/v1/x"))
                assert answer == (200, b"by proxy")
                assert server.asked[0].headers["proxy-authorization"] == "Basic bWU6cGFzcw=="
                assert server.asked[0].headers["host"] == "api.example"
                assert await read(transport, post(server.url)) == (200, b"straight")
                assert "proxy-authorization" not in server.asked[1].headers
                await transport.aclose()

    run(work)


def test_a_proxy_of_another_kind_is_refused_in_words() -> None:
    async def work() -> None:
        with environment(all_proxy="socks5://127.0.0.1:1"):
            transport = HttpTransport()
            with pytest.raises(BadInput, match=r"socks5 proxy for api\.example"):
                await read(transport, post("http://api.example/"))
            await transport.aclose()

    run(work)


def test_hosts_that_want_no_proxy_get_none() -> None:
    with environment(http_proxy="proxy.example:3128", no_proxy="inside.example"):
        proxies = Proxies()
        found = {
            host: proxies.of(f"http://{host}/")
            for host in ("api.example", "inside.example", "localhost:11434", "[::1]:1", "127.9.9.9")
        }
        assert found == {
            "api.example": "http://proxy.example:3128",
            "inside.example": None,
            "localhost:11434": None,
            "[::1]:1": None,
            "127.9.9.9": None,
        }
        assert proxies.of("https://api.example/") is None


def test_a_proxy_that_is_not_there_is_reported() -> None:
    async def work() -> None:
        with environment(http_proxy="http://127.0.0.1:1"):
            transport = HttpTransport()
            with pytest.raises(
                ConnectionFailed, match=r"cannot reach the proxy for api\.example: "
            ):
                await read(transport, post("http://api.example/"))
            await transport.aclose()

    run(work)


def test_a_netrc_entry_does_not_replace_the_credentials(tmp_path: Path) -> None:
    async def work() -> None:
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login me password secret\n")
        with environment(NETRC=str(netrc)):
            transport = HttpTransport()
            async with serving(Reply()) as server:
                request = Outgoing(
                    method="POST", url=server.url, headers=(("authorization", "Bearer mine"),)
                )
                await read(transport, request)
                assert server.asked[0].headers["authorization"] == "Bearer mine"
            await transport.aclose()

    run(work)


def test_cookies_are_not_kept() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with serving(Reply(headers=(("set-cookie", "a=b; path=/"),)), Reply()) as server:
            await read(transport, post(server.url))
            await read(transport, post(server.url))
            assert "cookie" not in server.asked[1].headers
        await transport.aclose()

    run(work)


def test_one_transport_serves_one_event_loop_after_another() -> None:
    transport = HttpTransport()

    async def work() -> None:
        async with serving(Reply(chunks=(b"ok",))) as server:
            assert await read(transport, post(server.url)) == (200, b"ok")
        await transport.aclose()

    run(work)
    run(work)


def test_an_extra_authority_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    async def work() -> None:
        missing = tmp_path / "ca.pem"
        transport = HttpTransport(ca_file=str(missing))
        with pytest.raises(BadInput, match=r"cannot read certificates from .*ca\.pem"):
            await read(transport, post("https://127.0.0.1:1/"))

    run(work)


def test_a_key_copied_with_its_line_break_is_reported_without_the_key() -> None:
    async def work() -> None:
        transport = HttpTransport()
        async with serving() as server:
            headers = (("authorization", "Bearer sk-0123456789\n"),)
            with pytest.raises(BadInput, match="'authorization' contains a line break") as caught:
                await read(transport, Outgoing(method="POST", url=server.url, headers=headers))
            assert "sk-0123456789" not in str(caught.value)
        await transport.aclose()

    run(work)


def test_errors_that_print_the_address_are_no_cause_to_show() -> None:
    import aiohttp

    assert (
        showable(aiohttp.ConnectionTimeoutError("Connection timeout to host http://h/?key=x"))
        is None
    )
    harmless = aiohttp.ServerDisconnectedError()
    assert showable(harmless) is harmless


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no release for Windows")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_other_event_loops_can_be_used(host: str) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def work() -> None:
        transport = HttpTransport()
        async with serving(Reply(chunks=(b"a", b"b"))) as server:
            url = server.url.replace("127.0.0.1", host)
            assert await read(transport, post(url)) == (200, b"ab")
        await transport.aclose()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())


def test_the_buffer_of_a_connection_has_the_requested_size() -> None:
    limits = HttpLimits(read_bytes=16384)
    assert (
        len(
            Connection(
                "host", limits, lambda connection: None, lambda connection, data: None
            ).get_buffer(-1)
        )
        == 16384
    )

    async def work() -> None:
        data = bytes(range(256)) * 500
        transport = HttpTransport(limits)
        async with serving(Reply(chunks=(data,))) as server:
            assert await read(transport, post(server.url)) == (200, data)
        await transport.aclose()

    run(work)
