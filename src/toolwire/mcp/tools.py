"""Tools of servers as tools of ours: names, schemas, calls and results."""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

import msgspec

from toolwire.errors import ToolwireError
from toolwire.mcp.entry import ServerEntry
from toolwire.mcp.headers import fault
from toolwire.mcp.lists import ListedTool, members
from toolwire.mcp.names import aliases, cleaned, offered_name
from toolwire.mcp.peer import Progress
from toolwire.mcp.results import CallResult, read_result, tool_error
from toolwire.messages import Text
from toolwire.request import JsonObject
from toolwire.tools.spec import Effect, Run, Tool, ToolContext, ToolFailed, ToolOutput

Call = Callable[[str, JsonObject, Progress | None], "Any"]
DONE = "Tool execution succeeded."
_TYPELESS = (
    "Skipping tool '{tool}' from MCP server '{server}' because it has missing types in its "
    "parameter schema. Please file an issue with the owner of the MCP server."
)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of a server, and under which name it is offered, or why it is not."""

    tool: ListedTool
    name: str = ""
    why: str = ""
    """Why it is not offered; empty if it is."""
    warnings: tuple[str, ...] = ()


def offers(
    server: str,
    entry: ServerEntry,
    tools: Iterable[ListedTool],
    taken: Iterable[str],
    *,
    foreign: tuple[str, ...] = (),
    require_types: bool = False,
) -> tuple[Offer, ...]:
    """The tools of a server in its order, each with the name it gets among those taken."""
    names = set(taken)
    found: list[Offer] = []
    for tool in tools:
        why = _left_out(server, entry, tool, require_types=require_types)
        name = "" if why else offered_name(server, tool.name, names, foreign)
        names.add(name)
        found.append(Offer(tool=tool, name=name, why=why, warnings=_warnings(tool)))
    return tuple(found)


def _left_out(server: str, entry: ServerEntry, tool: ListedTool, *, require_types: bool) -> str:
    if any(fnmatchcase(tool.name, each) for each in entry.exclude_tools):
        return "excluded by the settings"
    if entry.include_tools and not any(_included(tool.name, each) for each in entry.include_tools):
        return "not among include_tools"
    if entry.kind == "http" and (wrong := fault(tool.parameters)):
        return wrong
    if require_types and not has_types(tool.parameters):
        return _TYPELESS.format(tool=tool.name, server=server)
    return ""


def _included(name: str, entry: str) -> bool:
    return fnmatchcase(name, entry) or entry.startswith(f"{name}(")


def _warnings(tool: ListedTool) -> tuple[str, ...]:
    found = list(tool.warnings)
    if not has_types(tool.parameters):
        found.append("its schema has parameters without a type")
    if _remote(tool.parameters):
        found.append("its schema refers to another document, which is never fetched")
    return tuple(found)


def has_types(schema: object) -> bool:
    """Whether every node says its type, or the types of its alternatives."""
    waiting: list[object] = [schema]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, dict):
            return False
        node = cast(JsonObject, value)
        choices = [node[name] for name in ("anyOf", "allOf", "oneOf") if name in node]
        if not node.get("type") and not choices:
            return False
        for choice in choices:
            waiting += cast(list[Any], choice) if isinstance(choice, list) else [None]
        if node.get("type") == "object":
            waiting += members(node.get("properties")).values()
        if node.get("type") == "array" and node.get("items") is not None:
            waiting.append(node["items"])
    return True


def _remote(schema: object) -> bool:
    waiting: list[object] = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            node = cast(JsonObject, value)
            reference = node.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                return True
            waiting += node.values()
        elif isinstance(value, list):
            waiting += cast(list[object], value)
    return False


def as_tool(server: str, entry: ServerEntry, offer: Offer, call: Call) -> Tool:
    """The offered tool: its calls go to the server, its results come back as captured."""
    tool = offer.tool
    reads = entry.believe_hints and tool.hints.get("readOnlyHint") is True
    return Tool(
        name=offer.name,
        description=tool.description,
        parameters=tool.parameters,
        effect=Effect.READ if reads else Effect.OTHER,
        run=_run(tool.name, call),
        title=tool.title,
        aliases=tuple(each for each in _aliases(server, tool.name) if each != offer.name),
        server=server,
        hints=tuple(f"{name}: {str(value).lower()}" for name, value in tool.hints.items()),
    )


def _aliases(server: str, tool: str) -> Sequence[str]:
    return tuple(dict.fromkeys((*aliases(server, tool), cleaned(f"{server}.{tool}"))))


def _run(name: str, call: Call) -> Run:
    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            raw = await call(name, arguments, context.emit)
        except ToolwireError as error:
            raise ToolFailed(str(error), type=error.kind) from error
        result = read_result(raw, name)
        if result.is_error:
            raise ToolFailed(
                tool_error(name, arguments, result.content),
                display=result.display or f"MCP tool {name} reported an error",
                type="mcp_tool_error",
            )
        return output_of(result)

    return run


def output_of(result: CallResult) -> ToolOutput:
    """One text is the output itself; several parts are blocks in order, as in the captures."""
    parts = result.parts
    if len(parts) == 1 and isinstance(parts[0], Text):
        return ToolOutput(text=parts[0].text, display=result.display)
    return ToolOutput(text="" if parts else DONE, blocks=parts, display=result.display)
