"""Output of a run: the protocol of a format, exit codes, and the stream writer."""

import os
from collections.abc import Callable
from functools import partial
from typing import Protocol, TextIO

from toolwire.agent.events import AgentEvent, TurnEnd, TurnEnded
from toolwire.cli.streams import write_control
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


class StreamWriter:
    """Writes unbuffered; a failure is reported once if `needed`, then output is discarded."""

    def __init__(self, name: str, stream: TextIO, *, needed: bool = True) -> None:
        self._name = name
        self._stream = stream
        self._needed = needed
        """Whether a failure ends the run: the answer is needed, progress is not."""
        self.lost = ""
        """Why writing failed; empty if it did not."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def flush(self) -> None:
        """Does nothing: writes are unbuffered."""

    def write(self, text: str) -> None:
        """Writes the text; discards it after a failure."""
        self._out(self._stream.write, text)

    def control(self, sequence: str) -> None:
        """Writes a control sequence to a terminal."""
        self._out(partial(write_control, self._stream), sequence)

    def _out(self, write: Callable[[str], object], text: str) -> None:
        if self.lost:
            return
        try:
            write(text)
            self._stream.flush()
        except OSError as error:
            self.lost = f"{self._name} cannot be written: {error.strerror}"
            self._lead_nowhere()
            if self._needed:
                raise ToolwireError(self.lost) from error

    def _lead_nowhere(self) -> None:
        """Redirects to /dev/null: buffered output would fail again at exit."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
