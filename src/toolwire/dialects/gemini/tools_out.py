"""Our tools as tool objects: functions together, the vendor's own tools as they were."""

from itertools import islice
from typing import Any, cast

from msgspec.structs import replace

from toolwire.dialects import arguments
from toolwire.dialects.gemini.schemas import from_openapi, in_words, to_gemini
from toolwire.dialects.gemini.spelling import NAME, Spelled
from toolwire.dialects.gemini.tools_in import DECLARATIONS, JSON_SCHEMA, OPENAPI
from toolwire.dialects.losses import Losses
from toolwire.dialects.offered_tools import OfferedTools
from toolwire.dialects.quirks import Quirks
from toolwire.request import FreeformTool, JsonObject, ModelRequest, ServerTool, ToolSpec
from toolwire.wire.json_access import parse_object
from toolwire.wire.names import ToolNames

_NO_PARAMETERS: tuple[JsonObject, ...] = (
    {},
    {"type": "object"},
    {"type": "object", "properties": {}},
)
_written = OfferedTools()


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
