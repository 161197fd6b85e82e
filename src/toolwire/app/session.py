"""A session: a conversation, one turn at a time, whose events are stored and delivered."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from toolwire.agent.events import Emit, HistoryReplaced, Noticed, SessionOpened, TurnEnd, TurnEnded
from toolwire.agent.hook_chain import NO_HOOKS, HookChain
from toolwire.agent.hooks import (
    Notification,
    PostCompact,
    PreCompact,
    SessionEnd,
    SessionStart,
    StopFailure,
    UserPromptSubmit,
)
from toolwire.agent.questions import Approver, Editor
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.structured import OutputSchema
from toolwire.agent.turn import run_turn
from toolwire.agent.usage import Limits
from toolwire.app.checkpoints import Checkpoints
from toolwire.app.equipment import Equip, Equipment, enforced
from toolwire.app.event_sink import EventSink, LossWatch
from toolwire.app.model_stack import Opened
from toolwire.app.options import AS_OPENED, TurnOptions
from toolwire.app.system_prompt import MODE_CHANGED
from toolwire.app.toolbox import Toolbox
from toolwire.errors import BadInput, ErrorKind, SessionError, ToolwireError, nearest_name
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.providers import catalogue
from toolwire.request import Effort, ModelRequest, Reasoning, ToolSpec

if TYPE_CHECKING:
    from toolwire.app.subagents.tool import Subagents
    from toolwire.extensions.tool_limits import OnlyTools

_DAY = 86_400
_NO_ROOM = PreCompact("auto")
"""Why a conversation is shortened unasked."""
_REFUSED = "UserPromptSubmit operation blocked by hook:"


class PromptRefused(BadInput):
    """A hook refused the user's prompt."""


