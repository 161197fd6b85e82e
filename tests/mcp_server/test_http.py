"""The address /mcp over raw HTTP: guards, sessions, lost connections, hostile clients."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict

from tests.fakes.simulated import Place
from tests.mcp.conformance import served
from tests.mcp.suite_catalogue import catalogue
from tests.mcp_server.served import LONGEST, listening
from toolwire.http_server.exchange import Asked
from toolwire.mcp_server.catalogue import Catalogue, OfferedTool
from toolwire.mcp_server.exchange import ServedRequest
from toolwire.mcp_server.http import Guard
from toolwire.mcp_server.server import McpServer, ServerLimits
from toolwire.mcp_server.sessions import HttpSession
from toolwire.request import JsonObject
from toolwire.wire.http1 import RequestHead
from toolwire.wire.jsonrpc import RpcRequest

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN = "2026-07-28"
META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(method: str, number: int | None = 1, **params: Any) -> bytes:
    body: JsonObject = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(body if number is None else {**body, "id": number}).encode()


HELLO = message(
    "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t"}
)


class Blocking:
    """A catalogue with a tool that waits, and knows whether it was cancelled."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.catalogue = Catalogue("test")
        self.catalogue.add(OfferedTool(name="wait", description="waits", run=self._run))

    async def _run(self, arguments: JsonObject, request: ServedRequest) -> JsonObject:
        self.started.set()
        try:
            await request.progress(message="started")
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return {"content": [{"type": "text", "text": "done"}]}


