"""A tiny model at home: its file, its engines, and ways to ask it and to see what was sent."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from tests.embedded.tiny_gguf import CONTEXT, tiny_gguf
from toolwire.client.http.transport import HttpTransport, Incoming, Outgoing
from toolwire.client.model import connect
from toolwire.embedded.catalogue import Weights
from toolwire.embedded.engine import EmbeddedTransport, Engines
from toolwire.embedded.weights import WeightStore
from toolwire.events import ModelEvent, Notice, TextDelta
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.providers.local import PROVIDER
from toolwire.request import JsonObject, ModelRequest, OutputFormat

TINY = tiny_gguf()
WEIGHTS = Weights(
    model="tiny",
    title="Tiny",
    file="tiny.gguf",
    size=len(TINY),
    sha256=hashlib.sha256(TINY).hexdigest(),
    licence="none",
    url="http://127.0.0.1:9/",
    context=CONTEXT,
    cache_per_token=128,
)
SYSTEM = "You are careful. " * 40
YES_OR_NO = {"enum": ["yes", "no"]}
CHAT = "/v1/chat/completions"
T = TypeVar("T")


class Recording:
    """A transport that remembers what it was given to send."""

    def __init__(self, inner: HttpTransport) -> None:
        self._inner = inner
        self.sent: list[Outgoing] = []

    def open(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        self.sent.append(request)
        return self._inner.open(request)

    @property
    def servers(self) -> set[str]:
        return {urlsplit(request.url).netloc for request in self.sent}

    @property
    def targets(self) -> list[str]:
        """Paths with their queries, in order."""
        return [request.url.partition(urlsplit(request.url).netloc)[2] for request in self.sent]


class Home(msgspec.Struct, frozen=True):
    """A folder with the model's file, and the engines of one process."""

    file: Path
    engines: Engines

    def next_process(self) -> "Home":
        return Home(self.file, Engines())

    @property
    def states(self) -> list[Path]:
        return sorted((self.file.parent / "cache" / "prefixes").iterdir())


def new_home(folder: Path) -> Home:
    file = folder / WEIGHTS.file
    file.write_bytes(TINY)
    return Home(file, Engines())


@asynccontextmanager
async def embedded(home: Home) -> AsyncGenerator[tuple[EmbeddedTransport, Recording]]:
    transport = HttpTransport(env_proxies=False)
    recording = Recording(transport)
    folder = home.file.parent / "cache" / "models"
    shelf = WeightStore(folder=folder, transport=transport, environ={}, named=home.file)
    try:
        yield EmbeddedTransport(WEIGHTS, shelf, recording, home.engines), recording
    finally:
        await transport.aclose()


def model_of(transport: EmbeddedTransport) -> Model:
    async def no_credential(fresh: bool) -> tuple[()]:
        del fresh
        return ()

    return connect(PROVIDER, "tiny", transport=transport, credential=no_credential)


def within(schema: JsonObject) -> OutputFormat:
    return OutputFormat(kind="json_schema", schema=schema, name="answer")


def request(
    said: str = "Is water wet?", *, system: str = "", schema: JsonObject | None = YES_OR_NO
) -> ModelRequest:
    return ModelRequest(
        model="tiny",
        messages=(Message(role="user", parts=(Text(said),)),),
        system=(Text(system),) if system else (),
        output=None if schema is None else within(schema),
        max_output_tokens=200,
    )


async def heard(transport: EmbeddedTransport, asked: ModelRequest) -> list[ModelEvent]:
    return [event async for event in model_of(transport)(asked)]


def text(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def reading(events: list[ModelEvent]) -> list[tuple[int, int]]:
    """What each notice says is read, and of how many tokens."""
    words = [
        event.message.split()
        for event in events
        if isinstance(event, Notice) and event.kind == "reading"
    ]
    return [(int(word[0]), int(word[2])) for word in words]


def on(home: Home, use: Callable[[EmbeddedTransport], Awaitable[T]]) -> tuple[T, Recording]:
    async def go() -> tuple[T, Recording]:
        async with embedded(home) as (transport, recording):
            return await use(transport), recording

    return asyncio.run(go())


def asked(home: Home, wanted: ModelRequest) -> tuple[list[ModelEvent], Recording]:
    return on(home, lambda transport: heard(transport, wanted))
