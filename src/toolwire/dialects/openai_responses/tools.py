"""Tools and the choice among them, both ways."""

from collections.abc import Iterable
from typing import Literal, cast

from msgspec import Raw
from msgspec.structs import replace

from toolwire.dialects.losses import Losses
from toolwire.dialects.offered_tools import OfferedTools
from toolwire.dialects.openai_responses.remembering import joined, remember, replay, words
from toolwire.dialects.openai_responses.wire import NAME
from toolwire.dialects.quirks import Quirks
from toolwire.messages import Kept
from toolwire.request import (
    AnyTool,
    FreeformTool,
    ModelRequest,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolwire.schema import Profile, convert, is_strict
from toolwire.wire.json_access import JsonObject, dump, parse_object
from toolwire.wire.names import ToolNames

_written = OfferedTools()

_SYNTAXES: dict[object, Literal["lark", "regex"]] = {"lark": "lark", "regex": "regex"}
_MODES: dict[object, Literal["auto", "required", "none"]] = {
    "auto": "auto",
    "required": "required",
    "none": "none",
}


def decode_tools(raws: Iterable[Raw]) -> tuple[AnyTool, ...]:
    """The tools of a request, those of a namespace one by one."""
    tools: list[AnyTool] = []
    for number, raw in enumerate(raws):
        text = bytes(raw)
        source = parse_object(text, f"tools[{number}]")
        nested = _namespace(source) if source.get("type") == "namespace" else None
        if nested is not None:
            tools += nested
            continue
        tool = _tool(source)
        if tool is None:
            kind = source.get("type")
            word = kind if isinstance(kind, str) else ""
            tool = ServerTool(dialect=NAME, kind=word, data=text.decode())
        tools.append(tool)
    return tuple(tools)


def _tool(source: JsonObject, namespace: str = "") -> ToolSpec | FreeformTool | None:
    name, description = source.get("name"), source.get("description")
    if not isinstance(name, str):
        return None
    about = description if isinstance(description, str) else ""
    if source.get("type") == "function":
        parameters, strict = source.get("parameters"), source.get("strict")
        tool = ToolSpec(
            name=name,
            description=about,
            parameters=cast(JsonObject, parameters) if isinstance(parameters, dict) else {},
            strict=strict if isinstance(strict, bool) else None,
            namespace=namespace,
        )
        return replace(tool, kept=remember(source, _function(tool, name)))
    if source.get("type") == "custom":
        syntax, grammar = _grammar(source.get("format"))
        free = FreeformTool(
            name=name, description=about, syntax=syntax, grammar=grammar, namespace=namespace
        )
        return replace(free, kept=remember(source, _custom(free, name)))
    return None


def _grammar(value: object) -> tuple[Literal["", "lark", "regex"], str]:
    match value:
        case {"type": "grammar", "syntax": str(syntax), "definition": str(text)}:
            if syntax in _SYNTAXES:
                return _SYNTAXES[syntax], text
        case _:
            pass
    return "", ""


def _namespace(source: JsonObject) -> list[AnyTool] | None:
    name, nested = source.get("name"), source.get("tools")
    if not isinstance(name, str) or not name or not isinstance(nested, list) or not nested:
        return None
    tools: list[AnyTool] = []
    for inner in cast(list[object], nested):
        tool = _tool(cast(JsonObject, inner), name) if isinstance(inner, dict) else None
        if tool is None:
            return None
        tools.append(tool)
    first = cast(ToolSpec | FreeformTool, tools[0])
    written: JsonObject = {"type": "namespace", "name": name, "tools": source["tools"]}
    around = remember(source, written, ["namespace"], prefix="item.")
    tools[0] = replace(first, kept=joined(first.kept, around))
    return tools


def encode_tools(
    request: ModelRequest, names: ToolNames, losses: Losses, quirks: Quirks, *, own: bool
) -> JsonObject:
    """The `tools` member as it is offered; empty without any."""

    def write(losses: Losses) -> JsonObject:
        offered = _offered(request.tools, names, losses, own)
        return {"tools": offered} if offered else {}

    if own or not request.tools:
        return write(losses)
    return _written.members(request.tools, (quirks.name_rule,), losses, write)


def _offered(
    tools: tuple[AnyTool, ...], names: ToolNames, losses: Losses, own: bool
) -> list[object]:
    offered: list[object] = []
    open_space: JsonObject | None = None
    for number, tool in enumerate(tools):
        if isinstance(tool, ServerTool):
            open_space = None
            if tool.dialect == NAME:
                offered.append(Raw(tool.data.encode()))
            continue
        body = _offer(tool, f"tools[{number}]", names, losses, own)
        if not tool.namespace:
            open_space = None
            offered.append(body)
            continue
        begins = "namespace" in words(tool.kept)
        if open_space is None or begins or open_space["name"] != tool.namespace:
            open_space = {"type": "namespace", "name": tool.namespace, "tools": []}
            if begins:
                open_space = replay(open_space, tool.kept, "item.")
            else:
                open_space["description"] = f"Tools of {tool.namespace}."
            offered.append(open_space)
        open_space["tools"].append(body)
    return offered


def _offer(
    tool: ToolSpec | FreeformTool, path: str, names: ToolNames, losses: Losses, own: bool
) -> JsonObject:
    name = tool.name if own else names.wire_name(tool.name, tool.namespace)
    if isinstance(tool, FreeformTool):
        return replay(_custom(tool, name), tool.kept)
    body = replay(_function(tool, name), tool.kept)
    if not own:
        if tool.cache is not None:
            losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
        _fit_schema(tool, body, path, losses)
    return body


def _fit_schema(tool: ToolSpec, body: JsonObject, path: str, losses: Losses) -> None:
    path = f"{path}.parameters"
    fitting = convert(tool.parameters, Profile.OPENAI, path)
    losses.extend(fitting.losses)
    body["parameters"] = fitting.schema
    # Without a word the service tries strict on its own.
    body["strict"] = False
    if tool.strict:
        if is_strict(fitting.schema):
            body["strict"] = True
        else:
            why = "the schema would have to change: all properties required, no other ones"
            losses.add(f"{path.removesuffix('.parameters')}.strict", "strict", why)


def _function(tool: ToolSpec, name: str) -> JsonObject:
    body: JsonObject = {"type": "function", "name": name, "parameters": tool.parameters}
    if tool.description:
        body["description"] = tool.description
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body


def _custom(tool: FreeformTool, name: str) -> JsonObject:
    body: JsonObject = {"type": "custom", "name": name}
    if tool.description:
        body["description"] = tool.description
    if tool.grammar or tool.syntax:
        body["format"] = {
            "type": "grammar",
            "syntax": tool.syntax or "lark",
            "definition": tool.grammar,
        }
    return body


def decode_choice(value: object) -> ToolChoice | None:
    """The choice; a form that names a server's tool stays whole."""
    if isinstance(value, str) and value in _MODES:
        return ToolChoice(mode=_MODES[value])
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value)
    match source:
        case {"type": "function" | "custom" as kind, "name": str(name)}:
            choice = ToolChoice(mode="required", names=(name,))
            written: JsonObject = {"type": kind, "name": name}
            return replace(choice, kept=remember(source, written, ["one", kind]))
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list()}:
            found = cast(list[object], source["tools"])
            choice = ToolChoice(mode=mode, names=tuple(filter(None, map(_named, found))))
            written = {"type": "allowed_tools", "mode": mode, "tools": _plain_names(choice.names)}
            return replace(choice, kept=remember(source, written, ["allowed"]))
        case _:
            return ToolChoice(kept=Kept(dialect=NAME, fields=dump(source), form="whole"))


