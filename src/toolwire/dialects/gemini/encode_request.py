"""Our request as a `generateContent` body."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from toolwire.dialects import tools as arguments
from toolwire.dialects.gemini.encode_messages import (
    ContentsWriter,
    PartWriter,
    split_system,
    system_instruction,
)
from toolwire.dialects.gemini.shapes import (
    ANY_BUDGET,
    CALLING,
    CHOICE,
    DECLARATIONS,
    ENVELOPE,
    FAMILY,
    GENERATION,
    JSON_SCHEMA,
    JSON_TYPE,
    LEVELS,
    MODE_FOR,
    NAME,
    NUMBERS,
    OPENAPI,
    OUTPUT_JSON_SCHEMA,
    OUTPUT_OPENAPI,
    OUTPUT_TYPE,
    SYSTEM,
    camel_case,
    is_from_here,
    member,
    with_kept,
)
from toolwire.dialects.losses import OPENING, Losses, kept_member, own_seal
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.dialects.tools import OfferedTools
from toolwire.messages import Message, ToolCall
from toolwire.request import (
    NO_SOURCE,
    Effort,
    FreeformTool,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
    budget_of,
    effort_of,
)
from toolwire.schema import convert
from toolwire.schema.openapi import in_words
from toolwire.wire.json_access import is_object, parse_object
from toolwire.wire.names import NameRule, ToolNames

NAME_RULE = NameRule(63, "a-zA-Z0-9_.:-", "a-zA-Z_")
_ANY_NAME = NameRule(2**31, r"\s\S", r"\s\S")
_NO_PARAMETERS: tuple[JsonObject, ...] = (
    {},
    {"type": "object"},
    {"type": "object", "properties": {}},
)
_FEEDS = {
    SYSTEM: ("system",),
    "contents": ("messages",),
    "tools": ("tools",),
    CHOICE: ("tool_choice",),
    GENERATION: (*(name for _, name, _ in NUMBERS), "stop", "reasoning", "output"),
}
"""Members of the body, and the members of a request that are written into them."""
_QUIRKS = {
    "contents": ("name_rule", "media_in_results", "signature_sentinel", "send_made_ids"),
    "tools": ("name_rule", "gemini_schema"),
    CHOICE: ("name_rule",),
    GENERATION: ("gemini_schema", "gemini_thinking"),
}
"""The quirks that decide how a member is written."""
_written = OfferedTools()


class RequestBody(NamedTuple):
    """A request body, and what is needed beside it."""

    body: JsonObject
    names: ToolNames
    losses: Losses
    envelope: JsonObject
    """Stored members of Code Assist's envelope."""


def write_request(request: ModelRequest, quirks: Quirks, given: JsonObject | None) -> RequestBody:
    """The body of a request.

    `given` is the body it was decoded from, if that was of this very format: members that are
    unchanged and of no concern to a quirk are then written as they were.
    """
    return _RequestWriter(request, quirks, given).body()


def model_member(request: ModelRequest, given: JsonObject | None) -> JsonObject:
    """The `model` of the given body or envelope: as it is there unless the request has another."""
    wire = None if given is None else given.get("model")
    if not isinstance(wire, str) or not wire:
        return {}
    # An envelope names the model for the request inside too.
    named = request.source.body.get("model") or wire
    unchanged = str(named).removeprefix("models/") == request.model
    return {"model": wire if unchanged else request.model}


