"""A call as the text a model would have written for it."""

import re
from typing import Any

import msgspec

from toolwire.messages import CallKind, ToolCall
from toolwire.prompted.xml_shape import Shape, is_short
from toolwire.prompted.xml_tokens import is_tag_name
from toolwire.prompted.xml_tools import FREEFORM_FIELD, XmlTool, XmlTools
from toolwire.prompted.xml_values import CDATA, json_of, safe_json, tags_of, unwrapped
from toolwire.request import FreeformTool, JsonObject, ToolSpec
from toolwire.wire.json_access import dump, is_object

_decode = msgspec.json.Decoder().decode


def render_call(call: ToolCall, tools: XmlTools) -> str:
    """The text that reads back as this call; for a tool not offered, the nearest to it."""
    tag = tools.tag(call.name, call.namespace)
    tool = tools.by_tag.get(tag)
    if call.kind is CallKind.FREEFORM:
        if tool is None or tool.freeform is None:
            tool = XmlTool(tag, FreeformTool(name=tag))
        return call_text(tool, {FREEFORM_FIELD: call.arguments})
    if tool is None or tool.freeform is not None:
        tool = XmlTool(tag, ToolSpec(name=tag))
    arguments = arguments_of(call)
    if arguments is None:
        return f"<{tag}>\n{call.arguments.strip()}\n</{tag}>"
    return call_text(tool, arguments)


def arguments_of(call: ToolCall) -> JsonObject | None:
    """The arguments of a call; None if they are no JSON object."""
    try:
        value = _decode(call.arguments.strip() or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if is_object(value) else None


def call_text(tool: XmlTool, arguments: JsonObject) -> str:
    """A call in tags; in JSON where tags would not read back as the same."""
    tag = tool.tag
    names = {tag, *tool.fields, *arguments}
    risky = re.compile(f"</?(?:{'|'.join(map(re.escape, sorted(names)))}) ?/?>")
    lines: list[str] = []
    for name, value in arguments.items():
        shape = tool.field(name)
        trim = is_short(name, shape)
        inner = tags_of(shape, value, risky, trim=trim)
        if "\n" in inner and not inner.startswith(("\n", CDATA)):
            on_own_lines = f"\n{inner}\n"
            if _reads_back(shape, on_own_lines, value, trim):
                inner = on_own_lines
        believed = tool.may_wrap(name) or unwrapped(inner) is None
        if not (is_tag_name(name) and believed and _reads_back(shape, inner, value, trim)):
            return f"<{tag}>\n{safe_json(arguments)}\n</{tag}>"
        lines.append(f"<{name}>{inner}</{name}>")
    return "\n".join((f"<{tag}>", *lines, f"</{tag}>"))


def _reads_back(shape: Shape, said: str, value: Any, trim: bool) -> bool:
    try:
        return dump(_decode(json_of(shape, said, trim=trim))) == dump(value)
    except (msgspec.DecodeError, UnicodeError):
        return False
