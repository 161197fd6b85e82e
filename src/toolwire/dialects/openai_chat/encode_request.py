"""Values → a chat request: settings and tools."""

from msgspec.structs import replace

from toolwire.dialects import Encoded
from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_chat.encode_messages import Target, encode_messages
from toolwire.dialects.openai_chat.shapes import NAME, unpack
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.dialects.tools import OfferedTools, openai_output
from toolwire.request import (
    NO_SOURCE,
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
    effort_of,
)
from toolwire.schema import Profile, convert, is_strict
from toolwire.wire.json_access import encode, parse
from toolwire.wire.names import ToolNames

_written = OfferedTools()
_PATH = "/chat/completions"
_SETTINGS = {
    "tool_choice": ("tool_choice", "function_call"),
    "parallel_calls": ("parallel_tool_calls",),
    "max_output_tokens": ("max_completion_tokens", "max_tokens"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",),
    "seed": ("seed", "random_seed"),
    "stop": ("stop",),
    "reasoning": ("reasoning_effort", "reasoning", "thinking", "enable_thinking"),
    "output": ("response_format",),
    "stream": ("stream",),
}
"""Members of a request, and the wire members each is decoded from."""
_QUIRKED = frozenset(
    {
        "tool_choice",
        "parallel_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "frequency_penalty",
        "presence_penalty",
    }
)
"""Settings that a server may take in another form, or not at all."""


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The HTTP request, and what it could not carry."""
    source = request.source if request.source.dialect == NAME else NO_SOURCE
    losses = Losses()
    losses.foreign(request, NAME)
    verbatim = source is not NO_SOURCE and quirks == DEFAULT
    names = ToolNames() if verbatim else ToolNames(request.tools, quirks.name_rule)
    to = Target(quirks, names, losses, source, verbatim)
    messages = encode_messages(request, to)
    received, changed = _received(request, to)
    body: JsonObject = {"model": request.model}
    if not request.model and source is not NO_SOURCE:
        del body["model"]
    _write_tools(body, changed, to)
    _settings(body, changed, to)
    body |= received
    # Messages last: the start of the body stays the same, which helps prompt caches.
    body["messages"] = messages
    if request.previous_response_id:
        losses.add("previous_response_id", "earlier answer", "chat servers store no conversation")
    body = _unknown_members(request, to) | body
    http = HttpRequest(path=_PATH, body=encode(body))
    return Encoded(http=http, losses=losses.done(), names=names)


def _received(request: ModelRequest, to: Target) -> tuple[JsonObject, ModelRequest]:
    """The settings that go out as they were received, and the request without them."""
    source = to.source
    if source is NO_SOURCE:
        return {}, request
    members: JsonObject = {}
    written: JsonObject = {}
    body = source.body
    for field, names in _SETTINGS.items():
        if (to.verbatim or field not in _QUIRKED) and source.unchanged(request, field):
            for name in names:
                if name in body:
                    members[name] = body[name]
            written[field] = () if field == "stop" else None
    return members, replace(request, **written)


def _unknown_members(request: ModelRequest, to: Target) -> JsonObject:
    """The members that our values do not carry, without those that the server rejects."""
    members, _ = unpack(request.kept)
    if to.verbatim or not members:
        return members
    quirks = to.quirks
    rejected = {"max_tokens", "max_completion_tokens"}
    if not quirks.stream_usage:
        rejected.add("stream_options")
    if not quirks.parallel_flag:
        rejected.add("parallel_tool_calls")
    if quirks.tool_choices != DEFAULT.tool_choices:
        rejected |= {"tool_choice", "function_call"}
    for name in sorted(rejected & members.keys()):
        if members.pop(name) is not None:
            to.losses.add(name, name, "the server does not take it")
    return members


def _settings(body: JsonObject, request: ModelRequest, to: Target) -> None:
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
    output = openai_output(request, to.losses)
    if output is not None and output.kind != "text":
        body["response_format"] = _output(output)
    if request.stream is not None:
        body["stream"] = request.stream
        if request.stream and quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}


def _reasoning(body: JsonObject, reasoning: Reasoning | None, to: Target) -> None:
    if reasoning is None:
        return
    effort = reasoning.effort
    if effort is None and reasoning.enabled is False:
        effort = Effort.NONE
    if effort is None and reasoning.budget is not None and reasoning.budget >= 0:
        effort = effort_of(reasoning.budget)
    if reasoning.budget is not None:
        why = f"sent as effort {effort}" if effort else "left to the model"
        to.losses.add("reasoning.budget", "thinking budget", why)
    if effort is not None:
        body["reasoning_effort"] = effort.value
    if reasoning.enabled is not None:
        why = f"sent as effort {effort}" if effort else "chat only has an effort"
        to.losses.add("reasoning.enabled", "thinking on or off", why)
    if reasoning.visible is not None:
        to.losses.add("reasoning.visible", "visible thoughts", "the server decides")


def _output(output: OutputFormat) -> JsonObject:
    if output.kind == "json":
        return {"type": "json_object"}
    schema, _ = unpack(output.kept)
    schema["name"] = output.name or "output"
    if output.schema is not None:
        schema["schema"] = output.schema
    if output.strict is not None:
        schema["strict"] = output.strict
    return {"type": "json_schema", "json_schema": schema}


def _write_tools(body: JsonObject, request: ModelRequest, to: Target) -> None:
    """Tools, the choice among them, and whether several may be called at once."""
    choice = request.tool_choice
    if request.tools:
        tools = _offered(request.tools, choice, to) if choice is not None else request.tools

        def write(losses: Losses) -> JsonObject:
            return _members(request.tools, tools, replace(to, losses=losses))

        if any(_received_tool(tool, to) for tool in tools):
            body.update(write(to.losses))
        else:
            terms = (to.quirks, choice, to.verbatim)
            body.update(_written.members(request.tools, terms, to.losses, write))
    if "tools" in body or "functions" in body:
        _choice(body, request, to)
        _parallel(body, request.parallel_calls, to)
    elif request.tools or choice is not None:
        _report_unused(request, to)


def _received_tool(tool: AnyTool, to: Target) -> tuple[str, JsonObject] | None:
    """The member and entry that it was decoded from, unless a quirk concerns it."""
    wire: tuple[str, JsonObject] | None = to.source.wire(tool)
    if wire is None or to.verbatim or isinstance(tool, ServerTool):
        return wire
    member, entry = wire
    fits = member == "tools" and to.name(tool.name) == tool.name
    if isinstance(tool, ToolSpec):
        fits = fits and to.takes_mark(tool.cache) and "strict" not in entry["function"]
    return wire if fits else None


def _members(tools: tuple[AnyTool, ...], offered: tuple[AnyTool, ...], to: Target) -> JsonObject:
    members: JsonObject = {}
    strict = _strict(tools, to)
    for number, tool in enumerate(tools):
        if tool not in offered:
            continue
        received = _received_tool(tool, to)
        member, entry = received or _tool(tool, f"tools[{number}]", strict, to)
        if entry is not None:
            members.setdefault(member, []).append(entry)
    return members


def _tool(tool: AnyTool, path: str, strict: bool, to: Target) -> tuple[str, JsonObject | None]:
    match tool:
        case ServerTool():
            own = parse(tool.data, "tool") if tool.dialect == NAME else None
            return "functions" if tool.kind == "functions" else "tools", own
        case FreeformTool():
            return "tools", _freeform(tool, to)
        case ToolSpec():
            return "tools", _function(tool, path, strict, to)


def _function(tool: ToolSpec, path: str, strict: bool, to: Target) -> JsonObject:
    outer, inner = unpack(tool.kept)
    inner.pop("strict", None)
    function: JsonObject = {**inner, "name": to.name(tool.name, tool.namespace)}
    if tool.description:
        function["description"] = tool.description
    # The root always has `properties`: LM Studio and others reject an object without.
    fitting = convert(tool.parameters, Profile.OPENAI, f"{path}.parameters")
    to.losses.extend(fitting.losses)
    function["parameters"] = fitting.schema
    if tool.strict is not None and strict:
        if not tool.strict or is_strict(function["parameters"]):
            function["strict"] = tool.strict
        else:
            why = "the schema would have to change: all properties required, no other ones"
            to.losses.add(f"{path}.strict", "strict", why)
    elif tool.strict:
        to.losses.add(f"{path}.strict", "strict", "the server does not take it")
    entry: JsonObject = {**outer, "type": "function", "function": function}
    to.mark(entry, tool.cache, path)
    return entry


def _freeform(tool: FreeformTool, to: Target) -> JsonObject:
    outer, inner = unpack(tool.kept)
    custom: JsonObject = {**inner, "name": to.name(tool.name, tool.namespace)}
    if tool.description:
        custom["description"] = tool.description
    if tool.grammar:
        grammar = {"syntax": tool.syntax, "definition": tool.grammar}
        custom["format"] = {"type": "grammar", "grammar": grammar}
    return {**outer, "type": "custom", "custom": custom}


def _strict(tools: tuple[AnyTool, ...], to: Target) -> bool:
    if not to.quirks.strict_tools:
        return False
    found = {bool(tool.strict) for tool in tools if isinstance(tool, ToolSpec)}
    return not (to.quirks.strict_all_or_none and len(found) > 1)


def _offered(tools: tuple[AnyTool, ...], choice: ToolChoice, to: Target) -> tuple[AnyTool, ...]:
    """The tools to send: fewer if the server has no value for the choice."""
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


def _choice(body: JsonObject, request: ModelRequest, to: Target) -> None:
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


def _named(request: ModelRequest, name: str, to: Target) -> JsonObject:
    tool = next(
        (tool for tool in request.tools if not isinstance(tool, ServerTool) and tool.name == name),
        None,
    )
    namespace = tool.namespace if tool is not None else ""
    kind = "custom" if isinstance(tool, FreeformTool) else "function"
    return {"type": kind, kind: {"name": to.name(name, namespace)}}


def _parallel(body: JsonObject, parallel: bool | None, to: Target) -> None:
    if parallel is None:
        return
    if to.quirks.parallel_flag:
        body["parallel_tool_calls"] = parallel
    elif not parallel:
        to.losses.add("parallel_calls", "one call at a time", "the server has no such switch")


def _report_unused(request: ModelRequest, to: Target) -> None:
    choice = request.tool_choice
    if choice is not None and choice.mode == "required":
        to.losses.add("tool_choice", choice.mode, "no tool is left to choose from")
    if request.parallel_calls is False:
        to.losses.add("parallel_calls", "one call at a time", "no tools are sent")
