"""Tools and tool choice of a chat request, read."""

from typing import Any, Literal, cast

from toolwire.dialects.openai_chat.leftovers import gather, take_cache
from toolwire.dialects.openai_chat.wire import NAME
from toolwire.request import AnyTool, FreeformTool, JsonObject, ServerTool, ToolChoice, ToolSpec
from toolwire.wire.json_access import dump


def read_tools(rest: JsonObject) -> tuple[AnyTool, ...]:
    """Takes `tools` and the older `functions` out of a request."""
    tools: list[AnyTool] = []
    for member in ("tools", "functions"):
        entries = rest.get(member)
        if entries and isinstance(entries, list):
            del rest[member]
            for entry in cast(list[Any], entries):
                tools.append(_legacy(entry) if member == "functions" else _tool(entry))
    return tuple(tools)


def _tool(entry: Any) -> AnyTool:
    if isinstance(entry, dict):
        tool = cast(JsonObject, entry)
        inner = tool.get("function")
        if tool.get("type", "function") == "function" and isinstance(inner, dict):
            return _function(tool, cast(JsonObject, inner)) or _server_tool(entry)
        inner = tool.get("custom")
        if tool.get("type") == "custom" and isinstance(inner, dict):
            return _custom(tool, cast(JsonObject, inner)) or _server_tool(entry)
    return _server_tool(entry)


def _server_tool(entry: Any, form: str = "") -> ServerTool:
    kind = cast(JsonObject, entry).get("type") if isinstance(entry, dict) else None
    word = kind if isinstance(kind, str) else "tool"
    return ServerTool(dialect=NAME, kind=form or word, data=dump(entry))


def _legacy(entry: Any) -> AnyTool:
    if isinstance(entry, dict):
        spec = _spec(dict(cast(JsonObject, entry)), {}, ["functions"])
        if spec is not None:
            return spec
    return _server_tool(entry, "functions")


def _function(tool: JsonObject, inner: JsonObject) -> ToolSpec | None:
    rest = {key: value for key, value in tool.items() if key not in ("type", "function")}
    return _spec(dict(inner), rest, [] if "type" in tool else ["typeless"])


def _spec(inner: JsonObject, rest: JsonObject, words: list[str]) -> ToolSpec | None:
    name = inner.pop("name", None)
    if not isinstance(name, str):
        return None
    description = inner.get("description")
    if isinstance(description, str) and description:
        del inner["description"]
    else:
        description = ""
    parameters = inner.get("parameters")
    if isinstance(parameters, dict) and parameters:
        del inner["parameters"]
    else:
        parameters = {}
    strict = inner.get("strict")
    if isinstance(strict, bool):
        del inner["strict"]
    else:
        strict = None
    cache = take_cache(rest)
    return ToolSpec(
        name=name,
        description=description,
        parameters=cast(JsonObject, parameters),
        strict=strict,
        cache=cache,
        kept=gather(rest, inner, words),
    )


def _custom(tool: JsonObject, custom: JsonObject) -> FreeformTool | None:
    inner = dict(custom)
    name = inner.pop("name", None)
    if not isinstance(name, str):
        return None
    description = inner.get("description")
    if isinstance(description, str) and description:
        del inner["description"]
    else:
        description = ""
    syntax: Literal["", "lark", "regex"] = ""
    grammar = ""
    match inner.get("format"):
        case {
            "type": "grammar",
            "grammar": {"syntax": "lark" | "regex" as found, "definition": str(text), **more},
            **others,
        } if not more and not others:
            syntax, grammar = found, text
            del inner["format"]
        case _:
            pass
    rest = {key: value for key, value in tool.items() if key not in ("type", "custom")}
    return FreeformTool(
        name=name,
        description=description,
        syntax=syntax,
        grammar=grammar,
        kept=gather(rest, inner),
    )


def read_choice(rest: JsonObject) -> ToolChoice | None:
    """Takes `tool_choice` or the older `function_call` out; an unknown form stays."""
    for member, read in (("tool_choice", _choice), ("function_call", _legacy_choice)):
        choice = read(rest.get(member))
        if choice is not None:
            del rest[member]
            return choice
    return None


def _choice(value: Any) -> ToolChoice | None:
    match value:
        case "auto" | "none" | "required":
            return ToolChoice(mode=value)
        case "any":
            return ToolChoice(mode="required", kept=gather({}, words=["any"]))
        case {"type": "function" | "custom" as kind, **others} if set(others) == {kind}:
            return _named(others[kind], [])
        case {"function": inner, **others} if not others:
            return _named(inner, ["typeless"])
        case {"type": "allowed_tools", "allowed_tools": inner, **others} if not others:
            return _allowed(inner)
        case _:
            return None


def _named(inner: Any, words: list[str]) -> ToolChoice | None:
    match inner:
        case {"name": str(name), **others} if not others:
            kept = gather({}, words=["named", *words])
            return ToolChoice(mode="required", names=(name,), kept=kept)
        case _:
            return None


def _allowed(inner: Any) -> ToolChoice | None:
    match inner:
        case {"mode": "auto" | "required" as mode, "tools": [*tools], **others} if not others:
            names: list[str] = []
            for tool in tools:
                match tool:
                    case {"type": "function", "function": {"name": str(name), **inner}, **outer}:
                        pass
                    case {"type": "custom", "custom": {"name": str(name), **inner}, **outer}:
                        pass
                    case _:
                        return None
                if inner or outer:
                    return None
                names.append(name)
            kept = gather({}, words=["allowed_tools"])
            return ToolChoice(mode=mode, names=tuple(names), kept=kept) if names else None
        case _:
            return None


def _legacy_choice(value: Any) -> ToolChoice | None:
    kept = gather({}, words=["function_call"])
    match value:
        case "auto" | "none":
            return ToolChoice(mode=value, kept=kept)
        case {"name": str(name), **others} if not others:
            return ToolChoice(mode="required", names=(name,), kept=kept)
        case _:
            return None
