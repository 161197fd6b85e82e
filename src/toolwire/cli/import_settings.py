"""`toolwire import`: take over the settings of another program."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from toolwire import config
from toolwire.app.model_choice import full_name
from toolwire.app.toolbox import RULES, store_rule
from toolwire.cli.config import trust_kept
from toolwire.cli.mcp_servers import errors_reported
from toolwire.cli.terminal import agrees, echo_table
from toolwire.config import edit, layers
from toolwire.config.layers import ConfigFiles, config_files
from toolwire.config.schema import rendered
from toolwire.errors import BadInput, ToolwireError
from toolwire.mcp import imports
from toolwire.mcp.entry import project_entry, read_entry
from toolwire.settings_import.plan import ImportedMember, Plan
from toolwire.settings_import.programs import PROGRAMS, OtherProgram, Source, codex_model
from toolwire.settings_import.rules import gemini_policies
from toolwire.storage.paths import state_paths
from toolwire.terminal_text import one_line

_JOINED = ("hooks.from", "context.include")
"""Lists to which an import adds."""


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one program in one file."""

    program: str
    file: Path
    source: Source
    document: Mapping[str, Any]


@click.command("import")
@click.option(
    "--from",
    "program",
    type=click.Choice(tuple(PROGRAMS)),
    help="Program; by default all that are found.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be taken over; change nothing.")
@click.option("--project", is_flag=True, help="Take over the settings of this project.")
@click.option("--replace", is_flag=True, help="Replace settings of yours that differ.")
def import_command(program: str | None, dry_run: bool, project: bool, replace: bool) -> None:
    """Take over the settings of gemini-cli, Claude Code, codex, opencode or KiloCode.

    Prints what is taken and what is not, with the reason. Keys, tokens, trust and modes that ask
    nothing are never taken over.
    """
    with errors_reported():
        cwd = config.current_folder()
        found = _read_all((program,) if program else tuple(PROGRAMS), cwd, project=project)
        texts = _text_folders(program, cwd)
        if not found and not texts:
            raise ToolwireError(_nothing_found(program, project=project))
        files = config_files(os.environ, cwd)
        target = files.project if project else files.user
        for each in found:
            plan = _planned(each, cwd, project=project)
            _named(plan)
            _ask(plan, dry_run=dry_run)
            _print(f"{PROGRAMS[each.program].title}: {one_line(str(each.file))}", plan.entries)
            _store(plan, files, target, cwd, dry_run=dry_run, replace=replace)
        for title, folder in texts if project else ():
            plan = Plan(shared=True, project=str(cwd.resolve()))
            plan.take(folder, "context.include", [f"{folder}/*.md"])
            _print(f"{title}: {cwd / folder}", plan.entries)
            _store(plan, files, target, cwd, dry_run=dry_run, replace=replace)
        if dry_run:
            click.echo("nothing was changed (--dry-run)", err=True)


def _read_all(programs: tuple[str, ...], cwd: Path, *, project: bool) -> list[_Found]:
    """Every file that exists, read before anything is written."""
    return [
        _Found(program=name, file=file, source=source, document=_document(file))
        for name in programs
        for source in PROGRAMS[name].sources
        if source.path.startswith("~/") != project
        for file in _files(source, cwd)
    ]


def _files(source: Source, cwd: Path) -> list[Path]:
    home = Path(os.environ.get("HOME") or Path.home())
    path = source.path
    folder, name = (home, path[2:]) if path.startswith("~/") else (cwd, path)
    return sorted(file for file in folder.glob(name) if file.is_file())


def _document(file: Path) -> Mapping[str, Any]:
    try:
        content = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}") from error
    return imports.parse(content, str(file))


def _text_folders(program: str | None, cwd: Path) -> list[tuple[str, str]]:
    """Folders of texts that other programs add to every prompt, with the program's title."""
    chosen: tuple[OtherProgram, ...] = (PROGRAMS[program],) if program else tuple(PROGRAMS.values())
    return [
        (one.title, folder)
        for one in chosen
        for folder in one.texts
        if any((cwd / folder).glob("*.md"))
    ]


