"""One client over a lasting connection: its handshake, its requests, and questions to it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from toolwire.mcp.lists import members
from toolwire.mcp.peer import CLOSED, Channel, Peer, RpcError, TimeLimits, answered
from toolwire.mcp_server.exchange import ServedRequest
from toolwire.mcp_server.protocol import LEVELS, Caller, is_modern, legacy_caller, modern_caller
from toolwire.mcp_server.server import McpServer, change_notice
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    Id,
    RpcFailure,
    RpcMessage,
    RpcRequest,
)

_QUESTION = TimeLimits(silence=600.0, total=600.0)


class ClientConnection:
    """Takes a client's messages, and answers through the channel."""

    def __init__(
        self,
        server: McpServer,
        channel: Channel,
        *,
        stateless: bool,
        finished: Callable[[Id], None] = lambda number: None,
    ) -> None:
        self._server = server
        self._channel = channel
        self._stateless = stateless
        """Whether requests that carry their own version are answered too."""
        self._watched: set[str] = set()
        self._sending: set[asyncio.Task[None]] = set()
        self._leave: Callable[[], None] = lambda: None
        self.caller: Caller | None = None
        """The client, once it has made the handshake."""
        self.peer = Peer(channel, self._serve, self._noticed, finished)

    def receive(self, message: RpcMessage) -> None:
        """Takes one message; a request beyond the limits is answered with an error."""
        refusal = self._refusal(message) if isinstance(message, RpcRequest) else None
        if refusal is None:
            self.peer.receive(message)
        else:
            self.soon(self._channel.send(refusal))

    def _refusal(self, request: RpcRequest) -> RpcFailure | None:
        open_requests = self.peer.serving
        if request.id in open_requests:
            return RpcFailure(request.id, INVALID_REQUEST, "a request of this id is still open")
        if len(open_requests) >= self._server.limits.requests:
            return RpcFailure(request.id, CLOSED, "too many requests at once")
        return None

    def soon(self, sending: Coroutine[Any, Any, None]) -> None:
        """Sends in the background."""
        task = asyncio.ensure_future(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def close(self) -> None:
        """Cancels the work on every request."""
        self._leave()
        self.peer.close()

    async def notify(self, method: str, params: JsonObject) -> None:
        """Sends a notification."""
        await self.peer.notify(method, params)

    async def request(self, method: str, params: JsonObject) -> Any:
        """The client's answer to a request of ours."""
        return await self.peer.request(method, params, _QUESTION)

    async def _serve(self, method: str, params: JsonObject) -> JsonObject:
        request = answered.get()
        if self._stateless and is_modern(request):
            exchange = ServedRequest(modern_caller(request), request, self)
            return await self._server.answer(request, exchange)
        match method:
            case "initialize":
                return self._greeted(params)
            case "ping":
                return {}
            case _ if self.caller is None:
                raise RpcError(INVALID_REQUEST, "initialize comes first")
            case "logging/setLevel" if self._offers("logging"):
                return self._set_level(params, self.caller)
            case "resources/subscribe" | "resources/unsubscribe" if self._offers("resources"):
                return self._watch(method, params)
            case _:
                exchange = ServedRequest(self.caller, request, self)
                return await self._server.answer(request, exchange)

    def _offers(self, capability: str) -> bool:
        return capability in self._server.catalogue.capabilities

    def _greeted(self, params: JsonObject) -> JsonObject:
        self.caller = legacy_caller(params)
        self._leave()
        self._leave = self._server.catalogue.listen(self._changed)
        return self._server.greeting(self.caller)

    def _set_level(self, params: JsonObject, caller: Caller) -> JsonObject:
        level = params.get("level")
        if level not in LEVELS:
            raise RpcError(INVALID_PARAMS, f"level is not one of {', '.join(LEVELS)}")
        self.caller = msgspec.structs.replace(caller, level=str(level))
        return {}

    def _watch(self, method: str, params: JsonObject) -> JsonObject:
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "uri is not a string")
        if method == "resources/subscribe":
            self._watched.add(uri)
        else:
            self._watched.discard(uri)
        return {}

    def _changed(self, what: str, uri: str) -> None:
        if what == "resource" and uri not in self._watched:
            return
        declared = members(self._server.catalogue.capabilities.get(what)).get("listChanged")
        if what == "resource" or declared:
            self.soon(self.notify(*change_notice(what, uri)))

    def _noticed(self, method: str, params: JsonObject) -> None:
        """Notifications of clients change nothing here: roots are asked for when needed."""
        del method, params