class AgentSession:
    """A conversation, one turn at a time. `request` contains it so far."""

    def __init__(
        self,
        opening: SessionOpened,
        request: ModelRequest,
        *,
        equipment: Equipment,
        equip: Equip,
        sink: EventSink,
        limits: Limits,
        output: OutputSchema | None = None,
        approver: Approver | None = None,
        editor: Editor | None = None,
        hooks: HookChain = NO_HOOKS,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.id = opening.session
        self.checkpoints = checkpoints
        """None if nothing is recorded."""
        self.subagents: Subagents | None = None
        """None if none are offered."""
        self.request = request
        self._opening = opening
        self._equip = equip
        self._sink = sink
        self._limits = limits
        self._output = output
        self._approver = approver
        self._editor = editor
        self._hooks = hooks.bound(self.id)
        self._inbox: list[Message] = []
        self._context: list[Message] = []
        """Messages of toolwire for the next request of the running turn."""
        self._running = False
        self._cause = _NO_ROOM
        """Why the conversation is shortened: `manual` or `auto`."""
        self.leaving = "other"
        """Why the session ends: `clear`, `prompt_input_exit` or `other`."""
        self._use(equipment)

    @property
    def opened(self) -> Opened:
        """The model in use."""
        return self._equipment.models[0]

    @property
    def toolbox(self) -> Toolbox:
        """Tools and policy."""
        return self._equipment.toolbox

    @property
    def mode(self) -> Mode:
        """The approval mode."""
        return self._equipment.mode

    @property
    def equipment(self) -> Equipment:
        """What depends on the model and the mode."""
        return self._equipment

    @property
    def editor(self) -> Editor | None:
        """Opens proposals for the user."""
        return self._editor

    @property
    def waiting(self) -> bool:
        """Whether messages of the user arrived after the last turn took its input."""
        return bool(self._inbox)

    async def change_model(self, name: str, *, style: str = "") -> None:
        """Continues the conversation with another model, `provider/model`."""
        await self._change("model", model=name, style=style)

    async def change_style(self, style: str) -> None:
        """Continues with another tool style, `auto` for the usual one."""
        await self._change("style", style=style)

    async def set_mode(self, mode: Mode) -> None:
        """Continues in another approval mode, also while a turn is running.

        A running turn keeps its system prompt, and so the cached prefix; the model reads of the
        change with the next request.
        """
        if not self._running:
            await self._change("mode", mode=mode)
            return
        self._opening = msgspec.structs.replace(
            self._opening, mode=mode, forked_from="", changed="mode"
        )
        await self._sink(self._opening)
        self._equipment = msgspec.structs.replace(self._equipment, mode=mode)
        self.toolbox.policy.set_mode(mode)
        self.inform(MODE_CHANGED[mode])

    def change_effort(self, effort: Effort | None) -> None:
        """Requests another reasoning effort from the next turn on; None leaves it to the model."""
        now = self.request.reasoning or Reasoning()
        changed = msgspec.structs.replace(now, effort=effort)
        reasoning = None if changed == Reasoning() else changed
        self.request = msgspec.structs.replace(self.request, reasoning=reasoning)

    async def send(
        self, message: Message | None = None, options: TurnOptions = AS_OPENED
    ) -> TurnEnded:
        """Runs a turn for the user's message; returns how it ended, raises if cancelled.

        Without a message the turn is for those that are `waiting`.
        """
        before = self._equipment.name
        if not options.model or not await self._borrowed(options.model):
            return await self._send(message, options)
        try:
            return await self._send(message, options)
        finally:
            await self._change("model", model=before)

    async def _borrowed(self, model: str) -> bool:
        """Changes to the model of one turn; False if it is in use, or cannot be used."""
        before = self._equipment.name
        try:
            await self._change("model", model=model)
        except SessionError:
            raise
        except ToolwireError as error:
            await self.note("setup", f"the model {model} is not used for this turn: {error}")
            return False
        return self._equipment.name != before

    async def _send(self, message: Message | None, options: TurnOptions) -> TurnEnded:
        if message is not None and self._hooks:
            await self._submitted(message)
        request = self._asking_for(options.output)
        if options.model_settings is not None:
            request = options.model_settings.applied(request)
        scheduler = self._scheduler if options is AS_OPENED else self._equipped(options)
        tools = None if self.toolbox.servers is None else self._tools
        if options.only is not None:
            tools = partial(self._limited, options.only)
        if message is not None:
            self._inbox.append(message)
        self._running = True
        watch = LossWatch(self.id, self._sink)
        try:
            ended = await run_turn(
                request,
                model=self._hooks.observing(self._equipment.ask),
                scheduler=scheduler,
                changed=self._changed,
                limits=options.limits or self._limits,
                inbox=self._take,
                context=self._take_context,
                shorten=self._shortened if self._hooks else self._equipment.shorten,
                price=self.opened.price,
                output=options.output or self._output,
                tools=tools,
            )
            if self._hooks and ended.reason is TurnEnd.FAILED:
                await self._hooks.on(StopFailure(ended.detail))
            return _with_nearest_model(ended, self.opened)
        except SessionError as error:
            return await self._failed(error)
        except asyncio.CancelledError:
            if (lost := watch.taken_back()) is None:
                raise
            return await self._failed(lost)
        finally:
            watch.end()
            self._running = False
            with suppress(SessionError):
                await self._note_servers()

    async def _failed(self, error: SessionError) -> TurnEnded:
        """Reports to readers that the turn stopped because it can no longer be stored."""
        ended = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
        await self._sink.show(ended)
        return ended

    def give_up(self, why: str) -> None:
        """Leaves the session as a crash would; the caller then cancels the turn."""
        self._sink.give_up(why)

    def say(self, message: Message) -> None:
        """Adds a user message to the running turn, for its next step."""
        self._inbox.append(message)

    def inform(self, text: str) -> None:
        """Adds a message of toolwire, which the model reads with its next request."""
        self._context.append(Message(role="user", parts=(Text(text),)))

    async def compress(self, keep: str = "") -> HistoryReplaced | None:
        """Shortens the conversation now; None if it cannot be shortened.

        `keep` are words about what the summary has to contain.
        """
        self._cause = PreCompact("manual", keep)
        try:
            replaced = await self._shortened(self.request, force=True, keep=keep)
        finally:
            self._cause = _NO_ROOM
        if replaced is not None:
            self._changed(replaced.messages)
            await self._sink(replaced)
        return replaced

    async def begun(self, source: str) -> None:
        """Reports the session to hooks; what they add is in its next request."""
        if self._hooks:
            self._add_context((await self._hooks.on(SessionStart(source))).context)

    async def ended(self) -> None:
        """Reports the end of the session to hooks."""
        if self._hooks:
            await self._hooks.on(SessionEnd(self.leaving))

    async def waited(self) -> None:
        """Reports to hooks that the user has not written for a while."""
        if self._hooks:
            await self._hooks.on(Notification("toolwire waits for your input", "idle_prompt"))

    async def note(self, kind: str, message: str) -> None:
        """Emits a notice about the session."""
        await self._sink(Noticed(kind=kind, message=message))

    async def _change(
        self,
        what: str,
        *,
        model: str = "",
        style: str = "",
        mode: Mode | None = None,
    ) -> None:
        if self._running:
            raise BadInput(f"a turn is running; change the {what} when it has ended")
        equipment, notices = await self._equip(self._equipment, model=model, style=style, mode=mode)
        opened = equipment.models[0]
        self._opening = msgspec.structs.replace(
            self._opening,
            model=equipment.name,
            dialect=opened.provider.dialect,
            style=opened.style.style,
            mode=equipment.mode,
            forked_from="",
            changed=what,
            server=opened.server,
        )
        # Stored first: a session that cannot be stored stays as it is.
        await self._sink(self._opening)
        self._use(equipment)
        self.request = msgspec.structs.replace(
            self.request,
            model=opened.model,
            system=(Text(equipment.system),) if equipment.system else (),
            tools=equipment.toolbox.specs(),
            output=equipment.format,
        )
        for words in notices:
            await self.note("setup", words)

    async def _submitted(self, message: Message) -> None:
        """Gives a prompt to hooks; PromptRefused if one refuses it, and nothing of it is stored."""
        # Files and pictures that it mentions follow what was typed.
        first = message.parts[0] if message.parts else None
        prompt = first.text if isinstance(first, Text) else ""
        found = await self._hooks.on(UserPromptSubmit(prompt))
        if found.blocked is not None or found.halted is not None:
            raise PromptRefused(f"{_REFUSED} {found.blocked or found.halted}".rstrip())
        self._add_context(found.context)

    def _add_context(self, texts: Sequence[str]) -> None:
        if texts:
            text = "\n".join(texts)
            self._context.append(Message(role="user", parts=(Text(text),)))

    async def _shortened(
        self,
        request: ModelRequest,
        *,
        force: bool = False,
        keep: str = "",
        emit: Emit | None = None,
    ) -> HistoryReplaced | None:
        """Shortens the conversation, unless a hook objects, and reports it."""
        replaced = await self._equipment.shorten(request, force=force, keep=keep, emit=emit)
        if replaced is not None and self._hooks:
            await self._hooks.on(PostCompact(self._cause.trigger))
            self._add_context((await self._hooks.on(SessionStart("compact"))).context)
        return replaced

    async def _may_shorten(self) -> bool:
        found = await self._hooks.on(self._cause)
        if found.blocked is not None:
            await self.note("hook", f"the conversation is not shortened: {found.blocked}")
        return found.blocked is None

    def _use(self, equipment: Equipment) -> None:
        self._equipment = equipment
        equipment.shorten.allowed = self._may_shorten if self._hooks else None
        self.toolbox.policy.set_mode(equipment.mode)
        self._scheduler = self._equipped(AS_OPENED)

    def _equipped(self, options: TurnOptions) -> Scheduler:
        """Returns the scheduler of a turn."""
        approver = options.approver or self._approver
        # A hook may answer what no user can: it has to see such a call.
        self.toolbox.policy.set_headless(approver is None and not self._hooks)
        return self.toolbox.scheduler(
            approver, self._editor, self._sink, hooks=self._guarded(options), deps=options.deps
        )

    def _guarded(self, options: TurnOptions) -> HookChain:
        """Returns the hooks of a turn."""
        if options.only is None:
            return self._hooks
        hooks, advice = self._hooks, self.toolbox.policy.terms.advice
        return hooks.joined(options.only, stop_limit=hooks.stop_limit, advice=advice)

    def scheduler(
        self,
        approver: Approver | None,
        emit: Emit,
        options: TurnOptions,
        variables: Mapping[str, str],
    ) -> Scheduler:
        """Returns a scheduler for calls of a command, with variables for its programs."""
        context = self.toolbox.context
        context = msgspec.structs.replace(context, environ={**context.environ, **variables})
        toolbox = msgspec.structs.replace(self.toolbox, context=context)
        return toolbox.scheduler(approver, None, emit, hooks=self._guarded(options))

    def _asking_for(self, output: OutputSchema | None) -> ModelRequest:
        """Returns the request of a turn whose answer has to fit another schema."""
        if output is None:
            return self.request
        system = output.added_to(self._equipment.system)
        tools = bool(self.toolbox.registry.names)
        return msgspec.structs.replace(
            self.request,
            system=(Text(system),),
            output=enforced(output, self._equipment.models, tools=tools),
        )

    async def _tools(self) -> tuple[ToolSpec, ...]:
        """The tools of the next request: servers may have changed theirs."""
        if self.toolbox.servers is not None:
            await self.toolbox.servers.servers.settle()
        tools = self.toolbox.specs()
        await self._note_servers()
        if tools != self.request.tools:
            self.request = msgspec.structs.replace(self.request, tools=tools)
        return tools

    async def _limited(self, only: "OnlyTools") -> tuple[ToolSpec, ...]:
        """The tools of a request in a turn that may use only some."""
        tools = self.toolbox.specs() if self.toolbox.servers is None else await self._tools()
        servers = self.toolbox.policy.terms.servers
        return tuple(one for one in tools if only.offers(one.name, servers.get(one.name, "")))

    async def _note_servers(self) -> None:
        servers = self.toolbox.servers
        for words in () if servers is None else servers.notices():
            await self.note("mcp", words)

    def _take(self) -> list[Message]:
        taken, self._inbox = self._inbox, []
        return taken

    def _take_context(self) -> list[Message]:
        taken, self._context = self._context, []
        return taken

    def _changed(self, messages: tuple[Message, ...]) -> None:
        self.request = msgspec.structs.replace(self.request, messages=messages)


def _with_nearest_model(ended: TurnEnded, opened: Opened) -> TurnEnded:
    """Returns the end of the turn; the error about an unknown model names the nearest known one."""
    if ended.error != ErrorKind.NOT_FOUND or opened.info is not None:
        return ended
    provider = opened.provider.name
    near = nearest_name(opened.model, (one.id for one in catalogue.models(provider)), least=0.7)
    if not near:
        return ended
    hint = f'{ended.detail}; did you mean "{provider}/{near}"?'
    return msgspec.structs.replace(ended, detail=hint)
