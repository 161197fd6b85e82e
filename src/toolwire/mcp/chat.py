"""`/mcp` in a chat: the state of servers, and changes to them while the session goes on."""

from collections.abc import Awaitable, Callable

import msgspec

from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.mcp.entry import Configured, ServerEntry
from toolwire.mcp.servers import Server
from toolwire.mcp.session import SessionServers, status_of
from toolwire.terminal_text import one_line

_VERBS = ("restart", "login", "approve", "enable", "disable")


class ChatActions(msgspec.Struct, frozen=True, kw_only=True):
    """What a chat does beyond the session itself."""

    configured: Callable[[], dict[str, Configured]]
    approve: Callable[[str, ServerEntry], None]
    """Stores the user's yes to a server of the project."""
    log_in: Callable[[str, ServerEntry], Awaitable[None]]


async def run(servers: SessionServers, words: str, actions: ChatActions) -> str:
    """What `/mcp words` prints."""
    verb, _, name = words.strip().partition(" ")
    if not verb:
        return _all(servers, actions)
    if verb not in _VERBS:
        return _one(_need(servers, verb, actions))
    name = name.strip()
    if not name:
        raise BadInput(f"name a server: /mcp {verb} NAME")
    match verb:
        case "restart":
            server = _need(servers, name, actions)
            await server.connection.restart()
            return await _connected(servers, server)
        case "login":
            server = _need(servers, name, actions)
            await actions.log_in(name, server.entry)
            await server.connection.restart()
            return await _connected(servers, server)
        case "disable":
            await servers.servers.remove(_need(servers, name, actions).name)
            return f"{name} is disabled in this session; toolwire mcp disable {name} makes it last"
        case _:
            return await _added(servers, name, verb, actions)


async def _added(servers: SessionServers, name: str, verb: str, actions: ChatActions) -> str:
    found = actions.configured()
    if name not in found:
        raise UnknownName("MCP server", name, tuple(found))
    each = found[name]
    if verb == "approve":
        actions.approve(name, each.entry)
    elif not each.approved:
        raise BadInput(f"{name} is not approved yet: /mcp approve {name}")
    if name not in servers.servers.servers:
        servers.servers.add(name, msgspec.structs.replace(each.entry, enabled=True))
    if name in servers.servers.lost:
        raise ToolwireError(f"{name} is not started: {servers.servers.lost[name]}")
    return await _connected(servers, servers.servers.servers[name])


async def _connected(servers: SessionServers, server: Server) -> str:
    try:
        await server.connect()
    except ToolwireError as error:
        raise ToolwireError(f"{server.name}: {server.connection.error or error}") from error
    servers.servers.changed = True
    return f"{server.name}: connected"


def _need(servers: SessionServers, name: str, actions: ChatActions) -> Server:
    found = servers.servers.servers.get(name)
    if found is None:
        known = {**servers.servers.servers, **actions.configured()}
        if name in known:
            raise BadInput(f"{name} is not in use: /mcp enable {name} or /mcp approve {name}")
        raise UnknownName("MCP server", name, tuple(known))
    return found


def _all(servers: SessionServers, actions: ChatActions) -> str:
    lines = [
        f"{name}: {status.replace('_', ' ')}, {tools} tools{_problem(servers, name)}"
        for name, status, tools in servers.states()
    ]
    used = {name for name, _, _ in servers.states()}
    for name, each in actions.configured().items():
        if name not in used:
            why = "disabled" if each.approved else f"waits for approval: /mcp approve {name}"
            lines.append(f"{name}: {why}")
    return "\n".join(map(one_line, lines)) or "no MCP servers; add one: toolwire mcp add"


def _problem(servers: SessionServers, name: str) -> str:
    server = servers.servers.servers.get(name)
    why = servers.servers.lost.get(name, "") if server is None else server.connection.error
    return f" ({why})" if why else ""


def _one(server: Server) -> str:
    lists = server.lists
    lines = [f"{server.name}: {status_of(server).replace('_', ' ')}"]
    if server.connection.error:
        lines.append(server.connection.error)
    if lists is not None:
        lines += [
            f"  {tool.name}: {tool.description.partition(chr(10))[0]}" for tool in lists.tools
        ]
        lines += [f"  /{prompt.name}: {prompt.description}" for prompt in lists.prompts]
        lines += [f"  @{server.name}:{each.uri} {each.name}" for each in lists.resources]
    return "\n".join(map(one_line, lines))
