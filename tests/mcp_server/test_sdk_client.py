"""The official Python SDK's client against our server: every verb, both eras, both transports."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place
from tests.mcp.conformance import serving
from tests.mcp.suite_catalogue import PNG
from tests.mcp_server.served import listening

sdk = pytest.importorskip("mcp", reason="the official SDK is not installed")

ROOT = Path(__file__).parents[2]
ERAS = ("legacy", "2026-07-28")
TRANSPORTS = ("stdio", "http")
Use = Callable[[Any], Awaitable[None]]


@asynccontextmanager
async def place(transport: str) -> AsyncGenerator[Any]:
    if transport == "http":
        async with serving() as url:
            yield url
    else:
        words = ["-m", "tests.mcp.suite_catalogue"]
        yield sdk.StdioServerParameters(command=sys.executable, args=words, cwd=str(ROOT))


async def sample(context: Any, params: Any) -> Any:
    content = sdk.types.TextContent(type="text", text="sampled")
    return sdk.types.CreateMessageResult(role="assistant", content=content, model="m")


async def elicit(context: Any, params: Any) -> Any:
    given = {
        name: one.get("default", "typed")
        for name, one in params.requested_schema["properties"].items()
    }
    return sdk.types.ElicitResult(action="accept", content=given)


async def roots(context: Any) -> Any:
    return sdk.types.ListRootsResult(roots=[sdk.types.Root(uri="file:///root", name="root")])


def used(transport: str, era: str, use: Use, **more: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), place(transport) as server:
            options = {
                "sampling_callback": sample,
                "elicitation_callback": elicit,
                "list_roots_callback": roots,
                **more,
            }
            async with sdk.Client(server, mode=era, **options) as client:
                await use(client)

    asyncio.run(run())


pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
both = pytest.mark.parametrize("transport", TRANSPORTS)
every_era = pytest.mark.parametrize("era", ERAS)


@both
@pytest.mark.parametrize("era", [*ERAS, "auto"])
def test_lists_and_reads(transport: str, era: str):
    async def use(client: Any) -> None:
        assert client.protocol_version == ("2025-11-25" if era == "legacy" else "2026-07-28")
        if era != "2026-07-28":
            assert client.server_info.name == "conformance"
        tools = (await client.list_tools()).tools
        assert len(tools) > 20
        assert tools[0].name == "test_simple_text"
        assert len((await client.list_prompts()).prompts) == 5
        assert len((await client.list_resources()).resources) == 3
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "test://template/{id}/data"
        read = await client.read_resource("test://static-text")
        assert read.contents[0].text == "This is the content of the static text resource."
        assert (await client.read_resource("test://static-binary")).contents[0].blob == PNG
        filled = await client.read_resource("test://template/7/data")
        assert '"id": "7"' in filled.contents[0].text
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        assert prompt.messages[0].content.text == "Prompt with arguments: arg1='a', arg2='b'"
        reference = sdk.types.PromptReference(name="test_prompt_with_arguments")
        found = await client.complete(reference, {"name": "arg1", "value": "par"})
        assert found.completion.values == ["paris", "park", "party"]
        if era == "legacy":
            await client.send_ping()
            await client.set_logging_level("warning")
            await client.subscribe_resource("test://watched-resource")
            await client.unsubscribe_resource("test://watched-resource")

    used(transport, era, use)


@both
@every_era
def test_calls_and_asks_back(transport: str, era: str):
    done: list[float] = []

    async def progress(share: float, total: float | None, message: str | None) -> None:
        done.append(share)

    async def use(client: Any) -> None:
        async def text(name: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
            result = await client.call_tool(name, arguments or {}, **more)
            return result.content[0].text

        assert await text("test_simple_text") == "This is a simple text response for testing."
        failed = await client.call_tool("test_error_handling", {})
        assert failed.is_error
        blocks = (await client.call_tool("test_multiple_content_types", {})).content
        assert [block.type for block in blocks] == ["text", "image", "resource"]
        assert await text("test_tool_with_progress", progress_callback=progress) == "done"
        assert done == [0, 50, 100]
        assert await text("test_sampling", {"prompt": "x"}) == "LLM response: sampled"
        asked = await text("test_elicitation", {"message": "m"})
        assert "action=accept" in asked
        assert '"username": "typed"' in asked
        if era != "legacy":
            assert await text("test_input_required_result_elicitation") == "Hello, typed!"
            rounds = await text("test_input_required_result_multi_round")
            assert rounds == "{'name': 'typed'} {'color': 'typed'}"
            assert "file:///root" in await text("test_input_required_result_list_roots")
            prompt = await client.get_prompt("test_input_required_result_prompt", {})
            assert prompt.messages[0].content.text == "Context: typed"

    used(transport, era, use)


@both
@every_era
def test_errors_have_the_protocols_codes(transport: str, era: str):
    async def use(client: Any) -> None:
        for asked in (
            client.call_tool("no_such_tool", {}),
            client.get_prompt("no_such_prompt", {}),
            client.get_prompt("test_prompt_with_arguments", {}),
            client.read_resource("test://nothing"),
        ):
            with pytest.raises(sdk.MCPError) as caught:
                await asked
            assert caught.value.error.code == -32602
        assert caught.value.error.data == {"uri": "test://nothing"}

    used(transport, era, use)


@both
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_log_messages_arrive_from_the_level_on(transport: str, era: str):
    lines: list[Any] = []

    async def logged(params: Any) -> None:
        lines.append(params.data)

    async def use(client: Any) -> None:
        if era == "legacy":
            await client.set_logging_level("info")
        await client.call_tool("test_tool_with_logging", {})
        assert lines == [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed",
        ]
        if era == "legacy":
            await client.set_logging_level("error")
            await client.call_tool("test_tool_with_logging", {})
            assert len(lines) == 3

    used(transport, era, use, logging_callback=logged, log_level="info")


@both
def test_without_a_level_a_stateless_client_gets_no_log(transport: str):
    lines: list[Any] = []

    async def logged(params: Any) -> None:
        lines.append(params.data)

    async def use(client: Any) -> None:
        await client.call_tool("test_tool_with_logging", {})
        assert lines == []

    used(transport, "2026-07-28", use, logging_callback=logged)


@both
def test_a_stateless_client_is_notified_of_changes_it_listens_to(transport: str):
    async def use(client: Any) -> None:
        async with client.listen(tools_list_changed=True) as events:
            await client.call_tool("test_trigger_prompt_change", {})
            await client.call_tool("test_trigger_tool_change", {})
            async for event in events:
                assert type(event).__name__ == "ToolsListChanged"
                break

    used(transport, "2026-07-28", use)


@both
def test_a_client_with_a_session_is_notified_of_changes(transport: str):
    seen: list[str] = []

    async def handle(message: Any) -> None:
        seen.append(type(message).__name__)

    async def use(client: Any) -> None:
        await client.call_tool("test_trigger_tool_change", {})
        for _ in range(200):
            if "ToolListChangedNotification" in seen:
                break
            await asyncio.sleep(0.02)
        assert "ToolListChangedNotification" in seen

    used(transport, "legacy", use, message_handler=handle)


@both
@every_era
def test_calls_run_side_by_side(transport: str, era: str):
    async def use(client: Any) -> None:
        calls = [client.call_tool("test_tool_with_progress", {}) for _ in range(20)]
        results = await asyncio.gather(*calls)
        assert [result.content[0].text for result in results] == ["done"] * 20

    used(transport, era, use)


@asynccontextmanager
async def command(transport: str, place: Place) -> AsyncGenerator[Any]:
    """Our command, for the SDK's client."""
    args = ("--tools", "read_file,write_file")
    if transport == "stdio":
        words = ["-m", "toolwire", "mcp", "serve", *args]
        yield sdk.StdioServerParameters(
            command=sys.executable, args=words, env=place.environ(), cwd=str(place.work)
        )
        return
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(listening(place, *args))
        made = create_mcp_http_client(headers=there.headers())
        http = await stack.enter_async_context(made)
        yield streamable_http_client(there.url, http_client=http)


@both
@every_era
def test_the_command_serves_the_sdks_client(transport: str, era: str, tmp_path: Path):
    place = Place(tmp_path)
    new = place.work / "new.txt"
    asked: list[str] = []

    async def agree(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return sdk.types.ElicitResult(action="accept", content={"answer": "once"})

    async def use() -> None:
        async with asyncio.timeout(60), AsyncExitStack() as stack:
            server = await stack.enter_async_context(command(transport, place))
            made = sdk.Client(server, mode=era, elicitation_callback=agree)
            client = await stack.enter_async_context(made)
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["read_file", "write_file"]
            call = {"file_path": str(new), "content": "text"}
            assert not (await client.call_tool("write_file", call)).is_error
            read = await client.call_tool("read_file", {"absolute_path": str(new)})
            assert read.content[0].text == "text"
            with pytest.raises(sdk.MCPError):
                await client.call_tool("run_shell_command", {"command": "id"})

    asyncio.run(use())
    assert len(asked) == 1
