"""Calls that a session left without a result, and the results to give them."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from toolwire.agent.events import ToolFinished, ToolStarted
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
    """Read-only calls to run again."""
    call_ids: tuple[str, ...]
    """All of them in the reply's order, for `AnswersGiven`."""


class OpenReply:
    """A reply whose calls are running; calls are identified by id and order."""

    def __init__(self, message: Message, *, whole: bool) -> None:
        self.message = message
        self._calls = [OpenCall(call=call, whole=whole) for call in message.calls]
        self._places: dict[str, list[int]] = {}
        for place, call in enumerate(message.calls):
            self._places.setdefault(call.id, []).append(place)

    @property
    def calls(self) -> tuple[OpenCall, ...]:
        """The state of each call, in the reply's order."""
        return tuple(self._calls)

    def add(self, event: ToolStarted | ToolFinished) -> None:
        """Record an event of one of the calls; events of other calls are ignored."""
        places = self._places.get(event.call_id)
        if not places:
            return
        if isinstance(event, ToolStarted):
            # Of two calls with one id only the first can run.
            self._replace(places[0], started=event)
            return
        waiting = [place for place in places if self._calls[place].finished is None]
        if event.error_type == "duplicate_id":
            waiting = [place for place in waiting if place != places[0]] or waiting
        self._replace(waiting[0] if waiting else places[-1], finished=event)

    def _replace(self, place: int, **known: ToolStarted | ToolFinished) -> None:
        self._calls[place] = msgspec.structs.replace(self._calls[place], **known)


def resolve_open_calls(open: Sequence[OpenCall], *, run_again: bool = True) -> ResolvedCalls:
    """Results for the calls that were open when the process ended."""
    finished: list[ToolFinished] = []
    again: list[ToolCall] = []
    for one in open:
        if one.finished is not None:
            continue
        if run_again and one.only_reads and one.whole:
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
