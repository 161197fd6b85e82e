"""The tree of commands. Each command's module is loaded when the command is called."""

import signal
import sys
import threading
from importlib import import_module

import click

from toolwire import __version__
from toolwire.cli import OWN, is_headless
from toolwire.errors import nearest_name
from toolwire.tui.early_prompt import EarlyPrompt

_COMMANDS = {
    "chat": "Chat with a model that works on the files in this folder.",
    "run": "Run one prompt without asking questions, and print the answer.",
    "decode": "Decode a vendor's response body to JSON.",
    "convert": "Convert a request body from one wire format to another.",
    "schema": "Convert a JSON Schema to what a wire format supports.",
    "providers": "List the providers, or show one in detail.",
    "tools": "List the tools, or call one as the agent would.",
    "serve": "Serve every client format in front of any model (the gateway).",
    "keys": "Create, list and revoke keys of the gateway.",
    "usage": "Print requests, tokens and cost of the gateway.",
    "acp": "Serve the agent to an editor (Agent Client Protocol).",
    "mcp": "List, add, test and call MCP servers; serve the tools.",
    "hooks": "List the hooks, and run those of an event.",
    "skills": "List, show and begin skills.",
    "commands": "List and show custom slash commands.",
    "agents": "List the subagents.",
    "approve": "Approve what this project brings: MCP servers, hooks, skills, subagents.",
    "batch": "Run many tasks, resume them, and report the results.",
    "sessions": "List, show, export, fork, restore and delete sessions.",
    "models": "List the known models.",
    "login": "Store a provider's key, or log in to it.",
    "logout": "Remove stored credentials.",
    "config": "Show and change the settings; trust a folder.",
    "import": "Take over the settings of another program.",
    "doctor": "Report what is configured and reachable, and how to fix the rest.",
    "completion": "Print the completion script of bash, zsh or fish.",
    "simulate": "Serve a scripted model over HTTP in every wire format.",
}
_MODULES = {
    "schema": "convert",
    "models": "providers",
    "logout": "login",
    "usage": "keys",
    "import": "import_settings",
    "approve": "hooks",
    "commands": "custom_commands",
}
"""Modules of commands that share one; others are named like their command."""


def _loaded(name: str, early: EarlyPrompt | None) -> click.Command:
    """Returns a command; Ctrl-C while its modules load ends the process, without click's words."""
    in_main = threading.current_thread() is threading.main_thread()
    end = early.end_process if early is not None else signal.SIG_DFL
    before = signal.signal(signal.SIGINT, end) if in_main else None
    try:
        module = import_module(f"toolwire.cli.{_MODULES.get(name, name)}")
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
    return getattr(module, f"{name}_command")


def with_command(args: list[str], *, at_terminal: bool) -> list[str]:
    """Returns the arguments with the command that they mean, if they name none.

    Nothing means chat. Text and options are a prompt: for chat at a terminal, else, or with an
    option that only run has, for run. A single word that is nearly a command, or that more words
    follow, is a mistyped command.
    """
    if not args:
        return ["chat"]
    first = args[0]
    if first == "help":
        return [*args[1:2], "--help"]
    if first in _COMMANDS or first in OWN:
        return args
    if not first.startswith("-") and not any(letter.isspace() for letter in first):
        _check_word(first, args[1:])
    return ["run" if is_headless(args) or not at_terminal else "chat", *args]


def _check_word(word: str, others: list[str]) -> None:
    near = nearest_name(word.lower(), _COMMANDS, least=0.6)
    if near:
        raise click.UsageError(
            f'unknown command "{word}"; did you mean "{near}"? As a prompt: toolwire -p {word}'
        )
    if others and not others[0].startswith("-"):
        raise click.UsageError(
            f'unknown command "{word}"; put a prompt in quotes: toolwire "{word} {others[0]} …"'
        )


class _Commands(click.Group):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            args = with_command(args, at_terminal=sys.stdin.isatty() and sys.stdout.isatty())
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return _loaded(cmd_name, ctx.find_object(EarlyPrompt))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] [PROMPT]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="toolwire %(version)s")
def toolwire() -> None:
    """One exact tool-calling runtime for every model. Without a command, starts a chat.

    With a PROMPT, the chat begins with it; if standard output is not a terminal, or with -p PROMPT,
    it is run without questions, as with the command run. The options are those of chat and run.

    decode, convert and schema need no network and no configuration. Dialects: openai-chat,
    openai-responses, anthropic-messages, gemini, code-assist.
    """


def run_command_line(early: EarlyPrompt | None = None) -> int:
    """Runs the command of this process's arguments; returns the exit code."""
    try:
        code: object = toolwire.main(standalone_mode=False, obj=early)
    except click.UsageError as error:
        context = error.ctx
        if context is not None:
            help_ = f"Try '{context.command_path} {context.help_option_names[-1]}' for help."
            click.echo(f"{context.get_usage()}\n{help_}\n", err=True)
        click.echo(f"toolwire: {error.format_message()}", err=True)
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"toolwire: {error.format_message()}", err=True)
        return error.exit_code
    except click.Abort:
        click.echo("toolwire: cancelled", err=True)
        return 130
    return code if isinstance(code, int) else 0
