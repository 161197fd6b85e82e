"""Short ways to let a model print calls in tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import count, pairwise
from typing import Any

from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.prompted import leaked
from toolwire.request import AnyTool, ModelRequest, ToolChoice, ToolSpec

MARKED = tuple(name for name, form in leaked.FORMATS.items() if form.where != "start")
OPEN: dict[str, Any] = {"type": "object"}


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"id{next(numbers)}"


def saying(events: Iterable[ModelEvent]) -> Model:
    told = tuple(events)

    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in told:
            yield event

    return model


def asked(tools: Iterable[AnyTool], choice: ToolChoice | None = None) -> ModelRequest:
    hello = Message(role="user", parts=(Text("hello"),))
    return ModelRequest(model="m", messages=(hello,), tools=tuple(tools), tool_choice=choice)


def all_events(model: Model, request: ModelRequest) -> list[ModelEvent]:
    async def collect() -> list[ModelEvent]:
        return [event async for event in model(request)]

    return asyncio.run(collect())


def pieces(text: str, cuts: Iterable[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


def told(
    chunks: Iterable[str],
    tools: Iterable[AnyTool],
    formats: Iterable[str] = MARKED,
    reason: StopReason = StopReason.END,
) -> list[ModelEvent]:
    spoken: list[ModelEvent] = [*map(TextDelta, chunks), Finished(reason=reason)]
    return all_events(leaked.wrap(saying(spoken), formats, ids()), asked(tools))


def said(events: Iterable[ModelEvent]) -> list[Any]:
    """Text joined, calls as (name, arguments), in order; no notices, no end."""
    out: list[Any] = []
    names: dict[str, str] = {}
    for event in events:
        match event:
            case TextDelta() if out and isinstance(out[-1], str):
                out[-1] += event.text
            case TextDelta():
                out.append(event.text)
            case ToolCallStarted():
                names[event.id] = event.name
            case ToolCallDelta():
                out.append((names[event.id], event.arguments))
            case _:
                assert isinstance(event, ToolCallEnded | Notice | Finished)
    return out


def notices(events: Iterable[ModelEvent]) -> list[str]:
    return [event.kind for event in events if isinstance(event, Notice)]


def spec(name: str, **properties: Any) -> ToolSpec:
    """A tool; each property a type word or a schema; all required."""
    members = {key: it if isinstance(it, dict) else {"type": it} for key, it in properties.items()}
    schema = {"type": "object", "properties": members, "required": list(members)}
    return ToolSpec(name=name, parameters={**schema, "additionalProperties": False})
