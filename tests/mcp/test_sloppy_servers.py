"""Every way in which servers are known to be sloppy, each over a real process."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.scripted_http import scripted_http
from tests.mcp.scripted_server import ECHO, GREETING
from tests.mcp.servers import TRANSPORTS, answer, connected, scripted, scripted_by
from toolwire.errors import ToolwireError
from toolwire.mcp.client import Lists
from toolwire.mcp.peer import RpcError
from toolwire.mcp.results import CallResult, read_result
from toolwire.messages import Media, Text

GOOD = {"name": "good", "inputSchema": {"type": "object"}}


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


def listed(transport: str, folder: Path, script: dict[str, list[str]]) -> Lists:
    async def ask() -> Lists:
        async with scripted_by(transport, folder, script) as server:
            await server.ready(10)
            assert server.lists is not None
            return server.lists

    return asyncio.run(ask())


def called(transport: str, folder: Path, *lines: str) -> CallResult:
    async def ask() -> CallResult:
        async with scripted_by(transport, folder, {"tools/call": list(lines)}, timeout=5) as server:
            return read_result(await server.call("echo", {}, None), "echo")

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "bad"},
        {"name": "bad", "inputSchema": None},
        {"name": "bad", "inputSchema": True},
        {"name": "bad", "inputSchema": {"properties": {"a": {"type": "string"}}}},
        {"name": "bad", "inputSchema": {"type": "object"}, "annotations": "none"},
        {"name": "bad", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}},
        {"name": "bad", "inputSchema": {"type": "object"}, "icons": "x"},
        {"name": "bad", "inputSchema": {"type": "object"}, "outputSchema": 7},
        {"name": "bad", "inputSchema": {"type": "object"}, "description": None},
        {"name": "bad", "inputSchema": {"type": "object"}, "title": 3},
        {"inputSchema": {"type": "object"}},
        {"name": 4, "inputSchema": {"type": "object"}},
        {"name": None},
        "a string",
        None,
    ],
    ids=str,
)
def test_one_bad_tool_costs_no_other(transport: str, tmp_path: Path, bad: Any):
    tools = [bad, GOOD]
    found = listed(transport, tmp_path, {"tools/list": [answer(result={"tools": tools})]})
    named = isinstance(bad, dict) and isinstance(bad.get("name"), str)
    assert [tool.name for tool in found.tools] == (["bad", "good"] if named else ["good"])
    assert all(tool.parameters["type"] == "object" for tool in found.tools)
    assert bool(found.warnings) != named


@pytest.mark.parametrize("cursor", [None, "", 0])
def test_no_next_page_may_be_written_in_any_way(transport: str, tmp_path: Path, cursor: Any):
    page = {"tools": [GOOD], "nextCursor": cursor}
    assert len(listed(transport, tmp_path, {"tools/list": [answer(result=page)]}).tools) == 1


def test_an_endless_cursor_ends(transport: str, tmp_path: Path):
    page = {"tools": [GOOD], "nextCursor": "again"}
    found = listed(transport, tmp_path, {"tools/list": [answer(result=page)]})
    assert [tool.name for tool in found.tools] == ["good"]


def test_of_two_tools_with_one_name_the_first_is_used(transport: str, tmp_path: Path):
    twice = [{**GOOD, "description": "first"}, {**GOOD, "description": "second"}]
    found = listed(transport, tmp_path, {"tools/list": [answer(result={"tools": twice})]})
    assert [tool.description for tool in found.tools] == ["first"]
    assert found.warnings == ("tool good is listed twice; the first is used",)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "hologram", "x": 1}], "[Unknown content type: hologram]"),
        ([{"x": 1}], "[Unknown content type: none]"),
        ({"type": "text", "text": "one"}, "one"),
        ("plain", "plain"),
        (["plain"], "plain"),
        ([{"type": "text", "text": None}], ""),
        ([{"type": "text", "text": 7}], "7"),
        ([{"type": "resource", "resource": {"text": "inside"}}], "inside"),
        ([{"type": "resource"}], "[Embedded Resource without content]"),
        (None, "[Error: Could not parse tool response]"),
    ],
    ids=str,
)
def test_of_a_sloppy_result_what_can_be_read_is_kept(
    transport: str, tmp_path: Path, content: Any, text: str
):
    found = called(transport, tmp_path, answer(result={"content": content}))
    assert [part.text for part in found.parts if isinstance(part, Text)] == [text]


def test_a_result_without_content_is_named(transport: str, tmp_path: Path):
    assert (
        called(transport, tmp_path, answer(result={})).display
        == "[Error: Could not parse tool response]"
    )


def test_a_picture_without_its_type_is_still_a_picture(transport: str, tmp_path: Path):
    found = called(
        transport, tmp_path, answer(result={"content": [{"type": "image", "data": "AAEC"}]})
    )
    [picture] = [part for part in found.parts if isinstance(part, Media)]
    assert picture.mime == "application/octet-stream"


PNG = "iVBORw0KGgoAAAANSUhEUgAA"


@pytest.mark.parametrize(
    ("block", "mime", "data"),
    [
        ({"data": PNG}, "image/png", PNG),
        ({"data": PNG, "mimeType": "IMAGE/PNG; q=1"}, "image/png", PNG),
        ({"data": PNG, "mimeType": "image/jpeg"}, "image/png", PNG),
        ({"data": PNG, "mimeType": "\x1b[2J"}, "image/png", PNG),
        ({"data": f"data:image/png;base64,{PNG}"}, "image/png", PNG),
        ({"data": f"{PNG[:8]}\n{PNG[8:]}\n", "mimeType": "image/png"}, "image/png", PNG),
        ({"data": "_-8", "mimeType": "image/x"}, "image/x", "/+8="),
        ({"data": "AAEC", "mimeType": "image/x"}, "image/x", "AAEC"),
    ],
    ids=str,
)
def test_a_picture_is_sent_in_a_form_that_vendors_take(block: Any, mime: str, data: str):
    found = read_result({"content": [{"type": "image", **block}]}, "echo")
    [picture] = [part for part in found.parts if isinstance(part, Media)]
    assert (picture.mime, picture.base64) == (mime, data)
    blob = {"blob": block["data"], "mimeType": block.get("mimeType")}
    found = read_result({"content": [{"type": "resource", "resource": blob}]}, "echo")
    [picture] = [part for part in found.parts if isinstance(part, Media)]
    assert (picture.mime, picture.base64) == (mime, data)


@pytest.mark.parametrize("data", ["", None, "not base 64!", "=", "a", 7, {"x": 1}], ids=str)
def test_a_picture_that_cannot_be_read_is_named(data: Any):
    block = {"type": "image", "data": data, "mimeType": "image/png"}
    found = read_result({"content": [block, {"type": "text", "text": "x"}]}, "echo")
    line = "[Image left out: its data is empty or not Base64]"
    assert [part.text for part in found.parts if isinstance(part, Text)] == [line, "x"]
    assert not any(isinstance(part, Media) for part in found.parts)


@pytest.mark.parametrize("structured", [{"a": 1}, [1, 2]], ids=str)
def test_structured_content_alone_is_the_text(transport: str, tmp_path: Path, structured: Any):
    found = called(transport, tmp_path, answer(result={"structuredContent": structured}))
    assert json.loads(found.display) == structured


@pytest.mark.parametrize(("flag", "error"), [("true", True), (True, True), (None, False)])
def test_an_error_flag_may_be_a_string(transport: str, tmp_path: Path, flag: Any, error: bool):
    content = [{"type": "text", "text": "x"}]
    assert (
        called(transport, tmp_path, answer(result={"content": content, "isError": flag})).is_error
        is error
    )


@pytest.mark.parametrize(
    "greeting",
    [
        {**GREETING, "capabilities": None},
        {key: value for key, value in GREETING.items() if key != "serverInfo"},
        {key: value for key, value in GREETING.items() if key != "protocolVersion"},
        {**GREETING, "protocolVersion": "2031-01-01"},
        {**GREETING, "protocolVersion": 7},
        {**GREETING, "instructions": None},
        {},
    ],
    ids=str,
)
def test_a_sloppy_greeting_connects(transport: str, tmp_path: Path, greeting: Any):
    found = listed(transport, tmp_path, {"initialize": [answer(result=greeting)]})
    assert [tool.name for tool in found.tools] == [ECHO["name"]]


OK = '"result": {"content": [{"type": "text", "text": "hello"}]}'


@pytest.mark.parametrize(
    "line",
    [
        f'{{"jsonrpc": "2.0", "id": $ID, "error": null, {OK}}}',
        f'{{"jsonrpc": "2.0", "id": "$ID", {OK}}}',
        f'{{"jsonrpc": "2.0", "id": $ID.0, {OK}}}',
        f'{{"jsonrpc": "1.0", "id": $ID, "session": null, {OK}}}',
        f'{{"id": $ID, {OK}}}',
        f'{{"jsonrpc": "2.0", "id": $ID, "x": NaN, {OK}}}',
        f'Starting up ...\n{{"jsonrpc": "2.0", "id": $ID, {OK}}}',
        f'{{"jsonrpc": "2.0", "id": $ID, {OK}}}\r',
        f'\xef\xbb\xbf{{"jsonrpc": "2.0", "id": $ID, {OK}}}',
        f'[{{"jsonrpc": "2.0", "id": $ID, {OK}}}]',
        f'\n\n{{"jsonrpc": "2.0", "id": $ID, {OK}}}',
        f'{{"jsonrpc": "2.0", "id": 999, {OK}}}\n{{"jsonrpc": "2.0", "id": $ID, {OK}}}',
        f'{{"jsonrpc": "2.0", "id": $ID, {OK}}}\n{{"jsonrpc": "2.0", "id": $ID, {OK}}}',
    ],
    ids=str,
)
def test_a_sloppy_line_is_read(transport: str, tmp_path: Path, line: str):
    assert called(transport, tmp_path, line).display == "hello"


@pytest.mark.parametrize("text", ["a\xff", "a\\ud800"])
def test_broken_characters_are_replaced(transport: str, tmp_path: Path, text: str):
    line = answer(result={"content": [{"type": "text", "text": "TEXT"}]}).replace("TEXT", text)
    assert called(transport, tmp_path, line).display == "a�"


@pytest.mark.parametrize("start", ["Starting up ...\n", "\xef\xbb\xbf", "{\n", "[INFO] x\n", "\n"])
def test_text_before_the_first_message_is_skipped(tmp_path: Path, start: str):
    found = listed("stdio", tmp_path, {"start": [start]})
    assert [tool.name for tool in found.tools] == ["echo"]


def test_a_server_that_exits_at_an_unknown_method_works(tmp_path: Path):
    found = listed("stdio", tmp_path, {"unknown": "exit"})  # type: ignore[dict-item]
    assert [tool.name for tool in found.tools] == ["echo"]


def test_a_server_that_answers_every_method_with_an_empty_object_connects(
    transport: str, tmp_path: Path
):
    empty = [answer(result={})]
    script = {"initialize": empty, "server/discover": empty, "tools/list": empty}
    assert listed(transport, tmp_path, script).tools == ()


@pytest.mark.parametrize("code", [-32000, -32001, -32600, -32601, -32602, -32603, 0, 7])
def test_any_error_to_the_question_for_its_era_leads_to_a_handshake(
    transport: str, tmp_path: Path, code: int
):
    refused = [answer(error={"code": code, "message": "Bad Request: Server not initialized"})]
    assert len(listed(transport, tmp_path, {"server/discover": refused}).tools) == 1


@pytest.mark.parametrize("spoken", ["", "2025-11-25", "2026-07-28"])
def test_the_era_that_a_server_spoke_last_is_tried_first(tmp_path: Path, spoken: str):
    async def ask() -> list[str]:
        async with scripted_http({}, "json") as (url, scripted):
            async with connected(tmp_path, {"url": url}, sleep=at_once) as server:
                server.spoken = spoken
                await server.ready(10)
                assert server.spoken == "2025-11-25"
            return [message["method"] for message in scripted.received][:2]

    first = "initialize" if spoken == "2025-11-25" else "server/discover"
    assert asyncio.run(ask())[0] == first


def test_a_server_that_speaks_another_era_than_last_time_is_still_reached(tmp_path: Path):
    about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    script = {
        "initialize": [answer(error={"code": -32600, "message": "no handshake here"})],
        "server/discover": [answer(result=about)],
    }

    async def ask(transport: str, spoken: str) -> str:
        async with scripted_by(transport, tmp_path, script) as server:
            server.spoken = spoken
            await server.ready(20)
            return server.spoken

    for transport in ("stdio", "json"):
        assert asyncio.run(ask(transport, "2025-11-25")) == "2026-07-28"
        assert asyncio.run(ask(transport, "2026-07-28")) == "2026-07-28"


def test_a_modern_server_on_stdio_may_refuse_the_handshake_with_any_error(tmp_path: Path):
    about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    script = {
        "initialize": [answer(error={"code": -32000, "message": "no handshake here"})],
        "server/discover": [answer(result=about)],
    }
    assert len(listed("stdio", tmp_path, script).tools) == 1


def test_a_server_that_never_answers_the_question_for_its_era_gets_a_handshake(tmp_path: Path):
    async def ask() -> Lists:
        script = {"server/discover": ["sleep"]}
        async with scripted_by("json", tmp_path, script, startup_timeout=4) as server:
            await server.ready(10)
            assert server.lists is not None
            return server.lists

    assert [tool.name for tool in asyncio.run(ask()).tools] == ["echo"]


@pytest.mark.parametrize("tools", [None, {}, "none", 7, [[]]], ids=str)
def test_a_list_that_is_not_one_is_empty(transport: str, tmp_path: Path, tools: Any):
    assert (
        listed(transport, tmp_path, {"tools/list": [answer(result={"tools": tools})]}).tools == ()
    )


@pytest.mark.parametrize("result", [None, [], "text", 7], ids=str)
def test_a_result_that_is_not_an_object_is_named(transport: str, tmp_path: Path, result: Any):
    found = called(transport, tmp_path, answer(result=result))
    assert found.display == "[Error: Could not parse tool response]"


def test_sloppy_prompts_and_resources_cost_no_others(transport: str, tmp_path: Path):
    greeting = {**GREETING, "capabilities": {"tools": {}, "prompts": {}, "resources": {}}}
    prompts = [None, {"name": None}, {"name": "p", "arguments": [{"name": "a"}, None, {}]}]
    resources = ["x", {"name": "no uri"}, {"uri": "a://b", "mimeType": None}]
    script = {
        "initialize": [answer(result=greeting)],
        "prompts/list": [answer(result={"prompts": prompts})],
        "resources/list": [answer(result={"resources": resources})],
    }
    found = listed(transport, tmp_path, script)
    assert [(each.name, len(each.arguments)) for each in found.prompts] == [("p", 1)]
    assert [each.uri for each in found.resources] == ["a://b"]
    assert len(found.warnings) == 4


@pytest.mark.parametrize("error", ["text", 7, {"message": None}, {"code": "x"}, {"code": 1e999}])
def test_a_sloppy_error_is_an_error(transport: str, tmp_path: Path, error: Any):
    line = answer(error=error).replace("Infinity", "1e999")
    with pytest.raises(RpcError, match="MCP error -32603"):
        called(transport, tmp_path, line)


def test_json_over_several_lines_is_named_at_once(tmp_path: Path):
    async def ask() -> str:
        spread = json.dumps({"jsonrpc": "2.0", "id": 2, "result": {}}, indent=2)
        script = scripted({"tools/call": [spread]})
        async with connected(tmp_path, script) as server:
            await server.ready(10)
            with pytest.raises(RpcError) as caught:
                async with asyncio.timeout(5):
                    await server.call("echo", {}, None)
            return str(caught.value)

    assert "JSON spread over several lines" in asyncio.run(ask())


async def at_once(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)


def test_a_server_that_exits_at_once_is_reported_with_its_last_words(tmp_path: Path):
    async def ask() -> tuple[str, str]:
        words = "import sys; print('no licence', file=sys.stderr); sys.exit(3)"
        table = {"command": "python3", "args": ["-c", words]}
        async with connected(tmp_path, table, sleep=at_once) as server:
            with pytest.raises(ToolwireError):
                await server.ready(20)
            return server.state, server.last_words

    assert asyncio.run(ask()) == ("failed", "no licence")


def test_a_server_that_never_answers_is_given_up(tmp_path: Path):
    async def ask() -> str:
        script = scripted({"initialize": ["sleep"]}, startup_timeout=0.5)
        async with connected(tmp_path, script) as server:
            with pytest.raises(ToolwireError) as caught:
                await server.ready()
            return str(caught.value)

    assert "did not start within 0.5 seconds" in asyncio.run(ask())


def test_a_call_in_flight_when_the_server_goes_is_answered_and_the_server_comes_back(
    tmp_path: Path,
):
    async def ask() -> str:
        async with connected(tmp_path, scripted({"tools/call": ["exit"]})) as server:
            with pytest.raises(RpcError) as caught:
                await server.call("echo", {}, None)
            client = await server.ready(10)
            assert client.greeting.name == "scripted"
            return str(caught.value)

    assert asyncio.run(ask()) == "MCP error -32000: Connection closed"


def test_a_program_that_is_not_there_is_named(tmp_path: Path):
    async def ask() -> str:
        async with connected(tmp_path, {"command": "no-such-server"}) as server:
            with pytest.raises(RpcError):
                await server.ready(10)
            return server.error

    assert asyncio.run(ask()) == "the program no-such-server is not on the path"
