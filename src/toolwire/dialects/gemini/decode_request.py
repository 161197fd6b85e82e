"""A client's request body, read into ours with everything needed to write it back."""

from typing import Any

from toolwire.dialects.gemini.decode_messages import content_list, read_contents, read_system
from toolwire.dialects.gemini.schemas import from_openapi
from toolwire.dialects.gemini.shapes import (
    DECLARATIONS,
    GENERATION,
    JSON_SCHEMA,
    JSON_TYPE,
    LEVELS,
    MODE_FOR,
    NAME,
    OPENAPI,
    PLAIN,
    camel_case,
    is_list,
    is_object,
    mode_of,
)
from toolwire.dialects.gemini.spelling import Members, Notes
from toolwire.messages import Kept
from toolwire.request import (
    AnyTool,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolwire.wire.json_access import dump, obj


def read_request(body: JsonObject, model: str) -> ModelRequest:
    """The request of a `generateContent` body."""
    notes = Notes()
    members = Members(body, notes)
    wire_model = members.take_word("model")
    if wire_model:
        notes.form["model"] = wire_model
        notes.form["model_read"] = wire_model.removeprefix("models/")
    system = read_system(members.take("systemInstruction"), notes)
    contents = content_list(members.take("contents"), notes)
    messages = read_contents(contents)
    tools = read_tools(members.take("tools", list, dict), notes)
    choice = read_tool_choice(members.take("toolConfig", dict), notes)
    plain, reasoning, output = read_generation(members.take("generationConfig", dict), notes)
    members.close()
    return ModelRequest(
        model=model or wire_model.removeprefix("models/"),
        messages=messages,
        system=system,
        tools=tools,
        tool_choice=choice,
        reasoning=reasoning,
        output=output,
        kept=notes.kept() or Kept(dialect=NAME),
        **plain,
    )


def read_tool_choice(value: JsonObject | None, notes: Notes) -> ToolChoice | None:
    """The choice of `functionCallingConfig`; the rest of `toolConfig` goes into the notes."""
    if value is None:
        return None
    notes.form["toolConfig"] = True
    outer = Members(value, notes, "toolConfig.")
    config = outer.take("functionCallingConfig", dict)
    outer.close()
    if config is None:
        return None
    inner = Notes()
    members = Members(config, inner)
    word = members.take("mode", str, int)
    mode: Any = mode_of(word)
    if word is None or mode is None or word != MODE_FOR[mode]:
        inner.form["mode"] = word
    names = members.take_words("allowedFunctionNames")
    members.close()
    return ToolChoice(mode=mode or "auto", names=names, kept=inner.kept())


def read_generation(
    value: JsonObject | None, notes: Notes
) -> tuple[JsonObject, Reasoning | None, OutputFormat | None]:
    """Plain members by our names, then thinking and output; the rest goes into the notes."""
    if value is None:
        return {}, None, None
    notes.form[GENERATION] = True
    members = Members(value, notes, f"{GENERATION}.")
    plain: JsonObject = {}
    for wire_name, name, kinds in PLAIN:
        number = members.take(wire_name, *kinds)
        if number is not None:
            plain[name] = number
    plain["stop"] = members.take_words("stopSequences")
    thinking = members.take("thinkingConfig", dict)
    reasoning = None if thinking is None else _read_thinking(thinking)
    output = _read_output(members)
    members.close()
    return plain, reasoning, output


def _read_thinking(value: JsonObject) -> Reasoning:
    notes = Notes()
    members = Members(value, notes)
    budget = members.take("thinkingBudget", int)
    level = members.take("thinkingLevel", str)
    visible = members.take("includeThoughts", bool)
    members.close()
    effort = None if level is None else LEVELS.get(level.upper())
    if level is not None and (effort is None or level != effort.upper()):
        notes.form["level"] = level
    enabled = None if budget is None and effort is None else budget != 0
    if level is None and budget == 0:
        # Off: no amount is named.
        budget = None
    return Reasoning(
        enabled=enabled,
        effort=effort,
        budget=budget,
        visible=visible,
        kept=notes.kept(),
    )


def _read_output(members: Members) -> OutputFormat | None:
    notes = Notes()
    mime = members.take("responseMimeType", str)
    if mime not in (None, JSON_TYPE, "text/plain"):
        notes.form["mime"] = mime
    schema: JsonObject | None = members.take("responseJsonSchema", dict)
    if schema is None:
        written: JsonObject | None = members.take("responseSchema", dict)
        if written is not None:
            notes.form["member"] = "responseSchema"
            schema = from_openapi(written)
            if schema != written:
                notes.form["schema"] = written
    if schema is not None:
        if mime is None:
            notes.form["mime"] = None
        return OutputFormat(kind="json_schema", schema=schema, kept=notes.kept())
    if mime == JSON_TYPE:
        return OutputFormat(kind="json", kept=notes.kept())
    if mime is None:
        return None
    notes.form["mime"] = mime
    return OutputFormat(kind="text", kept=notes.kept())


def read_tools(value: Any, notes: Notes) -> tuple[AnyTool, ...]:
    """All tools in order; how they were grouped into objects goes into the notes."""
    if value is None:
        return ()
    tools: list[AnyTool] = []
    groups: list[list[list[Any]]] = []
    if is_object(value):
        notes.form["tools_object"] = True
        value = [value]
    for number, item in enumerate(value):
        groups.append(_read_group(obj(item, f"tools[{number}]"), f"tools[{number}]", tools))
    notes.form["tools"] = groups
    return tuple(tools)


def _read_group(group: JsonObject, path: str, tools: list[AnyTool]) -> list[list[Any]]:
    """The members of one tool object; those that hold functions with the number of them."""
    members: list[list[Any]] = []
    for key, value in group.items():
        if camel_case(key) == DECLARATIONS and is_list(value):
            for number, declaration in enumerate(value):
                tools.append(_read_function(declaration, f"{path}.{key}[{number}]"))
            members.append([key, len(value)])
        else:
            tools.append(ServerTool(dialect=NAME, kind=camel_case(key), data=dump({key: value})))
            members.append([key])
    return members


def _read_function(value: Any, path: str) -> ToolSpec:
    notes = Notes()
    members = Members(obj(value, path), notes)
    name = members.take_word("name")
    if not name:
        notes.mark_absent("name")
    description = members.take_word("description")
    parameters: JsonObject | None = members.take(JSON_SCHEMA, dict)
    if parameters is None:
        written: JsonObject | None = members.take(OPENAPI, dict)
        if written is None:
            notes.form["member"] = ""
        else:
            parameters = from_openapi(written)
            notes.form["member"] = OPENAPI
            if parameters != written:
                notes.form["schema"] = written
    members.close()
    return ToolSpec(
        name=name, description=description, parameters=parameters or {}, kept=notes.kept()
    )