class _RequestWriter:
    def __init__(self, request: ModelRequest, quirks: Quirks, given: JsonObject | None) -> None:
        self._request = request
        self._quirks = quirks
        self._given = given
        own = request.source.dialect in FAMILY
        self._source = request.source if own else NO_SOURCE
        self._losses = Losses()
        rule = quirks.name_rule or (NAME_RULE if given is None else _ANY_NAME)
        self._names = ToolNames(request.tools, rule, wrap_freeform=True)
        self._quirked = {name for name, quirk in _QUIRKS.items() if _is_set(quirks, quirk)}
        self._verbatim = {
            name
            for name, fields in _FEEDS.items()
            if given is not None
            and name not in self._quirked
            and request.source.unchanged(request, *fields)
        }

    def body(self) -> RequestBody:
        request, losses = self._request, self._losses
        losses.foreign(request, NAME)
        if request.parallel_calls is False:
            losses.add("parallel_calls", "one call at a time", "Gemini has no such switch")
        if request.previous_response_id:
            losses.add("previous_response_id", "earlier answer", "Gemini remembers none")
        system, contents = self._conversation()
        body = model_member(request, self._given)
        # What stays the same between requests is first, for prompt caches.
        for name, write in (
            (SYSTEM, lambda: system),
            ("tools", self._tools),
            (CHOICE, self._tool_config),
            (GENERATION, self._generation_config),
            ("contents", lambda: contents),
        ):
            value = None if name in self._verbatim else write()
            if value is not None:
                body[name] = value
        envelope = with_kept({}, request.kept, ENVELOPE)
        return RequestBody(self._assembled(body), self._names, losses, envelope)

    def _assembled(self, body: JsonObject) -> JsonObject:
        """The members in the order of the given body; others first, new ones last."""
        others = with_kept({}, self._request.kept)
        ordered: JsonObject = {}
        for key, value in (self._given or {}).items():
            name = camel_case(key)
            if name in self._verbatim:
                ordered[key] = value
            elif name in body:
                ordered[name] = body.pop(name)
            elif key in others:
                ordered[key] = others.pop(key)
        return {**others, **ordered, **body}

    def _conversation(self) -> tuple[JsonObject | None, list[JsonObject] | None]:
        if {SYSTEM, "contents"} <= self._verbatim:
            return None, None
        request, losses, quirks = self._request, self._losses, self._quirks
        writer = PartWriter(
            losses,
            wire_name=lambda call: self._names.wire_name(call.name, call.namespace),
            sends_id=self._sends_id,
            media_in_results=quirks.media_in_results,
            source=self._source,
        )
        texts, messages = split_system(request, losses, self._given_content)
        if len(texts) > len(request.system):
            self._verbatim.discard(SYSTEM)
        system = contents = None
        if SYSTEM not in self._verbatim:
            system = system_instruction(texts, request.kept, writer)
        if "contents" not in self._verbatim:
            sentinel = quirks.signature_sentinel
            contents = ContentsWriter(writer, losses, sentinel, self._given_content).write(messages)
            if not contents:
                # The vendor answers 400 to a request with instructions alone.
                losses.add("messages", "no turn", "a user turn was added")
                contents = [{"role": "user", "parts": [{"text": OPENING}]}]
        return system, contents

    def _given_content(self, message: Message) -> JsonObject | None:
        """The content a message was decoded from, if it may be sent again as it was."""
        wire = None if self._given is None else self._source.wire(message)
        if "contents" in self._quirked and (message.calls or message.results):
            return None
        return wire if is_object(wire) else None

    def _sends_id(self, call: ToolCall) -> bool:
        if self._quirks.send_made_ids:
            return True
        own = self._source is not NO_SOURCE or is_from_here(call.kept)
        return (own or bool(own_seal(call.seal, NAME))) and not call.made_id

    def _generation_config(self) -> JsonObject | None:
        """Sampling, limits, thinking and output; None if there is none of them."""
        request = self._request
        config: JsonObject = {}
        for wire_name, name, _ in NUMBERS:
            value = getattr(request, name)
            if name == "temperature" and value is not None and not 0 <= value <= 2:
                self._losses.add(name, str(value), "sent as the nearest from 0 to 2")
                value = min(max(value, 0), 2)
            if value is not None:
                config[wire_name] = value
        if request.stop:
            config["stopSequences"] = list(request.stop)
        if request.reasoning is not None:
            thinking = self._thinking(request.reasoning)
            if thinking:
                config["thinkingConfig"] = thinking
        if request.output is not None:
            config.update(self._output(request.output))
        return with_kept(config, request.kept, f"{GENERATION}.") or None

    def _thinking(self, reasoning: Reasoning) -> JsonObject:
        wire = self._source.wire(reasoning)
        if wire is not None and not _is_set(self._quirks, ("gemini_thinking",)):
            return _camel_case(wire)
        config = _amount(reasoning, self._quirks, self._losses)
        visible = reasoning.visible
        if self._source is NO_SOURCE and visible is None and config.get("thinkingBudget") != 0:
            visible = True if reasoning.enabled or config else None
        if visible is not None:
            config["includeThoughts"] = visible
        return with_kept(config, reasoning.kept)

    def _output(self, output: OutputFormat) -> JsonObject:
        openapi = self._quirks.gemini_schema == "openapi"
        wire = self._source.wire(output)
        if wire is not None and not (openapi and OUTPUT_JSON_SCHEMA in wire):
            written = wire.get(OUTPUT_OPENAPI)
            return {**wire, OUTPUT_OPENAPI: in_words(written)} if written is not None else wire
        config: JsonObject = {} if output.kind == "text" else {OUTPUT_TYPE: JSON_TYPE}
        if output.kind != "json_schema" or output.schema is None:
            return config
        if output.name:
            self._losses.add("output.name", output.name, "Gemini gives its formats no names")
        member, profile = (
            (OUTPUT_OPENAPI, "gemini-openapi") if openapi else (OUTPUT_JSON_SCHEMA, "gemini-json")
        )
        converted = convert(output.schema, profile, "output.schema", output=True)
        self._losses.extend(converted.losses)
        config[member] = converted.schema
        return config

    def _tool_config(self) -> JsonObject | None:
        """Whether and what to call; None if nothing is to be chosen."""
        config: JsonObject = {}
        choice = self._request.tool_choice
        functions = any(not isinstance(tool, ServerTool) for tool in self._request.tools)
        if choice is not None and (functions or self._source is not NO_SOURCE):
            config[CALLING] = self._calling(choice)
        elif choice is not None and choice.mode != "auto":
            self._losses.add("tool_choice", choice.mode, "there are no functions to call")
        return with_kept(config, self._request.kept, f"{CHOICE}.") or None

    def _calling(self, choice: ToolChoice) -> JsonObject:
        names = [self._names.chosen_name(name) for name in choice.names]
        wire = self._source.wire(choice)
        if wire is not None and names == list(choice.names):
            return _camel_case(wire)
        # Names may only be given beside ANY and VALIDATED.
        auto = "VALIDATED" if names else kept_member(choice.kept, NAME, "mode") or "AUTO"
        config: JsonObject = {"mode": auto if choice.mode == "auto" else MODE_FOR[choice.mode]}
        if names:
            config["allowedFunctionNames"] = names
        return with_kept(config, choice.kept)

    def _tools(self) -> Any:
        """Functions together in one object, then the vendor's own tools; None if there are none."""

        def write(losses: Losses) -> JsonObject:
            objects = self._tool_objects(losses)
            return {"tools": objects} if objects else {}

        tools = self._request.tools
        if self._source is not NO_SOURCE or not tools:
            return write(self._losses).get("tools")
        return _written.members(tools, (self._quirks,), self._losses, write).get("tools")

    def _tool_objects(self, losses: Losses) -> list[JsonObject]:
        functions: list[JsonObject] = []
        others: list[JsonObject] = []
        for number, tool in enumerate(self._request.tools):
            path = f"tools[{number}]"
            if isinstance(tool, ServerTool):
                if tool.dialect == NAME:
                    others.append(parse_object(tool.data, path))
                continue
            if isinstance(tool, FreeformTool):
                offered = arguments.as_function(tool, path, losses)
                tool = replace(offered, namespace=tool.namespace)
            functions.append(self._declaration(tool, path, losses))
        first = [{DECLARATIONS: functions}] if functions else []
        return [*first, *others]

    def _declaration(self, tool: ToolSpec, path: str, losses: Losses) -> JsonObject:
        if tool.cache is not None:
            losses.add(f"{path}.cache", "cache mark", "Gemini caches by itself")
        if tool.strict:
            losses.add(f"{path}.strict", "strict", "Gemini has no strict tools")
        body: JsonObject = {"name": self._names.wire_name(tool.name, tool.namespace)}
        if tool.description:
            body["description"] = tool.description
        body.update(self._parameters(tool, f"{path}.parameters", losses))
        return with_kept(body, tool.kept)

    def _parameters(self, tool: ToolSpec, path: str, losses: Losses) -> JsonObject:
        openapi = self._quirks.gemini_schema == "openapi"
        wire = self._source.wire(tool)
        if wire is not None:
            schema, written = member(wire, JSON_SCHEMA), member(wire, OPENAPI)
            if is_object(schema) and not openapi:
                return {JSON_SCHEMA: schema}
            if is_object(written) and not is_object(schema):
                return {OPENAPI: in_words(written)}
        if tool.parameters in _NO_PARAMETERS:
            return {}
        if openapi:
            return {OPENAPI: _converted(tool.parameters, "gemini-openapi", path, losses)}
        return {JSON_SCHEMA: _converted(tool.parameters, "gemini-json", path, losses)}


def _converted(schema: JsonObject, profile: str, path: str, losses: Losses) -> JsonObject:
    converted = convert(schema, profile, path)
    losses.extend(converted.losses)
    return converted.schema


def _is_set(quirks: Quirks, names: tuple[str, ...]) -> bool:
    return any(getattr(quirks, name) != getattr(DEFAULT, name) for name in names)


def _camel_case(wire: JsonObject) -> JsonObject:
    return {camel_case(key): value for key, value in wire.items()}


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
