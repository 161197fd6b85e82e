"""The HTTP transports: streamable HTTP of both eras, and the older HTTP+SSE."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from toolwire.client.http.exchange import Incoming, Outgoing, Transport
from toolwire.errors import ConnectionFailed, ToolwireError
from toolwire.mcp.peer import CLOSED
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import Id, RpcFailure, RpcMessage, RpcRequest, RpcResult
from toolwire.wire.sse import Frame, SseDecoder

_JSON = "application/json"
_EVENTS = "text/event-stream"
_LONGEST_ERROR = 64 * 1024
_LONGEST_MARK = 4096
_COME_BACK = 5
"""Times that an interrupted stream is continued without a new event."""


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
    ) -> None:
        self.url = url
        self._failed = failed
        self._transport = transport
        self._login = login
        self._headers = headers
        self._receive = receive
        self.session = ""
        """The session id of the legacy era."""
        self.resumable = True
        """Whether streams may be continued; the modern era has none."""
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None

    async def send(self, message: RpcMessage) -> None:
        """Posts a message; a request is read in a task of its own."""
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
        """Closes the stream of a request, which ends it in the modern era."""
        task = self._running.get(request)
        if task is not None and not self.resumable:
            task.cancel()
            return True
        return False

    def listen(self) -> None:
        """Opens the stream of messages that answer no request; a server may have none."""
        self._listening = asyncio.ensure_future(self._listen())

    def at(self, url: str) -> "HttpChannel":
        """A channel with the same credentials to another address of the server."""
        return HttpChannel(
            url, self._transport, self._login, self._headers, self._receive, self._failed
        )

    async def post(self, message: RpcMessage) -> None:
        """Posts a message whose answer comes another way."""
        async with self._open("POST", jsonrpc.write(message), message):
            return

    async def aclose(self) -> None:
        """Ends every stream, and the session if there is one."""
        tasks = [*self._running.values(), *([self._listening] if self._listening else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.session:
            try:
                async with asyncio.timeout(1), self._open("DELETE", b"", None):
                    pass
            except (ToolwireError, TimeoutError):
                return

    async def _post(self, message: RpcMessage) -> None:
        body = jsonrpc.write(message)
        for attempt in (1, 2):
            try:
                async with self._open("POST", body, message) as response:
                    await self._read(response, message)
                    return
            except HttpRefused as refused:
                again = refused.status in (401, 403) and attempt == 1
                if again and await self._login.challenged(refused):
                    continue
                if self._answered(refused, message):
                    return
                raise

    def _answered(self, refused: HttpRefused, message: RpcMessage) -> bool:
        """Whether the body of an HTTP error is the JSON-RPC answer to a request."""
        if not isinstance(message, RpcRequest):
            return False
        for found in jsonrpc.read(refused.body):
            if isinstance(found, RpcFailure) and found.id in (None, message.id):
                self._receive(RpcFailure(message.id, found.code, found.message, found.data))
                return True
        return False

    async def _read(self, response: Incoming, message: RpcMessage) -> None:
        self.session = response.headers.get("mcp-session-id", self.session)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _EVENTS:
            wanted = message.id if isinstance(message, RpcRequest) else None
            await _Stream(self, wanted).read(response)
            return
        body = b"".join([chunk async for chunk in response.chunks])
        found = jsonrpc.read(body)
        for each in found:
            self._receive(each)
        if isinstance(message, RpcRequest) and not found:
            why = f"Invalid answer of type {kind or 'unknown'}"
            self._receive(RpcFailure(message.id, jsonrpc.PARSE_ERROR, why))

    async def _listen(self) -> None:
        try:
            async with self._open("GET", b"", None) as response:
                await _Stream(self, None).read(response)
        except (HttpRefused, ConnectionFailed):
            return

    def _open(
        self, method: str, body: bytes, message: RpcMessage | None, last_event: str = ""
    ) -> "_Opened":
        return _Opened(self, method, body, message, last_event)

    async def outgoing(
        self, method: str, body: bytes, message: RpcMessage | None, last_event: str
    ) -> Outgoing:
        """The request with all its headers."""
        headers = {
            "accept": f"{_JSON}, {_EVENTS}" if method == "POST" else _EVENTS,
            **({"content-type": _JSON} if body else {}),
            **({"mcp-session-id": self.session} if self.session else {}),
            **({"last-event-id": last_event} if last_event else {}),
            **(self._headers(message) if message is not None else {}),
            **await self._login.headers(),
        }
        return Outgoing(method=method, url=self.url, headers=tuple(headers.items()), body=body)

    @property
    def transport(self) -> Transport:
        """What carries the requests."""
        return self._transport

    def received(self, message: RpcMessage) -> None:
        """Hands on one message."""
        self._receive(message)

    def reopen(self, last_event: str) -> "_Opened":
        """Continues an interrupted stream after an event."""
        return self._open("GET", b"", None, last_event)


class _Opened:
    """A response with a status of success; HttpRefused otherwise."""

    def __init__(
        self,
        channel: HttpChannel,
        method: str,
        body: bytes,
        message: RpcMessage | None,
        last_event: str,
    ) -> None:
        self._channel = channel
        self._given = (method, body, message, last_event)

    async def __aenter__(self) -> Incoming:
        request = await self._channel.outgoing(*self._given)
        self._response = self._channel.transport.open(request)
        response = await self._response.__aenter__()
        if response.status < 400:
            return response
        try:
            body = await _beginning(response.chunks)
        finally:
            await self._response.__aexit__(None, None, None)
        raise HttpRefused(response.status, body, response.headers)

    async def __aexit__(self, *error: object) -> None:
        await self._response.__aexit__(*error)  # pyright: ignore[reportArgumentType]


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    found = b""
    try:
        async for chunk in chunks:
            found += chunk
            if len(found) > _LONGEST_ERROR:
                break
    except ConnectionFailed:
        return found
    return found[:_LONGEST_ERROR]


class _Stream:
    """An event stream that may be interrupted and continued where it ended."""

    def __init__(self, channel: HttpChannel, wanted: Id | None) -> None:
        self._channel = channel
        self._wanted = wanted
        """The request whose answer ends the stream."""
        self._marks = _Marks()
        self._answered = False

    async def read(self, response: Incoming) -> None:
        """Reads to the end, coming back after interruptions where the server allows it."""
        left = _COME_BACK
        while True:
            before = self._marks.last
            try:
                await self._one(response)
            except ConnectionFailed:
                if not self._marks.last:
                    raise
            if self._answered or not (self._marks.last and self._channel.resumable):
                break
            left = _COME_BACK if self._marks.last != before else left - 1
            if not left:
                break
            await asyncio.sleep(self._marks.retry)
            async with self._channel.reopen(self._marks.last) as response:
                await self._one(response)
        if self._wanted is not None and not self._answered:
            self._channel.received(RpcFailure(self._wanted, CLOSED, "Connection closed"))

    async def _one(self, response: Incoming) -> None:
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
        for message in jsonrpc.read(frame.data) if frame.data else ():
            if isinstance(message, RpcResult | RpcFailure) and message.id == self._wanted:
                self._answered = True
            self._channel.received(message)


class SseChannel:
    """The transport of 2024-11-05: one stream from the server, an address to post to."""

    def __init__(
        self,
        url: str,
        transport: Transport,
        login: Login,
        receive: Receive,
        failed: Failed,
        closed: Callable[[str], None],
    ) -> None:
        self._stream = HttpChannel(url, transport, login, lambda message: {}, receive, failed)
        self._receive = receive
        self._closed = closed
        self._post: asyncio.Future[HttpChannel] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.ensure_future(self._read())

    async def send(self, message: RpcMessage) -> None:
        """Posts a message to the address that the server gave; its answer comes on the stream."""
        await (await asyncio.shield(self._post)).post(message)

    async def cancel(self, request: Id) -> bool:
        """A notification has to cancel it."""
        del request
        return False

    async def aclose(self) -> None:
        """Closes the stream, which ends the session."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async with self._stream.reopen("") as response:
                decoder = SseDecoder()
                async for chunk in response.chunks:
                    for frame in decoder.feed(chunk):
                        self._take(frame)
        except ToolwireError as error:
            if not self._post.done():
                self._post.set_exception(error)
            self._closed(str(error))
        else:
            self._closed("Connection closed")

    def _take(self, frame: Frame) -> None:
        if frame.event == "endpoint" and not self._post.done():
            address = urljoin(self._stream.url, frame.data.decode("utf-8", "replace").strip())
            if urlsplit(address)[:2] != urlsplit(self._stream.url)[:2]:
                raise HttpRefused(0, b"the server names an address of another origin", {})
            self._post.set_result(self._stream.at(address))
            return
        for message in jsonrpc.read(frame.data):
            self._receive(message)


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
