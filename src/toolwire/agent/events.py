"""What happens while the agent works: one stream that screens, journals and telemetry read."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from toolwire.agent.confirmations import Confirmation
from toolwire.messages import Outcome, ToolCall, ToolResult
from toolwire.tools.spec import DiffStat


class Decision(StrEnum):
    """How it was decided whether a call runs."""

    AUTO_ACCEPT = "auto_accept"
    ACCEPT = "accept"
    MODIFY = "modify"
    REJECT = "reject"


class ToolRequested(msgspec.Struct, frozen=True, kw_only=True, tag="tool_requested"):
    """The model asks for a call."""

    call: ToolCall


class ToolAsked(msgspec.Struct, frozen=True, kw_only=True, tag="tool_asked"):
    """A person is asked whether a call may run."""

    call_id: str
    confirmation: Confirmation


class ToolDecided(msgspec.Struct, frozen=True, kw_only=True, tag="tool_decided"):
    """A call may run, or not."""

    call_id: str
    decision: Decision
    reason: str = ""
    scope: str = ""
    """For how long a person's yes holds: `once`, `session`, `always`, `server`."""


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool_started"):
    """A call is about to run; kept before it does."""

    call_id: str
    name: str
    arguments: str
    """JSON text of what the tool is given: the person's text where they changed it."""
    effect: str


class ToolOutputText(msgspec.Struct, frozen=True, kw_only=True, tag="tool_output"):
    """Live output of a running call, for the screen."""

    call_id: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """A call has its answer."""

    call_id: str
    name: str
    arguments: str
    outcome: Outcome
    success: bool
    duration: float
    """Seconds the tool ran; 0 if it never did."""
    decision: Decision | None = None
    error_type: str = ""
    stat: DiffStat | None = None
    diff: str = ""
    display: str = ""
    server: str = ""
    result: ToolResult


AgentEvent: TypeAlias = (
    ToolRequested | ToolAsked | ToolDecided | ToolStarted | ToolOutputText | ToolFinished
)
Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
"""Returns once the event is safely kept."""


async def unheard(event: AgentEvent) -> None:
    """Where nobody listens."""
    del event
