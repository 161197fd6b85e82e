"""Models that say what a test wants, without a network."""

from collections.abc import AsyncIterator, Sequence

from toolwire.events import Finished, ModelEvent, StopReason, Usage
from toolwire.request import ModelRequest

DONE = Finished(reason=StopReason.END)


class Scripted:
    """Each request takes the next answer: events, and an error to end with."""

    def __init__(self, *answers: Sequence[ModelEvent | Exception]) -> None:
        self._answers = list(answers)
        self.asked: list[ModelRequest] = []
        self.closed = 0

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next answer."""
        self.asked.append(request)
        try:
            for event in self._answers.pop(0):
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed += 1


def finished(
    reason: StopReason, *, input: int | None = None, output: int | None = None
) -> Finished:
    """An end."""
    return Finished(reason=reason, usage=Usage(input=input, output=output))
