"""Opens a session: combines model, tools, policy, journal and history."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from toolwire import __version__
from toolwire.agent.events import (
    Emit,
    HistoryReplaced,
    MessageAdded,
    Noticed,
    Reader,
    ServerStatus,
    SessionOpened,
)
from toolwire.agent.hooks import NO_HOOKS, HookChain
from toolwire.agent.questions import Approver, Editor
from toolwire.app.model_choice import choose_here, choose_model
from toolwire.app.model_stack import Opened, model_stack, open_models
from toolwire.app.options import HostOverrides, SessionOptions
from toolwire.app.session import (
    AgentSession,
    Equipment,
    EventSink,
    enforced,
    open_journal,
    settle,
    stored_sessions,
)
from toolwire.app.toolbox import AskPerson, Toolbox, make_toolbox
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.redact import known_secrets
from toolwire.compaction.summary import Compressor
from toolwire.compaction.tokens import of_message
from toolwire.config import Settings
from toolwire.config.telemetry import TelemetrySettings
from toolwire.context import NAMES
from toolwire.context.memory import Memory, load_memory, with_memory
from toolwire.context.prompt import PromptFacts, chosen_prompt
from toolwire.context.surroundings import surroundings
from toolwire.errors import BadInput, SessionError, UnknownName
from toolwire.history import balance
from toolwire.ids import new_id
from toolwire.messages import Message, Part, Text, ToolResult
from toolwire.policy import Mode
from toolwire.request import ModelRequest, Reasoning
from toolwire.sessions.replay import Session, replay
from toolwire.sessions.store import OpenJournal, SessionStore
from toolwire.tools.builtin.save_memory import memory_file
from toolwire.tools.files.protection import Visibility
from toolwire.tools.registry import plain
from toolwire.tools.spec import Tool

if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent
    from toolwire.telemetry.reader import Telemetry

SayNotice = Callable[[str], None]
_MOST_NAMED = 10
_LOOSENESS = (Mode.PLAN, Mode.DEFAULT, Mode.AUTO_EDIT, Mode.YOLO)


@asynccontextmanager
async def open_session(
    options: SessionOptions,
    *,
    settings: Settings,
    environ: Mapping[str, str],
    cwd: Path,
    readers: Iterable[Reader] = (),
    approver: Approver | None = None,
    editor: Editor | None = None,
    ask: AskPerson | None = None,
    tools: Iterable[Tool] = (),
    transport: Transport | None = None,
    consent: DownloadConsent | None = None,
    own: HostOverrides | None = None,
    store: SessionStore | None = None,
    hooks: HookChain = NO_HOOKS,
    today: Callable[[], date] = date.today,
) -> AsyncGenerator[AgentSession]:
    """Opens a new or stored session; closes everything it opened with it.

    `own` replaces the coding agent's tools, prompt and model, `store` the user's own sessions.
    """
    async with AsyncExitStack() as stack:
        if transport is None:
            transport = http = HttpTransport()
            stack.push_async_callback(http.aclose)
        builder = _SessionBuilder(
            options=options,
            settings=settings,
            environ=environ,
            cwd=cwd,
            own=own,
            store=store,
            transport=transport,
            consent=consent,
        )
        journal, past = await builder.journal(stack)
        temp = own.temp if own is not None else None
        if journal is None and own is None:
            temp = _temporary_folder(stack)
        name, models = await builder.models(past)
        mode = builder.mode(models[0], past)
        toolbox = await builder.toolbox(
            stack, mode, tools, ask, headless=approver is None, temp=temp
        )
        id = new_id("") if journal is None else journal.session
        telemetry = _telemetry(settings.telemetry, environ)
        sink = EventSink(id, journal, (*readers, *(() if telemetry is None else (telemetry,))))
        if telemetry is not None:
            stack.push_async_callback(_sent, telemetry, sink)
        equipment = builder.equipment(name, models, mode, toolbox, sink)
        opening = _opening(id, equipment, cwd)
        await sink(opening)
        for words in builder.notices:
            await sink(Noticed(kind="setup", message=words))
        for words in () if toolbox.servers is None else toolbox.servers.notices():
            await sink(Noticed(kind="mcp", message=words))
        messages = await settle(past, equipment.toolbox, sink, hooks.bound(id))
        if own is not None and own.messages:
            messages = await _given(own.messages, bool(messages), sink)
        if not messages and own is None and not models[0].provider.small:
            messages = await _surroundings(toolbox, settings, sink, today())
        yield AgentSession(
            opening,
            builder.request(equipment, messages),
            equipment=equipment,
            equip=partial(builder.changed, sink),
            sink=sink,
            limits=options.limits or settings.limits,
            output=options.output,
            approver=approver,
            editor=editor,
            hooks=hooks,
        )


def _telemetry(settings: TelemetrySettings, environ: Mapping[str, str]) -> Telemetry | None:
    """Returns the reader that records telemetry; None if it is off."""
    if not settings.active:
        return None
    from toolwire.telemetry.reader import Telemetry  # noqa: PLC0415 - start-up time

    return Telemetry(settings, environ)


async def _sent(telemetry: Telemetry, sink: EventSink) -> None:
    """Sends the rest of the telemetry; the user reads if that fails."""
    if words := await asyncio.to_thread(telemetry.close):
        await sink.show(Noticed(kind="telemetry", message=words))


def _temporary_folder(stack: AsyncExitStack) -> Path:
    """Returns a folder for outputs that is removed with the session."""
    try:
        folder = TemporaryDirectory(prefix="toolwire-", ignore_cleanup_errors=True)
    except OSError as error:
        raise SessionError(
            f"cannot create a temporary folder: {error.strerror}; free some space, or name another "
            "folder in TMPDIR"
        ) from error
    return Path(stack.enter_context(folder))


class _SessionBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds a session from its options, and collects notices for the user."""

    options: SessionOptions
    settings: Settings
    environ: Mapping[str, str]
    cwd: Path
    own: HostOverrides | None
    store: SessionStore | None
    transport: Transport
    consent: DownloadConsent | None
    notices: list[str] = []

    async def journal(self, stack: AsyncExitStack) -> tuple[OpenJournal | None, Session]:
        """Returns the journal, locked until the session ends, and its past."""
        options = self.options
        try:
            journal = open_journal(
                options,
                self.store or stored_sessions(self.environ),
                self.cwd,
                keep_days=self.settings.sessions.keep_days,
                now=time.time(),
            )
        except SessionError as error:
            if not options.may_forget or options.session or options.latest:
                raise
            journal = None
            self.notices.append(f"the session is not stored: {error}")
        if journal is None:
            return None, Session()
        stack.push_async_callback(journal.close)
        past = replay(await journal.read(journal.session))
        self.notices.extend(journal.notices)
        return journal, past

    async def models(self, past: Session) -> tuple[str, tuple[Opened, ...]]:
        """Returns the model's name, and the model with its fallbacks."""
        own, options = self.own, self.options
        if own is not None and own.model is not None:
            return own.model.name, (own.model,)
        style = options.tool_style or past.chosen_style
        return await self._open(msgspec.structs.replace(options, tool_style=style), past.model)

    async def _open(self, options: SessionOptions, before: str) -> tuple[str, tuple[Opened, ...]]:
        choose = partial(
            choose_model,
            self.settings,
            self.environ,
            model=options.model,
            provider=options.provider,
            upstream=options.upstream,
            before=before,
        )
        weights = self.consent.weights if self.consent is not None else None
        chosen = await choose_here(
            choose, self.settings, self.environ, self.transport, weights=weights
        )
        if chosen.short:
            self.notices.append(f'"{chosen.short}" is {chosen.name}')
        models = await open_models(
            chosen,
            options,
            environ=self.environ,
            transport=self.transport,
            notice=self.notices.append,
            cwd=self.cwd,
            consent=self.consent,
        )
        limits = options.limits or self.settings.limits
        first = models[0]
        if limits.cost and not first.provider.local and (not first.info or not first.info.prices):
            self.notices.append(
                f"the price of {chosen.name} is not known: the limit of its cost holds only if the "
                "server reports what it costs"
            )
        return chosen.name, tuple(models)

    def mode(self, opened: Opened, past: Session) -> Mode:
        """Returns the approval mode: the flag, the one chosen in the session, or the setting.

        A looser mode is not resumed: it was chosen for the session that the user watched.
        """
        mode = self.options.mode or self.settings.approval_mode
        chosen = Mode(past.chosen_mode) if past.chosen_mode in tuple(Mode) else mode
        if self.options.mode is None and chosen is not mode:
            if _LOOSENESS.index(chosen) < _LOOSENESS.index(mode):
                mode = chosen
            else:
                self.notices.append(
                    f"the session ran in {chosen} mode and continues in {mode} mode; use "
                    f"--approval-mode {chosen} to continue in that one"
                )
        return self._fitting(mode, opened, explicit=self.options.mode is not None)

    def _fitting(self, mode: Mode, opened: Opened, *, explicit: bool) -> Mode:
        """Returns the mode for this model: with a small one, changes are not made without asking
        unless the user chose that for this session.
        """
        if explicit or not opened.provider.small:
            return mode
        return cautious(mode, self.notices.append)

    def equipment(
        self, name: str, models: tuple[Opened, ...], mode: Mode, toolbox: Toolbox, sink: Emit
    ) -> Equipment:
        """Returns what depends on the model and the mode."""
        first = models[0]
        aside = model_stack((first,), cache_marks=True)
        toolbox = toolbox.with_model(aside, first.provider.dialect)
        window = first.info.context if first.info is not None else 0
        if toolbox.servers is not None:
            toolbox.servers.fit(window)
        shorten = Compressor(
            aside,
            window=window,
            temp=toolbox.context.workspace.temp,
            emit=sink,
            rules=self.settings.compression,
            price=first.price,
            weigh=tokens_shown_small if first.provider.small else of_message,
        )
        return Equipment(
            name=name,
            models=models,
            mode=mode,
            ask=model_stack(models, cache_marks=True, session=shorten.watching),
            toolbox=toolbox,
            shorten=shorten,
            system=self.system(toolbox, mode),
            format=enforced(self.options.output, models, tools=bool(toolbox.registry.names)),
        )

    async def changed(
        self,
        sink: Emit,
        now: Equipment,
        *,
        model: str = "",
        style: str = "",
        mode: Mode | None = None,
    ) -> tuple[Equipment, list[str]]:
        """Returns the equipment of the open session after a change, and notices about it."""
        before = len(self.notices)
        if model or style:
            options = self._switched(model or now.name, style, now)
            name, models = await self._open(options, "")
            mode = self._fitting(now.mode, models[0], explicit=self.options.mode is now.mode)
            equipment = self.equipment(name, models, mode, now.toolbox, sink)
        else:
            mode = mode or now.mode
            system = self.system(now.toolbox, mode)
            equipment = msgspec.structs.replace(now, mode=mode, system=system)
        known = self.notices[:before]
        return equipment, [words for words in self.notices[before:] if words not in known]

    def _switched(self, name: str, style: str, now: Equipment) -> SessionOptions:
        """Returns the options for another model; key and address are for their provider only."""
        options = msgspec.structs.replace(
            self.options, provider="", tool_style=style or self.options.tool_style
        )
        provider, _, model = name.partition("/")
        if provider != now.models[0].provider.name:
            return msgspec.structs.replace(options, model=name, upstream=None, key="", base_url="")
        return msgspec.structs.replace(options, model=model if options.upstream else name)

    async def toolbox(
        self,
        stack: AsyncExitStack,
        mode: Mode,
        tools: Iterable[Tool],
        ask: AskPerson | None,
        *,
        headless: bool,
        temp: Path | None,
    ) -> Toolbox:
        """Returns the toolbox; without a user, no tool that asks one is offered."""
        own = self.own
        toolbox = await make_toolbox(
            self.settings,
            environ=self.environ,
            cwd=self.cwd,
            mode=mode,
            headless=headless,
            folders=self.options.folders,
            allowed=self.options.allowed,
            secrets=known_secrets(),
            tools=tools,
            ask=ask,
            temp=temp,
            registry=own.tools if own is not None else None,
            rules=own is None or own.rules,
            notice=self.notices.append,
            servers=self.options.servers,
        )
        if own is None:
            self._check_allowed(toolbox)
        # No nested generators: an event loop that ends closes both at once.
        stack.push_async_callback(toolbox.close)
        if ask is None:
            toolbox.registry.take(toolbox.registry.without(("ask_user",)))
        return toolbox if own is None else toolbox.hosted(own.deps, own.restricts)

    def _check_allowed(self, toolbox: Toolbox) -> None:
        """Raises for an allowed tool that does not exist; those of MCP servers may come later."""
        registry, servers = toolbox.registry, toolbox.servers is not None
        for entry in self.options.allowed:
            name = plain(entry)
            later = servers or name.startswith("mcp_") or "__" in name
            if not (later or registry.get(name) or set(name) & set("*?[")):
                raise UnknownName("tool in --allowed-tools", name, registry.names)

    def system(self, toolbox: Toolbox, mode: Mode) -> str:
        """Returns the system prompt: the host program's, or ours with the folder's notes."""
        if self.own is not None:
            text = self.own.system
        else:
            text = system_text(
                self.options,
                self.settings,
                self.environ,
                toolbox=toolbox,
                mode=mode,
                notice=self.notices.append,
            )
        output = self.options.output
        if toolbox.servers is not None:
            text = "\n\n".join(filter(None, (text, toolbox.servers.prompt())))
        text = "\n\n".join(filter(None, (text, self.options.append_system)))
        return text if output is None else output.added_to(text)

    def request(self, equipment: Equipment, messages: tuple[Message, ...]) -> ModelRequest:
        """Returns the initial request."""
        reasoning = self.settings.reasoning
        return ModelRequest(
            model=equipment.models[0].model,
            messages=messages,
            system=(Text(equipment.system),) if equipment.system else (),
            tools=equipment.toolbox.specs(),
            reasoning=None if reasoning == Reasoning() else reasoning,
            temperature=self.options.temperature,
            output=equipment.format,
        )


