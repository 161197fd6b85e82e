"""One turn: request a reply, run its calls, and repeat until a reply has no calls."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from toolwire.agent.events import (
    AnswersGiven,
    Emit,
    HistoryReplaced,
    MessageAdded,
    Noticed,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.agent.hooks import Stop
from toolwire.agent.loops import CallLoops, Suspicion
from toolwire.agent.reply import Repeating, Replies, Reply
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.structured import OutputSchema, json_text
from toolwire.agent.usage import NO_LIMITS, Limits, Price, Spent, cost_from_usage
from toolwire.errors import ErrorKind, InvalidOutput, ProviderError, ToolwireError
from toolwire.events import StopReason
from toolwire.messages import Message, Text, ToolCall
from toolwire.model import Model
from toolwire.request import ModelRequest, ToolSpec

Inbox: TypeAlias = Callable[[], Sequence[Message]]
"""Messages of the user since the last call."""
Changed: TypeAlias = Callable[[tuple[Message, ...]], None]
"""Receives the conversation after each change, also in a turn that is cancelled later."""
Tools: TypeAlias = Callable[[], Awaitable[tuple[ToolSpec, ...]]]
"""The tools that the next request offers."""
Sleep: TypeAlias = Callable[[float], Awaitable[object]]

LOOPING = "not run: the same call was made over and over; the turn was stopped"
BROKE_OFF = "not run: the reply broke off before its end; call again if still needed"
STOP_FEEDBACK = "Stop hook feedback:"
_ENDS = {
    StopReason.END: TurnEnd.DONE,
    StopReason.TOOL_CALLS: TurnEnd.DONE,
    StopReason.LENGTH: TurnEnd.LENGTH,
    StopReason.REFUSAL: TurnEnd.REFUSAL,
    StopReason.CONTENT_FILTER: TurnEnd.CONTENT_FILTER,
}
_DETAILS = {
    TurnEnd.LENGTH: "the answer was cut at the model's output limit",
    TurnEnd.REFUSAL: "the model declined to answer",
    TurnEnd.CONTENT_FILTER: "the vendor's content filter stopped the answer",
}


class Shorten(Protocol):
    """Shortens a conversation if necessary; None leaves it as it is."""

    async def __call__(
        self, request: ModelRequest, *, force: bool = False, emit: Emit | None = None
    ) -> HistoryReplaced | None:
        """The shorter conversation, if needed (`force`: in any case) and possible.

        `emit` receives what it costs.
        """
        ...


def no_input() -> Sequence[Message]:
    """No user input during a turn."""
    return ()


def _unread(messages: tuple[Message, ...]) -> None:
    del messages


async def run_turn(
    request: ModelRequest,
    *,
    model: Model,
    scheduler: Scheduler,
    changed: Changed = _unread,
    limits: Limits = NO_LIMITS,
    inbox: Inbox = no_input,
    context: Inbox = no_input,
    shorten: Shorten | None = None,
    price: Price = cost_from_usage,
    output: OutputSchema | None = None,
    tools: Tools | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Sleep = asyncio.sleep,
) -> TurnEnded:
    """How the turn ended; `changed` receives the conversation after each new message.

    The final answer is held to `output`: one that does not fit is requested again, then an error.
    `tools` is asked before each request, without it the request's own are offered. `context` has
    messages that are not the user's own, for the next request.

    All events go through the scheduler's `emit`. A cancelled turn leaves a complete
    conversation: the cancellation is raised after every call has its result.
    """
    scheduler.spent = spent = Spent()
    began = clock()
    scheduler.left = lambda: spent.left(limits, clock() - began)
    replies = Replies(
        model,
        emit=scheduler.emit,
        spent=scheduler.spent,
        price=price,
        clock=clock,
        sleep=sleep,
    )
    turn = Turn(
        request,
        replies=replies,
        scheduler=scheduler,
        changed=changed,
        shorten=shorten,
        output=output,
        tools=tools,
    )
    return await turn.run(limits, inbox, clock, context)


class Turn:
    """The state of one turn; `request` holds the conversation at any time."""

    def __init__(
        self,
        request: ModelRequest,
        *,
        replies: Replies,
        scheduler: Scheduler,
        changed: Changed = _unread,
        shorten: Shorten | None = None,
        output: OutputSchema | None = None,
        tools: Tools | None = None,
    ) -> None:
        self.request = request
        self._tools = tools
        self._replies = replies
        self._scheduler = scheduler
        self._emit = scheduler.emit
        self._changed = changed
        self._shorten = shorten
        self._output = output
        self._corrections = 0
        self._loops = CallLoops()
        self._text_loops = 0
        self._hooks = scheduler.hooks
        self._hooks.halted = None
        self._refused = 0
        """How often a hook refused the end."""

    async def run(
        self,
        limits: Limits,
        inbox: Inbox,
        clock: Callable[[], float],
        context: Inbox = no_input,
    ) -> TurnEnded:
        """How it ended: the model is done, a limit is reached or something breaks."""
        await self._emit(TurnStarted())
        started = clock()
        try:
            async with asyncio.timeout(limits.seconds or None):
                end = await self._steps(limits, inbox, context, lambda: clock() - started)
        except TimeoutError:
            detail = f"worked {limits.seconds:.0f} s, which is the limit; raise limits.seconds"
            end = TurnEnded(reason=TurnEnd.TIME_LIMIT, detail=detail)
        except asyncio.CancelledError:
            await self._ended(TurnEnded(reason=TurnEnd.CANCELLED))
            raise
        except ToolwireError as error:
            end = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
        return await self._ended(end)

    async def _steps(
        self, limits: Limits, inbox: Inbox, context: Inbox, elapsed: Callable[[], float]
    ) -> TurnEnded:
        while True:
            for message in context():
                await self._add(message, context=True)
            for message in inbox():
                await self._add(message)
            over = self._scheduler.spent.over(limits, elapsed())
            if over is not None:
                return TurnEnded(reason=over[0], detail=over[1])
            if self._tools is not None:
                self.request = msgspec.structs.replace(self.request, tools=await self._tools())
            await self._shortened()
            reply = await self._replied()
            if reply is None:
                if self._text_loops > 1:
                    return TurnEnded(reason=TurnEnd.LOOP, detail="the model repeats its own text")
                continue
            calls = reply.message.calls
            if calls:
                stopped = await self._called(calls)
                if stopped is not None:
                    return TurnEnded(reason=TurnEnd.LOOP, detail=stopped.what)
                if self._hooks.halted is not None:
                    return await self._halted(self._hooks.halted)
            elif reply.finished.reason is not StopReason.PAUSE:
                messages = inbox()
                end = None if messages else await self._answered_with(reply)
                if end is not None and not await self._goes_on(end, reply):
                    return end
                for message in messages:
                    await self._add(message)

    async def _replied(self) -> Reply | None:
        """The next reply, recorded; None if the model looped and was warned."""
        forced = False
        while True:
            try:
                reply = await self._replies.reply(self.request, self._record_partial)
            except Repeating as repeating:
                self._text_loops += 1
                await self._record_partial(repeating.partial)
                await self._note(repeating.suspicion)
                return None
            except ProviderError as error:
                if error.kind != ErrorKind.CONTEXT_TOO_LONG or forced:
                    raise
                forced = True
                if not await self._shortened(force=True):
                    raise
                continue
            await self._record(
                reply.message, MessageAdded(message=reply.message, finished=reply.finished)
            )
            return reply

    async def _called(self, calls: Sequence[ToolCall]) -> Suspicion | None:
        """Runs the calls; returns why the turn has to stop if they are a loop."""
        certain = self._loops.before(calls)
        if certain is not None:
            await self._answered(await self._scheduler.refuse(calls, LOOPING, "loop"), calls)
            return certain
        try:
            answers = await self._scheduler.run(calls)
        except asyncio.CancelledError:
            if self._scheduler.answers is not None:
                await self._answered(self._scheduler.answers, calls)
            raise
        await self._answered(answers, calls)
        suspicion = self._loops.after(calls, answers)
        if suspicion is not None:
            await self._note(suspicion)
        return None

    async def _goes_on(self, end: TurnEnded, reply: Reply) -> bool:
        """Whether a hook refuses the end of the turn; its reason is then the next prompt."""
        if not self._hooks or end.reason is not TurnEnd.DONE:
            return False
        prompt = next((one.text for one in self.request.messages[::-1] if _is_prompt(one)), "")
        found = await self._hooks.on(Stop(reply.message.text, self._refused > 0, prompt))
        if found.blocked is None or found.halted is not None:
            return False
        if self._refused >= self._hooks.stop_limit:
            words = f"a Stop hook refused the end of the turn {self._refused} times; it ends now"
            await self._emit(Noticed(kind="hook", message=words))
            return False
        self._refused += 1
        feedback = f"{STOP_FEEDBACK}\n{found.blocked}"
        await self._add(Message(role="user", parts=(Text(feedback),)), context=True)
        return True

    async def _halted(self, reason: str) -> TurnEnded:
        """The end of a turn that a hook ended."""
        words = f"a hook ended the turn: {reason}" if reason else "a hook ended the turn"
        if self._output is not None:
            return TurnEnded(reason=TurnEnd.FAILED, detail=words, error="stopped_by_hook")
        await self._emit(Noticed(kind="hook", message=words))
        return TurnEnded(reason=TurnEnd.DONE, detail=words)

    async def _answered_with(self, reply: Reply) -> TurnEnded | None:
        """How the reply ends the turn; None if it does not fit the schema and is asked again."""
        end, output = _ended_by(reply), self._output
        if output is None or end.reason is not TurnEnd.DONE:
            return end
        text = reply.message.text
        try:
            output.read(text)
        except InvalidOutput as error:
            if self._corrections >= output.retries:
                times = f"{self._corrections + 1} answers" if self._corrections else "the answer"
                detail = f"{times} did not fit the JSON Schema; the last: {error}"
                return TurnEnded(reason=TurnEnd.FAILED, detail=detail, error=error.kind)
            self._corrections += 1
            left = f"{self._corrections} of {output.retries}"
            words = " ".join(str(error).split())
            message = f"the answer does not fit the JSON Schema: {words}; asking again ({left})"
            await self._emit(Noticed(kind="output", message=message))
            note = Message(role="user", parts=(Text(output.correction(error)),))
            await self._add(note, context=True)
            return None
        return msgspec.structs.replace(end, output=json_text(text))

    async def _answered(self, answers: Message, calls: Sequence[ToolCall]) -> None:
        choice = self.request.tool_choice
        if choice is not None and choice.mode == "required":
            # A call that is forced again and again never ends the turn.
            self.request = msgspec.structs.replace(self.request, tool_choice=None)
        await self._record(answers, AnswersGiven(call_ids=tuple(call.id for call in calls)))

    async def _note(self, suspicion: Suspicion) -> None:
        await self._emit(Noticed(kind="loop", message=suspicion.what))
        await self._add(Message(role="user", parts=(Text(suspicion.note),)), context=True)

    async def _record_partial(self, message: Message) -> None:
        """Records a reply that broke off; none of its calls ever runs."""
        if message.text.strip() or message.calls:
            await self._add(message)
        if message.calls:
            answers = await self._scheduler.refuse(message.calls, BROKE_OFF, "broken_off")
            await self._answered(answers, message.calls)

    async def _add(self, message: Message, *, context: bool = False) -> None:
        await self._record(message, MessageAdded(message=message, context=context))

    async def _record(self, message: Message, event: MessageAdded | AnswersGiven) -> None:
        self._replace((*self.request.messages, message))
        await self._emit(event)

    async def _shortened(self, *, force: bool = False) -> bool:
        if self._shorten is None:
            return False
        replaced = await self._shorten(self.request, force=force, emit=self._emit)
        if replaced is None:
            return False
        self._replace(replaced.messages)
        await self._emit(replaced)
        return True

    def _replace(self, messages: tuple[Message, ...]) -> None:
        self.request = msgspec.structs.replace(self.request, messages=messages)
        self._changed(messages)

    async def _ended(self, end: TurnEnded) -> TurnEnded:
        spent = self._scheduler.spent
        ended = msgspec.structs.replace(
            end, requests=spent.requests, usage=spent.usage, cost=spent.cost
        )
        await self._emit(ended)
        return ended


def _is_prompt(message: Message) -> bool:
    return message.role == "user" and not message.results and bool(message.text)


def _ended_by(reply: Reply) -> TurnEnded:
    finished = reply.finished
    reason = _ENDS.get(finished.reason, TurnEnd.FAILED)
    known = _DETAILS.get(reason, "")
    detail = "; ".join(filter(None, (known, finished.detail if reason is not TurnEnd.DONE else "")))
    error = finished.reason.value if reason is TurnEnd.FAILED else ""
    return TurnEnded(reason=reason, detail=detail, error=error)
