"""`toolwire mcp`: MCP servers, and toolwire as one."""

import click

from toolwire.cli.mcp_serve import serve_command


@click.group("mcp")
def mcp_command() -> None:
    """Serve the tools over the Model Context Protocol."""


mcp_command.add_command(serve_command)
