"""A skeleton and an example call for each tool, from its schema."""

import re
from typing import Any

from toolwire.prompted.xml_render import call_text
from toolwire.prompted.xml_shape import ITEM, Shape
from toolwire.prompted.xml_tools import FREEFORM_FIELD, XmlTool
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
