"""Agent events: one stream for user interfaces, journals and telemetry."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolwire.agent.questions import Confirmation
from toolwire.events import Finished, ModelEvent, Usage
from toolwire.messages import Loss, Media, MediaKind, Message, Outcome, Text, ToolCall, ToolResult
from toolwire.tools.proposals import DiffStat

if TYPE_CHECKING:
    from toolwire.request import ModelRequest


class ApprovalOutcome(StrEnum):
    """How it was decided whether a call runs."""

    AUTO_ACCEPT = "auto_accept"
    ACCEPT = "accept"
    MODIFY = "modify"
    REJECT = "reject"


class TurnEnd(StrEnum):
    """Why a turn ended."""

    DONE = "done"
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - no password
    COST_LIMIT = "cost_limit"
    TIME_LIMIT = "time_limit"
    LOOP = "loop"
    LENGTH = "length"
    """The answer was cut by the model's output limit."""
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server at the beginning of a session."""

    name: str
    status: str
    """`connected`, `failed`, `needs_login`, or `not_tried`."""
    tools: int = 0
    """How many of its tools are offered."""


class ParentCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call that runs a session."""

    session: str
    call_id: str
    agent: str = ""
    """The subagent."""


class SessionOpened(msgspec.Struct, frozen=True, kw_only=True, tag="session_opened"):
    """A process opens a session, or changes the model, style or mode of one that is open."""

    session: str
    model: str
    """`provider/model`."""
    dialect: str = ""
    style: str = ""
    mode: str = ""
    cwd: str = ""
    version: str = ""
    forked_from: str = ""
    changed: str = ""
    """`model`, `style` or `mode`: changed by the user in the open session; else empty."""
    mcp: tuple[ServerStatus, ...] = ()
    parent: ParentCall | None = None
    """Of a subagent's session."""
    server: str = ""
    """Host and port of the model's server; empty if there is none."""


class TurnStarted(msgspec.Struct, frozen=True, kw_only=True, tag="turn_started"):
    """A turn begins with the user's message."""


class MessageAdded(msgspec.Struct, frozen=True, kw_only=True, tag="message_added"):
    """A message is appended: context, user input, or a model's reply."""

    message: Message
    context: bool = False
    """Written by toolwire, not by the user: surroundings, notes, acknowledgements."""
    finished: Finished | None = None
    """How a reply ended; None for other messages, and for a reply that broke off."""


class AnswersGiven(msgspec.Struct, frozen=True, kw_only=True, tag="answers_given"):
    """Results of the last reply's calls: one user message, made of the `ToolFinished` events."""

    call_ids: tuple[str, ...]


class ModelAsked(msgspec.Struct, frozen=True, kw_only=True, tag="model_asked"):
    """A request goes to the model."""

    model: str
    """`provider/model`."""


class RequestBuilt(msgspec.Struct, frozen=True, tag="request_built"):
    """The whole request that is about to be sent; never stored."""

    request: "ModelRequest"


class Streaming(msgspec.Struct, frozen=True, gc=False, tag="streaming"):
    """A piece of a reply as it arrives; never stored, the complete message is."""

    event: ModelEvent


class Thought(msgspec.Struct, frozen=True, kw_only=True, tag="thought"):
    """One complete thought of the model: its headline and the rest."""

    subject: str
    description: str


class UsageCounted(msgspec.Struct, frozen=True, kw_only=True, tag="usage_counted"):
    """What one request cost, answered or failed."""

    model: str
    usage: Usage = Usage()
    cost: float | None = None
    """US dollars; None where no price is known."""
    seconds: float = 0.0
    failed: bool = False
    purpose: str = "turn"
    """`turn`, or what a side request was for."""
    error: str = ""
    """Of a failed one: the HTTP status, or a word such as `timeout`."""


class Retrying(msgspec.Struct, frozen=True, kw_only=True, tag="retrying"):
    """A request failed and is repeated; what was streamed of the answer is void."""

    message: str
    void: bool = False
    """Whether text was already shown that is not part of the answer."""
    status: int | None = None
    """HTTP status of the failure, if it has one."""
    attempt: int = 0
    """Number of the attempt that follows, counted from 1; 0 in records of older versions."""
    wait: float = 0.0
    """Seconds before it."""


class Noticed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="noticed"):
    """A message for the user: a loss, a fallback, a loop, a limit."""

    kind: str
    message: str
    loss: Loss | None = None
    """What a conversion lost, for the kind `loss`."""


_WIRE_NOTICES = frozenset(
    {
        *("prefix", "cache", "schema_weakened", "seal_dropped", "no_finish_reason"),
        *("unmarked_end", "duplicate_call", "glued_arguments"),
    }
)
"""Kinds of notices about a wire format, at no cost for the user: repaired, or each request's."""
_SETTINGS = ("temperature", "top_p", "max_output_tokens", "reasoning")
_MEDIA = frozenset((*map(str, MediaKind), "media", "file"))


def notice_text(event: Noticed, *, verbose: bool = False) -> str:
    """Returns a notice for the user; empty for one that costs nothing, unless `verbose`.

    A loss costs something if a setting that the user chose is not applied, or media is not sent.
    """
    loss = event.loss
    if verbose:
        return event.message
    if loss is None:
        return "" if event.kind in _WIRE_NOTICES else event.message
    if loss.path.partition(".")[0] in _SETTINGS:
        return "" if loss.why.startswith("sent as") else f"{loss.path} is not applied: {loss.why}"
    if loss.what.partition(" ")[0] in _MEDIA and not loss.path.endswith(".name"):
        return f"{loss.what} is not sent to the model: {loss.why}"
    return ""


