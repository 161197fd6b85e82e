"""A session: model, tools, policy, journal and history, ready for a prompt."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire import __version__
from toolwire.agent.events import (
    Emit,
    HistoryReplaced,
    MessageAdded,
    Noticed,
    Reader,
    SessionOpened,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.questions import Approver, Editor
from toolwire.agent.turn import run_turn
from toolwire.agent.usage import Limits
from toolwire.app.builder import (
    compression_rules,
    open_journal,
    open_models,
    settle,
    system_text,
    with_cache_report,
)
from toolwire.app.embedded import cautious, choose_here, tokens_shown_small
from toolwire.app.event_sink import EventSink
from toolwire.app.model_choice import choose_model
from toolwire.app.model_stack import Opened, with_fallback
from toolwire.app.options import HostOverrides, SessionOptions
from toolwire.app.toolbox import AskPerson, Toolbox, make_toolbox
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.redact import known_secrets
from toolwire.compaction.summary import Compressor
from toolwire.compaction.tokens import of_message
from toolwire.config import Settings
from toolwire.context.surroundings import surroundings
from toolwire.errors import SessionError
from toolwire.ids import new_id
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.policy.rules import Mode
from toolwire.request import ModelRequest, Reasoning
from toolwire.sessions.replay import Session, replay
from toolwire.sessions.sqlite import SqliteJournal
from toolwire.tools.files.protection import Visibility
from toolwire.tools.spec import Tool


class AgentSession:
    """A conversation, one turn at a time. `request` contains it so far."""

    def __init__(
        self,
        id: str,
        request: ModelRequest,
        *,
        opened: Opened,
        model: Model,
        toolbox: Toolbox,
        sink: EventSink,
        limits: Limits,
        shorten: Compressor,
        approver: Approver | None = None,
        editor: Editor | None = None,
    ) -> None:
        self.id = id
        self.request = request
        self.opened = opened
        self.toolbox = toolbox
        self._model = model
        self._sink = sink
        self._limits = limits
        self._shorten = shorten
        self._scheduler = toolbox.scheduler(approver, editor, sink)
        self._inbox: list[Message] = []

    async def send(self, message: Message) -> TurnEnded:
        """Runs a turn for the user's message; returns how it ended, raises if cancelled."""
        self._inbox.append(message)
        try:
            return await run_turn(
                self.request,
                model=self._model,
                scheduler=self._scheduler,
                changed=self._changed,
                limits=self._limits,
                inbox=self._take,
                shorten=self._shorten,
                price=self.opened.price,
            )
        except SessionError as error:
            # It can no longer be stored: stop, and report that to readers.
            ended = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
            await self._sink.show(ended)
            return ended

    def say(self, message: Message) -> None:
        """Adds a user message to the running turn, for its next step."""
        self._inbox.append(message)

    async def compress(self) -> HistoryReplaced | None:
        """Shortens the conversation now; None if it cannot be shortened."""
        replaced = await self._shorten(self.request, force=True)
        if replaced is not None:
            self._changed(replaced.messages)
            await self._sink(replaced)
        return replaced

    async def note(self, kind: str, message: str) -> None:
        """Emits a notice about the session."""
        await self._sink(Noticed(kind=kind, message=message))

    def _take(self) -> list[Message]:
        taken, self._inbox = self._inbox, []
        return taken

    def _changed(self, messages: tuple[Message, ...]) -> None:
        self.request = msgspec.structs.replace(self.request, messages=messages)


if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent

__all__ = ["AgentSession", "open_session"]


@asynccontextmanager
async def open_session(
    wanted: SessionOptions,
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
    today: Callable[[], date] = date.today,
) -> AsyncGenerator[AgentSession]:
    """Opens a new or stored session; closes everything it opened with it.

    `own` replaces the coding agent's tools, prompt and model.
    """
    opening = _SessionBuilder(wanted=wanted, settings=settings, environ=environ, cwd=cwd, own=own)
    async with AsyncExitStack() as stack:
        journal, past = await opening.journal(stack)
        if transport is None:
            transport = http = HttpTransport()
            stack.push_async_callback(http.aclose)
        name, models = await opening.models(past.model, transport, consent)
        mode = opening.mode(models[0])
        headless = approver is None
        toolbox = await opening.toolbox(stack, models[0], mode, tools, ask, headless=headless)
        system = opening.system(toolbox, mode)
        id = new_id("") if journal is None else journal.session
        sink = EventSink(id, journal, readers)
        await sink(_opened(id, name, models[0], mode, cwd))
        for words in opening.notices:
            await sink(Noticed(kind="setup", message=words))
        messages = await settle(past, toolbox, sink)
        if not messages and own is None and not models[0].provider.small:
            messages = await _surroundings(toolbox, settings, sink, today())
        model = with_fallback(models)
        shorten = opening.compressor(models[0], toolbox, sink)
        yield AgentSession(
            id,
            opening.request(models[0], messages, system, toolbox),
            opened=models[0],
            model=with_cache_report(shorten.watching(model)),
            shorten=shorten,
            toolbox=toolbox,
            sink=sink,
            limits=wanted.limits or _limits(settings),
            approver=approver,
            editor=editor,
        )


