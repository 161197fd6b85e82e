"""Closed schemas: OpenAI's strict form, used only if it accepts exactly the same arguments, and
Anthropic's outputs.
"""

import re
from typing import Any, cast

from toolwire.request import JsonObject
from toolwire.schema.choices import (
    ONLY_CONDITIONS,
    concerns,
    disjoint,
    is_constraint,
    meant_type,
    narrowed,
)
from toolwire.schema.merge import (
    both,
    folded,
    is_never,
    never_or,
    recursive,
    takes_null,
    type_of,
    types_in,
)
from toolwire.schema.normal import DEEPEST, allow_null
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
            inner_path = below(f"{path}.properties", name)
            written[name] = self.node(member, inner_path, depth + 1, inside)
            if name not in required:
                written[name] = self._optional(member, written[name], inner_path)
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


_PLAIN_TYPES = frozenset({"string", "number", "integer", "boolean", "null"})
_TEXT_FORMATS = _FORMATS | {"uri"}
_ABOUT = ("title", "description", "default")
_TAKEN = frozenset({"type", "enum", "const", "required", *_ABOUT})
_ODD_PATTERN = re.compile(r"\(\?|\\[1-9bB]|\{\d{3,}")
_UNION = ("anyOf", "oneOf")
_NOT_TAKEN = "not taken in output schemas; moved to the description"


def to_closed(normal: Normal, path: str, report: Report) -> Normal:
    """The schema in the subset that Anthropic takes for outputs: closed objects, hardly any bounds.

    Anything else in it is moved to the descriptions and reported.
    """
    writer = _ClosedWriter(normal, report)
    defs = {
        name: writer.whole(node, below(f"{path}.$defs", name))
        for name, node in normal.defs.items()
        if name not in writer.recursive
    }
    return Normal(writer.whole(normal.root, path), defs)


