"""Types and values of a schema, and the intersection of two; `$ref` and `allOf` are folded in."""

import re
from typing import Any, cast

import msgspec

from toolwire.request import JsonObject
from toolwire.schema.profile import Normal

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})

# Python, Java and JavaScript names (BFCL), and the numbers of Gemini's protobuf enum.
_WORDS: dict[str, tuple[str, ...]] = {
    "string": ("str", "char", "character", "text", "bytes", "date", "datetime", "uuid"),
    "number": ("float", "double", "decimal", "num", "float32", "float64"),
    "integer": ("int", "long", "short", "byte", "bigint", "int32", "int64", "uint", "biginteger"),
    "boolean": ("bool",),
    "array": ("list", "tuple", "set", "arraylist", "vector", "sequence", "iterable"),
    "object": ("dict", "dictionary", "map", "hashmap", "hashtable", "mapping", "record", "struct"),
    "null": ("none", "nil", "nonetype", "undefined", "void"),
}
_ANY = frozenset({"", "any", "mixed", "unknown", "type_unspecified", "json"})
TYPE_NUMBERS = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""JSON Schema's types by their number in Gemini's protobuf enum."""
_MEANING = {word: name for name, words in _WORDS.items() for word in (name, *words)}
_GENERIC = re.compile(r"(\w+)\s*[\[<(].*")


def meaning(word: Any) -> tuple[str | None, bool]:
    """The JSON type of a name ("" for any; None if unknown), and whether all of it was used."""
    if isinstance(word, str):
        name = word.strip().lower()
        if name in _ANY:
            return "", True
        found = _MEANING.get(name)
        if found is None and (generic := _GENERIC.fullmatch(name)):
            return _MEANING.get(generic[1]), False
        return found, True
    if isinstance(word, int) and not isinstance(word, bool) and 0 <= word < len(TYPE_NUMBERS):
        return TYPE_NUMBERS[word], True
    return None, False


def type_of(value: object) -> str:
    """The narrowest JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case list():
            return "array"
        case _:
            return "object"


