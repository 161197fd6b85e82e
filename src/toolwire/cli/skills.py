"""`toolwire skills`: list, show and begin skills."""

import os
from pathlib import Path
from typing import Any

import click

from toolwire import config
from toolwire.app.extensions import find_skills
from toolwire.cli.mcp_servers import JSON, errors_reported
from toolwire.errors import UnknownName
from toolwire.extensions.skills import Skill, create_skill
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import approval_store
from toolwire.terminal_text import one_line, terminal_text
from toolwire.wire.json_access import dump


@click.group("skills")
def skills_command() -> None:
    """List, show and begin skills."""


def _found() -> tuple[dict[str, Skill], list[str], Path]:
    cwd = config.current_folder()
    return *find_skills(config.load(os.environ, cwd), os.environ, cwd), cwd


@skills_command.command("list")
@JSON
def list_command(as_json: bool) -> None:
    """List the skills that a session here offers."""
    with errors_reported():
        found, problems, cwd = _found()
        rows = [_row(skill, cwd) for skill in found.values()]
    for words in problems:
        click.echo(f"toolwire: {one_line(words)}", err=True)
    if as_json:
        click.echo(dump(rows))
        return
    if not rows:
        click.echo("no skills; begin one: toolwire skills new NAME", err=True)
    for row in rows:
        click.echo(one_line(f"{row['name']}: {row['description']} ({row['origin']})"))


def _row(skill: Skill, cwd: Path) -> dict[str, Any]:
    store = approval_store(state_paths(os.environ).config)
    return {
        "name": skill.name,
        "description": skill.description,
        "folder": str(skill.folder),
        "origin": skill.origin,
        "approved": not skill.project or store.answer(cwd, skill.key, skill.digest) is True,
        "allowed_tools": skill.allowed_tools,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "metadata": dict(skill.metadata),
    }


@skills_command.command("show")
@click.argument("name")
def show_command(name: str) -> None:
    """Print a skill: what is known of it, and its instructions."""
    with errors_reported():
        found, _, cwd = _found()
        if name not in found:
            raise UnknownName("skill", name, tuple(found))
        row = _row(found[name], cwd)
        body = found[name].body()
    for key, value in row.items():
        if value not in ("", {}):
            click.echo(one_line(f"{key}: {value if isinstance(value, str) else dump(value)}"))
    click.echo(f"\n{terminal_text(body)}")


@skills_command.command("new")
@click.argument("name")
@click.option("--user", is_flag=True, help="For all projects, in the folder of your settings.")
def new_command(name: str, user: bool) -> None:
    """Begin a skill of this project, in .agents/skills, which other programs read too."""
    with errors_reported():
        own = state_paths(os.environ).config / "skills"
        folder = own if user else config.current_folder() / ".agents" / "skills"
        file = create_skill(folder, name)
    click.echo(str(file))
