"""The verbs of a connected server, in either era of the protocol."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from toolwire import __version__
from toolwire.errors import ToolwireError
from toolwire.mcp import headers
from toolwire.mcp.lists import (
    Greeting,
    ListedTool,
    Page,
    ServerPrompt,
    ServerResource,
    members,
    read_greeting,
    read_page,
    read_prompts,
    read_resources,
    read_tools,
    text,
)
from toolwire.mcp.peer import Peer, Progress, RpcError, TimeLimits, call_trace
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcMessage, RpcRequest

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)
VERSION_REFUSED = -32022
_META = "io.modelcontextprotocol/"
_MOST_PAGES = 100
_CHANGING = ("tools", "prompts", "resources")
_FOREVER = TimeLimits(silence=float("inf"), total=float("inf"))
_MOST_ROUNDS = 10

Elicit = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers `elicitation/create`: `{"action": …, "content": …}`."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What this side offers to servers."""

    roots: tuple[tuple[str, str], ...] = ()
    """URI and name of each workspace folder."""
    elicit: Elicit | None = None
    changed: Callable[[str], None] = lambda kind: None
    """Called with `tools`, `prompts` or `resources` when a list has changed."""
    logged: Callable[[str], None] = lambda line: None
    noticed: Callable[[str, JsonObject], None] = lambda method, params: None
    """Receives the notifications that the protocol does not have."""

    @property
    def capabilities(self) -> JsonObject:
        """As the protocol declares them."""
        offered: JsonObject = {"roots": {"listChanged": False}}
        if self.elicit is not None:
            offered["elicitation"] = {"form": {}, "url": {}}
        return offered

    async def serve(self, method: str, params: JsonObject) -> Any:
        """The answer to a request of the server."""
        match method:
            case "ping":
                return {}
            case "roots/list":
                return {"roots": [{"uri": uri, "name": name} for uri, name in self.roots]}
            case "elicitation/create" if self.elicit is not None:
                return await self.elicit(params)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")

    def notice(self, method: str, params: JsonObject) -> None:
        """Takes a notification of the server."""
        word = method.removeprefix("notifications/")
        if word.endswith("/list_changed"):
            self.changed(word.partition("/")[0])
        elif word == "message":
            data = params.get("data")
            self.logged(data if isinstance(data, str) else msgspec.json.encode(data).decode())
        elif not method.startswith("notifications/"):
            self.noticed(method, params)


