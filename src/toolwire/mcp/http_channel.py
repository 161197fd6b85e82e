"""Streamable HTTP, in both eras of the protocol."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from toolwire.client.http.exchange import Incoming, Outgoing, Transport
from toolwire.client.redact import Redactor, secrets_of
from toolwire.errors import ConnectionFailed, ToolwireError
from toolwire.mcp.peer import CLOSED
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import LONGEST_LINE, Id, RpcFailure, RpcMessage, RpcRequest, RpcResult
from toolwire.wire.sse import Frame, SseDecoder

_JSON = "application/json"
EVENTS = "text/event-stream"
_LONGEST_ERROR = 64 * 1024
_ERROR_SECONDS = 2.0
_LONGEST_MARK = 4096
_COME_BACK = 5
"""Times that an interrupted stream is continued although the server cannot be reached."""
_LONGEST_WAIT = 60.0
_SHORTEST_WAIT = 0.1
_MOST_CHALLENGES = 3
_MOST_REDIRECTS = 3
_KEEP_METHOD = (307, 308)


class HttpRefused(ToolwireError):
    """The server answered a message with an HTTP error."""

    kind = "mcp_http"

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        words = body[:200].decode("utf-8", "replace").strip()
        super().__init__(f"the server answered {status}{f': {words}' if words else ''}")
        self.status = status
        self.body = body
        self.headers = headers


class Login(Protocol):
    """Credentials of a connection."""

    async def headers(self) -> Mapping[str, str]:
        """The headers that every request carries."""
        ...

    async def challenged(self, refused: HttpRefused) -> bool:
        """Reacts to 401 or 403; True if the request should be sent again."""
        ...


Receive = Callable[[RpcMessage], None]
Failed = Callable[[Id, Exception], None]
Headers = Callable[[RpcMessage], Mapping[str, str]]


class SessionLost(HttpRefused):
    """The server does not know the session any more; the message was not processed."""


class HttpChannel:
    """One endpoint to which every message is posted; answers come with the response."""

    def __init__(
        self,
        url: str,
        transport: Transport,
        login: Login,
        headers: Headers,
        receive: Receive,
        failed: Failed,
        closed: Callable[[str], None],
    ) -> None:
        self.url = url
        self._failed = failed
        self._transport = transport
        self._login = login
        self._headers = headers
        self._receive = receive
        self._closed = closed
        self.session = ""
        """The session id of the legacy era."""
        self.resumable = True
        """Whether streams may be continued; the modern era has none."""
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None

    async def send(self, message: RpcMessage) -> None:
        """Posts a message; a request is sent and read in a task of its own."""
        if isinstance(message, RpcRequest):
            self._running[message.id] = asyncio.ensure_future(self._asked(message))
        else:
            await self._post(message)

    async def _asked(self, request: RpcRequest) -> None:
        try:
            await self._post(request)
        except Exception as error:
            self._failed(request.id, error)
        finally:
            self._running.pop(request.id, None)

    async def cancel(self, request: Id) -> bool:
        """Closes the stream of a request, which in the modern era also ends it at the server."""
        task = self._running.get(request)
        if task is not None:
            task.cancel()
        return task is not None and not self.resumable

    def listen(self) -> None:
        """Opens the stream of messages that answer no request; a server may have none."""
        self._listening = asyncio.ensure_future(self._listen())

    def at(self, url: str) -> "HttpChannel":
        """A channel with the same credentials to another address of the server."""
        return HttpChannel(
            url,
            self._transport,
            self._login,
            self._headers,
            self._receive,
            self._failed,
            self._closed,
        )

    async def post(self, message: RpcMessage) -> None:
        """Posts a message whose answer comes another way."""
        async with self.open("POST", jsonrpc.write(message), message):
            return

    async def aclose(self) -> None:
        """Ends every stream, and the session if there is one."""
        tasks = [*self._running.values(), *([self._listening] if self._listening else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.session:
            try:
                async with asyncio.timeout(1), self.open("DELETE"):
                    pass
            except (ToolwireError, TimeoutError):
                return

    async def _post(self, message: RpcMessage) -> None:
        try:
            async with self.open("POST", jsonrpc.write(message), message) as response:
                await self._read(response, message)
        except HttpRefused as refused:
            if self._is_lost(refused):
                self.session = ""
                lost = SessionLost(refused.status, refused.body, refused.headers)
                if isinstance(message, RpcRequest):
                    self._failed(message.id, lost)
                self._closed("the server does not know the session any more")
                return
            if not self._answered(refused, message):
                raise

    def _is_lost(self, refused: HttpRefused) -> bool:
        """Whether an HTTP error means the session and not the message."""
        if not self.session:
            return False
        return refused.status == 404 or (
            refused.status == 400 and b"session" in refused.body.lower()
        )

    def _answered(self, refused: HttpRefused, message: RpcMessage) -> bool:
        """Whether the body of an HTTP error is the JSON-RPC answer to a request."""
        if not isinstance(message, RpcRequest):
            return False
        for found in jsonrpc.read_body(refused.body):
            if isinstance(found, RpcFailure) and found.id in (None, message.id):
                self._receive(RpcFailure(message.id, found.code, found.message, found.data))
                return True
        return False

    async def _read(self, response: Incoming, message: RpcMessage) -> None:
        self.session = response.headers.get("mcp-session-id", self.session)
        kind = content_type(response)
        if kind == EVENTS:
            wanted = message.id if isinstance(message, RpcRequest) else None
            await _Stream(self, wanted).read(response)
            return
        found = _messages(await _whole(response.chunks))
        for each in found:
            self._receive(each)
        if isinstance(message, RpcRequest) and not found:
            why = f"Invalid answer of type {kind or 'unknown'}"
            self._receive(RpcFailure(message.id, jsonrpc.PARSE_ERROR, why))

    async def _listen(self) -> None:
        """Reads messages that answer no request, for as long as the server offers a stream."""
        stream = _Stream(self, None)
        wait = 1.0
        while True:
            try:
                async with self.reopen(stream.last) as response:
                    if content_type(response) != EVENTS:
                        return
                    wait = 1.0
                    await stream.one(response)
            except ConnectionFailed:
                wait = min(wait * 2, _LONGEST_WAIT)
            except ToolwireError:
                return
            await asyncio.sleep(max(wait, stream.retry))

    @asynccontextmanager
    async def open(
        self,
        method: str,
        body: bytes = b"",
        message: RpcMessage | None = None,
        last_event: str = "",
    ) -> AsyncGenerator[Incoming]:
        """A response with a status of success; HttpRefused otherwise.

        Refused credentials are renewed, and redirects followed to the same origin alone.
        """
        challenges, redirects = 0, 0
        while True:
            request = await self._outgoing(method, body, message, last_event)
            async with self._transport.open(request) as response:
                if 200 <= response.status < 300:
                    yield response
                    return
                refused = await _refusal(response, request)
            if refused.status in _KEEP_METHOD and redirects < _MOST_REDIRECTS:
                self.url = _same_origin(self.url, refused)
                redirects += 1
            elif refused.status in (401, 403) and challenges < _MOST_CHALLENGES:
                challenges += 1
                if not await self._login.challenged(refused):
                    raise refused
            else:
                raise refused

    def reopen(self, last_event: str) -> AbstractAsyncContextManager[Incoming]:
        """Opens a stream of the server, after an event if one was interrupted."""
        return self.open("GET", last_event=last_event)

    async def _outgoing(
        self, method: str, body: bytes, message: RpcMessage | None, last_event: str
    ) -> Outgoing:
        """The request with all its headers."""
        credentials = await self._login.headers()
        headers = {
            "accept": f"{_JSON}, {EVENTS}" if method == "POST" else EVENTS,
            **({"content-type": _JSON} if body else {}),
            **({"mcp-session-id": self.session} if self.session else {}),
            **({"last-event-id": last_event} if last_event else {}),
            **(self._headers(message) if message is not None else {}),
            **credentials,
        }
        return Outgoing(
            method=method,
            url=self.url,
            headers=tuple(headers.items()),
            body=body,
            # A session id alone may go to a server without encryption; a credential never.
            insecure=not secrets_of(self.url, credentials.items()),
        )

    def received(self, message: RpcMessage) -> None:
        """Hands on one message."""
        self._receive(message)


def content_type(response: Incoming) -> str:
    """The type of a body without its parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _messages(body: bytes) -> list[RpcMessage]:
    """The messages of a body: JSON, or events that do not name their type."""
    if not body.lstrip().startswith((b"data:", b"event:", b"id:", b":")):
        return jsonrpc.read_body(body)
    decoder = SseDecoder()
    frames = [*decoder.feed(body), *decoder.close()]
    return [message for frame in frames for message in jsonrpc.read_body(frame.data)]


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    found = bytearray()
    async for chunk in chunks:
        found += chunk
        if len(found) > LONGEST_LINE:
            raise ToolwireError(f"an answer of more than {LONGEST_LINE // (1024 * 1024)} MB")
    return bytes(found)


