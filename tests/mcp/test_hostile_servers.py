"""Servers that mean harm: nothing hangs, grows without end, or leaks."""

import asyncio
import gzip
import json
import os
import resource
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.mcp.scripted_http import ScriptedHttp, serving
from tests.mcp.scripted_server import GREETING
from tests.mcp.servers import answer, connected, scripted
from toolwire.client.http.transport import HttpTransport
from toolwire.errors import ToolwireError
from toolwire.mcp.client import Host
from toolwire.mcp.connection import Reach, ServerConnection, State
from toolwire.mcp.entry import read_entry
from toolwire.mcp.http_channel import HttpRefused
from toolwire.mcp.peer import RpcError
from toolwire.mcp.remembered import Memory
from toolwire.mcp.servers import McpSettings, Servers
from toolwire.wire.jsonrpc import BrokenLine, LineReader

RAW = Path(__file__).with_name("raw_server.py")


def raw(program: str, **more: Any) -> dict[str, Any]:
    """The table of a server whose answer to `tools/call` is written by a piece of Python."""
    return {"command": sys.executable, "args": [str(RAW), program], **more}


async def failed(server: ServerConnection) -> str:
    async with asyncio.timeout(60):
        with pytest.raises(ToolwireError) as caught:
            await server.call("echo", {}, None)
    return str(caught.value)


def test_a_line_without_end_is_cut_off_in_flat_memory(tmp_path: Path):
    async def ask() -> tuple[str, int]:
        program = "while True: out(b'x' * (1 << 20))"
        async with connected(tmp_path, raw(program)) as server:
            await server.ready(20)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            error = await failed(server)
            return error, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    error, grown = asyncio.run(ask())
    assert "a line of more than 64 MB" in error
    assert grown < 100 * 1024, f"{grown} KB"


def test_noise_without_end_is_not_kept(tmp_path: Path):
    async def ask() -> int:
        program = "for _ in range(5): out(b'{' + b'noise\\n' * 100_000)\nanswer()"
        async with connected(tmp_path, raw(program)) as server:
            await server.ready(20)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            async with asyncio.timeout(120):
                await server.call("echo", {}, None)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert asyncio.run(ask()) < 60 * 1024


@pytest.mark.parametrize("line", ["{", "}", "[", "]", "{}", "[1]", '{"a":'])
def test_no_line_makes_reading_quadratic(line: str):
    reader = LineReader()
    # Lines that each might begin or end a message over several lines.
    assert list(reader.feed(b"{\n" + f"{line}\n".encode() * 100_000)) == []


def test_json_that_is_nested_too_deeply_ends_the_connection(tmp_path: Path):
    async def ask() -> str:
        program = 'out(b\'{"result":\' + b"[" * 200_000 + b"\\n")'
        async with connected(tmp_path, raw(program)) as server:
            await server.ready(20)
            return await failed(server)

    assert "nested too deeply" in asyncio.run(ask())
    with pytest.raises(BrokenLine):
        list(LineReader().feed(b"[" * 200_000 + b"]" * 200_000 + b"\n"))


@pytest.mark.parametrize("cursor", ["number", "'same'", "['list']", "'x' * 1_000_000"])
def test_a_list_without_end_ends(tmp_path: Path, cursor: str):
    async def ask() -> int:
        page = "{'tools': [{'name': f't{number}', 'inputSchema': {'type': 'object'}}]}"
        program = f"page = {page}; page['nextCursor'] = str({cursor}); answer(page)"
        table = raw(program)
        table["args"] += ["tools/list"]
        async with connected(tmp_path, table) as server:
            async with asyncio.timeout(60):
                await server.ready(50)
            assert server.lists is not None
            return len(server.lists.tools)

    assert asyncio.run(ask()) <= 100


def test_a_call_that_never_ends_ends_by_its_limit_and_is_cancelled(tmp_path: Path):
    async def ask() -> tuple[str, str]:
        async with connected(tmp_path, raw("pass", timeout=0.3)) as server:
            await server.ready(20)
            error = await failed(server)
            await asyncio.sleep(0.3)
            return error, (tmp_path / "received").read_text()

    error, received = asyncio.run(ask())
    assert error == "MCP error -32001: Request timed out"
    assert "notifications/cancelled" in received


