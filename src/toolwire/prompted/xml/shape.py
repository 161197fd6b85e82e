"""Shape of a value by its schema, as needed to write it in tags."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property
from typing import Any, cast

from toolwire.messages import CallKind
from toolwire.prompted.xml.tokens import is_tag_name
from toolwire.request import AnyTool, FreeformTool, JsonObject, ServerTool, ToolSpec
from toolwire.schema.merge import TYPES, overlap, types_in, values_in
from toolwire.schema.normal import normalise
from toolwire.schema.profile import Normal, Report
from toolwire.wire.names import NameRule, ToolNames

ITEM = "item"
_DEEPEST = 24
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_SHORT_WORDS = frozenset(
    [
        "action",
        "branch",
        "column",
        "coordinate",
        "count",
        "cwd",
        "dir",
        "directory",
        "encoding",
        "end",
        "extension",
        "file",
        "filename",
        "folder",
        "format",
        "height",
        "id",
        "kind",
        "lang",
        "language",
        "length",
        "level",
        "limit",
        "line",
        "lines",
        "max",
        "min",
        "mode",
        "model",
        "name",
        "number",
        "offset",
        "page",
        "path",
        "port",
        "recursive",
        "server",
        "size",
        "slug",
        "start",
        "status",
        "timeout",
        "type",
        "uri",
        "url",
        "width",
    ]
)


class Shape:
    """One node of a schema, with references resolved and alternatives joined."""

    def __init__(self, node: JsonObject, normal: Normal, depth: int = 0) -> None:
        self._normal = normal
        self._depth = depth
        self._nodes = _spread(node, normal, frozenset())
        self.kinds = _kinds(node, normal, 0)
        self.values: list[Any] | None = next(
            (values for one in self._nodes if (values := values_in(one)) is not None), None
        )
        self.description = next(
            (str(one["description"]) for one in self._nodes if one.get("description")), ""
        )
        self.default: Any = next((one["default"] for one in self._nodes if "default" in one), None)
        self.required = frozenset(
            str(name) for one in self._nodes for name in cast(list[Any], one.get("required") or ())
        )

    @property
    def sample(self) -> Any:
        """The schema's own example or default."""
        for one in self._nodes:
            given = one.get("examples")
            if isinstance(given, list) and given:
                return cast(list[Any], given)[0]
        return self.default

    @property
    def smallest(self) -> int | float:
        """A small allowed number."""
        low = next((one["minimum"] for one in self._nodes if "minimum" in one), 1)
        return max(low, 1) if isinstance(low, int | float) else 1

    @property
    def format(self) -> str:
        """The schema's `format` of a text."""
        return next((str(one["format"]) for one in self._nodes if "format" in one), "")

    @cached_property
    def fields(self) -> dict[str, "Shape"]:
        """The declared members of an object, in order."""
        found: dict[str, Shape] = {}
        for one in self._nodes:
            for name, node in cast(JsonObject, one.get("properties") or {}).items():
                if name not in found:
                    found[name] = self._below(node)
        return found

    @cached_property
    def items(self) -> "Shape":
        """The shape of an array's elements."""
        return self._below(next((one["items"] for one in self._nodes if "items" in one), None))

    @cached_property
    def extra(self) -> "Shape":
        """The shape of undeclared members."""
        key = "additionalProperties"
        return self._below(next((one[key] for one in self._nodes if key in one), None))

    @property
    def main_kinds(self) -> frozenset[str]:
        """The kinds except null."""
        return self.kinds - {"null"}

    def only(self, kind: str) -> bool:
        """Whether a value is of this kind, or null."""
        return self.main_kinds == frozenset({kind})

    @property
    def plain_text(self) -> bool:
        """Whether any text is a valid value."""
        return self.kinds == frozenset({"string"})

    @cached_property
    def tagged(self) -> bool:
        """Whether a value is written as nested tags; other arrays and objects are JSON."""
        if self._depth > _DEEPEST:
            return False
        if self.only("object"):
            return bool(self.fields) and all(is_tag_name(name) for name in self.fields)
        if self.only("array"):
            return self.items.tagged or not self.items.main_kinds & {"array", "object"}
        return False

    def field(self, name: str) -> "Shape":
        """The shape of a member, declared or not."""
        return self.fields.get(name) or self.extra

    def _below(self, node: Any) -> "Shape":
        members = cast(JsonObject, node) if isinstance(node, dict) else {}
        return Shape(members, self._normal, self._depth + 1)


def shape_of(schema: JsonObject) -> Shape:
    """The shape of a complete schema."""
    normal = normalise(schema, "", Report())
    return Shape(normal.root, normal)


