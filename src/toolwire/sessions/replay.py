"""The session that stored events replay to, with the results of its open calls."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    AgentStarted,
    AnswersGiven,
    HistoryReplaced,
    MessageAdded,
    ParentCall,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.messages import Media, Message, Outcome, Text, ToolCall, ToolResult
from toolwire.tools.spec import Effect

UNKNOWN = (
    "interrupted, outcome unknown: the session ended while this ran; "
    "check what it did before you go on"
)
LOST_READ = "interrupted: the session ended while this ran; it only reads, call again if needed"
NOT_STARTED = "not run: the session ended before this call was started; call again if still needed"
BROKE_OFF = "not run: the reply broke off before its end; call again if still needed"

_READS = (Effect.READ, Effect.NETWORK)


class CallStage(StrEnum):
    """Progress of a call."""

    NOT_STARTED = "not_started"
    STARTED = "started"
    FINISHED = "finished"


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call without a result, with its events."""

    call: ToolCall
    started: ToolStarted | None = None
    finished: ToolFinished | None = None
    whole: bool = True
    """Whether the reply is complete; calls of an incomplete one never run."""

    @property
    def state(self) -> CallStage:
        """Progress of the call."""
        if self.finished is not None:
            return CallStage.FINISHED
        return CallStage.NOT_STARTED if self.started is None else CallStage.STARTED

    @property
    def only_reads(self) -> bool:
        """Whether it started and has no side effects, so that it can run again."""
        return self.started is not None and self.started.effect in _READS


class ResolvedCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What gives every open call its result."""

    finished: tuple[ToolFinished, ...]
    """Results of calls that will not run; to be stored like any other."""
    again: tuple[ToolCall, ...]
    """Calls to run: read-only ones again, and those that waited for an answer."""
    call_ids: tuple[str, ...]
    """All of them in the reply's order, for `AnswersGiven`."""


class OpenReply:
    """A reply whose calls are running; calls are identified by id and order."""

    def __init__(self, message: Message, *, whole: bool) -> None:
        self.message = message
        self._calls = [OpenCall(call=call, whole=whole) for call in message.calls]
        self._positions: dict[str, list[int]] = {}
        for position, call in enumerate(message.calls):
            self._positions.setdefault(call.id, []).append(position)

    @property
    def calls(self) -> tuple[OpenCall, ...]:
        """The state of each call, in the reply's order."""
        return tuple(self._calls)

    def add(self, event: ToolStarted | ToolFinished) -> None:
        """Record an event of one of the calls; events of other calls are ignored."""
        positions = self._positions.get(event.call_id)
        if not positions:
            return
        if isinstance(event, ToolStarted):
            # Of two calls with one id only the first can run.
            self._replace(positions[0], started=event)
            return
        waiting = [position for position in positions if self._calls[position].finished is None]
        if event.error_type == "duplicate_id":
            waiting = [position for position in waiting if position != positions[0]] or waiting
        self._replace(waiting[0] if waiting else positions[-1], finished=event)

    def _replace(self, position: int, **known: ToolStarted | ToolFinished) -> None:
        self._calls[position] = msgspec.structs.replace(self._calls[position], **known)


def resolve_open_calls(
    open: Sequence[OpenCall], *, run_again: bool = True, run_waiting: bool = False
) -> ResolvedCalls:
    """Results for the calls that were open when the process ended.

    `run_waiting`: calls that were not started are to run too.
    """
    finished: list[ToolFinished] = []
    again: list[ToolCall] = []
    for one in open:
        if one.finished is not None:
            continue
        waits = run_waiting and one.state is CallStage.NOT_STARTED and one.call.complete
        if one.whole and (waits or (run_again and one.only_reads)):
            again.append(one.call)
        else:
            finished.append(_made_up(one))
    return ResolvedCalls(
        finished=tuple(finished),
        again=tuple(again),
        call_ids=tuple(one.call.id for one in open),
    )


def answered(open: Sequence[OpenCall], finished: Iterable[ToolFinished] = ()) -> Message:
    """The user message with a result for every open call, made up where none is stored."""
    parts: list[ToolResult | Text | Media] = []
    for one in _with_answers(open, tuple(finished)):
        last = one.finished or _made_up(one)
        parts.append(last.result)
        parts += last.beside
    return Message(role="user", parts=tuple(parts))


