"""A session: a conversation, one turn at a time, whose events are stored and delivered."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    Emit,
    HistoryReplaced,
    Noticed,
    Reader,
    SessionEvent,
    SessionOpened,
    ToolFinished,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.hooks import NO_HOOKS, HookChain
from toolwire.agent.questions import Approver, Editor
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.structured import OutputSchema
from toolwire.agent.turn import run_turn
from toolwire.agent.usage import Limits
from toolwire.app.model_stack import Opened
from toolwire.app.options import SessionOptions
from toolwire.app.toolbox import Toolbox
from toolwire.client.redact import redaction
from toolwire.compaction.summary import Compressor
from toolwire.errors import BadInput, ErrorKind, SessionError, nearest_name
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers import catalogue
from toolwire.request import (
    Effort,
    ModelRequest,
    ModelSettings,
    OutputFormat,
    Reasoning,
    ToolSpec,
)
from toolwire.sessions.records import is_stored
from toolwire.sessions.replay import Session, answered, resolve_open_calls
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import Journal, OpenJournal, SessionStore
from toolwire.storage.paths import state_paths

_DAY = 86_400
_MODE_CHANGED = {
    mode: f"The user changed the approval mode to {mode}: {meaning} Go on with the task."
    for mode, meaning in {
        Mode.DEFAULT: "changes and commands are confirmed by the user.",
        Mode.AUTO_EDIT: "edits of files in the workspace run without confirmation.",
        Mode.PLAN: "only reading is allowed; do not change files and run nothing that does.",
        Mode.YOLO: "every call runs without confirmation.",
    }.items()
}


class EventSink:
    """One session's `Emit`: stores each event before readers receive it."""

    def __init__(self, session: str, journal: Journal | None, readers: Iterable[Reader]) -> None:
        self._session = session
        self._journal = journal
        self._readers = tuple(readers)

    async def __call__(self, event: AgentEvent) -> None:
        if self._journal is not None and is_stored(event):
            await self._journal.append(self._session, event)
        received = SessionEvent(self._session, event)
        for reader in self._readers:
            await reader(received)

    async def show(self, event: AgentEvent) -> None:
        """Delivers to readers only: for events that can no longer be stored."""
        await EventSink(self._session, None, self._readers)(event)


class Equipment(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a session that depend on its model and its mode."""

    name: str
    """`provider/model`."""
    models: tuple[Opened, ...]
    """The model and its fallbacks."""
    mode: Mode
    ask: Model
    toolbox: Toolbox
    shorten: Compressor
    system: str
    format: OutputFormat | None = None
    """The format that requests require of an answer."""


class Equip(Protocol):
    """Builds the equipment for another model, style or mode; unset ones stay."""

    async def __call__(
        self, now: Equipment, *, model: str = "", style: str = "", mode: Mode | None = None
    ) -> tuple[Equipment, list[str]]:
        """Returns the equipment, and notices for the user."""
        ...


class TurnOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn does differently; the session's own apply where nothing is set."""

    limits: Limits | None = None
    model_settings: ModelSettings | None = None
    approver: Approver | None = None
    output: OutputSchema | None = None
    """What its final answer has to fit."""
    deps: Any = None
    """For its tools."""


AS_OPENED = TurnOptions()


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
    ) -> None:
        self.id = opening.session
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
        self._context.append(Message(role="user", parts=(Text(_MODE_CHANGED[mode]),)))

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
        request = self._asking_for(options.output)
        if options.model_settings is not None:
            request = options.model_settings.applied(request)
        scheduler = self._scheduler if options is AS_OPENED else self._equipped(options)
        if message is not None:
            self._inbox.append(message)
        self._running = True
        try:
            ended = await run_turn(
                request,
                model=self._hooks.observing(self._equipment.ask),
                scheduler=scheduler,
                changed=self._changed,
                limits=options.limits or self._limits,
                inbox=self._take,
                context=self._take_context,
                shorten=self._equipment.shorten,
                price=self.opened.price,
                output=options.output or self._output,
                tools=None if self.toolbox.servers is None else self._tools,
            )
            return _with_nearest_model(ended, self.opened)
        except SessionError as error:
            # It can no longer be stored: stop, and report that to readers.
            ended = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
            await self._sink.show(ended)
            return ended
        finally:
            self._running = False
            with suppress(SessionError):
                await self._note_servers()

    def say(self, message: Message) -> None:
        """Adds a user message to the running turn, for its next step."""
        self._inbox.append(message)

    async def compress(self) -> HistoryReplaced | None:
        """Shortens the conversation now; None if it cannot be shortened."""
        replaced = await self._equipment.shorten(self.request, force=True)
        if replaced is not None:
            self._changed(replaced.messages)
            await self._sink(replaced)
        return replaced

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

    def _use(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self.toolbox.policy.set_mode(equipment.mode)
        self._scheduler = self._equipped(AS_OPENED)

    def _equipped(self, options: TurnOptions) -> Scheduler:
        """Returns the scheduler of a turn."""
        approver = options.approver or self._approver
        # A hook may answer what no user can: it has to see such a call.
        self.toolbox.policy.set_headless(approver is None and not self._hooks)
        return self.toolbox.scheduler(
            approver, self._editor, self._sink, hooks=self._hooks, deps=options.deps
        )

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


def enforced(
    output: OutputSchema | None, models: tuple[Opened, ...], *, tools: bool
) -> OutputFormat | None:
    """Returns the format that requests require, if every model's server can hold an answer to it.

    The prompt contains the schema in any case, and the answer is validated.
    """
    if output is None or output.schema.get("type") != "object":
        return None
    for one in models:
        takes = one.provider.json_schema_output
        if one.style.style is ToolStyle.NATIVE:
            takes = takes and (one.provider.schema_beside_tools or not tools)
        elif one.style.style is ToolStyle.XML:
            takes = takes and not tools
        if not takes:
            return None
    from toolwire.schema import is_strict  # noqa: PLC0415 - start-up time

    strict = is_strict(output.schema) or None
    return msgspec.structs.replace(output.format, strict=strict)


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


def stored_sessions(environ: Mapping[str, str]) -> SessionStore:
    """Returns this user's sessions; known secrets are redacted from records."""
    return SqliteStore(state_paths(environ).sessions, redact=redaction())


def open_journal(
    options: SessionOptions,
    store: SessionStore,
    cwd: Path,
    *,
    keep_days: int = 0,
    now: float = 0.0,
) -> OpenJournal | None:
    """Returns the journal of the requested session; None if it is not stored.

    Deletes sessions unused for `keep_days`; 0 keeps them all.
    """
    if keep_days:
        store.forget(now - keep_days * _DAY)
    if options.session:
        return store.open(options.session)
    if options.latest:
        found = store.latest(str(cwd))
        if found is None:
            raise SessionError(f"no session in {cwd} yet; omit --continue")
        return store.open(found.id)
    return store.create(str(cwd)) if options.kept else None


async def settle(
    past: Session, toolbox: Toolbox, sink: Emit, hooks: HookChain = NO_HOOKS
) -> tuple[Message, ...]:
    """Returns the past with every call answered: reads run again, the rest is reported."""
    if not past.open:
        return past.messages
    finished: list[ToolFinished] = []

    async def record(event: AgentEvent) -> None:
        if isinstance(event, ToolFinished):
            finished.append(event)
        await sink(event)

    plan = resolve_open_calls(past.open)
    for event in plan.finished:
        await record(event)
    if plan.again:
        await toolbox.scheduler(emit=record, hooks=hooks).run(plan.again)
    await record(AnswersGiven(call_ids=plan.call_ids))
    return (*past.messages, answered(past.open, finished))
