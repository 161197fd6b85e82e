"""A client's request body as a request of ours, with the wire objects of its values."""

from typing import Any

from toolwire.dialects.gemini.decode_messages import read_contents, read_system
from toolwire.dialects.gemini.shapes import (
    CALLING,
    CHOICE,
    DECLARATIONS,
    GENERATION,
    JSON_SCHEMA,
    JSON_TYPE,
    LEVELS,
    MODES,
    NAME,
    NUMBERS,
    OPENAPI,
    OUTPUT_JSON_SCHEMA,
    OUTPUT_OPENAPI,
    OUTPUT_TYPE,
    SYSTEM,
    Members,
    camel_case,
    is_list,
    kept_members,
    mode_name,
)
from toolwire.dialects.tools import ReceivedTools
from toolwire.messages import Kept
from toolwire.request import (
    AnyTool,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    Source,
    ToolChoice,
    ToolSpec,
)
from toolwire.schema.openapi import from_openapi
from toolwire.wire.json_access import dump, is_object, obj

received = ReceivedTools()


def read_request(body: JsonObject, model: str, source: Source | None = None) -> ModelRequest:
    """The request of a `generateContent` body; `source` where the body is a part of another."""
    if source is None:
        source = Source(NAME, body)
    left: JsonObject = {}
    members = Members(body, left)
    wire_model = members.take_text("model")
    system = read_system(members.take(SYSTEM), source, left)
    messages = read_contents(members.take("contents"), source)
    tools = _read_tools(members.take("tools", list, dict), source)
    choice = _read_tool_choice(members.take(CHOICE, dict), source, left)
    settings = _read_generation(members.take(GENERATION, dict), source, left)
    members.close()
    request = ModelRequest(
        model=model or wire_model.removeprefix("models/"),
        messages=messages,
        system=system,
        tools=tools,
        tool_choice=choice,
        kept=kept_members(left) or Kept(dialect=NAME),
        source=source,
        **settings,
    )
    source.record(request)
    return request


def _read_tool_choice(
    value: JsonObject | None, source: Source, left: JsonObject
) -> ToolChoice | None:
    if value is None:
        return None
    outer = Members(value, left, f"{CHOICE}.")
    config = outer.take(CALLING, dict)
    outer.close()
    if config is None:
        return None
    inner: JsonObject = {}
    members = Members(config, inner)
    wire_mode = mode_name(members.take("mode", str, int))
    mode: Any = MODES.get(wire_mode, "auto")
    if wire_mode and wire_mode not in MODES:
        # VALIDATED: calls that fit their schemas, which no other format promises.
        inner["mode"] = wire_mode
    names = members.take_texts("allowedFunctionNames")
    members.close()
    choice = ToolChoice(mode=mode, names=names, kept=kept_members(inner))
    source.add(choice, config)
    return choice


def _read_generation(value: JsonObject | None, source: Source, left: JsonObject) -> JsonObject:
    """The members of a request that `generationConfig` feeds, by our names."""
    if value is None:
        return {}
    members = Members(value, left, f"{GENERATION}.")
    settings: JsonObject = {}
    for wire_name, name, kinds in NUMBERS:
        number = members.take(wire_name, *kinds)
        if number is not None:
            settings[name] = number
    settings["stop"] = members.take_texts("stopSequences")
    thinking = members.take("thinkingConfig", dict)
    settings["reasoning"] = None if thinking is None else _read_thinking(thinking, source)
    settings["output"] = _read_output(members, source)
    members.close()
    return settings


def _read_thinking(value: JsonObject, source: Source) -> Reasoning:
    left: JsonObject = {}
    members = Members(value, left)
    budget = members.take("thinkingBudget", int)
    level = members.take("thinkingLevel", str)
    visible = members.take("includeThoughts", bool)
    members.close()
    effort = None if level is None else LEVELS.get(level.upper())
    enabled = None if budget is None and effort is None else budget != 0
    if level is None and budget == 0:
        # Off: no amount is named.
        budget = None
    reasoning = Reasoning(
        enabled=enabled,
        effort=effort,
        budget=budget,
        visible=visible,
        kept=kept_members(left),
    )
    source.add(reasoning, value)
    return reasoning


def _read_output(members: Members, source: Source) -> OutputFormat | None:
    mime = members.take(OUTPUT_TYPE, str)
    wire: JsonObject = {} if mime is None else {OUTPUT_TYPE: mime}
    schema: JsonObject | None = members.take(OUTPUT_JSON_SCHEMA, dict)
    if schema is not None:
        wire[OUTPUT_JSON_SCHEMA] = schema
    else:
        openapi: JsonObject | None = members.take(OUTPUT_OPENAPI, dict)
        if openapi is not None:
            wire[OUTPUT_OPENAPI] = openapi
            schema = from_openapi(openapi)
    if schema is not None:
        output = OutputFormat(kind="json_schema", schema=schema)
    elif mime is not None:
        output = OutputFormat(kind="json" if mime == JSON_TYPE else "text")
    else:
        return None
    source.add(output, wire)
    return output


def _read_tools(value: Any, source: Source) -> tuple[AnyTool, ...]:
    if value is None:
        return ()
    return received.read(value, source, lambda own: _read_list(value, own))


def _read_list(value: Any, source: Source) -> tuple[AnyTool, ...]:
    tools: list[AnyTool] = []
    for number, item in enumerate([value] if is_object(value) else value):
        path = f"tools[{number}]"
        for key, inner in obj(item, path).items():
            if camel_case(key) == DECLARATIONS and is_list(inner):
                for position, declaration in enumerate(inner):
                    tool = _read_function(obj(declaration, f"{path}.{key}[{position}]"))
                    source.add(tool, declaration)
                    tools.append(tool)
            else:
                data = dump({key: inner})
                tools.append(ServerTool(dialect=NAME, kind=camel_case(key), data=data))
    return tuple(tools)


def _read_function(value: JsonObject) -> ToolSpec:
    left: JsonObject = {}
    members = Members(value, left)
    name = members.take_text("name")
    description = members.take_text("description")
    parameters: JsonObject | None = members.take(JSON_SCHEMA, dict)
    if parameters is None:
        openapi: JsonObject | None = members.take(OPENAPI, dict)
        parameters = {} if openapi is None else from_openapi(openapi)
    members.close()
    return ToolSpec(
        name=name, description=description, parameters=parameters, kept=kept_members(left)
    )