class Raw:
    """A client that sends what a test says."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http
        self.fields = dict(ACCEPT)

    def post(self, body: bytes, **fields: str) -> Any:
        more = {name.replace("_", "-"): value for name, value in fields.items()}
        return self.http.post(self.url, data=body, headers={**self.fields, **more})

    def modern(self, method: str, **params: Any) -> Any:
        fields = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if "name" in params:
            fields["Mcp-Name"] = params["name"]
        known: dict[str, Any] = {"_meta": META, **params}
        body = message(method, **known)
        return self.http.post(self.url, data=body, headers={**self.fields, **fields})

    async def greet(self) -> None:
        async with self.post(HELLO) as answer:
            assert answer.status == 200
            self.fields["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        async with self.post(message("notifications/initialized", None)) as answer:
            assert answer.status == 202


@asynccontextmanager
async def raw(offered: Catalogue, limits: ServerLimits | None = None) -> AsyncGenerator[Raw]:
    server = McpServer(offered, limits)
    async with asyncio.timeout(LONGEST), served(server) as url, aiohttp.ClientSession() as http:
        yield Raw(url, http)


async def events(answer: aiohttp.ClientResponse, most: int = 100) -> list[tuple[str, Any]]:
    """The ids and messages of a stream, to its end or as many as wanted."""
    found: list[tuple[str, Any]] = []
    fields: dict[str, str] = {}
    while len(found) < most and (line := (await answer.content.readline()).decode()):
        name, _, value = line.rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            data = json.loads(fields["data"]) if fields["data"] else None
            found.append((fields.get("id", ""), data))
            fields = {}
    return found


def test_only_the_right_client_gets_in(tmp_path: Path):
    async def use() -> None:
        place = Place(tmp_path)
        async with listening(place) as there, aiohttp.ClientSession() as http:
            right = f"Bearer {there.token}"
            evil, fine = "http://evil.example.com", "http://localhost:6274"
            cases: list[tuple[int, dict[str, str]]] = [
                (200, {"Authorization": right}),
                (200, {"Authorization": right.replace("Bearer", "bearer")}),
                (200, {"Authorization": right, "Origin": fine}),
                (401, {}),
                (401, {"Authorization": "Bearer wrong"}),
                (401, {"Authorization": there.token}),
                (401, {"Authorization": "Bearer"}),
                (401, {"Authorization": "Bearer \xff"}),
                (403, {"Authorization": right, "Origin": evil}),
                (403, {"Authorization": right, "Origin": "null"}),
                (403, {"Authorization": right, "Origin": "http://localhost.evil.com"}),
                (403, {"Authorization": right, "Origin": "http://localhost@evil.com"}),
                (403, {"Authorization": right, "Host": "evil.example.com"}),
                (403, {"Authorization": right, "Host": "localhost.evil.com:80"}),
            ]
            for status, fields in cases:
                async with http.post(there.url, data=HELLO, headers={**ACCEPT, **fields}) as answer:
                    assert (answer.status, fields) == (status, fields)
                    assert ("WWW-Authenticate" in answer.headers) is (status == 401)
            async with http.options(there.url, headers={"Origin": fine}) as answer:
                assert answer.status == 204
                assert answer.headers["Access-Control-Allow-Origin"] == fine
            async with http.options(there.url, headers={"Origin": evil}) as answer:
                assert answer.status == 403

    asyncio.run(use())


def test_a_request_in_the_wrong_form_has_its_own_status():
    async def use() -> None:
        async with raw(catalogue()) as client:
            cases: list[tuple[int, bytes, dict[str, str]]] = [
                (415, HELLO, {"Content-Type": "text/plain"}),
                (406, HELLO, {"Accept": "text/html"}),
                (400, b"{", {}),
                (400, b"[]", {}),
                (400, b"7", {}),
                (400, b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', {}),
                (400, b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', {}),
                (400, b"[" * 100000, {}),
                (400, message("tools/list"), {}),
                (404, message("tools/list"), {"Mcp-Session-Id": "unknown"}),
                (400, message("tools/list"), {"MCP-Protocol-Version": "1999-01-01"}),
            ]
            for status, body, fields in cases:
                headers = {**ACCEPT, **fields}
                async with client.http.post(client.url, data=body, headers=headers) as answer:
                    assert (answer.status, body[:60]) == (status, body[:60])
                    assert "error" in await answer.json()
            for method, status in (("PUT", 405), ("GET", 400), ("DELETE", 400)):
                async with client.http.request(method, client.url, headers=ACCEPT) as answer:
                    assert answer.status == status
            async with client.http.post(client.url.replace("/mcp", "/"), data=HELLO) as answer:
                assert answer.status == 404

    asyncio.run(use())


def test_a_session_ends_by_delete_and_by_idleness():
    async def use() -> None:
        limits = ServerLimits(session_seconds=0.3)
        async with raw(catalogue(), limits) as client:
            await client.greet()
            async with client.post(message("ping")) as answer:
                assert await answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
            async with client.http.delete(client.url, headers=client.fields) as answer:
                assert answer.status == 204
            async with client.post(message("ping")) as answer:
                assert answer.status == 404
            await client.greet()
            while True:
                await asyncio.sleep(0.5)
                async with client.post(message("ping")) as answer:
                    if answer.status == 404:
                        break

    asyncio.run(use())


def test_the_oldest_idle_session_makes_room():
    async def use() -> None:
        async with raw(catalogue(), ServerLimits(sessions=2)) as client:
            names: list[str] = []
            for _ in range(3):
                await client.greet()
                names.append(client.fields["Mcp-Session-Id"])
            for name, status in zip(names, (404, 200, 200), strict=True):
                client.fields["Mcp-Session-Id"] = name
                async with client.post(message("ping")) as answer:
                    assert answer.status == status

    asyncio.run(use())


def test_a_lost_stream_goes_on_where_it_was_left():
    async def use() -> None:
        tool = Blocking()
        async with raw(tool.catalogue) as client:
            await client.greet()
            call = message("tools/call", 7, name="wait", _meta={"progressToken": "p"})
            async with client.post(call) as answer:
                assert answer.content_type == "text/event-stream"
                [(first, nothing), (second, progress)] = await events(answer, 2)
                answer.close()
            assert nothing is None
            assert progress["params"] == {
                "progressToken": "p",
                "progress": 1.0,
                "message": "started",
            }
            fields = {**client.fields, "Last-Event-ID": first}
            async with client.http.get(client.url, headers=fields) as answer:
                assert await events(answer, 1) == [(second, progress)]
                answer.close()
            tool.go.set()
            fields["Last-Event-ID"] = second
            async with client.http.get(client.url, headers=fields) as answer:
                [(_, result)] = await events(answer)
            assert result["result"]["content"][0]["text"] == "done"
            assert not tool.cancelled.is_set()

    asyncio.run(use())


def test_finished_streams_do_not_pile_up():
    async def use() -> None:
        offered = Catalogue("test")

        async def run(arguments: JsonObject, request: ServedRequest) -> JsonObject:
            return {"content": [{"type": "text", "text": "x" * (1 << 20)}]}

        offered.add(OfferedTool(name="large", description="large", run=run))
        session = HttpSession(McpServer(offered), lambda one: None)
        for number in range(60):
            name = "tools/call" if number else "initialize"
            request = RpcRequest(number, name, {"name": "large"})
            session.receive([request], primed=False)
            await session.connection.peer.settled(LONGEST)
        await asyncio.sleep(0)
        assert 0 < session.size < 20 << 20
        session.close()

    asyncio.run(use())


def test_a_call_whose_client_never_comes_back_is_cancelled():
    async def use() -> None:
        tool = Blocking()
        async with raw(tool.catalogue, ServerLimits(detached_seconds=0.2)) as client:
            await client.greet()
            async with client.post(message("tools/call", 7, name="wait")) as answer:
                await tool.started.wait()
                answer.close()
            await tool.cancelled.wait()

    asyncio.run(use())


def test_a_cancelled_request_ends_its_stream_without_an_answer():
    async def use() -> None:
        tool = Blocking()
        async with raw(tool.catalogue) as client:
            await client.greet()
            async with client.post(message("tools/call", 7, name="wait")) as answer:
                await tool.started.wait()
                note = message("notifications/cancelled", None, requestId=7)
                async with client.post(note) as noted:
                    assert noted.status == 202
                assert [one for _, one in await events(answer)] == [None]
            assert tool.cancelled.is_set()

    asyncio.run(use())


def test_a_stateless_client_cancels_by_closing():
    async def use() -> None:
        tool = Blocking()
        async with raw(tool.catalogue) as client:
            waiting = asyncio.ensure_future(client.modern("tools/call", name="wait").__aenter__())
            await tool.started.wait()
            waiting.cancel()
            await tool.cancelled.wait()

    asyncio.run(use())


def test_a_call_that_takes_too_long_is_stopped():
    async def use() -> None:
        tool = Blocking()
        async with raw(tool.catalogue, ServerLimits(call_seconds=0.2)) as client:
            async with client.modern("tools/call", name="wait") as answer:
                error = (await answer.json())["error"]
            assert error["code"] == -32001
            assert tool.cancelled.is_set()

    asyncio.run(use())


def test_one_client_has_only_so_many_requests_and_no_id_twice():
    async def use() -> None:
        tool = Blocking()
        async with raw(tool.catalogue, ServerLimits(requests=2)) as client:
            await client.greet()
            open_calls = [
                asyncio.ensure_future(
                    client.post(message("tools/call", number, name="wait")).__aenter__()
                )
                for number in (1, 2)
            ]
            await asyncio.wait(open_calls)
            await tool.started.wait()
            for number in (2, 3):
                async with client.post(message("ping", number)) as answer:
                    assert "error" in await answer.json()

    asyncio.run(use())


def test_a_question_waits_only_so_long_and_its_state_is_for_one_call():
    async def use() -> None:
        limits = ServerLimits(pause_seconds=0.2)
        async with raw(catalogue(), limits) as client:
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
            name = "test_input_required_result_multi_round"
            async with client.modern("tools/call", name=name, _meta=meta) as answer:
                asked = (await answer.json())["result"]
            assert asked["resultType"] == "input_required"
            given = {"step1": {"action": "accept", "content": {"name": "n"}}}
            again = {
                "_meta": meta,
                "inputResponses": given,
                "requestState": asked["requestState"],
            }
            other = "test_input_required_result_request_state"
            async with client.modern("tools/call", name=other, **again) as answer:
                assert "was not made here" in (await answer.json())["error"]["message"]
            await asyncio.sleep(0.5)
            async with client.modern("tools/call", name=name, **again) as answer:
                assert answer.status == 400
                assert "no longer waits" in (await answer.json())["error"]["message"]

    asyncio.run(use())


def test_a_client_of_2025_03_26_may_send_several_messages_at_once():
    async def use() -> None:
        async with raw(catalogue()) as client:
            batch = b"[" + message("ping", 1) + b"," + message("tools/list", 2) + b"]"
            old = HELLO.replace(b"2025-11-25", b"2025-03-26")
            async with client.post(old) as answer:
                client.fields["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
            async with client.post(batch) as answer:
                found = {one["id"] for _, one in await events(answer)}
            assert found == {1, 2}
            await client.greet()
            async with client.post(batch) as answer:
                assert answer.status == 400

    asyncio.run(use())


def test_there_is_one_general_stream_a_session_and_none_for_stateless_clients():
    async def use() -> None:
        offered = catalogue()
        async with raw(offered) as client:
            await client.greet()
            async with client.http.get(client.url, headers=client.fields) as stream:
                assert stream.status == 200
                async with client.http.get(client.url, headers=client.fields) as answer:
                    assert answer.status == 409
                offered.changed("tools")
                [(_, note)] = await events(stream, 1)
                assert note["method"] == "notifications/tools/list_changed"
            fields = {**ACCEPT, "MCP-Protocol-Version": MODERN}
            async with client.http.get(client.url, headers=fields) as answer:
                assert answer.status == 405

    asyncio.run(use())


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
def test_a_header_that_is_missing_wrong_or_double_is_refused(name: str):
    async def use() -> None:
        async with raw(catalogue()) as client:
            right = {
                "MCP-Protocol-Version": MODERN,
                "Mcp-Method": "tools/call",
                "Mcp-Name": "test_simple_text",
            }
            body = message("tools/call", name="test_simple_text", _meta=META)
            without = {known: value for known, value in right.items() if known != name}
            pairs = [*ACCEPT.items(), *right.items()]
            for headers in (
                [*ACCEPT.items(), *without.items()],
                [*ACCEPT.items(), *without.items(), (name, "other")],
                [*pairs, (name, right[name])],
            ):
                sent = CIMultiDict(headers)
                async with client.http.post(client.url, data=body, headers=sent) as answer:
                    assert answer.status == 400
                    code = (await answer.json())["error"]["code"]
                    assert code in (-32020, -32022)

    asyncio.run(use())


@pytest.mark.parametrize(
    ("hosts", "host", "origin", "allowed"),
    [
        (("localhost",), "localhost:80", "", True),
        (("localhost",), "LOCALHOST", "http://localhost:3000", True),
        (("localhost",), "box.local", "", False),
        ((), "box.local:80", "", True),
        ((), "box.local:80", "http://box.local:80", True),
        ((), "box.local:80", "http://localhost:3000", True),
        ((), "box.local:80", "http://evil.com", False),
        ((), "box.local:80", "null", False),
    ],
)
def test_a_page_of_another_place_is_kept_out(
    hosts: tuple[str, ...], host: str, origin: str, allowed: bool
):
    fields = (("origin", origin),) if origin else ()
    head = RequestHead(
        method="POST",
        target="/mcp",
        host=host,
        fields=fields,
        length=0,
        keeps=True,
        minor=1,
        waits=False,
    )
    refusal = Guard(hosts=hosts).refusal(Asked.of(head, b""))
    assert (refusal is None) is allowed
