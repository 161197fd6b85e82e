"""Attributes and measures of the GenAI conventions."""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolwire.events import Usage
from toolwire.messages import Message, Text, Thinking, ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec
from toolwire.telemetry.signals import Attributes, Measure


def histogram(name: str, value: float, now: int, attributes: Attributes) -> Measure:
    """One value of a metric in seconds."""
    return Measure(name=name, unit="s", value=value, at=now, attributes=attributes)


def token_measures(usage: Usage, now: int, basic: Attributes) -> Iterator[Measure]:
    """The tokens of a request as measures."""
    for kind, count in (("input", usage.total_input), ("output", usage.total_output)):
        if count:
            yield Measure(
                name="gen_ai.client.token.usage",
                unit="{token}",
                value=count,
                at=now,
                attributes={**basic, "gen_ai.token.type": kind},
            )


def basic_of(attributes: Attributes) -> Attributes:
    """The attributes of a request that its measures have too."""
    names = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
    return {
        name: attributes[name] for name in (*names, "gen_ai.response.model") if name in attributes
    }


def usage_of(usage: Usage) -> Attributes:
    """Counts of tokens as attributes."""
    counts = {
        "gen_ai.usage.input_tokens": usage.total_input,
        "gen_ai.usage.output_tokens": usage.total_output,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    return {name: count for name, count in counts.items() if count is not None}


def server_of(server: str) -> Attributes:
    """The server of a model, given as host and port."""
    host, _, port = server.rpartition(":")
    return {"server.address": host, "server.port": int(port)} if host else {}


def parameters_of(request: ModelRequest | None) -> Attributes:
    """The parameters that a request sets."""
    if request is None:
        return {}
    given = {
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.top_p": request.top_p,
        "gen_ai.request.max_tokens": request.max_output_tokens,
    }
    return {name: value for name, value in given.items() if value is not None}


def description_of(tool: str, request: ModelRequest | None) -> Attributes:
    """What the model was given as the description of a tool."""
    for one in request.tools if request is not None else ():
        if isinstance(one, ToolSpec) and one.name == tool and one.description:
            return {"gen_ai.tool.description": one.description}
    return {}


def instructions_of(request: ModelRequest | None) -> Attributes:
    """The system prompt and the tools of a request, which are words of the conversation too."""
    if request is None:
        return {}
    system = [{"type": "text", "content": one.text} for one in request.system]
    tools = [
        {
            "type": "function",
            "name": one.name,
            "description": one.description,
            "parameters": one.parameters,
        }
        for one in request.tools
        if isinstance(one, ToolSpec)
    ]
    found = {"gen_ai.system_instructions": system, "gen_ai.tool.definitions": tools}
    return {name: msgspec.json.encode(value).decode() for name, value in found.items() if value}


def seconds(start: int, end: int) -> float:
    """Seconds between two times in nanoseconds."""
    return max(end - start, 0) / 1e9


def messages_json(messages: tuple[Message, ...]) -> str:
    """Messages in the form of the GenAI conventions."""
    found = [
        {"role": message.role, "parts": [part for part in map(_part, message.parts) if part]}
        for message in messages
    ]
    return msgspec.json.encode(found).decode()


def _part(part: Any) -> dict[str, Any] | None:
    match part:
        case Text():
            return {"type": "text", "content": part.text}
        case Thinking():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            return {
                "type": "tool_call",
                "id": part.id,
                "name": part.name,
                "arguments": part.arguments,
            }
        case ToolResult():
            return {"type": "tool_call_response", "id": part.call_id, "response": part.text}
        case _:
            return None
