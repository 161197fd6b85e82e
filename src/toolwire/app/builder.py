"""Opens a session: combines model, tools, policy, journal and history."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from toolwire import __version__
from toolwire.agent.events import (
    AgentEvent,
    Emit,
    HistoryReplaced,
    MessageAdded,
    Noticed,
    Reader,
    ServerStatus,
    SessionOpened,
)
from toolwire.agent.hook_chain import NO_HOOKS, HookChain
from toolwire.agent.questions import Approver, Editor
from toolwire.app.checkpoints import Checkpoints
from toolwire.app.equipment import Equipment
from toolwire.app.event_sink import EventSink
from toolwire.app.options import HostOverrides, SessionOptions
from toolwire.app.session import AgentSession
from toolwire.app.session_parts import SessionBuilder
from toolwire.app.stored_sessions import settle
from toolwire.app.toolbox import AskPerson, Toolbox
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.compaction.tokens import of_message
from toolwire.config import Settings
from toolwire.config.telemetry import TelemetrySettings
from toolwire.context.surroundings import surroundings
from toolwire.errors import BadInput, SessionError
from toolwire.history import balance
from toolwire.ids import new_id
from toolwire.messages import Message
from toolwire.sessions.replay import Session
from toolwire.sessions.sqlite_journal import SqliteJournal
from toolwire.sessions.store import SessionStore
from toolwire.tools.files.protection import Visibility
from toolwire.tools.spec import Tool

if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent
    from toolwire.telemetry.reader import Telemetry


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
    replayed: Callable[[list[AgentEvent]], None] = lambda events: None,
) -> AsyncGenerator[AgentSession]:
    """Opens a new or stored session; closes everything it opened with it.

    `own` replaces the coding agent's tools, prompt and model, `store` the user's own sessions.
    `replayed` gets the events of a stored session, before anything else of it is opened.
    """
    async with AsyncExitStack() as stack:
        if transport is None:
            transport = http = HttpTransport()
            stack.push_async_callback(http.aclose)
        builder = SessionBuilder(
            options=options,
            settings=settings,
            environ=environ,
            cwd=cwd,
            own=own,
            store=store,
            transport=transport,
            consent=consent,
            replayed=replayed,
        )
        journal, past = await builder.journal(stack)
        temp = own.temp if own is not None else options.temp
        if journal is None and own is None and temp is None:
            temp = _temporary_folder(stack)
        name, models = await builder.models(past)
        mode = builder.mode(models[0], past)
        subagents = None
        if own is None and settings.agents.enabled and not models[0].provider.small:
            from toolwire.app.subagents.tool import open_subagents  # noqa: PLC0415 - imports sessions

            notice = builder.notices.append
            subagents = await open_subagents(settings, environ, cwd, today=today, notice=notice)
            tools = (*tools, *(() if subagents is None else (subagents.tool(),)))
        toolbox = await builder.toolbox(
            stack, mode, tools, ask, headless=approver is None, temp=temp
        )
        id = new_id("") if journal is None else journal.session
        telemetry = _telemetry(settings.telemetry, environ)
        checkpoints = None
        if own is None and isinstance(journal, SqliteJournal) and settings.checkpoints.enabled:
            checkpoints = Checkpoints(
                journal.path,
                settings.checkpoints,
                workspace=toolbox.context.workspace,
                environ=environ,
                turns=past.turns,
            )
            toolbox = toolbox.recording(checkpoints.changing)
            stack.push_async_callback(checkpoints.close)
        last = (
            *(() if telemetry is None else (telemetry,)),
            *(() if checkpoints is None else (checkpoints.read,)),
        )
        sink = EventSink(id, journal, (*readers, *last))
        if checkpoints is not None:
            await checkpoints.connect(sink, ahead=options.interactive)
        if telemetry is not None:
            stack.push_async_callback(_sent, telemetry, sink)
        equipment = builder.equipment(name, models, mode, toolbox, sink)
        opening = _opening(id, equipment, cwd)
        await sink(opening)
        for words in builder.notices:
            await sink(Noticed(kind="setup", message=words))
        for words in () if toolbox.servers is None else toolbox.servers.notices():
            await sink(Noticed(kind="mcp", message=words))
        live: list[AgentSession] = []
        if settings.hooks.any:
            from toolwire.app.extensions import join_hooks  # noqa: PLC0415 - only with hooks

            hooks = await join_hooks(hooks.bound(id), stack, settings, environ, toolbox, sink, live)
        if toolbox.skills is not None:
            from toolwire.app.extensions import guard_skills  # noqa: PLC0415 - only with skills

            hooks = guard_skills(hooks.bound(id), toolbox, environ)
        if past.open and past.agents:
            from toolwire.app.subagents.recovery import settle_agents  # noqa: PLC0415 - after a crash

            past = await settle_agents(past, builder.sessions, sink)
        asked = approver if options.ask_again else None
        messages = await settle(past, equipment.toolbox, sink, hooks.bound(id), asked, editor)
        if own is not None and own.messages:
            messages = await _given(own.messages, bool(messages), sink)
        if not messages and own is None and not models[0].provider.small:
            messages = await _surroundings(toolbox, settings, sink, today())
        session = AgentSession(
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
            checkpoints=checkpoints,
        )
        if subagents is not None:
            subagents.connect(session, builder, None if journal is None else builder.sessions)
            session.subagents = subagents
        live.append(session)
        stack.push_async_callback(session.ended)
        await session.begun(options.source or _source(past))
        yield session


def _source(past: Session) -> str:
    """Returns why a session opens, for hooks."""
    if past.new_copy:
        return "fork"
    return "resume" if past.messages else "startup"


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
        server=first.server,
        mcp=tuple(
            ServerStatus(name=name, status=status, tools=tools)
            for name, status, tools in (() if servers is None else servers.states())
        ),
    )
