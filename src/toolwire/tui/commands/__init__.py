"""Slash commands of the terminal app: one table for the menu, `/help` and the docs."""

from collections.abc import Awaitable, Callable
from pkgutil import get_data
from typing import TYPE_CHECKING

import msgspec

from toolwire.errors import ToolwireError, UnknownName
from toolwire.prompted import ToolStyle
from toolwire.tui.commands.background import agents, shells
from toolwire.tui.commands.looks import SCREENS, THEME_NAMES, screen, theme, vim
from toolwire.tui.commands.machine import bug, doctor, login, status
from toolwire.tui.commands.model import (
    EFFORTS,
    effort,
    mode,
    mode_names,
    model,
    model_names,
    style,
    tools,
)
from toolwire.tui.commands.permissions import permissions
from toolwire.tui.commands.restore import restore, undo
from toolwire.tui.commands.review import copy, diff, plan, transcript, verbose
from toolwire.tui.commands.servers import mcp
from toolwire.tui.commands.sessions import export, fork, new, rewind, sessions
from toolwire.tui.commands.settings import memory, settings
from toolwire.tui.commands.usage import compact, context, usage

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

__all__ = [
    "COMMANDS",
    "PREFIXES",
    "SlashCommand",
    "is_command",
    "known",
    "listed",
    "names",
    "run",
]


class SlashCommand(msgspec.Struct, frozen=True):
    """A command: its names, what it does, and what may follow it."""

    name: str
    words: str
    run: "Callable[[TerminalApp, str], Awaitable[None]]"
    aliases: tuple[str, ...] = ()
    choices: "Callable[[TerminalApp], tuple[str, ...]] | None" = None
    waits: bool = False
    """Whether it waits for the end of a turn that is under way."""


async def _help(app: "TerminalApp", argument: str) -> None:
    del argument
    wide = max(len(_title(one)) for one in COMMANDS)
    for one in COMMANDS:
        app.say(f"{_title(one):<{wide}}  {one.words}")
    app.say("")
    from toolwire.tui.keys import listed as keys_listed  # noqa: PLC0415 - keys run commands

    for keys, words in (*keys_listed(app.start.settings.keys), *PREFIXES):
        app.say(f"{keys:<{wide}}  {words}")


def _title(command: SlashCommand) -> str:
    return " ".join(f"/{name}" for name in (command.name, *command.aliases))


async def _init(app: "TerminalApp", argument: str) -> None:
    del argument
    text = (get_data("toolwire.tui", "init.md") or b"").decode("utf-8")
    app.send(text.strip())


async def _editor(app: "TerminalApp", argument: str) -> None:
    del argument
    await app.write_in_editor()


async def _quit(app: "TerminalApp", argument: str) -> None:
    del argument
    app.quit()


COMMANDS = (
    SlashCommand("help", "keys and commands", _help, ("?",)),
    SlashCommand("model", "show or change the model", model, choices=model_names, waits=True),
    SlashCommand(
        "style",
        "show or change how tools are described to the model",
        style,
        choices=lambda app: tuple(map(str, ToolStyle)),
        waits=True,
    ),
    SlashCommand(
        "effort",
        "show or change how much the model reasons",
        effort,
        choices=lambda app: ("auto", *EFFORTS),
    ),
    SlashCommand(
        "mode",
        "show or change which calls need a yes",
        mode,
        choices=lambda app: mode_names(),
    ),
    SlashCommand("permissions", "the rules in force: add, remove, try a command", permissions),
    SlashCommand("sessions", "go on with another session", sessions, ("resume",), waits=True),
    SlashCommand("new", "start a new session", new, ("clear",), waits=True),
    SlashCommand("rewind", "go back to an earlier turn, in a copy", rewind, waits=True),
    SlashCommand("fork", "go on in a copy; /fork N: up to turn N", fork, waits=True),
    SlashCommand("restore", "files and conversation as before a turn", restore, waits=True),
    SlashCommand("undo", "the files as before the last turn that changed them", undo, waits=True),
    SlashCommand("export", "write the session to a file: .md, .html or .json", export),
    SlashCommand(
        "compact",
        "shorten the conversation now; /compact WORDS: what to keep",
        compact,
        ("compress",),
        waits=True,
    ),
    SlashCommand("context", "what fills the model's window, and what the cache reused", context),
    SlashCommand("usage", "tokens, cost and time so far", usage, ("cost", "stats")),
    SlashCommand("diff", "all changes of this session, by file and by turn; u undoes", diff),
    SlashCommand("transcript", "the whole session, to search, fold and copy", transcript),
    SlashCommand("copy", "copy the last answer; /copy N, /copy code: the last code", copy),
    SlashCommand("plan", "the model's list of steps", plan, ("todo",)),
    SlashCommand("memory", "the notes in use with their files; edit one", memory),
    SlashCommand("init", "let the model write a first AGENTS.md", _init, waits=True),
    SlashCommand("tools", "the tools, and what happens when one is called", tools),
    SlashCommand("mcp", "MCP servers: state, tools, log-in, restart, last error", mcp),
    SlashCommand("agents", "subagents: state, cost, what they did", agents),
    SlashCommand("shells", "background commands: output, stop", shells),
    SlashCommand("settings", "every setting with its origin; change one", settings),
    SlashCommand(
        "verbose",
        "results and thoughts whole, on or off; saved",
        verbose,
        choices=lambda app: ("on", "off"),
    ),
    SlashCommand("screen", "inline or full screen; saved", screen, choices=lambda app: SCREENS),
    SlashCommand("theme", "colours; saved", theme, choices=lambda app: THEME_NAMES),
    SlashCommand("vim", "vi keys on or off; saved", vim, choices=lambda app: ("on", "off")),
    SlashCommand("status", "what is in use: session, model, style, mode, cost", status),
    SlashCommand("login", "store a key, or log in with a vendor", login, waits=True),
    SlashCommand("doctor", "what is configured and reachable", doctor),
    SlashCommand("bug", "write a report without secrets", bug),
    SlashCommand("editor", "write in your editor", _editor),
    SlashCommand("quit", "leave", _quit, ("exit",)),
)
PREFIXES = (
    ("@path", "attach a file, a folder, or a part: @path:10-40"),
    ("!command", "run a command of your own; the model reads its output with your next message"),
    ("#words", "remember a note"),
)
_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def known(name: str) -> SlashCommand | None:
    """The command of a name or alias."""
    return _BY_NAME.get(name)


def names() -> tuple[str, ...]:
    """Every name and alias."""
    return tuple(_BY_NAME)


def listed() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Names with what they do and their aliases, for the menu."""
    return {command.name: (command.words, command.aliases) for command in COMMANDS}


def is_command(line: str) -> bool:
    """Whether a line is a command, or looks like one that is misspelt; a path is neither."""
    if not line.startswith("/"):
        return False
    name, space, _ = line[1:].strip().partition(" ")
    return known(name) is not None or (not space and name.replace("-", "").isalpha())


def runs_meanwhile(line: str) -> bool:
    """Whether a line is a command that need not wait for the end of the turn."""
    command = known(line[1:].strip().partition(" ")[0]) if line.startswith("/") else None
    return command is not None and not command.waits


async def run(app: "TerminalApp", line: str) -> None:
    """Runs a line that begins with `/`; an error is one line."""
    name, _, argument = line[1:].strip().partition(" ")
    command = known(name)
    try:
        if command is None:
            raise UnknownName("command", f"/{name}", tuple(f"/{one}" for one in _BY_NAME))
        with app.screen.command():
            await command.run(app, argument.strip())
    except ToolwireError as error:
        app.say(f"error: {error}", "failed")
