"""Tools and tool choice of a chat request, written."""

from msgspec.structs import replace

from toolwire.dialects.losses import Losses
from toolwire.dialects.offered_tools import OfferedTools
from toolwire.dialects.openai_chat.leftovers import scatter
from toolwire.dialects.openai_chat.wire import NAME
from toolwire.dialects.openai_chat.writing import Writing
from toolwire.request import (
    AnyTool,
    FreeformTool,
    JsonObject,
    ModelRequest,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolwire.schema import Profile, convert, is_strict
from toolwire.wire.json_access import parse

_written = OfferedTools()


def write_tools(body: JsonObject, request: ModelRequest, to: Writing) -> None:
    """Tools, the choice among them, and whether several may be called at once."""
    choice = request.tool_choice
    if to.verbatim:
        body.update(_members(request.tools, request.tools, to))
        _verbatim_choice(body, request)
        return
    if request.tools:
        tools = _offered(request.tools, choice, to) if choice is not None else request.tools

        def write(losses: Losses) -> JsonObject:
            return _members(request.tools, tools, replace(to, losses=losses))

        terms = (to.quirks, choice)
        body.update(_written.members(request.tools, terms, to.losses, write))
    if "tools" in body:
        _choice(body, request, to)
        _parallel(body, request.parallel_calls, to)
    elif request.tools or choice is not None:
        _report_unused(request, to)


def _members(tools: tuple[AnyTool, ...], offered: tuple[AnyTool, ...], to: Writing) -> JsonObject:
    members: JsonObject = {}
    strict = _strict(tools, to)
    for number, tool in enumerate(tools):
        if tool not in offered:
            continue
        member, entry = _tool(tool, f"tools[{number}]", strict, to)
        if entry is not None:
            members.setdefault(member, []).append(entry)
    return members


def _tool(tool: AnyTool, path: str, strict: bool, to: Writing) -> tuple[str, JsonObject | None]:
    match tool:
        case ServerTool():
            own = parse(tool.data, "tool") if tool.dialect == NAME else None
            return "functions" if tool.kind == "functions" else "tools", own
        case FreeformTool():
            return "tools", _freeform(tool, to)
        case ToolSpec():
            return _function(tool, path, strict, to)


def _function(tool: ToolSpec, path: str, strict: bool, to: Writing) -> tuple[str, JsonObject]:
    left = scatter(tool.kept)
    function: JsonObject = {**left.inner, "name": to.name(tool.name, tool.namespace)}
    if tool.description:
        function["description"] = tool.description
    if to.verbatim:
        if tool.parameters:
            function["parameters"] = tool.parameters
    else:
        function["parameters"] = _parameters(tool, path, to)
    if tool.strict is not None and (to.verbatim or strict):
        if to.verbatim or not tool.strict or is_strict(function["parameters"]):
            function["strict"] = tool.strict
        else:
            why = "the schema would have to change: all properties required, no other ones"
            to.losses.add(f"{path}.strict", "strict", why)
    elif tool.strict:
        to.losses.add(f"{path}.strict", "strict", "the server does not take it")
    if "functions" in left.words and to.verbatim:
        return "functions", function
    entry: JsonObject = {**left.outer, "function": function}
    if "typeless" not in left.words:
        entry["type"] = "function"
    to.mark(entry, tool.cache, path)
    return "tools", entry


def _parameters(tool: ToolSpec, path: str, to: Writing) -> JsonObject:
    # The root always has `properties`: LM Studio and others reject an object without.
    fitting = convert(tool.parameters, Profile.OPENAI, f"{path}.parameters")
    to.losses.extend(fitting.losses)
    return fitting.schema


def _freeform(tool: FreeformTool, to: Writing) -> JsonObject:
    left = scatter(tool.kept)
    custom: JsonObject = {**left.inner, "name": to.name(tool.name, tool.namespace)}
    if tool.description:
        custom["description"] = tool.description
    if tool.grammar:
        grammar = {"syntax": tool.syntax, "definition": tool.grammar}
        custom["format"] = {"type": "grammar", "grammar": grammar}
    return {**left.outer, "type": "custom", "custom": custom}


def _strict(tools: tuple[AnyTool, ...], to: Writing) -> bool:
    if not to.quirks.strict_tools:
        return False
    said = {bool(tool.strict) for tool in tools if isinstance(tool, ToolSpec)}
    return not (to.quirks.strict_all_or_none and len(said) > 1)


def _offered(tools: tuple[AnyTool, ...], choice: ToolChoice, to: Writing) -> tuple[AnyTool, ...]:
    """The tools to send: fewer where the server has no word for the choice."""
    forms = to.quirks.tool_choices
    if choice.mode == "none" and "none" not in forms:
        return ()
    if not choice.names:
        return tools
    one = choice.mode == "required" and len(choice.names) == 1
    if "subset" in forms or (one and "named" in forms):
        return tools
    return tuple(
        tool for tool in tools if isinstance(tool, ServerTool) or tool.name in choice.names
    )


def _choice(body: JsonObject, request: ModelRequest, to: Writing) -> None:
    choice = request.tool_choice
    if choice is None:
        return
    forms = to.quirks.tool_choices
    names = choice.names
    if choice.mode == "none":
        body["tool_choice"] = "none"
    elif choice.mode == "required" and len(names) == 1 and "named" in forms:
        body["tool_choice"] = _named(request, names[0], to)
    elif names and "subset" in forms:
        tools = [_named(request, name, to) for name in names]
        body["tool_choice"] = {
            "type": "allowed_tools",
            "allowed_tools": {"mode": choice.mode, "tools": tools},
        }
    elif choice.mode == "required":
        if "required" in forms:
            body["tool_choice"] = to.quirks.required_word
        else:
            to.losses.add("tool_choice", "required", "the server only takes auto")


def _named(request: ModelRequest, name: str, to: Writing) -> JsonObject:
    tool = next(
        (tool for tool in request.tools if not isinstance(tool, ServerTool) and tool.name == name),
        None,
    )
    namespace = tool.namespace if tool is not None else ""
    kind = "custom" if isinstance(tool, FreeformTool) else "function"
    return {"type": kind, kind: {"name": to.name(name, namespace)}}


def _parallel(body: JsonObject, parallel: bool | None, to: Writing) -> None:
    if parallel is None:
        return
    if to.quirks.parallel_flag:
        body["parallel_tool_calls"] = parallel
    elif not parallel:
        to.losses.add("parallel_calls", "one call at a time", "the server has no such switch")


def _report_unused(request: ModelRequest, to: Writing) -> None:
    choice = request.tool_choice
    if choice is not None and choice.mode == "required":
        to.losses.add("tool_choice", choice.mode, "no tool is left to choose from")
    if request.parallel_calls is False:
        to.losses.add("parallel_calls", "one call at a time", "no tools are sent")


def _verbatim_choice(body: JsonObject, request: ModelRequest) -> None:
    if request.parallel_calls is not None:
        body["parallel_tool_calls"] = request.parallel_calls
    choice = request.tool_choice
    if choice is None:
        return
    words = scatter(choice.kept).words
    kinds = {tool.name: "custom" for tool in request.tools if isinstance(tool, FreeformTool)}
    tools = [
        {"type": (kind := kinds.get(name, "function")), kind: {"name": name}}
        for name in choice.names
    ]
    if "function_call" in words:
        body["function_call"] = {"name": choice.names[0]} if choice.names else choice.mode
    elif "allowed_tools" in words or len(tools) > 1 or (tools and choice.mode == "auto"):
        allowed = {"mode": choice.mode, "tools": tools}
        body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
    elif tools:
        body["tool_choice"] = tools[0]
        if "typeless" in words:
            del tools[0]["type"]
    else:
        body["tool_choice"] = "any" if "any" in words else choice.mode
