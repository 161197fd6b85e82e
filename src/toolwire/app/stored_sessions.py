"""The sessions of a user: where they are stored, how one is opened, and how its past is settled."""

from collections.abc import Mapping
from pathlib import Path

from toolwire.agent.events import AgentEvent, AnswersGiven, Emit, ToolFinished
from toolwire.agent.hook_chain import NO_HOOKS, HookChain
from toolwire.agent.questions import Approver, Editor
from toolwire.app.options import SessionOptions
from toolwire.app.toolbox import Toolbox
from toolwire.client.redact import redaction
from toolwire.config import Settings
from toolwire.errors import SessionError
from toolwire.messages import Message
from toolwire.sessions.replay import Session, answered, resolve_open_calls
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import OpenJournal, SessionStore
from toolwire.storage.paths import state_paths

_DAY = 86_400


def stored_sessions(environ: Mapping[str, str], settings: Settings | None = None) -> SessionStore:
    """Returns this user's sessions, in files or on a server; known secrets are redacted."""
    if settings is not None and (url := settings.sessions.store):
        from toolwire.sessions.postgres.store import PostgresStore  # noqa: PLC0415 - optional

        return PostgresStore(url, redact=redaction())
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
    past: Session,
    toolbox: Toolbox,
    sink: Emit,
    hooks: HookChain = NO_HOOKS,
    approver: Approver | None = None,
    editor: Editor | None = None,
) -> tuple[Message, ...]:
    """Returns the past with every call answered: reads run again, the rest is reported.

    With an approver, calls that were not started are decided and run now.
    """
    if not past.open:
        return past.messages
    finished: list[ToolFinished] = []

    async def record(event: AgentEvent) -> None:
        if isinstance(event, ToolFinished):
            finished.append(event)
        await sink(event)

    plan = resolve_open_calls(past.open, run_waiting=approver is not None)
    for event in plan.finished:
        await record(event)
    if plan.again:
        await toolbox.scheduler(approver, editor, emit=record, hooks=hooks).run(plan.again)
    await record(AnswersGiven(call_ids=plan.call_ids))
    return (*past.messages, answered(past.open, finished))
