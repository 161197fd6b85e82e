"""The alternatives of a schema, each a plain schema of one type, for readers without unions of
types.
"""

from typing import Any, cast

import msgspec

from toolwire.request import JsonObject
from toolwire.schema.merge import (
    TYPES,
    all_types,
    both,
    folded,
    is_never,
    overlap,
    type_of,
    types_in,
    values_in,
)
from toolwire.schema.normal import ANNOTATIONS
from toolwire.schema.profile import Normal, Report, keyword_text

_MOST = 24
"""Alternatives that are written out where unions meet; more are moved to the description."""
_NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_STRING = frozenset({"minLength", "maxLength", "pattern"})
_ARRAY = frozenset(
    {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"}
    | {"minContains", "maxContains", "unevaluatedItems"}
)
_OBJECT = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "propertyNames"}
    | {"minProperties", "maxProperties", "dependentRequired", "dependentSchemas"}
    | {"unevaluatedProperties", "propertyOrdering"}
)
_SPREAD = frozenset({"anyOf", "oneOf", "allOf", "enum", "const", "not"})
_MEANT_FOR = {
    **dict.fromkeys(_OBJECT, "object"),
    **dict.fromkeys(_ARRAY, "array"),
    **dict.fromkeys(_STRING, "string"),
    **dict.fromkeys(_NUMBER, "number"),
}
_ABOUT = ("title", "description", "default", "example", "examples")
ONLY_CONDITIONS = frozenset({"required", "not", "dependentRequired"} | ANNOTATIONS)
"""Keywords of an alternative that describes no values of its own."""


class Alternative(msgspec.Struct):
    """One alternative: its schema, its path, and the references it is inside of."""

    node: JsonObject
    path: str
    inside: frozenset[str] = frozenset()


class Choices:
    """Splits unions and type lists; the rest is moved to the description and reported."""

    def __init__(self, normal: Normal, report: Report) -> None:
        self._normal = normal
        self._report = report

    def of(self, choice: Alternative, words: list[str]) -> list[Alternative]:
        """The alternatives of a schema, each of one type or of any; none if it accepts nothing."""
        choice = self._fold(choice)
        node = choice.node
        if _SPREAD.isdisjoint(node) and isinstance(node.get("type"), str):
            return [choice]
        about = {key: node[key] for key in _ABOUT if key in node}
        bare = {key: node[key] for key in node if key not in about} if about else node
        found = [
            Alternative(node, one.path, one.inside)
            for one in self._spread(Alternative(bare, choice.path, choice.inside), words, 0)
            for node in self._by_type(one, words)
        ]
        if about:
            _move_annotations(about, found, words)
        return found

    def _fold(self, choice: Alternative) -> Alternative:
        node, inside, cut = folded(choice.node, self._normal, choice.inside)
        if node is choice.node:
            return choice
        if cut:
            self._report.add(
                choice.path, keyword_text("$ref", cut), "recursive; left open at this depth"
            )
        return Alternative(node, choice.path, inside)

    def _spread(self, choice: Alternative, words: list[str], depth: int) -> list[Alternative]:
        choice = self._fold(choice)
        node = choice.node
        if is_never(node):
            return []
        if "anyOf" not in node and "oneOf" not in node and "allOf" not in node:
            return [choice]
        base = {key: node[key] for key in node if key not in ("anyOf", "oneOf", "allOf")}
        unions = [(key, node[key]) for key in ("anyOf", "oneOf") if key in node]
        for apart in node.get("allOf", ()):
            rest = dict(apart)
            unions += [(key, rest.pop(key)) for key in ("anyOf", "oneOf") if key in rest]
            for key, value in rest.items():
                words.append(keyword_text(key, value))
                self._report.add(
                    choice.path,
                    keyword_text(key, value),
                    "only one is allowed; moved to the description",
                )
        found = [Alternative(base, choice.path, choice.inside)]
        for key, branches in unions:
            found = self._cross(found, key, branches, choice, words, depth)
        return found

    def _cross(
        self,
        found: list[Alternative],
        key: str,
        branches: list[JsonObject],
        choice: Alternative,
        words: list[str],
        depth: int,
    ) -> list[Alternative]:
        conditions = all(ONLY_CONDITIONS.issuperset(branch) for branch in branches)
        if conditions or len(found) * len(branches) > _MOST or depth > _MOST:
            words.append(keyword_text(key, branches))
            self._report.add(choice.path, keyword_text(key, branches), "moved to the description")
            return found
        options = [
            option
            for index, branch in enumerate(branches)
            for option in self._spread(
                Alternative(branch, f"{choice.path}.{key}[{index}]", choice.inside),
                words,
                depth + 1,
            )
        ]
        if key == "oneOf" and not disjoint([option.node for option in options]):
            self._report.add(choice.path, key, "several may match at once; sent as anyOf")
        crossed: list[Alternative] = []
        for one in found:
            for option in options:
                node = both(one.node, option.node)
                if is_never(node):
                    continue
                path = option.path if len(options) > 1 else choice.path
                joined = Alternative(node, path, one.inside | option.inside)
                if "allOf" in node:
                    crossed.extend(self._spread(joined, words, depth + 1))
                else:
                    crossed.append(joined)
        return crossed

    def _by_type(self, choice: Alternative, words: list[str]) -> list[JsonObject]:
        node = choice.node
        if _SPREAD.isdisjoint(node) and isinstance(node.get("type"), str):
            return [node]
        types = types_in(node)
        if not types:
            key = "enum" if "enum" in node else "const"
            words.append(keyword_text(key, node[key]))
            self._report.add(
                choice.path, words[-1], "no value of it has the type; moved to the description"
            )
            node = {key: node[key] for key in node if key not in ("enum", "const")}
            types = all_types(node)
        if types == TYPES:
            kind = meant_type(node)
            if not kind:
                return [node]
            self._report.add(choice.path, "missing type", f'taken to be "{kind}"')
            return [{**node, "type": kind}]
        if "number" in types:
            types -= {"integer"}
        return [narrowed(node, name) for name in _in_order(node, types)]


