"""A body → a request: settings and tools."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_responses.decode_messages import decode_input
from toolwire.dialects.openai_responses.encode_request import (
    custom_body,
    format_body,
    function_body,
    plain_names,
    reasoning_body,
    settings_body,
)
from toolwire.dialects.openai_responses.shapes import ITEM, NAME, Span, extra_members, joined
from toolwire.dialects.tools import ReceivedTools
from toolwire.errors import BadInput
from toolwire.messages import Kept, Message, Text
from toolwire.request import (
    AnyTool,
    Effort,
    FreeformTool,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    Source,
    ToolChoice,
    ToolSpec,
)
from toolwire.wire.json_access import (
    JsonObject,
    check_type,
    dump,
    flag,
    integer,
    number,
    parse,
    parse_object,
    text,
)
from toolwire.wire.surrogates import whole_characters

_members = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])
_EFFORTS = frozenset(Effort)
_received = ReceivedTools()
_SYNTAXES: dict[object, Literal["lark", "regex"]] = {"lark": "lark", "regex": "regex"}
_MODES: dict[object, Literal["auto", "required", "none"]] = {
    "auto": "auto",
    "required": "required",
    "none": "none",
}


def decode_request(data: bytes, model: str = "") -> ModelRequest:
    """A client's request."""
    try:
        raws = _members.decode(whole_characters(data))
        items = _elements(raws.get("input"))
        tools = _tool_elements(raws.get("tools"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the request is not a JSON object: {error}") from error
    body: JsonObject = {
        key: parse(bytes(raw), key)
        for key, raw in raws.items()
        if not (key == "input" and items is not None) and not (key == "tools" and tools)
    }
    source = Source(NAME, dict(raws))
    messages: tuple[Message, ...] = ()
    if items is not None:
        messages, source.body["input"] = decode_input(items, source)
    elif body.get("input") is not None:
        messages = (Message(role="user", parts=(Text(text(body["input"], "input")),)),)
    instructions = body.get("instructions")
    request = ModelRequest(
        model=text(body.get("model"), "model") or model,
        messages=messages,
        system=(Text(instructions),) if instructions and isinstance(instructions, str) else (),
        tools=_received.read(tools, source, lambda own: decode_tools(tools or (), own)),
        tool_choice=decode_choice(body.get("tool_choice")),
        parallel_calls=flag(body.get("parallel_tool_calls"), "parallel_tool_calls"),
        max_output_tokens=integer(body.get("max_output_tokens"), "max_output_tokens"),
        temperature=number(body.get("temperature"), "temperature"),
        top_p=number(body.get("top_p"), "top_p"),
        reasoning=_reasoning(body.get("reasoning")),
        output=_output(body.get("text")),
        stream=flag(body.get("stream"), "stream"),
        previous_response_id=text(body.get("previous_response_id"), "previous_response_id"),
        source=source,
    )
    request = replace(request, kept=_kept(request, body))
    source.record(request)
    return request


def _elements(raw: Raw | None) -> Sequence[Raw] | None:
    if raw is None or bytes(raw)[:1] != b"[":
        return None
    return _list.decode(raw)


def _tool_elements(raw: Raw | None) -> Sequence[Raw] | None:
    if raw is None:
        return None
    # A copy: what the cache holds must not keep the whole body alive.
    return _received.value(bytes(raw), lambda given: _elements(Raw(given)))


def _kept(request: ModelRequest, body: JsonObject) -> Kept:
    written = settings_body(request, Losses())
    written["input"] = body.get("input") if isinstance(body.get("input"), str) else []
    if request.tool_choice is not None:
        written["tool_choice"] = body["tool_choice"]
    if request.reasoning is not None:
        written["reasoning"] = body["reasoning"]
    if request.output is not None:
        written.pop("text")
        rest = {key: value for key, value in body["text"].items() if key != "format"}
        body = {**body, "text": rest}
    return extra_members(body, written) or Kept(dialect=NAME)


def _reasoning(value: Any) -> Reasoning | None:
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value)
    word = text(source.get("effort"), "reasoning.effort")
    summary = text(source.get("summary"), "reasoning.summary")
    effort = Effort(word) if word in _EFFORTS else None
    reasoning = Reasoning(
        enabled=None if effort is None else effort is not Effort.NONE,
        effort=effort,
        visible=True if summary else None,
    )
    return replace(reasoning, kept=extra_members(source, reasoning_body(reasoning, Losses())))


def _output(value: Any) -> OutputFormat | None:
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value).get("format")
    check_type(source, "text.format")
    match source:
        case {"type": "text"}:
            output = OutputFormat(kind="text")
        case {"type": "json_object"}:
            output = OutputFormat(kind="json")
        case {"type": "json_schema"}:
            body = cast(JsonObject, source)
            schema, name, strict = body.get("schema"), body.get("name"), body.get("strict")
            output = OutputFormat(
                kind="json_schema",
                schema=cast(JsonObject, schema) if isinstance(schema, dict) else None,
                name=name if isinstance(name, str) else "",
                strict=strict if isinstance(strict, bool) else None,
            )
        case _:
            return None
    return replace(output, kept=extra_members(cast(JsonObject, source), format_body(output)))