class Lists(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a server offers."""

    tools: tuple[ListedTool, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float | None = None
    """How long they stay fresh, if the server says so."""


class ServerClient:
    """A connected server; `greet_legacy` or `greet_modern` first."""

    def __init__(self, peer: Peer, host: Host, limits: TimeLimits) -> None:
        self._peer = peer
        self._host = host
        self._limits = limits
        self._schemas: dict[str, JsonObject] = {}
        self.modern = False
        self.greeting = Greeting(protocol="")

    @property
    def has(self) -> Callable[[str], bool]:
        """Whether the server declares a capability."""
        return lambda name: self.greeting.capabilities.get(name) is not None

    async def greet_legacy(self, version: str, limits: TimeLimits) -> None:
        """The handshake of the legacy era."""
        result = await self._peer.request(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": self._host.capabilities,
                "clientInfo": _client_info(),
            },
            limits,
        )
        self.modern = False
        self.greeting = read_greeting(result, LEGACY, LEGACY[-1])
        await self._peer.notify("notifications/initialized")

    async def greet_modern(self, version: str, limits: TimeLimits) -> bool:
        """`server/discover`; False if the answer is not that of a modern server."""
        self.modern = True
        self.greeting = Greeting(protocol=version)
        try:
            asked = self._peer.request("server/discover", self._envelope({}), limits)
            result = members(await asked)
        except RpcError:
            self.modern = False
            raise
        offered = result.get("supportedVersions")
        mutual = [each for each in MODERN if each in (offered if isinstance(offered, list) else ())]
        if not mutual:
            self.modern = False
            return False
        info = members(result.get("_meta")).get(f"{_META}serverInfo") or result.get("serverInfo")
        self.greeting = read_greeting(
            {**result, "protocolVersion": mutual[-1], "serverInfo": info}, MODERN, mutual[-1]
        )
        return True

    def headers(self, message: RpcMessage) -> Mapping[str, str]:
        """The protocol's own headers for a message over HTTP."""
        if not isinstance(message, RpcRequest) or not self.modern:
            known = self.greeting.protocol
            return {"mcp-protocol-version": known} if known else {}
        found = headers.of_request(message.method, message.params, self.greeting.protocol)
        schema = self._schemas.get(text(message.params.get("name")))
        if message.method == "tools/call" and schema is not None:
            found |= headers.of_arguments(schema, members(message.params.get("arguments")))
        return found

    async def request(
        self, method: str, params: JsonObject, progress: Progress | None = None
    ) -> JsonObject:
        """A request in this era; input that the server asks for in between is given."""
        result = members(await self._ask(method, params, progress))
        for _ in range(_MOST_ROUNDS):
            if result.get("resultType") != "input_required":
                return result
            again = dict(params)
            asked = members(result.get("inputRequests"))
            if asked:
                again["inputResponses"] = await self._inputs(asked)
            else:
                await asyncio.sleep(0.1)
            if result.get("requestState") is not None:
                again["requestState"] = result["requestState"]
            result = members(await self._ask(method, again, progress))
        raise RpcError(INVALID_PARAMS, "the server asked for input too often")

    async def _ask(self, method: str, params: JsonObject, progress: Progress | None) -> Any:
        return await self._peer.request(method, self._envelope(params), self._limits, progress)

    async def _inputs(self, asked: JsonObject) -> JsonObject:
        """The answers to what the server asks for, each as if it had been a request of its own."""
        found: JsonObject = {}
        for key, value in asked.items():
            wanted = members(value)
            found[key] = await self._host.serve(
                text(wanted.get("method")), members(wanted.get("params"))
            )
        return found

    def _envelope(self, params: JsonObject) -> JsonObject:
        if not self.modern:
            return params
        meta = {
            **members(params.get("_meta")),
            f"{_META}protocolVersion": self.greeting.protocol,
            f"{_META}clientInfo": _client_info(),
            f"{_META}clientCapabilities": self._host.capabilities,
        }
        return {**params, "_meta": meta}

    async def lists(self) -> Lists:
        """Every list that the server declares."""
        tools, prompts, resources = await asyncio.gather(
            self._pages("tools/list", "tools"),
            self._optional("prompts/list", "prompts"),
            self._optional("resources/list", "resources"),
        )
        kept, warnings = read_tools(tools.entries)
        offered_prompts, more = read_prompts(prompts.entries)
        offered_resources, most = read_resources(resources.entries)
        self._schemas = {tool.name: tool.parameters for tool in kept}
        return Lists(
            tools=kept,
            prompts=offered_prompts,
            resources=offered_resources,
            warnings=(*self.greeting.warnings, *warnings, *more, *most),
            seconds=tools.seconds,
        )

    async def _optional(self, method: str, key: str) -> Page:
        if not self.has(key):
            return Page()
        try:
            return await self._pages(method, key)
        except RpcError:
            return Page()

    async def _pages(self, method: str, key: str) -> Page:
        """All pages as one; a server without the method has an empty list."""
        entries: list[Any] = []
        cursor, seconds = "", None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            params: JsonObject = {"cursor": cursor} if cursor else {}
            try:
                page = read_page(await self.request(method, params), key)
            except RpcError as error:
                if error.code == METHOD_NOT_FOUND and not entries:
                    return Page()
                raise
            entries += page.entries
            cursor, seconds = page.cursor, page.seconds
            if not cursor or cursor in seen:
                break
            seen.add(cursor)
        return Page(entries=tuple(entries), seconds=seconds)

    async def listen(self) -> None:
        """Receives changes of lists, which a modern server sends to those who ask alone."""
        wanted = {f"{each}ListChanged": True for each in _CHANGING if self._changes(each)}
        while self.modern and wanted:
            params = self._envelope({"notifications": wanted})
            try:
                await self._peer.request("subscriptions/listen", params, _FOREVER)
            except RpcError:
                return
            except ToolwireError:
                pass
            await asyncio.sleep(1)

    def _changes(self, name: str) -> bool:
        return members(self.greeting.capabilities.get(name)).get("listChanged") is True

    async def call(self, tool: str, arguments: JsonObject, progress: Progress | None) -> JsonObject:
        """The raw result of a tool call."""
        params: JsonObject = {"name": tool, "arguments": arguments}
        trace = call_trace.get()
        if trace is not None:
            params["_meta"] = {"traceparent": trace.parent}
            trace.facts["mcp.protocol.version"] = self.greeting.protocol
        return await self.request("tools/call", params, progress)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt's first message."""
        result = await self.request("prompts/get", {"name": name, "arguments": dict(arguments)})
        messages = result.get("messages")
        listed = cast(list[Any], messages) if isinstance(messages, list) else []
        content = members(listed[0]).get("content") if listed else None
        if isinstance(content, list):
            return "\n".join(text(members(each).get("text")) for each in cast(list[Any], content))
        return text(members(content).get("text"))

    async def resource(self, uri: str) -> JsonObject:
        """The raw contents of a resource."""
        return await self.request("resources/read", {"uri": uri})


def _client_info() -> JsonObject:
    return {"name": "toolwire", "version": __version__}
