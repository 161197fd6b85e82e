"""Response schema for all offered tools: a call of one of them, or a reply."""

import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from toolwire.request import FreeformTool, JsonObject, Loss, ToolSpec
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
        place = _Embedded(f"t{self._embedded}", self)
        for name, node in definitions.items():
            self.definitions[place.key(name)] = place.weaken(node, f"{path}.$defs.{name}")
        found = place.weaken(root, path)
        if place.refers_to_root:
            self.definitions[place.key("")] = found
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
