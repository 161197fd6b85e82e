"""Hooks: what they see of calls, requests and the events of a session, and what they may answer."""

from collections.abc import Awaitable
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.events import Finished
from toolwire.messages import Message
from toolwire.request import JsonObject, ModelRequest
from toolwire.tools.spec import Effect, ToolOutput


class HookedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as hooks see it: admitted, valid, and not denied by the policy."""

    id: str
    name: str
    arguments: JsonObject
    effect: Effect
    paths: tuple[Path, ...] = ()
    """Files that it touches, as far as its arguments name them."""
    server: str = ""
    """The MCP server of its tool."""
    session: str = ""
    delegates: bool = False
    """Whether the tool is an agent, whose own calls are ruled on one by one."""


class HookedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ran, and its output."""

    call: HookedCall
    output: ToolOutput
    error: str = ""
    """A word for the failure, such as `file_not_found`; empty if the call succeeded."""
    seconds: float = 0.0


class Allow(msgspec.Struct, frozen=True):
    """Approves a call that the policy would ask about, except for protected files."""

    arguments: JsonObject | None = None
    """Run the call with these instead; the policy rules on them."""


class Ask(msgspec.Struct, frozen=True):
    """Requires approval of a call, even if the policy allows it."""

    reason: str = ""
    arguments: JsonObject | None = None


class Deny(msgspec.Struct, frozen=True):
    """Refuses a call; the model gets the reason."""

    reason: str = ""
    text: str = ""
    """What the model gets in place of the usual sentence with the reason."""


class Change(msgspec.Struct, frozen=True):
    """Changes the arguments of a call; they are validated, and the policy rules on them."""

    arguments: JsonObject


class Halt(msgspec.Struct, frozen=True):
    """Ends the turn: the model gets no further request. The user reads the reason."""

    reason: str = ""


class Blocked(msgspec.Struct, frozen=True):
    """Refuses a prompt or a compaction; at the end of a turn the reason is the next prompt."""

    reason: str = ""


class Context(msgspec.Struct, frozen=True):
    """Text that the model gets besides the user's."""

    text: str


CallDecision: TypeAlias = Allow | Ask | Deny | Change | Halt
ResultChange: TypeAlias = ToolOutput | str | Deny | Halt


class SessionStart(msgspec.Struct, frozen=True):
    """A session opens; the answer may be `Context`."""

    source: str = "startup"
    """`startup`, `resume`, `clear`, `compact` or `fork`."""


class UserPromptSubmit(msgspec.Struct, frozen=True):
    """A prompt of the user, before its turn; `Context` is added, `Blocked` refuses it."""

    prompt: str


class Stop(msgspec.Struct, frozen=True):
    """The turn would end; the reason of `Blocked` is given to the model, which goes on."""

    reply: str
    """The model's last text."""
    active: bool = False
    """Whether the turn goes on because of such an answer already."""
    prompt: str = ""
    """What the turn began with."""


class StopFailure(msgspec.Struct, frozen=True):
    """A turn failed."""

    error: str


class PreCompact(msgspec.Struct, frozen=True):
    """The conversation is about to be shortened; `Blocked` leaves it as it is."""

    trigger: str
    """`manual` or `auto`."""
    words: str = ""
    """What the user wants the summary to contain."""


class PostCompact(msgspec.Struct, frozen=True):
    """The conversation was shortened."""

    trigger: str


class Notification(msgspec.Struct, frozen=True):
    """The user's attention is needed."""

    message: str
    type: str
    """`permission_prompt`: an answer is needed; `idle_prompt`: the next message is."""
    call: HookedCall | None = None
    """The call that waits for an answer."""


class SubagentStart(msgspec.Struct, frozen=True):
    """A subagent begins; `Context` is added to its prompt."""

    agent_id: str
    agent_type: str
    prompt: str = ""


class SubagentStop(msgspec.Struct, frozen=True):
    """A subagent would end; the reason of `Blocked` is given to it, and it goes on."""

    agent_id: str
    agent_type: str
    reply: str = ""
    active: bool = False


class SessionEnd(msgspec.Struct, frozen=True):
    """A session closes."""

    reason: str = "other"
    """`clear`, `logout`, `prompt_input_exit` or `other`."""


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """Several answers to an event in one."""

    blocked: str | None = None
    """The first reason of a refusal; None without one."""
    context: tuple[str, ...] = ()
    halted: str | None = None


EventAnswer: TypeAlias = Blocked | Context | Halt | Reaction
HookEvent: TypeAlias = (
    SessionStart
    | UserPromptSubmit
    | Stop
    | StopFailure
    | PreCompact
    | PostCompact
    | Notification
    | SubagentStart
    | SubagentStop
    | SessionEnd
)


class Hooks:
    """Override what you need, as functions or coroutines; a function runs in its own thread."""

    def before_call(self, call: HookedCall) -> CallDecision | Awaitable[CallDecision | None] | None:
        """Returns a decision on a call; None leaves it to the policy."""
        del call

    def after_call(
        self, result: HookedResult
    ) -> ResultChange | Awaitable[ResultChange | None] | None:
        """Returns what the model gets in place of the result; None leaves it as it is."""
        del result

    def before_question(
        self, call: HookedCall, reason: str
    ) -> CallDecision | Awaitable[CallDecision | None] | None:
        """Returns the answer to a question about a call; None asks the user."""
        del call, reason

    def on_event(self, event: HookEvent) -> EventAnswer | Awaitable[EventAnswer | None] | None:
        """Receives an event of the session; None if nothing is to change."""
        del event

    def before_request(self, request: ModelRequest) -> Awaitable[None] | None:
        """Receives a request before it is sent."""
        del request

    def after_reply(
        self, request: ModelRequest, reply: Message, finished: Finished
    ) -> Awaitable[None] | None:
        """Receives a complete reply of the model."""
        del request, reply, finished
