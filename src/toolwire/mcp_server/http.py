"""Streamable HTTP: the address /mcp, its guards, and both eras of the protocol behind it."""

import asyncio
import hmac
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toolwire.client.redact import Secret
from toolwire.http_server.exchange import Answering, Asked, ClientGone
from toolwire.mcp.client import LEGACY, MODERN
from toolwire.mcp.lists import members
from toolwire.mcp.peer import RpcError
from toolwire.mcp_server.exchange import ServedRequest
from toolwire.mcp_server.protocol import (
    HEADER_MISMATCH,
    VERSION,
    check_marked,
    modern_caller,
    status_of,
    unsupported,
)
from toolwire.mcp_server.server import McpServer
from toolwire.mcp_server.sessions import HttpSession
from toolwire.mcp_server.streams import EVENTS, JSON, PING_SECONDS, EventStream, place_of
from toolwire.request import JsonObject
from toolwire.wire import jsonrpc
from toolwire.wire.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Id,
    RpcFailure,
    RpcMessage,
    RpcNotification,
    RpcRequest,
    RpcResult,
)

PATH = "/mcp"
_BATCHES = "2025-03-26"
"""The one revision with several messages in a body."""
_ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id")
_METHODS = "POST, GET, DELETE, OPTIONS"
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_named = re.compile(r"(\[[^\]]*\]|[^:]*)(?::[0-9]*)?").fullmatch
_origin = re.compile(r"https?://([^/]+)").fullmatch


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """Who may talk to the server."""

    token: Secret | None = None
    """None lets every client in."""
    hosts: tuple[str, ...] = _LOOPBACK
    """Names that a Host and an Origin may have; empty for any Host, and its own pages."""

    def refusal(self, asked: Asked) -> tuple[int, str] | None:
        """The status and the reason; None if the client may go on."""
        host = _name(asked.head.host)
        if self.hosts and host not in self.hosts:
            return 403, "the Host is not this server"
        if asked.has("origin"):
            origin = _origin(asked.field("origin"))
            allowed = self.hosts or (host, *_LOOPBACK)
            if origin is None or _name(origin[1]) not in allowed:
                return 403, "requests of this Origin are not allowed"
        if asked.method != "OPTIONS" and not self._bears(asked.field("authorization")):
            return 401, "the token is missing or wrong; send it as: Authorization: Bearer TOKEN"
        return None

    def _bears(self, given: str) -> bool:
        if self.token is None:
            return True
        scheme, _, shown = given.partition(" ")
        right = hmac.compare_digest(shown.strip().encode(), self.token.reveal().encode())
        return right and scheme.lower() == "bearer"


def _name(host: str) -> str:
    """The name in `name:port`, in lower case; empty if it is not of that form."""
    found = _named(host)
    return found[1].lower() if found is not None else ""


