"""State of one tool call."""

import logging
from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from toolwire.agent.admission import Admitted, Rejected
from toolwire.agent.events import ApprovalOutcome
from toolwire.messages import Media, Text, ToolCall, ToolResult
from toolwire.request import JsonObject
from toolwire.tools.proposals import DiffStat
from toolwire.tools.spec import Effect, Permit, Tool, ToolFailed
from toolwire.wire.json_access import dump

_SIDE_BY_SIDE = (Effect.READ, Effect.NETWORK)
_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")


class CallState:
    """State of a call from admission to its result."""

    def __init__(self, call: ToolCall, verdict: Admitted | Rejected) -> None:
        self.call = call
        self.verdict = verdict
        self.arguments: JsonObject = verdict.arguments if isinstance(verdict, Admitted) else {}
        self.started: float | None = None
        self.ended = 0.0
        self.decision: ApprovalOutcome | None = None
        self.stat: DiffStat | None = None
        self.edited: str | None = None
        self.permit: Permit | None = None
        """Permit of the ruling, for shell commands."""
        self.parts: tuple[ToolResult | Text | Media, ...] = ()

    @property
    def tool(self) -> Tool | None:
        """The tool, if the call was admitted."""
        return self.verdict.tool if isinstance(self.verdict, Admitted) else None

    @property
    def side_by_side(self) -> bool:
        """Whether adjacent calls may run at the same time."""
        return self.tool is None or self.tool.effect in _SIDE_BY_SIDE

    @property
    def shown_arguments(self) -> str:
        """Arguments that the tool is given, or those the model wrote."""
        return dump(self.arguments) if self.tool is not None else self.call.arguments

    def as_ruled(self, tool: Tool) -> ToolCall:
        """The call with the tool's real name and effective arguments."""
        return msgspec.structs.replace(self.call, name=tool.name, arguments=dump(self.arguments))


async def guarded(step: Awaitable[_Value]) -> _Value:
    """Result of a step in the tool's code; any exception there is the tool's failure."""
    try:
        return await step
    except ToolFailed:
        raise
    except Exception as error:
        _log.debug("a tool broke", exc_info=True)
        message = str(error) or type(error).__name__
        raise ToolFailed(message, type="unhandled_exception") from error
