"""An independent reading of schemas: makes values for one, and checks that a conversion is sound.

Nothing here uses the converter: types, references and Gemini's subset are read a second time.
"""

import random
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from toolwire.request import Loss

WORDS = {
    "dict": "object",
    "hashmap": "object",
    "float": "number",
    "double": "number",
    "tuple": "array",
    "arraylist": "array",
    "long": "integer",
    "int": "integer",
    "str": "string",
    "char": "string",
    "any": None,
    "": None,
    1: "string",
    6: "object",
}
NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE = (
    *("items", "additionalProperties", "not", "if", "then", "else", "contains"),
    *("propertyNames", "unevaluatedProperties", "unevaluatedItems"),
)

# A loss of one of these speaks of that keyword at that place only.
ONE_KEYWORD = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "required"}
    | {"minProperties", "maxProperties", "default", "example", "examples", "title", "deprecated"}
)


def refuse(address: str) -> Any:
    raise ValueError(f"asked to fetch {address}")


def validator(schema: Any) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema, retriever=refuse)


def plain(node: Any) -> Any:
    """A corpus schema as JSON Schema: type words and `nullable` read as meant."""
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if value is None and key not in ("const", "default"):
            continue
        if key == "type":
            names = [_word(word) for word in (value if isinstance(value, list) else [value])]
            if None not in names:
                out[key] = names if isinstance(value, list) else names[0]
        elif key in NAMED and isinstance(value, dict):
            out[key] = {name: plain(member) for name, member in value.items()}
        elif key in LISTED and isinstance(value, list):
            out[key] = [plain(item) for item in value]
        elif key in SINGLE:
            out[key] = plain(value)
        elif key not in ("$schema", "nullable"):
            out[key] = value
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(out.get(bound), bool):
            out.pop(bound)
            if node[bound] and limit in out:
                out[bound] = out.pop(limit)
    return {"anyOf": [out, {"type": "null"}]} if node.get("nullable") is True else out


def _word(word: Any) -> Any:
    word = word.lower() if isinstance(word, str) else word
    return WORDS.get(word, word)


def uncovered(original: Any, converted: Any, losses: tuple[Loss, ...], values: list[Any]) -> list:
    """Values on which the two differ where no loss says so. `original` is plain JSON Schema."""
    before, after = validator(original), validator(converted)
    found = []
    for value in values:
        was, now = before.is_valid(value), after.is_valid(value)
        if was == now:
            continue
        judge = before if now else after
        for error in judge.iter_errors(value):
            if not _covered(error, losses):
                found.append(
                    ("weaker" if now else "narrower", value, error.message, error.schema_path)
                )
    return found


def _covered(error: Any, losses: tuple[Loss, ...]) -> bool:
    keyword = next((part for part in reversed(error.schema_path) if isinstance(part, str)), "")
    place = [str(part) if isinstance(part, str) else "*" for part in error.instance_path]
    for loss in losses:
        lost, wild = _place(loss.path)
        word = loss.what.partition(":")[0]
        one_keyword = word in ONE_KEYWORD or loss.what == "additionalProperties: false"
        at_or_below = len(place) >= len(lost) and _meets(lost, place)
        if wild or (not one_keyword and at_or_below):
            return True
        if keyword in ("anyOf", "oneOf", "not", "contains", "if") and _meets(lost, place):
            return True
        if word in error.schema_path and word == "additionalProperties" and at_or_below:
            return True
        if word in ("optional", "false") and _meets(lost[:-1], place):
            return True
        if _equal(lost, place) and (word == keyword or (word, keyword) in SAID_TOGETHER):
            return True
    return False


SAID_TOGETHER = {("enum", "minimum"), ("enum", "maximum"), ("const", "enum")}


def _meets(lost: list[str], place: list[str]) -> bool:
    return all(one in ("*", other) or other == "*" for one, other in zip(lost, place, strict=False))


def _equal(lost: list[str], place: list[str]) -> bool:
    return len(lost) == len(place) and _meets(lost, place)