def test_progress_without_end_ends_by_the_limit_in_all(tmp_path: Path):
    async def ask() -> tuple[str, int]:
        notes: list[str] = []
        note = (
            '{"method": "notifications/progress", "params": {"progressToken": %d, "progress": 1}}'
        )
        program = f"while True: out(b'{note}\\n' % number * 100)"
        table = raw(program, timeout=0.5, max_seconds=1)
        async with connected(tmp_path, table) as server:
            await server.ready(20)
            with pytest.raises(RpcError) as caught:
                async with asyncio.timeout(30):
                    await server.call("echo", {}, notes.append)
            return str(caught.value), len(notes)

    error, notes = asyncio.run(ask())
    assert error == "MCP error -32001: Request timed out"
    assert notes < 1000


@pytest.mark.parametrize(
    "token", ["[]", "{}", "null", "true", "1e400", '"' + "9" * 5000 + '"', "1.5"], ids=str
)
def test_progress_for_no_request_is_dropped(tmp_path: Path, token: str):
    async def ask() -> Any:
        line = '{"method": "notifications/%s", "params": {"%s": %s, "progress": {}}}'
        lines = [
            line % ("progress", "progressToken", token),
            line % ("cancelled", "requestId", token),
            line % ("message", "data", token),
        ]
        usual = answer(result={"content": []})
        async with connected(tmp_path, scripted({"tools/call": [*lines, usual]})) as server:
            return await server.call("echo", {}, print)

    assert asyncio.run(ask()) == {"content": []}


def test_floods_of_notifications_and_requests_are_survived(tmp_path: Path):
    async def ask() -> tuple[Any, int]:
        changes: list[str] = []
        program = """
for each in range(20_000):
    out(b'{"method": "notifications/tools/list_changed"}\\n')
    out(b'{"id": %d, "method": "ping"}\\n' % each)
    out(b'{"method": "notifications/message", "params": {"data": "x"}}\\n')
answer({"content": []})
"""
        host = Host(changed=changes.append)
        async with connected(tmp_path, raw(program), host) as server:
            async with asyncio.timeout(120):
                return await server.call("echo", {}, None), len(changes)

    assert asyncio.run(ask()) == ({"content": []}, 20_000)


def test_a_flood_of_changed_lists_asks_for_few_lists(tmp_path: Path):
    async def ask() -> int:
        program = """
for each in range(5000):
    out(b'{"method": "notifications/tools/list_changed"}\\n')
answer({"content": []})
"""
        reach = Reach(
            directory=tmp_path,
            environ=dict(os.environ),
            transport=HttpTransport(),
            login=lambda entry: Credentials(),
        )
        servers = Servers(
            {"test": read_entry("test", raw(program), "")},
            McpSettings(),
            reach=reach,
            host=Host(),
            memory=Memory(tmp_path / "memory"),
            notice=print,
        )
        try:
            await servers.open(30, start=True)
            async with asyncio.timeout(60):
                await servers.servers["test"].call("echo", {}, None)
            await asyncio.sleep(0.5)
            return (tmp_path / "received").read_text().count("tools/list")
        finally:
            await servers.close()

    assert asyncio.run(ask()) < 50


def test_requests_that_are_answered_late_are_limited(tmp_path: Path):
    async def ask() -> int:
        asked = 0

        async def elicit(params: dict[str, Any]) -> dict[str, Any]:
            nonlocal asked
            asked += 1
            await asyncio.sleep(1000)
            return params

        program = """
for each in range(2000):
    out(b'{"id": %d, "method": "elicitation/create", "params": {}}\\n' % each)
answer({"content": []})
"""
        async with connected(tmp_path, raw(program), Host(elicit=elicit)) as server:
            async with asyncio.timeout(60):
                await server.call("echo", {}, None)
            return asked

    assert asyncio.run(ask()) == 100


def test_a_server_that_does_not_read_its_input_does_not_stop_the_client(tmp_path: Path):
    async def ask() -> list[str]:
        found: list[str] = []
        table = raw("import time; time.sleep(1000)", timeout=0.5)
        async with connected(tmp_path, table) as server:
            client = await server.ready(20)
            for size in (1, 10_000_000, 80_000_000):
                with pytest.raises(ToolwireError) as caught:
                    async with asyncio.timeout(30):
                        await client.call("echo", {"text": "x" * size}, None)
                found.append(str(caught.value))
        return found

    late = "MCP error -32001: Request timed out"
    stuck = "MCP error -32000: the server does not read its input"
    assert asyncio.run(ask()) == [late, late, stuck]


