"""JSON style: tool calls by response schema, for models without native calls."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import msgspec

from toolwire.events import ModelEvent, Notice
from toolwire.messages import Text
from toolwire.model import Model, reading
from toolwire.prompted.json.prompt import Example, Rendering, prompt
from toolwire.prompted.json.stream import JsonAnswer
from toolwire.request import (
    FreeformTool,
    JsonObject,
    Loss,
    ModelRequest,
    OutputFormat,
    ServerTool,
    ToolSpec,
)
from toolwire.schema import Profile, convert
from toolwire.wire.names import NameRule, ToolNames

NAME_RULE = NameRule(limit=200, allowed=r"\w.:/@ -", first=r"\w")
"""Any name can be a constant in a schema."""
FREEFORM: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
REPLY: JsonObject = {"type": "string"}

_KEPT = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "prefixItems", "anyOf"}
    | {"allOf", "enum", "const", "$ref", "minItems", "maxItems", "minLength", "maxLength"}
    | {"minimum", "maximum", "description"}
)
_SILENT = frozenset({"title", "default", "examples", "$comment", "deprecated", "format", "$schema"})
"""Keywords that do not constrain an answer."""
_anchored = re.compile(r"\^(?!.*\(\?).*\$", re.DOTALL).fullmatch
_WHY = "not enforced while the model writes; the call is checked against it afterwards"


class ResponseSchema(msgspec.Struct, frozen=True):
    """The schema of an answer, and the constraints of the tools that it does not enforce."""

    schema: JsonObject
    losses: tuple[Loss, ...]


def response_schema(
    tools: Sequence[ToolSpec | FreeformTool],
    names: ToolNames,
    *,
    reply: JsonObject | None,
    several: bool,
) -> ResponseSchema:
    """The schema; `reply` is None if a call is required, `several` allows more than one call."""
    builder = _Builder()
    calls = [builder.call(tool, names) for tool in tools]
    branches = list(calls)
    if several and calls:
        # The branches are shared definitions, since they are used twice.
        for number, call in enumerate(calls):
            builder.definitions[f"call_{number}"] = call
        branches = [{"$ref": f"#/$defs/call_{number}"} for number in range(len(calls))]
        items = branches[0] if len(branches) == 1 else {"anyOf": branches}
        branches = [
            *branches,
            closed_object({"calls": {"type": "array", "minItems": 1, "items": items}}),
        ]
    if reply is not None:
        branches.append(closed_object({"reply": builder.embed(reply, "reply")}))
    schema = branches[0] if len(branches) == 1 else {"anyOf": branches}
    if builder.definitions:
        schema = {**schema, "$defs": builder.definitions}
    return ResponseSchema(schema, tuple(builder.losses))


def closed_object(properties: JsonObject) -> JsonObject:
    """An object with exactly these members, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class _Builder:
    def __init__(self) -> None:
        self.definitions: JsonObject = {}
        self.losses: list[Loss] = []
        self._embedded = 0

    def call(self, tool: ToolSpec | FreeformTool, names: ToolNames) -> JsonObject:
        name = names.wire_name(tool.name, tool.namespace)
        arguments = FREEFORM
        if isinstance(tool, ToolSpec):
            arguments = self._arguments(tool.parameters, name)
        return closed_object({"tool": {"const": name}, "arguments": arguments})

    def _arguments(self, parameters: JsonObject, name: str) -> JsonObject:
        if not parameters:
            return closed_object({})
        return self.embed(parameters, name)

    def embed(self, schema: JsonObject, path: str) -> JsonObject:
        """Embeds a complete schema and moves its definitions to the shared ones."""
        if schema is REPLY:
            return REPLY
        root = dict(schema)
        if schema.get("type") != "array":
            converted = convert(schema, Profile.GEMINI_JSON, path)
            self.losses.extend(converted.losses)
            root = dict(converted.schema)
        definitions = cast(JsonObject, root.pop("$defs", {}))
        self._embedded += 1
        embedded = _Embedded(f"t{self._embedded}", self)
        for name, node in definitions.items():
            self.definitions[embedded.key(name)] = embedded.weaken(node, f"{path}.$defs.{name}")
        found = embedded.weaken(root, path)
        if embedded.refers_to_root:
            self.definitions[embedded.key("")] = found
        return found