def _nothing_found(program: str | None, *, project: bool) -> str:
    chosen = (program,) if program else tuple(PROGRAMS)
    paths = [
        source.path
        for name in chosen
        for source in PROGRAMS[name].sources
        if source.path.startswith("~/") != project
    ]
    where = ", ".join(paths) if paths else "a project"
    other = "" if project else "; for settings of this project: --project"
    return f"no settings of other programs were found ({where}){other}"


def _planned(each: _Found, cwd: Path, *, project: bool) -> Plan:
    plan = Plan(
        shared=project and not each.source.own, project=str(cwd.resolve()) if project else ""
    )
    program = each.source.like or each.program
    match each.source.kind:
        case "policies":
            gemini_policies(plan, each.document, each.file.name)
        case "servers":
            plan.take_servers(program, each.document, cwd)
        case "settings":
            if program == "codex":
                codex_model(plan, each.document)
            PROGRAMS[program].reader.read(plan, each.document)
            plan.take_servers(program, each.document, cwd)
    return plan


def _ask(plan: Plan, *, dry_run: bool) -> None:
    """Tools that run without a question there do so here if the user agrees."""
    for key, rule in plan.asked:
        question = one_line(f"Allow {rule.tool} of the MCP server {rule.server} without asking?")
        if not dry_run and agrees(question):
            plan.rule(key, rule)
        else:
            plan.leave(key, "answer when you are asked")


def _named(plan: Plan) -> None:
    """Short names of models become full ones; a model that is not known is not taken."""
    given = cast(str, plan.settings.pop("default_model", ""))
    if not given:
        return
    provider, _, model = given.partition("/")
    settings = config.resolve(os.environ, config.current_folder()).settings
    name, why = given, ""
    try:
        if provider not in plan.providers:
            settings.provider(provider)
        if provider == "anthropic":
            name = full_name(model, settings, os.environ)
    except ToolwireError as error:
        why = str(error)
    if not why:
        plan.settings["default_model"] = name
    at = next(at for at, one in enumerate(plan.entries) if one.words.startswith("default_model ="))
    plan.entries[at] = msgspec.structs.replace(
        plan.entries[at],
        state="not taken" if why else "mapped",
        words=why or f"default_model = {rendered(name)}",
    )


def _print(heading: str, entries: list[ImportedMember]) -> None:
    click.echo(one_line(heading))
    if entries:
        echo_table(("setting", "", "here"), ((one.key, one.state, one.words) for one in entries))
    click.echo()


def _store(
    plan: Plan, files: ConfigFiles, target: Path, cwd: Path, *, dry_run: bool, replace: bool
) -> None:
    """Writes what differs; what the user has set otherwise stays without `replace`."""
    document = layers.parse(target, layers.read_text(target) or "")
    tables = {
        **{("mcp_servers", name): table for name, table in plan.servers.items()},
        **{("providers", name): table for name, table in plan.providers.items()},
    }
    with trust_kept():
        for path, table in tables.items():
            if path[0] == "mcp_servers":
                (project_entry if plan.project else read_entry)(path[1], table)
            if _wanted(document, path, table, replace=replace) and not dry_run:
                edit.set_table(files, target, path, table)
        for name, value in plan.settings.items():
            path, replaced = tuple(name.split(".")), replace
            if name in _JOINED:
                value, replaced = _joined(document, path, value), True
            if _wanted(document, path, value, replace=replaced) and not dry_run:
                text = value if isinstance(value, str) else rendered(value)
                edit.set_value(files, target, name, text, cwd)
    for rule in () if dry_run else plan.rules:
        store_rule(state_paths(os.environ).config / RULES, rule, "# imported")


def _joined(document: Mapping[str, Any], path: tuple[str, ...], value: list[str]) -> list[str]:
    """The members of a list that is there, and these."""
    return list(dict.fromkeys((*(_there(document, path) or ()), *value)))


def _there(document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    there: Any = document
    for name in path:
        there = cast(Mapping[str, Any], there).get(name) if isinstance(there, dict) else None
    return there


def _wanted(
    document: Mapping[str, Any], path: tuple[str, ...], value: Any, *, replace: bool
) -> bool:
    """Whether to write it: not if it is there, and a different one only with `replace`."""
    there = _there(document, path)
    if there is None:
        return True
    if there == value:
        return False
    if not replace:
        click.echo(f"{'.'.join(path)}: yours stays; --replace takes theirs", err=True)
    return replace
