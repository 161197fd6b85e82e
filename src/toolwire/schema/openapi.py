"""Gemini's OpenAPI 3 subset, both ways: no references, one type each, `nullable`, text enums."""

from collections.abc import Callable
from math import ceil, floor
from typing import Any, cast

from toolwire.request import JsonObject
from toolwire.schema.choices import Alternative, Choices, concerns, is_constraint
from toolwire.schema.merge import TYPE_NUMBERS, TYPES, is_never, never_or, same
from toolwire.schema.normal import DEEPEST
from toolwire.schema.profile import Normal, Report, below, describe, keyword_text
from toolwire.wire.json_access import list_or_empty

MOST_NODES = 4000
"""Schemas written before the rest is left open: references to references can multiply."""

_FORMATS = {
    "string": frozenset({"date-time", "enum"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
_CARRIED = {
    "string": ("minLength", "maxLength", "pattern"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_ABOUT = ("title", "description", "default", "example")
_ANNOTATED = frozenset(_ABOUT)
_KEPT = _ANNOTATED | {"type", "enum", "format"}


def to_openapi(normal: Normal, path: str, report: Report) -> JsonObject:
    """The whole schema in the subset."""
    return _Writer(normal, report).schema(Alternative(normal.root, path), 0) or {"type": "object"}


class _Writer:
    def __init__(self, normal: Normal, report: Report) -> None:
        self._report = report
        self._choices = Choices(normal, report)
        self._left = MOST_NODES

    def schema(self, choice: Alternative, depth: int) -> JsonObject | None:
        """One schema; None if it accepts nothing."""
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            self._report.add(choice.path, "schema", "too deep or too large; left open")
            return self._any({}, choice.path)
        words: list[str] = []
        choices = self._choices.of(choice, words)
        null = False
        plain: list[Alternative] = []
        for one in choices:
            if one.node.get("type") == "null":
                null = True
                words += self._leave_out(one.node, "null", one.path, _KEPT)
            else:
                plain.append(one)
        if not plain:
            out: JsonObject = {"type": "null", **_about(choice.node)}
            describe(out, words)
            return out if null else None
        anything = [one for one in plain if "type" not in one.node]
        written: list[JsonObject] = []
        for one in anything[:1] or plain:
            out = self._plain(one, depth)
            if out not in written:
                written.append(out)
        first, *others = written
        inner = first["anyOf"][0] if "anyOf" in first else first
        describe(inner, words)
        others = [one for one in others if one != first]
        if null:
            inner["nullable"] = True
        # `anyOf` must have no siblings: they were moved into the first alternative.
        return {"anyOf": [first, *others]} if others else first

    def _plain(self, choice: Alternative, depth: int) -> JsonObject:
        node = choice.node
        kind = node.get("type")
        if kind is None:
            return self._any(node, choice.path)
        out: JsonObject = {"type": kind, **_about(node)}
        words: list[str] = []
        done = _WRITE[kind](self, node, out, choice, words, depth)
        if len(node.get("examples", ())) == 1:
            done |= {"examples"}
        self._write_format(node, out, choice.path, words)
        for key in _CARRIED.get(kind, ()):
            if key in node:
                out.setdefault(key, node[key])
        if node.keys() - _KEPT - done:
            words += self._leave_out(node, kind, choice.path, _KEPT | done)
        describe(out, words)
        return out

    def _any(self, node: JsonObject, path: str) -> JsonObject:
        self._report.add(path, "any value", "written as types; no arrays in arrays")
        words = self._leave_out(node, "", path, _ANNOTATED - {"default"})
        about = {key: node[key] for key in ("title", "description") if key in node}
        describe(about, words)
        array: JsonObject = {"type": "array", "items": {"anyOf": _any_item()}}
        out: JsonObject = {"anyOf": [*_any_item(), array]}
        out["anyOf"][0] |= about
        return out

    def _leave_out(self, node: JsonObject, kind: str, path: str, kept: frozenset[str]) -> list[str]:
        words: list[str] = []
        for key, value in node.items():
            if key in kept or (kind and not concerns(key, kind)):
                continue
            if key in ("then", "else") and "if" not in node:
                continue
            text = keyword_text(key, value)
            if is_constraint(key) or key in ("default", "example", "examples", "format"):
                words.append(text)
                self._report.add(path, text, "not supported here; moved to the description")
            else:
                self._report.add(path, text, "not a keyword Gemini takes; left out")
        return words

    def _write_format(self, node: JsonObject, out: JsonObject, path: str, words: list[str]) -> None:
        name = node.get("format")
        if name is None:
            return
        if name in _FORMATS.get(out["type"], ()):
            out["format"] = name
        else:
            words.append(keyword_text("format", name))
            self._report.add(path, words[-1], "not a format Gemini takes; moved to the description")

    def _lose_enum(self, node: JsonObject, path: str, words: list[str], why: str) -> None:
        words.append(keyword_text("enum", node["enum"]))
        self._report.add(path, words[-1], why)

    def write_string(
        self, node: JsonObject, out: JsonObject, choice: Alternative, words: list[str], depth: int
    ) -> frozenset[str]:
        """Text: the one type with an enum."""
        if "enum" in node:
            if "" in node["enum"]:
                self._lose_enum(node, choice.path, words, "Gemini rejects empty text in an enum")
            else:
                out["enum"] = node["enum"]
        return frozenset({"minLength", "maxLength", "pattern"})

    def write_number(
        self, node: JsonObject, out: JsonObject, choice: Alternative, words: list[str], depth: int
    ) -> frozenset[str]:
        """Numbers: inclusive bounds; an enum becomes bounds."""
        whole = out["type"] == "integer"
        low, high = node.get("minimum"), node.get("maximum")
        above, under = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
        if above is not None:
            bound = floor(above) + 1 if whole else above
            low = bound if low is None else max(low, bound)
        if under is not None:
            bound = ceil(under) - 1 if whole else under
            high = bound if high is None else min(high, bound)
        values: list[Any] | None = node.get("enum")
        if values:
            low = min(values) if low is None else max(low, min(values))
            high = max(values) if high is None else min(high, max(values))
            gapless = whole and max(values) - min(values) + 1 == len({same(v) for v in values})
            if not gapless and len(values) > 1:
                self._lose_enum(node, choice.path, words, "only text may be listed; sent as bounds")
        if low is not None:
            out["minimum"] = low
        if high is not None:
            out["maximum"] = high
        handled = {"minimum", "maximum"}
        if whole:
            handled |= {"exclusiveMinimum", "exclusiveMaximum"}
        return frozenset(handled)

    def write_boolean(
        self, node: JsonObject, out: JsonObject, choice: Alternative, words: list[str], depth: int
    ) -> frozenset[str]:
        """True or false: only the type is supported."""
        if "enum" in node and len(node["enum"]) < 2:
            self._lose_enum(node, choice.path, words, "only text may be listed")
        return frozenset()

    def write_array(
        self, node: JsonObject, out: JsonObject, choice: Alternative, words: list[str], depth: int
    ) -> frozenset[str]:
        """Arrays: one schema for all items."""
        if "enum" in node:
            self._lose_enum(node, choice.path, words, "only text may be listed")
        first: list[JsonObject] = node.get("prefixItems", [])
        rest = never_or(node.get("items", True))
        item = rest
        handled = {"items", "minItems", "maxItems"}
        if is_never(rest):
            out["maxItems"] = min(node.get("maxItems", len(first)), len(first))
        if first:
            variants = [one for at, one in enumerate(first) if one not in first[:at]]
            fixed = is_never(rest) or node.get("maxItems", len(first) + 1) <= len(first)
            if not fixed and rest not in variants:
                variants.append(rest)
            if len(variants) == 1:
                handled.add("prefixItems")
            item = variants[0] if len(variants) == 1 else {"anyOf": variants}
        inner_path = f"{choice.path}.prefixItems" if first else f"{choice.path}.items"
        written = self.schema(Alternative(item, inner_path, choice.inside), depth + 1)
        if written is None:
            out["maxItems"] = 0
            self._report.add(inner_path, "false", "no item is allowed; sent as maxItems")
        out["items"] = written or {"type": "string"}
        return frozenset(handled)

    def write_object(
        self, node: JsonObject, out: JsonObject, choice: Alternative, words: list[str], depth: int
    ) -> frozenset[str]:
        """Objects: named members only."""
        if "enum" in node:
            self._lose_enum(node, choice.path, words, "only text may be listed")
        members: JsonObject = {}
        for name, node_below in node.get("properties", {}).items():
            inner_path = below(f"{choice.path}.properties", name)
            written = self.schema(Alternative(node_below, inner_path, choice.inside), depth + 1)
            if written is None:
                self._report.add(inner_path, "false", "no value is allowed; the member is left out")
            else:
                members[name] = written
        if members:
            out["properties"] = members
        self._write_required(node, out, members, choice.path, words)
        handled = {"properties", "required", "minProperties", "maxProperties"}
        rest = node.get("additionalProperties", True)
        if rest is False:
            self._report.add(choice.path, "additionalProperties: false", "not supported here")
        if isinstance(rest, bool) or rest == {}:
            handled.add("additionalProperties")
        order = node.get("propertyOrdering")
        if isinstance(order, list):
            handled.add("propertyOrdering")
            known = [name for name in cast(list[Any], order) if name in members]
            if known:
                out["propertyOrdering"] = known
        return frozenset(handled)

    def _write_required(
        self, node: JsonObject, out: JsonObject, members: JsonObject, path: str, words: list[str]
    ) -> None:
        required: list[str] = node.get("required", [])
        known = [name for name in required if name in members]
        if known:
            out["required"] = known
        if len(known) < len(required):
            unknown = [name for name in required if name not in members]
            words.append(keyword_text("required", unknown))
            self._report.add(
                path, words[-1], "no such property is described; moved to the description"
            )


def _any_item() -> list[JsonObject]:
    return [
        {"type": "string", "nullable": True},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "object"},
    ]


def _about(node: JsonObject) -> JsonObject:
    about = {key: node[key] for key in _ABOUT if key in node}
    examples = node.get("examples")
    if isinstance(examples, list) and examples and "example" not in about:
        about["example"] = examples[0]
    return about


Write = Callable[[_Writer, JsonObject, JsonObject, Alternative, list[str], int], frozenset[str]]
_WRITE: dict[str, Write] = {
    "string": _Writer.write_string,
    "number": _Writer.write_number,
    "integer": _Writer.write_number,
    "boolean": _Writer.write_boolean,
    "array": _Writer.write_array,
    "object": _Writer.write_object,
}


_COUNTS = frozenset(
    {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
)
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties", "not"})
_MANY = frozenset({"properties", "$defs", "defs", "definitions"})
_SPELLED = {
    "any_of": "anyOf",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties",
    "prefix_items": "prefixItems",
    "type_": "type",
    "format_": "format",
}


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
        return _walked(cast(JsonObject, value), typed, finish) if isinstance(value, dict) else value

    out: JsonObject = {}
    for wire_key, value in schema.items():
        key = _SPELLED.get(wire_key, wire_key)
        if key == "type":
            out[key] = [typed(item) for item in list_or_empty(value)] or typed(value)
        elif key in _COUNTS and isinstance(value, str) and _is_count(value):
            out[key] = int(value)
        elif key in _LISTS and isinstance(value, list):
            out[key] = [inner(item) for item in list_or_empty(value)]
        elif key in _ONE:
            out[key] = inner(value)
        elif key in _MANY and isinstance(value, dict):
            members = cast(JsonObject, value)
            out[key] = {name: inner(item) for name, item in members.items()}
        else:
            out[key] = value
    finish(out)
    return out


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _type_name(value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return TYPE_NUMBERS[value].upper() if 0 < value < len(TYPE_NUMBERS) else value


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
        values = list_or_empty(schema.get("enum"))
        if values and None not in values:
            schema["enum"] = [*values, None]
    elif kind is None and isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
