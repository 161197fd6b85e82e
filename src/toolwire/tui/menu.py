"""The menu under the composer: commands after `/`, files after `@`."""

import re
from collections.abc import Callable, Mapping

import msgspec
from rich.cells import cell_len

from toolwire.terminal_text import one_line
from toolwire.tui.finder import best
from toolwire.tui.render import Painter

_MOST = 8
_MENTION = re.compile(r"(?:^|(?<=\s))@(\"[^\"\n]*|[^\s\"]*)$")


class MenuItem(msgspec.Struct, frozen=True):
    """An entry of the menu."""

    name: str
    words: str = ""
    insert: str = ""
    """The text that replaces what was typed."""
    start: int = 0
    """Where the replaced text begins."""
    complete: bool = False
    """Whether Enter sends it at once."""


class Menu:
    """The entries that fit what is typed, and which of them is chosen."""

    def __init__(
        self,
        commands: Callable[[], Mapping[str, str]],
        arguments: Callable[[str], tuple[str, ...]],
        files: Callable[[], list[str]],
    ) -> None:
        self._commands = commands
        self._arguments = arguments
        self._files = files
        self._closed_for = ""
        self.items: list[MenuItem] = []
        self.chosen = 0

    @property
    def open(self) -> bool:
        """Whether there is something to choose."""
        return bool(self.items)

    def update(self, text: str, cursor: int) -> None:
        """Finds the entries for a text and its cursor."""
        before = text[:cursor]
        if before == self._closed_for:
            self.items = []
            return
        self._closed_for = ""
        self.items = self._found(text, before)
        self.chosen = 0

    def close(self, text: str, cursor: int) -> None:
        """Closes the menu until the text changes."""
        self._closed_for = text[:cursor]
        self.items = []

    def move(self, by: int) -> None:
        """Chooses another entry."""
        if self.items:
            self.chosen = (self.chosen + by) % len(self.items)

    def _found(self, text: str, before: str) -> list[MenuItem]:
        if before.startswith("/") and "\n" not in before:
            return self._command_items(text, before)
        if mention := _MENTION.search(before):
            query = mention[1].lstrip('"')
            names = best(query, self._files(), _MOST)
            return [
                MenuItem(name, insert=f"@{_quoted(name)} ", start=mention.start()) for name in names
            ]
        return []

    def _command_items(self, text: str, before: str) -> list[MenuItem]:
        name, space, argument = before[1:].partition(" ")
        commands = self._commands()
        if not space:
            if text != before:
                return []
            exact = [name] if name in commands else []
            listed = best(name, commands, _MOST)
            names = [*exact, *(one for one in listed if one not in exact)][:_MOST]
            return [MenuItem(f"/{one}", commands[one], f"/{one} ", complete=True) for one in names]
        choices = self._arguments(name)
        if argument in choices:
            return []
        start = len(name) + 2
        return [
            MenuItem(choice, insert=choice, start=start, complete=True)
            for choice in best(argument, choices, _MOST)
        ]

    def rows(self, painter: Painter) -> list[str]:
        """The menu's rows."""
        wide = max((cell_len(item.name) for item in self.items), default=0)
        rows: list[str] = []
        for at, item in enumerate(self.items):
            mark = "› " if at == self.chosen else "  "
            pad = " " * (wide - cell_len(item.name) + 2)
            words = f"{mark}{one_line(item.name)}{pad if item.words else ''}{item.words}"
            room = painter.width - 2
            words = words if cell_len(words) <= room else f"{words[: room - 1]}…"
            rows.append(painter.line((words, "key" if at == self.chosen else "dim")))
        return rows


def _quoted(name: str) -> str:
    return f'"{name}"' if re.search(r"[\s,;!?()\[\]{}]", name) else name
