"""The part of the system prompt that teaches the tools."""

import re
from collections.abc import Iterable
from functools import cache
from pkgutil import get_data

from toolwire.prompted.xml_examples import example, skeleton
from toolwire.prompted.xml_shape import ITEM, Shape
from toolwire.prompted.xml_tools import XmlTool, XmlTools
from toolwire.prompted.xml_values import safe_json
from toolwire.request import AnyTool, ToolChoice

_SECTION = re.compile(r"^<!-- (\w+) -->\n", re.MULTILINE)
_DEEPEST = 6


def teaching(
    tools: XmlTools | Iterable[AnyTool],
    choice: ToolChoice | None = None,
    *,
    parallel: bool | None = None,
) -> str:
    """All a model needs to know to call these tools; empty if there is none to teach."""
    taught = tools if isinstance(tools, XmlTools) else XmlTools(tools)
    if not taught.by_tag:
        return ""
    said = [_said("opening"), _said("single" if parallel is False else "parallel")]
    said.append(_said("results"))
    blocks = ["\n".join(said)]
    blocks += [_tool(tool) for tool in taught.by_tag.values()]
    words = _choice(choice, taught)
    if words:
        blocks.append(words)
    return "\n\n".join(blocks)


def _choice(choice: ToolChoice | None, tools: XmlTools) -> str:
    if choice is None:
        return ""
    if choice.mode == "none":
        return _said("none")
    if not choice.names:
        return _said("required") if choice.mode == "required" else ""
    names = ", ".join(tools.tag(name) for name in choice.names)
    if choice.mode == "auto":
        return _said("subset").replace("{names}", names)
    section = "named" if len(choice.names) == 1 else "named_several"
    return _said(section).replace("{names}", names)


def _tool(tool: XmlTool) -> str:
    lines = [f"## {tool.tag}"]
    if tool.description:
        lines.append(f"Description: {tool.description.strip()}")
    if tool.freeform is not None:
        lines.append(_freeform(tool))
    elif tool.fields:
        lines.append("Parameters:")
        for name, shape in tool.fields.items():
            lines += _parameter(name, shape, name in tool.required, 0)
    else:
        lines.append("Parameters: none")
    lines += ["Usage:", skeleton(tool), "Example:", example(tool)]
    return "\n".join(lines)


def _freeform(tool: XmlTool) -> str:
    assert tool.freeform is not None  # noqa: S101 - asked only for freeform tools
    if not tool.freeform.grammar:
        return _said("freeform")
    words = _said("grammar").replace("{syntax}", tool.freeform.syntax)
    return f"{words}\n{tool.freeform.grammar.strip()}"


def _parameter(name: str, shape: Shape, required: bool, depth: int) -> list[str]:
    about = f"{_type(shape)}, {'required' if required else 'optional'}"
    line = f"{'  ' * depth}- {name} ({about})"
    if shape.description:
        line += f": {' '.join(shape.description.split())}"
    if shape.values is not None:
        line += f" One of: {', '.join(_plain(value) for value in shape.values)}."
    if shape.default is not None:
        line += f" Default: {_plain(shape.default)}."
    return [line, *_inner(shape, depth + 1)]


def _inner(shape: Shape, depth: int) -> list[str]:
    if depth > _DEEPEST:
        return []
    if shape.only("array"):
        items = shape.items
        if items.description or items.values is not None or items.only("object"):
            return _parameter(ITEM, items, True, depth)
        return _inner(items, depth)
    if not shape.only("object"):
        return []
    lines: list[str] = []
    for name, below in shape.fields.items():
        lines += _parameter(name, below, name in shape.required, depth)
    return lines


def _type(shape: Shape) -> str:
    kinds = shape.main_kinds
    if kinds >= {"string", "number", "boolean", "array", "object"}:
        return "any"
    if "number" in kinds:
        kinds -= {"integer"}
    words = sorted(kinds) or ["null"]
    if shape.only("array") and not shape.items.main_kinds >= {"string", "object"}:
        words = [f"array of {_type(shape.items)}"]
    if "null" in shape.kinds and kinds:
        words.append("null")
    return " or ".join(words)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else safe_json(value)


def _said(section: str) -> str:
    return _sections()[section]


@cache
def _sections() -> dict[str, str]:
    text = (get_data("toolwire.prompted", "xml_teaching.md") or b"").decode()
    parts = _SECTION.split(text)[1:]
    return {name: said.rstrip("\n") for name, said in zip(parts[::2], parts[1::2], strict=True)}
