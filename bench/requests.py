"""Requests written: what the built-in tools add to the cost of each request of a conversation."""

from collections.abc import Callable

from bench.measure import Run, interleaved, worst
from bench.report import Goal, Section, Table
from toolwire import dialects
from toolwire.messages import Message, Text
from toolwire.request import ModelRequest, ToolSpec
from toolwire.tools.registry import builtins

_DIALECTS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini", "code-assist")
_LIMIT = 50
"""µs"""


def measure(rounds: int, *, quick: bool = False) -> Section:
    """A system prompt and one message, without tools, with known ones and with changed ones."""
    known = tuple(tool.spec for tool in builtins())
    runs: dict[str, Run] = {}
    for name in _DIALECTS:
        runs[f"{name} none"] = Run(_encoding(name, ()))
        runs[f"{name} known"] = Run(_encoding(name, known))
        runs[f"{name} new"] = Run(_encoding_changed(name, known))
    cost = interleaved(runs, 2 if quick else rounds)
    rows = tuple(
        (name, *(cost[f"{name} {kind}"] for kind in ("none", "known", "new"))) for name in _DIALECTS
    )
    columns = ("wire format", "no tools, µs", "unchanged tools, µs", "changed tools, µs")
    note = f"The {len(known)} built-in tools; a changed list is converted anew."
    where, most = worst({name: cost[f"{name} known"] for name in _DIALECTS})
    goal = Goal("a request with unchanged tools", _LIMIT, most, where, unit="µs")
    return Section("requests", (Table("Requests written", columns, rows, note),), (goal,))


def _request(tools: tuple[ToolSpec, ...]) -> ModelRequest:
    return ModelRequest(
        model="m",
        system=(Text(text="You are an agent. " * 200),),
        messages=(Message(role="user", parts=(Text(text="Say hello"),)),),
        tools=tools,
        stream=True,
    )


def _encoding(name: str, tools: tuple[ToolSpec, ...]) -> Callable[[], object]:
    encode, request = dialects.get(name).encode_request, _request(tools)
    return lambda: encode(request)


def _encoding_changed(name: str, tools: tuple[ToolSpec, ...]) -> Callable[[], object]:
    encode = dialects.get(name).encode_request
    parameters = {**tools[0].parameters, "title": ""}
    request = _request((ToolSpec(name="changing", parameters=parameters), *tools[1:]))
    number = 0

    def once() -> object:
        nonlocal number
        number += 1
        parameters["title"] = str(number)
        return encode(request)

    return once