def test_a_server_sees_no_secret_of_the_environment(tmp_path: Path):
    async def ask() -> dict[str, str]:
        program = "import os; answer({'structuredContent': dict(os.environ)})"
        secret = {"OPENAI_API_KEY": "sk-secret", "GITHUB_TOKEN": "ghp", "AWS_SESSION": "x"}
        named = {"SSL_CERT_FILE": "/certs", "LC_TIME": "C", "MINE": "hidden"}
        reach = Reach(
            directory=tmp_path,
            environ={**os.environ, **secret, **named},
            transport=HttpTransport(),
            login=lambda entry: Credentials(),
        )
        table = raw(program, env={"OWN": "1"}, env_vars=["SSL_CERT_FILE"])
        server = ServerConnection("test", read_entry("test", table, ""), Host(), reach)
        try:
            return (await server.call("echo", {}, None))["structuredContent"]
        finally:
            await server.aclose()

    found = asyncio.run(ask())
    allowed = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM"}
    others = {name for name in found if name not in allowed and not name.startswith("LC_")}
    assert {name for name in others if not name.startswith("TOOLWIRE_")} == {"OWN", "SSL_CERT_FILE"}
    assert not any("secret" in value for value in found.values())


class Credentials:
    """A token that must not go anywhere else."""

    async def headers(self) -> dict[str, str]:
        return {"authorization": "Bearer very-secret-token"}

    async def challenged(self, refused: HttpRefused) -> bool:
        del refused
        return False


@asynccontextmanager
async def hostile(handle: Any) -> AsyncGenerator[str]:
    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", handle)
    async with serving(application) as address:
        yield address


async def refused(tmp_path: Path, url: str, **more: Any) -> str:
    table = {"url": url, "startup_timeout": 10, "protocol": "2025-11-25", **more}
    async with connected(tmp_path, table, login=Credentials(), sleep=_at_once) as server:
        async with asyncio.timeout(60):
            with pytest.raises(ToolwireError):
                await server.ready(50)
        assert server.state is State.FAILED
        return server.error


async def _at_once(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_credentials_do_not_follow_a_redirect_to_another_host(
    tmp_path: Path, status: int, transport: str
):
    async def ask() -> tuple[str, list[str]]:
        seen: list[str] = []

        async def other(request: web.Request) -> web.Response:
            seen.append(request.headers.get("authorization", "none"))
            return web.json_response({})

        async with hostile(other) as elsewhere:

            async def redirect(request: web.Request) -> web.Response:
                return web.Response(status=status, headers={"location": f"{elsewhere}/mcp"})

            async with hostile(redirect) as address:
                return await refused(tmp_path, f"{address}/mcp", transport=transport), seen

    error, seen = asyncio.run(ask())
    assert seen == []
    assert str(status) in error


def test_a_redirect_to_the_same_host_is_followed(tmp_path: Path):
    async def ask() -> Any:
        scripted = ScriptedHttp({}, "json")

        async def handle(request: web.Request) -> web.StreamResponse:
            if request.path == "/mcp":
                return web.Response(status=307, headers={"location": "/mcp/"})
            return await scripted.post(request)

        async with hostile(handle) as address:
            table = {"url": f"{address}/mcp", "protocol": "2025-11-25"}
            async with connected(tmp_path, table) as server:
                return await server.call("echo", {}, None)

    assert asyncio.run(ask())["content"][0]["text"] == "hello"


def test_a_redirect_without_end_ends(tmp_path: Path):
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"location": "/mcp"})

    async def ask() -> str:
        async with hostile(handle) as address:
            return await refused(tmp_path, f"{address}/mcp")

    assert "307" in asyncio.run(ask())


async def _huge_header(request: web.Request) -> web.StreamResponse:
    return web.Response(headers={"x-huge": "x" * 1_000_000})


_BOMB = gzip.compress(bytes(1 << 20), 1) * 100


async def _gzip_bomb(request: web.Request) -> web.StreamResponse:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    return web.Response(body=_BOMB, headers=headers)


