"""The tree of commands. Each command's module is loaded when the command is called."""

import signal
import threading
from importlib import import_module

import click

from toolwire import __version__

_COMMANDS = {
    "chat": "Chat with a model that works on the files in this folder.",
    "run": "Run one prompt without asking questions, and print the answer.",
    "decode": "Decode a vendor's response body to JSON.",
    "convert": "Convert a request body from one wire format to another.",
    "schema": "Convert a JSON Schema to what a wire format supports.",
    "providers": "List the providers, or show one in detail.",
    "tools": "List the tools, or call one as the agent would.",
    "mcp": "Serve the tools over the Model Context Protocol.",
    "sessions": "List, show, export, fork and delete sessions.",
    "models": "List the known models.",
    "login": "Store a provider's key, or log in to it.",
    "logout": "Remove stored credentials.",
    "config": "Show and change the settings; trust a folder.",
    "doctor": "Report what is configured and reachable, and how to fix the rest.",
    "simulate": "Serve a scripted model over HTTP in every wire format.",
}
_MODULES = {
    "schema": "convert",
    "models": "providers",
    "logout": "login",
}
"""Modules of commands that share one; others are named like their command."""


def _loaded(name: str) -> click.Command:
    """Returns a command; Ctrl-C while its modules load ends the process, without click's words."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL) if in_main else None
    try:
        module = import_module(f"toolwire.cli.{_MODULES.get(name, name)}")
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
    return getattr(module, f"{name}_command")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return _loaded(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, invoke_without_command=True)
@click.version_option(__version__, message="toolwire %(version)s")
@click.pass_context
def toolwire(context: click.Context) -> None:
    """One exact tool-calling runtime for every model. Without a command, starts a chat.

    decode, convert and schema need no network and no configuration. Dialects: openai-chat,
    openai-responses, anthropic-messages, gemini, code-assist.
    """
    if context.invoked_subcommand is None:
        _loaded("chat").main([], prog_name="toolwire")
