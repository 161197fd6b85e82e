"""`toolwire agents`: the subagents that sessions in this folder offer."""

import os
from pathlib import Path

import click
import msgspec

from toolwire import config
from toolwire.app.subagents.catalog import agent_rows, find_agents
from toolwire.cli.mcp_servers import JSON, errors_reported
from toolwire.cli.terminal import echo_table
from toolwire.terminal_text import one_line
from toolwire.tools.registry import builtins
from toolwire.wire.json_access import dump

_WORDS = 60


@click.group("agents")
def agents_command() -> None:
    """List the subagents."""


@agents_command.command("list")
@JSON
def list_command(as_json: bool) -> None:
    """List every subagent, with the reason of each that is not offered."""
    with errors_reported():
        cwd = Path.cwd()
        settings = config.load(os.environ, cwd)
        rows = agent_rows(settings, os.environ, cwd, builtins(settings.tools))
        problems = find_agents(settings, os.environ, cwd)[1]
    for words in problems:
        click.echo(f"toolwire: {one_line(words)}", err=True)
    if not settings.agents.enabled:
        click.echo("toolwire: subagents are off: agents.enabled is false", err=True)
    if as_json:
        click.echo(dump([msgspec.to_builtins(row) for row in rows]))
        return
    cells = (
        (
            one_line(row.name),
            row.origin,
            one_line(", ".join(row.tools))[:_WORDS] or "all",
            one_line(row.skipped_because or row.description)[:_WORDS],
        )
        for row in rows
    )
    echo_table(("NAME", "ORIGIN", "TOOLS", "ABOUT"), cells)
