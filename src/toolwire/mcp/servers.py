"""The servers of a session: their start, their tools in a fixed order, and their end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import msgspec

from toolwire.errors import ToolwireError
from toolwire.mcp.client import Elicit, Host, Lists, ServerClient
from toolwire.mcp.connection import Reach, ServerConnection, State
from toolwire.mcp.entry import ServerEntry, Unset, expanded
from toolwire.mcp.http_channel import Login
from toolwire.mcp.lists import ServerPrompt, ServerResource
from toolwire.mcp.names import prefixes
from toolwire.mcp.peer import Progress, call_trace
from toolwire.mcp.remembered import Memory, Remembered, now
from toolwire.mcp.tools import Offer, as_tool, offers
from toolwire.request import JsonObject
from toolwire.tools.spec import McpSettings, Tool

_LAST_WORDS = 500
"""Characters of a failed server's last line in a notice."""
_SETTLE_SECONDS = 2.0
_INSTRUCTIONS = 2000
"""Characters of a server's instructions in the system prompt."""


class RequiredMissing(ToolwireError):
    """A server that the run needs cannot start."""

    kind = "mcp_required"


class Server:
    """One configured server: its connection once it is needed, and what it offers."""

    def __init__(
        self, name: str, entry: ServerEntry, connection: ServerConnection, memory: Memory
    ) -> None:
        self.name = name
        self.entry = entry
        self.connection = connection
        self.remembered = memory.find(entry)
        if self.remembered is not None:
            connection.spoken = self.remembered.protocol
        self._memory = memory
        self.refreshing = asyncio.Lock()
        self._names: dict[str, str] = {}
        """Names that its tools were offered under; they keep them."""

    @property
    def lists(self) -> Lists | None:
        """What it offers now, or offered last."""
        if self.connection.lists is not None:
            return self.connection.lists
        return None if self.remembered is None else self.remembered.lists

    async def connect(self, seconds: float | None = None) -> None:
        """Starts it and remembers its lists; ToolwireError with the reason if it fails."""
        client = await self.connection.ready(seconds)
        if self.connection.lists is not None:
            self.remembered = Remembered(
                lists=self.connection.lists,
                at=now(),
                name=client.greeting.name,
                version=client.greeting.version,
                protocol=client.greeting.protocol,
                capabilities=tuple(client.greeting.capabilities),
                instructions=client.greeting.instructions,
            )
            self._memory.keep(self.entry, self.remembered)

    async def client(self) -> ServerClient:
        """The connected server, started first if need be."""
        if self.connection.state is not State.READY:
            await self.connect()
        return await self.connection.ready()

    async def call(self, tool: str, arguments: JsonObject, progress: Progress | None) -> JsonObject:
        """The raw result of a call."""
        trace = call_trace.get()
        if trace is not None:
            trace.facts["network.transport"] = "pipe" if self.entry.kind == "stdio" else "tcp"
        return await (await self.client()).call(tool, arguments, progress)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a tool of it was offered under in this session."""
        return tuple(self._names.values())

    def offers(
        self, taken: Iterable[str], foreign: tuple[str, ...] = (), *, require_types: bool = False
    ) -> tuple[Offer, ...]:
        """Its tools with their names; a name once offered stays with its tool."""
        if self.lists is None:
            return ()
        new = [tool for tool in self.lists.tools if tool.name not in self._names]
        taken = {*taken, *self.names}
        for offer in offers(
            self.name, self.entry, new, taken, foreign=foreign, require_types=require_types
        ):
            if offer.name:
                self._names[offer.tool.name] = offer.name
        found = offers(self.name, self.entry, self.lists.tools, (), require_types=require_types)
        return tuple(
            msgspec.structs.replace(offer, name=self._names[offer.tool.name])
            if offer.name
            else offer
            for offer in found
        )


async def _known(server: Server, task: "asyncio.Task[None]") -> None:
    """Returns once the server has started or failed to, for the first time."""
    failed = asyncio.ensure_future(server.connection.troubled.wait())
    try:
        await asyncio.wait((task, failed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        failed.cancel()


class Servers:
    """All servers of a session."""

    def __init__(
        self,
        entries: Mapping[str, ServerEntry],
        settings: McpSettings,
        *,
        reach: Reach,
        host: Host,
        memory: Memory,
        notice: Callable[[str], None],
        login: Callable[[str, ServerEntry], Login] | None = None,
        elicit: Callable[[str], Elicit] | None = None,
        closing: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._closing = closing
        self._settings = settings
        self._notice = notice
        self.changed = False
        """Whether a list has changed since `tools` was last asked."""
        self.servers: dict[str, Server] = {}
        self._reported: set[str] = set()
        self.lost: dict[str, str] = {}
        """Why each of the others cannot be started."""
        self._tasks: list[asyncio.Task[None]] = []
        self._refreshing: set[asyncio.Task[None]] = set()
        self._stale: set[str] = set()
        """Servers whose changed list was not asked for yet."""
        self._parts = (reach, host, memory, login, elicit)
        for name, entry in entries.items():
            if entry.enabled and self._is_chosen(name):
                self.add(name, entry)

    def add(self, name: str, entry: ServerEntry) -> None:
        """Adds a server, not started yet; one that cannot be is `lost` with the reason."""
        reach, host, memory, login, elicit = self._parts
        self.lost.pop(name, None)
        try:
            filled = expanded(entry, reach.environ)
        except Unset as error:
            self._lost(name, entry, str(error))
            return
        own = msgspec.structs.replace(
            host,
            changed=self._watch(name),
            elicit=host.elicit if elicit is None else elicit(name),
        )
        if login is not None:
            reach = msgspec.structs.replace(reach, login=partial(login, name))
        connection = ServerConnection(name, filled, own, reach)
        self.servers[name] = Server(name, filled, connection, memory)
        self.changed = True

    async def remove(self, name: str) -> None:
        """Ends a server and takes its tools away."""
        server = self.servers.pop(name)
        self.changed = True
        await server.connection.aclose()

    def _is_chosen(self, name: str) -> bool:
        allowed, excluded = self._settings.allowed, self._settings.excluded
        return (not allowed or name in allowed) and name not in excluded

    def _lost(self, name: str, entry: ServerEntry, why: str) -> None:
        if entry.required:
            raise RequiredMissing(f"MCP server {name} is required and cannot start: {why}")
        self.lost[name] = why
        self._notice(f"MCP server {name} is not started: {why}")

    async def open(self, wait_seconds: float, *, start: bool) -> None:
        """Waits for servers of which nothing is remembered, side by side and not for long.

        With `start` the others are started in the background; otherwise at their first call.
        """
        unknown = [server for server in self.servers.values() if server.lists is None]
        later = [server for server in self.servers.values() if server.lists is not None]
        waiting = [self._begin(server) for server in unknown]
        for server in later:
            stale = server.remembered is not None and not server.remembered.is_fresh(now())
            if start or stale:
                self._begin(server)
        needed = [self._needed(server) for server in self.servers.values() if server.entry.required]
        if waiting and wait_seconds > 0:
            known = [
                asyncio.ensure_future(_known(server, task))
                for server, task in zip(unknown, waiting, strict=True)
            ]
            self._tasks += known
            await asyncio.wait(known, timeout=wait_seconds)
            for server, task in zip(unknown, known, strict=True):
                if task.done() and server.connection.state is State.STARTING:
                    self._failed(server, server.connection.error)
                elif not task.done():
                    self._notice(
                        f"MCP server {server.name} has not answered within {wait_seconds:g} "
                        "seconds; its tools join when it does"
                    )
        await asyncio.gather(*needed)

    async def _needed(self, server: Server) -> None:
        try:
            await server.connect()
        except ToolwireError as error:
            why = server.connection.error or str(error)
            raise RequiredMissing(
                f"MCP server {server.name} is required and cannot start: {why}"
            ) from error

    def _begin(self, server: Server) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(self._started(server))
        self._tasks.append(task)
        return task

    async def _started(self, server: Server) -> None:
        before = server.lists
        try:
            await server.connect()
        except ToolwireError as error:
            self._failed(server, server.connection.error or str(error))
        if server.lists != before:
            self.changed = True

    def _failed(self, server: Server, why: str) -> None:
        """Reports a failure with the server's last words, once."""
        words = server.connection.last_words.strip().rpartition("\n")[2][:_LAST_WORDS]
        line = f"MCP server {server.name} failed: {why}{f' ({words})' if words else ''}"
        if line not in self._reported:
            self._reported.add(line)
            self._notice(line)

    def _watch(self, name: str) -> Callable[[str], None]:
        def changed(kind: str) -> None:
            del kind
            server = self.servers.get(name)
            # One list is asked for at a time, and at most one more waits: servers may flood.
            if server is not None and name not in self._stale:
                self._stale.add(name)
                task = asyncio.ensure_future(self._refresh(server))
                self._refreshing.add(task)
                task.add_done_callback(self._refreshing.discard)

        return changed

    async def started(self) -> None:
        """Waits for servers that start in the background, as long as the settings allow."""
        starting = [task for task in self._tasks if not task.done()]
        if starting:
            await asyncio.wait(starting, timeout=self._settings.wait_seconds)

    async def settle(self) -> None:
        """Waits for changed lists that are on their way, not for long."""
        if self._refreshing:
            await asyncio.wait(tuple(self._refreshing), timeout=_SETTLE_SECONDS)

    async def _refresh(self, server: Server) -> None:
        try:
            async with server.refreshing:
                self._stale.discard(server.name)
                await server.connection.refresh()
        except ToolwireError as error:
            self._notice(f"MCP server {server.name} did not list its tools again: {error}")
        else:
            self.changed = True

    def offers(self, taken: Iterable[str]) -> dict[str, tuple[Offer, ...]]:
        """What each server lists, in the order of the settings and of each server."""
        reserved = set(taken)
        found: dict[str, tuple[Offer, ...]] = {}
        for name, server in self.servers.items():
            others = [other for other in self.servers if other != name]
            kept = {each for other in others for each in self.servers[other].names}
            found[name] = server.offers(
                reserved | kept, prefixes(others), require_types=self._settings.require_types
            )
        return found

    def tools(self, taken: Iterable[str]) -> tuple[Tool, ...]:
        """The tools of all servers that are offered."""
        self.changed = False
        return tuple(
            as_tool(name, self.servers[name].entry, offer, self.servers[name].call)
            for name, offers in self.offers(taken).items()
            for offer in offers
            if offer.name
        )

    def prompts(self) -> tuple[tuple[Server, ServerPrompt], ...]:
        """Every prompt with its server."""
        return tuple(
            (server, prompt)
            for server in self.servers.values()
            if server.lists is not None
            for prompt in server.lists.prompts
        )

    def resources(self) -> tuple[tuple[Server, ServerResource], ...]:
        """Every resource with its server."""
        return tuple(
            (server, resource)
            for server in self.servers.values()
            if server.lists is not None
            for resource in server.lists.resources
        )

    def instructions(self) -> str:
        """The servers' own instructions for the system prompt, each under its name."""
        found = (
            (server.name, server.remembered.instructions.strip())
            for server in self.servers.values()
            if server.remembered is not None and server.remembered.instructions.strip()
        )
        return "\n\n".join(f"# {name}\n{text[:_INSTRUCTIONS]}" for name, text in found)

    async def close(self) -> None:
        """Ends all servers at once."""
        tasks = (*self._tasks, *self._refreshing)
        for task in tasks:
            task.cancel()
        endings: list[Awaitable[object]] = list(tasks)
        endings += [server.connection.aclose() for server in self.servers.values()]
        await asyncio.gather(*endings, return_exceptions=True)
        if self._closing is not None:
            await self._closing()