def _with_answers(
    open: Sequence[OpenCall], finished: tuple[ToolFinished, ...]
) -> Sequence[OpenCall]:
    if not finished:
        return open
    reply = OpenReply(Message(role="assistant", parts=tuple(one.call for one in open)), whole=True)
    for one in open:
        if one.finished is not None:
            reply.add(one.finished)
    for event in finished:
        reply.add(event)
    return [
        msgspec.structs.replace(one, finished=now.finished)
        for one, now in zip(open, reply.calls, strict=True)
    ]


def _made_up(one: OpenCall) -> ToolFinished:
    """The result for a call that has none."""
    if one.started is None:
        outcome, text = Outcome.NOT_RUN, NOT_STARTED if one.whole else BROKE_OFF
    else:
        outcome, text = Outcome.INTERRUPTED, LOST_READ if one.only_reads else UNKNOWN
    call = one.call
    result = ToolResult(
        call_id=call.id,
        name=call.name,
        parts=(Text(text),),
        is_error=True,
        outcome=outcome,
        kind=call.kind,
    )
    return ToolFinished(
        call_id=call.id,
        name=call.name if one.started is None else one.started.name,
        arguments=call.arguments if one.started is None else one.started.arguments,
        outcome=outcome,
        success=False,
        duration=0.0,
        error_type=outcome.value,
        display=text,
        result=result,
    )


_TITLE = 70


class ModelTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What a session spent on one model."""

    model: str
    requests: int = 0
    failed: int = 0
    input: int = 0
    """All prompt tokens, cached ones included."""
    output: int = 0
    """All generated tokens, reasoning included."""
    cached: int = 0
    reasoning: int = 0
    seconds: float = 0.0
    cost: float | None = None
    """US dollars of the requests whose price is known; None if none is."""
    unpriced: int = 0
    """Requests that are not in `cost`."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session after its events."""

    id: str = ""
    model: str = ""
    """`provider/model` of the last process that worked on it; so are the four below."""
    dialect: str = ""
    style: str = ""
    mode: str = ""
    cwd: str = ""
    chosen_style: str = ""
    """Chosen by the user in the session, so that it continues with it; so is `chosen_mode`."""
    chosen_mode: str = ""
    forked_from: str = ""
    parent: ParentCall | None = None
    """The call that runs it, for the session of a subagent."""
    new_copy: bool = False
    """Whether it was copied from another and not opened since."""
    messages: tuple[Message, ...] = ()
    context: int = 0
    """How many leading messages are generated context, not user input."""
    totals: tuple[ModelTotals, ...] = ()
    turns: int = 0
    title: str = ""
    """The beginning of the user's first message."""
    ended: TurnEnded | None = None
    """How the last turn ended; None if it is unfinished."""
    open: tuple[OpenCall, ...] = ()
    """Calls of the last message without a result."""
    agents: tuple[AgentStarted, ...] = ()
    """Subagents that these calls run."""

    @property
    def cost(self) -> float | None:
        """US dollars over all models, as far as prices are known."""
        known = [one.cost for one in self.totals if one.cost is not None]
        return sum(known) if known else None

    @property
    def settled_messages(self) -> tuple[Message, ...]:
        """The conversation with a result for every call; nothing is run again."""
        return (*self.messages, answered(self.open)) if self.open else self.messages


def replay(events: Iterable[AgentEvent]) -> Session:
    """The session that these events replay to."""
    fold = _Replay()
    for event in events:
        fold.add(event)
    return fold.session()


def open_calls(events: Iterable[AgentEvent]) -> tuple[OpenCall, ...]:
    """Calls of the last reply without a result, with the state of each."""
    return replay(events).open


