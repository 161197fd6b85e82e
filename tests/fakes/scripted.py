"""A model that says what it is told to, and remembers what it was asked."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from toolwire.events import (
    Finished,
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.request import ModelRequest

USAGE = Usage(input=10, output=5)


def says(text: str, reason: StopReason = StopReason.END, **more: Any) -> list[ModelEvent]:
    pieces: list[ModelEvent] = [TextDelta(text)] if text else []
    return [*pieces, Finished(reason=reason, usage=USAGE, **more)]


def thinks(text: str, *then: ModelEvent) -> list[ModelEvent]:
    return [ThinkingDelta(text), *then]


def calls(*wanted: tuple[str, str, Any]) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    for id, name, arguments in wanted:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        events += (ToolCallStarted(id, name), ToolCallDelta(id, text), ToolCallEnded(id))
    return [*events, Finished(reason=StopReason.TOOL_CALLS, usage=USAGE)]


class Scripted:
    """Answers with one script after the other; an exception in a script is raised there."""

    def __init__(self, *scripts: Iterable[ModelEvent | BaseException]) -> None:
        self._scripts = [list(script) for script in scripts]
        self.asked: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        script = self._scripts[min(len(self.asked), len(self._scripts) - 1)]
        self.asked.append(request)
        return _spoken(script)


async def _spoken(script: Sequence[ModelEvent | BaseException]) -> AsyncIterator[ModelEvent]:
    for step in script:
        if isinstance(step, BaseException):
            raise step
        yield step
