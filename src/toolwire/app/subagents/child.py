"""One run of a subagent: its session, model, budget, and what its caller sees of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, Protocol

import msgspec

from toolwire import __version__
from toolwire.agent.events import (
    AgentEnded,
    AgentEvent,
    AgentStarted,
    ChildEvent,
    Emit,
    MessageAdded,
    Noticed,
    ParentCall,
    SessionOpened,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    UsageCounted,
    reader_of,
)
from toolwire.agent.hook_chain import HookChain
from toolwire.agent.hooks import SubagentStart, SubagentStop
from toolwire.agent.questions import Approver, Confirmation, UserAnswer
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.usage import Limits, tightest
from toolwire.app.equipment import Equipment
from toolwire.app.event_sink import EventSink
from toolwire.app.model_stack import Opened
from toolwire.app.options import TurnOptions
from toolwire.app.session import AgentSession
from toolwire.app.subagents.catalog import tools_of
from toolwire.app.toolbox import Toolbox
from toolwire.config import Settings
from toolwire.context.mentions import user_message
from toolwire.errors import BadInput, ToolwireError
from toolwire.events import ModelEvent
from toolwire.extensions.agents.builtin import AgentDefinition
from toolwire.ids import new_id
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.policy import Mode
from toolwire.request import ModelRequest
from toolwire.sessions.store import OpenJournal
from toolwire.tools.spec import ToolContext, ToolFailed, ToolOutput
from toolwire.wire.repair import parse_arguments

NO_BUDGET = "the limits of this run are reached; answer with what is known"
_LONGEST = 300
_MOST_FILES = 20


class Builds(Protocol):
    """The part of the session's builder that a subagent needs."""

    def equipment(
        self, name: str, models: tuple[Opened, ...], mode: Mode, toolbox: Toolbox, sink: Emit
    ) -> Equipment:
        """What depends on the model and the mode."""
        ...

    def request(self, equipment: Equipment, messages: tuple[Message, ...]) -> ModelRequest:
        """The initial request."""
        ...

    async def other_model(self, name: str, now: Equipment) -> tuple[str, tuple[Opened, ...]]:
        """Another model than that of the session."""
        ...


class ChildTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call."""

    agent: str
    prompt: str
    files: list[str] = []


class _NoBudget(ToolwireError):
    """The session that runs a subagent has reached a limit."""

    kind = "no_budget"


class Child:
    """One run of a subagent."""

    def __init__(
        self,
        definition: AgentDefinition,
        task: ChildTask,
        context: ToolContext,
        outer: Scheduler,
        parent: AgentSession,
        settings: Settings,
    ) -> None:
        self._definition = definition
        self._task = task
        self._context = context
        self._outer = outer
        self._parent = parent
        self._settings = settings
        self._text = ""
        """The last reply."""
        self._requests = 0

    async def run(
        self,
        builder: Builds,
        journal: OpenJournal | None,
        around: tuple[Message, ...],
        watched: Callable[[str, Awaitable[TurnEnded]], Awaitable[TurnEnded]],
    ) -> ToolOutput:
        """The result of the call."""
        name, call = self._definition.name, self._context.call_id
        id = new_id("") if journal is None else journal.session
        ended = TurnEnded(reason=TurnEnd.CANCELLED)
        await self._outer.emit(AgentStarted(call_id=call, session=id, agent=name))
        try:
            session = await self._opened(builder, id, journal, around)
            prompt = await self._prompt(session, id)
            ended = await watched(id, self._turns(session, prompt, id))
        except ToolwireError as error:
            ended = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
        finally:
            if journal is not None:
                await journal.close()
            await self._outer.emit(
                AgentEnded(
                    call_id=call, session=id, agent=name, reason=ended.reason,
                    requests=ended.requests, usage=ended.usage, cost=ended.cost,
                )
            )  # fmt: skip
        return self._output(ended)

    def _output(self, ended: TurnEnded) -> ToolOutput:
        name, text = self._definition.name, self._text.strip()
        if ended.reason is TurnEnd.DONE:
            return ToolOutput(text=text or f"{name} ended without an answer", display=text)
        if ended.reason is TurnEnd.FAILED and not text:
            raise ToolFailed(f"{name} failed: {ended.detail}", type="agent_failed")
        why = f"[{name} stopped early ({ended.reason}): {ended.detail}]".replace(": ]", "]")
        return ToolOutput(text=f"{text}\n\n{why}".strip(), display=f"{text}\n\n{why}".strip())

    async def _opened(
        self, builder: Builds, id: str, journal: OpenJournal | None, around: tuple[Message, ...]
    ) -> AgentSession:
        definition, outer, parent = self._definition, self._outer, self._parent
        toolbox = parent.toolbox.within(tools_of(definition, parent.toolbox.registry))
        asking = msgspec.structs.replace(toolbox.context, ask=self._context.ask)
        toolbox = msgspec.structs.replace(toolbox, context=asking)
        sink = EventSink(id, journal, (reader_of(self._report(id)),))
        now = parent.equipment
        name, models = await self._model(builder, now)
        equipment = builder.equipment(name, models, now.mode, toolbox, sink)
        equipment = msgspec.structs.replace(
            equipment, system=definition.prompt, ask=self._budgeted(equipment.ask), format=None
        )
        first = models[0]
        opening = SessionOpened(
            session=id,
            model=name,
            dialect=first.provider.dialect,
            style=first.style.style,
            mode=now.mode,
            cwd=str(self._context.workspace.roots[0]),
            version=__version__,
            server=first.server,
            parent=ParentCall(
                session=parent.id, call_id=self._context.call_id, agent=definition.name
            ),
        )
        await sink(opening)
        for message in around:
            await sink(MessageAdded(message=message, context=True))
        request = builder.request(equipment, around)
        if definition.temperature is not None:
            request = msgspec.structs.replace(request, temperature=definition.temperature)
        hooks = outer.hooks.hooks
        return AgentSession(
            opening,
            msgspec.structs.replace(request, output=None),
            equipment=equipment,
            equip=_fixed,
            sink=sink,
            limits=Limits(),
            approver=_named(outer, definition.name),
            editor=parent.editor,
            hooks=HookChain(hooks, id, outer=len(hooks)),
        )

    async def _model(self, builder: Builds, now: Equipment) -> tuple[str, tuple[Opened, ...]]:
        """The definition's model; the session's if it has none, or that cannot be used."""
        wanted = self._definition.model
        if not wanted or wanted == now.name:
            return now.name, now.models
        try:
            return await builder.other_model(wanted, now)
        except ToolwireError as error:
            words = f"{self._definition.name} uses {now.name}, not {wanted}: {error}"
            await self._outer.emit(Noticed(kind="agent", message=words))
            return now.name, now.models

    async def _prompt(self, session: AgentSession, id: str) -> Message:
        """The task with its files, and what hooks add."""
        files = "".join(f"\n@{_quoted(name)}" for name in self._task.files[:_MOST_FILES])
        found = await asyncio.to_thread(
            user_message,
            f"{self._task.prompt}{files}",
            session.toolbox.context,
            respect_git_ignore=self._settings.context.respect_git_ignore,
        )
        for words in found.notices:
            await session.note("mention", words)
        name = self._definition.name
        added = await self._outer.hooks.on(SubagentStart(id, name, self._task.prompt))
        texts = tuple(Text(text) for text in added.context)
        return Message(role="user", parts=(*found.message.parts, *texts))

    async def _turns(self, session: AgentSession, prompt: Message, id: str) -> TurnEnded:
        """Runs the task; hooks may refuse its end, and give it another prompt."""
        hooks, definition = self._outer.hooks, self._definition
        message, refused = prompt, 0
        while True:
            left = self._outer.left()
            if left is None:
                return TurnEnded(reason=TurnEnd.COST_LIMIT, detail=NO_BUDGET)
            own = Limits(turns=definition.turns, seconds=definition.seconds)
            limits = tightest(own, left)
            ended = await session.send(message, TurnOptions(limits=limits))
            if ended.error == _NoBudget.kind:
                ended = msgspec.structs.replace(ended, reason=TurnEnd.COST_LIMIT)
            if ended.reason is not TurnEnd.DONE or refused >= hooks.stop_limit or not hooks:
                return ended
            stop = SubagentStop(id, definition.name, self._text, active=bool(refused))
            reaction = await hooks.on(stop)
            if reaction.blocked is None:
                return ended
            refused += 1
            message = Message(role="user", parts=(Text(reaction.blocked),))

    def _budgeted(self, model: Model) -> Model:
        """The model, until the limits of the session that runs this one are reached by all."""

        async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            if self._outer.left() is None:
                raise _NoBudget(NO_BUDGET)
            async with reading(model(request)) as events:
                async for event in events:
                    yield event

        return ask

    def _report(self, id: str) -> Emit:
        passed = reporting(self._outer, self._context.call_id, self._definition.name, id)

        async def report(event: AgentEvent) -> None:
            match event:
                case MessageAdded(context=False) if event.message.role == "assistant":
                    self._text = event.message.text or self._text
                    if event.message.calls and event.message.text.strip():
                        self._show(event.message.text)
                case ToolStarted():
                    value = parse_arguments(event.arguments).value or {}
                    first = next((one for one in value.values() if isinstance(one, str)), "")
                    self._show(f"{event.name} {first}")
                case Noticed(kind="agent" | "hook" | "checkpoint"):
                    self._show(event.message)
                case _:
                    pass
            await passed(event)

        return report

    def _show(self, text: str) -> None:
        """Live progress, one line each."""
        line = " ".join(text.split())
        self._context.emit(f"{line[:_LONGEST]}\n")


def reporting(outer: Scheduler, call_id: str, agent: str, session: str) -> Emit:
    """Passes the events of a session to the one that runs it, which counts what it uses."""

    async def report(event: AgentEvent) -> None:
        if isinstance(event, UsageCounted):
            await outer.emit(msgspec.structs.replace(event, purpose="agent"))
        await outer.emit(ChildEvent(call_id=call_id, agent=agent, session=session, event=event))

    return report


def _named(outer: Scheduler, agent: str) -> Approver | None:
    """The user of the outer session, who reads which agent asks; one question at a time."""
    approver = outer.approval.approver
    if approver is None:
        return None

    async def ask(question: Confirmation) -> UserAnswer:
        named = msgspec.structs.replace(question, title=f"{agent}: {question.title}")
        async with outer.approval.asking:
            return await approver(named)

    return ask


async def _fixed(now: Equipment, **changes: Any) -> NoReturn:
    del now, changes
    raise BadInput("the model and mode of a subagent are those of its session")


def _quoted(name: str) -> str:
    return name.replace(" ", "\\ ")
