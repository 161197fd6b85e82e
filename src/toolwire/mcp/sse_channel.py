"""HTTP+SSE, the transport of 2024-11-05."""

import asyncio
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from toolwire.client.http.exchange import Transport
from toolwire.errors import ToolwireError
from toolwire.mcp.http_channel import (
    EVENTS,
    Failed,
    HttpChannel,
    HttpRefused,
    Login,
    Receive,
    content_type,
)
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import Id, RpcMessage, RpcRequest
from toolwire.wire.sse import Frame, SseDecoder


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
        self._stream = HttpChannel(
            url, transport, login, lambda message: {}, receive, failed, closed
        )
        self._receive = receive
        self._failed = failed
        self._closed = closed
        self._post: asyncio.Future[HttpChannel] = asyncio.get_running_loop().create_future()
        self._running: set[asyncio.Task[None]] = set()
        self._reading = asyncio.ensure_future(self._read())

    async def send(self, message: RpcMessage) -> None:
        """Posts a message to the address that the server gave; its answer comes on the stream."""
        if isinstance(message, RpcRequest):
            task = asyncio.ensure_future(self._asked(message))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        else:
            await (await asyncio.shield(self._post)).post(message)

    async def _asked(self, request: RpcRequest) -> None:
        try:
            await (await asyncio.shield(self._post)).post(request)
        except Exception as error:
            self._failed(request.id, error)

    async def cancel(self, request: Id) -> bool:
        """A notification has to cancel it."""
        del request
        return False

    async def aclose(self) -> None:
        """Closes the stream, which ends the session."""
        tasks = [self._reading, *self._running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._post.cancel()

    async def _read(self) -> None:
        try:
            async with self._stream.reopen("") as response:
                if content_type(response) != EVENTS:
                    kind = content_type(response) or "unknown"
                    raise HttpRefused(response.status, f"a body of type {kind}".encode(), {})
                decoder = SseDecoder()
                async for chunk in response.chunks:
                    for frame in decoder.feed(chunk):
                        self._take(frame)
            error = ToolwireError("Connection closed")
        except ToolwireError as failed:
            error = failed
        if not self._post.done():
            self._post.set_exception(error)
            self._post.exception()
        self._closed(str(error))

    def _take(self, frame: Frame) -> None:
        if frame.event == "endpoint":
            if not self._post.done():
                self._post.set_result(self._stream.at(self._address(frame)))
            return
        for message in jsonrpc.read_body(frame.data):
            self._receive(message)

    def _address(self, frame: Frame) -> str:
        address = urljoin(self._stream.url, frame.data.decode("utf-8", "replace").strip())
        if urlsplit(address)[:2] != urlsplit(self._stream.url)[:2]:
            raise ToolwireError("the server names an address of another origin to post to")
        return address