class _Replay:
    def __init__(self) -> None:
        self._opened: SessionOpened | None = None
        self._chosen_style = ""
        self._chosen_mode = ""
        self._forked_from = ""
        self._new_copy = False
        self._messages: list[Message] = []
        self._context = 0
        self._reply: OpenReply | None = None
        self._totals: dict[str, ModelTotals] = {}
        self._turns = 0
        self._title = ""
        self._ended: TurnEnded | None = None
        self._agents: dict[str, AgentStarted] = {}

    def add(self, event: AgentEvent) -> None:
        match event:
            case ToolStarted() | ToolFinished():
                if self._reply is not None:
                    self._reply.add(event)
            case MessageAdded():
                self._message(event)
            case AnswersGiven():
                self._answers(event)
            case UsageCounted():
                _count(self._totals, event)
            case HistoryReplaced():
                self._shortened(event)
            case AgentStarted():
                self._agents[event.call_id] = event
            case TurnStarted():
                self._turns += 1
                self._ended = None
            case TurnEnded():
                self._ended = event
            case SessionOpened():
                self._opening(event)
            case _:
                pass

    def _opening(self, event: SessionOpened) -> None:
        self._opened = event
        self._forked_from = event.forked_from or self._forked_from
        self._new_copy = bool(event.forked_from)
        # A flag of a later process replaces a choice; another model has a style of its own.
        if event.changed == "style" or event.style != self._chosen_style:
            self._chosen_style = event.style if event.changed == "style" else ""
        if event.changed == "mode" or event.mode != self._chosen_mode:
            self._chosen_mode = event.mode if event.changed == "mode" else ""

    def session(self) -> Session:
        """The session so far."""
        last = self._opened or SessionOpened(session="", model="")
        return Session(
            id=last.session,
            model=last.model,
            dialect=last.dialect,
            style=last.style,
            mode=last.mode,
            cwd=last.cwd,
            chosen_style=self._chosen_style,
            chosen_mode=self._chosen_mode,
            forked_from=self._forked_from,
            parent=last.parent,
            new_copy=self._new_copy,
            messages=tuple(self._messages),
            context=self._context,
            totals=tuple(self._totals.values()),
            turns=self._turns,
            title=self._title,
            ended=self._ended,
            open=() if self._reply is None else self._reply.calls,
            agents=() if self._reply is None else tuple(self._agents.values()),
        )

    def _message(self, event: MessageAdded) -> None:
        self._close_reply()
        message = event.message
        if event.context and self._context == len(self._messages):
            self._context += 1
        self._messages.append(message)
        if message.role == "assistant" and message.calls:
            self._agents.clear()
            self._reply = OpenReply(message, whole=event.finished is not None)
        elif message.role == "user" and not event.context and not self._title:
            self._title = title_of(message.text)

    def _close_reply(self) -> None:
        """Adds results for the calls of a reply that the conversation moved past."""
        if self._reply is not None:
            self._messages.append(answered(self._reply.calls))
            self._reply = None

    def _answers(self, event: AnswersGiven) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        waiting = list(reply.calls)
        if event.call_ids == tuple(one.call.id for one in waiting):
            self._messages.append(answered(waiting))
            return
        given: list[OpenCall] = []
        for call_id in event.call_ids:
            one = next((one for one in waiting if one.call.id == call_id), None)
            if one is not None:
                waiting.remove(one)
                given.append(one)
        # Calls missing from the record get a result too: vendors reject calls without one.
        self._messages.append(answered((*given, *waiting)))

    def _shortened(self, event: HistoryReplaced) -> None:
        same = 0
        for one, other in zip(self._messages[: self._context], event.messages, strict=False):
            if one != other:
                break
            same += 1
        self._context = same
        self._messages = list(event.messages)
        if self._reply is not None and self._messages[-1:] != [self._reply.message]:
            self._reply = None


def title_of(text: str) -> str:
    """The beginning of a text, on one line."""
    words = " ".join(text.split())
    return words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}…"


def _count(totals: dict[str, ModelTotals], event: UsageCounted) -> None:
    so_far = totals.get(event.model) or ModelTotals(model=event.model)
    usage = event.usage
    totals[event.model] = ModelTotals(
        model=event.model,
        requests=so_far.requests + 1,
        failed=so_far.failed + event.failed,
        input=so_far.input + usage.total_input,
        output=so_far.output + usage.total_output,
        cached=so_far.cached + (usage.cached or 0),
        reasoning=so_far.reasoning + (usage.reasoning or 0),
        seconds=so_far.seconds + event.seconds,
        cost=(so_far.cost or 0.0) + event.cost if event.cost is not None else so_far.cost,
        unpriced=so_far.unpriced + (event.cost is None),
    )
