"""A request → its body: settings and tools."""

from collections.abc import Iterable

from msgspec import Raw

from toolwire.dialects import Encoded
from toolwire.dialects.losses import Losses, kept_member, restore, shared
from toolwire.dialects.openai_responses.encode_messages import InputTerms, encode_input
from toolwire.dialects.openai_responses.shapes import (
    ANY_NAME,
    ITEM,
    NAME,
    NAMES,
    unchanged_span,
    with_extra,
)
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.dialects.tools import OfferedTools, openai_output
from toolwire.request import (
    NO_SOURCE,
    AnyTool,
    Effort,
    FreeformTool,
    HttpRequest,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    Source,
    ToolSpec,
    effort_of,
)
from toolwire.schema import Profile, convert, is_strict
from toolwire.wire.json_access import JsonObject, encode, list_or_empty, object_or_empty, parse
from toolwire.wire.names import ToolNames

_written = OfferedTools()
_ENCRYPTED = "reasoning.encrypted_content"
_LEAST_OUTPUT = 16
"""`max_output_tokens` below this is answered with 400."""
_FIELDS = {
    "model": ("model",),
    "instructions": ("system",),
    "input": ("messages",),
    "tools": ("tools",),
    "tool_choice": ("tool_choice", "tools"),
    "parallel_tool_calls": ("parallel_calls", "tools"),
    "previous_response_id": ("previous_response_id",),
    "max_output_tokens": ("max_output_tokens",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "stream": ("stream",),
    "reasoning": ("reasoning",),
    "text": ("output",),
}
"""The members of a body, and what of a request they are written from."""


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The encoded request, and what it could not carry."""
    own = request.source.dialect == NAME
    source = request.source if own else NO_SOURCE
    unchanged = _unchanged(request, quirks) if own else frozenset[str]()
    losses = Losses()
    losses.foreign(request, NAME)
    rule = quirks.name_rule or (ANY_NAME if own else NAMES)
    names = ToolNames(request.tools, rule, keep_namespaces=True)
    body = settings_body(request, losses, unchanged)
    offered = bool(request.tools)
    if "tools" not in unchanged:
        tools = encode_tools(request, source, names, losses, quirks)
        offered = bool(tools)
        body.update(tools)
    if not offered:
        _report_unused(request, body, unchanged, losses)
    elif "tool_choice" not in unchanged:
        choice = encode_choice(request, names, losses, quirks)
        if choice is not None:
            body["tool_choice"] = choice
    _check(request, body, losses, quirks)
    if not own:
        _add_defaults(request, body, quirks)
    # Members that stay the same come first: some caches compare the start of a body.
    if "input" not in unchanged:
        renamed = quirks.name_rule is not None
        stored = own or body.get("store", True)
        terms = InputTerms(names, losses, source, renamed=renamed, stored=stored)
        body["input"] = encode_input(request, terms)
    merged = _merged(source.body, body, unchanged)
    if quirks.encrypted_reasoning is False:
        _drop_encrypted(merged, losses)
    http = HttpRequest(path="/responses", body=encode(merged))
    return Encoded(http=http, losses=losses.done(), names=names)


def _drop_encrypted(body: JsonObject, losses: Losses) -> None:
    """Drops and reports a request for encrypted reasoning, which models without any reject."""
    included = body.get("include")
    if isinstance(included, Raw):
        included = parse(bytes(included), "include")
    included = list_or_empty(included)
    if _ENCRYPTED in included:
        losses.add("include", _ENCRYPTED, "the model does not reason")
        body["include"] = [name for name in included if name != _ENCRYPTED]


def _unchanged(request: ModelRequest, quirks: Quirks) -> frozenset[str]:
    """The members that are sent as they came: not changed since, and no quirk concerns them."""
    concerned: set[str] = set()
    if quirks.name_rule is not None:
        concerned |= {"input", "tools", "tool_choice"}
    if quirks.tool_choices != DEFAULT.tool_choices:
        concerned.add("tool_choice")
    if not quirks.sampling:
        concerned |= {"temperature", "top_p"}
    if not quirks.parallel_flag:
        concerned.add("parallel_tool_calls")
    source = request.source
    return frozenset(
        key
        for key, fields in _FIELDS.items()
        if key not in concerned and source.unchanged(request, *fields)
    )


def _merged(came: JsonObject, written: JsonObject, unchanged: frozenset[str]) -> JsonObject:
    """The members that came and are unchanged or unknown to us, with what we wrote."""
    merged: JsonObject = {}
    for key, value in came.items():
        if key in unchanged or key not in _FIELDS:
            merged[key] = value
        elif key in written:
            merged[key] = written[key]
    return merged | written


def _report_unused(
    request: ModelRequest, body: JsonObject, unchanged: frozenset[str], losses: Losses
) -> None:
    """Drops and reports settings of tools, which the server rejects without any tool."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "required" and "tool_choice" not in unchanged:
        losses.add("tool_choice", choice.mode, "no tool is left to choose from")
    if body.pop("parallel_tool_calls", None) is False:
        losses.add("parallel_calls", "one call at a time", "no tools are sent")


def settings_body(
    request: ModelRequest, losses: Losses, unchanged: frozenset[str] = frozenset()
) -> JsonObject:
    """The members that are neither conversation nor tools, but for the unchanged ones."""
    instructions = "\n\n".join(part.text for part in request.system)
    values: JsonObject = {
        "model": request.model,
        "instructions": instructions if request.system else None,
        "previous_response_id": request.previous_response_id or None,
        "max_output_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "parallel_tool_calls": request.parallel_calls,
        "stream": request.stream,
    }
    body = {
        key: value for key, value in values.items() if value is not None and key not in unchanged
    }
    if request.reasoning is not None and "reasoning" not in unchanged:
        reasoning = with_extra(reasoning_body(request.reasoning, losses), request.reasoning.kept)
        if reasoning:
            body["reasoning"] = reasoning
    if "text" not in unchanged:
        shape = openai_output(request, losses)
        found = {} if shape is None else {"format": with_extra(format_body(shape), shape.kept)}
        found = {**object_or_empty(kept_member(request.kept, NAME, "text")), **found}
        if found:
            body["text"] = found
    return body


def reasoning_body(reasoning: Reasoning, losses: Losses) -> JsonObject:
    """The `reasoning` member."""
    body: JsonObject = {}
    effort = reasoning.effort
    if effort is None and reasoning.enabled is False:
        effort = Effort.NONE
        losses.add("reasoning.enabled", "thinking switch", "sent as effort none")
    if reasoning.budget is not None:
        if effort is None and reasoning.budget >= 0:
            effort = effort_of(reasoning.budget)
        losses.add("reasoning.budget", "thinking budget", "this format has only an effort")
    if effort is not None:
        body["effort"] = effort.value
    elif reasoning.enabled:
        losses.add("reasoning.enabled", "thinking switch", "the model decides without an effort")
    if reasoning.visible:
        body["summary"] = kept_member(reasoning.kept, NAME, "summary") or "auto"
    elif reasoning.visible is False:
        losses.add("reasoning.visible", "hidden thoughts", "thoughts are hidden unless requested")
    return body


def format_body(output: OutputFormat) -> JsonObject:
    """The `text.format` member."""
    match output.kind:
        case "text":
            return {"type": "text"}
        case "json":
            return {"type": "json_object"}
        case _:
            body: JsonObject = {
                "type": "json_schema",
                "schema": {"type": "object"} if output.schema is None else output.schema,
                "name": output.name or "answer",
            }
            if output.strict is not None:
                body["strict"] = output.strict
            return body


def _check(request: ModelRequest, body: JsonObject, losses: Losses, quirks: Quirks) -> None:
    """Drops or raises, and reports, what the format or the server rejects."""
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
    if body.get("max_output_tokens", _LEAST_OUTPUT) < _LEAST_OUTPUT:
        why = f"raised to {_LEAST_OUTPUT}, the least that the server takes"
        losses.add("max_output_tokens", f"limit of {body['max_output_tokens']} tokens", why)
        body["max_output_tokens"] = _LEAST_OUTPUT
    if not quirks.sampling:
        for path in ("temperature", "top_p"):
            if body.pop(path, None) is not None:
                losses.add(path, path, "the server rejects it")
    if not quirks.parallel_flag and body.pop("parallel_tool_calls", None) is not None:
        losses.add("parallel_calls", "parallel calls", "the server rejects the setting")


def _add_defaults(request: ModelRequest, body: JsonObject, quirks: Quirks) -> None:
    """Adds what an agent needs, and settings of the vendor's other format."""
    found = shared(request.kept, NAME)
    verbosity = found.pop("verbosity", None)
    if verbosity is not None:
        body["text"] = {**body.get("text", {}), "verbosity": verbosity}
    body |= found
    if not body.setdefault("store", quirks.store):
        if quirks.encrypted_reasoning:
            body["include"] = [_ENCRYPTED]
    elif "store" not in found:
        del body["store"]


def encode_tools(
    request: ModelRequest, source: Source, names: ToolNames, losses: Losses, quirks: Quirks
) -> JsonObject:
    """The `tools` member as it is offered; empty without any."""

    def write(losses: Losses) -> JsonObject:
        unnamed = source if quirks.name_rule is None else NO_SOURCE
        offered = _offered(request.tools, unnamed, names, losses)
        return {"tools": offered} if offered else {}

    if source.dialect or not request.tools:
        return write(losses)
    return _written.members(request.tools, (quirks.name_rule,), losses, write)


def _offered(
    tools: tuple[AnyTool, ...], source: Source, names: ToolNames, losses: Losses
) -> list[object]:
    offered: list[object] = []
    space: JsonObject = {}
    number = 0
    while number < len(tools):
        tool = tools[number]
        span = unchanged_span(source, tools, number)
        if span is not None:
            space = {}
            offered.append(span.wire)
            number += len(span.values)
            continue
        if isinstance(tool, ServerTool):
            space = {}
            if tool.dialect == NAME:
                offered.append(Raw(tool.data.encode()))
        else:
            body = _offer(tool, f"tools[{number}]", names, losses)
            if space.get("name", "") != tool.namespace:
                space = _space(tool) if tool.namespace else {}
                offered += [space] if space else []
            (space["tools"] if space else offered).append(body)
        number += 1
    return offered


def _space(tool: ToolSpec | FreeformTool) -> JsonObject:
    """The namespace that begins with this tool."""
    space: JsonObject = {"type": "namespace", "name": tool.namespace, "tools": []}
    return {"description": f"Tools of {tool.namespace}.", **with_extra(space, tool.kept, ITEM)}


def _offer(
    tool: ToolSpec | FreeformTool, path: str, names: ToolNames, losses: Losses
) -> JsonObject:
    name = names.wire_name(tool.name, tool.namespace)
    if isinstance(tool, FreeformTool):
        return with_extra(custom_body(tool, name), tool.kept)
    body = with_extra(function_body(tool, name), tool.kept)
    if tool.cache is not None:
        losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
    _fit_schema(tool, body, path, losses)
    return body


def _fit_schema(tool: ToolSpec, body: JsonObject, path: str, losses: Losses) -> None:
    path = f"{path}.parameters"
    fitting = convert(tool.parameters, Profile.OPENAI, path)
    losses.extend(fitting.losses)
    body["parameters"] = fitting.schema
    # Without this member the service tries strict by itself.
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
    request: ModelRequest, names: ToolNames, losses: Losses, quirks: Quirks
) -> object | None:
    """The choice as it is sent; None leaves it to the server."""
    choice = request.tool_choice
    if choice is None:
        return None
    extra = restore({}, choice.kept, NAME)
    if "type" in extra:
        # A choice of a kind that we do not know, such as one of the server's tools.
        return extra
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
        return {**extra, **allowed[0]}
    return {**extra, "type": "allowed_tools", "mode": choice.mode, "tools": allowed}


def plain_names(names: Iterable[str]) -> list[JsonObject]:
    """Tools of a choice by name, as functions."""
    return [{"type": "function", "name": name} for name in names]
