"""What the live area shows, folded from agent events; pure, time comes in as an argument."""

from typing import assert_never

import msgspec

from toolwire.agent.events import (
    AgentEnded,
    AgentEvent,
    AgentStarted,
    AnswersGiven,
    Checkpointed,
    ChildEvent,
    HistoryReplaced,
    HookRan,
    MessageAdded,
    ModelAsked,
    Noticed,
    RequestBuilt,
    Retrying,
    SessionOpened,
    Streaming,
    Thought,
    ToolAsked,
    ToolDecided,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    Notice,
    RefusalDelta,
    ServerBlockAdded,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.wire.repair import parse_arguments

MODE_WORDS = {"default": "ask"}
"""Words of the screen for approval modes whose names say little."""
_TAIL = 4000
"""Characters of live output that are kept."""
_ARGUMENTS = 2000


class RunningCall(msgspec.Struct, frozen=True):
    """A call that runs, and the end of its output."""

    id: str
    name: str
    arguments: str
    since: float
    tail: str = ""


class ProposedCall(msgspec.Struct, frozen=True):
    """A call that waits: for an answer, or for those before it."""

    id: str
    name: str
    arguments: str


class Writing(msgspec.Struct, frozen=True):
    """A call whose arguments still arrive: their beginning, and how long they are."""

    id: str
    name: str
    head: str = ""
    size: int = 0


class TodoStep(msgspec.Struct, frozen=True):
    """One step of the model's plan."""

    text: str
    status: str


class Subagent(msgspec.Struct, frozen=True, kw_only=True):
    """A session that a call runs, as far as it got."""

    session: str
    name: str
    since: float
    last: str = ""
    """The last thing it did."""
    cost: float = 0.0
    ended: bool = False


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The present of a session, as far as the screen shows it."""

    session: str = ""
    model: str = ""
    style: str = ""
    mode: str = ""
    cwd: str = ""
    since: float | None = None
    """When the turn began; None while the agent waits."""
    word: str = ""
    thinking: str = ""
    """The headline of the present thought."""
    writing: Writing | None = None
    proposed: tuple[ProposedCall, ...] = ()
    running: tuple[RunningCall, ...] = ()
    plan: tuple[TodoStep, ...] = ()
    panel: bool = False
    """Whether every step of the plan is shown."""
    agents: tuple[Subagent, ...] = ()
    queue: tuple[str, ...] = ()
    """Messages of the user for after the turn."""
    tokens: int = 0
    """Input tokens of the last request."""
    cost: float = 0.0
    unpriced: bool = False

    @property
    def working(self) -> bool:
        """Whether a turn is under way."""
        return self.since is not None


def fold(state: State, event: AgentEvent, now: float) -> State:
    """The state after an event."""
    match event:
        case Streaming():
            return _streamed(state, event)
        case SessionOpened():
            return _with(
                state,
                session=event.session,
                model=event.model,
                style=event.style,
                mode=event.mode,
                cwd=event.cwd or state.cwd,
            )
        case TurnStarted():
            return _with(state, since=now, word="thinking")
        case ModelAsked():
            return _with(state, word="thinking", thinking="", writing=None, proposed=())
        case Thought():
            return _with(state, thinking=event.subject)
        case Retrying():
            return _with(state, word="trying again", writing=None)
        case UsageCounted():
            return _counted(state, event)
        case ToolRequested(call=call):
            proposed = ProposedCall(call.id, call.name, call.arguments)
            return _with(state, proposed=(*state.proposed, proposed), writing=None)
        case ToolDecided():
            return _with(state, writing=None)
        case ToolStarted():
            call = RunningCall(event.call_id, event.name, event.arguments, now)
            return _with(
                state,
                proposed=_without(state.proposed, event.call_id),
                running=(*state.running, call),
                writing=None,
                word="working",
            )
        case ToolOutputText():
            return _output(state, event)
        case ToolFinished():
            left = tuple(call for call in state.running if call.id != event.call_id)
            plan = _plan(event) if event.name == "todo" and event.success else state.plan
            proposed = _without(state.proposed, event.call_id)
            return _with(state, proposed=proposed, running=left, plan=plan)
        case TurnEnded():
            ended = _with(state, since=None, word="", thinking="", writing=None)
            return _with(ended, proposed=(), running=())
        case AgentEnded():
            ended = tuple(
                msgspec.structs.replace(one, ended=True) if one.session == event.session else one
                for one in state.agents
            )
            return _with(state, agents=ended)
        case ChildEvent():
            return _with(state, agents=_agents(state.agents, event, now))
        case (
            MessageAdded()
            | AnswersGiven()
            | RequestBuilt()
            | Noticed()
            | HistoryReplaced()
            | HookRan()
            | Checkpointed()
            | AgentStarted()
            | ToolAsked()
        ):
            # Only the transcript, or the question, shows them.
            return state
        case _:
            assert_never(event)


def _agents(known: tuple[Subagent, ...], event: ChildEvent, now: float) -> tuple[Subagent, ...]:
    """The subagents after an event of one of them."""
    found = next((one for one in known if one.session == event.session), None)
    agent = found or Subagent(session=event.session, name=event.agent, since=now)
    match event.event:
        case ToolStarted(name=name):
            agent = msgspec.structs.replace(agent, last=name)
        case MessageAdded(message=message) if message.role == "assistant" and message.text:
            agent = msgspec.structs.replace(agent, last=message.text.strip().partition("\n")[0])
        case UsageCounted(cost=cost):
            agent = msgspec.structs.replace(agent, cost=agent.cost + (cost or 0.0))
        case TurnStarted():
            agent = msgspec.structs.replace(agent, ended=False)
        case TurnEnded():
            agent = msgspec.structs.replace(agent, ended=True)
        case _:
            pass
    if found is None:
        return (*known, agent)
    return tuple(agent if one.session == agent.session else one for one in known)


def _without(calls: tuple[ProposedCall, ...], done: str) -> tuple[ProposedCall, ...]:
    return tuple(call for call in calls if call.id != done)


def _with(state: State, **changes: object) -> State:
    return msgspec.structs.replace(state, **changes)


def _streamed(state: State, event: Streaming) -> State:
    match event.event:
        case TextDelta():
            return state if state.word == "writing" else _with(state, word="writing", thinking="")
        case ThinkingDelta():
            return state if state.word == "thinking" else _with(state, word="thinking", thinking="")
        case Notice(kind="reading"):
            return _with(state, word="reading", thinking=event.event.message)
        case ToolCallStarted():
            return _with(state, writing=Writing(event.event.id, event.event.name))
        case ToolCallDelta():
            return _written(state, event.event)
        case ToolCallEnded():
            return _with(state, writing=None)
        case RefusalDelta():
            return state if state.word == "writing" else _with(state, word="writing", thinking="")
        case (
            TextEnded()
            | ThinkingEnded()
            | MediaAdded()
            | CitationAdded()
            | Notice()
            | ServerBlockAdded()
            | Finished()
        ):
            return state
        case _:
            assert_never(event.event)


def _written(state: State, delta: ToolCallDelta) -> State:
    writing = state.writing
    if writing is None or writing.id != delta.id:
        return state
    size = writing.size + len(delta.arguments)
    head = writing.head
    if len(head) < _ARGUMENTS:
        head = (head + delta.arguments)[:_ARGUMENTS]
    return _with(state, writing=Writing(writing.id, writing.name, head, size))


def _output(state: State, event: ToolOutputText) -> State:
    return _with(
        state,
        running=tuple(
            msgspec.structs.replace(call, tail=(call.tail + event.text)[-_TAIL:])
            if call.id == event.call_id
            else call
            for call in state.running
        ),
    )


def _counted(state: State, event: UsageCounted) -> State:
    tokens = event.usage.input if event.purpose == "turn" else None
    return _with(
        state,
        tokens=state.tokens if tokens is None else tokens,
        cost=state.cost + (event.cost or 0.0),
        unpriced=state.unpriced or (event.cost is None and not event.failed),
    )


def _plan(event: ToolFinished) -> tuple[TodoStep, ...]:
    value = parse_arguments(event.arguments).value or {}
    try:
        return msgspec.convert(value.get("items", []), tuple[TodoStep, ...])
    except msgspec.ValidationError:
        return ()