def same(value: Any) -> str:
    """Equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return msgspec.json.encode(value, order="sorted").decode()


def values_in(node: dict[str, Any]) -> list[Any] | None:
    """The values a schema lists by `enum` and `const`; None if it lists none."""
    values: list[Any] | None = node.get("enum")
    if "const" not in node:
        return values
    const = node["const"]
    if values is None or same(const) in map(same, values):
        return [const]
    return []


def types_in(node: dict[str, Any]) -> frozenset[str]:
    """The types a schema accepts by its `type`, `enum` and `const`; all without any."""
    found = TYPES
    declared = node.get("type")
    if isinstance(declared, str):
        found = frozenset({declared})
    elif declared is not None:
        found = frozenset(cast(list[str], declared))
    values = values_in(node)
    if values is not None:
        present = {type_of(value) for value in values}
        found = frozenset(
            name for name in present if name in found or (name == "integer" and "number" in found)
        )
    return found


def overlap(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """The types both accept; an integer is a number."""
    found = one & other
    if "integer" not in found and (
        ("integer" in one and "number" in other) or ("number" in one and "integer" in other)
    ):
        found = found | {"integer"}
    return found - {"integer"} if "number" in found else found


_DEEPEST_UNION = 10
NEVER: JsonObject = {"not": {}}
"""Accepts nothing."""

_LARGER = frozenset(
    {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"}
)
_SMALLER = frozenset(
    {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"}
)
_FIRST_WINS = frozenset({"title", "default", "examples", "example"})
# `contains` and `if` read their neighbours: two of a kind cannot share one schema.
_TOGETHER = (
    ("contains", "minContains", "maxContains"),
    ("if", "then", "else"),
    ("prefixItems", "items", "unevaluatedItems"),
    ("properties", "additionalProperties", "patternProperties", "unevaluatedProperties"),
)
_MEMBERS = _TOGETHER[3]
_FOLDED = frozenset({"$ref", "allOf", "unevaluatedProperties"})
_LOOKED_THROUGH = frozenset(
    {"anyOf", "oneOf", "allOf", "if", "dependentSchemas", "patternProperties"}
)


def is_never(node: JsonObject) -> bool:
    """Whether the schema obviously accepts nothing."""
    return node.get("not") == {}


def both(one: JsonObject, other: JsonObject) -> JsonObject:
    """What both accept. Parts that cannot be joined stay in `allOf`."""
    if is_never(one) or is_never(other):
        return NEVER
    left = dict(other)
    out = dict(one)
    apart: JsonObject = {}
    for group in _TOGETHER:
        mine = [key for key in group if key in out]
        theirs = {key: left.pop(key) for key in group if key in left}
        if not mine:
            out.update(theirs)
        elif (
            theirs
            and any(out.get(key) != theirs.get(key) for key in {*mine, *theirs})
            and not (group is _MEMBERS and _join_members(out, theirs))
        ):
            apart.update(theirs)
    for key, value in left.items():
        if key not in out:
            out[key] = value
        elif out[key] != value or type(out[key]) is not type(value):
            if not _join(out, key, value):
                apart[key] = value
            elif key in ("type", "enum") and not out[key]:
                return NEVER
    if apart:
        out["allOf"] = [*out.get("allOf", ()), apart]
    return out


def _join(out: JsonObject, key: str, value: Any) -> bool:
    mine = out[key]
    if key == "type":
        out[key] = _one_or_many(overlap(_types(mine), _types(value)))
    elif key == "enum":
        theirs = {same(item) for item in value}
        out[key] = [item for item in mine if same(item) in theirs]
    elif key == "required":
        out[key] = list(dict.fromkeys([*mine, *value]))
    elif key == "allOf":
        out[key] = [*mine, *value]
    elif key == "description":
        out[key] = mine if value in mine else f"{mine}\n{value}"
    elif key in _LARGER:
        out[key] = max(mine, value)
    elif key in _SMALLER:
        out[key] = min(mine, value)
    else:
        return key in _FIRST_WINS
    return True


def _join_members(out: JsonObject, theirs: JsonObject) -> bool:
    if any(key in out or key in theirs for key in ("patternProperties", "unevaluatedProperties")):
        return False
    mine: JsonObject = out.get("properties", {})
    others: JsonObject = theirs.get("properties", {})
    my_rest: Any = out.get("additionalProperties", True)
    their_rest: Any = theirs.get("additionalProperties", True)
    joined: JsonObject = {}
    for name, node in mine.items():
        joined[name] = _all(node, others.get(name, their_rest))
    for name, node in others.items():
        if name not in mine:
            joined[name] = _all(node, my_rest)
    if joined:
        out["properties"] = joined
    closed = my_rest is False or their_rest is False
    rest = False if closed else _all(my_rest, their_rest)
    if rest is not True:
        out["additionalProperties"] = rest
    return True


def _all(one: Any, other: Any) -> Any:
    if one is True or one == other:
        return other
    if other is True:
        return one
    if one is False or other is False:
        return dict(NEVER)
    return {"allOf": [one, other]}


def _types(value: Any) -> frozenset[str]:
    return frozenset({value}) if isinstance(value, str) else frozenset(value)


def _one_or_many(types: frozenset[str]) -> "str | list[str]":
    names = sorted(types)
    return names[0] if len(names) == 1 else names


def folded(
    node: JsonObject, normal: Normal, inside: frozenset[str] = frozenset()
) -> tuple[JsonObject, frozenset[str], str]:
    """The node with its own `$ref` and `allOf` merged, the references it is now inside of, and the
    one that was cut because it is circular ("" if none).
    """
    if _FOLDED.isdisjoint(node):
        return node, inside, ""
    rest = node.get("unevaluatedProperties")
    parts = [node if rest is None else _without(node, "unevaluatedProperties")]
    out: JsonObject = {}
    here: set[str] = set()
    cut = ""
    while parts:
        part = parts.pop()
        if "$ref" in part or "allOf" in part:
            part = dict(part)
            parts.extend(reversed(part.pop("allOf", ())))
            reference = part.pop("$ref", None)
            if reference is None or reference in here:
                pass
            elif reference in inside:
                cut = reference
                part = both(part, outline(normal, reference))
            else:
                here.add(reference)
                parts.append(normal.target(reference))
        out = both(out, part) if out else part
    if rest is not None and "additionalProperties" not in out:
        seen = _LOOKED_THROUGH.isdisjoint(out)
        out = {**out, "additionalProperties" if seen else "unevaluatedProperties": rest}
    return out, inside | here, cut


def _without(node: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in node.items() if key != name}


def outline(normal: Normal, reference: str) -> JsonObject:
    """Only the type of what is referred to."""
    kind = normal.target(reference).get("type")
    name = reference.rpartition("/")[2]
    about = f"Same form as {name} above." if name != "#" else "Same form as the whole."
    return {"description": about} if kind is None else {"type": kind, "description": about}


def never_or(node: Any) -> JsonObject:
    """A schema for what may be just true or false."""
    if isinstance(node, bool):
        return {} if node else NEVER
    return node


def all_types(node: JsonObject) -> frozenset[str]:
    """The types named by `type`; all when there is none."""
    return _types(node["type"]) if "type" in node else TYPES


def takes_null(node: JsonObject, normal: Normal, depth: int = 0) -> bool:
    """Whether a schema obviously accepts null."""
    node, _, _ = folded(node, normal)
    types = types_in(node)
    if "null" not in types:
        return False
    if "anyOf" in node:
        return depth < _DEEPEST_UNION and any(
            takes_null(one, normal, depth + 1) for one in node["anyOf"]
        )
    return types != TYPES


def recursive(normal: Normal) -> frozenset[str]:
    """The definitions that lead back to themselves or to the root."""
    leads: dict[str, set[str]] = {}
    for name, node in normal.defs.items():
        found = leads[name] = set[str]()
        waiting: list[Any] = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict):
                members = cast(JsonObject, one)
                if isinstance(members.get("$ref"), str):
                    found.add(members["$ref"].removeprefix("#/$defs/"))
                waiting.extend(members.values())
            elif isinstance(one, list):
                waiting.extend(cast(list[Any], one))
    return frozenset(name for name in leads if _leads_back(name, leads))


def _leads_back(name: str, leads: dict[str, set[str]]) -> bool:
    seen: set[str] = set()
    waiting = list(leads[name])
    while waiting:
        one = waiting.pop()
        if one in (name, "#"):
            return True
        if one not in seen:
            seen.add(one)
            waiting.extend(leads.get(one, ()))
    return False
