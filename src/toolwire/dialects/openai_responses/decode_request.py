"""A body → a request: settings and tools here, the conversation in its own file."""

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
from toolwire.dialects.openai_responses.remembering import joined, remember
from toolwire.dialects.openai_responses.shapes import NAME
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
    ToolChoice,
    ToolSpec,
)
from toolwire.wire.json_access import (
    JsonObject,
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


_SYNTAXES: dict[object, Literal["lark", "regex"]] = {"lark": "lark", "regex": "regex"}


_MODES: dict[object, Literal["auto", "required", "none"]] = {
    "auto": "auto",
    "required": "required",
    "none": "none",
}


def decode_request(body: bytes, model: str = "") -> ModelRequest:
    """A client's request."""
    try:
        raws = _members.decode(whole_characters(body))
        items = _elements(raws.get("input"))
        tools = _elements(raws.get("tools"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the request is no JSON object: {error}") from error
    source: JsonObject = {
        key: parse(bytes(raw), key)
        for key, raw in raws.items()
        if not (key == "input" and items is not None) and not (key == "tools" and tools)
    }
    prompt = source.get("input")
    messages = decode_input(items or ())
    if isinstance(prompt, str):
        messages = (Message(role="user", parts=(Text(prompt),)),)
    instructions = source.get("instructions")
    request = ModelRequest(
        model=text(source.get("model"), "model") or model,
        messages=messages,
        system=(Text(instructions),) if instructions and isinstance(instructions, str) else (),
        tools=decode_tools(tools or ()),
        tool_choice=decode_choice(source.get("tool_choice")),
        parallel_calls=flag(source.get("parallel_tool_calls"), "parallel_tool_calls"),
        max_output_tokens=integer(source.get("max_output_tokens"), "max_output_tokens"),
        temperature=number(source.get("temperature"), "temperature"),
        top_p=number(source.get("top_p"), "top_p"),
        reasoning=_reasoning(source.get("reasoning")),
        output=_output(source.get("text")),
        stream=flag(source.get("stream"), "stream"),
        previous_response_id=text(source.get("previous_response_id"), "previous_response_id"),
    )
    return replace(request, kept=_kept(request, source, listed=items is not None))


def _elements(raw: Raw | None) -> Sequence[Raw] | None:
    if raw is None or bytes(raw)[:1] != b"[":
        return None
    return _list.decode(raw)


def _kept(request: ModelRequest, source: JsonObject, *, listed: bool) -> Kept:
    written = settings_body(request, Losses())
    form = ["request"]
    if isinstance(source.get("input"), str):
        form.append("string")
        written["input"] = source["input"]
    elif not listed:
        written["input"] = []
    if request.tool_choice is not None:
        written["tool_choice"] = source["tool_choice"]
    if request.output is not None:
        rest = {key: value for key, value in source["text"].items() if key != "format"}
        source = {key: value for key, value in source.items() if key != "text"}
        if rest:
            source["text"] = rest
        written.pop("text")
    elif source.get("text") == {}:
        form.append("text={}")
    kept = remember(source, written, form)
    return kept or Kept(dialect=NAME)


def _reasoning(value: Any) -> Reasoning | None:
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value)
    word, summary = source.get("effort"), source.get("summary")
    effort = Effort(word) if isinstance(word, str) and word in _EFFORTS else None
    reasoning = Reasoning(
        enabled=None if effort is None else effort is not Effort.NONE,
        effort=effort,
        visible=True if summary and isinstance(summary, str) else None,
    )
    kept = remember(source, reasoning_body(reasoning, Losses()), ["reasoning"])
    return replace(reasoning, kept=kept)


def _output(value: Any) -> OutputFormat | None:
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value).get("format")
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
    written = format_body(output)
    return replace(output, kept=remember(cast(JsonObject, source), written, ["format"]))


# Tools


def decode_tools(raws: Iterable[Raw]) -> tuple[AnyTool, ...]:
    """The tools of a request, those of a namespace one by one."""
    tools: list[AnyTool] = []
    for place, raw in enumerate(raws):
        data = bytes(raw)
        source = parse_object(data, f"tools[{place}]")
        nested = _namespace(source) if source.get("type") == "namespace" else None
        if nested is not None:
            tools += nested
            continue
        tool = _tool(source)
        if tool is None:
            kind = source.get("type")
            word = kind if isinstance(kind, str) else ""
            tool = ServerTool(dialect=NAME, kind=word, data=data.decode())
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
        return replace(tool, kept=remember(source, function_body(tool, name)))
    if source.get("type") == "custom":
        syntax, grammar = _grammar(source.get("format"))
        free = FreeformTool(
            name=name, description=about, syntax=syntax, grammar=grammar, namespace=namespace
        )
        return replace(free, kept=remember(source, custom_body(free, name)))
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
            written = {"type": "allowed_tools", "mode": mode, "tools": plain_names(choice.names)}
            return replace(choice, kept=remember(source, written, ["allowed"]))
        case _:
            return ToolChoice(kept=Kept(dialect=NAME, fields=dump(source), form="whole"))


def _named(value: object) -> str:
    match value:
        case {"type": "function" | "custom", "name": str(name)}:
            return name
        case _:
            return ""