class _SessionBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds a session from its options, and collects notices for the user."""

    wanted: SessionOptions
    settings: Settings
    environ: Mapping[str, str]
    cwd: Path
    own: HostOverrides | None
    notices: list[str] = []

    async def journal(self, stack: AsyncExitStack) -> tuple[SqliteJournal | None, Session]:
        """Returns the journal, locked until the session ends, and its past."""
        journal = open_journal(
            self.wanted,
            self.environ,
            self.cwd,
            keep_days=self.settings.sessions.keep_days,
            now=time.time(),
        )
        if journal is None:
            return None, Session()
        stack.push_async_callback(journal.close)
        past = replay(await journal.read(journal.session))
        if journal.salvaged is not None:
            self.notices.append(str(journal.salvaged))
        if journal.skipped is not None:
            self.notices.append(str(journal.skipped))
        return journal, past

    async def models(
        self, before: str, transport: Transport, consent: DownloadConsent | None
    ) -> tuple[str, list[Opened]]:
        """Returns the model's name and the models; `before` is the last one used."""
        own, wanted = self.own, self.wanted
        if own is not None and own.model is not None:
            return f"{own.model.provider.name}/{own.model.model}", [own.model]
        choose = partial(
            choose_model,
            self.settings,
            self.environ,
            model=wanted.model,
            provider=wanted.provider,
            upstream=wanted.upstream,
            before=before,
        )
        chosen = await choose_here(choose, self.settings, self.environ, transport)
        models = await open_models(
            chosen,
            wanted,
            environ=self.environ,
            transport=transport,
            notice=self.notices.append,
            cwd=self.cwd,
            consent=consent,
        )
        return chosen.name, models

    def mode(self, opened: Opened) -> Mode:
        """Returns the approval mode; a small model always asks before changes."""
        mode = self.wanted.mode or Mode(self.settings.approval_mode)
        return cautious(mode, self.notices.append) if opened.provider.small else mode

    async def toolbox(
        self,
        stack: AsyncExitStack,
        opened: Opened,
        mode: Mode,
        tools: Iterable[Tool],
        ask: AskPerson | None,
        *,
        headless: bool,
    ) -> Toolbox:
        """Returns the toolbox; without a user, no tool that asks one is offered."""
        own = self.own
        toolbox = await make_toolbox(
            self.settings,
            environ=self.environ,
            cwd=self.cwd,
            mode=mode,
            headless=headless,
            allowed=self.wanted.allowed,
            secrets=known_secrets(),
            tools=tools,
            model=opened.ask,
            model_dialect=opened.provider.dialect,
            ask=ask,
            temp=own.temp if own is not None else None,
            registry=own.tools if own is not None else None,
            rules=own is None or own.rules,
            notice=self.notices.append,
        )
        # No nested generators: an event loop that ends closes both at once.
        stack.push_async_callback(toolbox.close)
        if ask is not None:
            return toolbox
        offered = toolbox.registry.without(("ask_user",))
        return msgspec.structs.replace(toolbox, registry=offered)

    def system(self, toolbox: Toolbox, mode: Mode) -> str:
        """Returns the system prompt: the host program's, or ours with the folder's notes."""
        if self.own is not None:
            return self.own.system
        return system_text(
            self.wanted,
            self.settings,
            self.environ,
            toolbox=toolbox,
            mode=mode,
            notice=self.notices.append,
        )

    def request(
        self, opened: Opened, messages: tuple[Message, ...], system: str, toolbox: Toolbox
    ) -> ModelRequest:
        """Returns the initial request."""
        reasoning = self.settings.reasoning
        return ModelRequest(
            model=opened.model,
            messages=messages,
            system=(Text(system),) if system else (),
            tools=toolbox.registry.specs(),
            reasoning=None if reasoning == Reasoning() else reasoning,
        )

    def compressor(self, opened: Opened, toolbox: Toolbox, sink: Emit) -> Compressor:
        """Returns the compressor."""
        return Compressor(
            opened.ask,
            window=opened.info.context if opened.info is not None else 0,
            temp=toolbox.context.workspace.temp,
            emit=sink,
            rules=compression_rules(self.settings),
            price=opened.price,
            weigh=tokens_shown_small if opened.provider.small else of_message,
        )


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


def _opened(id: str, name: str, opened: Opened, mode: Mode, cwd: Path) -> SessionOpened:
    return SessionOpened(
        session=id,
        model=name,
        dialect=opened.provider.dialect,
        style=opened.style.style,
        mode=mode,
        cwd=str(cwd),
        version=__version__,
    )


def _limits(settings: Settings) -> Limits:
    limits = settings.limits
    return Limits(
        turns=limits.turns, tokens=limits.tokens, cost=limits.cost, seconds=limits.seconds
    )
