"""One hostile case and what came of it."""

from typing import Literal, TypeAlias

import msgspec

ModeName: TypeAlias = Literal["default", "auto_edit", "plan", "yolo"]


class Call(msgspec.Struct, frozen=True):
    """A call of a tool as a model writes it."""

    tool: str
    arguments: dict[str, object]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that run one after the other in a fresh world."""

    calls: tuple[Call, ...]
    mode: ModeName = "default"
    rules: str = ""
    """The text of the user's rule file."""
    path: str = ""
    """Folders before all others on the search path of programs."""
    before: str = ""
    """What the user runs in the workspace before, without any policy."""

    @property
    def title(self) -> str:
        """The commands, for a report."""
        return " ; then ".join(
            str(call.arguments.get("command", f"{call.tool} {call.arguments}"))
            for call in self.calls
        )


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one case did."""

    outcomes: tuple[str, ...]
    effects: tuple[str, ...]
    text: str = ""


def shell(command: str) -> Call:
    """A call of the shell tool."""
    return Call("run_shell_command", {"command": command})
