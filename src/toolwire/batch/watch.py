"""Reads the events of an attempt: what it used and answered, and where it may stop."""

from collections.abc import Awaitable, Callable

from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    MessageAdded,
    ModelAsked,
    Retrying,
    ToolFinished,
    UsageCounted,
)
from toolwire.batch.results import Seconds, TokenCount
from toolwire.errors import ToolwireError
from toolwire.events import Usage
from toolwire.messages import Outcome, Refusal, Text

_NOT_STARTED = "shell_execute_error"


class AttemptStopped(ToolwireError):
    """The batch stops; the attempt goes on from here when it is resumed."""

    kind = "stopped"


class Watch:
    """Counts the events of an attempt, also those of its earlier tries."""

    def __init__(self, probe: Callable[[], Awaitable[None]] | None = None) -> None:
        self.stopping = False
        """Ends the turn at the next record where nothing is in flight."""
        self.prompted = False
        """Whether the task's prompt is stored."""
        self.finished = False
        """Whether the last message is a complete reply."""
        self.response = ""
        self.requests = 0
        """All requests, also those without an answer."""
        self.turns = 0
        """Requests of turns that were answered, or counted by the vendor before they failed."""
        self.calls = 0
        self.unknown = 0
        self.cost: float | None = None
        self.usage = TokenCount()
        self.model_seconds = 0.0
        self.tool_seconds = 0.0
        self.waited = 0.0
        self.session = ""
        self._probe = probe
        self._last_assistant = False

    @property
    def broke_off(self) -> bool:
        """Whether the last message is a reply without its end."""
        return self._last_assistant and not self.finished

    def seconds(self, total: float) -> Seconds:
        """Where the time went."""
        return Seconds(
            total=round(total, 3),
            model=round(self.model_seconds, 3),
            tools=round(self.tool_seconds, 3),
            wait=round(self.waited, 3),
        )

    async def receive(self, event: AgentEvent) -> None:
        """Counts an event; may end the turn."""
        self.add(event)
        if (
            isinstance(event, ToolFinished)
            and event.error_type == _NOT_STARTED
            and self._probe is not None
        ):
            await self._probe()
        if self.stopping and isinstance(event, AnswersGiven | ModelAsked):
            raise AttemptStopped("the batch was stopped")

    def add(self, event: AgentEvent) -> None:
        """Counts an event."""
        match event:
            case UsageCounted():
                self._count(event)
            case ToolFinished():
                self.calls += 1
                self.tool_seconds += event.duration
                self.unknown += event.outcome is Outcome.INTERRUPTED
                self._last_assistant = False
            case AnswersGiven():
                self._last_assistant = self.finished = False
            case Retrying():
                self.waited += event.wait
            case MessageAdded(context=False):
                self._message(event)
            case _:
                pass

    def _message(self, event: MessageAdded) -> None:
        message = event.message
        if message.role != "assistant":
            self.prompted = True
            self._last_assistant = self.finished = False
            return
        texts = (part for part in message.parts if isinstance(part, Text | Refusal))
        self.response = "".join(part.text for part in texts)
        self._last_assistant = True
        self.finished = event.finished is not None and not message.calls

    def _count(self, event: UsageCounted) -> None:
        self.requests += 1
        # An outage must not use up the task's limit of turns.
        if event.purpose == "turn" and (not event.failed or event.usage != Usage()):
            self.turns += 1
        usage, so_far = event.usage, self.usage
        self.usage = TokenCount(
            input=so_far.input + usage.total_input,
            output=so_far.output + usage.total_output,
            cached=so_far.cached + (usage.cached or 0),
            reasoning=so_far.reasoning + (usage.reasoning or 0),
        )
        if event.cost is not None:
            self.cost = (self.cost or 0.0) + event.cost
        self.model_seconds += event.seconds