class HistoryReplaced(msgspec.Struct, frozen=True, kw_only=True, tag="history_replaced"):
    """The conversation was shortened; these are all of its messages now."""

    messages: tuple[Message, ...]
    method: str
    """`summary`, `outputs`, `mechanical`; `given`: the program starts from them."""
    before: int
    """Tokens, estimated."""
    after: int


class TurnEnded(msgspec.Struct, frozen=True, kw_only=True, tag="turn_ended"):
    """The agent waits for the next message."""

    reason: TurnEnd
    detail: str = ""
    """Explanation; empty if the reason is enough."""
    error: str = ""
    """The kind of error, for a turn that failed."""
    requests: int = 0
    usage: Usage = Usage()
    """Summed over the turn."""
    cost: float | None = None
    output: str = ""
    """JSON text of the answer, where it is held to a schema and fits."""


class ToolRequested(msgspec.Struct, frozen=True, kw_only=True, tag="tool_requested"):
    """The model requests a call."""

    call: ToolCall


class ToolAsked(msgspec.Struct, frozen=True, kw_only=True, tag="tool_asked"):
    """The user is asked whether a call may run."""

    call_id: str
    confirmation: Confirmation


class ToolDecided(msgspec.Struct, frozen=True, kw_only=True, tag="tool_decided"):
    """The decision whether a call may run."""

    call_id: str
    decision: ApprovalOutcome
    reason: str = ""
    scope: str = ""
    """Scope of the user's approval: `once`, `session`, `always`, `everywhere`, `server`."""


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool_started"):
    """A call is about to run; stored before it does."""

    call_id: str
    name: str
    arguments: str
    """JSON text of the arguments, with the changes the user made."""
    effect: str


class ToolOutputText(msgspec.Struct, frozen=True, kw_only=True, tag="tool_output"):
    """Live output of a running call, for display."""

    call_id: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """A call has its result."""

    call_id: str
    name: str
    arguments: str
    outcome: Outcome
    success: bool
    duration: float
    """Seconds the tool ran; 0 if it never did."""
    decision: ApprovalOutcome | None = None
    error_type: str = ""
    stat: DiffStat | None = None
    diff: str = ""
    display: str = ""
    server: str = ""
    result: ToolResult
    beside: tuple[Text | Media, ...] = ()
    """Parts that follow the result in the same message."""


class HookRan(msgspec.Struct, frozen=True, kw_only=True, tag="hook_ran"):
    """A hook of the settings, or of a file, ran."""

    event: str
    """`PreToolUse`, `Stop` and so on."""
    name: str
    decision: str
    """`allow`, `ask`, `deny`, `halt`, `failed`, or empty if it changed nothing."""
    reason: str = ""
    seconds: float = 0.0
    call_id: str = ""
    """The call that it was about."""


class Checkpointed(msgspec.Struct, frozen=True, kw_only=True, tag="checkpointed"):
    """The files as they were before the turn's first change are stored; one more event for each
    call that edits files.
    """

    n: int
    """The number of the checkpoint."""
    tree: str = ""
    """Git's id of the snapshot of the whole folder; empty without one."""
    files: tuple[str, ...] = ()
    """The files that a call edits."""


class AgentStarted(msgspec.Struct, frozen=True, kw_only=True, tag="agent_started"):
    """A call begins to run a subagent, in a session of its own."""

    call_id: str
    session: str
    agent: str


class AgentEnded(msgspec.Struct, frozen=True, kw_only=True, tag="agent_ended"):
    """A subagent is done, or was stopped."""

    call_id: str
    session: str
    agent: str
    reason: TurnEnd
    requests: int = 0
    usage: Usage = Usage()
    cost: float | None = None


class ChildEvent(msgspec.Struct, frozen=True, kw_only=True, tag="child_event"):
    """An event of the session that a call runs; that session stores it, this one does not."""

    call_id: str
    agent: str
    session: str
    """The child's id."""
    event: "AgentEvent"


AgentEvent: TypeAlias = (
    SessionOpened
    | TurnStarted
    | MessageAdded
    | AnswersGiven
    | ModelAsked
    | RequestBuilt
    | Streaming
    | Thought
    | UsageCounted
    | Retrying
    | Noticed
    | HistoryReplaced
    | TurnEnded
    | ToolRequested
    | ToolAsked
    | ToolDecided
    | ToolStarted
    | ToolOutputText
    | ToolFinished
    | HookRan
    | Checkpointed
    | AgentStarted
    | AgentEnded
    | ChildEvent
)
Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
"""Returns once the event is safely stored."""


class SessionEvent(msgspec.Struct, frozen=True, gc=False):
    """An event and the id of its session."""

    session: str
    event: AgentEvent


Reader: TypeAlias = Callable[[SessionEvent], Awaitable[None]]
"""Receives the events of one or more sessions."""


def reader_of(receive: Emit) -> Reader:
    """A reader that does not distinguish sessions."""

    async def read(received: SessionEvent) -> None:
        await receive(received.event)

    return read


async def no_events(event: AgentEvent) -> None:
    """Discards events."""
    del event
