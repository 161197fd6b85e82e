"""Answers the requests of clients in both eras of the protocol, whatever carries them."""

import asyncio
import hashlib
import hmac
import logging
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from toolwire.errors import ToolwireError
from toolwire.mcp.lists import members
from toolwire.mcp.peer import TIMED_OUT, RpcError, unknown_method
from toolwire.mcp_server.catalogue import Catalogue, OfferedTool
from toolwire.mcp_server.exchange import Round, ServedRequest, input_required
from toolwire.mcp_server.protocol import SERVER, SUBSCRIPTION, SUPPORTED, Caller, texts
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode
from toolwire.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcRequest

_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_CACHED = (*_LISTS, "resources/read", "server/discover")
_ROUNDS = ("tools/call", "prompts/get", "resources/read")
"""Methods whose result may ask for input."""
_MOST_BACKLOG = 1000
_log = logging.getLogger(__name__)


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What clients may take of the server."""

    call_seconds: float = 3600.0
    requests: int = 64
    """Requests of one client that are worked on at once."""
    paused: int = 64
    """Calls that wait for an answer in a client's next request."""
    pause_seconds: float = 600.0
    sessions: int = 64
    session_seconds: float = 1800.0
    """Without a request or an open stream."""
    detached_seconds: float = 120.0
    """For which a request goes on whose client has lost the connection."""


