"""What a model is told: the forms of an answer, the tools, and examples, which do the most."""

from collections.abc import Sequence
from functools import cache
from pkgutil import get_data
from typing import Any, cast

import msgspec

from toolwire.prompted.json_examples import example_arguments
from toolwire.request import FreeformTool, JsonObject, ToolSpec
from toolwire.schema import Profile, convert
from toolwire.wire.json_access import dump
from toolwire.wire.names import ToolNames

_MOST_DESCRIPTION = 400


class Example(msgspec.Struct, frozen=True):
    """A request and the call that answers it; shown when the tool is offered."""

    asked: str
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
    return (get_data("toolwire.prompted", "json.md") or b"").decode()


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
            lines.append(f"Request: {example.asked}")
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
    """A call as a model writes it."""
    name = dump(names.wire_name(tool.name, tool.namespace))
    return f'{{"tool": {name}, "arguments": {arguments}}}'


def _made_up(tool: ToolSpec | FreeformTool) -> JsonObject | None:
    if isinstance(tool, FreeformTool):
        return {"input": "some text"} if not tool.grammar else None
    return example_arguments(_clean(tool)) if tool.parameters else {}


def _clean(tool: ToolSpec) -> JsonObject:
    return convert(tool.parameters, Profile.GEMINI_JSON).schema
