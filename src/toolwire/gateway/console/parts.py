"""Parts of a request found in every stage: the same call in the bytes of three formats."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from toolwire.messages import Message, Text, Thinking, ToolCall, ToolResult
from toolwire.request import ModelRequest, ServerTool
from toolwire.wire.json_access import (
    dump,
    is_list,
    is_object,
    list_or_empty,
    object_or_empty,
    objects_in,
    text_or_empty,
)

_BY_POSITION = ("call", "result", "tool")
"""Kinds whose names or arguments a format may spell differently."""


class FoundPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a document, and where it is."""

    kind: str
    """`system`, `tool`, `text`, `thinking`, `call` or `result`."""
    content: str
    """What it must have in common with the same part elsewhere."""
    pointer: str
    """JSON pointer."""
    label: str = ""
    turn: int = 0


class ShownPart(msgspec.Struct, kw_only=True):
    """A part that can be highlighted in several stages."""

    key: str
    kind: str
    label: str
    turn: int = 0
    answer: bool = False
    at: dict[str, list[str]] = {}
    """Stage → JSON pointers into its document."""
    frames: dict[str, list[int]] = {}
    """Stage → frames of its stream."""


def of_request(request: ModelRequest, before: str = "/request") -> Iterator[FoundPart]:
    """The parts of a canonical request."""
    for number, text in enumerate(request.system):
        yield FoundPart(
            kind="system", content=text.text, pointer=f"{before}/system/{number}", label="system"
        )
    for number, tool in enumerate(request.tools):
        name = tool.kind if isinstance(tool, ServerTool) else tool.name
        yield FoundPart(kind="tool", content=name, pointer=f"{before}/tools/{number}", label=name)
    names: dict[str, str] = {}
    for number, message in enumerate(request.messages):
        yield from of_message(message, f"{before}/messages/{number}", number, names)


def of_message(
    message: Message, before: str, turn: int = 0, names: dict[str, str] | None = None
) -> Iterator[FoundPart]:
    """The parts of a canonical message; `names` collects the names of calls by their ids."""
    names = {} if names is None else names
    for number, part in enumerate(message.parts):
        pointer = f"{before}/parts/{number}"
        match part:
            case Text(text):
                kind = "system" if str(message.role) == "system" else "text"
                yield _part(kind, text, pointer, str(message.role), turn)
            case Thinking(text):
                yield _part("thinking", text, pointer, "thinking", turn)
            case ToolCall():
                names[part.id] = part.name
                content = f"{part.name} {_normal(part.arguments)}"
                yield _part("call", content, pointer, part.name, turn)
            case ToolResult():
                label = part.name or names.get(part.call_id, "result")
                yield _part("result", part.text, pointer, label, turn)
            case _:
                pass


def _part(kind: str, content: str, pointer: str, label: str, turn: int) -> FoundPart:
    return FoundPart(kind=kind, content=content, pointer=pointer, label=label, turn=turn)


def _normal(arguments: object) -> str:
    """Arguments in one spelling, whether they are text or an object."""
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeError):
            return arguments
    return dump(_sorted(arguments))


def _sorted(value: Any) -> Any:
    if is_object(value):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(one) for one in value] if is_list(value) else value


def of_document(dialect: str, document: Any) -> Iterator[FoundPart]:
    """The parts of a request or an answer in a wire format."""
    body = object_or_empty(document)
    before = ""
    if dialect == "code-assist":
        name = "request" if "request" in body else "response"
        body, before = object_or_empty(body.get(name)), f"/{name}"
    match dialect:
        case "openai-chat":
            yield from _chat(body)
        case "openai-responses":
            yield from _responses(body)
        case "anthropic-messages":
            yield from _anthropic(body)
        case _:
            yield from _gemini(body, before)


def _chat(body: dict[str, Any]) -> Iterator[FoundPart]:
    for number, tool in enumerate(objects_in(body.get("tools"))):
        inner = object_or_empty(tool.get("function") or tool.get("custom"))
        name = text_or_empty(inner.get("name"))
        yield _part("tool", name, f"/tools/{number}", name, 0)
    for number, message in enumerate(objects_in(body.get("messages"))):
        yield from _chat_message(message, f"/messages/{number}", number)
    for number, choice in enumerate(objects_in(body.get("choices"))[:1]):
        message = object_or_empty(choice.get("message"))
        yield from _chat_message(message, f"/choices/{number}/message", 0)