async def _given(messages: tuple[Message, ...], begun: bool, sink: Emit) -> tuple[Message, ...]:
    """Returns the conversation that the host program starts from, stored, every call answered."""
    if begun:
        raise BadInput("the session has messages of its own; continue it, or start from messages")
    balanced = balance(messages)
    for change in balanced.changes:
        await sink(Noticed(kind="loss", message=f"{change.path}: {change.what}", loss=change))
    tokens = sum(map(of_message, balanced.messages))
    await sink(HistoryReplaced(messages=balanced.messages, method="given", before=0, after=tokens))
    return balanced.messages


async def _surroundings(
    toolbox: Toolbox, settings: Settings, sink: Emit, today: date
) -> tuple[Message, ...]:
    """Returns the environment message, stored once so that its bytes never change."""
    messages = surroundings(
        toolbox.context.workspace,
        today=today,
        system=sys.platform,
        respect_git_ignore=settings.context.respect_git_ignore,
        hides=Visibility(toolbox.context, "list_directory", names_only=True).hides,
    )
    for message in messages:
        await sink(MessageAdded(message=message, context=True))
    return messages


def _opening(id: str, equipment: Equipment, cwd: Path) -> SessionOpened:
    first = equipment.models[0]
    servers = equipment.toolbox.servers
    return SessionOpened(
        session=id,
        model=equipment.name,
        dialect=first.provider.dialect,
        style=first.style.style,
        mode=equipment.mode,
        cwd=str(cwd),
        version=__version__,
        mcp=tuple(
            ServerStatus(name=name, status=status, tools=tools)
            for name, status, tools in (() if servers is None else servers.states())
        ),
    )


