"""A session: a conversation, one turn at a time, whose events are stored and delivered."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    Emit,
    HistoryReplaced,
    Noticed,
    Reader,
    SessionEvent,
    ToolFinished,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.questions import Approver, Editor
from toolwire.agent.turn import run_turn
from toolwire.agent.usage import Limits
from toolwire.app.model_stack import Opened
from toolwire.app.options import SessionOptions
from toolwire.app.toolbox import Toolbox
from toolwire.client.redact import Redactor, known_secrets
from toolwire.compaction.summary import Compressor
from toolwire.errors import SessionError
from toolwire.messages import Message
from toolwire.model import Model
from toolwire.request import ModelRequest
from toolwire.sessions.replay import Session, answered, resolve_open_calls
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import Journal, OpenJournal, SessionStore
from toolwire.storage.paths import state_paths

Redact: TypeAlias = Callable[[bytes], bytes]
_DAY = 86_400


class EventSink:
    """One session's `Emit`: stores each event before readers receive it."""

    def __init__(self, session: str, journal: Journal | None, readers: Iterable[Reader]) -> None:
        self._session = session
        self._journal = journal
        self._readers = tuple(readers)

    async def __call__(self, event: AgentEvent) -> None:
        if self._journal is not None:
            await self._journal.append(self._session, event)
        await self.show(event)

    async def show(self, event: AgentEvent) -> None:
        """Delivers to readers only: for events that can no longer be stored."""
        received = SessionEvent(self._session, event)
        for reader in self._readers:
            await reader(received)


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


async def settle(past: Session, toolbox: Toolbox, sink: Emit) -> tuple[Message, ...]:
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
        await toolbox.scheduler(emit=record).run(plan.again)
    await record(AnswersGiven(call_ids=plan.call_ids))
    return (*past.messages, answered(past.open, finished))


def redaction() -> Redact:
    """Redacts every secret that this process knows from a record."""
    known: tuple[str, ...] = ()
    redactor = Redactor()

    def redact(body: bytes) -> bytes:
        nonlocal known, redactor
        secrets = known_secrets()
        if len(secrets) != len(known):
            known, redactor = secrets, Redactor(secrets)
        return redactor.body(body)

    return redact
