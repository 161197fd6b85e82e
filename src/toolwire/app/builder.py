"""The parts of a session before it is one: its journal, its model, its past, its prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.agent.events import AgentEvent, AnswersGiven, Emit, ToolFinished
from toolwire.app.event_sink import redaction
from toolwire.app.model_choice import Chosen
from toolwire.app.model_stack import Opened, open_model
from toolwire.app.options import SessionOptions
from toolwire.app.toolbox import Toolbox
from toolwire.client.http.transport import Transport
from toolwire.client.learned import Learned
from toolwire.compaction.summary import CompressionRules
from toolwire.config import Settings
from toolwire.context.cache import PrefixMeter, with_cache_marks
from toolwire.context.memory import NAMES, Memory, MemorySettings, load_memory, with_memory
from toolwire.context.prompt.compose import PromptFacts, chosen_prompt
from toolwire.errors import SessionError
from toolwire.events import ModelEvent, Notice
from toolwire.messages import Message
from toolwire.model import Model, reading
from toolwire.policy.rules import Mode
from toolwire.prompted.style import AUTO
from toolwire.request import ModelRequest
from toolwire.sessions.journal import Session
from toolwire.sessions.open_calls import answered, resolve_open_calls
from toolwire.sessions.sqlite import SqliteJournal
from toolwire.sessions.store import Sessions
from toolwire.storage.paths import places
from toolwire.tools.builtin.save_memory import memory_file
from toolwire.tools.files.visibility import Visibility

if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent

SayNotice = Callable[[str], None]
_DAY = 86_400
_MOST_NAMED = 10


def stored_sessions(environ: Mapping[str, str]) -> Sessions:
    """This user's sessions; no secret the process knows is written into one."""
    return Sessions(places(environ).sessions, redact=redaction())


def open_journal(
    wanted: SessionOptions,
    environ: Mapping[str, str],
    cwd: Path,
    *,
    keep_days: int = 0,
    now: float = 0.0,
) -> SqliteJournal | None:
    """The journal of the session that is wanted; None for one that is not to be kept.

    Sessions nobody worked on for `keep_days` are forgotten on the way; 0 keeps them all.
    """
    store = stored_sessions(environ)
    if keep_days:
        store.forget(now - keep_days * _DAY)
    if wanted.session:
        return store.open(wanted.session)
    if wanted.latest:
        found = store.latest(cwd)
        if found is None:
            raise SessionError(f"no session was held in {cwd} yet; leave --continue out")
        return store.open(found.id)
    return store.create(cwd) if wanted.kept else None


async def open_models(
    chosen: Chosen,
    wanted: SessionOptions,
    *,
    environ: Mapping[str, str],
    transport: Transport,
    notice: SayNotice,
    cwd: Path | None = None,
    consent: DownloadConsent | None = None,
) -> list[Opened]:
    """The model, and those to ask when it does not answer."""
    settings = chosen.settings
    style = wanted.tool_style or chosen.style or settings.tool_style or AUTO
    learned = Learned()
    first = await open_model(
        chosen.name,
        settings=settings,
        environ=environ,
        transport=transport,
        key=wanted.key or chosen.key,
        base_url=wanted.base_url,
        tool_style=style,
        learned=learned,
        cwd=cwd,
        consent=consent,
        notice=notice,
    )
    others: tuple[str, ...] = () if wanted.upstream is not None else settings.fallback
    rest = [
        await open_model(
            name,
            settings=settings,
            environ=environ,
            transport=transport,
            learned=learned,
            cwd=cwd,
            consent=consent,
            notice=notice,
        )
        for name in others
        if name != chosen.name
    ]
    if first.style.warning:
        notice(first.style.warning)
    return [_marking(one) for one in (first, *rest)]


def _marking(opened: Opened) -> Opened:
    """The same model with marks for the vendor's prompt cache, where it wants some."""
    provider = opened.provider
    ask = with_cache_marks(opened.ask, provider.dialect, provider.quirks_for(opened.model))
    return msgspec.structs.replace(opened, ask=ask)


def with_cache_report(ask: Model) -> Model:
    """The same model with a notice when a prompt cache can not go on from the last request."""
    meter = PrefixMeter()

    async def asked(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        change = meter.add(request)
        if change is not None and change.why:
            share = change.shared / change.previous if change.previous else 1.0
            yield Notice("prefix", f"{share:.0%} of the last prompt is reused: {change.why}")
        async with reading(ask(request)) as events:
            async for event in events:
                yield event

    return asked


async def settle(past: Session, workshop: Toolbox, telling: Emit) -> tuple[Message, ...]:
    """The past with every call answered: what only reads is run again, the rest told as it is."""
    if not past.open:
        return past.messages
    finished: list[ToolFinished] = []

    async def tell(event: AgentEvent) -> None:
        if isinstance(event, ToolFinished):
            finished.append(event)
        await telling(event)

    plan = resolve_open_calls(past.open)
    for event in plan.finished:
        await tell(event)
    if plan.again:
        await workshop.scheduler(emit=tell).run(plan.again)
    await tell(AnswersGiven(call_ids=plan.call_ids))
    return (*past.messages, answered(past.open, finished))


def system_text(
    wanted: SessionOptions,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    workshop: Toolbox,
    mode: Mode,
    notice: SayNotice,
) -> str:
    """The system prompt with the memory files after it.

    Notes are text, so those of a folder that is neither trusted nor distrusted are read, and named
    to the user; its system prompt is not.
    """
    workspace = workshop.context.workspace
    cwd = workspace.roots[0]
    facts = PromptFacts(
        tools=workshop.registry.names,
        git=any((folder / ".git").exists() for folder in (cwd, *cwd.parents)),
        interactive=wanted.interactive,
        mode=mode,
    )
    file = wanted.system or (Path(settings.system_prompt) if settings.system_prompt else None)
    prompt = chosen_prompt(
        facts,
        environ=environ,
        folder=cwd,
        home=workspace.home,
        file=file,
        source="--system" if wanted.system else "system_prompt",
        trusted=bool(settings.trusted),
    )
    context = settings.context
    memory = load_memory(
        workspace,
        global_file=memory_file(workshop.context),
        trusted=settings.trusted is not False,
        hides=Visibility(workshop.context, "read_file").hides,
        settings=MemorySettings(
            names=context.files,
            outer_names=NAMES if "context.files" in settings.set_by_project else context.files,
            imports=context.import_format,
            most_folders=context.max_dirs,
            respect_git_ignore=context.respect_git_ignore,
        ),
    )
    for words in (*memory.notices, *_read_notes(memory)):
        notice(words)
    return with_memory(prompt.text, memory.text)


def _read_notes(memory: Memory) -> tuple[str, ...]:
    """One line that names the project's notes; nothing without any."""
    notes = [file for file in memory.files if not file.outer]
    if not notes:
        return ()
    shown = ", ".join(file.shown for file in notes[:_MOST_NAMED])
    more = f" and {len(notes) - _MOST_NAMED} more" if len(notes) > _MOST_NAMED else ""
    size = sum(file.size for file in notes)
    return (f"notes of this project that the model is given: {shown}{more} ({size:,} bytes)",)


def compression_rules(settings: Settings) -> CompressionRules:
    """When a long conversation is made shorter, as the settings say."""
    said = settings.compression
    return CompressionRules(enabled=said.enabled, threshold=said.threshold, keep=said.keep)