def is_short(name: str, shape: Shape) -> bool:
    """Whether a parameter never contains free text, so that its first closing tag ends it."""
    if shape.values is not None or not shape.main_kinds & {"string", "array", "object"}:
        return True
    words = _WORDS.findall(name)
    return shape.only("string") and bool(words) and words[-1].lower() in _SHORT_WORDS


def _spread(node: JsonObject, normal: Normal, seen: frozenset[str]) -> list[JsonObject]:
    found = [node]
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target = _target(normal, reference)
        if target is not None:
            found += _spread(target, normal, seen | {reference})
    for key in ("allOf", "anyOf", "oneOf"):
        for branch in cast(list[Any], node.get(key) or ()):
            if isinstance(branch, dict):
                found += _spread(cast(JsonObject, branch), normal, seen)
    return found


def _kinds(node: JsonObject, normal: Normal, depth: int) -> frozenset[str]:
    if depth > _DEEPEST:
        return TYPES
    found = types_in(node)
    reference = node.get("$ref")
    if isinstance(reference, str) and (target := _target(normal, reference)) is not None:
        found = overlap(found, _kinds(target, normal, depth + 1))
    for branch in _branches(node, "allOf"):
        found = overlap(found, _kinds(branch, normal, depth + 1))
    for key in ("anyOf", "oneOf"):
        if branches := _branches(node, key):
            either = [_kinds(branch, normal, depth + 1) for branch in branches]
            found = overlap(found, frozenset[str]().union(*either))
    return found


def _branches(node: JsonObject, key: str) -> list[JsonObject]:
    found = cast(list[Any], node.get(key) or ())
    return [cast(JsonObject, one) if isinstance(one, dict) else {} for one in found]


def _target(normal: Normal, reference: str) -> JsonObject | None:
    try:
        return normal.target(reference)
    except KeyError:
        return None


TEXT_SHAPE = shape_of({"type": "string"})


FREEFORM_FIELD = "input"
_TAG_NAMES = NameRule(limit=128, allowed="a-zA-Z0-9_.:-", first="a-zA-Z0-9_")


class XmlTool:
    """One tool: its tag, its parameters."""

    def __init__(self, tag: str, tool: ToolSpec | FreeformTool) -> None:
        self.tag = tag
        self.name = tool.name
        self.namespace = tool.namespace
        self.description = tool.description
        self.freeform = tool if isinstance(tool, FreeformTool) else None
        self.kind = CallKind.FREEFORM if self.freeform else CallKind.JSON
        self.shape: Shape | None = None
        self.fields: dict[str, Shape] = {FREEFORM_FIELD: TEXT_SHAPE}
        self.required = frozenset({FREEFORM_FIELD})
        if isinstance(tool, ToolSpec):
            self.shape = shape_of(tool.parameters)
            self.fields = self.shape.fields
            self.required = self.shape.required

    @property
    def tagged(self) -> bool:
        """Whether every parameter can be a tag; a tool with others is called with JSON."""
        return all(is_tag_name(name) for name in self.fields)

    def may_wrap(self, name: str) -> bool:
        """Whether CDATA in this parameter after free text is real, not a quotation."""
        shape = self.fields.get(name)
        return shape is not None and bool(shape.kinds & {"string", "array", "object"})

    def field(self, name: str) -> Shape:
        """The shape of a parameter, declared or not."""
        return TEXT_SHAPE if self.shape is None else self.shape.field(name)


class XmlTools:
    """The tools that can be described in the prompt; the vendor's own cannot."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        taught = [tool for tool in tools if not isinstance(tool, ServerTool)]
        self._names = ToolNames(taught, _TAG_NAMES)
        self.by_tag: dict[str, XmlTool] = {}
        for tool in taught:
            tag = self._names.wire_name(tool.name, tool.namespace)
            self.by_tag[tag] = XmlTool(tag, tool)
        self._near: dict[str, XmlTool | None] = {}

    def tag(self, name: str, namespace: str = "") -> str:
        """The tag for a tool, offered or not."""
        return self._names.wire_name(name, namespace)

    def near(self, tag: str) -> XmlTool | None:
        """The tool closest to a misspelled tag."""
        if tag not in self._near:
            known = {_plain(name): name for name in self.by_tag}
            found = get_close_matches(_plain(tag), known, 1, 0.8)
            self._near[tag] = self.by_tag[known[found[0]]] if found else None
        return self._near[tag]


def _plain(tag: str) -> str:
    return tag.lower().replace("-", "_")
