"""What reading a shell text has found so far, over all texts inside it."""

import re
from collections.abc import Iterable

from toolwire.agent.commands.values import Assignment, Command, Redirect, Word
from toolwire.agent.commands.variables import is_harmless

_INTEGER = re.compile(r"-?[0-9]+\Z")


class Findings:
    """Collects commands, redirects and doubts; knows which variables hold only numbers."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.redirects: list[Redirect] = []
        self.named: list[Redirect] = []
        self.folders: list[Word] = []
        self.doubts: list[str] = []
        self._not_numbers: set[str] = set()
        self._calculated: set[str] = set()

    def doubt(self, why: str) -> None:
        """Notes why it cannot be known what runs."""
        self.doubts.append(why)

    def assign(self, name: str, value: Word | None) -> None:
        """Notes that a variable is set; None for a value that nobody knows."""
        if not is_harmless(name):
            self.doubt(f"it sets {name or 'a variable'}, which may change what commands do")
        if value is None or not is_number(value):
            self._not_numbers.add(name)

    def assign_all(self, assignments: Iterable[Assignment]) -> None:
        """Notes variables set for one command only, or by it."""
        for assignment in assignments:
            self.assign(assignment.name, assignment.value)

    def calculate(self, name: str) -> None:
        """Notes a variable whose value the shell takes for an arithmetic expression."""
        self._calculated.add(name)
        if not is_harmless(name):
            self.doubt(f"it calculates with {name}")

    def settle(self) -> None:
        """Doubts arithmetic on texts: `x='a[$(id)]'; ((x))` runs `id`."""
        for name in sorted(self._calculated & self._not_numbers):
            self.doubt(f"it calculates with {name}, whose text might run a command")


def is_number(value: Word) -> bool:
    """Whether the value is an integer, or calculated and so one."""
    if value.static:
        return bool(_INTEGER.match(value.text))
    return bool(re.match(r"\$\(\([^$`]*\)\)\Z", value.text)) or value.text in ("$#", "$?")