def decode_tools(raws: Iterable[Raw], source: Source) -> tuple[AnyTool, ...]:
    """The tools of a request, those of a namespace one by one."""
    tools: list[AnyTool] = []
    for index, raw in enumerate(raws):
        body = parse_object(bytes(raw), f"tools[{index}]")
        kind = text(body.get("type"), f"tools[{index}].type")
        found = _namespace(body) if kind == "namespace" else None
        if found is None:
            tool = _tool(body) or ServerTool(dialect=NAME, kind=kind, data=bytes(raw).decode())
            found = (tool,)
        source.add(found[0], Span(raw, found))
        tools += found
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
        return replace(tool, kept=extra_members(source, function_body(tool, name)))
    if source.get("type") == "custom":
        syntax, grammar = _grammar(source.get("format"))
        free = FreeformTool(
            name=name, description=about, syntax=syntax, grammar=grammar, namespace=namespace
        )
        return replace(free, kept=extra_members(source, custom_body(free, name)))
    return None


def _grammar(value: object) -> tuple[Literal["", "lark", "regex"], str]:
    match value:
        case {"type": "grammar", "syntax": str(syntax), "definition": str(text)}:
            if syntax in _SYNTAXES:
                return _SYNTAXES[syntax], text
        case _:
            pass
    return "", ""


def _namespace(source: JsonObject) -> tuple[ToolSpec | FreeformTool, ...] | None:
    name, nested = source.get("name"), source.get("tools")
    if not isinstance(name, str) or not name or not isinstance(nested, list) or not nested:
        return None
    tools: list[ToolSpec | FreeformTool] = []
    for inner in cast(list[object], nested):
        tool = _tool(cast(JsonObject, inner), name) if isinstance(inner, dict) else None
        if tool is None:
            return None
        tools.append(tool)
    written: JsonObject = {"type": "namespace", "name": name, "tools": source["tools"]}
    around = extra_members(source, written, ITEM)
    tools[0] = replace(tools[0], kept=joined(tools[0].kept, around))
    return tuple(tools)


def decode_choice(value: object) -> ToolChoice | None:
    """The tool choice; one of an unknown type is stored whole."""
    if isinstance(value, str) and value in _MODES:
        return ToolChoice(mode=_MODES[value])
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value)
    check_type(source, "tool_choice")
    match source:
        case {"type": "function" | "custom" as kind, "name": str(name)}:
            choice = ToolChoice(mode="required", names=(name,))
            written: JsonObject = {"type": kind, "name": name}
            return replace(choice, kept=extra_members(source, written))
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list()}:
            found = cast(list[object], source["tools"])
            choice = ToolChoice(mode=mode, names=tuple(filter(None, map(_named, found))))
            written = {"type": "allowed_tools", "mode": mode, "tools": plain_names(choice.names)}
            return replace(choice, kept=extra_members(source, written))
        case _:
            return ToolChoice(kept=Kept(dialect=NAME, fields=dump(source)))


def _named(value: object) -> str:
    match value:
        case {"type": "function" | "custom", "name": str(name)}:
            return name
        case _:
            return ""
