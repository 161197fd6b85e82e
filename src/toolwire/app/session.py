"""A session wired together: model, tools, policy, journal and history, ready for a prompt."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path

import msgspec

from toolwire import __version__
from toolwire.agent.compressing import Compressor
from toolwire.agent.confirmations import Approver, Editor
from toolwire.agent.events import (
    AgentEvent,
    Emit,
    HistoryReplaced,
    MessageAdded,
    Noticed,
    SessionOpened,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.limits import Limits
from toolwire.agent.reply import Asking
from toolwire.agent.rules import Mode
from toolwire.agent.surroundings import surroundings
from toolwire.agent.turn import Turn
from toolwire.app.choosing import Chosen, choose_model
from toolwire.app.embedded import cautious, choose_here
from toolwire.app.models import Opened, with_fallback
from toolwire.app.opening import (
    compression_rules,
    explaining,
    open_journal,
    open_models,
    settle,
    system_text,
)
from toolwire.app.own import Own
from toolwire.app.telling import Telling
from toolwire.app.wanted import Wanted
from toolwire.app.workshop import AskPerson, Workshop, open_workshop
from toolwire.client.secret import known_secrets
from toolwire.client.transport import HttpTransport, Transport
from toolwire.config import Settings
from toolwire.errors import SessionError
from toolwire.ids import new_id
from toolwire.local.weights import Consent
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.request import ModelRequest, Reasoning
from toolwire.sessions.journal import Session, replay
from toolwire.tools.spec import Tool


class AgentSession:
    """A conversation in progress, one turn at a time. `request` holds all that was said."""

    def __init__(
        self,
        id: str,
        request: ModelRequest,
        *,
        opened: Opened,
        model: Model,
        workshop: Workshop,
        telling: Telling,
        limits: Limits,
        shorten: Compressor,
        approver: Approver | None = None,
        editor: Editor | None = None,
    ) -> None:
        self.id = id
        self.request = request
        self.opened = opened
        self.workshop = workshop
        self._model = model
        self._telling = telling
        self._limits = limits
        self._shorten = shorten
        self._scheduler = workshop.scheduler(approver, editor, telling)
        self._inbox: list[Message] = []
        self._ended: TurnEnded | None = None

    async def send(self, message: Message) -> TurnEnded:
        """Work on what the user says; returns how the turn ended, raises if it is cancelled."""
        self._inbox.append(message)
        self._ended = None
        asking = Asking(
            self._model,
            emit=self._hear,
            price=self.opened.price,
            clock=time.monotonic,
            sleep=asyncio.sleep,
        )
        turn = Turn(
            self.request,
            asking=asking,
            scheduler=self._scheduler,
            emit=self._hear,
            shorten=self._shorten,
        )
        try:
            await turn.run(self._limits, self._take, time.monotonic)
        except SessionError as error:
            # It can no longer be kept: stop, and say so to whoever listens.
            self._ended = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
            await self._telling.show(self._ended)
        finally:
            self.request = turn.request
        if self._ended is None:
            raise AssertionError("a turn ends with TurnEnded")
        return self._ended

    def say(self, message: Message) -> None:
        """Words for a turn that is under way: it hears them at its next step."""
        self._inbox.append(message)

    async def compress(self) -> HistoryReplaced | None:
        """Make the conversation shorter now; None if it can not be."""
        replaced = await self._shorten(self.request, force=True)
        if replaced is not None:
            self.request = msgspec.structs.replace(self.request, messages=replaced.messages)
            await self._telling(replaced)
        return replaced

    async def note(self, kind: str, message: str) -> None:
        """Tell whoever listens something about the session."""
        await self._telling(Noticed(kind=kind, message=message))

    def _take(self) -> list[Message]:
        taken, self._inbox = self._inbox, []
        return taken

    async def _hear(self, event: AgentEvent) -> None:
        if isinstance(event, TurnEnded):
            self._ended = event
        await self._telling(event)


@asynccontextmanager
async def open_session(
    wanted: Wanted,
    *,
    settings: Settings,
    environ: Mapping[str, str],
    cwd: Path,
    readers: Iterable[Emit] = (),
    approver: Approver | None = None,
    editor: Editor | None = None,
    ask: AskPerson | None = None,
    tools: Iterable[Tool] = (),
    transport: Transport | None = None,
    consent: Consent | None = None,
    own: Own | None = None,
    today: Callable[[], date] = date.today,
) -> AsyncGenerator[AgentSession]:
    """A new session, or an old one as it was left; everything it opened closes with it.

    `own` is what a program brings in place of the coding agent's tools, words and model.
    """
    notices: list[str] = []
    async with AsyncExitStack() as stack:
        journal = open_journal(wanted, environ, cwd)
        past = Session()
        if journal is not None:
            stack.push_async_callback(journal.close)
            past = replay(await journal.read(journal.session))
            if journal.rescued is not None:
                notices.append(str(journal.rescued))
        if transport is None:
            transport = http = HttpTransport()
            stack.push_async_callback(http.aclose)
        if own is not None and own.model is not None:
            name, models = f"{own.model.provider.name}/{own.model.model}", [own.model]
        else:
            chosen = await _chosen(wanted, settings, environ, past.model, transport)
            name = chosen.name
            models = await open_models(
                chosen,
                wanted,
                environ=environ,
                transport=transport,
                notice=notices.append,
                cwd=cwd,
                consent=consent,
            )
        opened, mode = models[0], wanted.mode or Mode(settings.approval_mode)
        if opened.provider.small:
            mode = cautious(mode, notices.append)
        workshop = await stack.enter_async_context(
            open_workshop(
                settings,
                environ=environ,
                cwd=cwd,
                mode=mode,
                headless=approver is None,
                allowed=wanted.allowed,
                secrets=known_secrets(),
                tools=tools,
                model=opened.ask,
                model_dialect=opened.provider.dialect,
                ask=ask,
                temp=own.temp if own is not None else None,
                registry=own.tools if own is not None else None,
                rules=own is None or own.rules,
                notice=notices.append,
            )
        )
        if own is not None:
            system = own.system
        else:
            system = system_text(
                wanted, settings, environ, workshop=workshop, mode=mode, notice=notices.append
            )
        id = new_id("") if journal is None else journal.session
        telling = Telling(id, journal, readers)
        await telling(_opened(id, name, opened, mode, cwd))
        for words in notices:
            await telling(Noticed(kind="setup", message=words))
        messages = await settle(past, workshop, telling)
        if not messages and own is None and not opened.provider.small:
            messages = await _surroundings(workshop, settings, telling, today())
        request = ModelRequest(
            model=opened.model,
            messages=messages,
            system=(Text(system),) if system else (),
            tools=workshop.registry.specs(),
            reasoning=None if settings.reasoning == Reasoning() else settings.reasoning,
        )
        model = with_fallback(models)
        shorten = Compressor(
            model,
            window=opened.info.context if opened.info is not None else 0,
            temp=workshop.context.workspace.temp,
            emit=telling,
            rules=compression_rules(settings),
            price=opened.price,
        )
        yield AgentSession(
            id,
            request,
            opened=opened,
            model=explaining(shorten.watching(model)),
            shorten=shorten,
            workshop=workshop,
            telling=telling,
            limits=wanted.limits or _limits(settings),
            approver=approver,
            editor=editor,
        )


async def _chosen(
    wanted: Wanted,
    settings: Settings,
    environ: Mapping[str, str],
    before: str,
    transport: Transport,
) -> Chosen:
    choose = partial(
        choose_model,
        settings,
        environ,
        model=wanted.model,
        provider=wanted.provider,
        upstream=wanted.upstream,
        before=before,
    )
    return await choose_here(choose, settings, environ, transport)


async def _surroundings(
    workshop: Workshop, settings: Settings, telling: Emit, today: date
) -> tuple[Message, ...]:
    """The environment, told once at the start and kept: its bytes stay the same from then on."""
    messages = surroundings(
        workshop.context.workspace,
        today=today,
        system=sys.platform,
        respect_git_ignore=settings.context.respect_git_ignore,
    )
    for message in messages:
        await telling(MessageAdded(message=message, context=True))
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
