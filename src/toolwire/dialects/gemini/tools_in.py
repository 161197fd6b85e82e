"""Tool declarations of a request, read into ours, with their grouping noted."""

from typing import Any

from toolwire.dialects.gemini.json_kinds import is_list, is_object
from toolwire.dialects.gemini.schemas import from_openapi
from toolwire.dialects.gemini.spelling import NAME, Members, Notes, camel_case
from toolwire.request import AnyTool, JsonObject, ServerTool, ToolSpec
from toolwire.wire.json_access import dump, obj

DECLARATIONS = "functionDeclarations"
JSON_SCHEMA = "parametersJsonSchema"
OPENAPI = "parameters"


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