def _chat_message(message: dict[str, Any], here: str, turn: int) -> Iterator[FoundPart]:
    role = text_or_empty(message.get("role"))
    content = message.get("content")
    if role == "tool":
        yield _part("result", _texts(content), here, "result", turn)
        return
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and thought:
        name = "reasoning_content" if message.get("reasoning_content") else "reasoning"
        yield _part("thinking", thought, f"{here}/{name}", "thinking", turn)
    kind = "system" if role in ("system", "developer") else "text"
    yield from _contents(content, f"{here}/content", kind, role, turn)
    for number, call in enumerate(objects_in(message.get("tool_calls"))):
        inner = object_or_empty(call.get("function") or call.get("custom"))
        name = text_or_empty(inner.get("name"))
        arguments = inner.get("arguments", inner.get("input", ""))
        yield _part(
            "call", f"{name} {_normal(arguments)}", f"{here}/tool_calls/{number}", name, turn
        )


def _contents(content: Any, here: str, kind: str, label: str, turn: int) -> Iterator[FoundPart]:
    if isinstance(content, str) and content:
        yield _part(kind, content, here, label, turn)
    for number, block in enumerate(objects_in(content)):
        text = block.get("text")
        if isinstance(text, str):
            yield _part(kind, text, f"{here}/{number}", label, turn)


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(text_or_empty(one.get("text")) for one in objects_in(content))


def _anthropic(body: dict[str, Any]) -> Iterator[FoundPart]:
    yield from _contents(body.get("system"), "/system", "system", "system", 0)
    for number, tool in enumerate(objects_in(body.get("tools"))):
        name = text_or_empty(tool.get("name"))
        yield _part("tool", name, f"/tools/{number}", name, 0)
    for number, message in enumerate(objects_in(body.get("messages"))):
        role = text_or_empty(message.get("role"))
        yield from _blocks(message.get("content"), f"/messages/{number}/content", role, number)
    if "messages" not in body:
        yield from _blocks(body.get("content"), "/content", "assistant", 0)


def _blocks(content: Any, here: str, role: str, turn: int) -> Iterator[FoundPart]:
    if isinstance(content, str):
        yield _part("text", content, here, role, turn)
    for number, block in enumerate(objects_in(content)):
        pointer = f"{here}/{number}"
        match block.get("type"):
            case "text":
                yield _part("text", text_or_empty(block.get("text")), pointer, role, turn)
            case "thinking" | "redacted_thinking":
                text = text_or_empty(block.get("thinking"))
                yield _part("thinking", text, pointer, "thinking", turn)
            case "tool_use":
                name = text_or_empty(block.get("name"))
                content_of = f"{name} {_normal(block.get('input'))}"
                yield _part("call", content_of, pointer, name, turn)
            case "tool_result":
                yield _part("result", _texts(block.get("content")), pointer, "result", turn)
            case _:
                pass


def _responses(body: dict[str, Any]) -> Iterator[FoundPart]:
    instructions = body.get("instructions")
    if isinstance(instructions, str) and instructions:
        yield _part("system", instructions, "/instructions", "system", 0)
    for number, tool in enumerate(objects_in(body.get("tools"))):
        name = text_or_empty(tool.get("name")) or text_or_empty(tool.get("type"))
        yield _part("tool", name, f"/tools/{number}", name, 0)
    given = body.get("input")
    if isinstance(given, str):
        yield _part("text", given, "/input", "user", 0)
    for name in ("input", "output"):
        for number, item in enumerate(objects_in(body.get(name))):
            yield from _item(item, f"/{name}/{number}", number)


def _item(item: dict[str, Any], here: str, turn: int) -> Iterator[FoundPart]:
    match item.get("type", "message"):
        case "message":
            role = text_or_empty(item.get("role"))
            kind = "system" if role in ("system", "developer") else "text"
            yield from _contents(item.get("content"), f"{here}/content", kind, role, turn)
        case "reasoning":
            text = _texts(item.get("content")) or _texts(item.get("summary"))
            yield _part("thinking", text, here, "thinking", turn)
        case "function_call" | "custom_tool_call":
            name = text_or_empty(item.get("name"))
            arguments = item.get("arguments", item.get("input", ""))
            yield _part("call", f"{name} {_normal(arguments)}", here, name, turn)
        case "function_call_output" | "custom_tool_call_output":
            yield _part("result", _texts(item.get("output")), here, "result", turn)
        case _:
            pass


