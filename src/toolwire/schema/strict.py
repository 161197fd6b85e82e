"""OpenAI's strict schemas: used only if they accept exactly the same arguments."""

from typing import Any

from toolwire.request import JsonObject
from toolwire.schema.merge import TYPES, folded, type_of, types_in
from toolwire.schema.normal import allow_null
from toolwire.schema.profile import Normal, Report, below, describe, keyword_text

_DEEPEST = 10
_MOST_NODES = 10_000
_MOST_PROPERTIES = 5000
_MOST_VALUES = 1000
_MOST_TEXT = 120_000
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_SAME = frozenset(
    {"type", "title", "description", "enum", "const", "format", "pattern", "minItems", "maxItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "required"}
)
_DESCRIBED = frozenset({"default", "examples", "example"})
_REFUSED = frozenset(
    {"not", "if", "oneOf", "dependentRequired", "dependentSchemas", "patternProperties"}
    | {"propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains", "prefixItems"}
    | {"uniqueItems", "minLength", "maxLength", "minProperties", "maxProperties", "allOf"}
)


def to_strict(normal: Normal, path: str, report: Report) -> Normal | None:
    """The schema in its strict form; None, and why, if its meaning would change."""
    writer = _Writer(normal)
    root = writer.node(normal.root, path, 1)
    defs = {
        name: writer.node(node, below(f"{path}.$defs", name), 1)
        for name, node in normal.defs.items()
    }
    writer.check_size(path)
    if writer.reasons.losses:
        report.losses.extend(writer.reasons.losses)
        return None
    report.losses.extend(writer.notes.losses)
    return Normal(root, defs)


class _Writer:
    def __init__(self, normal: Normal) -> None:
        self._normal = normal
        self.reasons = Report()
        self.notes = Report()
        self._nodes = 0
        self._properties = 0
        self._values = 0
        self._text = 0

    def node(
        self, node: JsonObject, path: str, depth: int, inside: frozenset[str] = frozenset()
    ) -> JsonObject:
        """One schema; `inside` are the references expanded around it."""
        self._nodes += 1
        if depth > _DEEPEST or self._nodes > _MOST_NODES:
            self._refuse(path, "schema", f"too large, or nested deeper than {_DEEPEST} levels")
            return {}
        if "$ref" in node and len(node) == 1:
            return {"$ref": node["$ref"]}
        if "$ref" in node or "allOf" in node:
            node, inside, cut = folded(node, self._normal, inside)
            if cut:
                self._refuse(path, keyword_text("$ref", cut), "recursive, and not alone")
        out: JsonObject = {}
        words: list[str] = []
        for key, value in node.items():
            if key in _SAME:
                out[key] = value
            elif key in _REFUSED:
                self._refuse(path, keyword_text(key, value), "not taken in strict schemas")
            elif key in _DESCRIBED and not (key == "default" and value is None):
                words.append(keyword_text(key, value))
                self.notes.add(
                    path, words[-1], "not taken in strict schemas; moved to the description"
                )
        self._check(node, out, path)
        if "anyOf" in node:
            out["anyOf"] = [
                self.node(one, f"{path}.anyOf[{index}]", depth, inside)
                for index, one in enumerate(node["anyOf"])
            ]
        if "items" in node:
            out["items"] = self._items(node["items"], path, depth, inside)
        if "object" in types_in(node) and ("type" in node or "properties" in node):
            self._object(node, out, path, depth, inside)
        describe(out, words)
        return out

    def _refuse(self, path: str, what: str, why: str) -> None:
        self.reasons.add(path, what, f"strict was not used: {why}")

    def _items(self, items: Any, path: str, depth: int, inside: frozenset[str]) -> Any:
        if isinstance(items, bool):
            self._refuse(path, keyword_text("items", items), "not taken in strict schemas")
            return items
        return self.node(items, f"{path}.items", depth + 1, inside)

    def _check(self, node: JsonObject, out: JsonObject, path: str) -> None:
        values: list[Any] = node.get("enum", [])
        self._values += len(values)
        self._text += sum(len(value) for value in values if isinstance(value, str))
        name = node.get("format")
        if name is not None and name not in _FORMATS:
            self._refuse(path, keyword_text("format", name), "not taken in strict schemas")
        if "(?" in node.get("pattern", ""):
            self._refuse(path, keyword_text("pattern", node["pattern"]), "looks around or groups")
        if "type" not in node and "anyOf" not in node:
            kinds = sorted({type_of(value) for value in values or [node.get("const")]})
            if values or "const" in node:
                out["type"] = kinds[0] if len(kinds) == 1 else kinds
            else:
                self._refuse(path, "missing type", "any value is accepted")
        if "anyOf" in node and not {"type", "properties"}.isdisjoint(node):
            self._refuse(path, "anyOf", "combined with other constraints")

    def _object(
        self, node: JsonObject, out: JsonObject, path: str, depth: int, inside: frozenset[str]
    ) -> None:
        if node.get("additionalProperties") is not False:
            self._refuse(path, "open object", "only closed objects are accepted")
        members: JsonObject = node.get("properties", {})
        required: list[str] = node.get("required", [])
        for name in required:
            if name not in members:
                self._refuse(path, keyword_text("required", name), "no such property is described")
        self._properties += len(members)
        self._text += sum(map(len, members))
        written: JsonObject = {}
        for name, member in members.items():
            place = below(f"{path}.properties", name)
            written[name] = self.node(member, place, depth + 1, inside)
            if name not in required:
                written[name] = self._optional(member, written[name], place)
        out["properties"] = written
        out["required"] = list(members)
        out["additionalProperties"] = False

    def _optional(self, member: JsonObject, written: JsonObject, path: str) -> JsonObject:
        if takes_null(member, self._normal):
            if member.get("default", ...) is not None:
                self._refuse(path, "optional", "it may be null, and may be left out: not the same")
            return written
        self.notes.add(path, "optional", "always sent; null means left out")
        if "$ref" in written:
            return {"anyOf": [written, {"type": "null"}]}
        allow_null(written)
        return written

    def check_size(self, path: str) -> None:
        """Checks the vendor's limits on the whole schema."""
        for amount, most, what in (
            (self._properties, _MOST_PROPERTIES, "properties"),
            (self._values, _MOST_VALUES, "enum values"),
            (self._text, _MOST_TEXT, "characters of names and enum values"),
        ):
            if amount > most:
                self._refuse(path, f"{amount} {what}", f"at most {most} are taken")


def takes_null(node: JsonObject, normal: Normal, depth: int = 0) -> bool:
    """Whether a schema obviously accepts null."""
    node, _, _ = folded(node, normal)
    types = types_in(node)
    if "null" not in types:
        return False
    if "anyOf" in node:
        return depth < _DEEPEST and any(takes_null(one, normal, depth + 1) for one in node["anyOf"])
    return types != TYPES
