"""Joins hooks and skills to a session; loaded only where there are any."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import msgspec

from toolwire.agent.events import Emit, Noticed
from toolwire.agent.hook_chain import HookChain
from toolwire.app.session import AgentSession
from toolwire.app.toolbox import Toolbox
from toolwire.config import Settings
from toolwire.config.extensions import HookTable
from toolwire.errors import BadInput
from toolwire.extensions.hooks.definitions import (
    PROJECT_FILES,
    Definition,
    FoundHooks,
    Skipped,
    is_approved,
    read_definitions,
)
from toolwire.extensions.hooks.session import HookSession, SessionHooks
from toolwire.extensions.skills import (
    TOOL,
    SessionSkills,
    Skill,
    SkillApproval,
    SkillFolder,
    read_skills,
)
from toolwire.policy import Mode
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import approval_store


def _project_files(settings: Settings, cwd: Path) -> list[str]:
    """Files of the project that define hooks and are not read without trust."""
    names = [name for program in settings.hooks.from_ for name in PROJECT_FILES[program]]
    return [name for name in names if (cwd / name).is_file()]


class HookRow(msgspec.Struct, frozen=True, kw_only=True):
    """One hook in a list."""

    event: str
    matcher: str
    name: str
    kind: str
    origin: str
    approved: bool
    skipped_because: str = ""


def with_hook_tables(
    settings: Settings, hooks: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Settings:
    """The settings with the hooks of a host program; BadInput if one cannot be used."""
    tables = [(event, dict(one)) for event, listed in hooks.items() for one in listed]
    rows = ((event, table, False, "hooks") for event, table in tables)
    found = read_definitions(rows, (), cwd=Path.cwd(), home=Path.home(), trusted=False)
    for one in found.skipped:
        raise BadInput(f"hooks: {one.event}: {one.why}")
    added = tuple(HookTable(event=event, table=table, kind="user") for event, table in tables)
    more = msgspec.structs.replace(settings.hooks, tables=(*settings.hooks.tables, *added))
    return msgspec.structs.replace(settings, hooks=more)


def find_hooks(
    settings: Settings, environ: Mapping[str, str], cwd: Path, *, all_files: bool = False
) -> FoundHooks:
    """Every hook of the settings, and of the programs that they name; with `all_files` also those
    of a project that is not trusted.
    """
    home = Path(environ.get("HOME") or Path.home())
    tables = (
        (one.event, one.table, one.kind == "project", one.kind) for one in settings.hooks.tables
    )
    return read_definitions(
        tables,
        settings.hooks.from_,
        cwd=cwd,
        home=home,
        trusted=all_files or settings.trusted is True,
    )


def hook_rows(settings: Settings, environ: Mapping[str, str], cwd: Path) -> list[HookRow]:
    """Every hook as it is listed, those that do not run with the reason."""
    found = find_hooks(settings, environ, cwd, all_files=True)
    approvals = approval_store(state_paths(environ).config)
    rows: list[HookRow] = []
    for hook in found.hooks:
        approved = is_approved(hook, cwd, approvals)
        why = "" if approved else "it waits for approval: toolwire approve"
        if hook.project and settings.trusted is not True:
            why = "this folder is not trusted: toolwire config trust"
        rows.append(_row(hook, approved, why))
    return [*rows, *map(_skipped_row, found.skipped)]


def _row(hook: Definition, approved: bool, why: str) -> HookRow:
    return HookRow(
        event=hook.event,
        matcher=hook.matcher,
        name=hook.shown,
        kind=hook.kind,
        origin=hook.origin,
        approved=approved,
        skipped_because=why,
    )


def _skipped_row(one: Skipped) -> HookRow:
    return HookRow(
        event=one.event,
        matcher=one.matcher,
        name=one.name,
        kind=one.kind,
        origin=one.origin,
        approved=False,
        skipped_because=one.why,
    )


async def join_hooks(
    chain: HookChain,
    stack: AsyncExitStack,
    settings: Settings,
    environ: Mapping[str, str],
    toolbox: Toolbox,
    sink: Emit,
    live: Sequence[AgentSession],
) -> HookChain:
    """The chain with the hooks that may run; the others are reported. `live` gets the session."""
    context = toolbox.context
    cwd = context.workspace.roots[0]
    found = find_hooks(settings, environ, cwd)
    approvals = approval_store(state_paths(environ).config)
    approved = [hook for hook in found.hooks if is_approved(hook, cwd, approvals)]
    for one in found.skipped:
        where = f"{one.event} in {one.origin}" if one.event else one.origin
        await sink(Noticed(kind="hook", message=f"a hook is skipped: {where}: {one.why}"))
    if waiting := len(found.hooks) - len(approved):
        words = f"{waiting} hook{'s' if waiting > 1 else ''} of this project"
        words = f"{words} wait{'' if waiting > 1 else 's'} for your approval"
        await sink(Noticed(kind="hook", message=f'{words}; run "toolwire approve"'))
    if settings.trusted is not True and (files := _project_files(settings, cwd)):
        words = f"the hooks of {', '.join(files)} are skipped because this folder is not trusted"
        await sink(Noticed(kind="hook", message=f'{words}; run "toolwire config trust"'))
    if not approved:
        return chain
    hooks = SessionHooks(
        approved,
        HookSession(
            id=chain.session,
            cwd=cwd,
            temp=context.workspace.temp,
            environ=cast(dict[str, str], context.environ),
            seen=context.seen,
            emit=sink,
            mode=lambda: str(live[0].mode) if live else str(toolbox.policy.terms.mode),
            messages=lambda: live[0].request.messages if live else (),
        ),
    )
    stack.push_async_callback(hooks.close)
    return chain.joined(
        hooks, stop_limit=settings.hooks.stop_limit, advice=toolbox.policy.terms.advice
    )


Folders = Sequence[tuple[Path, str, bool]]
"""Folders of skills, their origin, and whether the project brings them."""


def find_skills(
    settings: Settings, environ: Mapping[str, str], cwd: Path
) -> tuple[dict[str, Skill], list[str]]:
    """The skills of a folder and a user by name, and what is wrong with others."""
    home = Path(environ.get("HOME") or Path.home())
    config = state_paths(environ).config
    trusted = settings.trusted is True
    found, problems = _read(settings, settings.skills.folders(cwd, home, config, trusted=trusted))
    if not trusted:
        every = settings.skills.folders(cwd, home, config, trusted=True)
        for path in (path for path, _, project in every if project and path.is_dir()):
            problems.append(
                f"the skills of {path.relative_to(cwd) if path.is_relative_to(cwd) else path} are "
                "not used because this folder is not trusted: toolwire config trust"
            )
    return found, problems


def _read(settings: Settings, folders: Folders) -> tuple[dict[str, Skill], list[str]]:
    listed = [
        SkillFolder(path=path, origin=origin, project=project) for path, origin, project in folders
    ]
    return read_skills(listed, settings.skills.exclude)


def join_skills(
    toolbox: Toolbox, settings: Settings, folders: Folders, notice: Callable[[str], None]
) -> Toolbox:
    """The toolbox with the tool that activates skills; without any it is as it was."""
    found, problems = _read(settings, folders)
    for words in problems:
        notice(words)
    if not found or TOOL in settings.tools.exclude:
        return toolbox
    skills = SessionSkills(found)
    toolbox.registry.take(toolbox.registry.with_tools((skills.tool(),)))
    return msgspec.structs.replace(toolbox, skills=skills)


def guard_skills(chain: HookChain, toolbox: Toolbox, environ: Mapping[str, str]) -> HookChain:
    """The chain with the question about a project's skills, unless the user allowed them all."""
    skills, policy, terms = toolbox.skills, toolbox.policy, toolbox.policy.terms
    allowed = any(rule.decision == "allow" and rule.tool == TOOL for rule in terms.rules)
    if skills is None or allowed or not any(one.project for one in skills.skills.values()):
        return chain
    store = approval_store(state_paths(environ).config)
    cwd = toolbox.context.workspace.roots[0]
    guard = SkillApproval(skills, store, cwd, lambda: policy.terms.mode is Mode.YOLO)
    return chain.joined(guard, stop_limit=chain.stop_limit, advice=terms.advice)
