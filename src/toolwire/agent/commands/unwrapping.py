"""Commands that start other commands: what is inside them, ruled on as well."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from toolwire.agent.commands import builtins, interpreters, programs, starters
from toolwire.agent.commands.inside import Inside
from toolwire.agent.commands.values import NEVER, Command

_Look: TypeAlias = Callable[[Command], Inside | None]
_LOOKS: tuple[_Look, ...] = (builtins.look, starters.look, interpreters.look, programs.look)


def unwrap(command: Command) -> Inside:
    """What a command is and starts; one whose name is not certain hides what it does."""
    name = command.words[0]
    if not name.plain or not command.root:
        return _hidden(command, f"the command name {name.text[:40]} is known only when it runs")
    if not _is_ordinary(name.text):
        return _hidden(command, f"the command name {ascii(name.text)[:60]} has unusual characters")
    for look in _LOOKS:
        inside = look(command)
        if inside is not None:
            return inside
    return Inside(command=command)


def _hidden(command: Command, why: str) -> Inside:
    return Inside(
        command=msgspec.structs.replace(command, hidden=why, covered_from=NEVER), doubts=(why,)
    )


def _is_ordinary(name: str) -> bool:
    return name.isascii() and all(one.isalnum() or one in "_-+./:@%,[" for one in name)
