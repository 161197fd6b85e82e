"""The part of the system prompt that teaches the tools."""

import re
from collections.abc import Iterable
from functools import cache
from pkgutil import get_data
from typing import Any

from toolwire.prompted.xml.history import call_text
from toolwire.prompted.xml.shape import FREEFORM_FIELD, ITEM, Shape, XmlTool, XmlTools
from toolwire.prompted.xml.values import safe_json
from toolwire.request import AnyTool, ToolChoice
from toolwire.wire.json_access import dump

_DEEPEST = 6
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_TEXTS = {
    "path": "src/main.py",
    "file": "src/main.py",
    "filename": "main.py",
    "directory": "src",
    "dir": "src",
    "folder": "src",
    "cwd": "src",
    "url": "https://example.com/",
    "uri": "https://example.com/",
    "command": "ls -la",
    "regex": "TODO",
    "pattern": "TODO",
    "query": "where the settings are read",
    "question": "Which of the two should I change?",
    "content": "first line\nsecond line",
    "text": "some text",
    "message": "the tests pass now",
    "result": "Done: the tests pass.",
    "name": "example",
    "id": "42",
    "city": "Paris",
    "location": "Paris",
    "date": "2025-01-31",
    "time": "09:30",
    "email": "ann@example.com",
    "language": "en",
    "title": "A short title",
}
_FORMATS = {
    "date": "2025-01-31",
    "date-time": "2025-01-31T09:30:00Z",
    "time": "09:30:00Z",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def skeleton(tool: XmlTool) -> str:
    """Every parameter with a word in place of its value."""
    if not tool.fields:
        return f"<{tool.tag}>\n</{tool.tag}>"
    if not tool.tagged:
        members = (f"{dump(name)}: …" for name in tool.fields)
        return f"<{tool.tag}>\n{{{', '.join(members)}}}\n</{tool.tag}>"
    lines = [_skeleton(name, shape, 0) for name, shape in tool.fields.items()]
    return "\n".join((f"<{tool.tag}>", *lines, f"</{tool.tag}>"))


def _skeleton(name: str, shape: Shape, depth: int) -> str:
    if not shape.tagged or depth > _DEEPEST:
        said = "JSON here" if shape.main_kinds <= {"array", "object"} else f"{name} here"
        return f"<{name}>{said}</{name}>"
    if "array" in shape.kinds:
        inner = [_skeleton(ITEM, shape.items, depth + 1), "…"]
    else:
        inner = [_skeleton(below, one, depth + 1) for below, one in shape.fields.items()]
    return "\n".join((f"<{name}>", *inner, f"</{name}>"))


def example(tool: XmlTool) -> str:
    """A call with plausible values: what is required, and one more if that is nothing."""
    if tool.freeform is not None:
        return call_text(tool, {FREEFORM_FIELD: "some text"})
    names = [name for name in tool.fields if name in tool.required] or list(tool.fields)[:1]
    return call_text(tool, {name: _plausible(name, tool.fields[name], 0) for name in names})


def _plausible(name: str, shape: Shape, depth: int) -> Any:
    if shape.values:
        return shape.values[0]
    if shape.sample is not None:
        return shape.sample
    kinds = shape.main_kinds
    if "string" in kinds:
        return _text(name, shape)
    if "integer" in kinds or "number" in kinds:
        return shape.smallest
    if "boolean" in kinds:
        return True
    if depth > _DEEPEST or not kinds:
        return {} if shape.only("object") else [] if shape.only("array") else None
    if "array" in kinds:
        singular = name[:-1] if name.endswith("s") else name
        return [_plausible(singular, shape.items, depth + 1)]
    names = [below for below in shape.fields if below in shape.required] or list(shape.fields)[:2]
    return {below: _plausible(below, shape.fields[below], depth + 1) for below in names}


def _text(name: str, shape: Shape) -> str:
    if shape.format in _FORMATS:
        return _FORMATS[shape.format]
    words = _WORDS.findall(name)
    return _TEXTS.get(words[-1].lower() if words else "", "some text")


_SECTION = re.compile(r"^<!-- (\w+) -->\n", re.MULTILINE)


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
    text = (get_data("toolwire.prompted.xml", "xml_teaching.md") or b"").decode()
    parts = _SECTION.split(text)[1:]
    return {name: said.rstrip("\n") for name, said in zip(parts[::2], parts[1::2], strict=True)}