async def _wrong_type(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x89PNG\r\n\x1a\n", content_type="image/png")


async def _web_page(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>Log in \x1b]0;x\x07</html>", content_type="text/html")


async def _no_body(request: web.Request) -> web.StreamResponse:
    return web.Response(status=202)


async def _echo(request: web.Request) -> web.StreamResponse:
    return web.Response(status=500, text=f"bad: {request.headers.get('authorization')}")


async def _drops(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize(
    ("handle", "words"),
    [
        (_huge_header, "head is longer"),
        (_gzip_bomb, "an answer of more than 64 MB"),
        (_wrong_type, "Invalid answer of type image/png"),
        (_web_page, "Invalid answer of type text/html"),
        (_no_body, "Invalid answer"),
        (_echo, "500"),
        (_drops, "closed before an answer arrived"),
    ],
)
def test_an_answer_that_is_not_one_is_named(tmp_path: Path, handle: Any, words: str):
    async def ask() -> str:
        async with hostile(handle) as address:
            return await refused(tmp_path, f"{address}/mcp")

    error = asyncio.run(ask())
    assert words in error
    assert "very-secret-token" not in error


async def _slow(request: web.Request, kind: str, piece: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": kind})
    await response.prepare(request)
    while True:
        await response.write(piece)
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("kind", "piece"),
    [
        ("application/json", b" "),
        ("text/event-stream", b": still here\n\n"),
        ("text/event-stream", b"data: {}\n\n"),
        ("text/event-stream", b"x"),
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_a_body_without_end_ends_by_the_limit(tmp_path: Path, kind: str, piece: bytes, status: int):
    async def ask() -> tuple[str, int]:
        scripted = ScriptedHttp({}, "json")
        open_now = 0

        async def handle(request: web.Request) -> web.StreamResponse:
            nonlocal open_now
            if request.method != "POST":
                return web.Response(status=405)
            if json.loads(await request.read()).get("method") != "tools/call":
                return await scripted.post(request)
            open_now += 1
            try:
                return await _slow(request, kind, piece)
            finally:
                open_now -= 1

        async with hostile(handle) as address:
            table = {"url": f"{address}/mcp", "protocol": "2025-11-25", "timeout": 0.5}
            async with connected(tmp_path, table) as server:
                error = await failed(server)
                for _ in range(100):
                    if not open_now:
                        break
                    await asyncio.sleep(0.05)
                return error, open_now

    assert asyncio.run(ask()) == ("MCP error -32001: Request timed out", 0)


def test_the_error_of_a_slow_body_is_reported_without_it(tmp_path: Path):
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        await response.write(b"the reason")
        await asyncio.sleep(1000)
        return response

    async def ask() -> str:
        async with hostile(handle) as address:
            table = {"url": f"{address}/mcp", "protocol": "2025-11-25"}
            async with connected(tmp_path, table) as server:
                with pytest.raises(ToolwireError):
                    await server.ready(4)
                return server.error

    assert "the reason" in asyncio.run(ask())


@pytest.mark.parametrize("status", [404, 400, 200])
def test_a_session_that_the_server_forgot_is_opened_anew_and_the_call_sent_once(
    tmp_path: Path, status: int
):
    async def ask() -> tuple[Any, list[str]]:
        scripted = ScriptedHttp({}, "json")
        known: set[str] = set()
        calls: list[str] = []

        async def handle(request: web.Request) -> web.StreamResponse:
            if request.method != "POST":
                return web.Response(status=405)
            message = json.loads(await request.read())
            if message["method"] == "initialize":
                session = f"session-{len(calls)}-{id(message)}"
                known.add(session)
                body = {"jsonrpc": "2.0", "id": message["id"], "result": GREETING}
                return web.json_response(body, headers={"mcp-session-id": session})
            if request.headers.get("mcp-session-id") not in known:
                error = {"code": -32001, "message": "Session not found"}
                body = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
                return web.json_response(body, status=status)
            if message["method"] == "tools/call":
                calls.append(message["params"]["name"])
            return await scripted.post(request)

        async with hostile(handle) as address:
            table = {"url": f"{address}/mcp", "protocol": "2025-11-25"}
            async with connected(tmp_path, table) as server:
                await server.call("one", {}, None)
                known.clear()
                found = await server.call("two", {}, None)
                return found["content"][0]["text"], calls

    assert asyncio.run(ask()) == ("hello", ["one", "two"])


def test_an_http_server_that_goes_in_a_call_is_reported_as_closed(tmp_path: Path):
    async def ask() -> str:
        scripted = ScriptedHttp({}, "json")

        async def handle(request: web.Request) -> web.StreamResponse:
            if b"tools/call" in await request.read():
                return await _drops(request)
            return await scripted.post(request)

        async with hostile(handle) as address:
            table = {"url": f"{address}/mcp", "protocol": "2025-11-25"}
            async with connected(tmp_path, table) as server:
                return await failed(server)

    assert asyncio.run(ask()).startswith("MCP error -32000: Connection closed")