class _ClosedWriter:
    def __init__(self, normal: Normal, report: Report) -> None:
        self._normal = normal
        self._report = report
        self._left = _MOST_NODES
        self._depth = 0
        self.recursive = recursive(normal)

    def whole(self, node: JsonObject, path: str) -> JsonObject:
        """The root or a definition."""
        written = self.node(node, path)
        if written is None:
            self._report.add(path, "schema", "no value is accepted; sent as an empty object")
            return {"type": "object", "properties": {}, "additionalProperties": False}
        return written

    def node(
        self, node: JsonObject, path: str, inside: frozenset[str] = frozenset()
    ) -> JsonObject | None:
        """One schema, `inside` these expanded references; None if it accepts nothing."""
        reference = node.get("$ref", "#")
        if len(node) == 1 and reference != "#" and reference[8:] not in self.recursive:
            return {"$ref": reference}
        node, inside = self._fold(node, path, inside)
        self._left -= 1
        if self._depth > DEEPEST or self._left < 0:
            self._report.add(path, "schema", "too deep or too large; left out")
            return None
        if is_never(node):
            return None
        words: list[str] = []
        union = next((key for key in _UNION if key in node), "")
        self._depth += 1
        if union:
            out = self._union(node, union, path, inside, words)
        else:
            out = self._typed(node, path, inside, words)
        self._depth -= 1
        if out is not None:
            describe(out, words)
        return out

    def _fold(
        self, node: JsonObject, path: str, inside: frozenset[str]
    ) -> tuple[JsonObject, frozenset[str]]:
        node, inside, cut = folded(node, self._normal, inside)
        if cut:
            why = "recursive; only an empty object is taken at this depth"
            self._report.add(path, keyword_text("$ref", cut), why)
        return node, inside

    def _union(
        self, node: JsonObject, key: str, path: str, inside: frozenset[str], words: list[str]
    ) -> JsonObject | None:
        about = {name: node[name] for name in _ABOUT if name in node}
        base = {name: node[name] for name in node if name != key and name not in about}
        if all(ONLY_CONDITIONS.issuperset(branch) for branch in node[key]):
            self._describe(node, key, path, words)
            return self._typed({**about, **base}, path, inside, words)
        if key == "oneOf" and not disjoint([folded(one, self._normal)[0] for one in node[key]]):
            self._report.add(path, key, "several may match at once; sent as anyOf")
        written: list[JsonObject | None] = []
        for index, branch in enumerate(node[key]):
            inner_path, within = f"{path}.{key}[{index}]", inside
            if base:
                branch, within = self._fold(branch, inner_path, inside)
                branch = both(base, branch)
            written.append(self.node(branch, inner_path, within))
        return _any_of(about, written)

    def _typed(
        self, node: JsonObject, path: str, inside: frozenset[str], words: list[str]
    ) -> JsonObject | None:
        declared = node.get("type")
        if declared is None and "enum" not in node and "const" not in node:
            declared = meant_type(node)
            if declared:
                self._report.add(path, "missing type", f'taken to be "{declared}"')
                node = {"type": declared, **node}
        if isinstance(declared, list) and not _PLAIN_TYPES.issuperset(cast(list[str], declared)):
            about = {name: node[name] for name in _ABOUT if name in node}
            rest = {name: node[name] for name in node if name not in about}
            names = cast(list[str], declared)
            found = [narrowed(rest, name) for name in names]
            return _any_of(
                about, [self.node(one, path, inside) for one in found if one.get("enum") != []]
            )
        out = {name: node[name] for name in ("type", *_ABOUT) if name in node}
        for name in ("enum", "const"):
            if name in node and _is_plain(node[name], listed=name == "enum"):
                out[name] = node[name]
            elif name in node:
                self._describe(node, name, path, words)
        if out.keys().isdisjoint(("type", "enum", "const")):
            self._report.add(path, "any value", "only plain values are taken")
            out["anyOf"] = [{"type": name} for name in ("string", "number", "boolean", "null")]
        done = self._members(node, out, path, inside, words)
        for key in node:
            if key in _TAKEN or key in done:
                continue
            if isinstance(declared, str) and not concerns(key, declared):
                what = keyword_text(key, node[key])
                self._report.add(path, what, f"without effect on the type {declared}; left out")
            else:
                self._describe(node, key, path, words)
        return out

    def _members(
        self,
        node: JsonObject,
        out: JsonObject,
        path: str,
        inside: frozenset[str],
        words: list[str],
    ) -> frozenset[str]:
        """Writes the keywords of one type; returns those that need no description."""
        match node.get("type"):
            case "object":
                return self._object(node, out, path, inside)
            case "array":
                return self._array(node, out, path, inside)
            case "string":
                if node.get("format") in _TEXT_FORMATS:
                    out["format"] = node["format"]
                if "pattern" in node and not _ODD_PATTERN.search(node["pattern"]):
                    out["pattern"] = node["pattern"]
                return frozenset(out)
            case _:
                return frozenset()

    def _object(
        self, node: JsonObject, out: JsonObject, path: str, inside: frozenset[str]
    ) -> frozenset[str]:
        members: JsonObject = {}
        for name, member in node.get("properties", {}).items():
            inner_path = below(f"{path}.properties", name)
            written = self.node(member, inner_path, inside)
            if written is None:
                self._report.add(inner_path, "false", "no value is allowed; the member is left out")
            else:
                members[name] = written
        out["properties"] = members
        required = [name for name in node.get("required", ()) if name in members]
        if required:
            out["required"] = required
        if len(required) < len(node.get("required", ())):
            what = keyword_text("required", node["required"])
            self._report.add(path, what, "only described members can be required")
        out["additionalProperties"] = False
        rest = node.get("additionalProperties", True)
        if rest is not False:
            why = "output objects are closed: members that are not described are not accepted"
            self._report.add(path, keyword_text("additionalProperties", rest), why)
        if isinstance(rest, bool) or rest == {}:
            return frozenset({"properties", "additionalProperties"})
        return frozenset({"properties"})

    def _array(
        self, node: JsonObject, out: JsonObject, path: str, inside: frozenset[str]
    ) -> frozenset[str]:
        first: list[JsonObject] = node.get("prefixItems", [])
        rest = never_or(node.get("items", True))
        variants = first if is_never(rest) else [*first, rest]
        item = variants[0] if len(variants) == 1 else {"anyOf": variants} if variants else rest
        written = self.node(item, f"{path}.items", inside)
        if written is None:
            self._report.add(path, keyword_text("items", False), "no item is allowed")
        out["items"] = written or {"type": "null"}
        least = node.get("minItems", 0)
        if "minItems" in node:
            out["minItems"] = min(least, 1)
        return frozenset({"items", "minItems"} if least < 2 else {"items"})

    def _describe(self, node: JsonObject, key: str, path: str, words: list[str]) -> None:
        text = keyword_text(key, node[key])
        if (
            is_constraint(key)
            or key in ("enum", "const", "format", "allOf", "anyOf", "oneOf")
            or key in ("examples", "example")
        ):
            words.append(text)
            self._report.add(path, text, _NOT_TAKEN)
        else:
            self._report.add(path, text, "not a keyword Anthropic takes; left out")


def _any_of(about: JsonObject, written: list[JsonObject | None]) -> JsonObject | None:
    """The alternatives that accept something, each once; None if there are none."""
    found: list[JsonObject] = []
    for one in written:
        if one is not None and one not in found:
            found.append(one)
    if not found:
        return None
    if len(found) == 1 and about.keys().isdisjoint(found[0]) and "$ref" not in found[0]:
        return {**about, **found[0]}
    return {**about, "anyOf": found}


def _is_plain(value: Any, *, listed: bool) -> bool:
    values = cast(list[Any], value) if listed else [value]
    return all(one is None or isinstance(one, str | int | float) for one in values)
