"""Our request as a `generateContent` body."""

from itertools import islice
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from toolwire.dialects import arguments
from toolwire.dialects.gemini.encode_messages import (
    ContentsWriter,
    PartWriter,
    exact_contents,
    split_system,
    system_instruction,
)
from toolwire.dialects.gemini.schemas import from_openapi, in_words, to_gemini
from toolwire.dialects.gemini.shapes import (
    ANY_BUDGET,
    DECLARATIONS,
    GENERATION,
    JSON_SCHEMA,
    JSON_TYPE,
    LEVELS,
    MODE_FOR,
    NAME,
    OPENAPI,
    PLAIN,
    mode_of,
)
from toolwire.dialects.gemini.spelling import Spelled
from toolwire.dialects.kept import own_seal
from toolwire.dialects.losses import Losses
from toolwire.dialects.offered_tools import OfferedTools
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.thinking import budget_of, effort_of
from toolwire.messages import ToolCall
from toolwire.request import (
    Effort,
    FreeformTool,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolwire.wire.json_access import parse_object
from toolwire.wire.names import NameRule, ToolNames

NAME_RULE = NameRule(63, "a-zA-Z0-9_.:-", "a-zA-Z_")
_ANY_NAME = NameRule(2**31, r"\s\S", r"\s\S")
ENVELOPE = "codeAssist."
"""Before kept members that belong to Code Assist's envelope and not to the request inside."""
_NO_PARAMETERS: tuple[JsonObject, ...] = (
    {},
    {"type": "object"},
    {"type": "object", "properties": {}},
)
_written = OfferedTools()


class Body(NamedTuple):
    """A request body, and what is needed beside it."""

    body: JsonObject
    names: ToolNames
    losses: Losses
    envelope: Spelled


def is_own(request: ModelRequest) -> bool:
    """Whether the request came in this format, in the envelope or out of it."""
    return request.kept is not None and request.kept.dialect == NAME


def write_request(request: ModelRequest, quirks: Quirks, *, exact: bool) -> Body:
    """The body. `exact`: just what was read, adding and repairing nothing."""
    losses = Losses()
    losses.foreign(request, NAME)
    spelled = Spelled(request.kept, exact=exact)
    envelope = _envelope(spelled)
    rule = _ANY_NAME if exact else quirks.name_rule or NAME_RULE
    names = ToolNames(request.tools, rule, wrap_freeform=True)
    writer = PartWriter(
        losses,
        exact=exact,
        wire_name=lambda call: names.wire_name(call.name, call.namespace),
        sends_id=lambda call: _sends_id(call, spelled, quirks),
        media_in_results=quirks.media_in_results,
    )
    _tell_unsendable(request, losses)
    body: JsonObject = {}
    if "model" in spelled.form and exact:
        unchanged = spelled.form["model_read"] == request.model
        body["model"] = spelled.form["model"] if unchanged else request.model
    if exact:
        texts = [(f"system[{number}]", part) for number, part in enumerate(request.system)]
        if not spelled.absent("contents") or request.messages:
            body["contents"] = exact_contents(request, spelled, writer)
    else:
        texts, messages = split_system(request, losses)
        contents = ContentsWriter(writer, losses, quirks.signature_sentinel)
        body["contents"] = contents.write(messages)
    for member, value in (
        ("systemInstruction", system_instruction(texts, spelled, writer)),
        ("tools", offered_tools(request, spelled, names, quirks, losses)),
        ("toolConfig", tool_config(request, spelled, names, losses)),
        ("generationConfig", generation_config(request, spelled, quirks, losses)),
    ):
        if value is not None:
            body[member] = value
    if not exact:
        # What stays the same comes first, for caches of requests as they are sent.
        body["contents"] = body.pop("contents")
    return Body(spelled.write("", body), names, losses, envelope)


def _envelope(spelled: Spelled) -> Spelled:
    """The members of the envelope, taken out of the request's own."""
    outer = Spelled(None, exact=spelled.exact)
    outer.form = spelled.form
    for key in [key for key in spelled.fields if key.startswith(ENVELOPE)]:
        outer.fields[key] = spelled.fields.pop(key)
    return outer


def _sends_id(call: ToolCall, request: Spelled, quirks: Quirks) -> bool:
    if quirks.send_made_ids and not request.exact:
        return True
    from_here = (
        request.own
        or (call.kept is not None and call.kept.dialect == NAME)
        or bool(own_seal(call.seal, NAME))
    )
    return from_here and not call.made_id


def _tell_unsendable(request: ModelRequest, losses: Losses) -> None:
    if request.parallel_calls is False:
        losses.add("parallel_calls", "one call at a time", "Gemini has no such switch")
    if request.previous_response_id:
        losses.add("previous_response_id", "earlier answer", "Gemini remembers none")


def path_of(model: str, verb: str) -> str:
    """Where the model answers."""
    return f"/{model}:{verb}" if "/" in model else f"/models/{model}:{verb}"


def generation_config(
    request: ModelRequest, spelled: Spelled, quirks: Quirks, losses: Losses
) -> JsonObject | None:
    """Sampling, limits, thinking and output; None if nothing is to be said."""
    config: JsonObject = {}
    for wire_name, name, _ in PLAIN:
        value = getattr(request, name)
        if value is not None:
            config[wire_name] = value
    if request.stop:
        config["stopSequences"] = list(request.stop)
    if request.reasoning is not None:
        thinking = _thinking(request.reasoning, spelled, quirks, losses)
        if thinking or spelled.exact:
            config["thinkingConfig"] = thinking
    if request.output is not None:
        config.update(_output(request.output, spelled, quirks, losses))
    written = spelled.write(f"{GENERATION}.", config)
    return written if written or spelled.shape(GENERATION) else None


def _thinking(reasoning: Reasoning, request: Spelled, quirks: Quirks, losses: Losses) -> JsonObject:
    spelled = Spelled(reasoning.kept, exact=request.exact)
    if request.exact or spelled.own:
        config = _as_written(reasoning, spelled)
    else:
        config = _amount(reasoning, quirks, losses)
    visible = reasoning.visible
    if visible is None and not request.own and config.get("thinkingBudget") != 0:
        visible = True if reasoning.enabled or config else None
    if visible is not None:
        config["includeThoughts"] = visible
    return spelled.write("", config)


def _as_written(reasoning: Reasoning, spelled: Spelled) -> JsonObject:
    config: JsonObject = {}
    if reasoning.budget is not None:
        config["thinkingBudget"] = reasoning.budget
    elif reasoning.enabled is False and reasoning.effort is None:
        config["thinkingBudget"] = 0
    level = spelled.form.get("level")
    if isinstance(level, str) and LEVELS.get(level.upper()) == reasoning.effort:
        config["thinkingLevel"] = level
    elif reasoning.effort is not None:
        config["thinkingLevel"] = reasoning.effort.upper()
    return config


def _amount(reasoning: Reasoning, quirks: Quirks, losses: Losses) -> JsonObject:
    """How much to think: a level or a budget, never both."""
    effort, budget = reasoning.effort, reasoning.budget
    if reasoning.enabled is False or effort is Effort.NONE:
        if effort is not None:
            losses.add("reasoning.effort", effort, "sent as a budget of nothing")
        if budget:
            losses.add("reasoning.budget", f"{budget} tokens", "thinking is switched off")
        return {"thinkingBudget": 0}
    if effort is not None and (quirks.gemini_thinking == "level" or budget is None):
        if budget is not None:
            losses.add("reasoning.budget", f"{budget} tokens", "a level is sent instead")
        if quirks.gemini_thinking == "budget":
            losses.add("reasoning.effort", effort, "sent as a budget")
            return {"thinkingBudget": min(budget_of(effort), 24576)}
        level = effort.upper() if effort.upper() in LEVELS else "HIGH"
        if level != effort.upper():
            losses.add("reasoning.effort", effort, f"{level} is the most there is")
        return {"thinkingLevel": level}
    if effort is not None and budget is not None and effort_of(budget) is not effort:
        losses.add("reasoning.effort", effort, "the budget is sent instead")
    if budget is None:
        return {"thinkingBudget": ANY_BUDGET} if reasoning.enabled else {}
    return {"thinkingBudget": budget}


def _output(output: OutputFormat, request: Spelled, quirks: Quirks, losses: Losses) -> JsonObject:
    spelled = Spelled(output.kept, exact=request.exact)
    config: JsonObject = {}
    if "mime" in spelled.form and (request.exact or spelled.form["mime"]):
        mime: Any = spelled.form["mime"]
    else:
        mime = None if output.kind == "text" else JSON_TYPE
    if mime is not None:
        config["responseMimeType"] = mime
    if output.kind != "json_schema" or output.schema is None:
        return config
    if output.name:
        losses.add("output.name", output.name, "Gemini gives its formats no names")
    written = spelled.form.get("schema", output.schema)
    openapi = spelled.form.get("member") == "responseSchema"
    if openapi and from_openapi(written) == output.schema:
        config["responseSchema"] = written if spelled.exact else in_words(written)
    elif request.own and not openapi:
        config["responseJsonSchema"] = output.schema
    elif openapi or quirks.gemini_schema == "openapi":
        config["responseSchema"] = to_gemini(
            output.schema, "gemini-openapi", "output.schema", losses
        )
    else:
        config["responseJsonSchema"] = to_gemini(
            output.schema, "gemini-json", "output.schema", losses
        )
    return config


def tool_config(
    request: ModelRequest, spelled: Spelled, names: ToolNames, losses: Losses
) -> JsonObject | None:
    """Whether and what to call; None if nothing is to be said."""
    config: JsonObject = {}
    choice = request.tool_choice
    functions = any(not isinstance(tool, ServerTool) for tool in request.tools)
    if choice is not None and (functions or spelled.own):
        config["functionCallingConfig"] = _calling(choice, names, spelled)
    elif choice is not None and choice.mode != "auto":
        losses.add("tool_choice", choice.mode, "there are no functions to call")
    written = spelled.write("toolConfig.", config)
    return written if written or spelled.shape("toolConfig") else None


def _calling(choice: ToolChoice, names: ToolNames, request: Spelled) -> JsonObject:
    spelled = Spelled(choice.kept, exact=request.exact)
    config: JsonObject = {}
    word: Any = spelled.form.get("mode", MODE_FOR[choice.mode])
    if "mode" in spelled.form and (mode_of(word) or "auto") != choice.mode:
        word = MODE_FOR[choice.mode]
    if word == "AUTO" and choice.names and not request.exact:
        # Names may only be given beside ANY and VALIDATED.
        word = "VALIDATED"
    if word is not None:
        config["mode"] = word
    if choice.names:
        config["allowedFunctionNames"] = [names.chosen_name(name) for name in choice.names]
    return spelled.write("", config)


def offered_tools(
    request: ModelRequest, spelled: Spelled, names: ToolNames, quirks: Quirks, losses: Losses
) -> Any:
    """The `tools` member; None if there is none."""

    def write(losses: Losses) -> JsonObject:
        objects = _objects(request, spelled, names, quirks, losses)
        return {} if objects is None else {"tools": objects}

    if spelled.own or not request.tools:
        return write(losses).get("tools")
    return _written.members(request.tools, (quirks,), losses, write).get("tools")


def _objects(
    request: ModelRequest, spelled: Spelled, names: ToolNames, quirks: Quirks, losses: Losses
) -> Any:
    written: list[tuple[bool, JsonObject]] = []
    for number, tool in enumerate(request.tools):
        path = f"tools[{number}]"
        if isinstance(tool, ServerTool):
            if tool.dialect == NAME:
                written.append((False, parse_object(tool.data, path)))
            continue
        if isinstance(tool, FreeformTool):
            offered = arguments.as_function(tool, path, losses)
            tool = replace(offered, namespace=tool.namespace)
        written.append((True, _declaration(tool, path, spelled, names, quirks, losses)))
    groups = spelled.form.get("tools")
    if isinstance(groups, list):
        grouped = _as_grouped(cast(list[Any], groups), written, spelled.exact)
        if grouped is not None:
            one = spelled.shape("tools_object") and len(grouped) == 1
            return grouped[0] if one else grouped
    return _grouped(written)


def _grouped(written: list[tuple[bool, JsonObject]]) -> list[JsonObject] | None:
    functions = [tool for is_function, tool in written if is_function]
    others = [tool for is_function, tool in written if not is_function]
    first = [{DECLARATIONS: functions}] if functions else []
    return [*first, *others] or None


def _as_grouped(
    groups: list[Any], written: list[tuple[bool, JsonObject]], exact: bool
) -> list[JsonObject] | None:
    """The tools in their old objects; None if they are no longer the same."""
    rest = iter(written)
    objects: list[JsonObject] = []
    for group in groups:
        members: JsonObject = {}
        for key, *functions in group:
            count = functions[0] if functions else 1
            taken = list(islice(rest, count))
            if len(taken) < count or any(found is not bool(functions) for found, _ in taken):
                return None
            if functions:
                members[key if exact else DECLARATIONS] = [tool for _, tool in taken]
            else:
                members.update(taken[0][1])
        objects.append(members)
    return objects if next(rest, None) is None else None


def _declaration(
    tool: ToolSpec,
    path: str,
    request: Spelled,
    names: ToolNames,
    quirks: Quirks,
    losses: Losses,
) -> JsonObject:
    if tool.cache is not None:
        losses.add(f"{path}.cache", "cache mark", "Gemini caches by itself")
    if tool.strict:
        losses.add(f"{path}.strict", "strict", "Gemini has no strict tools")
    spelled = Spelled(tool.kept, exact=request.exact)
    body: JsonObject = {}
    if tool.name or not spelled.absent("name"):
        body["name"] = names.wire_name(tool.name, tool.namespace)
    if tool.description:
        body["description"] = tool.description
    body.update(_parameters(tool, path, request.own, spelled, quirks, losses))
    return spelled.write("", body)


def _parameters(
    tool: ToolSpec, path: str, own: bool, spelled: Spelled, quirks: Quirks, losses: Losses
) -> JsonObject:
    member = spelled.form.get("member")
    if member == OPENAPI:
        written = spelled.form.get("schema", tool.parameters)
        if from_openapi(written) == tool.parameters:
            return {OPENAPI: written if spelled.exact else in_words(written)}
    if own and member != OPENAPI and (member != "" or tool.parameters):
        return {JSON_SCHEMA: tool.parameters}
    if tool.parameters in _NO_PARAMETERS:
        return {}
    where = f"{path}.parameters"
    if member == OPENAPI or quirks.gemini_schema == "openapi":
        return {OPENAPI: to_gemini(tool.parameters, "gemini-openapi", where, losses)}
    return {JSON_SCHEMA: to_gemini(tool.parameters, "gemini-json", where, losses)}
