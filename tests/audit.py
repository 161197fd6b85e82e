"""The auditor: reads back what a conversion carried and holds it against the reported losses."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from toolwire import dialects
from toolwire.dialects import Encoded, tools
from toolwire.history import repair
from toolwire.messages import Media, Message, Origin, Refusal, Text, Thinking, ToolCall, ToolResult
from toolwire.request import FreeformTool, ModelRequest, Reasoning, ToolSpec

PLAIN = (
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "stream",
    "previous_response_id",
)
"""Members that are equal or lost."""


class Fact(NamedTuple):
    """One thing a request says, and where."""

    path: str
    value: Any


def prepared(source: str, body: bytes, target: str) -> ModelRequest:
    """The request as it stands before it is encoded for the target."""
    request = dialects.get(source).decode_request(body)
    codec = dialects.get(target)
    repaired = repair(request.messages, Origin(codec.family), codec.history)
    return replace(request, messages=repaired.messages)


def unreported(request: ModelRequest, target: str, encoded: Encoded) -> list[str]:
    """What is missing from the encoded body and in no loss."""
    back = dialects.get(target).decode_request(encoded.http.body, request.model)
    back = _with_original_names(back, encoded)
    if "stream" in encoded.http.path:
        back = replace(back, stream=True)
    kept = list(facts(back))
    words = {role: said(back, role) for role in ("system", "user", "assistant")}
    reported = [loss.path for loss in encoded.losses]
    return [
        f"{fact.path}: {fact.value!r}"[:400]
        for fact in facts(request)
        if not _carried(fact, kept, words) and not _covered(fact.path, reported)
    ]


def _carried(fact: Fact, kept: list[Fact], words: dict[str, str]) -> bool:
    if fact.path == "reasoning.enabled":
        # An effort or a budget says by itself that thinking is on or off.
        return any(other.value[:1] == ("reasoning",) for other in kept)
    if fact.value[0] == "text":
        _, role, text = fact.value
        return any(text in words[other] for other in {role, "user" if role == "system" else role})
    return any(fact.value == other.value for other in kept)


def _covered(path: str, reported: list[str]) -> bool:
    # A schema or a setting may be weakened inside; a text is reported itself or not at all.
    inside = path.endswith((".parameters", ".schema")) or "[" not in path
    return any(
        path == other
        or path.startswith((f"{other}.", f"{other}["))
        or (inside and other.startswith(f"{path}."))
        or other == f"{path}.arguments"
        for other in reported
        if other
    )


def said(request: ModelRequest, role: str) -> str:
    """All words of one speaker, joined."""
    texts = [part.text for part in request.system] if role == "system" else []
    for message in request.messages:
        if message.role == role:
            texts += [part.text for part in message.parts if isinstance(part, Text | Refusal)]
    return "\0".join(texts) + "\0" + "\n\n".join(texts) + "\0" + "".join(texts)


def facts(request: ModelRequest) -> Iterator[Fact]:
    """Everything the request says that is not private to one wire format."""
    if request.model:
        yield Fact("model", ("model", request.model))
    for name in PLAIN:
        value = getattr(request, name)
        if value not in (None, (), "", False):
            yield Fact(name, (name, value))
    if request.parallel_calls is False and request.tools:
        yield Fact("parallel_calls", ("parallel_calls", False))
    if request.reasoning is not None:
        yield from _reasoning(request.reasoning)
    if request.output is not None and request.output.kind != "text":
        yield Fact("output", ("output", request.output.kind))
        yield Fact("output.schema", ("output.schema", _schema(request.output.schema or {})))
    if request.tool_choice is not None and request.tools and request.tool_choice.mode != "auto":
        yield Fact("tool_choice", ("choice", request.tool_choice.mode, request.tool_choice.names))
    for number, part in enumerate(request.system):
        yield from _part(f"system[{number}]", "system", part, {})
    yield from _tools(request)
    calls: dict[str, tuple[str, int]] = {}
    for number, message in enumerate(request.messages):
        yield from _message(f"messages[{number}]", message, calls)


def _reasoning(reasoning: Reasoning) -> Iterator[Fact]:
    for name in ("effort", "budget", "visible", "enabled"):
        value = getattr(reasoning, name)
        if value is not None:
            yield Fact(f"reasoning.{name}", ("reasoning", name, value))


def _tools(request: ModelRequest) -> Iterator[Fact]:
    for number, tool in enumerate(request.tools):
        path = f"tools[{number}]"
        if isinstance(tool, ToolSpec):
            yield Fact(path, ("tool", tool.namespace, tool.name))
            yield Fact(f"{path}.description", ("description", tool.name, tool.description))
            yield Fact(f"{path}.parameters", ("schema", tool.name, _schema(tool.parameters)))
            if tool.strict:
                yield Fact(f"{path}.strict", ("strict", tool.name))
            if tool.cache is not None:
                yield Fact(f"{path}.cache", ("cache", tool.name))
        elif isinstance(tool, FreeformTool):
            yield Fact(path, ("freeform", tool.name, tool.grammar))


def _schema(schema: dict[str, Any]) -> str:
    if "$ref" not in json.dumps(schema):
        schema = {key: value for key, value in schema.items() if key != "$defs"}
    return json.dumps(_meaning(schema) or {"type": "object"}, sort_keys=True)


def _meaning(schema: Any) -> Any:
    """A schema without words that say nothing about values."""
    if isinstance(schema, list):
        return [_meaning(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    silent = {"$schema", "$id", "$comment", "strict", "nullable"}
    nothing = (("properties", {}), ("required", []), ("description", ""))
    meaning = {
        key: _meaning(value)
        for key, value in schema.items()
        if key not in silent and (key, value) not in nothing
    }
    if schema.get("nullable") is True and isinstance(meaning.get("type"), str):
        meaning["type"] = [meaning["type"], "null"]
    return meaning


def _message(path: str, message: Message, calls: dict[str, tuple[str, int]]) -> Iterator[Fact]:
    for number, part in enumerate(message.parts):
        yield from _part(f"{path}.parts[{number}]", message.role, part, calls)


def _part(path: str, role: str, part: Any, calls: dict[str, tuple[str, int]]) -> Iterator[Fact]:
    match part:
        case Text() | Refusal():
            if part.text:
                yield Fact(path, ("text", role, part.text))
            if isinstance(part, Text) and part.cache is not None:
                yield Fact(f"{path}.cache", ("cache", part.text))
            for number, citation in enumerate(part.citations if isinstance(part, Text) else ()):
                yield Fact(
                    f"{path}.citations[{number}]", ("citation", citation.url, citation.title)
                )
        case Thinking():
            if part.text:
                yield Fact(path, ("thinking", part.text))
        case Media():
            yield Fact(path, ("media", part.kind, part.base64, part.url, part.file_id))
            if part.name:
                yield Fact(f"{path}.name", ("media name", part.name, part.base64[:40]))
        case ToolCall():
            calls[part.id] = (part.name, len(calls))
            yield Fact(path, ("call", len(calls) - 1, part.name, _arguments(part)))
        case ToolResult():
            yield Fact(path, ("result", calls.get(part.call_id)))
            if part.text:
                yield Fact(f"{path}.parts", ("result text", calls.get(part.call_id), part.text))
            if part.is_error:
                yield Fact(f"{path}.is_error", ("error", calls.get(part.call_id)))
            for number, inner in enumerate(part.parts):
                if isinstance(inner, Media):
                    yield from _part(f"{path}.parts[{number}]", role, inner, calls)
        case _:
            pass


def _arguments(call: ToolCall) -> str:
    value = tools.parsed(call)
    return json.dumps(value, sort_keys=True) if value is not None else call.arguments


def _with_original_names(request: ModelRequest, encoded: Encoded) -> ModelRequest:
    names = encoded.names

    def part(value: Any) -> Any:
        if isinstance(value, ToolCall) and not value.namespace:
            tool = names.original(value.name)
            return replace(value, name=tool.name, namespace=tool.namespace)
        return value

    def tool(value: Any) -> Any:
        if isinstance(value, ToolSpec) and not value.namespace:
            known = names.original(value.name)
            return replace(value, name=known.name, namespace=known.namespace)
        return value

    choice = request.tool_choice
    if choice is not None:
        choice = replace(choice, names=tuple(names.original(name).name for name in choice.names))
    return replace(
        request,
        tools=tuple(tool(value) for value in request.tools),
        tool_choice=choice,
        messages=tuple(
            replace(message, parts=tuple(part(value) for value in message.parts))
            for message in request.messages
        ),
    )
