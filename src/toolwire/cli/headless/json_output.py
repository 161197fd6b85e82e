"""Machine-readable output: one object at the end, or one event per line."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    Noticed,
    Retrying,
    SessionOpened,
    Streaming,
    Thought,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.usage import Stats
from toolwire.cli.headless.output import Writable, error_of
from toolwire.events import RefusalDelta, TextDelta
from toolwire.messages import Message, Refusal, Text
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, encode
from toolwire.wire.repair import parse_arguments


def now() -> str:
    """Returns the time in the format of events."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonOutput:
    """Prints one object at the end."""

    def __init__(self, out: Writable) -> None:
        self._out = out
        self._stats = Stats()
        self._response = ""

    async def receive(self, event: AgentEvent) -> None:
        """Updates the counts and the last answer."""
        self._stats.add(event)
        match event:
            # Acknowledgements on the model's behalf are context, not its answer.
            case MessageAdded(context=False) if event.message.role == "assistant":
                self._response = visible_text(event.message)
            case _:
                pass

    def end(self, session: str, ended: TurnEnded) -> None:
        """Prints the object."""
        body = {
            "session_id": session,
            "response": self._response,
            "stop": ended.reason,
            "error": error_of(ended),
            "stats": self._stats.body(),
        }
        text = msgspec.json.format(encode(body), indent=2).decode()
        self._out.write(f"{text}\n")
        self._out.flush()


class StreamJsonOutput:
    """Prints one event per line as it happens."""

    def __init__(self, out: Writable, clock: Callable[[], str] = now) -> None:
        self._out = out
        self._clock = clock
        self._stats = Stats()

    async def receive(self, event: AgentEvent) -> None:
        """Writes the lines of an event."""
        self._stats.add(event)
        match event:
            case Streaming():
                if isinstance(event.event, TextDelta | RefusalDelta):
                    text = event.event.text
                    self._write("message", role="assistant", content=text, delta=True)
            case SessionOpened():
                self._write("init", session_id=event.session, model=event.model)
            case MessageAdded():
                if event.message.role == "user" and not event.context:
                    self._write("message", role="user", content=event.message.text)
            case Thought():
                head = f"**{event.subject}**\n" if event.subject else ""
                self._write("thinking", content=f"{head}{event.description}".strip())
            case ToolOutputText():
                self._write("tool_output", tool_id=event.call_id, content=event.text)
            case Noticed() | Retrying():
                self._write("error", severity="warning", message=event.message)
            case ToolRequested() | ToolFinished():
                self._tool(event)
            case _:
                pass

    def end(self, session: str, ended: TurnEnded) -> None:
        """Writes the result."""
        error = error_of(ended)
        if error is not None:
            self._write("error", severity="error", message=error["message"])
        status = "success" if ended.reason is TurnEnd.DONE else "error"
        more: JsonObject = {} if error is None else {"error": error}
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
        self._out.write(dump({"type": kind, "timestamp": self._clock(), **members}) + "\n")
        self._out.flush()


def visible_text(message: Message) -> str:
    """Returns the visible text of a reply."""
    return "".join(part.text for part in message.parts if isinstance(part, Text | Refusal))
