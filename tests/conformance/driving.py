"""A provider of the catalogue, pointed at a simulator and asked over real HTTP."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from tests import acceptance
from tests.fakes.simulated import LONGEST
from toolwire import providers
from toolwire.acceptance.limits import DEMANDS
from toolwire.client.http.transport import HttpTransport
from toolwire.client.model import connect
from toolwire.collect import Collector
from toolwire.events import Finished, ModelEvent
from toolwire.messages import Media, MediaKind, Message, Text, ToolCall, ToolResult
from toolwire.model import Model
from toolwire.providers import ApiKey, NoAuth, Provider
from toolwire.request import ModelRequest, ToolSpec
from toolwire.simulator import Answering, Demands, Reply, Script, Simulator

KEY = "sk-simulated"
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de")
IMAGE = Media.of_bytes(MediaKind.IMAGE, "image/png", PIXEL)
READ_FILE = ToolSpec(
    name="read_file",
    description="Reads a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["path"],
    },
)
NOW = ToolSpec(name="now", description="The time.", parameters={})
TOOLS = (READ_FILE, NOW)

DETAILED = frozenset({"openrouter", "kilocode"})
"""Gateways that put what they want back into `reasoning_details`."""


class Case(msgspec.Struct, frozen=True):
    """One provider in one of the formats it answers in, and a model of it."""

    provider: Provider
    model: str


def cases() -> list[Any]:
    """Every provider in every format; a new file adds its own."""
    found: list[Any] = []
    for name in providers.names():
        provider = providers.get(name)
        model = provider.default_model or "test-model"
        asked = [(provider, model)]
        asked += [(provider.with_dialect(dialect), model) for dialect, _ in provider.other_dialects]
        if name == "vertex":
            asked[1] = (asked[1][0], "claude-sonnet-5")
        if name == "google":
            asked.append((provider, "gemini-2.5-pro"))
        for entry, named in asked:
            label = f"{name}-{entry.dialect}-{named.replace('/', '_')}"
            found.append(pytest.param(Case(entry, named), id=label))
    return found


def each_case(test: Any) -> Any:
    """Runs the test once per provider and format."""
    return pytest.mark.parametrize("case", cases())(test)


class Credential:
    """A key in the header the provider wants it in; another one after each refusal."""

    def __init__(self, provider: Provider, *keys: str) -> None:
        self._auth = provider.auth
        self._keys = list(keys or (KEY,))
        self.asked: list[bool] = []

    async def __call__(self, refresh: bool) -> tuple[tuple[str, str], ...]:
        self.asked.append(refresh)
        if refresh and len(self._keys) > 1:
            self._keys.pop(0)
        if isinstance(self._auth, NoAuth):
            return ()
        if isinstance(self._auth, ApiKey):
            return ((self._auth.header, f"{self._auth.prefix}{self._keys[0]}"),)
        return (("authorization", f"Bearer {self._keys[0]}"),)


class Driven:
    """A case while it is being asked."""

    def __init__(self, case: Case, sim: Simulator, transport: HttpTransport, *keys: str) -> None:
        self.case = case
        self.sim = sim
        self.waits: list[float] = []
        self.credential = Credential(case.provider, *keys)
        self.messages: tuple[Message, ...] = (_user("Look at a.txt, please."),)
        self.model: Model = connect(
            case.provider,
            case.model,
            transport=transport,
            credential=self.credential,
            base_url=sim.origin + _path(case.provider),
            sleep=self._sleep,
            jitter=lambda: 0.0,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def ask(self, *, stream: bool = True, **more: Any) -> AsyncIterator[ModelEvent]:
        """The events of the next answer."""
        request = ModelRequest(
            model=self.case.model,
            messages=self.messages,
            system=(Text("You are a test."),),
            tools=TOOLS,
            max_output_tokens=4000,
            stream=stream,
        )
        return self.model(msgspec.structs.replace(request, **more))

    async def hear(self, collector: Collector, **more: Any) -> None:
        """Collects the next answer, up to where it breaks."""
        async for event in self.ask(**more):
            collector.add(event)

    async def answer(self, **more: Any) -> tuple[Message, Finished]:
        """The next answer, which becomes part of the conversation."""
        collector = Collector()
        await self.hear(collector, **more)
        assert collector.finished is not None
        message = collector.message()
        self.messages = (*self.messages, message)
        return message, collector.finished

    def give(self, *results: ToolResult) -> None:
        """Results of the last calls."""
        self.messages = (*self.messages, Message(role="user", parts=results))

    def say(self, text: str) -> None:
        """The user's next words."""
        self.messages = (*self.messages, _user(text))


@asynccontextmanager
async def driven(
    case: Case,
    script: Script | Answering,
    *,
    keys: tuple[str, ...] = (),
    key: str = KEY,
    **more: Any,
) -> AsyncGenerator[Driven]:
    """The case before a fresh simulator. At the end no request may have been one a vendor refuses,
    and the vendor's own SDK takes each.
    """
    name = case.provider.name
    more.setdefault("demands", DEMANDS.get(name, Demands()))
    if name in DETAILED:
        more.setdefault("chat_thinking", "reasoning_details")
    if case.provider.dialect == "openai-chat" and name == "google":
        more.setdefault("chat_thinking", "thought_signature")
    key = "" if isinstance(case.provider.auth, NoAuth) else key
    transport = HttpTransport(env_proxies=False)
    try:
        async with Simulator(script, key=key, **more) as sim:
            yield Driven(case, sim, transport, *keys)
            for body in {received.body for received in sim.requests if not received.refusal}:
                _accepted(case, json.loads(body))
    finally:
        await transport.aclose()


def result(call: ToolCall, *parts: Text | Media, is_error: bool = False) -> ToolResult:
    """The answer to a call."""
    return ToolResult(call_id=call.id, name=call.name, parts=parts, is_error=is_error)


def run(coroutine: Any) -> None:
    """Runs a test's coroutine; one that hangs fails."""

    async def limited() -> None:
        async with asyncio.timeout(LONGEST):
            await coroutine

    asyncio.run(limited())


def only(*replies: Reply) -> Script:
    """A script of these replies."""
    return Script(replies=replies)


def _accepted(case: Case, body: dict[str, Any]) -> None:
    if "anthropic_version" in body:
        # On Vertex the model stands in the address.
        body = {"model": case.model, **body}
    if body.get("tool_choice") == case.provider.quirks.required_word != "required":
        # Mistral's own word, which no SDK of OpenAI's knows.
        body = {**body, "tool_choice": "required"}
    acceptance.check(case.provider.dialect, body)


def _path(provider: Provider) -> str:
    return urlsplit(provider.base_url.replace("{", "x").replace("}", "")).path.rstrip("/")


def _user(text: str) -> Message:
    return Message(role="user", parts=(Text(text),))
