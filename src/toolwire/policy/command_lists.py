"""Command prefixes in tool lists, such as `run_shell_command(git)`."""

import msgspec

from toolwire.policy.shell import Unproven, prove
from toolwire.policy.shell.commands import inner_commands
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry, plain, prefixes
from toolwire.tools.spec import ToolContext
from toolwire.wire.json_access import dump

SHELL = "run_shell_command"
_NOT_LISTED = "Command(s) not in the allowed commands list. Disallowed commands:"


def limited(registry: Registry, core: tuple[str, ...], exclude: tuple[str, ...]) -> Registry:
    """The tools; the shell rejects commands that the lists forbid, with gemini-cli's messages."""
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
    """Why a command may not run; checks every command in it, nested ones included."""
    if not command.strip():
        return ""
    script = prove(command)
    if isinstance(script, Unproven):
        # A list of what is blocked is a rule too, so the ruling asks; a list of what is allowed
        # allows nothing that is not certain.
        named = dump(_one_line(command))
        return f"{_NOT_LISTED} {named} ({script.reason})" if allowed else ""
    parts = [
        (" ".join(words), _one_line(part.source))
        for part in script.commands()
        if part.words
        for words in inner_commands(tuple(word.text for word in part.words))
    ]
    for meant, source in parts:
        if any(meant.startswith(prefix) for prefix in blocked):
            return f"Command '{source}' is blocked by configuration"
    if not allowed:
        return ""
    outside = [
        source for meant, source in parts if not any(_begins(meant, prefix) for prefix in allowed)
    ]
    if not parts:
        outside = [_one_line(command)]
    if outside:
        named = ", ".join(dump(part) for part in outside)
        return f"{_NOT_LISTED} {named}"
    return ""


def _begins(command: str, prefix: str) -> bool:
    return command == prefix or command.startswith(f"{prefix} ")


def _one_line(text: str) -> str:
    return " ".join(text.split())