def _named(value: object) -> str:
    match value:
        case {"type": "function" | "custom", "name": str(name)}:
            return name
        case _:
            return ""


def _plain_names(names: Iterable[str]) -> list[JsonObject]:
    return [{"type": "function", "name": name} for name in names]


def encode_choice(
    request: ModelRequest, names: ToolNames, losses: Losses, quirks: Quirks, *, own: bool
) -> object | None:
    """The choice as it is sent; None leaves it to the server."""
    choice = request.tool_choice
    if choice is None:
        return None
    form = words(choice.kept)
    if "whole" in form:
        return replay({}, choice.kept)
    if own and "allowed" in form:
        tools = _plain_names(choice.names)
        body = {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
        return replay(body, choice.kept)
    if own and "one" in form:
        kind = "custom" if "custom" in form else "function"
        return replay({"type": kind, "name": "".join(choice.names)}, choice.kept)
    if own:
        return choice.mode
    return _chosen(request, choice, names, losses, quirks)


def _chosen(
    request: ModelRequest, choice: ToolChoice, names: ToolNames, losses: Losses, quirks: Quirks
) -> object | None:
    if not request.tools:
        return None
    one = choice.mode == "required" and len(choice.names) == 1
    subset = bool(choice.names) and choice.mode != "none" and not one
    word = "named" if one else "subset" if subset else choice.mode
    if word not in quirks.tool_choices:
        losses.add("tool_choice", f"{word} choice", "the server does not take this form")
        return "auto" if "auto" in quirks.tool_choices else None
    if not one and not subset:
        return choice.mode
    kinds = {
        tool.name: (tool.namespace, "custom" if isinstance(tool, FreeformTool) else "function")
        for tool in request.tools
        if not isinstance(tool, ServerTool)
    }
    allowed: list[JsonObject] = []
    for name in choice.names:
        namespace, kind = kinds.get(name, ("", "function"))
        allowed.append({"type": kind, "name": names.wire_name(name, namespace)})
    if one:
        return allowed[0]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": allowed}
