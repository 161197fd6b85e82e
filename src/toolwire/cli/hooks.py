"""`toolwire hooks` and `toolwire approve`: hooks, and what a project brings."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from toolwire import config
from toolwire.agent.events import AgentEvent, HookRan, Noticed
from toolwire.app.extensions import find_hooks, find_skills, hook_rows
from toolwire.app.servers import approvals_of, are_configured, configured
from toolwire.cli.mcp_servers import JSON, errors_reported
from toolwire.cli.terminal import agrees, can_ask
from toolwire.client.redact import known_secrets
from toolwire.config import Settings
from toolwire.errors import ToolwireError, UnknownName
from toolwire.extensions.hooks.definitions import (
    ALIASES,
    EVENTS,
    Definition,
    digest_of_hook,
    is_approved,
)
from toolwire.extensions.hooks.session import HookSession
from toolwire.extensions.hooks.trial import read_subject, tried
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import approval_store
from toolwire.terminal_text import one_line
from toolwire.tools.shell.environment import clean_environment
from toolwire.wire.json_access import dump, parse_object


@click.group("hooks")
def hooks_command() -> None:
    """List the hooks, and run those of an event."""


@hooks_command.command("list")
@JSON
def list_command(as_json: bool) -> None:
    """List every hook, with the reason of each that is not run."""
    with errors_reported():
        settings, cwd = _here()
        rows = hook_rows(settings, os.environ, cwd)
    if as_json:
        click.echo(dump([msgspec.to_builtins(row) for row in rows]))
        return
    if not settings.hooks.enabled:
        click.echo("hooks are off: hooks.enabled is false", err=True)
    if not rows:
        click.echo("no hooks; define one in the settings: [[hooks.PreToolUse]]", err=True)
    for row in rows:
        matcher = f" ({row.matcher})" if row.matcher else ""
        why = f" - skipped: {row.skipped_because}" if row.skipped_because else ""
        line = f"{row.event or 'file'}{matcher}: {row.name} [{row.kind}, {row.origin}]{why}"
        click.echo(one_line(line))


@hooks_command.command("test")
@click.argument("event")
@click.argument("given", metavar="[JSON]", required=False, default="{}")
@JSON
def test_command(event: str, given: str, as_json: bool) -> None:
    """Run the hooks of EVENT and print what each decides.

    JSON has the members of the event, such as {"tool_name": "run_shell_command", "tool_input":
    {"command": "ls"}}; tools have toolwire's names. Hooks of a project run only if approved.
    """
    with errors_reported():
        names = ALIASES.get(event, (event,))
        if names[0] not in EVENTS:
            raise UnknownName("hook event", event, (*EVENTS, *ALIASES))
        settings, cwd = _here()
        subject = read_subject(names[0], parse_object(given, "JSON"))
        approvals = approval_store(state_paths(os.environ).config)
        found = find_hooks(settings, os.environ, cwd)
        approved = [hook for hook in found.hooks if is_approved(hook, cwd, approvals)]
        with TemporaryDirectory(prefix="toolwire-") as folder:
            ran, notices, answer = asyncio.run(_tried(approved, subject, settings, cwd, folder))
    if as_json:
        rows = [{**msgspec.to_builtins(one), "type": "hook_ran"} for one in ran]
        click.echo(dump({"hooks": rows, "notices": notices, "answer": answer}))
        return
    for words in notices:
        click.echo(one_line(words), err=True)
    if not ran:
        click.echo("no hook matches")
    for one in ran:
        reason = f": {one.reason}" if one.reason else ""
        word = one.decision or "no decision"
        click.echo(one_line(f"{one.event} {one.name}: {word}{reason} ({one.seconds:.2f} s)"))
    if answer is not None:
        click.echo(one_line(dump(answer)))


async def _tried(
    hooks: list[Definition], subject: object, settings: Settings, cwd: Path, folder: str
) -> tuple[list[HookRan], list[str], object]:
    ran: list[HookRan] = []
    notices: list[str] = []

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, HookRan):
            ran.append(event)
        elif isinstance(event, Noticed):
            notices.append(event.message)

    session = HookSession(
        id="test",
        cwd=cwd,
        temp=Path(folder),
        environ=clean_environment(os.environ, known_secrets(), settings.tools.environment),
        seen={},
        emit=emit,
        mode=lambda: str(settings.approval_mode),
        messages=lambda: (),
    )
    answer = await tried(hooks, subject, session)
    return ran, notices, answer


def _here() -> tuple[Settings, Path]:
    cwd = config.current_folder()
    return config.load(os.environ, cwd), cwd


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a project brings and that needs approval."""

    name: str
    what: str
    """`MCP server`, `hook`, `skill` or `subagent`."""
    definition: str
    key: str
    digest: str
    answer: bool | None


