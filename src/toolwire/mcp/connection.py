"""One server: a task that owns its connection from start to end, and starts it again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from toolwire.client.http.exchange import Transport
from toolwire.errors import ConnectionFailed, ToolwireError
from toolwire.mcp.client import LEGACY, MODERN, Host, Lists, ServerClient
from toolwire.mcp.entry import ServerEntry
from toolwire.mcp.http_channel import HttpChannel, HttpRefused, Login, SessionLost
from toolwire.mcp.peer import (
    CLOSED,
    TIMED_OUT,
    ConnectionLost,
    Peer,
    Progress,
    RpcError,
    TimeLimits,
)
from toolwire.mcp.sse_channel import SseChannel
from toolwire.mcp.stdio_channel import CannotStart, StdioChannel
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import RpcMessage

_WAITS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
MOST_FAILURES = 5
_LONG_LIFE = 60.0
"""Seconds after which a connection counts as one that works."""
_PROBE_SECONDS = 10.0
"""How long a server may take to answer the question for its era over HTTP."""


class State(StrEnum):
    """Where a server is."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    NEEDS_LOGIN = "needs_login"
    STOPPED = "stopped"


class NeedsLogin(ToolwireError):
    """The server wants a login that only a person can make."""

    kind = "mcp_login"


_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM")


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """How this program reaches servers."""

    directory: Path
    """The workspace: where servers run, and where their `cwd` begins."""
    environ: Mapping[str, str]
    transport: Transport
    login: Callable[[ServerEntry], Login]

    def stdio(self, entry: ServerEntry, opened: "_Open") -> StdioChannel:
        """The server as a child process."""
        directory = self.directory / Path(entry.cwd).expanduser()
        words = (entry.command, *entry.args)
        environ = self._environment(entry)
        return StdioChannel(words, directory, environ, opened.receive, opened.end)

    def http(self, entry: ServerEntry, opened: "_Open") -> HttpChannel:
        """The server at its address."""
        headers, login = opened.client.headers, self.login(entry)
        return HttpChannel(
            entry.url,
            self.transport,
            login,
            headers,
            opened.receive,
            opened.peer.fail,
            opened.end,
        )

    def sse(self, entry: ServerEntry, opened: "_Open") -> SseChannel:
        """The server at its address, by the older transport."""
        login = self.login(entry)
        return SseChannel(
            entry.url, self.transport, login, opened.receive, opened.peer.fail, opened.end
        )

    def _environment(self, entry: ServerEntry) -> dict[str, str]:
        """A few names of ours, those that the entry names, and its own."""
        passed = {
            name: value
            for name, value in self.environ.items()
            if name in _INHERITED or name.startswith("LC_") or name in entry.env_vars
        }
        return {**passed, **entry.env}


class _Open:
    """One life of a connection: a channel, its peer and client, and its end."""

    def __init__(self, host: Host, entry: ServerEntry) -> None:
        limits = TimeLimits(silence=entry.timeout, total=entry.max_seconds)
        self.peer = Peer(self, host.serve, host.notice)
        self.client = ServerClient(self.peer, host, limits)
        self.channel: StdioChannel | HttpChannel | SseChannel | None = None
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.answers = 0

    async def send(self, message: RpcMessage) -> None:
        if self.channel is not None:
            await self.channel.send(message)

    async def cancel(self, request: str | int) -> bool:
        return self.channel is not None and await self.channel.cancel(request)

    def receive(self, message: RpcMessage) -> None:
        self.answers += 1
        self.peer.receive(message)

    def end(self, why: str) -> None:
        self.peer.close(why)
        if not self.closed.done():
            self.closed.set_result(why)

    async def aclose(self) -> None:
        self.peer.close()
        if self.channel is not None:
            await self.channel.aclose()

    @property
    def last_words(self) -> str:
        return self.channel.last_words if isinstance(self.channel, StdioChannel) else ""


