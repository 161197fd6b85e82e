"""What a schema says of a value, as far as writing it in tags goes."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property
from typing import Any, cast

from toolwire.messages import CallKind
from toolwire.prompted.xml.tokens import is_tag_name
from toolwire.request import AnyTool, FreeformTool, JsonObject, ServerTool, ToolSpec
from toolwire.schema.normal import normalise
from toolwire.schema.profile import Normal, Report
from toolwire.schema.type_names import TYPES, overlap, types_in, values_in
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
    """One place in a schema, its references followed and its alternatives joined."""

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
        """A value the schema itself gives as an example, or as the default."""
        for one in self._nodes:
            given = one.get("examples")
            if isinstance(given, list) and given:
                return cast(list[Any], given)[0]
        return self.default

    @property
    def smallest(self) -> int | float:
        """A small number that is allowed."""
        low = next((one["minimum"] for one in self._nodes if "minimum" in one), 1)
        return max(low, 1) if isinstance(low, int | float) else 1

    @property
    def format(self) -> str:
        """The schema's word for what a text holds."""
        return next((str(one["format"]) for one in self._nodes if "format" in one), "")

    @cached_property
    def fields(self) -> dict[str, "Shape"]:
        """The members an object declares, in order."""
        found: dict[str, Shape] = {}
        for one in self._nodes:
            for name, node in cast(JsonObject, one.get("properties") or {}).items():
                if name not in found:
                    found[name] = self._below(node)
        return found

    @cached_property
    def items(self) -> "Shape":
        """What the elements of an array are."""
        return self._below(next((one["items"] for one in self._nodes if "items" in one), None))

    @cached_property
    def extra(self) -> "Shape":
        """What members are that the object does not declare."""
        key = "additionalProperties"
        return self._below(next((one[key] for one in self._nodes if key in one), None))

    @property
    def main_kinds(self) -> frozenset[str]:
        """The kinds but null."""
        return self.kinds - {"null"}

    def only(self, kind: str) -> bool:
        """Whether a value is of this kind, or null."""
        return self.main_kinds == frozenset({kind})

    @property
    def plain_text(self) -> bool:
        """Whether any text is a value, just as it stands."""
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
        """What the member of that name is, declared or not."""
        return self.fields.get(name) or self.extra

    def _below(self, node: Any) -> "Shape":
        members = cast(JsonObject, node) if isinstance(node, dict) else {}
        return Shape(members, self._normal, self._depth + 1)


def shape_of(schema: JsonObject) -> Shape:
    """The shape of a whole schema."""
    normal = normalise(schema, "", Report())
    return Shape(normal.root, normal)


def is_short(name: str, shape: Shape) -> bool:
    """Whether a parameter never holds free text, so that its first closing tag is its end."""
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
        """Whether CDATA is believed in this parameter after free text, which may quote anything."""
        shape = self.fields.get(name)
        return shape is not None and bool(shape.kinds & {"string", "array", "object"})

    def field(self, name: str) -> Shape:
        """What the parameter of that name is, declared or not."""
        return TEXT_SHAPE if self.shape is None else self.shape.field(name)


class XmlTools:
    """The tools that can be taught; those the vendor runs itself cannot."""

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
        """The tool that a misspelled tag most likely means."""
        if tag not in self._near:
            known = {_plain(name): name for name in self.by_tag}
            found = get_close_matches(_plain(tag), known, 1, 0.8)
            self._near[tag] = self.by_tag[known[found[0]]] if found else None
        return self._near[tag]


def _plain(tag: str) -> str:
    return tag.lower().replace("-", "_")