async def _refusal(response: Incoming, request: Outgoing) -> HttpRefused:
    """The error of a response, without the credentials that its body may repeat."""
    found = b""
    try:
        async with asyncio.timeout(_ERROR_SECONDS):
            async for chunk in response.chunks:
                found += chunk
                if len(found) > _LONGEST_ERROR:
                    break
    except (ConnectionFailed, TimeoutError):
        pass
    body = Redactor(secrets_of(request.url, request.headers)).body(found[:_LONGEST_ERROR])
    return HttpRefused(response.status, body, response.headers)


def _same_origin(url: str, refused: HttpRefused) -> str:
    target = urljoin(url, refused.headers.get("location", ""))
    if urlsplit(target)[:2] != urlsplit(url)[:2]:
        origin = "{}://{}".format(*urlsplit(target)[:2])
        words = f"a redirect to {origin}, which is not followed; set url to the new address"
        raise HttpRefused(refused.status, words.encode(), refused.headers)
    return target


class _Stream:
    """An event stream that may be interrupted and continued where it ended."""

    def __init__(self, channel: HttpChannel, wanted: Id | None) -> None:
        self._channel = channel
        self._wanted = wanted
        """The request whose answer ends the stream."""
        self._marks = _Marks()
        self._answered = False

    @property
    def last(self) -> str:
        """The last event with an id."""
        return self._marks.last

    @property
    def retry(self) -> float:
        """Seconds before the stream is continued."""
        return max(self._marks.retry, _SHORTEST_WAIT)

    async def read(self, response: Incoming) -> None:
        """Reads until the answer, coming back after interruptions where the server allows it."""
        try:
            await self.one(response)
        except ConnectionFailed:
            if not self._continues:
                raise
        left = _COME_BACK
        while left and self._continues:
            await asyncio.sleep(self.retry)
            try:
                async with self._channel.reopen(self.last) as again:
                    await self.one(again)
                left = _COME_BACK
            except ConnectionFailed:
                left -= 1
            except HttpRefused:
                break
        if self._wanted is not None and not self._answered:
            self._channel.received(RpcFailure(self._wanted, CLOSED, "Connection closed"))

    @property
    def _continues(self) -> bool:
        return bool(self.last) and self._channel.resumable and not self._answered

    async def one(self, response: Incoming) -> None:
        """Reads one response to its end, or to the answer."""
        decoder = SseDecoder()
        async for chunk in response.chunks:
            self._marks.feed(chunk)
            for frame in decoder.feed(chunk):
                self._take(frame)
            if self._answered:
                return
        for frame in decoder.close():
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        for message in jsonrpc.read_body(frame.data) if frame.data else ():
            if isinstance(message, RpcResult | RpcFailure) and str(message.id) == str(self._wanted):
                self._answered = True
            self._channel.received(message)


class _Marks:
    """The `id` and `retry` lines of an event stream, which say where and when it continues."""

    def __init__(self) -> None:
        self.last = ""
        self.retry = 1.0
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Notes the lines of this chunk; of a long unfinished line only the beginning is kept."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            name, _, value = (self._rest + line[:_LONGEST_MARK]).strip().partition(b":")
            self._rest = b""
            if name == b"id":
                self.last = value.decode("utf-8", "replace").strip()
            elif name == b"retry" and value.strip().isdigit():
                self.retry = min(int(value) / 1000, 60.0)
        self._rest = (self._rest + rest)[:_LONGEST_MARK]
