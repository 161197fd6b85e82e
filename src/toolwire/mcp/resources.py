"""Resources of servers: tools that list and read them, and their contents as parts."""

from typing import Annotated, Any, cast

import msgspec

from toolwire.errors import ToolwireError
from toolwire.mcp.lists import members
from toolwire.mcp.results import Block, resource_block
from toolwire.mcp.servers import Server, Servers
from toolwire.messages import Media, Text
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool
from toolwire.wire.json_access import dump

LIST, READ = "list_mcp_resources", "read_mcp_resource"


class ListResources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `list_mcp_resources`."""

    serverName: Annotated[str, msgspec.Meta(description="Only resources of this server.")] = ""


class ReadResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `read_mcp_resource`."""

    uri: Annotated[str, msgspec.Meta(description="The URI of a listed resource.")]


def resource_tools(servers: Servers) -> tuple[Tool, ...]:
    """The tools for resources; none if no server has any."""
    if not servers.resources():
        return ()

    @tool(LIST, Effect.READ, "List the resources that MCP servers offer.")
    async def list_resources(args: ListResources, context: ToolContext) -> ToolOutput:
        del context
        found = [
            {
                "server": server.name,
                "uri": each.uri,
                "name": each.name,
                "description": each.description,
                "mimeType": each.mime,
            }
            for server, each in servers.resources()
            if args.serverName in ("", server.name)
        ]
        if not found:
            raise ToolFailed(f'no resources of a server "{args.serverName}"')
        return ToolOutput(text=dump(found), display=f"{len(found)} resources")

    @tool(READ, Effect.READ, "Read a resource of an MCP server by its URI.")
    async def read_resource(args: ReadResource, context: ToolContext) -> ToolOutput:
        del context
        known = listed(servers, args.uri)
        if known is None:
            raise ToolFailed(f"Resource not found for URI: {args.uri}. {LIST} lists them.")
        try:
            blocks = await read(*known)
        except ToolwireError as error:
            raise ToolFailed(str(error), type=error.kind) from error
        parts = parts_of(blocks)
        if len(parts) == 1 and isinstance(parts[0], Text):
            return ToolOutput(text=parts[0].text)
        return ToolOutput(blocks=parts, display="\n".join(block.display for block in blocks))

    return (list_resources, read_resource)


def find(servers: Servers, mention: str) -> tuple[Server, str] | None:
    """The server and the URI of a resource that a prompt mentions.

    The user may name one that is not listed, by its server or by a scheme that a server has:
    servers have templates too.
    """
    name, colon, uri = mention.partition(":")
    if colon and name in servers.servers and uri and not uri.startswith("//"):
        return servers.servers[name], uri
    scheme, mark, _ = mention.partition("://")
    near = listed(servers, mention)
    if near is not None or not mark:
        return near
    for server, resource in servers.resources():
        if resource.uri.partition("://")[0] == scheme:
            return server, mention
    return None


def listed(servers: Servers, mention: str) -> tuple[Server, str] | None:
    """The server and the URI of a listed resource, named by its URI or as `SERVER:URI`."""
    for server, resource in servers.resources():
        if mention in (resource.uri, f"{server.name}:{resource.uri}"):
            return server, resource.uri
    return None


async def read(server: Server, uri: str) -> tuple[Block, ...]:
    """The contents of a resource; ToolwireError if the server does not give them."""
    client = await server.client()
    contents: Any = (await client.resource(uri)).get("contents")
    listed = cast(list[Any], contents) if isinstance(contents, list) else []
    return tuple(resource_block(members(each), uri) for each in listed)


def parts_of(blocks: tuple[Block, ...]) -> tuple[Text | Media, ...]:
    """All parts, in order."""
    return tuple(part for block in blocks for part in block.parts)