class _Embedded:
    """One embedded schema, with its own names for references."""

    def __init__(self, owner: str, builder: _Builder) -> None:
        self._owner = owner
        self._builder = builder
        self.refers_to_root = False

    def key(self, name: str) -> str:
        return f"{self._owner}_{name}" if name else self._owner

    def weaken(self, node: Any, path: str) -> Any:
        """The schema without constraints that a grammar cannot enforce."""
        if not isinstance(node, dict):
            return node
        schema = cast(JsonObject, node)
        out: JsonObject = {}
        for keyword, value in schema.items():
            if keyword == "$ref":
                out["$ref"] = self._reference(value)
            elif keyword == "oneOf":
                out["anyOf"] = [self.weaken(it, f"{path}.oneOf") for it in value]
                self._lose(path, keyword)
            elif keyword == "pattern" and _anchored(str(value)):
                out[keyword] = value
            elif keyword not in _KEPT:
                if keyword not in _SILENT:
                    self._lose(path, keyword)
            else:
                out[keyword] = self._value(keyword, value, path)
        if "properties" in out and set(out.get("required", [])) <= set(out["properties"]):
            # An open object lets small models invent members.
            out.setdefault("additionalProperties", False)
        return out

    def _value(self, keyword: str, value: Any, path: str) -> Any:
        match keyword:
            case "properties":
                members = cast(JsonObject, value)
                return {name: self.weaken(it, f"{path}.{name}") for name, it in members.items()}
            case "anyOf" | "allOf" | "prefixItems":
                return [self.weaken(it, f"{path}.{keyword}") for it in cast(list[Any], value)]
            case "items" | "additionalProperties":
                return self.weaken(value, f"{path}.{keyword}")
            case _:
                return value

    def _reference(self, reference: Any) -> str:
        name = str(reference).removeprefix("#/$defs/").removeprefix("#")
        self.refers_to_root = self.refers_to_root or not name
        return f"#/$defs/{self.key(name)}"

    def _lose(self, path: str, keyword: str) -> None:
        self._builder.losses.append(Loss(path, keyword, _WHY))


__all__ = ["Example", "Prepared", "prepare", "wrap"]


class Prepared(msgspec.Struct, frozen=True):
    """A request without native tools, and the reader of its answer."""

    request: ModelRequest
    names: ToolNames
    raw_reply: bool = False
    notices: tuple[Notice, ...] = ()


def wrap(
    model: Model,
    new_id: Callable[[], str],
    *,
    examples: Sequence[Example] = (),
    result_limit: int | None = None,
    instructions: str | None = None,
) -> Model:
    """The model with tools; `result_limit` caps the characters of a result, `instructions` replace
    the system prompt made from the tools.
    """

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        prepared = prepare(
            request, examples=examples, result_limit=result_limit, instructions=instructions
        )
        if prepared is None:
            async with reading(model(request)) as events:
                async for event in events:
                    yield event
            return
        answer = JsonAnswer(new_id, prepared.names, raw_reply=prepared.raw_reply)
        notices = prepared.notices
        async with reading(model(prepared.request)) as events:
            async for event in events:
                # After the first event, since before it another model may still be tried.
                for notice in notices:
                    yield notice
                notices = ()
                for read in answer.read(event):
                    yield read

    return ask


def prepare(
    request: ModelRequest,
    *,
    examples: Sequence[Example] = (),
    result_limit: int | None = None,
    instructions: str | None = None,
) -> Prepared | None:
    """The request to send; None if it has no tools and is sent unchanged."""
    past = any(message.calls or message.results for message in request.messages)
    if not request.tools and not past:
        return None
    names = ToolNames(request.tools, NAME_RULE, wrap_freeform=True)
    tools = _offered(request)
    choice = request.tool_choice
    must_call = bool(tools) and choice is not None and choice.mode == "required"
    reply = _reply_schema(request.output)
    several = request.parallel_calls is True
    answer = response_schema(tools, names, reply=None if must_call else reply, several=several)
    rendering = Rendering(names, result_limit)
    if instructions is None:
        instructions = prompt(tools, names, reply=not must_call, several=several, examples=examples)
    sent = msgspec.structs.replace(
        request,
        messages=rendering.messages(request.messages),
        system=(*request.system, Text(instructions)),
        tools=(),
        tool_choice=None,
        parallel_calls=None,
        output=OutputFormat(kind="json_schema", schema=answer.schema, name="answer"),
    )
    notices = [
        *(_left_out(tool) for tool in request.tools if isinstance(tool, ServerTool)),
        *(
            Notice("schema_weakened", f"{loss.path}: {loss.what}: {loss.why}")
            for loss in answer.losses
        ),
        *rendering.notices,
    ]
    return Prepared(sent, names, reply is not REPLY, tuple(notices))


def _offered(request: ModelRequest) -> list[ToolSpec | FreeformTool]:
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    only = choice.names if choice is not None else ()
    return [
        tool
        for tool in request.tools
        if not isinstance(tool, ServerTool) and (not only or tool.name in only)
    ]


def _reply_schema(output: OutputFormat | None) -> JsonObject:
    if output is None or output.kind == "text":
        return REPLY
    return output.schema or {"type": "object"}


def _left_out(tool: ServerTool) -> Notice:
    return Notice(
        "tool_left_out",
        f'the vendor\'s own tool "{tool.kind}" cannot be offered in the json style',
    )
