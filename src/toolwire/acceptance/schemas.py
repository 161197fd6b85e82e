"""What each vendor rejects in a JSON Schema: of a tool's arguments, and of an answer."""

from collections.abc import Iterator

from toolwire.acceptance.limits import ANTHROPIC_KEY
from toolwire.request import JsonObject
from toolwire.wire.json_access import is_list, is_object, list_or_empty, object_or_empty

_NAMED = ("properties", "$defs", "definitions")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")

AT_ROOT = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
"""Keywords that OpenAI rejects beside the root's `type: object`."""
ANTHROPIC_AT_ROOT = frozenset({"oneOf", "anyOf", "allOf"})
NOT_STRICT = frozenset(
    {"oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"}
    | {"patternProperties", "propertyNames", "unevaluatedProperties", "contains", "uniqueItems"}
    | {"minProperties", "maxProperties", "prefixItems"}
)
"""Keywords that OpenAI's strict mode rejects."""
NOT_ANTHROPIC_OUTPUT = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "maxItems", "uniqueItems", "oneOf", "not", "if", "then", "else", "contains"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "prefixItems"}
    | {"dependentRequired", "dependentSchemas", "unevaluatedProperties"}
)
"""Keywords that Anthropic rejects in output schemas and strict tools."""
OPENAPI = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems"}
    | {"properties", "required", "minProperties", "maxProperties", "minLength", "maxLength"}
    | {"pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum"}
    | {"maximum", "additionalProperties", "$ref", "$defs", "ref", "defs"}
)
"""Keywords of Gemini's `Schema`; any other is an unknown name."""


def nodes(schema: object, path: str) -> Iterator[tuple[str, JsonObject]]:
    """Yields every schema inside a schema, with its path."""
    waiting: list[tuple[str, object]] = [(path, schema)]
    while waiting:
        where, node = waiting.pop()
        if not is_object(node):
            continue
        yield where, node
        for key in _NAMED:
            for name, inner in object_or_empty(node.get(key)).items():
                waiting.append((f"{where}.{key}.{name}", inner))
        for key in _LISTED:
            for at, inner in enumerate(list_or_empty(node.get(key))):
                waiting.append((f"{where}.{key}[{at}]", inner))
        waiting.extend((f"{where}.{key}", node[key]) for key in _SINGLE if key in node)


def openai_root(schema: object) -> str:
    """Returns why OpenAI rejects a tool's schema; empty if it does not."""
    kind = schema.get("type") if is_object(schema) else None
    if kind != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    found = sorted(AT_ROOT & object_or_empty(schema).keys())
    if found:
        return f"schema must have type 'object' and not have '{found[0]}' at the top level."
    for where, node in nodes(schema, "$"):
        if node.get("type") == "array" and "items" not in node and "prefixItems" not in node:
            return f"In context={where}, array schema missing items."
    return ""


def openai_strict(schema: object) -> str:
    """Returns why a schema is not strict; empty if it is."""
    for where, node in nodes(schema, "$"):
        found = sorted(NOT_STRICT & node.keys())
        if found:
            return f"In context={where}, '{found[0]}' is not permitted."
        properties = node.get("properties")
        if node.get("type") != "object" and properties is None:
            continue
        if node.get("additionalProperties") is not False:
            return (
                f"In context={where}, 'additionalProperties' is required to be supplied and to "
                "be false."
            )
        missing = [
            name
            for name in object_or_empty(properties)
            if name not in list_or_empty(node.get("required"))
        ]
        if missing:
            return (
                f"In context={where}, 'required' is required to be supplied and to be an array "
                f"including every key in properties. Missing '{missing[0]}'."
            )
    return ""


def anthropic_tool(schema: object) -> str:
    """Returns why Anthropic rejects a tool's schema; empty if it does not."""
    members = object_or_empty(schema)
    if members.get("type") != "object":
        return "type: Field required"
    found = sorted(ANTHROPIC_AT_ROOT & members.keys())
    if found:
        return "input_schema does not support oneOf, allOf, or anyOf at the top level"
    for name in object_or_empty(members.get("properties")):
        if not ANTHROPIC_KEY.fullmatch(name):
            return "properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
    return ""


def anthropic_output(schema: object) -> str:
    """Returns why Anthropic rejects a schema it must enforce; empty if it does not."""
    for where, node in nodes(schema, "schema"):
        found = sorted(NOT_ANTHROPIC_OUTPUT & node.keys())
        if found:
            kind = node.get("type")
            return f"{where}: For '{kind}' type, property '{found[0]}' is not supported"
        if node.get("type") == "object" and node.get("additionalProperties") is not False:
            return (
                f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to "
                "false"
            )
        if node.get("minItems", 0) not in (0, 1):
            return (
                f"{where}: For 'array' type, 'minItems' values other than 0 or 1 are not supported"
            )
    return ""


def gemini_openapi(schema: object, path: str) -> str:
    """Returns why Gemini rejects a schema of its OpenAPI subset; empty if it does not."""
    for where, node in nodes(schema, path):
        unknown = sorted(node.keys() - OPENAPI)
        if unknown:
            return (
                f"Invalid JSON payload received. Unknown name \"{unknown[0]}\" at '{where}': "
                "Cannot find field."
            )
        if is_list(node.get("type")):
            return f"Invalid value at '{where}.type': Proto field is not repeating"
        kind = str(node.get("type", "")).lower()
        if kind == "array" and not is_object(node.get("items")):
            return f"* GenerateContentRequest.{where}.items: missing field."
        if any(not isinstance(value, str) for value in list_or_empty(node.get("enum"))):
            return f"Invalid value at '{where}.enum' (TYPE_STRING)"
        properties = object_or_empty(node.get("properties"))
        for at, name in enumerate(list_or_empty(node.get("required"))):
            if not isinstance(name, str) or name not in properties:
                return f"* GenerateContentRequest.{where}.required[{at}]: property is not defined"
    return ""