def _gemini(body: dict[str, Any], before: str) -> Iterator[FoundPart]:
    for name in ("systemInstruction", "system_instruction"):
        system = object_or_empty(body.get(name))
        for number, one in enumerate(objects_in(system.get("parts"))):
            text = text_or_empty(one.get("text"))
            yield _part("system", text, f"{before}/{name}/parts/{number}", "system", 0)
    for number, tools in enumerate(objects_in(body.get("tools"))):
        for name in ("functionDeclarations", "function_declarations"):
            for inner, tool in enumerate(objects_in(tools.get(name))):
                label = text_or_empty(tool.get("name"))
                yield _part("tool", label, f"{before}/tools/{number}/{name}/{inner}", label, 0)
    for number, content in enumerate(objects_in(body.get("contents"))):
        yield from _gemini_parts(content, f"{before}/contents/{number}", number)
    for number, one in enumerate(objects_in(body.get("candidates"))[:1]):
        content = object_or_empty(one.get("content"))
        yield from _gemini_parts(content, f"{before}/candidates/{number}/content", 0)


def _gemini_parts(content: dict[str, Any], here: str, turn: int) -> Iterator[FoundPart]:
    role = text_or_empty(content.get("role"))
    for number, part in enumerate(objects_in(content.get("parts"))):
        pointer = f"{here}/parts/{number}"
        call = part.get("functionCall") or part.get("function_call")
        result = part.get("functionResponse") or part.get("function_response")
        if is_object(call):
            name = text_or_empty(call.get("name"))
            yield _part("call", f"{name} {_normal(call.get('args') or {})}", pointer, name, turn)
        elif is_object(result):
            answer = object_or_empty(result.get("response"))
            text = answer.get("output", answer.get("error", ""))
            label = text_or_empty(result.get("name"))
            yield _part("result", text_or_empty(text), pointer, label, turn)
        elif isinstance(part.get("text"), str):
            kind = "thinking" if part.get("thought") else "text"
            yield _part(kind, part["text"], pointer, role, turn)


def aligned(
    reference: Iterable[FoundPart], stages: dict[str, list[FoundPart]], *, answer: bool = False
) -> list[ShownPart]:
    """The parts of the reference with their places in all stages.

    A part is the same if its content is, counting repeated ones in order; calls, results and tools
    that are spelled differently are matched by their position, if a stage has as many of them.
    """
    parts = list(reference)
    before = "answer:" if answer else ""
    numbers: Counter[str] = Counter()
    shown: list[ShownPart] = []
    by_content: dict[tuple[str, str], list[ShownPart]] = defaultdict(list)
    by_kind: dict[str, list[ShownPart]] = defaultdict(list)
    for part in parts:
        numbers[part.kind] += 1
        one = ShownPart(
            key=f"{before}{part.kind}:{numbers[part.kind]}",
            kind=part.kind,
            label=part.label,
            turn=part.turn,
            answer=answer,
            at={"2": [part.pointer]},
            frames={},
        )
        shown.append(one)
        by_content[part.kind, part.content].append(one)
        by_kind[part.kind].append(one)
    for stage, found in stages.items():
        _place(stage, found, by_content, by_kind)
    return shown


def _place(
    stage: str,
    found: list[FoundPart],
    by_content: dict[tuple[str, str], list[ShownPart]],
    by_kind: dict[str, list[ShownPart]],
) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for part in found:
        same = by_content.get((part.kind, part.content), [])
        number = seen[part.kind, part.content]
        seen[part.kind, part.content] += 1
        if number < len(same):
            same[number].at.setdefault(stage, []).append(part.pointer)
    for kind in _BY_POSITION:
        here = [part for part in found if part.kind == kind]
        there = by_kind.get(kind, [])
        if len(here) != len(there):
            continue
        for part, one in zip(here, there, strict=True):
            one.at.setdefault(stage, [part.pointer])


def document_of(data: bytes) -> Any:
    """The JSON of a body; None if it is not JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def difference(one: Any, other: Any, path: str = "") -> str:
    """Where two documents begin to differ, in the order of the first; empty if they are equal."""
    if is_object(one) and is_object(other):
        for name in dict.fromkeys((*one, *other)):
            here = f"{path}.{name}" if path else name
            if name not in one or name not in other:
                return here
            found = difference(one[name], other[name], here)
            if found:
                return found
        return ""
    if is_list(one) and is_list(other):
        for number in range(max(len(one), len(other))):
            here = f"{path}[{number}]"
            if number >= min(len(one), len(other)):
                return here
            found = difference(one[number], other[number], here)
            if found:
                return found
        return ""
    return "" if one == other else path


def first_of_list(document: Any) -> Any:
    """The only entry of a list, else the document."""
    entries = list_or_empty(document)
    return entries[0] if len(entries) == 1 else document