@click.command("approve")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Everything that this project brings.")
@click.option("--no", "refuse", is_flag=True, help="Refuse them.")
@click.option("--list", "listed", is_flag=True, help="Only list them.")
@JSON
def approve_command(
    names: tuple[str, ...], every: bool, refuse: bool, listed: bool, as_json: bool
) -> None:
    """Approve MCP servers, hooks, skills and subagents that this project brings, as they are.

    The whole definition is shown first. What changes has to be approved again; for a hook, the
    files of the project that its command names belong to its definition.
    """
    with errors_reported():
        settings, cwd = _here()
        found = brought(settings, os.environ, cwd)
        if listed or as_json:
            _list(found, as_json=as_json)
            return
        if not found:
            raise ToolwireError(_nothing(settings))
        chosen = _chosen(found, names)
        waiting = [one for one in chosen if names or every or one.answer is None]
        if not names and not every and not can_ask():
            raise click.UsageError(f"name them, or --all: {', '.join(one.name for one in found)}")
        if not waiting:
            click.echo("nothing waits for approval", err=True)
        store = approval_store(state_paths(os.environ).config)
        for one in waiting:
            click.echo(one_line(f"{one.what} {one.name}: {one.definition}"), err=True)
            allowed = not refuse
            if not names and not every:
                allowed = agrees(f"Allow {one_line(one.name)} in this folder?")
            store.keep(cwd, one.key, one.digest, allowed=allowed)
            words = "is approved" if allowed else "is refused"
            click.echo(one_line(f"{one.name} {words} here"), err=True)


def _nothing(settings: Settings) -> str:
    words = "this project brings no MCP servers, hooks, skills or subagents to approve"
    return words if settings.trusted else f"{words}, or is not trusted: toolwire config trust"


def _list(found: list[Brought], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": one.name, "kind": one.what, "approved": one.answer is True} for one in found
        ]
        click.echo(dump(rows))
        return
    for one in found:
        state = {True: "approved", False: "refused", None: "waits for approval"}[one.answer]
        click.echo(one_line(f"{one.what} {one.name}: {state}"))


def _chosen(found: list[Brought], names: tuple[str, ...]) -> list[Brought]:
    for name in names:
        if all(one.name != name for one in found):
            raise UnknownName(
                "MCP server, hook or skill of this project", name, [x.name for x in found]
            )
    return [one for one in found if not names or one.name in names]


def brought(settings: Settings, environ: Mapping[str, str], cwd: Path) -> list[Brought]:
    """Everything that a project brings and that needs approval, with the answers so far."""
    store = approval_store(state_paths(environ).config)
    found = [*_servers(settings, environ, cwd), *_skills(settings, environ, cwd)]
    for hook in find_hooks(settings, environ, cwd).hooks:
        if not hook.project:
            continue
        digest = digest_of_hook(hook, cwd)
        shown = {
            name: value
            for name, value in msgspec.to_builtins(hook).items()
            if name not in ("headers", "project", "origin", "written", "program")
        }
        found.append(
            Brought(
                name=hook.shown,
                what="hook",
                definition=f"{hook.origin}: {dump(shown)}",
                key=hook.key,
                digest=digest,
                answer=store.answer(cwd, hook.key, digest),
            )
        )
    return [*found, *_agents(settings, environ, cwd)]


def _agents(settings: Settings, environ: Mapping[str, str], cwd: Path) -> list[Brought]:
    """Subagents of the project that do more than read."""
    from toolwire.app.subagents.catalog import approval_key, find_agents, needs_approval
    from toolwire.tools.registry import builtins

    store = approval_store(state_paths(environ).config)
    tools = builtins(settings.tools)
    return [
        Brought(
            name=one.name,
            what="subagent",
            definition=f"{one.file}: tools {', '.join(one.tools) or 'all'}; {one.prompt}",
            key=approval_key(one),
            digest=one.digest,
            answer=store.answer(cwd, approval_key(one), one.digest),
        )
        for one in find_agents(settings, environ, cwd)[0].values()
        if needs_approval(one, tools)
    ]


def _servers(settings: Settings, environ: Mapping[str, str], cwd: Path) -> list[Brought]:
    from toolwire.app.servers import NO_CHOICE
    from toolwire.mcp.entry import definition, shown

    if not are_configured(settings, cwd, NO_CHOICE):
        return []
    answers = approvals_of(environ)
    return [
        Brought(
            name=name,
            what="MCP server",
            definition=f"{each.origin}: {dump(shown(each.entry))}",
            key=f"mcp:{name}",
            digest=definition(each.entry),
            answer=answers.answer(cwd, name, each.entry),
        )
        for name, each in configured(settings, environ, cwd, _unread).items()
        if each.origin in ("project", ".mcp.json")
    ]


def _skills(settings: Settings, environ: Mapping[str, str], cwd: Path) -> list[Brought]:
    store = approval_store(state_paths(environ).config)
    return [
        Brought(
            name=skill.name,
            what="skill",
            definition=f"{skill.folder}: {skill.description}",
            key=skill.key,
            digest=skill.digest,
            answer=store.answer(cwd, skill.key, skill.digest),
        )
        for skill in find_skills(settings, environ, cwd)[0].values()
        if skill.project
    ]


def _unread(words: str) -> None:
    del words