class McpEndpoint:
    """Answers every HTTP request to an MCP server."""

    def __init__(self, server: McpServer, guard: Guard) -> None:
        self._server = server
        self._guard = guard
        self._sessions: dict[str, HttpSession] = {}

    def close(self) -> None:
        """Ends every session."""
        for session in tuple(self._sessions.values()):
            session.close()

    async def handle(self, asked: Asked, answering: Answering) -> None:
        """Answers one request."""
        refusal = self._guard.refusal(asked)
        if refusal is not None:
            return await self._refuse(asked, answering, *refusal)
        if asked.path != PATH:
            return await self._refuse(asked, answering, 404, f"nothing here; the address is {PATH}")
        match asked.method:
            case "POST":
                await self._post(asked, answering)
            case "GET":
                await self._get(asked, answering)
            case "DELETE":
                await self._delete(asked, answering)
            case "OPTIONS":
                await answering.whole(204, _cors(asked))
            case _:
                await self._refuse(asked, answering, 405, "use POST, GET or DELETE")

    async def _refuse(
        self, asked: Asked, answering: Answering, status: int, words: str, number: Id | None = None
    ) -> None:
        more = {401: (("www-authenticate", "Bearer"),), 405: (("allow", _METHODS),)}
        failure = RpcFailure(number, -32000 if status != 400 else INVALID_REQUEST, words)
        fields = (*JSON, *more.get(status, ()), *_cors(asked))
        await answering.whole(status, fields, jsonrpc.write(failure))

    async def _post(self, asked: Asked, answering: Answering) -> None:
        if asked.field("content-type").partition(";")[0].strip().lower() != "application/json":
            return await self._refuse(asked, answering, 415, "send application/json")
        if not (_accepts(asked, "application/json") or _accepts(asked, "text/event-stream")):
            words = "accept application/json and text/event-stream"
            return await self._refuse(asked, answering, 406, words)
        try:
            value = msgspec.json.decode(asked.body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            body = jsonrpc.write(RpcFailure(None, PARSE_ERROR, "the body is not JSON"))
            return await answering.whole(400, (*JSON, *_cors(asked)), body)
        messages = jsonrpc.read(asked.body)
        if not messages or len(messages) != len(_entries(value)) or not _well_formed(value):
            words = "the body is not a JSON-RPC message"
            return await self._refuse(asked, answering, 400, words, _id(value))
        if _is_modern(asked, value):
            return await self._modern(asked, answering, messages)
        await self._legacy(asked, answering, messages, batch=isinstance(value, list))

    async def _modern(self, asked: Asked, answering: Answering, messages: list[RpcMessage]) -> None:
        message = messages[0]
        if len(messages) > 1 or not isinstance(message, RpcRequest | RpcNotification):
            words = "the body is not one request or notification"
            return await self._refuse(asked, answering, 400, words)
        version = asked.field("mcp-protocol-version")
        if isinstance(message, RpcNotification):
            if version not in MODERN:
                return await self._fail(asked, answering, None, unsupported(version))
            # A stateless client cancels by closing the stream; there is nothing to notify.
            return await answering.whole(202, _cors(asked))
        try:
            fields = _single(asked)
            caller = modern_caller(message, fields)
            if message.method == "tools/call":
                tool = self._server.catalogue.tools.get(str(message.params.get("name")))
                if tool is not None:
                    check_marked(tool.parameters, message.params.get("arguments"), fields)
            stream = EventStream()
            exchange = ServedRequest(caller, message, _OneWay(stream))
        except RpcError as error:
            return await self._fail(asked, answering, message.id, error)
        work = asyncio.ensure_future(_put_answer(self._server, message, exchange, stream))
        try:
            await self._sent(asked, answering, stream)
        finally:
            work.cancel()
            await asyncio.wait({work})

    async def _fail(
        self, asked: Asked, answering: Answering, number: Id | None, error: RpcError
    ) -> None:
        failure = RpcFailure(number, error.code, error.words, error.data)
        fields = (*JSON, *_cors(asked))
        await answering.whole(status_of(error.code), fields, jsonrpc.write(failure))

    async def _sent(self, asked: Asked, answering: Answering, stream: EventStream) -> None:
        """One JSON body if the answer is all there is, else events."""
        if _accepts(asked, "text/event-stream"):
            await stream.begun(answering, PING_SECONDS)
            only = stream.only
        else:
            only = await stream.ended(answering)
        if answering.left:
            raise ClientGone
        if only is not None:
            status = status_of(only.code) if isinstance(only, RpcFailure) else 200
            return await answering.whole(status, (*JSON, *_cors(asked)), jsonrpc.write(only))
        await answering.begin(200, (*EVENTS, *_cors(asked)))
        await stream.pour(answering)
        await answering.end()

    async def _legacy(
        self, asked: Asked, answering: Answering, messages: list[RpcMessage], *, batch: bool
    ) -> None:
        first = messages[0]
        if not batch and isinstance(first, RpcRequest) and first.method == "initialize":
            return await self._initialize(asked, answering, first)
        session = await self._session(asked, answering)
        if session is None:
            return
        if batch and session.version != _BATCHES:
            words = "the body must be one message"
            return await self._refuse(asked, answering, 400, words)
        requests = [each for each in messages if isinstance(each, RpcRequest)]
        if not requests:
            session.receive(messages, primed=False)
            return await answering.whole(202, _cors(asked))
        await self._requested(asked, answering, session, messages)

    async def _requested(
        self,
        asked: Asked,
        answering: Answering,
        session: HttpSession,
        messages: list[RpcMessage],
    ) -> None:
        events = _accepts(asked, "text/event-stream")
        calls = any(
            isinstance(each, RpcRequest) and each.method == "tools/call" for each in messages
        )
        stream = session.receive(messages, primed=events and calls and session.primes)
        try:
            if events:
                await stream.begun(answering, PING_SECONDS)
                only = stream.only
            else:
                only = await stream.ended(answering)
        finally:
            if answering.left:
                session.detach(stream)
        if answering.left:
            raise ClientGone
        if only is not None:
            return await answering.whole(200, (*JSON, *_cors(asked)), jsonrpc.write(only))
        await answering.begin(200, (*EVENTS, *_cors(asked)))
        await session.pour(stream, answering)
        await answering.end()

    async def _initialize(self, asked: Asked, answering: Answering, request: RpcRequest) -> None:
        if len(self._sessions) >= self._server.limits.sessions:
            oldest = next(iter(self._sessions.values()))
            if oldest.connection.peer.serving:
                return await self._refuse(asked, answering, 503, "too many sessions", request.id)
            oldest.close()
        session = HttpSession(self._server, self._forget)
        stream = session.receive([request], primed=False)
        await stream.begun(answering, PING_SECONDS)
        self._sessions[session.id] = session
        fields = (*JSON, ("mcp-session-id", session.id), *_cors(asked))
        body = jsonrpc.write(stream.only) if stream.only is not None else b""
        await answering.whole(200, fields, body)

    def _forget(self, session: HttpSession) -> None:
        self._sessions.pop(session.id, None)

    async def _session(self, asked: Asked, answering: Answering) -> HttpSession | None:
        """The session that a request names; without one it is answered."""
        version = asked.field("mcp-protocol-version")
        if version and version not in LEGACY:
            words = f"the protocol version {version[:40]} is not spoken here"
            await self._refuse(asked, answering, 400, words)
            return None
        name = asked.field("mcp-session-id")
        session = self._sessions.get(name)
        if session is None:
            status, words = (404, "no such session") if name else (400, "Mcp-Session-Id is missing")
            await self._refuse(asked, answering, status, words)
            return None
        # Moved to the end: the first session is the one unused for longest.
        self._sessions[name] = self._sessions.pop(name)
        session.touch()
        return session

    async def _get(self, asked: Asked, answering: Answering) -> None:
        if asked.field("mcp-protocol-version") in MODERN:
            return await self._refuse(asked, answering, 405, "use POST")
        if not _accepts(asked, "text/event-stream"):
            return await self._refuse(asked, answering, 406, "accept text/event-stream")
        session = await self._session(asked, answering)
        if session is None:
            return
        place = place_of(asked.field("last-event-id"))
        stream = session.general if place is None else session.stream(place[0])
        if stream is None:
            return await self._refuse(asked, answering, 404, "that stream is over")
        if stream is session.general and stream.attached and place is None:
            return await self._refuse(asked, answering, 409, "the stream is already read")
        await answering.begin(200, (*EVENTS, *_cors(asked)))
        await session.pour(stream, answering, place[1] if place is not None else 0)
        await answering.end()

    async def _delete(self, asked: Asked, answering: Answering) -> None:
        session = await self._session(asked, answering)
        if session is not None:
            session.close()
            await answering.whole(204, _cors(asked))


class _OneWay:
    """The way back to a stateless client: notifications only."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def notify(self, method: str, params: JsonObject) -> None:
        self._stream.put(RpcNotification(method, params))

    async def request(self, method: str, params: JsonObject) -> Any:
        raise RpcError(INVALID_REQUEST, "a stateless client answers no requests")


async def _put_answer(
    server: McpServer, request: RpcRequest, exchange: ServedRequest, stream: EventStream
) -> None:
    try:
        stream.put(RpcResult(request.id, await server.answer(request, exchange)))
    except RpcError as error:
        stream.put(RpcFailure(request.id, error.code, error.words, error.data))
    finally:
        stream.finish()


def _is_modern(asked: Asked, value: Any) -> bool:
    version = asked.field("mcp-protocol-version")
    if version in LEGACY:
        return False
    return bool(version) or VERSION in members(members(members(value).get("params")).get("_meta"))


def _single(asked: Asked) -> Mapping[str, str]:
    """The headers by name; one that decides must not be there twice."""
    found: dict[str, str] = {}
    for name, value in asked.head.fields:
        if name in found and (name in _ROUTING or name.startswith("mcp-param-")):
            raise RpcError(HEADER_MISMATCH, f"the header {name} is there twice")
        found[name] = value
    return found


def _accepts(asked: Asked, kind: str) -> bool:
    listed = asked.field("accept") or "*/*"
    kinds = [each.partition(";")[0].strip().lower() for each in listed.split(",")]
    return any(each in (kind, "*/*", f"{kind.partition('/')[0]}/*") for each in kinds)


def _cors(asked: Asked) -> tuple[tuple[str, str], ...]:
    """What a page of an allowed Origin needs."""
    if not asked.has("origin"):
        return ()
    return (
        ("access-control-allow-origin", asked.field("origin")),
        ("access-control-allow-methods", _METHODS),
        ("access-control-allow-headers", asked.field("access-control-request-headers") or "*"),
        ("access-control-expose-headers", "mcp-session-id, www-authenticate"),
        ("vary", "Origin"),
    )


def _well_formed(value: Any) -> bool:
    """Whether every id is one that an answer can repeat."""
    for each in _entries(value):
        number = members(each).get("id", 0)
        if isinstance(number, bool) or not isinstance(number, str | int):
            return False
    return True


def _entries(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else [value]


def _id(value: Any) -> Id | None:
    number = members(value).get("id")
    return number if isinstance(number, str | int) and not isinstance(number, bool) else None
