"""Writes random but valid JSON Schemas, the way tool authors do: a few keywords each."""

import random
from typing import Any

NAMES = ("a", "b", "c", "type", "enum", "$ref", "properties", "a.b", 'q"')
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
SCALARS = (None, True, False, 0, 1, 2, 1.5, "", "a", "b")
REFERENCES = ("#", "#/$defs/One", "#/$defs/Two", "#/properties/a")


class Author:
    """One per schema; the seed decides everything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def tool(self) -> dict[str, Any]:
        """A whole schema of arguments."""
        roll = self.random
        out: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.schema(0) for name in roll.sample(NAMES, 3)} | {"a": {}},
            "$defs": {"One": self.schema(1), "Two": self.schema(1)},
        }
        out["properties"]["a"] = self.schema(0)
        if roll.random() < 0.5:
            out["required"] = roll.sample(list(out["properties"]), 2)
        if roll.random() < 0.5:
            out["additionalProperties"] = roll.random() < 0.3
        if roll.random() < 0.2:
            out[roll.choice(["anyOf", "allOf", "oneOf"])] = [self.schema(1), self.schema(1)]
        return out

    def schema(self, depth: int) -> Any:
        """One schema inside."""
        roll = self.random
        if roll.random() < 0.1 or depth > 3:
            return roll.choice([{}, True, False, {"type": "string"}, {"type": "null"}])
        if roll.random() < 0.5:
            return self._usual(depth)
        keys = roll.sample(list(_KEYWORDS), roll.randint(1, 4))
        return {key: self._value(key, depth) for key in keys}

    def _usual(self, depth: int) -> dict[str, Any]:
        """A type and keywords that go with it."""
        roll = self.random
        kind = roll.choice(TYPES)
        pool = _USUAL.get(kind, ("enum", "const"))
        keys = roll.sample(pool, roll.randint(0, min(3, len(pool))))
        out: dict[str, Any] = {"type": kind}
        if kind != "null" and roll.random() < 0.15:
            out["type"] = [kind, "null"]
        return out | {key: self._value(key, depth) for key in keys}

    def _value(self, key: str, depth: int) -> Any:
        roll = self.random
        match _KEYWORDS[key]:
            case "schema":
                return self.schema(depth + 1)
            case "schemas":
                return [self.schema(depth + 1) for _ in range(roll.randint(1, 3))]
            case "members":
                names = roll.sample(NAMES, roll.randint(0, 3))
                return {name: self.schema(depth + 1) for name in names}
            case "open":
                return roll.choice([True, False, False, None]) or self.schema(depth + 1)
            case "types":
                return roll.choice([roll.choice(TYPES), roll.sample(TYPES, 2)])
            case "values":
                return roll.sample(SCALARS, roll.randint(1, 4))
            case "names":
                return roll.sample(NAMES, roll.randint(1, 2))
            case choices:
                return roll.choice(choices)


_SMALL = (0, 1, 2, 3)
_KEYWORDS: dict[str, Any] = {
    "type": "types",
    "enum": "values",
    "const": SCALARS,
    "properties": "members",
    "required": "names",
    "additionalProperties": "open",
    "unevaluatedProperties": "open",
    "patternProperties": ({"^a": {"type": "string"}}, {"b$": False}),
    "propertyNames": ({"maxLength": 3},),
    "dependentRequired": ({"a": ["b"]},),
    "minProperties": _SMALL,
    "maxProperties": _SMALL,
    "items": "open",
    "prefixItems": "schemas",
    "contains": "schema",
    "minItems": _SMALL,
    "maxItems": _SMALL,
    "uniqueItems": (True, False),
    "minimum": _SMALL,
    "maximum": _SMALL,
    "exclusiveMinimum": _SMALL,
    "exclusiveMaximum": (1, 2.5, 3),
    "multipleOf": (1, 2, 0.5),
    "minLength": _SMALL,
    "maxLength": _SMALL,
    "pattern": ("^a", "b"),
    "format": ("date-time", "email", "int32"),
    "anyOf": "schemas",
    "oneOf": "schemas",
    "allOf": "schemas",
    "not": "schema",
    "if": "schema",
    "then": "schema",
    "else": "schema",
    "$ref": REFERENCES,
    "description": ("about", "more"),
    "title": ("T",),
    "default": SCALARS,
    "examples": ([], ["a"], [1, 2]),
    "x-mine": (1,),
}
_USUAL = {
    "object": (
        *("properties", "required", "additionalProperties", "anyOf", "minProperties"),
        *("description", "patternProperties", "allOf", "oneOf", "$ref"),
    ),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("enum", "minLength", "maxLength", "pattern", "format", "const", "default"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "multipleOf"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"),
}
