"""Output of a run: the protocol of a format, exit codes, and the machine-readable formats."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TextIO

import msgspec

from toolwire.agent.events import (
    AgentEnded,
    AgentEvent,
    AgentStarted,
    ChildEvent,
    MessageAdded,
    Noticed,
    Retrying,
    SessionOpened,
    Streaming,
    Thought,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    notice_text,
)
from toolwire.agent.usage import Stats
from toolwire.cli.terminal import write_control
from toolwire.errors import BadInput, ErrorKind, ModelMissing, ToolwireError, UnknownName
from toolwire.events import RefusalDelta, TextDelta
from toolwire.messages import Message, Outcome, Refusal, Text
from toolwire.request import JsonObject
from toolwire.terminal_text import one_line
from toolwire.tools.spec import Effect
from toolwire.wire.json_access import dump, encode, parse
from toolwire.wire.repair import parse_arguments


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


class OutputOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an output prints besides the answer, and how it prints that."""

    verbose: bool = False
    """Notices that concern only the wire formats too."""
    quiet: bool = False
    structured: bool = False
    """The answer is held to a JSON Schema: only its final JSON is printed."""
    headless: bool = False
    """No user approved or denied a call."""
    still: bool = False
    """No line is drawn again: for screen readers, and terminals that cannot."""


PLAINLY = OutputOptions()


class Denials:
    """Collects denied calls of a run, to report that nothing was changed because of them."""

    def __init__(self) -> None:
        self.denied: list[str] = []
        """The tools, each with what it was called for."""
        self._changing: set[str] = set()
        self._changed = False

    def add(self, event: AgentEvent) -> None:
        """Adds one event."""
        match event:
            case ToolStarted() if event.effect not in (Effect.READ, Effect.NETWORK):
                self._changing.add(event.call_id)
            case ToolFinished(outcome=Outcome.DENIED):
                self.denied.append(one_line(f"{event.name} {hint(event.arguments)}".strip()))
            case ToolFinished(success=True):
                self._changed = self._changed or event.call_id in self._changing
            case _:
                pass

    @property
    def message(self) -> str:
        """Says that nothing was changed, and why; empty if something was, or nothing denied."""
        if self._changed or not self.denied:
            return ""
        listed = ", ".join(dict.fromkeys(self.denied))
        return (
            f"nothing was changed: {listed} needed approval and was denied; allow it with "
            "--approval-mode or --allowed-tools, or use toolwire chat"
        )


_LONGEST = 60


def hint(arguments: str) -> str:
    """Returns a short hint of a call: its first short text argument."""
    value = parse_arguments(arguments).value or {}
    text = next((one for one in value.values() if isinstance(one, str) and one), "")
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


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


