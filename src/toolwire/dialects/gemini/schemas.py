"""Schemas both ways: OpenAPI objects as JSON Schema, and JSON Schema as Gemini takes it."""

from collections.abc import Callable
from typing import Any

from toolwire.dialects.gemini.shapes import camel_case, is_list, is_object, whole_number
from toolwire.dialects.losses import Losses
from toolwire.request import JsonObject
from toolwire.schema import convert

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
"""JSON Schema's types in the order of their protobuf numbers, which begin at 1."""

_COUNTS = frozenset(
    {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
)
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties", "not"})
_MANY = frozenset({"properties", "$defs", "defs", "definitions"})
_SPELLED = frozenset(
    {
        "any_of",
        "min_items",
        "max_items",
        "min_length",
        "max_length",
        "min_properties",
        "max_properties",
        "property_ordering",
        "additional_properties",
        "prefix_items",
        "type_",
        "format_",
    }
)


def from_openapi(schema: JsonObject) -> JsonObject:
    """An OpenAPI schema object as JSON Schema; JSON Schema stays as it is."""
    return _walked(schema, _json_type, _allow_null)


def in_words(schema: JsonObject) -> JsonObject:
    """An OpenAPI schema object with its keywords and types in their usual spelling."""
    return _walked(schema, _type_name, lambda schema: None)


def _walked(
    schema: JsonObject, typed: Callable[[Any], Any], finish: Callable[[JsonObject], None]
) -> JsonObject:
    def inner(value: Any) -> Any:
        return _walked(value, typed, finish) if is_object(value) else value

    out: JsonObject = {}
    for wire_key, value in schema.items():
        key = camel_case(wire_key).rstrip("_") if wire_key in _SPELLED else wire_key
        if key == "type":
            out[key] = [typed(item) for item in value] if is_list(value) else typed(value)
        elif key in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
            out[key] = int(value)
        elif key in _LISTS and is_list(value):
            out[key] = [inner(item) for item in value]
        elif key in _ONE:
            out[key] = inner(value)
        elif key in _MANY and is_object(value):
            out[key] = {name: inner(item) for name, item in value.items()}
        else:
            out[key] = value
    finish(out)
    return out


def _type_name(value: Any) -> Any:
    number = whole_number(value)
    return TYPES[number - 1].upper() if number and 0 < number <= len(TYPES) else value


def _json_type(value: Any) -> Any:
    name = _type_name(value)
    return name.lower() if isinstance(name, str) and name.lower() in TYPES else name


def _allow_null(schema: JsonObject) -> None:
    if schema.get("nullable") is not True:
        return
    del schema["nullable"]
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
        values = schema.get("enum")
        if is_list(values) and None not in values:
            schema["enum"] = [*values, None]
    elif kind is None and is_list(schema.get("anyOf")):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]


def to_gemini(schema: JsonObject, profile: str, path: str, losses: Losses) -> JsonObject:
    """The schema in one of Gemini's two forms, with what it loses there."""
    converted = convert(schema, profile, path)
    losses.extend(converted.losses)
    return converted.schema
