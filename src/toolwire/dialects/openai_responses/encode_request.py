"""A request → its body: settings and tools here, the conversation in its own file."""

from collections.abc import Iterable

from msgspec import Raw

from toolwire.dialects import Encoded
from toolwire.dialects.kept import shared
from toolwire.dialects.losses import Losses
from toolwire.dialects.offered_tools import OfferedTools
from toolwire.dialects.openai_responses.encode_messages import encode_input
from toolwire.dialects.openai_responses.remembering import replay, words
from toolwire.dialects.openai_responses.shapes import NAME, NAMES
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.thinking import effort_of
from toolwire.request import (
    AnyTool,
    Effort,
    FreeformTool,
    HttpRequest,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolwire.schema import Profile, convert, is_strict
from toolwire.wire.json_access import JsonObject, encode
from toolwire.wire.names import ToolNames

_written = OfferedTools()


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The request as it goes over the wire, and what it could not carry."""
    own = request.kept is not None and request.kept.dialect == NAME
    losses = Losses()
    losses.foreign(request, NAME)
    names = ToolNames(request.tools, quirks.name_rule or NAMES, keep_namespaces=True)
    body = settings_body(request, losses)
    body["input"] = encode_input(request, names, losses, own=own)
    tools = encode_tools(request, names, losses, quirks, own=own)
    body.update(tools)
    if tools or own:
        choice = encode_choice(request, names, losses, quirks, own=own)
        if choice is not None:
            body["tool_choice"] = choice
    else:
        _report_unused(request, body, losses)
    if own:
        body = _as_it_came(request, body)
    else:
        _fit(request, body, losses, quirks)
        # What stays the same comes first, for caches of requests as they are sent.
        body["input"] = body.pop("input")
    data = encode(body)
    return Encoded(
        http=HttpRequest(path="/responses", body=data), losses=losses.done(), names=names
    )


def _report_unused(request: ModelRequest, body: JsonObject, losses: Losses) -> None:
    """What is said of tools means nothing, and is refused, where none is left."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "required":
        losses.add("tool_choice", choice.mode, "no tool is left to choose from")
    if body.pop("parallel_tool_calls", None) is False:
        losses.add("parallel_calls", "one call at a time", "no tools are sent")


def _as_it_came(request: ModelRequest, body: JsonObject) -> JsonObject:
    if "string" in words(request.kept):
        body["input"] = "".join(message.text for message in request.messages)
    result = replay(body, request.kept)
    if "text" in body and result["text"] is not body["text"]:
        result["text"] = {**result["text"], **body["text"]}
    return result


def settings_body(request: ModelRequest, losses: Losses) -> JsonObject:
    """The members that are neither conversation nor tools."""
    body: JsonObject = {"model": request.model}
    if request.system:
        body["instructions"] = "\n\n".join(part.text for part in request.system)
    for key, value in (
        ("previous_response_id", request.previous_response_id or None),
        ("max_output_tokens", request.max_output_tokens),
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("parallel_tool_calls", request.parallel_calls),
        ("stream", request.stream),
    ):
        if value is not None:
            body[key] = value
    if request.reasoning is not None:
        reasoning = replay(reasoning_body(request.reasoning, losses), request.reasoning.kept)
        if reasoning or words(request.reasoning.kept):
            body["reasoning"] = reasoning
    if request.output is not None:
        body["text"] = {"format": replay(format_body(request.output), request.output.kept)}
    return body


def reasoning_body(reasoning: Reasoning, losses: Losses) -> JsonObject:
    """The `reasoning` member."""
    body: JsonObject = {}
    effort = reasoning.effort
    if effort is None and reasoning.enabled is False:
        effort = Effort.NONE
        losses.add("reasoning.enabled", "thinking switch", "told by effort none")
    if reasoning.budget is not None:
        if effort is None and reasoning.budget >= 0:
            effort = effort_of(reasoning.budget)
        losses.add("reasoning.budget", "thinking budget", "this format knows only effort")
    if effort is not None:
        body["effort"] = effort.value
    elif reasoning.enabled:
        losses.add("reasoning.enabled", "thinking switch", "the model decides without an effort")
    if reasoning.visible:
        body["summary"] = "auto"
    elif reasoning.visible is False:
        losses.add("reasoning.visible", "hidden thoughts", "thoughts are hidden unless asked for")
    return body


def format_body(output: OutputFormat) -> JsonObject:
    """The `text.format` member."""
    match output.kind:
        case "text":
            return {"type": "text"}
        case "json":
            return {"type": "json_object"}
        case _:
            body: JsonObject = {"type": "json_schema"}
            if output.schema is not None:
                body["schema"] = output.schema
            if output.name:
                body["name"] = output.name
            if output.strict is not None:
                body["strict"] = output.strict
            return body


def _fit(request: ModelRequest, body: JsonObject, losses: Losses, quirks: Quirks) -> None:
    """What an agent wants by default, and what a vendor does not take."""
    for number_, part in enumerate(request.system):
        if part.cache is not None:
            losses.add(f"system[{number_}].cache", "cache mark", "this format caches by itself")
    for path, value in (
        ("top_k", request.top_k),
        ("frequency_penalty", request.frequency_penalty),
        ("presence_penalty", request.presence_penalty),
        ("seed", request.seed),
        ("stop", request.stop or None),
    ):
        if value is not None:
            losses.add(path, path, "this format has no such setting")
    if not quirks.sampling:
        for path in ("temperature", "top_p"):
            if body.pop(path, None) is not None:
                losses.add(path, path, "the server rejects it")
    if not quirks.parallel_flag and body.pop("parallel_tool_calls", None) is not None:
        losses.add("parallel_calls", "parallel calls", "the server does not know the setting")
    if request.output is not None and request.output.kind == "json_schema":
        shape = body["text"]["format"]
        shape.setdefault("name", "answer")
        shape.setdefault("schema", {"type": "object"})
    said = shared(request.kept, NAME)
    verbosity = said.pop("verbosity", None)
    if verbosity is not None:
        body["text"] = {**body.get("text", {}), "verbosity": verbosity}
    body |= said
    if not body.setdefault("store", quirks.store):
        body["include"] = ["reasoning.encrypted_content"]
    elif "store" not in said:
        del body["store"]


# Tools


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
        return replay(custom_body(tool, name), tool.kept)
    body = replay(function_body(tool, name), tool.kept)
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


def function_body(tool: ToolSpec, name: str) -> JsonObject:
    """A function tool as it is offered."""
    body: JsonObject = {"type": "function", "name": name, "parameters": tool.parameters}
    if tool.description:
        body["description"] = tool.description
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body


def custom_body(tool: FreeformTool, name: str) -> JsonObject:
    """A freeform tool as it is offered."""
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
        tools = plain_names(choice.names)
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


def plain_names(names: Iterable[str]) -> list[JsonObject]:
    """Tools of a choice by name, as functions."""
    return [{"type": "function", "name": name} for name in names]