def system_text(
    options: SessionOptions,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    toolbox: Toolbox,
    mode: Mode,
    notice: SayNotice,
) -> str:
    """Returns the system prompt followed by the memory files.

    Notes are text: those of a folder that is neither trusted nor distrusted are read, and listed
    to the user; its system prompt is not.
    """
    workspace = toolbox.context.workspace
    cwd = workspace.roots[0]
    facts = PromptFacts(
        tools=toolbox.registry.names,
        git=any((folder / ".git").exists() for folder in (cwd, *cwd.parents)),
        interactive=options.interactive,
        mode=mode,
    )
    own = options.system
    file = Path(settings.system_prompt) if settings.system_prompt else None
    prompt = chosen_prompt(
        facts,
        environ=environ,
        folder=cwd,
        home=workspace.home,
        text=own if isinstance(own, str) else None,
        file=own if isinstance(own, Path) else file,
        source="--system" if options.system else "system_prompt",
        trusted=bool(settings.trusted),
    )
    memory = notes_in_use(settings, toolbox)
    for words in (*memory.notices, *_read_notes(memory)):
        notice(words)
    return with_memory(prompt.text, memory.text)


def notes_in_use(settings: Settings, toolbox: Toolbox) -> Memory:
    """Returns the notes for agents that the system prompt contains, with their files."""
    context = settings.context
    if "context.files" in settings.set_by_project:
        context = msgspec.structs.replace(context, outer_files=NAMES)
    return load_memory(
        toolbox.context.workspace,
        global_file=memory_file(toolbox.context),
        trusted=settings.trusted is not False,
        hides=Visibility(toolbox.context, "read_file").hides,
        settings=context,
    )


