"""Prompt of the JSON style: answer forms, tools, examples and the conversation as text."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pkgutil import get_data
from typing import Any, cast

import msgspec

from toolwire.events import Notice
from toolwire.messages import (
    CallKind,
    Media,
    Message,
    Part,
    ServerBlock,
    Text,
    ToolCall,
    ToolResult,
)
from toolwire.request import FreeformTool, JsonObject, ToolSpec
from toolwire.schema import Profile, convert
from toolwire.wire.json_access import dump
from toolwire.wire.names import ToolNames

_DEEPEST = 6
_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


class NoExample(Exception):
    """The schema requires a value that cannot be generated."""


def example_arguments(schema: JsonObject) -> JsonObject | None:
    """Example arguments for a clean schema: the required members, else the first one; None if none
    can be generated.
    """
    try:
        value = _value(schema, schema, "", _DEEPEST)
    except NoExample:
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def _value(schema: Any, root: JsonObject, name: str, depth: int) -> Any:
    if not isinstance(schema, dict):
        return f"some {name or 'text'}"
    node = cast(JsonObject, schema)
    if not depth or "not" in node or "allOf" in node or "if" in node:
        raise NoExample
    if "$ref" in node:
        return _value(_target(str(node["$ref"]), root), root, name, depth - 1)
    given = _given(node)
    if given is not None:
        if "type" in node and not isinstance(given, _PYTHON.get(_type(node), object)):
            raise NoExample
        return given
    for keyword in ("anyOf", "oneOf"):
        branches = node.get(keyword)
        if isinstance(branches, list) and branches:
            return _value(cast(list[Any], branches)[0], root, name, depth - 1)
    return _of_type(_type(node), node, root, name, depth)


def _given(node: JsonObject) -> Any:
    """A value that the schema itself contains."""
    for keyword in ("examples", "enum"):
        values = node.get(keyword)
        if isinstance(values, list) and values:
            return cast(list[Any], values)[0]
    return node.get("const", node.get("default"))


def _type(node: JsonObject) -> str:
    named = node.get("type", "object" if "properties" in node else "string")
    if isinstance(named, list):
        kinds = [str(kind) for kind in cast(list[Any], named) if kind != "null"]
        return kinds[0] if kinds else "null"
    return str(named)


def _of_type(kind: str, node: JsonObject, root: JsonObject, name: str, depth: int) -> Any:
    match kind:
        case "object":
            return _object(node, root, depth)
        case "array":
            return _array(node, root, name, depth)
        case "integer" | "number":
            return _number(node)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _text(node, name)


def _object(node: JsonObject, root: JsonObject, depth: int) -> JsonObject:
    properties = cast(JsonObject, node.get("properties") or {})
    required = [str(name) for name in cast(list[Any], node.get("required") or [])]
    members = {name: _value(properties.get(name), root, name, depth - 1) for name in required}
    if not members and properties:
        first = next(iter(properties))
        with suppress(NoExample):
            members[first] = _value(properties[first], root, first, depth - 1)
    return members


def _array(node: JsonObject, root: JsonObject, name: str, depth: int) -> list[Any]:
    if "prefixItems" in node or "contains" in node or (node.get("minItems") or 1) > 1:
        raise NoExample
    return [_value(node.get("items"), root, name, depth - 1)]


def _number(node: JsonObject) -> Any:
    if {"multipleOf", "exclusiveMaximum", "exclusiveMinimum"} & node.keys():
        raise NoExample
    low, high = node.get("minimum"), node.get("maximum")
    value: Any = 1 if low is None else max(1, low)
    return value if high is None else min(value, high)


def _text(node: JsonObject, name: str) -> str:
    if "pattern" in node:
        raise NoExample
    dated = {"date": "2025-01-31", "date-time": "2025-01-31T12:00:00Z", "uri": "https://a.example"}
    text = dated.get(str(node.get("format"))) or f"some {name.replace('_', ' ') or 'text'}"
    most = node.get("maxLength")
    text = text[:most] if isinstance(most, int) else text
    return text.ljust(int(node.get("minLength") or 0), "x")


def _target(reference: str, root: JsonObject) -> Any:
    if reference == "#":
        return root
    return cast(JsonObject, root.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))


_MOST_DESCRIPTION = 400


class Example(msgspec.Struct, frozen=True):
    """An example request and its call; shown if the tool is offered."""

    request: str
    tool: str
    arguments: JsonObject


def prompt(
    tools: Sequence[ToolSpec | FreeformTool],
    names: ToolNames,
    *,
    reply: bool,
    several: bool,
    examples: Sequence[Example] = (),
) -> str:
    """The section for the system prompt."""
    forms: list[str] = []
    if tools:
        forms.append('To use a tool: {"tool": "its name", "arguments": {…}}')
    if tools and several:
        forms.append('To use several at once: {"calls": [{"tool": …, "arguments": {…}}, …]}')
    if reply:
        forms.append('To say something to the person: {"reply": "your words"}')
    after = "After a tool was used you get its result, and answer again in the same way."
    return (
        _template()
        .replace("{forms}", "\n".join(forms))
        .replace("{after}", after if tools else "No tool can be used now.")
        .replace("{tools}", "\n".join(_tool(tool, names) for tool in tools) or "None.")
        .replace("{examples}", "\n".join(_examples(tools, names, examples, reply=reply)))
    )


@cache
def _template() -> str:
    return (get_data("toolwire.prompted.json", "json.md") or b"").decode()


def _tool(tool: ToolSpec | FreeformTool, names: ToolNames) -> str:
    about = " ".join(tool.description.split())
    if len(about) > _MOST_DESCRIPTION:
        about = f"{about[: _MOST_DESCRIPTION - 1]}…"
    head = f"- {names.wire_name(tool.name, tool.namespace)}: {about}".rstrip(": ")
    lines = [_parameter(*it) for it in _parameters(tool)]
    return "\n".join([head, *lines])


def _parameters(tool: ToolSpec | FreeformTool) -> list[tuple[str, JsonObject, bool]]:
    if isinstance(tool, FreeformTool):
        return [("input", {"type": "string", "description": "plain text"}, True)]
    schema = _clean(tool)
    required = cast(list[Any], schema.get("required") or [])
    members = cast(JsonObject, schema.get("properties") or {})
    return [
        (name, cast(JsonObject, it) if isinstance(it, dict) else {}, name in required)
        for name, it in members.items()
    ]


def _parameter(name: str, schema: JsonObject, required: bool) -> str:
    kind = schema.get("type", "")
    words = [dump(kind).strip('"') if kind else "", "" if required else "optional"]
    if "enum" in schema:
        words.append(f"one of {dump(schema['enum'])}")
    about = " ".join(str(schema.get("description", "")).split())
    note = f" ({', '.join(filter(None, words))})" if any(words) else ""
    return f"  - {name}{note}: {about}".rstrip(": ")


def _examples(
    tools: Sequence[ToolSpec | FreeformTool],
    names: ToolNames,
    given: Sequence[Example],
    *,
    reply: bool,
) -> list[str]:
    offered = {tool.name: tool for tool in tools}
    lines: list[str] = []
    for example in given:
        tool = offered.get(example.tool)
        if tool is not None:
            lines.append(f"Request: {example.request}")
            lines.append(call_text(tool, names, dump(example.arguments)))
    shown = {example.tool for example in given}
    for tool in tools:
        arguments = _made_up(tool)
        if tool.name not in shown and arguments is not None:
            lines.append(f"Request: something that needs {tool.name}")
            lines.append(call_text(tool, names, dump(arguments)))
    if reply:
        lines += ["Request: hello", '{"reply": "Hello! What can I do for you?"}']
    return lines


def call_text(tool: ToolSpec | FreeformTool, names: ToolNames, arguments: str) -> str:
    """A call as the model writes it."""
    name = dump(names.wire_name(tool.name, tool.namespace))
    return f'{{"tool": {name}, "arguments": {arguments}}}'


def _made_up(tool: ToolSpec | FreeformTool) -> JsonObject | None:
    if isinstance(tool, FreeformTool):
        return {"input": "some text"} if not tool.grammar else None
    return example_arguments(_clean(tool)) if tool.parameters else {}


def _clean(tool: ToolSpec) -> JsonObject:
    return convert(tool.parameters, Profile.GEMINI_JSON).schema


_decode = msgspec.json.Decoder().decode
NOTHING = "(it returned nothing)"


class Rendering:
    """Converts messages to plain text; `limit` caps the characters of a result."""

    def __init__(self, names: ToolNames, limit: int | None = None) -> None:
        self._names = names
        self._limit = limit
        self._calls: dict[str, ToolCall] = {}
        self.notices: list[Notice] = []

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """All of them, in order."""
        return tuple(map(self._message, messages))

    def _message(self, message: Message) -> Message:
        if message.role == "assistant":
            parts = self._assistant_parts(message)
        else:
            parts = tuple(new for part in message.parts for new in self._user_parts(part))
        return message if parts == message.parts else Message(role=message.role, parts=parts)

    def _assistant_parts(self, message: Message) -> tuple[Part, ...]:
        """The assistant's text and calls as JSON objects, as the model writes them."""
        lines: list[str] = []
        others: list[Part] = []
        if message.text:
            lines.append(f'{{"reply": {dump(message.text)}}}')
        calls = [self._call(call) for call in message.calls]
        if len(calls) == 1:
            lines.append(calls[0])
        elif calls:
            lines.append(f'{{"calls": [{", ".join(calls)}]}}')
        others = [part for part in message.parts if not isinstance(part, Text | ToolCall)]
        return (*others, Text("\n".join(lines))) if lines else tuple(others)

    def _call(self, call: ToolCall) -> str:
        self._calls[call.id] = call
        name = dump(self._names.wire_name(call.name, call.namespace))
        arguments = call.arguments
        if call.kind is CallKind.FREEFORM:
            arguments = dump({"input": arguments})
        elif not arguments.strip():
            arguments = "{}"
        elif not _is_json(arguments):
            arguments = dump(arguments)
        return f'{{"tool": {name}, "arguments": {arguments}}}'

    def _user_parts(self, part: Part) -> tuple[Part, ...]:
        if not isinstance(part, ToolResult):
            return (part,)
        call = self._calls.get(part.call_id)
        name = part.name or (call.name if call is not None else part.call_id)
        word = "Error from" if part.is_error else "Result of"
        text = self._shortened(part.text, name)
        media = [it for it in part.parts if isinstance(it, Media)]
        if any(isinstance(it, ServerBlock) for it in part.parts):
            self.notices.append(
                Notice("result_cut", f"a vendor's own block in the result of {name} was left out")
            )
        shown = text or ("(see below)" if media else NOTHING)
        return (Text(f"{word} {name}:\n{shown}"), *media)

    def _shortened(self, text: str, name: str) -> str:
        limit = self._limit
        if limit is None or len(text) <= limit:
            return text
        # The end often contains the outcome, so it gets a quarter of the limit.
        tail = limit // 4
        head = limit - tail
        left_out = len(text) - limit
        self.notices.append(
            Notice("result_cut", f"{left_out} characters of the result of {name} were left out")
        )
        end = text[len(text) - tail :]
        return f"{text[:head]}\n[… {left_out} characters left out here …]\n{end}"


def _is_json(text: str) -> bool:
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True