class ServerConnection:
    """A server that starts when it is first needed and again after it is gone."""

    def __init__(
        self,
        name: str,
        entry: ServerEntry,
        host: Host,
        reach: Reach,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.entry = entry
        self.state = State.WAITING
        self.error = ""
        self.last_words = ""
        self.tries = MOST_FAILURES
        """Failures in a row after which it is given up."""
        self.troubled = asyncio.Event()
        """Set once it has failed to start."""
        self.lists: Lists | None = None
        """What the server offers now; None until it was asked."""
        self.spoken = ""
        """The revision that the server spoke last; its era is tried first."""
        self._host = host
        self._reach = reach
        self._sleep = sleep
        self._ready: asyncio.Future[_Open] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts it in the background; does nothing if it runs or was given up."""
        if self._task is None and self.state is not State.FAILED:
            self._ready = asyncio.get_running_loop().create_future()
            self._ready.add_done_callback(_observed)
            self._task = asyncio.ensure_future(self._own())

    async def restart(self) -> None:
        """Starts it anew, a server that was given up included."""
        await self.aclose()
        self.state, self.error = State.WAITING, ""
        self.start()

    async def ready(self, seconds: float | None = None) -> ServerClient:
        """The client once the server answers; ToolwireError with the reason if it does not."""
        return (await self._opened(seconds)).client

    async def _opened(self, seconds: float | None) -> "_Open":
        self.start()
        if self._ready is None:
            raise RpcError(CLOSED, self.error or "Not connected")
        limit = self.entry.startup_timeout if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                return await asyncio.shield(self._ready)
        except TimeoutError:
            raise ToolwireError(
                f"MCP server {self.name} did not start within {limit:g} seconds"
            ) from None

    async def refresh(self) -> None:
        """Asks for the lists again."""
        self.lists = await (await self.ready()).lists()

    async def call(self, tool: str, arguments: JsonObject, progress: Progress | None) -> JsonObject:
        """The raw result; a call in flight when the server goes is answered, never sent again."""
        try:
            try:
                return await (await self._open_now()).client.call(tool, arguments, progress)
            except (SessionLost, RpcError) as error:
                if not self._is_session_lost(error):
                    raise
                # The server refused it unread: the one case in which it is sent again.
                return await (await self._open_now()).client.call(tool, arguments, progress)
        except ConnectionFailed as error:
            raise RpcError(CLOSED, f"Connection closed: {error}") from error

    def _is_session_lost(self, error: ToolwireError) -> bool:
        """Whether an error means the session; then the connection is opened anew."""
        if isinstance(error, SessionLost):
            return True
        named = isinstance(error, RpcError) and error.code == TIMED_OUT
        if self.entry.kind != "http" or not named or "session" not in str(error).lower():
            return False
        if self._ready is not None and self._ready.done() and not self._ready.exception():
            self._ready.result().end("the server does not know the session any more")
        return True

    async def _open_now(self) -> "_Open":
        """The connection that works now, not one whose end was not noticed yet."""
        while True:
            ready = self._ready
            if ready is not None and ready.done() and not ready.exception():
                opened = ready.result()
            else:
                opened = await self._opened(None)
            if not opened.peer.is_closed:
                return opened
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Ends it with everything below it; calls that wait for it are answered."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self.state is not State.FAILED:
            self.state = State.STOPPED
        self._refuse("Connection closed")

    async def _own(self) -> None:
        """Opens the connection again and again, until it fails too often in a row."""
        failures = 0
        while True:
            self.state = State.STARTING
            opened = _Open(self._host, self.entry)
            try:
                await self._open(opened)
            except (ToolwireError, OSError, TimeoutError) as error:
                failures += 1
                self.last_words = opened.last_words
                self.error = str(error) or type(error).__name__
                self.troubled.set()
                if isinstance(error, NeedsLogin | CannotStart) or failures >= self.tries:
                    return self._give_up(error)
            else:
                failures = 0 if await self._live(opened) else failures + 1
                if failures >= self.tries:
                    return self._give_up(None)
            await self._sleep(_WAITS[min(max(failures - 1, 0), len(_WAITS) - 1)])

    async def _open(self, opened: "_Open") -> None:
        try:
            async with asyncio.timeout(self.entry.startup_timeout):
                await self._greet(opened)
                self.lists = await opened.client.lists()
        except TimeoutError:
            await asyncio.shield(opened.aclose())
            limit = self.entry.startup_timeout
            raise ToolwireError(f"it did not answer within {limit:g} seconds") from None
        except BaseException:
            await asyncio.shield(opened.aclose())
            raise

    async def _live(self, opened: "_Open") -> bool:
        """Waits for the end of a connection; True if it was of any use."""
        self.state, self.error = State.READY, ""
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(opened)
        loop = asyncio.get_running_loop()
        begun, answers = loop.time(), opened.answers
        listening = asyncio.ensure_future(opened.client.listen())
        try:
            self.error = await opened.closed
            self.state = State.STARTING
        finally:
            self._ready = loop.create_future()
            self._ready.add_done_callback(_observed)
            listening.cancel()
            await asyncio.shield(opened.aclose())
            self.last_words = opened.last_words
        return opened.answers > answers or loop.time() - begun >= _LONG_LIFE

    def _give_up(self, error: BaseException | None) -> None:
        self.state = State.NEEDS_LOGIN if isinstance(error, NeedsLogin) else State.FAILED
        self._task = None
        words = error.words if isinstance(error, RpcError) else self.error
        self._refuse(words or "Not connected")

    def _refuse(self, why: str) -> None:
        """Answers those who wait for the server."""
        ready, self._ready = self._ready, None
        if ready is not None and not ready.done():
            ready.set_exception(RpcError(CLOSED, why))

    async def _greet(self, opened: _Open) -> None:
        """Connects in the era that the server speaks."""
        limits = TimeLimits(silence=self.entry.startup_timeout, total=self.entry.startup_timeout)
        client, wanted = opened.client, self.entry.protocol
        # Of a server that was updated since, the other era is found at the next attempt.
        known, self.spoken = self.spoken if wanted == "auto" else wanted, ""
        match self.entry.kind:
            case "stdio":
                opened.channel = self._reach.stdio(self.entry, opened)
                await _greet_stdio(client, wanted, known, limits)
            case "sse":
                await self._greet_sse(opened, limits)
            case "http":
                await self._greet_http(opened, known, limits)
        self.spoken = client.greeting.protocol

    async def _greet_http(self, opened: _Open, known: str, limits: TimeLimits) -> None:
        client, wanted = opened.client, self.entry.protocol
        channel = self._reach.http(self.entry, opened)
        opened.channel = channel
        try:
            await _greet_http(client, wanted, known, limits)
        except HttpRefused as refused:
            if refused.status not in (404, 405) or wanted in MODERN:
                raise
            await self._greet_sse(opened, limits)
            return
        channel.resumable = not client.modern
        if not client.modern:
            channel.listen()

    async def _greet_sse(self, opened: _Open, limits: TimeLimits) -> None:
        opened.channel = self._reach.sse(self.entry, opened)
        await opened.client.greet_legacy(LEGACY[0], limits)


def _observed(future: "asyncio.Future[_Open]") -> None:
    """A failure that is waited for by none is no error of the program."""
    if not future.cancelled():
        future.exception()


async def _greet_stdio(client: ServerClient, wanted: str, known: str, limits: TimeLimits) -> None:
    """`initialize` first: the probe of the modern era hangs or kills older servers."""
    if known in MODERN:
        if not await client.greet_modern(known, limits):
            raise RpcError(CLOSED, f"the server does not speak {known}")
        return
    try:
        await client.greet_legacy(wanted if wanted in LEGACY else LEGACY[-1], limits)
    except RpcError as error:
        if isinstance(error, ConnectionLost) or wanted in LEGACY:
            raise
        if not await client.greet_modern(MODERN[-1], limits):
            raise error from None


async def _greet_http(client: ServerClient, wanted: str, known: str, limits: TimeLimits) -> None:
    """`server/discover` first; anything but a modern answer is a legacy server."""
    if known not in LEGACY:
        try:
            if await client.greet_modern(
                MODERN[-1], limits if wanted in MODERN else _probe(limits)
            ):
                return
        except RpcError as error:
            if wanted in MODERN or isinstance(error, ConnectionLost):
                raise
        except HttpRefused as refused:
            if wanted in MODERN or not 400 <= refused.status < 500 or refused.status == 401:
                raise
    await client.greet_legacy(wanted if wanted in LEGACY else LEGACY[-1], limits)


def _probe(limits: TimeLimits) -> TimeLimits:
    """Leaves time for the handshake if the server never answers the question for its era."""
    seconds = min(_PROBE_SECONDS, limits.total / 2)
    return TimeLimits(silence=seconds, total=seconds)
