"""A client's chat request → values: settings and tools."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from toolwire.dialects.openai_chat.decode_messages import decode_messages
from toolwire.dialects.openai_chat.shapes import NAME, pack, take_cache
from toolwire.messages import Kept
from toolwire.request import (
    AnyTool,
    Effort,
    FreeformTool,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    Source,
    ToolChoice,
    ToolSpec,
)
from toolwire.wire.json_access import dump, flag, integer, number, parse_object
from toolwire.wire.surrogates import whole_characters

_Value = TypeVar("_Value")
_EFFORTS = frozenset(effort.value for effort in Effort)


def decode_request(body: bytes, model: str = "") -> ModelRequest:
    """The values of a client's request; members without one, and nulls, are stored beside them."""
    wire = parse_object(whole_characters(body), "request")
    source = Source(NAME, wire)
    rest = dict(wire)
    messages = decode_messages(rest.pop("messages", []), source)
    named = rest.get("model")
    if isinstance(named, str) and named:
        model = rest.pop("model")
    tools = _read_tools(rest, source)
    choice = _read_choice(rest)
    request = ModelRequest(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_calls=_take(rest, "parallel_tool_calls", flag),
        max_output_tokens=_spelled(rest, ("max_completion_tokens", "max_tokens"), integer),
        temperature=_take(rest, "temperature", number),
        top_p=_take(rest, "top_p", number),
        top_k=_take(rest, "top_k", number),
        frequency_penalty=_take(rest, "frequency_penalty", number),
        presence_penalty=_take(rest, "presence_penalty", number),
        seed=_spelled(rest, ("seed", "random_seed"), integer),
        stop=_stop(rest),
        reasoning=_reasoning(rest),
        output=_output(rest),
        stream=_take(rest, "stream", flag),
        kept=Kept(dialect=NAME, fields=dump(rest)),
        source=source,
    )
    source.record(request)
    return request


def _take(rest: JsonObject, key: str, read: Callable[[Any, str], _Value | None]) -> _Value | None:
    value = read(rest.get(key), key)
    if value is not None:
        del rest[key]
    return value


def _spelled(
    rest: JsonObject,
    keys: tuple[str, ...],
    read: Callable[[Any, str], _Value | None],
) -> _Value | None:
    """The first of several spellings; a second one stays in `rest`."""
    for key in keys:
        value = _take(rest, key, read)
        if value is not None:
            return value
    return None


def _stop(rest: JsonObject) -> tuple[str, ...]:
    value = rest.get("stop")
    if isinstance(value, str):
        del rest["stop"]
        return (value,)
    if value and isinstance(value, list):
        items = cast(list[Any], value)
        if all(isinstance(item, str) for item in items):
            del rest["stop"]
            return tuple(items)
    return ()


def _reasoning(rest: JsonObject) -> Reasoning | None:
    """The first of the ways to request thinking; the others stay in `rest`."""
    effort = rest.get("reasoning_effort")
    if effort in _EFFORTS:
        del rest["reasoning_effort"]
        return Reasoning(effort=Effort(effort))
    match rest.get("reasoning"):
        case {**members} if members:
            del rest["reasoning"]
            return _reasoning_object(members)
        case _:
            pass
    match rest.get("thinking"):
        case {"type": "enabled" | "disabled" as state, **others}:
            del rest["thinking"]
            return Reasoning(enabled=state == "enabled", kept=pack(others))
        case _:
            pass
    if isinstance(rest.get("enable_thinking"), bool):
        return Reasoning(enabled=rest.pop("enable_thinking"))
    return None


