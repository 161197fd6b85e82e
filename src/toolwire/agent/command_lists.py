"""Command prefixes of the tool lists, `run_shell_command(git)`: what they leave of the shell."""

import msgspec

from toolwire.agent.commands import read
from toolwire.agent.commands.values import Command
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry, plain, prefixes
from toolwire.tools.spec import ToolContext
from toolwire.wire.reading import dump

SHELL = "run_shell_command"


def limited(registry: Registry, core: tuple[str, ...], exclude: tuple[str, ...]) -> Registry:
    """The same tools; the shell complains, in gemini-cli's words, of what the lists forbid."""
    allowed = prefixes(core, SHELL) or ()
    blocked = prefixes((entry for entry in exclude if "(" in entry), SHELL) or ()
    if not allowed and not blocked:
        return registry
    shell = registry.get(plain(SHELL))
    if shell is None:
        return registry
    inner = shell.check

    def check(arguments: JsonObject, context: ToolContext) -> str:
        command = str(arguments.get("command", ""))
        return complaint(command, allowed, blocked) or inner(arguments, context)

    narrow = msgspec.structs.replace(shell, check=check)
    return Registry(narrow if tool is shell else tool for tool in registry)


def complaint(command: str, allowed: tuple[str, ...], blocked: tuple[str, ...]) -> str:
    """Why a command may not run; every command in it is looked at, also those inside others."""
    if not command.strip():
        return ""
    script = read(command)
    parts = [one for one in script.commands if not one.transparent]
    for part in parts:
        if any(_meant(part).startswith(prefix) for prefix in blocked):
            return f"Command '{_one_line(part.source)}' is blocked by configuration"
    if not allowed:
        return ""
    outside = [
        _one_line(part.source)
        for part in parts
        if not any(_begins(_meant(part), prefix) for prefix in allowed)
    ]
    if not parts or (script.doubts and not outside):
        outside = [_one_line(command)]
    if outside:
        named = ", ".join(dump(part) for part in outside)
        return f"Command(s) not in the allowed commands list. Disallowed commands: {named}"
    return ""


def _meant(command: Command) -> str:
    """The words without quotes and without assignments before them: what the shell will run."""
    return " ".join(word.text for word in command.words)


def _begins(command: str, prefix: str) -> bool:
    return command == prefix or command.startswith(f"{prefix} ")


def _one_line(text: str) -> str:
    return " ".join(text.split())
