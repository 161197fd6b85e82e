"""The tools that a command allows in its turn: fewer than the session has, never more."""

import re
from collections.abc import Iterable

import msgspec

from toolwire.agent.hooks import Deny, HookedCall, Hooks
from toolwire.extensions.hooks.vocabulary import OUR_NAMES
from toolwire.policy.shell import Unproven, prove
from toolwire.tools.registry import plain

_ENTRY = re.compile(r"([\w.*-]+)(?:\(([^)]*)\))?")
_SHELL = "run_shell_command"


class AllowedTool(msgspec.Struct, frozen=True):
    """One entry: a tool, and how commands of the shell have to begin."""

    name: str
    prefix: tuple[str, ...] = ()


def read_entries(text: str) -> tuple[AllowedTool, ...]:
    """The entries of `allowed-tools`: `Bash(git add:*), Read`, in our names or Claude Code's."""
    found: list[AllowedTool] = []
    for name, inside in _ENTRY.findall(text):
        ours = OUR_NAMES.get(name, plain(name))
        begins = str(inside).replace(":*", " ").replace("*", " ") if ours == _SHELL else ""
        found.append(AllowedTool(ours, tuple(begins.split())))
    return tuple(found)


class OnlyTools(Hooks):
    """Denies calls of other tools for one turn."""

    def __init__(self, entries: Iterable[AllowedTool], who: str) -> None:
        self._entries = tuple(entries)
        self._who = who

    def offers(self, name: str, server: str = "") -> bool:
        """Whether a tool is declared to the model."""
        return any(_names(entry, name, server) for entry in self._entries)

    async def before_call(self, call: HookedCall) -> Deny | None:
        """Denies a call that no entry allows."""
        entries = [one for one in self._entries if _names(one, call.name, call.server)]
        if not entries:
            return self._denied(call.name)
        if call.name != _SHELL or any(not one.prefix for one in entries):
            return None
        command = str(call.arguments.get("command", ""))
        if _all_begin(command, [one.prefix for one in entries]):
            return None
        return self._denied(f"the command {command[:200]}")

    def _denied(self, what: str) -> Deny:
        return Deny(f"{self._who} does not allow {what}")


def _names(entry: AllowedTool, name: str, server: str) -> bool:
    if entry.name in ("*", name):
        return True
    if not server:
        return False
    tool = name.removeprefix(f"{server}__")
    qualified = {f"mcp__{server}", f"mcp__{server}__*", f"mcp__{server}__{tool}"}
    return entry.name in qualified | {f"mcp_{server}_{tool}", f"{server}__{tool}"}


def _all_begin(command: str, prefixes: list[tuple[str, ...]]) -> bool:
    """Whether every command of a shell text begins with one of these words."""
    script = prove(command)
    if isinstance(script, Unproven):
        return False
    started = [tuple(word.text for word in each.words) for each in script.commands() if each.words]
    return bool(started) and all(
        any(words[: len(prefix)] == prefix for prefix in prefixes) for words in started
    )
