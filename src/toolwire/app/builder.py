"""Parts of a session: journal, model, past and prompt."""

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
from toolwire.client.retry import Learned
from toolwire.compaction.summary import CompressionRules
from toolwire.config import Settings
from toolwire.context.cache import PrefixMeter, with_cache_marks
from toolwire.context.memory import NAMES, Memory, MemorySettings, load_memory, with_memory
from toolwire.context.prompt import PromptFacts, chosen_prompt
from toolwire.errors import SessionError
from toolwire.events import ModelEvent, Notice
from toolwire.messages import Message
from toolwire.model import Model, reading
from toolwire.policy.rules import Mode
from toolwire.prompted import AUTO
from toolwire.request import ModelRequest
from toolwire.sessions.replay import Session, answered, resolve_open_calls
from toolwire.sessions.sqlite import SqliteJournal
from toolwire.sessions.store import Sessions
from toolwire.storage.paths import places
from toolwire.tools.builtin.save_memory import memory_file
from toolwire.tools.files.protection import Visibility

if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent

SayNotice = Callable[[str], None]
_DAY = 86_400
_MOST_NAMED = 10


def stored_sessions(environ: Mapping[str, str]) -> Sessions:
    """Returns this user's sessions; known secrets are redacted from records."""
    return Sessions(places(environ).sessions, redact=redaction())


def open_journal(
    wanted: SessionOptions,
    environ: Mapping[str, str],
    cwd: Path,
    *,
    keep_days: int = 0,
    now: float = 0.0,
) -> SqliteJournal | None:
    """Returns the journal of the requested session; None if it is not stored.

    Deletes sessions unused for `keep_days`; 0 keeps them all.
    """
    store = stored_sessions(environ)
    if keep_days:
        store.forget(now - keep_days * _DAY)
    if wanted.session:
        return store.open(wanted.session)
    if wanted.latest:
        found = store.latest(cwd)
        if found is None:
            raise SessionError(f"no session in {cwd} yet; omit --continue")
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
    """Returns the model and its fallbacks."""
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
    """Wraps the model: adds prompt cache marks where the vendor needs them."""
    provider = opened.provider
    ask = with_cache_marks(opened.ask, provider.dialect, provider.quirks_for(opened.model))
    return msgspec.structs.replace(opened, ask=ask)


def with_cache_report(ask: Model) -> Model:
    """Wraps the model: emits a notice when a request breaks the prompt cache."""
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


def system_text(
    wanted: SessionOptions,
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
        global_file=memory_file(toolbox.context),
        trusted=settings.trusted is not False,
        hides=Visibility(toolbox.context, "read_file").hides,
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
    """Returns one line that lists the project's notes; empty without any."""
    notes = [file for file in memory.files if not file.outer]
    if not notes:
        return ()
    shown = ", ".join(file.shown for file in notes[:_MOST_NAMED])
    more = f" and {len(notes) - _MOST_NAMED} more" if len(notes) > _MOST_NAMED else ""
    size = sum(file.size for file in notes)
    return (f"project notes given to the model: {shown}{more} ({size:,} bytes)",)


def compression_rules(settings: Settings) -> CompressionRules:
    """Returns the compression rules of the settings."""
    rules = settings.compression
    return CompressionRules(enabled=rules.enabled, threshold=rules.threshold, keep=rules.keep)
