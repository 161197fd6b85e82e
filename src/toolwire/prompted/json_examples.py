"""Example arguments made up from a tool's schema."""

from contextlib import suppress
from typing import Any, cast

from toolwire.request import JsonObject

_DEEPEST = 6
_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


class NoExample(Exception):
    """The schema asks for something that cannot be made up."""


def example_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments that fit a clean schema: what is required, else its first member; None if none
    can be made up.
    """
    try:
        value = _value(schema, schema, "", _DEEPEST)
    except NoExample:
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def _value(schema: Any, root: JsonObject, name: str, depth: int) -> Any:
    if not isinstance(schema, dict):
        return f"some {name or 'text'}"
    node = cast(JsonObject, schema)
    if not depth or "not" in node or "allOf" in node or "if" in node:
        raise NoExample
    if "$ref" in node:
        return _value(_target(str(node["$ref"]), root), root, name, depth - 1)
    given = _given(node)
    if given is not None:
        if "type" in node and not isinstance(given, _PYTHON.get(_type(node), object)):
            raise NoExample
        return given
    for keyword in ("anyOf", "oneOf"):
        branches = node.get(keyword)
        if isinstance(branches, list) and branches:
            return _value(cast(list[Any], branches)[0], root, name, depth - 1)
    return _of_type(_type(node), node, root, name, depth)


def _given(node: JsonObject) -> Any:
    """A value that the schema itself names."""
    for keyword in ("examples", "enum"):
        values = node.get(keyword)
        if isinstance(values, list) and values:
            return cast(list[Any], values)[0]
    return node.get("const", node.get("default"))


def _type(node: JsonObject) -> str:
    named = node.get("type", "object" if "properties" in node else "string")
    if isinstance(named, list):
        kinds = [str(kind) for kind in cast(list[Any], named) if kind != "null"]
        return kinds[0] if kinds else "null"
    return str(named)


def _of_type(kind: str, node: JsonObject, root: JsonObject, name: str, depth: int) -> Any:
    match kind:
        case "object":
            return _object(node, root, depth)
        case "array":
            return _array(node, root, name, depth)
        case "integer" | "number":
            return _number(node)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _text(node, name)


def _object(node: JsonObject, root: JsonObject, depth: int) -> JsonObject:
    properties = cast(JsonObject, node.get("properties") or {})
    required = [str(name) for name in cast(list[Any], node.get("required") or [])]
    members = {name: _value(properties.get(name), root, name, depth - 1) for name in required}
    if not members and properties:
        first = next(iter(properties))
        with suppress(NoExample):
            members[first] = _value(properties[first], root, first, depth - 1)
    return members


def _array(node: JsonObject, root: JsonObject, name: str, depth: int) -> list[Any]:
    if "prefixItems" in node or "contains" in node or (node.get("minItems") or 1) > 1:
        raise NoExample
    return [_value(node.get("items"), root, name, depth - 1)]


def _number(node: JsonObject) -> Any:
    if {"multipleOf", "exclusiveMaximum", "exclusiveMinimum"} & node.keys():
        raise NoExample
    low, high = node.get("minimum"), node.get("maximum")
    value: Any = 1 if low is None else max(1, low)
    return value if high is None else min(value, high)


def _text(node: JsonObject, name: str) -> str:
    if "pattern" in node:
        raise NoExample
    dated = {"date": "2025-01-31", "date-time": "2025-01-31T12:00:00Z", "uri": "https://a.example"}
    text = dated.get(str(node.get("format"))) or f"some {name.replace('_', ' ') or 'text'}"
    most = node.get("maxLength")
    text = text[:most] if isinstance(most, int) else text
    return text.ljust(int(node.get("minLength") or 0), "x")


def _target(reference: str, root: JsonObject) -> Any:
    if reference == "#":
        return root
    return cast(JsonObject, root.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))
