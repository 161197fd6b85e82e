"""A client's chat request → values: settings and tools."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from toolwire.dialects.openai_chat.decode_messages import decode_messages
from toolwire.dialects.openai_chat.shapes import (
    NAME,
    pack,
    take_cache,
    take_flag,
    take_text,
    take_word,
)
from toolwire.dialects.tools import ReceivedTools
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
from toolwire.wire.json_access import check_type, dump, flag, integer, number, text

_Value = TypeVar("_Value")
_EFFORTS = frozenset(effort.value for effort in Effort)
_received = ReceivedTools()


def decode_request(body: bytes, model: str = "") -> ModelRequest:
    """The values of a client's request; members without one, and nulls, are stored beside them."""
    wire, _ = _received.members(body, "request")
    source = Source(NAME, wire)
    rest = dict(wire)
    messages = decode_messages(rest.pop("messages", []), source)
    request = ModelRequest(
        model=take_word(rest, "model", "") or model,
        messages=messages,
        tools=_read_tools(rest, source),
        tool_choice=_read_choice(rest),
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
    effort = _take_effort(rest, "reasoning_effort", "reasoning_effort")
    if effort is not None:
        return Reasoning(effort=effort)
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
    enabled = take_flag(rest, "enable_thinking")
    return None if enabled is None else Reasoning(enabled=enabled)


def _take_effort(rest: JsonObject, key: str, path: str) -> Effort | None:
    effort = text(rest.get(key), path)
    if effort not in _EFFORTS:
        return None
    del rest[key]
    return Effort(effort)


def _reasoning_object(members: JsonObject) -> Reasoning:
    """OpenRouter's `reasoning` object."""
    effort = _take_effort(members, "effort", "reasoning.effort")
    budget = members.get("max_tokens")
    if isinstance(budget, int) and not isinstance(budget, bool):
        del members["max_tokens"]
    else:
        budget = None
    hidden = take_flag(members, "exclude")
    return Reasoning(
        enabled=take_flag(members, "enabled"),
        effort=effort,
        budget=budget,
        visible=None if hidden is None else not hidden,
        kept=pack(members),
    )


def _output(rest: JsonObject) -> OutputFormat | None:
    found: OutputFormat | None = None
    check_type(rest.get("response_format"), "response_format")
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
    schema = inner.pop("schema") if isinstance(inner.get("schema"), dict) else None
    return OutputFormat(
        kind="json_schema",
        schema=cast("JsonObject | None", schema),
        name=take_text(inner, "name"),
        strict=take_flag(inner, "strict"),
        kept=pack(inner),
    )


def _read_tools(rest: JsonObject, source: Source) -> tuple[AnyTool, ...]:
    """Takes `tools` and the older `functions` out of `rest`."""
    tools: list[AnyTool] = []
    for member in ("tools", "functions"):
        entries = rest.get(member)
        if entries and isinstance(entries, list):
            del rest[member]
            given = cast(list[Any], entries)
            tools += _received.read(given, source, _reading(member, given))
    return tuple(tools)


def _reading(member: str, entries: list[Any]) -> Callable[[Source], tuple[AnyTool, ...]]:
    def read(source: Source) -> tuple[AnyTool, ...]:
        tools: list[AnyTool] = []
        for at, entry in enumerate(entries):
            check_type(entry, f"{member}[{at}]")
            tools.append(_legacy(entry) if member == "functions" else _tool(entry))
            source.add(tools[-1], (member, entry))
        return tuple(tools)

    return read


def _tool(entry: Any) -> AnyTool:
    if isinstance(entry, dict):
        tool = cast(JsonObject, entry)
        kind = tool.get("type", "function")
        inner = tool.get(kind or "")
        if kind in ("function", "custom") and isinstance(inner, dict):
            rest = {key: value for key, value in tool.items() if key not in ("type", kind)}
            read = _spec if kind == "function" else _custom
            return read(dict(cast(JsonObject, inner)), rest) or _server_tool(entry)
    return _server_tool(entry)


def _server_tool(entry: Any, kind: str = "") -> ServerTool:
    word = cast(JsonObject, entry).get("type") if isinstance(entry, dict) else None
    return ServerTool(dialect=NAME, kind=kind or word or "tool", data=dump(entry))


def _legacy(entry: Any) -> AnyTool:
    if isinstance(entry, dict):
        spec = _spec(dict(cast(JsonObject, entry)), {})
        if spec is not None:
            return spec
    return _server_tool(entry, "functions")


def _spec(inner: JsonObject, rest: JsonObject) -> ToolSpec | None:
    name = inner.pop("name", None)
    if not isinstance(name, str):
        return None
    parameters = inner.get("parameters")
    if isinstance(parameters, dict) and parameters:
        del inner["parameters"]
    else:
        parameters = {}
    return ToolSpec(
        name=name,
        description=take_text(inner, "description"),
        parameters=cast(JsonObject, parameters),
        strict=take_flag(inner, "strict"),
        cache=take_cache(rest),
        kept=pack(rest, inner),
    )


def _custom(inner: JsonObject, rest: JsonObject) -> FreeformTool | None:
    name = inner.pop("name", None)
    if not isinstance(name, str):
        return None
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
    return FreeformTool(
        name=name,
        description=take_text(inner, "description"),
        syntax=syntax,
        grammar=grammar,
        kept=pack(rest, inner),
    )


def _read_choice(rest: JsonObject) -> ToolChoice | None:
    """Takes `tool_choice` or the older `function_call` out of `rest`; an unknown form stays."""
    for member, read in (("tool_choice", _choice), ("function_call", _legacy_choice)):
        check_type(rest.get(member), member)
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
