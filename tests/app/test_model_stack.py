import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from toolwire import app, providers
from toolwire.app.model_stack import model_stack
from toolwire.client.http.transport import HttpTransport
from toolwire.collect import Collector
from toolwire.config import Settings
from toolwire.errors import ProviderError
from toolwire.events import Finished, ModelEvent, Notice, StopReason, TextDelta
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.prompted import StyleChoice, ToolStyle
from toolwire.request import ModelRequest, ToolSpec
from toolwire.simulator import Call, Say, Simulator, refused, reply

READ = ToolSpec(
    name="read",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
REQUEST = ModelRequest(
    model="m", messages=(Message(role="user", parts=(Text("Read a."),)),), tools=(READ,)
)


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"TOOLWIRE_HOME": str(home), "ANTHROPIC_API_KEY": "sk-test", **more}


async def asked(
    name: str, sim: Simulator, home: Path, *, tool_style: str = "auto"
) -> tuple[app.Opened, Collector]:
    transport = HttpTransport()
    try:
        opened = await app.open_model(
            name,
            settings=Settings(),
            environ=environ(home, ANTHROPIC_BASE_URL=sim.origin),
            transport=transport,
            tool_style=tool_style,
        )
        collector = Collector()
        async for event in opened.ask(REQUEST):
            collector.add(event)
        return opened, collector
    finally:
        await transport.aclose()


def test_a_model_opened_by_name_calls_its_tool(tmp_path: Path) -> None:
    async def work() -> None:
        async with Simulator([reply(Say("Reading. "), Call.of("read", path="a"))]) as sim:
            opened, collector = await asked("anthropic/claude-sonnet-5", sim, tmp_path)
        assert opened.origin == "from ANTHROPIC_API_KEY"
        assert opened.style.style == "native"
        assert collector.message().text == "Reading. "
        assert [(call.name, call.arguments) for call in collector.message().calls] == [
            ("read", '{"path":"a"}')
        ]
        assert collector.finished is not None
        assert collector.finished.reason is StopReason.TOOL_CALLS

    asyncio.run(work())


def test_the_same_model_in_xml_style_gives_the_same_call(tmp_path: Path) -> None:
    async def work() -> None:
        words = "<read>\n<path>a</path>\n</read>\n"
        async with Simulator([reply(Say(words))]) as sim:
            opened, collector = await asked(
                "anthropic/claude-sonnet-5", sim, tmp_path, tool_style="xml"
            )
            assert "tools" not in sim.requests[0].json
        assert opened.style.reason == "the setting says xml"
        assert [(call.name, call.arguments) for call in collector.message().calls] == [
            ("read", '{"path":"a"}')
        ]

    asyncio.run(work())


def test_a_chain_asks_the_next_model_when_the_first_is_out_of_quota(tmp_path: Path) -> None:
    async def work() -> None:
        transport = HttpTransport()
        script = [reply(fault=refused(402, "credit balance is too low")), reply(Say("here"))]
        async with Simulator(script) as sim:
            opened = [
                await app.open_model(
                    f"anthropic/{model}",
                    settings=Settings(),
                    environ=environ(tmp_path, ANTHROPIC_BASE_URL=sim.origin),
                    transport=transport,
                )
                for model in ("claude-opus-5", "claude-sonnet-5")
            ]
            events = [event async for event in model_stack(opened)(REQUEST)]
        await transport.aclose()
        notices = [event.kind for event in events if isinstance(event, Notice)]
        assert "fallback" in notices
        collector = Collector()
        collector.add_all(events)
        assert collector.message().text == "here"

    asyncio.run(work())


def test_without_a_key_the_way_out_is_named(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY"):
            await app.open_model(
                "anthropic/claude-sonnet-5",
                settings=Settings(),
                environ={"TOOLWIRE_HOME": str(tmp_path)},
                transport=HttpTransport(),
            )

    asyncio.run(work())


def test_the_wrappers_of_a_model_are_put_on_in_their_order() -> None:
    seen: list[tuple[str, bool]] = []

    def recording(name: str, inner: Model | None = None) -> Model:
        async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            seen.append((name, any(part.cache is not None for part in request.system)))
            async for event in inner(request) if inner else _done():
                yield event

        return ask

    opened = app.Opened(
        client=recording("client"),
        provider=providers.get("anthropic"),
        model="claude-sonnet-5",
        style=StyleChoice(style=ToolStyle.NATIVE, reason=""),
        in_style=lambda ask: recording("style", ask),
        origin="",
    )
    request = msgspec.structs.replace(REQUEST, system=(Text("Be brief."),))

    async def work() -> None:
        ask = model_stack(
            (opened,), cache_marks=True, session=lambda inner: recording("session", inner)
        )
        events = [event async for event in ask(request)]
        assert events == [TextDelta("yes"), Finished(reason=StopReason.END)]

    asyncio.run(work())
    assert seen == [("session", False), ("style", True), ("client", True)]


async def _done() -> AsyncIterator[ModelEvent]:
    yield TextDelta("yes")
    yield Finished(reason=StopReason.END)
