"""Protocol of an output format: receives events, then prints the result."""

from typing import Protocol

from toolwire.agent.events import AgentEvent, TurnEnd, TurnEnded
from toolwire.errors import BadInput, ErrorKind, ModelMissing, ToolwireError, UnknownName


class Writable(Protocol):
    """A text output."""

    def write(self, text: str, /) -> object:
        """Writes the text."""
        ...

    def flush(self) -> object:
        """Flushes it."""
        ...

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


class Output(Protocol):
    """Receives every event; `end` is called once, after the last event or instead of any."""

    async def receive(self, event: AgentEvent) -> None:
        """Receives the next event."""
        ...

    def end(self, session: str, ended: TurnEnded) -> None:
        """Prints the result."""
        ...


def failed(error: ToolwireError) -> TurnEnded:
    """Returns an error outside a turn as a failed turn."""
    return TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)


def error_of(ended: TurnEnded) -> dict[str, str] | None:
    """Returns a turn's error for machine-readable output; None if it succeeded."""
    if ended.reason is TurnEnd.DONE:
        return None
    return {"type": ended.error or ended.reason, "message": ended.detail or _WORDS[ended.reason]}


_WORDS = {
    **{end: end.replace("_", " ") for end in TurnEnd},
    TurnEnd.CANCELLED: "cancelled",
    TurnEnd.FAILED: "the run failed",
}


DONE = 0
FAILED = 1
USAGE = 2
CREDENTIALS = 41
INPUT = 42
LIMIT = 53
LOOP = 54
CANCELLED = 130

_OF_END = {
    TurnEnd.DONE: DONE,
    TurnEnd.TURN_LIMIT: LIMIT,
    TurnEnd.TOKEN_LIMIT: LIMIT,
    TurnEnd.COST_LIMIT: LIMIT,
    TurnEnd.TIME_LIMIT: LIMIT,
    TurnEnd.LOOP: LOOP,
    TurnEnd.CANCELLED: CANCELLED,
}


def code_of(ended: TurnEnded) -> int:
    """Returns the exit code of a turn's end."""
    if ended.reason is TurnEnd.FAILED and ended.error == ErrorKind.AUTH:
        return CREDENTIALS
    return _OF_END.get(ended.reason, FAILED)


def code_of_error(error: ToolwireError) -> int:
    """Returns the exit code of an error outside a turn."""
    if error.kind == ErrorKind.AUTH or isinstance(error, ModelMissing):
        return CREDENTIALS
    return INPUT if isinstance(error, BadInput | UnknownName) else FAILED
