"""A chat request: settings and tools, written."""

from msgspec.structs import replace

from toolwire.dialects import Encoded
from toolwire.dialects.kept import form, restore
from toolwire.dialects.losses import Losses
from toolwire.dialects.offered_tools import OfferedTools
from toolwire.dialects.openai_chat.encode_messages import Writing, encode_messages
from toolwire.dialects.openai_chat.shapes import NAME, unpack
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.thinking import effort_of
from toolwire.request import (
    AnyTool,
    Effort,
    FreeformTool,
    HttpRequest,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolwire.schema import Profile, convert, is_strict
from toolwire.wire.json_access import encode, parse
from toolwire.wire.names import ToolNames

_written = OfferedTools()
_PATH = "/chat/completions"


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The request as it goes over the wire, and what it could not carry."""
    verbatim = request.kept is not None and request.kept.dialect == NAME
    names = ToolNames() if verbatim else ToolNames(request.tools, quirks.name_rule)
    losses = Losses()
    losses.foreign(request, NAME)
    to = Writing(quirks, names, losses, verbatim)
    body: JsonObject = {} if verbatim and not request.model else {"model": request.model}
    body["messages"] = encode_messages(request, to)
    _write_tools(body, request, to)
    if verbatim:
        _verbatim_settings(body, request)
    else:
        _settings(body, request, to)
        # What stays the same comes first, for caches of requests as they are sent.
        body["messages"] = body.pop("messages")
    if request.previous_response_id:
        losses.add("previous_response_id", "earlier answer", "chat keeps no conversation")
    body = restore(body, request.kept, NAME)
    http = HttpRequest(path=_PATH, body=encode(body))
    return Encoded(http=http, losses=losses.done(), names=names)


def _settings(body: JsonObject, request: ModelRequest, to: Writing) -> None:
    quirks = to.quirks
    if request.max_output_tokens is not None:
        body[quirks.max_tokens_field] = request.max_output_tokens
    for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty"):
        value = getattr(request, name)
        if value is None:
            continue
        if quirks.sampling:
            body[name] = value
        else:
            to.losses.add(name, name, "the model rejects sampling settings")
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.top_k is not None:
        to.losses.add("top_k", "top_k", "chat has no such member")
    _reasoning(body, request.reasoning, to)
    if request.output is not None and request.output.kind != "text":
        body["response_format"] = _output(request.output, to.verbatim)
    if request.stream is not None:
        body["stream"] = request.stream
        if request.stream and quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}


def _reasoning(body: JsonObject, wanted: Reasoning | None, to: Writing) -> None:
    if wanted is None:
        return
    effort = wanted.effort
    if effort is None and wanted.enabled is False:
        effort = Effort.NONE
    if effort is None and wanted.budget is not None and wanted.budget >= 0:
        effort = effort_of(wanted.budget)
    if wanted.budget is not None:
        why = f"sent as effort {effort}" if effort else "left to the model"
        to.losses.add("reasoning.budget", "thinking budget", why)
    if effort is not None:
        body["reasoning_effort"] = effort.value
    if wanted.enabled is not None:
        why = f"told by effort {effort}" if effort else "chat only has an effort"
        to.losses.add("reasoning.enabled", "thinking on or off", why)
    if wanted.visible is not None:
        to.losses.add("reasoning.visible", "visible thoughts", "the server decides")


def _output(output: OutputFormat, verbatim: bool) -> JsonObject:
    if output.kind == "text":
        return {"type": "text"}
    if output.kind == "json":
        return {"type": "json_object"}
    schema: JsonObject = dict(unpack(output.kept).outer)
    if output.name or not verbatim:
        schema["name"] = output.name or "output"
    if output.schema is not None:
        schema["schema"] = output.schema
    if output.strict is not None:
        schema["strict"] = output.strict
    return {"type": "json_schema", "json_schema": schema}


def _verbatim_settings(body: JsonObject, request: ModelRequest) -> None:
    words = form(request.kept, NAME).split()
    if request.max_output_tokens is not None:
        field = "max_completion_tokens" if "max_completion_tokens" in words else "max_tokens"
        body[field] = request.max_output_tokens
    if request.seed is not None:
        body["random_seed" if "random_seed" in words else "seed"] = request.seed
    if request.stop:
        body["stop"] = request.stop[0] if "stop" in words else list(request.stop)
    for name in (
        "temperature",
        "top_p",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
        "stream",
    ):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.output is not None:
        body["response_format"] = _output(request.output, True)
    if request.reasoning is not None:
        _verbatim_reasoning(body, request.reasoning)


def _verbatim_reasoning(body: JsonObject, wanted: Reasoning) -> None:
    left = unpack(wanted.kept)
    if "thinking" in left.words:
        state = "enabled" if wanted.enabled else "disabled"
        body["thinking"] = {**left.outer, "type": state}
    elif "enable_thinking" in left.words:
        body["enable_thinking"] = wanted.enabled
    elif "reasoning" in left.words:
        asked = {
            "effort": wanted.effort,
            "max_tokens": wanted.budget,
            "enabled": wanted.enabled,
            "exclude": None if wanted.visible is None else not wanted.visible,
        }
        said = {key: value for key, value in asked.items() if value is not None}
        body["reasoning"] = left.outer | said
    elif wanted.effort is not None:
        body["reasoning_effort"] = wanted.effort.value


def _write_tools(body: JsonObject, request: ModelRequest, to: Writing) -> None:
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
    left = unpack(tool.kept)
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
    left = unpack(tool.kept)
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
    words = unpack(choice.kept).words
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
