"""Codec work of one large request: 105 KB with 24 tools, as a coding agent sends every turn."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import msgspec

from bench.measure import Run, interleaved, worst
from bench.report import Goal, Table
from toolwire import dialects
from toolwire.history import repair
from toolwire.messages import Origin

_TARGETS = ("openai-chat", "openai-responses", "gemini", "anthropic-messages")
_LIMIT = 500.0
"""µs"""
_SIZE = 105_000
_TOOLS = 24
_WORDS = ("the", "file", "path", "command", "output", "pattern", "line", "search", "edit", "value")


def measure(rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """Decoding, repair and encoding of the second and later turns of a conversation."""
    turns = bodies()
    runs = {target: Run(_translating(target, turns)) for target in _TARGETS}
    cost = interleaved(runs, rounds)
    rows = tuple((target, cost[target]) for target in _TARGETS)
    note = (
        f"Anthropic's format in, {len(turns[0]) // 1000} KB, {_TOOLS} tools; the tools are those "
        "of the turn before, everything after them is new."
    )
    where, most = worst({target: cost[target] for target in _TARGETS})
    goal = Goal("codec work of a 105 KB request", _LIMIT, most, where, unit="µs")
    return Table("A large request, second turn", ("to", "CPU µs"), rows, note), (goal,)


def _translating(target: str, turns: list[bytes]) -> Callable[[], object]:
    source, codec = dialects.get("anthropic-messages"), dialects.get(target)
    bodies_in_turn = itertools.cycle(turns)

    def once() -> object:
        request = source.decode_request(next(bodies_in_turn))
        repaired = repair(request.messages, Origin(codec.family), codec.history)
        request = msgspec.structs.replace(request, model="m", messages=repaired.messages)
        return codec.encode_request(request).http.body

    return once


def bodies(count: int = 16) -> list[bytes]:
    """Returns turns of different conversations with one and the same tool list."""
    chance = random.Random(7)
    tools = [_tool(chance, number) for number in range(_TOOLS)]
    system = [
        {"type": "text", "text": _prose(chance, 6_000)},
        {"type": "text", "text": _prose(chance, 9_000), "cache_control": {"type": "ephemeral"}},
    ]
    return [_body(chance, system, tools) for _ in range(count)]


def _body(chance: random.Random, system: list[Any], tools: list[Any]) -> bytes:
    call = {"type": "tool_use", "id": f"toolu_{chance.randrange(10**9)}", "name": "Tool3"}
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": _prose(chance, 800)}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": _prose(chance, 200)},
                {**call, "input": {"first": "src/a.py", "second": 3}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call["id"], "content": _prose(chance, 4_000)}
            ],
        },
    ]
    value = {
        "model": "claude-sonnet-5",
        "max_tokens": 32_000,
        "system": system,
        "messages": messages,
        "tools": tools,
        "stream": True,
    }
    return msgspec.json.encode(value)


def _tool(chance: random.Random, number: int) -> Any:
    """A tool of about 3.5 KB, most of it in the descriptions of its schema."""
    properties: dict[str, Any] = {
        "first": {"type": "string", "description": _prose(chance, 300)},
        "second": {"type": "integer", "minimum": 0, "description": _prose(chance, 200)},
        "kind": {"type": "string", "enum": ["a", "b", "c"], "default": "a"},
        "options": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    name: {"type": "string", "description": _prose(chance, 120)}
                    for name in ("label", "value", "detail", "state")
                },
                "required": ["label"],
                "additionalProperties": False,
            },
        },
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": ["first"],
        "additionalProperties": False,
    }
    description = _prose(chance, _SIZE // _TOOLS - 2_450)
    return {"name": f"Tool{number}", "description": description, "input_schema": schema}


def _prose(chance: random.Random, size: int) -> str:
    words: list[str] = []
    while size > 0:
        word = chance.choice(_WORDS)
        words.append(word)
        size -= len(word) + 1
    return " ".join(words)
