"""The tools of a request as the tags that call them."""

from collections.abc import Iterable
from difflib import get_close_matches

from toolwire.messages import CallKind
from toolwire.prompted.xml_shape import TEXT_SHAPE, Shape, shape_of
from toolwire.prompted.xml_tokens import is_tag_name
from toolwire.request import AnyTool, FreeformTool, ServerTool, ToolSpec
from toolwire.wire.names import NameRule, ToolNames

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