def _reasoning_object(members: JsonObject) -> Reasoning:
    """OpenRouter's `reasoning` object."""
    effort = members.pop("effort") if members.get("effort") in _EFFORTS else None
    budget = members.get("max_tokens")
    if isinstance(budget, int) and not isinstance(budget, bool):
        del members["max_tokens"]
    else:
        budget = None
    enabled = members.pop("enabled") if isinstance(members.get("enabled"), bool) else None
    hidden = members.pop("exclude") if isinstance(members.get("exclude"), bool) else None
    return Reasoning(
        enabled=enabled,
        effort=Effort(effort) if effort else None,
        budget=budget,
        visible=None if hidden is None else not hidden,
        kept=pack(members),
    )


def _output(rest: JsonObject) -> OutputFormat | None:
    found: OutputFormat | None = None
    match rest.get("response_format"):
        case {"type": "text", **others} if not others:
            found = OutputFormat(kind="text")
        case {"type": "json_object", **others} if not others:
            found = OutputFormat(kind="json")
        case {"type": "json_schema", "json_schema": {**inner}, **others} if not others:
            found = _schema(inner)
        case _:
            pass
    if found is not None:
        del rest["response_format"]
    return found


def _schema(inner: JsonObject) -> OutputFormat:
    schema = inner.get("schema")
    if isinstance(schema, dict):
        del inner["schema"]
    else:
        schema = None
    name = inner.get("name")
    if isinstance(name, str) and name:
        del inner["name"]
    else:
        name = ""
    strict = inner.pop("strict") if isinstance(inner.get("strict"), bool) else None
    return OutputFormat(
        kind="json_schema",
        schema=cast("JsonObject | None", schema),
        name=name,
        strict=strict,
        kept=pack(inner),
    )


def _read_tools(rest: JsonObject, source: Source) -> tuple[AnyTool, ...]:
    """Takes `tools` and the older `functions` out of `rest`."""
    tools: list[AnyTool] = []
    for member in ("tools", "functions"):
        entries = rest.get(member)
        if entries and isinstance(entries, list):
            del rest[member]
            for entry in cast(list[Any], entries):
                tools.append(_legacy(entry) if member == "functions" else _tool(entry))
                source.add(tools[-1], (member, entry))
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


def _server_tool(entry: Any, kind: str = "") -> ServerTool:
    word = cast(JsonObject, entry).get("type") if isinstance(entry, dict) else None
    kind = kind or (word if isinstance(word, str) else "tool")
    return ServerTool(dialect=NAME, kind=kind, data=dump(entry))


def _legacy(entry: Any) -> AnyTool:
    if isinstance(entry, dict):
        spec = _spec(dict(cast(JsonObject, entry)), {})
        if spec is not None:
            return spec
    return _server_tool(entry, "functions")


def _function(tool: JsonObject, inner: JsonObject) -> ToolSpec | None:
    rest = {key: value for key, value in tool.items() if key not in ("type", "function")}
    return _spec(dict(inner), rest)


def _spec(inner: JsonObject, rest: JsonObject) -> ToolSpec | None:
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
        kept=pack(rest, inner),
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
        kept=pack(rest, inner),
    )


def _read_choice(rest: JsonObject) -> ToolChoice | None:
    """Takes `tool_choice` or the older `function_call` out of `rest`; an unknown form stays."""
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
            return ToolChoice(mode="required")
        case {"type": "function" | "custom" as kind, **others} if set(others) == {kind}:
            return _named(others[kind])
        case {"function": inner, **others} if not others:
            return _named(inner)
        case {"type": "allowed_tools", "allowed_tools": inner, **others} if not others:
            return _allowed(inner)
        case _:
            return None


def _named(inner: Any) -> ToolChoice | None:
    match inner:
        case {"name": str(name), **others} if not others:
            return ToolChoice(mode="required", names=(name,))
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
            return ToolChoice(mode=mode, names=tuple(names)) if names else None
        case _:
            return None


def _legacy_choice(value: Any) -> ToolChoice | None:
    match value:
        case "auto" | "none":
            return ToolChoice(mode=value)
        case {"name": str(name), **others} if not others:
            return ToolChoice(mode="required", names=(name,))
        case _:
            return None