def now() -> str:
    """Returns the time in the format of events."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonOutput:
    """Prints one object at the end."""

    def __init__(self, out: Writable, shown: OutputOptions = PLAINLY) -> None:
        self._out = out
        self._shown = shown
        self._stats = Stats()
        self._response = ""
        self._mode = ""
        self._denials = Denials()

    async def receive(self, event: AgentEvent) -> None:
        """Updates the counts and the last answer."""
        self._stats.add(event)
        self._denials.add(event)
        match event:
            # Acknowledgements on the model's behalf are context, not its answer.
            case MessageAdded(context=False) if event.message.role == "assistant":
                self._response = visible_text(event.message)
            case SessionOpened():
                self._mode = event.mode
            case _:
                pass

    def end(self, session: str, ended: TurnEnded) -> None:
        """Prints the object."""
        body: JsonObject = {
            "session_id": session,
            "response": ended.output or self._response,
            "stop": ended.reason,
            "error": error_of(ended),
            "stats": self._stats.body(),
            "approval_mode": self._mode or None,
        }
        if self._denials.denied:
            body["denied"] = self._denials.denied
        if self._shown.structured:
            body["output"] = parse(ended.output, "answer") if ended.output else None
        text = msgspec.json.format(encode(body), indent=2).decode()
        self._out.write(f"{text}\n")
        self._out.flush()


class StreamJsonOutput:
    """Prints one event per line as it happens."""

    def __init__(
        self, out: Writable, shown: OutputOptions = PLAINLY, clock: Callable[[], str] = now
    ) -> None:
        self._out = out
        self._shown = shown
        self._clock = clock
        self._stats = Stats()
        self._of_agent: JsonObject = {}
        """Members of the events of a subagent."""

    async def receive(self, event: AgentEvent) -> None:
        """Writes the lines of an event."""
        self._stats.add(event)
        match event:
            case Streaming():
                if isinstance(event.event, TextDelta | RefusalDelta):
                    text = event.event.text
                    self._write("message", role="assistant", content=text, delta=True)
            case SessionOpened():
                self._write(
                    "init",
                    session_id=event.session,
                    model=event.model,
                    approval_mode=event.mode,
                    mcp=msgspec.to_builtins(event.mcp),
                )
            case MessageAdded():
                if event.message.role == "user" and not event.context:
                    self._write("message", role="user", content=event.message.text)
            case Thought():
                head = f"**{event.subject}**\n" if event.subject else ""
                self._write("thinking", content=f"{head}{event.description}".strip())
            case ToolOutputText():
                self._write("tool_output", tool_id=event.call_id, content=event.text)
            case Noticed():
                # What breaks the prompt cache is for machines, too.
                words = notice_text(event, verbose=self._shown.verbose or event.kind == "prefix")
                if words:
                    self._write("error", severity="warning", message=words)
            case Retrying():
                self._write("error", severity="warning", message=event.message)
            case ToolRequested() | ToolFinished():
                self._tool(event)
            case AgentStarted():
                self._write("agent_start", **_agent(event), session_id=event.session)
            case AgentEnded():
                self._write("agent_end", **_agent(event), stop=event.reason, cost=event.cost)
            case ChildEvent():
                await self._receive_child(event)
            case _:
                pass

    async def _receive_child(self, event: ChildEvent) -> None:
        """Writes the lines of a subagent's event, which name it; the stats have its usage."""
        stats, self._stats = self._stats, Stats()
        self._of_agent = {"agent": event.agent, "parent_call": event.call_id}
        try:
            if not isinstance(event.event, SessionOpened):
                await self.receive(event.event)
        finally:
            self._of_agent, self._stats = {}, stats

    def end(self, session: str, ended: TurnEnded) -> None:
        """Writes the result."""
        error = error_of(ended)
        if error is not None:
            self._write("error", severity="error", message=error["message"])
        status = "success" if ended.reason is TurnEnd.DONE else "error"
        more: JsonObject = {} if error is None else {"error": error}
        if self._shown.structured:
            more["output"] = parse(ended.output, "answer") if ended.output else None
        self._write(
            "result",
            status=status,
            session_id=session,
            stop=ended.reason,
            stats=self._stats.body(),
            **more,
        )

    def _tool(self, event: ToolRequested | ToolFinished) -> None:
        if isinstance(event, ToolRequested):
            call = event.call
            parameters = parse_arguments(call.arguments).value or {}
            self._write("tool_use", tool_name=call.name, tool_id=call.id, parameters=parameters)
        elif event.success:
            text = event.result.text
            self._write("tool_result", tool_id=event.call_id, status="success", output=text)
        else:
            error = {"type": event.error_type, "message": event.result.text}
            self._write("tool_result", tool_id=event.call_id, status="error", error=error)

    def _write(self, kind: str, **members: object) -> None:
        line = {"type": kind, "timestamp": self._clock(), **members, **self._of_agent}
        self._out.write(dump(line) + "\n")
        self._out.flush()


def _agent(event: AgentStarted | AgentEnded) -> JsonObject:
    return {"agent": event.agent, "parent_call": event.call_id}


def visible_text(message: Message) -> str:
    """Returns the visible text of a reply."""
    return "".join(part.text for part in message.parts if isinstance(part, Text | Refusal))
