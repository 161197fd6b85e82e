"""A server on loopback that answers each request with the next reply of its script."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from toolwire.client.http.transport import HttpTransport
from toolwire.client.model import Credential, connect
from toolwire.dialects.quirks import Quirks
from toolwire.events import ModelEvent
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.providers._spec import ApiKey, Provider
from toolwire.request import ModelRequest

KEY = "sk-test-0123456789abcdef"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the server says to one request."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    chunks: tuple[bytes, ...] = ()
    cut: bool = False
    """Drop the connection after the last chunk instead of ending the body."""
    refuse: bool = False
    """Drop the connection without an answer."""
    stall: bool = False
    """After the last chunk say nothing more until the client goes."""
    close_delimited: bool = False
    """No length and no chunking: the end of the connection is the end of the body."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Counts connections, to see which requests shared one."""

    @property
    def json(self) -> dict:
        """The body."""
        return msgspec.json.decode(self.body)


class Server:
    """Its address, and what it was asked."""

    def __init__(self, script: Sequence[Reply]) -> None:
        self._script = list(script)
        self._connections: dict[int, int] = {}
        self._kept: list[object] = []
        self.url = ""
        self.asked: list[Asked] = []
        self.dropped = asyncio.Event()
        """Set when a client goes while the server still has something to say."""
        self.stalled = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The next reply."""
        body = await request.read()
        transport = request.transport
        self._kept.append(transport)
        number = self._connections.setdefault(id(transport), len(self._connections))
        self.asked.append(
            Asked(
                method=request.method,
                path=request.raw_path,
                headers={name.lower(): value for name, value in request.headers.items()},
                body=body,
                connection=number,
            )
        )
        if not self._script:
            return web.Response(status=599, text="the script is over")
        reply = self._script.pop(0)
        assert transport is not None
        if reply.refuse:
            transport.close()
            return web.Response()
        if reply.close_delimited:
            transport.write(
                b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b"".join(reply.chunks)
            )
            transport.close()
            return web.Response()
        response = web.StreamResponse(status=reply.status, headers=dict(reply.headers))
        try:
            await response.prepare(request)
            for chunk in reply.chunks:
                await response.write(chunk)
            if reply.stall:
                self.stalled.set()
                await asyncio.Event().wait()
        except (asyncio.CancelledError, ConnectionError):
            self.dropped.set()
            raise
        if reply.cut:
            transport.close()
        return response


@asynccontextmanager
async def serving(*script: Reply) -> AsyncGenerator[Server]:
    """The server, for as long as the context lasts."""
    server = Server(script)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def provider(dialect: str = "openai-chat", quirks: Quirks | None = None, **more) -> Provider:
    """A provider entry with a key."""
    return Provider(
        name="acme",
        title="Acme",
        dialect=dialect,
        base_url="http://unset.invalid",
        auth=ApiKey(env=("ACME_API_KEY",)),
        quirks=quirks or Quirks(),
        **more,
    )


async def key(refresh: bool) -> tuple[tuple[str, str], ...]:
    """A credential that never changes."""
    return (("authorization", f"Bearer {KEY}"),)


class Sleeper:
    """Notes how long it was asked to sleep, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@asynccontextmanager
async def model_of(
    server: Server,
    entry: Provider | None = None,
    *,
    credential: Credential = key,
    **more,
) -> AsyncGenerator[Model]:
    """A model behind the server, over real HTTP."""
    transport = HttpTransport()
    more.setdefault("sleep", Sleeper())
    more.setdefault("jitter", lambda: 0.0)
    try:
        yield connect(
            entry or provider(),
            "m-1",
            transport=transport,
            credential=credential,
            base_url=server.url,
            **more,
        )
    finally:
        await transport.aclose()


REQUEST = ModelRequest(model="", messages=(Message(role="user", parts=(Text("hi"),)),))


async def listen(
    model: Model, request: ModelRequest = REQUEST
) -> tuple[list[ModelEvent], Exception | None]:
    """Everything a model says, and how it failed."""
    events: list[ModelEvent] = []
    try:
        async for event in model(request):
            events.append(event)
    except Exception as error:
        return events, error
    return events, None


def run(work: Callable[[], Awaitable[None]], seconds: float = 120) -> None:
    """Run an async test; one that hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await work()

    asyncio.run(bounded())


def sse(*objects: dict | str) -> bytes:
    """A stream of chat chunks, with its end."""
    lines = [
        item if isinstance(item, str) else msgspec.json.encode(item).decode() for item in objects
    ]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chat_text(text: str) -> dict:
    """A chunk with text."""
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def chat_end(reason: str = "stop") -> dict:
    """The last chunk."""
    return {
        "id": "c",
        "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }


HELLO = sse(chat_text("hel"), chat_text("lo"), chat_end(), "[DONE]")
"""A whole good answer."""


def failing(status: int, message: str, headers: tuple[tuple[str, str], ...] = (), **error) -> Reply:
    """An error as OpenAI writes it."""
    body = {"error": {"message": message, **error}}
    return Reply(status=status, headers=headers, chunks=(msgspec.json.encode(body),))


def saying(text: str = "hello") -> Reply:
    """A good answer."""
    return Reply(chunks=(sse(chat_text(text), chat_end(), "[DONE]"),))
