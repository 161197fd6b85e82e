"""What every form of output is to a run: a reader of its events that speaks the last word too."""

from typing import Protocol

from toolwire.agent.events import AgentEvent, TurnEnd, TurnEnded
from toolwire.errors import BadInput, ErrorKind, ModelMissing, ToolwireError, UnknownName


class Writable(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object:
        """Add it."""
        ...

    def flush(self) -> object:
        """Have it out."""
        ...

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        ...


class Output(Protocol):
    """Hears everything; `end` comes once, after the last event or instead of any."""

    async def hear(self, event: AgentEvent) -> None:
        """Take the next event."""
        ...

    def end(self, session: str, ended: TurnEnded) -> None:
        """Print what is left to say."""
        ...


def failed(error: ToolwireError) -> TurnEnded:
    """An error outside a turn, told like a turn that failed."""
    return TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)


def error_of(ended: TurnEnded) -> dict[str, str] | None:
    """The error of a turn, in machine-readable output; None if it is done."""
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
    """The code for a turn's end."""
    if ended.reason is TurnEnd.FAILED and ended.error == ErrorKind.AUTH:
        return CREDENTIALS
    return _OF_END.get(ended.reason, FAILED)


def code_of_error(error: ToolwireError) -> int:
    """The code for an error before or outside a turn."""
    if error.kind == ErrorKind.AUTH or isinstance(error, ModelMissing):
        return CREDENTIALS
    return INPUT if isinstance(error, BadInput | UnknownName) else FAILED
