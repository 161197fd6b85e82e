"""The menu under the composer: commands after `/`, files after `@`, and the search of prompts."""

import re
from collections.abc import Callable, Mapping

import msgspec
from prompt_toolkit.buffer import Buffer
from rich.cells import cell_len, set_cell_size

from toolwire.terminal_text import one_line
from toolwire.tui.finder import best
from toolwire.tui.history import searched
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
        commands: Callable[[], Mapping[str, tuple[str, tuple[str, ...]]]],
        arguments: Callable[[str], tuple[str, ...]],
        files: Callable[[str], list[str]],
    ) -> None:
        self._commands = commands
        self._arguments = arguments
        self._files = files
        self._closed_for: str | None = None
        self._before = ""
        self._entries: list[str] | None = None
        """Prompts that are searched; None while none are."""
        self._query = ""
        self.items: list[MenuItem] = []
        self.chosen = 0

    @property
    def open(self) -> bool:
        """Whether keys belong to the menu."""
        return bool(self.items) or self.searching

    @property
    def searching(self) -> bool:
        """Whether earlier prompts are searched."""
        return self._entries is not None

    def update(self, text: str, cursor: int) -> None:
        """Finds the entries for a text and its cursor."""
        self._before = text[:cursor]
        if self.searching:
            return
        if self._before == self._closed_for:
            self.items = []
            return
        self._closed_for = None
        self.items = self._found(text, self._before)
        self.chosen = 0

    def close(self) -> None:
        """Closes the menu until the text changes."""
        self._closed_for = self._before
        self._entries, self.items = None, []

    def move(self, by: int) -> None:
        """Chooses another entry."""
        if self.items:
            self.chosen = (self.chosen + by) % len(self.items)

    def choose(self, buffer: Buffer) -> bool:
        """Inserts the chosen entry; returns whether it can be sent at once."""
        item = self.items[self.chosen] if self.items else None
        searching = self.searching
        self.close()
        if item is None:
            return False
        if searching:
            buffer.text = item.insert
            buffer.cursor_position = len(item.insert)
            self._closed_for = item.insert
            self.items = []
            return False
        after = buffer.text[buffer.cursor_position :]
        before = buffer.text[: item.start] + item.insert
        buffer.text = before + after
        buffer.cursor_position = len(before)
        return item.complete

    def search(self, entries: list[str]) -> None:
        """Searches earlier prompts, the newest first."""
        self._entries, self._query = entries, ""
        self._search()

    def search_also(self, entries: list[str]) -> None:
        """Adds older prompts to a search that is open; what is chosen stays."""
        if self._entries is not None:
            chosen = self.chosen
            self._entries = [*self._entries, *entries]
            self._search()
            self.chosen = min(chosen, max(len(self.items) - 1, 0))

    def type(self, letters: str) -> None:
        """Adds letters to the search."""
        if letters.isprintable():
            self._query += letters
            self._search()

    def erase(self) -> None:
        """Removes the last letter of the search."""
        self._query = self._query[:-1]
        self._search()

    def _search(self) -> None:
        found = searched(self._query, self._entries or ())[:_MOST]
        self.items = [MenuItem(entry, insert=entry) for entry in found]
        self.chosen = 0

    def _found(self, text: str, before: str) -> list[MenuItem]:
        if before.startswith("/") and "\n" not in before:
            return self._command_items(text, before)
        if mention := _MENTION.search(before):
            query = mention[1].lstrip('"')
            names = self._files(query)[:_MOST]
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
            names = _fitting(name, commands)
            return [
                MenuItem(f"/{one}", commands[one][0], f"/{one} ", complete=True) for one in names
            ]
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
        wide = max((cell_len(item.name) for item in self.items if item.words), default=0)
        rows: list[str] = []
        if self.searching:
            none = "" if self.items else "  nothing found"
            rows.append(painter.line(("search: ", "dim"), f"{self._query}▏", (none, "dim")))
        for at, item in enumerate(self.items):
            mark = "› " if at == self.chosen else "  "
            pad = " " * max(wide - cell_len(item.name) + 2, 2)
            words = f"{mark}{one_line(item.name)}{pad if item.words else ''}{item.words}"
            room = painter.width - 2
            if cell_len(words) > room:
                words = f"{set_cell_size(words, room - 1).rstrip()}…"
            rows.append(painter.line((words, "key" if at == self.chosen else "dim")))
        return rows


def _fitting(typed: str, commands: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[str]:
    """The commands that fit: by name, then by alias, then by a word of what they do."""
    exact = [one for one, (_, more) in commands.items() if typed in (one, *more)]
    alias = [one for one, (_, more) in commands.items() if typed and best(typed, more)]
    word = [one for one, (words, _) in commands.items() if typed and _begins(typed, words)]
    return list(dict.fromkeys([*exact, *best(typed, commands, _MOST), *alias, *word]))[:_MOST]


def _begins(typed: str, words: str) -> bool:
    """Whether a word begins with what was typed."""
    return any(word.startswith(typed.lower()) for word in re.findall(r"\w+", words.lower()))


def _quoted(name: str) -> str:
    return f'"{name}"' if re.search(r"[\s,;!?()\[\]{}]", name) else name
