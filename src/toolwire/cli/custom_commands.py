"""`toolwire commands`: custom slash commands of files, and prompts of MCP servers."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from toolwire import config
from toolwire.app.servers import NO_CHOICE, Access, are_configured, configured, open_servers
from toolwire.app.user_input import CommandFiles
from toolwire.cli.mcp_servers import JSON, errors_reported
from toolwire.config import Settings
from toolwire.errors import UnknownName
from toolwire.extensions.commands import CustomCommand, preview
from toolwire.terminal_text import one_line, terminal_text
from toolwire.wire.json_access import dump


@click.group("commands")
def commands_command() -> None:
    """List and show custom slash commands."""


@commands_command.command("list")
@JSON
def list_command(as_json: bool) -> None:
    """List the commands that sessions here know, and prompts of MCP servers as last seen."""
    from toolwire.tui.commands import names

    with errors_reported():
        settings, cwd = _here()
        # The names that a chat has for commands of its own.
        found = CommandFiles(settings, os.environ, cwd, names())
        rows = [_row(one) for one in found.custom.values()]
        rows += _prompts(settings, os.environ, cwd)
    for words in found.problems:
        click.echo(f"toolwire: {one_line(words)}", err=True)
    if as_json:
        click.echo(dump(rows))
        return
    if not rows:
        click.echo("no commands; write one: .toolwire/commands/NAME.md", err=True)
    for row in rows:
        hint = f" {row['argument_hint']}" if row["argument_hint"] else ""
        click.echo(one_line(f"/{row['name']}{hint}: {row['description']} ({row['origin']})"))


def _row(command: CustomCommand) -> dict[str, Any]:
    return {
        "name": command.name,
        "description": command.description,
        "argument_hint": command.fields.get("argument-hint", ""),
        "origin": command.origin,
        "file": str(command.file),
        "model": command.model,
        "allowed_tools": command.allowed_tools,
    }


def _prompts(settings: Settings, environ: Mapping[str, str], cwd: Path) -> list[dict[str, Any]]:
    """Prompts of servers, as they were when they last answered; nothing is started."""
    if not are_configured(settings, cwd, NO_CHOICE):
        return []
    known = configured(settings, environ, cwd, _unread)
    entries = {name: each.entry for name, each in known.items() if each.approved}
    servers = open_servers(entries, settings, Access(environ=environ, cwd=cwd), _unread)
    return [
        {
            "name": prompt.name,
            "description": prompt.description or prompt.title,
            "argument_hint": " ".join(f'--{each.name}="…"' for each in prompt.arguments),
            "origin": f"mcp:{server.name}",
            "file": "",
            "model": "",
            "allowed_tools": None,
        }
        for server, prompt in servers.prompts()
    ]


def _unread(words: str) -> None:
    del words


@commands_command.command("show", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def show_command(name: str, args: tuple[str, ...]) -> None:
    """Print the prompt that /NAME ARGS would send; its shell parts are not run."""
    with errors_reported():
        settings, cwd = _here()
        found = CommandFiles(settings, os.environ, cwd)
        command = found.named(name.removeprefix("/"))
        if command is None:
            raise UnknownName("command", name, tuple(found.custom))
    click.echo(terminal_text(preview(command, " ".join(args))))


def _here() -> tuple[Settings, Path]:
    cwd = config.current_folder()
    return config.load(os.environ, cwd), cwd