def concerns(key: str, kind: str) -> bool:
    """Whether a keyword concerns values of this type."""
    family = "number" if kind == "integer" else kind
    return _MEANT_FOR.get(key, family) == family


def is_constraint(key: str) -> bool:
    """Whether a keyword forbids some values."""
    return key in _MEANT_FOR or key in ("not", "if", "then", "else")


def _move_annotations(about: JsonObject, found: list[Alternative], words: list[str]) -> None:
    """Moves title and description of a union to its first alternative."""
    at = next((i for i, one in enumerate(found) if one.node.get("type") != "null"), 0)
    if not found:
        return
    alone = sum(one.node.get("type") != "null" for one in found) <= 1
    if not alone:
        for key in ("default", "example", "examples"):
            if key in about:
                words.append(keyword_text(key, about.pop(key)))
    found[at].node = both(about, found[at].node)


def _in_order(node: JsonObject, types: frozenset[str]) -> list[str]:
    kind = node.get("type")
    names = cast(list[str], kind) if isinstance(kind, list) else []
    order = [name for name in names if name in types]
    return [*order, *sorted(types.difference(order))]


def narrowed(node: JsonObject, name: str) -> JsonObject:
    """The part of a schema that concerns one type."""
    out: JsonObject = {"type": name}
    for key, value in node.items():
        if key not in ("type", "enum", "const") and concerns(key, name):
            out[key] = value
    values = values_in(node)
    if values is not None:
        names = ("number", "integer") if name == "number" else (name,)
        out["enum"] = [value for value in values if type_of(value) in names]
    return out


def meant_type(node: JsonObject) -> str:
    """The one type that the keywords of a schema concern; empty for none or several."""
    kinds = {_MEANT_FOR[key] for key in node if key in _MEANT_FOR}
    return kinds.pop() if len(kinds) == 1 else ""


def disjoint(nodes: list[JsonObject]) -> bool:
    """Whether no value can match two of these."""
    seen: frozenset[str] = frozenset()
    for node in nodes:
        types = types_in(node)
        if overlap(seen, types):
            return _distinguishable(nodes)
        seen |= types
    return True


def _distinguishable(nodes: list[JsonObject]) -> bool:
    """Whether one required member has a value of its own in each."""
    first = nodes[0]
    return any(
        all(node.get("type") == "object" and name in node.get("required", ()) for node in nodes)
        and _values_differ([node.get("properties", {}).get(name, {}) for node in nodes])
        for name in first.get("required", ())
    )


def _values_differ(nodes: list[JsonObject]) -> bool:
    seen: set[str] = set()
    for node in nodes:
        values: list[Any] = [node["const"]] if "const" in node else node.get("enum", [])
        texts = {value for value in values if isinstance(value, str)}
        if not texts or len(texts) != len(values) or texts & seen:
            return False
        seen |= texts
    return True
