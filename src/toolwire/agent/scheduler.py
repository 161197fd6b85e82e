"""Scheduler: admits, approves and runs calls; every call gets exactly one result."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from toolwire.agent.admission import CallState, Rejected, admit_all, guarded
from toolwire.agent.approval import Approval, Policy, Remember, Roots, first_word, no_memory
from toolwire.agent.events import (
    AgentEvent,
    Emit,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    ToolStarted,
    UsageCounted,
    no_events,
)
from toolwire.agent.hook_chain import NO_HOOKS, HookChain
from toolwire.agent.questions import Approver, Editor
from toolwire.agent.usage import NO_LIMITS, Limits, Spent, counted
from toolwire.messages import Media, Message, Outcome, Text, ToolCall, ToolResult
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry
from toolwire.tools.spec import MOST_MEDIA, Tool, ToolContext, ToolFailed, ToolOutput, capped, filed

CANCELLED = "[Operation Cancelled] Reason: Tool call cancelled by user."

_MOST_AT_ONCE = 8
Ask: TypeAlias = Callable[[str, tuple[str, ...]], Awaitable[str]]


class Scheduler:
    """Runs the calls of a reply: readers concurrently, writers alone and in order."""

    def __init__(
        self,
        registry: Registry,
        *,
        context: ToolContext,
        policy: Policy,
        approver: Approver | None = None,
        editor: Editor | None = None,
        emit: Emit = no_events,
        remember: Remember = no_memory,
        roots: Roots = first_word,
        hooks: HookChain = NO_HOOKS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self.context = context
        self._emit = emit
        self.spent = Spent()
        """What the emitted events have counted."""
        self.left: Callable[[], Limits | None] = lambda: NO_LIMITS
        """Returns what is left of the turn's limits; None if one is reached."""
        self.hooks = hooks
        self._model = context.model and counted(context.model, emit=self.emit, purpose="tool")
        self._clock = clock
        self.approval = Approval(
            policy,
            context=context,
            emit=self.emit,
            approver=approver,
            editor=editor,
            remember=remember,
            roots=roots,
            hooks=hooks,
        )
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)
        self._running: asyncio.Task[None] | None = None
        self.answers: Message | None = None
        """Results of the last run; also after it was cancelled."""

    async def emit(self, event: AgentEvent) -> None:
        """The session's one stream of events: the turn emits through it too."""
        if type(event) is UsageCounted:
            self.spent.add(event)
        await self._emit(event)

    async def run(self, calls: Sequence[ToolCall]) -> Message:
        """One user message with a result for every call, in call order."""
        verdicts = admit_all(calls, self._registry)
        works = [CallState(call, verdict) for call, verdict in zip(calls, verdicts, strict=True)]
        self.answers = None
        try:
            for work in works:
                await self.emit(ToolRequested(call=work.call))
            async with asyncio.TaskGroup() as group:
                self._running = group.create_task(self._all(works))
        except BaseExceptionGroup as failures:
            raise _first_of(failures) from failures
        finally:
            self._running = None
            await self._answer_open(works)
            parts = tuple(part for work in works for part in work.parts)
            self.answers = Message(role="user", parts=parts)
        return self.answers

    async def refuse(self, calls: Sequence[ToolCall], text: str, type: str) -> Message:
        """The same message without running anything: every call is answered with `text`."""
        parts: list[ToolResult] = []
        for call in calls:
            work = CallState(call, Rejected(text=text, type=type))
            await self.emit(ToolRequested(call=call))
            await self._fail(work, text, type, Outcome.NOT_RUN)
            parts += (part for part in work.parts if isinstance(part, ToolResult))
        self.answers = Message(role="user", parts=tuple(parts))
        return self.answers

    def cancel(self) -> None:
        """Stop running calls; `run` then returns with every open call answered as cancelled."""
        if self._running is not None:
            self._running.cancel()

    async def _all(self, works: list[CallState]) -> None:
        for batch in _batches(works):
            async with asyncio.TaskGroup() as group:
                for work in batch:
                    group.create_task(self._one(work))

    async def _one(self, work: CallState) -> None:
        verdict = work.verdict
        if isinstance(verdict, Rejected):
            await self._fail(work, verdict.text, verdict.type, Outcome.NOT_RUN)
            return
        async with self._places:
            try:
                await self._tried(work, verdict.tool, verdict.note)
            except ToolFailed as failure:
                type = failure.type or "failed"
                await self._fail(work, str(failure), type, Outcome.FAILED, failure.display)

    async def _tried(self, work: CallState, tool: Tool, note: str) -> None:
        complaint = await guarded(_checked(tool, work.arguments, self.context))
        if complaint:
            await self._fail(work, complaint, "invalid_tool_params", Outcome.NOT_RUN)
            return
        refusal = await self.approval.refusal(work, tool)
        if refusal is not None:
            await self._fail(work, refusal.text, refusal.type, Outcome.DENIED)
            return
        try:
            output = await self._ran(work, tool)
        except ToolFailed as failure:
            raise await self._seen_failure(work, tool, failure) from failure
        if self.hooks:
            output = await self.hooks.after(work, tool, self.context, output)
        await self._done(work, output, note)

    async def _seen_failure(self, work: CallState, tool: Tool, failure: ToolFailed) -> ToolFailed:
        """The failure as the hooks leave it: they may change its text."""
        if not self.hooks:
            return failure
        before = ToolOutput(text=str(failure), display=failure.display)
        error = failure.type or "failed"
        after = await self.hooks.after(work, tool, self.context, before, error)
        return failure if after is before else ToolFailed(after.text, type=failure.type)

    async def _ran(self, work: CallState, tool: Tool) -> ToolOutput:
        """Run the tool and emit its live output; the start is stored before it runs."""
        await self.emit(
            ToolStarted(
                call_id=work.call.id,
                name=tool.name,
                arguments=work.arguments_text,
                effect=tool.effect,
            )
        )
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[str | None] = asyncio.Queue()

        def show(text: str | None) -> None:
            loop.call_soon_threadsafe(lines.put_nowait, text)

        context = msgspec.structs.replace(
            self.context,
            call_id=work.call.id,
            emit=show,
            permit=work.permit,
            ask=self._asking_alone(self.context.ask),
            model=self._model,
            session=self,
        )
        work.started = self._clock()
        ended: ToolOutput | ToolFailed
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass_on(work.call.id, lines))
            try:
                ended = await guarded(tool.run(work.arguments, context))
            except ToolFailed as failure:
                ended = failure
            finally:
                work.ended = self._clock()
                show(None)
        if isinstance(ended, ToolFailed):
            raise ended
        return ended

    def _asking_alone(self, ask: Ask | None) -> Ask | None:
        """The callback, serialized with every other question to the user."""
        if ask is None:
            return None

        async def alone(question: str, choices: tuple[str, ...]) -> str:
            async with self.approval.asking:
                return await ask(question, choices)

        return alone

    async def _pass_on(self, call_id: str, lines: asyncio.Queue[str | None]) -> None:
        while (text := await lines.get()) is not None:
            await self.emit(ToolOutputText(call_id=call_id, text=text))

    async def _done(self, work: CallState, output: ToolOutput, note: str) -> None:
        text = await self._capped(output.text, work.call.id)
        text = f"{text}\n\n{note}" if note else text
        parts: list[Text | Media] = [] if output.blocks and not text else [Text(text)]
        parts += output.media
        for number, block in enumerate(output.blocks):
            parts.append(await self._fitting(block, f"{work.call.id}_{number}"))
        result = ToolResult(
            call_id=work.call.id,
            name=work.call.name,
            parts=tuple(parts),
            kind=work.call.kind,
            blocks=bool(output.blocks),
        )
        work.parts = (result, *output.beside)
        if output.stat is not None and work.edited is None:
            work.stat = output.stat
        await self._finish(work, result, display=output.display or result.text, diff=output.diff)

    async def _fitting(self, block: Text | Media, name: str) -> Text | Media:
        """The block; a text that is too long is cut, other contents become a file."""
        if isinstance(block, Text):
            return Text(await self._capped(block.text, name))
        if len(block.base64) * 3 // 4 <= MOST_MEDIA:
            return block
        return Text(await asyncio.to_thread(filed, block, self.context.workspace.temp, name))

    async def _capped(self, text: str, name: str) -> str:
        """The text, or its ends if it is too long for the model; then all of it is in a file."""
        limit = self.context.settings.output_limit
        if not 0 < limit < len(text):
            return text
        return await asyncio.to_thread(capped, text, limit, self.context.workspace.temp, name)

    async def _fail(
        self, work: CallState, text: str, type: str, outcome: Outcome, display: str = ""
    ) -> None:
        result = ToolResult(
            call_id=work.call.id,
            name=work.call.name,
            parts=(Text(text),),
            is_error=True,
            outcome=outcome,
            kind=work.call.kind,
        )
        work.parts = (result,)
        work.stat = None
        await self._finish(work, result, error_type=type, display=display or text)

    async def _finish(
        self,
        work: CallState,
        result: ToolResult,
        *,
        error_type: str = "",
        display: str = "",
        diff: str = "",
    ) -> None:
        await self.emit(
            ToolFinished(
                call_id=work.call.id,
                name=work.tool.name if work.tool is not None else work.call.name,
                arguments=work.arguments_text,
                outcome=result.outcome,
                success=not result.is_error,
                duration=work.ended - work.started if work.started is not None else 0.0,
                decision=work.decision,
                error_type=error_type,
                stat=work.stat,
                diff=diff,
                display=display,
                server=work.tool.server if work.tool is not None else "",
                result=result,
                beside=tuple(part for part in work.parts if not isinstance(part, ToolResult)),
            )
        )

    async def _answer_open(self, works: Iterable[CallState]) -> None:
        """Answer every open call: the run was cancelled."""
        for work in works:
            if work.parts:
                continue
            lost = work.started is not None and not work.only_reads
            outcome = Outcome.INTERRUPTED if lost else Outcome.CANCELLED
            help = "\nIt had started; check what it did before you go on." if lost else ""
            await self._fail(work, f"{CANCELLED}{help}", "cancelled", outcome)


def _first_of(failure: BaseException) -> BaseException:
    """The first error outside of any tool, such as an event that could not be stored."""
    grouped: Sequence[BaseException] = getattr(failure, "exceptions", ())
    return _first_of(grouped[0]) if grouped else failure


async def _checked(tool: Tool, arguments: JsonObject, context: ToolContext) -> str:
    return tool.check(arguments, context)


def _batches(works: Iterable[CallState]) -> list[list[CallState]]:
    """Groups of adjacent calls that may run concurrently; every other call alone."""
    batches: list[list[CallState]] = []
    open_batch = False
    for work in works:
        if work.side_by_side and open_batch:
            batches[-1].append(work)
        else:
            batches.append([work])
        open_batch = work.side_by_side
    return batches
