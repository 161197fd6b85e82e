"""Type names as tool authors write them, and the JSON Schema types they mean."""

import re
from typing import Any, cast

import msgspec

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
_NUMBERS = ("", "string", "number", "integer", "boolean", "array", "object", "null")
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
    if isinstance(word, int) and not isinstance(word, bool) and 0 <= word < len(_NUMBERS):
        return _NUMBERS[word], True
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
