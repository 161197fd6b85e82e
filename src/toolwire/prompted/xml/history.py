"""Calls and results of a conversation, rendered as text of this style."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from toolwire.messages import (
    CallKind,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    calls_without_result,
)
from toolwire.prompted.xml.shape import FREEFORM_FIELD, Shape, XmlTool, XmlTools, is_short
from toolwire.prompted.xml.tokens import is_tag_name
from toolwire.prompted.xml.values import CDATA, json_of, safe_json, tags_of, unwrapped
from toolwire.request import FreeformTool, JsonObject, ToolSpec
from toolwire.wire.json_access import dump, is_object

_decode = msgspec.json.Decoder().decode


def render_call(call: ToolCall, tools: XmlTools) -> str:
    """The text that parses as this call; an approximation for a tool that is not offered."""
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
    """The arguments of a call; None if they are not a JSON object."""
    try:
        value = _decode(call.arguments.strip() or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if is_object(value) else None


def call_text(tool: XmlTool, arguments: JsonObject) -> str:
    """A call in tags; in JSON where tags would not parse to the same value."""
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


_NOTHING = "(tool did not return anything)"
_LONGEST_KEY = 80
_KEYS = (
    "path",
    "file_path",
    "target_file",
    "absolute_path",
    "dir_path",
    "command",
    "query",
    "pattern",
    "regex",
    "url",
    "uri",
    "question",
    "name",
)


def as_text(messages: Iterable[Message], tools: XmlTools) -> tuple[Message, ...]:
    """The conversation with calls and results as text; nothing else changes."""
    messages = tuple(messages)
    calls: dict[str, ToolCall] = {}
    open_ids = {call.id for call in calls_without_result(messages)}
    waiting: list[Part] = []
    out: list[Message] = []
    for message in messages:
        if waiting and message.role != "user":
            out.append(Message(role="user", parts=tuple(waiting)))
            waiting = []
        for call in message.calls:
            calls[call.id] = call
        if not message.calls and not message.results and not waiting:
            out.append(message)
            continue
        spoken = tuple(_joined(_parts(message, tools, calls)))
        out.append(replace(message, parts=(*waiting, *spoken), kept=None))
        waiting = [_unanswered(call, tools) for call in message.calls if call.id in open_ids]
    if waiting:
        out.append(Message(role="user", parts=tuple(waiting)))
    return tuple(out)


def _parts(message: Message, tools: XmlTools, calls: dict[str, ToolCall]) -> Iterator[Part]:
    for part in message.parts:
        match part:
            case ToolCall():
                yield Text(render_call(part, tools), cache=part.cache)
            case ToolResult():
                yield from _result(part, calls.get(part.call_id), tools)
            case _:
                yield part


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """Joins adjacent plain texts, so that every call starts a line."""
    last: Text | None = None
    for part in parts:
        if not isinstance(part, Text):
            if last is not None:
                yield last
            last = None
            yield part
        elif last is None:
            last = part
        elif last.seal or last.kept or last.citations or last.cache:
            yield last
            last = replace(part, text=f"\n\n{part.text}")
        elif part.seal or part.kept or part.citations:
            yield replace(last, text=f"{last.text}\n\n")
            last = part
        else:
            last = replace(part, text=f"{last.text}\n\n{part.text}")
    if last is not None:
        yield last


def _result(result: ToolResult, call: ToolCall | None, tools: XmlTools) -> Iterator[Part]:
    said = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    media = [part for part in result.parts if isinstance(part, Media)]
    if not said.strip():
        said = "" if media else _NOTHING
    if result.is_error:
        said = f"<error>{said or result.outcome}</error>"
    head = _head(call, result.name, tools)
    yield Text(f"{head}\n{said}" if said else head, cache=result.cache)
    yield from media


def _unanswered(call: ToolCall, tools: XmlTools) -> Text:
    why = "it was interrupted, and may have taken effect" if call.complete else "it was cut off"
    ran = "no result is known" if call.complete else "it did not run"
    return Text(f"{_head(call, call.name, tools)}\n<error>{ran}: {why}</error>")


def _head(call: ToolCall | None, name: str, tools: XmlTools) -> str:
    if call is None:
        return f"[{name or 'tool'}] Result:"
    tag = tools.tag(call.name, call.namespace)
    key = _key_argument(call)
    return f"[{tag} for '{key}'] Result:" if key else f"[{tag}] Result:"


def _key_argument(call: ToolCall) -> str:
    arguments = arguments_of(call) or {}
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    name = next((key for key in (*_KEYS, *texts) if texts.get(key)), "")
    key = " ".join(texts.get(name, "").split())
    return key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 1] + "…"
