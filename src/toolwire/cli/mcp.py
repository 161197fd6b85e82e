"""`toolwire mcp`: the MCP servers of this user and folder, and toolwire as one."""

from importlib import import_module

import click

_COMMANDS = {
    "list": ("mcp_servers", "List the servers with what they offer."),
    "get": ("mcp_servers", "Show the settings of a server."),
    "test": ("mcp_servers", "Connect to a server and show what it offers."),
    "add": ("mcp_edit", "Add a server to the settings."),
    "add-json": ("mcp_edit", "Add a server given as JSON."),
    "remove": ("mcp_edit", "Remove a server from the settings."),
    "enable": ("mcp_edit", "Use a server again."),
    "disable": ("mcp_edit", "Stop using a server, without removing it."),
    "approve": ("mcp_servers", "Let servers of this project start."),
    "login": ("mcp_login", "Log in at a server with the browser."),
    "logout": ("mcp_login", "Forget the login at a server."),
    "call": ("mcp_call", "Call one tool of a server."),
    "import": ("mcp_edit", "Take over the servers of another program."),
    "serve": ("mcp_serve", "Serve the tools over the Model Context Protocol."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"toolwire.cli.{_COMMANDS[cmd_name][0]}")
        return getattr(module, f"{cmd_name.replace('-', '_')}_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])


@click.group("mcp", cls=_Commands)
def mcp_command() -> None:
    """List, add, test and call MCP servers; serve the tools as one."""