def _read_notes(memory: Memory) -> tuple[str, ...]:
    """Returns one line that lists the project's notes; empty without any."""
    notes = [file for file in memory.files if not file.outer]
    if not notes:
        return ()
    shown = ", ".join(file.shown for file in notes[:_MOST_NAMED])
    more = f" and {len(notes) - _MOST_NAMED} more" if len(notes) > _MOST_NAMED else ""
    size = sum(file.size for file in notes)
    return (f"project notes given to the model: {shown}{more} ({size:,} bytes)",)


def tokens_shown_small(message: Message) -> int:
    """Returns a message's tokens for a small model, which gets only the ends of long results."""
    from toolwire.embedded.small.past import RESULT_LIMIT  # noqa: PLC0415 - start-up time

    def cut(part: Part) -> Part:
        if not isinstance(part, ToolResult) or len(part.text) <= RESULT_LIMIT:
            return part
        return msgspec.structs.replace(part, parts=(Text(part.text[:RESULT_LIMIT]),))

    return of_message(Message(role=message.role, parts=tuple(map(cut, message.parts))))


def cautious(mode: Mode, notice: Callable[[str], None]) -> Mode:
    """Returns the approval mode for a small model, which easily confuses files."""
    if mode in (Mode.DEFAULT, Mode.PLAN):
        return mode
    notice(
        f"the embedded model asks before every change, although approval_mode is set to {mode}; "
        f"use --approval-mode {mode} to change that for one session"
    )
    return Mode.DEFAULT