_STEP = re.compile(r'\.([\w$@-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def _place(path: str) -> tuple[list[str], bool]:
    """Where in a value the schema at this path is read; wild if it is a definition."""
    steps = [
        (named, index, quoted) for named, index, quoted in _STEP.findall(path.removeprefix("$"))
    ]
    out: list[str] = []
    at = 0
    while at < len(steps):
        word = steps[at][0]
        if word in ("$defs", "definitions"):
            return [], True
        if word == "properties":
            at += 1
            name, _, quoted = steps[at]
            out.append(jsonless(quoted) if quoted else name)
        elif word in ("items", "additionalItems", "additionalProperties", "prefixItems"):
            out.append("*")
        at += 1
    return out, False


def jsonless(text: str) -> str:
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def from_openapi(node: dict[str, Any]) -> dict[str, Any]:
    """Gemini's subset read as JSON Schema."""
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            out[key] = {name: from_openapi(member) for name, member in value.items()}
        elif key == "anyOf":
            out[key] = [from_openapi(item) for item in value]
        elif key == "items":
            out[key] = from_openapi(value)
        elif key not in ("nullable", "propertyOrdering", "example", "format"):
            out[key] = value
    return {"anyOf": [out, {"type": "null"}]} if node.get("nullable") else out


class Maker:
    """Makes values that mostly fit a schema, and then bends them."""

    def __init__(self, schema: Any, seed: int) -> None:
        self.root = schema
        self.random = random.Random(seed)

    def values(self, count: int) -> list[Any]:
        made: list[Any] = []
        for _ in range(count):
            value = self.make(self.root, 0)
            made.append(value if isinstance(value, dict) else {})
            made.append(self.bent(made[-1], 0))
        return made

    def make(self, node: Any, depth: int) -> Any:
        if not isinstance(node, dict) or depth > 8:
            return self.anything(depth)
        roll = self.random
        if "$ref" in node:
            return self.make(self._target(node["$ref"]), depth + 1)
        if "const" in node and roll.random() < 0.9:
            return node["const"]
        if "enum" in node and node["enum"] and roll.random() < 0.9:
            return roll.choice(node["enum"])
        parts = [*node.get("allOf", ())]
        parts += [roll.choice(node[key]) for key in ("anyOf", "oneOf") if node.get(key)]
        made = [self.make(part, depth + 1) for part in parts]
        kind = node.get("type")
        if isinstance(kind, list):
            kind = roll.choice(kind)
        if kind is None:
            kind = self._kind(node) or (None if made else "any")
        own = [self._of_kind(kind, node, depth)] if kind else []
        return _together(made + own)

    def _kind(self, node: dict[str, Any]) -> str | None:
        for key, kind in (
            ("properties", "object"),
            ("required", "object"),
            ("additionalProperties", "object"),
            ("items", "array"),
            ("prefixItems", "array"),
            ("minLength", "string"),
            ("minimum", "number"),
        ):
            if key in node:
                return kind
        return None

    def _of_kind(self, kind: str, node: dict[str, Any], depth: int) -> Any:
        roll = self.random
        low = node.get("minimum", node.get("exclusiveMinimum", 0))
        match kind:
            case "string":
                size = roll.randint(0, 3) + node.get("minLength", 0)
                return "".join(roll.choice("ab1é") for _ in range(size))
            case "integer":
                return int(low) + roll.randint(0, 3)
            case "number":
                return low + roll.choice([0, 0.5, 1, 2])
            case "boolean":
                return roll.random() < 0.5
            case "null":
                return None
            case "array":
                return self._array(node, depth)
            case "object":
                return self._object(node, depth)
            case _:
                return self.anything(depth)

    def _array(self, node: dict[str, Any], depth: int) -> list[Any]:
        first = node.get("prefixItems", [])
        size = self.random.randint(0, 2) + node.get("minItems", 0)
        return [
            self.make(first[at] if at < len(first) else node.get("items", True), depth + 1)
            for at in range(max(size, len(first) if self.random.random() < 0.7 else 0))
        ]

    def _object(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        required = set(node.get("required", ()))
        keep = self.random.random()
        out = {
            name: self.make(member, depth + 1)
            for name, member in node.get("properties", {}).items()
            if member is not False and (name in required or self.random.random() < keep)
        }
        for name in sorted(required - set(out)):
            out[name] = self.anything(depth)
        if node.get("additionalProperties", True) is not False and self.random.random() < 0.2:
            out["further"] = self.make(node.get("additionalProperties", True), depth + 1)
        return out

    def anything(self, depth: int) -> Any:
        roll = self.random
        flat = [None, True, False, 0, 1, -1, 7, 1.5, "", "a", "zz", "2020-01-01"]
        if depth > 6 or roll.random() < 0.8:
            return roll.choice(flat)
        if roll.random() < 0.5:
            return [roll.choice(flat) for _ in range(roll.randint(0, 2))]
        return {roll.choice("abxy"): self.anything(depth + 2) for _ in range(roll.randint(0, 2))}

    def bent(self, value: Any, depth: int) -> Any:
        """The value with one thing wrong somewhere."""
        roll = self.random
        if isinstance(value, dict) and value and roll.random() < 0.85:
            name = roll.choice(list(value))
            act = roll.random()
            if act < 0.2:
                return {key: value[key] for key in value if key != name}
            if act < 0.3:
                return {**value, "extra": self.anything(depth)}
            return {**value, name: self.bent(value[name], depth + 1)}
        if isinstance(value, list) and value and roll.random() < 0.7:
            act = roll.random()
            if act < 0.3:
                return roll.choice([value[:-1], []])
            if act < 0.5:
                return [*value, *[roll.choice(value)] * roll.choice([1, 60])]
            return [*value[:-1], self.bent(value[-1], depth + 1)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return roll.choice([value - 1, value + 1, -(10**6), 10**6, value + 0.5, str(value)])
        if isinstance(value, str) and roll.random() < 0.6:
            return roll.choice([value[:-1], value + "x" * 300, value.upper(), "", 1])
        if depth == 0:
            return {"extra": self.anything(depth)}
        return self.anything(depth)

    def _target(self, reference: str) -> Any:
        node = self.root
        for token in unquote(reference).removeprefix("#").split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            node = node[int(token)] if isinstance(node, list) else node[token]
        return node


def _together(values: list[Any]) -> Any:
    out: Any = {}
    for value in values:
        if not isinstance(value, dict):
            return value
        out.update(value)
    return out


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a converted one."""
    if not isinstance(schema, dict):
        return
    yield schema
    for key in NAMED:
        for member in schema.get(key, {}).values():
            yield from nodes(member)
    for key in LISTED:
        for item in schema.get(key, ()):
            yield from nodes(item)
    for key in SINGLE:
        yield from nodes(schema.get(key))


_OUTPUT_KEYS = frozenset(
    {"type", "title", "description", "default", "enum", "const", "anyOf", "allOf", "$ref", "$defs"}
    | {"properties", "required", "additionalProperties", "items", "minItems", "format", "pattern"}
)
_OUTPUT_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def refused_output(schema: dict[str, Any]) -> list[str]:
    """What Anthropic answers 400 to in the schema of an output, from its documentation and SDK."""
    found = [_refused_node(node) for node in nodes(schema)]
    if _cyclic(schema, schema.get("$defs", {}), ()):
        found.append("recursive")
    return [why for why in found if why]


def _refused_node(node: dict[str, Any]) -> str:
    kinds = node.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not node.keys() <= _OUTPUT_KEYS:
        return f"keywords {sorted(node.keys() - _OUTPUT_KEYS)}"
    if "object" in kinds and node.get("additionalProperties") is not False:
        return "open object"
    if not set(node.get("required", ())) <= set(node.get("properties", ())):
        return "required"
    if node.get("minItems", 0) > 1 or node.get("format", "uri") not in _OUTPUT_FORMATS:
        return "minItems or format"
    if any(isinstance(value, dict | list) for value in node.get("enum", [])):
        return "enum"
    if not kinds and node.keys().isdisjoint(("enum", "const", "anyOf", "allOf", "$ref")):
        return "no type"
    return ""


def _cyclic(node: Any, defs: dict[str, Any], inside: tuple[str, ...]) -> bool:
    if isinstance(node, list):
        return any(_cyclic(one, defs, inside) for one in node)
    if not isinstance(node, dict):
        return False
    reference = node.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix("#/$defs/")
        if name in inside or name not in defs:
            return True
        return _cyclic(defs[name], defs, (*inside, name))
    rest = (value for key, value in node.items() if key != "$defs")
    return any(_cyclic(value, defs, inside) for value in rest)
