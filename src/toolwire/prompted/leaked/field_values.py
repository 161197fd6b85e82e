"""The JSON value of an argument that was written as plain text between tags."""

import json
from typing import Any, cast

import msgspec

from toolwire.prompted.leaked.cursor import Field
from toolwire.prompted.leaked.pythonic import literal
from toolwire.request import JsonObject

_decode = msgspec.json.Decoder().decode
_DEEPEST = 8
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_NULLS = ("null", "None")
_KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def read_field(field: Field, schema: Any, root: JsonObject) -> bytes:
    """JSON text of the value, of the kind that the schema asks for; raises ValueError."""
    if field.kind == "text":
        return _text(field.text)
    if field.kind == "json":
        return _json(field.text)
    kinds = _kinds(schema, root, _DEEPEST)
    word = field.text.strip()
    if "null" in kinds and word in _NULLS:
        return b"null"
    if "string" in kinds:
        return _structure(word, kinds) or _text(field.text)
    if "boolean" in kinds and word.lower() in ("true", "false"):
        return word.lower().encode()
    if not kinds:
        return _json_or_text(field.text)
    return _structure(word, kinds) or _json(word)


def _text(text: str) -> bytes:
    return msgspec.json.encode(text)


def _json(text: str) -> bytes:
    try:
        _decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    return text.strip().encode()


def _json_or_text(text: str) -> bytes:
    try:
        return _json(text)
    except ValueError:
        return _text(text)


def _structure(word: str, kinds: frozenset[str]) -> bytes | None:
    """An object or a list where one is asked for, in JSON or as Python writes it."""
    opening = word[:1]
    if (opening == "{" and "object" in kinds) or (opening == "[" and "array" in kinds):
        try:
            return _json(word)
        except ValueError:
            if "string" in kinds:
                return None
            return _dump(literal(word)).encode()
    return None


def _kinds(schema: Any, root: JsonObject, depth: int) -> frozenset[str]:
    """The JSON types a schema allows, as far as it says; empty for any."""
    if not isinstance(schema, dict) or not depth:
        return frozenset()
    node = cast(JsonObject, schema)
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _kinds(_target(reference, root), root, depth - 1)
    named = node.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(map(str, cast(list[Any], named)))
    values = node.get("enum", [node["const"]] if "const" in node else None)
    if isinstance(values, list):
        return frozenset(_kind(value) for value in cast(list[Any], values))
    found: set[str] = set()
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in cast(list[Any], node.get(word) or []):
            kinds = _kinds(branch, root, depth - 1)
            if not kinds and word != "allOf":
                return frozenset()
            found |= kinds
    return frozenset(found)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "array" if isinstance(value, list) else "object")


def _target(reference: str, root: JsonObject) -> Any:
    if reference == "#":
        return root
    definitions = root.get("$defs")
    if not isinstance(definitions, dict):
        return None
    return cast(JsonObject, definitions).get(reference.removeprefix("#/$defs/"))