class McpServer:
    """A catalogue behind the protocol's methods."""

    def __init__(self, catalogue: Catalogue, limits: ServerLimits | None = None) -> None:
        self.catalogue = catalogue
        self.limits = limits or ServerLimits()
        self._key = secrets.token_bytes(32)
        self._rounds: dict[str, tuple[Round, asyncio.TimerHandle]] = {}

    def greeting(self, caller: Caller) -> JsonObject:
        """The result of a handshake."""
        found: JsonObject = {
            "protocolVersion": caller.version,
            "capabilities": self.catalogue.capabilities,
            "serverInfo": self.catalogue.info,
        }
        return found | self._instructions()

    def _instructions(self) -> JsonObject:
        words = self.catalogue.instructions
        return {"instructions": words} if words else {}

    async def aclose(self) -> None:
        """Ends what waits for clients."""
        rounds, self._rounds = self._rounds, {}
        for waiting, timer in rounds.values():
            timer.cancel()
            await waiting.cancel()

    async def answer(self, request: RpcRequest, exchange: ServedRequest) -> JsonObject:
        """The result; RpcError becomes the client's error, a failure of ours says nothing more."""
        try:
            async with asyncio.timeout(self._seconds(request)):
                if exchange.caller.modern:
                    return self._stamped(request.method, await self._modern(request, exchange))
                return await self._verb(request, exchange)
        except (RpcError, asyncio.CancelledError):
            raise
        except TimeoutError:
            limit = self.limits.call_seconds
            raise RpcError(TIMED_OUT, f"it took more than {limit:g} seconds") from None
        except ToolwireError as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from error
        except Exception as error:
            _log.exception("%s failed", request.method)
            raise RpcError(INTERNAL_ERROR, "Internal error") from error

    def _seconds(self, request: RpcRequest) -> float | None:
        return None if request.method == "subscriptions/listen" else self.limits.call_seconds

    def _stamped(self, method: str, result: JsonObject) -> JsonObject:
        """The result with what every modern one carries."""
        meta = {SERVER: self.catalogue.info, **members(result.get("_meta"))}
        hints = self.catalogue.freshness if method in _CACHED else {}
        return {"resultType": "complete", **hints, **result, "_meta": meta}

    async def _modern(self, request: RpcRequest, exchange: ServedRequest) -> JsonObject:
        match request.method:
            case "server/discover":
                capabilities = self.catalogue.capabilities
                found: JsonObject = {"supportedVersions": list(SUPPORTED)}
                return found | {"capabilities": capabilities} | self._instructions()
            case "subscriptions/listen":
                return await self._listened(request, exchange)
            case method if method in _ROUNDS:
                return await self._round(request, exchange)
            case _:
                return await self._verb(request, exchange)

    async def _verb(self, request: RpcRequest, exchange: ServedRequest) -> JsonObject:
        catalogue, params = self.catalogue, request.params
        capabilities = catalogue.capabilities
        owner = request.method.partition("/")[0]
        if request.method in _LISTS and owner in capabilities:
            return catalogue.listing(request.method, params.get("cursor"))
        match request.method:
            case "tools/call":
                return await self._called(params, exchange)
            case "prompts/get" if "prompts" in capabilities:
                return await self._prompt(params, exchange)
            case "resources/read" if "resources" in capabilities:
                return await self._read(params, exchange)
            case "completion/complete" if "completions" in capabilities:
                return await catalogue.completed(params)
            case _:
                raise unknown_method(request.method)

    async def _called(self, params: JsonObject, exchange: ServedRequest) -> JsonObject:
        tool = self.tool(params)
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments is not an object")
        return await tool.run(members(arguments), exchange)

    def tool(self, params: JsonObject) -> OfferedTool:
        """The tool that a call names."""
        name = params.get("name")
        found = self.catalogue.tools.get(name) if isinstance(name, str) else None
        if found is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {str(name)[:200]}")
        return found

    async def _prompt(self, params: JsonObject, exchange: ServedRequest) -> JsonObject:
        name = params.get("name")
        prompt = self.catalogue.prompts.get(name) if isinstance(name, str) else None
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {str(name)[:200]}")
        arguments = members(params.get("arguments"))
        missing = [
            str(one.get("name"))
            for one in prompt.arguments
            if one.get("required") and one.get("name") not in arguments
        ]
        if missing:
            raise RpcError(INVALID_PARAMS, f"Missing required argument(s): {', '.join(missing)}")
        found = await prompt.get(arguments, exchange)
        return {"description": prompt.description, **found} if "messages" in found else found

    async def _read(self, params: JsonObject, exchange: ServedRequest) -> JsonObject:
        uri = params.get("uri")
        found = self.catalogue.resource(uri) if isinstance(uri, str) else None
        if found is None or not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "Resource not found", {"uri": uri})
        resource, values = found
        return await resource.read(uri, values, exchange)

    async def _listened(self, request: RpcRequest, exchange: ServedRequest) -> JsonObject:
        """Notifies of what the client asked for until it goes, or does not read."""
        wanted = members(request.params.get("notifications"))
        watched = texts(wanted.get("resourceSubscriptions"))
        kinds = [
            kind for kind in ("tools", "prompts", "resources") if wanted.get(f"{kind}ListChanged")
        ]
        honored: JsonObject = {f"{kind}ListChanged": True for kind in kinds}
        if watched:
            honored["resourceSubscriptions"] = watched
        meta: JsonObject = {SUBSCRIPTION: request.id}
        queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue(_MOST_BACKLOG)

        def listener(what: str, uri: str) -> None:
            if (what in kinds or (what == "resource" and uri in watched)) and not queue.full():
                queue.put_nowait((what, uri))

        leave = self.catalogue.listen(listener)
        try:
            params = {"notifications": honored, "_meta": meta}
            await exchange.notify("notifications/subscriptions/acknowledged", params)
            while not queue.full():
                method, params = change_notice(*await queue.get())
                await exchange.notify(method, {**params, "_meta": meta})
        finally:
            leave()
        return {"_meta": meta}

    async def _round(self, request: RpcRequest, exchange: ServedRequest) -> JsonObject:
        """Works on a request that may pause for the client's input, or goes on with one."""
        params = request.params
        subject = {"method": request.method} | {
            key: params.get(key) for key in ("name", "uri", "arguments")
        }
        given = params.get("requestState")
        name = ""
        if given is not None:
            kind, _, text = self._opened(given, subject).partition(":")
            if kind == "round":
                name = text
            else:
                exchange.state = text
        if name:
            return await self._go_on(name, exchange)
        work = self._verb(request, exchange)
        return await self._paused(Round(exchange, work, subject))

    async def _go_on(self, name: str, exchange: ServedRequest) -> JsonObject:
        waiting, timer = self._rounds.pop(name, (None, None))
        if waiting is None or timer is None:
            raise RpcError(INVALID_PARAMS, "the call no longer waits for input; call again")
        timer.cancel()
        waiting.exchange.go_on(exchange)
        waiting.answer(exchange.inputs)
        return await self._paused(waiting)

    async def _paused(self, work: Round) -> JsonObject:
        result = await work.result()
        if result is not None:
            if result.get("resultType") == "input_required" and "requestState" in result:
                state = self._sealed(f"state:{result['requestState']}", work.subject)
                return {**result, "requestState": state}
            return result
        if len(self._rounds) >= self.limits.paused:
            await work.cancel()
            raise RpcError(INTERNAL_ERROR, "too many calls wait for input")
        name = secrets.token_urlsafe(16)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.limits.pause_seconds, self._forget, name)
        self._rounds[name] = (work, timer)
        return input_required(work.questions(), self._sealed(f"round:{name}", work.subject))

    def _forget(self, name: str) -> None:
        waiting, _ = self._rounds.pop(name)
        waiting.task.cancel()

    def _sealed(self, text: str, subject: JsonObject) -> str:
        body = urlsafe_b64encode(text.encode()).decode()
        return f"{body}.{self._seal(body, subject)}"

    def _seal(self, body: str, subject: JsonObject) -> str:
        signed = body.encode() + b"." + encode(subject)
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()

    def _opened(self, state: object, subject: JsonObject) -> str:
        """The text of a state that this server made for this very request."""
        body, _, seal = state.rpartition(".") if isinstance(state, str) else ("", "", "")
        if not hmac.compare_digest(seal.encode(), self._seal(body, subject).encode()):
            raise RpcError(INVALID_PARAMS, "requestState was not made here for this request")
        return urlsafe_b64decode(body).decode()


def change_notice(what: str, uri: str) -> tuple[str, JsonObject]:
    """The notification of a change."""
    if what == "resource":
        return "notifications/resources/updated", {"uri": uri}
    return f"notifications/{what}/list_changed", {}
