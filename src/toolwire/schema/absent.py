"""The way back from a strict schema: null that stands for "left out"."""

from typing import Any, cast

from toolwire.request import JsonObject
from toolwire.schema.merge import folded
from toolwire.schema.normal import normalise
from toolwire.schema.profile import Normal, Report
from toolwire.schema.strict import takes_null


def drop_absent(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """The arguments a strict schema brought back, as the tool's own schema means them.

    Null is left out where the schema has an optional property that cannot be null.
    """
    normal = normalise(schema, "", Report())
    return _value(arguments, [normal.root], normal)


def _value(value: Any, nodes: list[JsonObject], normal: Normal) -> Any:
    nodes = _spread(nodes, normal)
    if isinstance(value, dict):
        members = cast(JsonObject, value)
        out: JsonObject = {}
        for name, member in members.items():
            inner = [
                node["properties"][name] for node in nodes if name in node.get("properties", {})
            ]
            if member is None and _stands_for_absent(name, nodes, inner, normal):
                continue
            out[name] = _value(member, inner, normal) if inner else member
        return out
    if isinstance(value, list):
        items = [node["items"] for node in nodes if isinstance(node.get("items"), dict)]
        return [_value(item, items, normal) for item in cast(list[Any], value)]
    return value


def _stands_for_absent(
    name: str, nodes: list[JsonObject], inner: list[JsonObject], normal: Normal
) -> bool:
    return (
        bool(inner)
        and not any(takes_null(node, normal) for node in inner)
        and not any(name in node.get("required", ()) for node in nodes)
    )


def _spread(nodes: list[JsonObject], normal: Normal) -> list[JsonObject]:
    """The nodes and all their alternatives."""
    out: list[JsonObject] = []
    waiting = list(nodes)
    while waiting and len(out) < 1000:
        node, _, _ = folded(waiting.pop(), normal)
        out.append(node)
        waiting.extend(node.get("anyOf", ()))
    return out
