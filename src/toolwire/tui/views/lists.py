"""Lists to choose from: filtered by typing, with actions on letters, and a line to write in."""

import asyncio
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from rich.cells import cell_len, set_cell_size

from toolwire.terminal_text import one_line, terminal_text
from toolwire.tui.finder import score
from toolwire.tui.views.page import Page, Surface

ENTER = "enter"
EDITED = "edited"
"""The action of a line that was written."""
_MOST_ABOUT = 6
_SEARCH_AFTER = 0.15
_REFRESH = 0.5
_NAMED = {"Del": Keys.Delete, "Ctrl-A": Keys.ControlA, "Tab": Keys.ControlI}


class ListItem(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a list."""

    key: str
    cells: tuple[str, ...]
    about: str = ""
    """Shown below the list while it is chosen."""


class Picked(msgspec.Struct, frozen=True):
    """What was done with which entry; both empty if the list was closed."""

    action: str = ""
    key: str = ""
    text: str = ""
    """What was written, for `EDITED`."""


class ListView(Page):
    """A list. Where letters act, `/` filters; else typing does."""

    def __init__(
        self,
        surface: Surface,
        title: str,
        items: Sequence[ListItem],
        *,
        actions: Mapping[str, str] | None = None,
        enter: str = "chooses",
        chosen: str = "",
        entry: tuple[str, str] | None = None,
        search: Callable[[str], Awaitable[set[str]]] | None = None,
        message: str = "",
        query: str = "",
        live: Callable[[], Sequence[ListItem]] | None = None,
    ) -> None:
        """`actions` has the words of letters and named keys; `chosen` is the key of an entry.

        `entry` opens a line to write in, with a label and a text. `search` finds further entries
        for a query by their keys. `live` reads the entries again while the list is shown.
        """
        super().__init__(surface, title)
        self._items = list(items)
        self._actions = dict(actions or {})
        self._enter = enter
        self._entry = entry
        self._search = search
        self._live = live
        self._deep: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._message = message
        self.query = query
        self._typing = not any(len(key) == 1 for key in self._actions)
        self._filtering = self._typing
        self._picked = Picked()
        named = (at for at, item in enumerate(self._found()) if chosen and item.key == chosen)
        self._chosen = next(named, 0)
        self._bind()

    async def run(self) -> Picked:
        """Shows the list; returns what was done."""
        try:
            await self._show(self._rows, self._foot, None if self._live is None else _REFRESH)
        finally:
            if self._task is not None:
                self._task.cancel()
        return self._picked

    def _foot(self) -> str:
        if self._entry is not None:
            return f"{self._entry[0]} › {self._entry[1]}▏   Enter stores · Esc leaves it"
        if self._filtering and not self._typing:
            return f"/{self.query}▏   Enter keeps the filter · Esc removes it"
        acts = " · ".join(f"{key} {words}" for key, words in self._actions.items())
        search = "" if self._typing else "/ filters"
        enter = f"Enter {self._enter}" if self._enter else ""
        keys = " · ".join(filter(None, (enter, search, acts)))
        lead = f"› {self.query}▏   " if self._typing else f"/{self.query} · " if self.query else ""
        return f"{lead}{keys} · Esc closes"

    def _found(self) -> list[ListItem]:
        query = self.query.strip()
        if not query:
            return self._items
        return [
            item
            for item in self._items
            if item.key in self._deep or score(query, f"{item.key} {' '.join(item.cells)}")
        ]

    def _rows(self) -> list[str]:
        if self._live is not None:
            self._items = list(self._live())
        found = self._found()
        self._chosen = max(min(self._chosen, len(found) - 1), 0)
        about = self._about(found)
        room = max(self.height - len(about), 1)
        first = max(self._chosen - room + 1, 0)
        # A long cell leaves room for the columns behind it.
        most = max(self.columns // 2 - 8, 12)
        widths = [min(width, most) for width in _widths(self._items)]
        rows: list[str] = []
        for at, item in enumerate(found[first : first + room], first):
            mark = "› " if at == self._chosen else "  "
            text = self._cut(mark + _line(item, widths))
            rows.append(self._painter.line((text, "key" if at == self._chosen else "")))
        rows = rows or [self._painter.line(("  nothing fits", "dim"))]
        return [*rows, *[""] * (room - len(rows)), *about]

    def _about(self, found: list[ListItem]) -> list[str]:
        if not found or not found[self._chosen].about:
            return []
        lines = terminal_text(found[self._chosen].about).split("\n")
        width = max(self.columns - 4, 10)
        rows = [row for line in lines for row in textwrap.wrap(line, width) or [""]]
        shown = rows[: min(_MOST_ABOUT, max(self.height // 2, 1))]
        return ["", *(self._painter.line((f"  {row}", "dim")) for row in shown)]

    def _bind(self) -> None:
        keys = self._keys
        page = self.height
        moves = {
            Keys.Up: -1, Keys.Down: 1, Keys.ControlP: -1, Keys.ControlN: 1,
            Keys.PageUp: -page, Keys.PageDown: page,
            Keys.Home: -len(self._items), Keys.End: len(self._items),
        }  # fmt: skip
        for key, by in moves.items():

            def move(event: KeyPressEvent, by: int = by) -> None:
                del event
                self._move(by)

            keys.add(key)(move)
        for name in self._actions:
            if name in _NAMED:

                def act(event: KeyPressEvent, name: str = name) -> None:
                    del event
                    self._act(name)

                keys.add(_NAMED[name])(act)

        @keys.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            if len(event.data) == 1 and event.data.isprintable():
                self._press(event.data)

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            self._write(one_line(event.data))

        @keys.add(Keys.ControlH)
        def _(event: KeyPressEvent) -> None:
            del event
            if self._entry is not None:
                self._entry = (self._entry[0], self._entry[1][:-1])
            elif self._filtering:
                self._ask(self.query[:-1])

        @keys.add(Keys.ControlU)
        def _(event: KeyPressEvent) -> None:
            del event
            if self._entry is not None:
                self._entry = (self._entry[0], "")
            elif self._filtering:
                self._ask("")

        keys.add(Keys.ControlM)(self._entered)

    def _close(self, event: KeyPressEvent) -> None:
        if event.key_sequence[0].key is Keys.Escape:
            if self._entry is not None:
                self._entry = None
                return
            if self._filtering and not self._typing:
                self._filtering = False
                self._ask("")
                return
        super()._close(event)

    def _entered(self, event: KeyPressEvent) -> None:
        del event
        if self._entry is not None:
            self._act(EDITED, self._entry[1])
        elif self._filtering and not self._typing:
            self._filtering = False
        elif self._enter:
            self._act(ENTER)

    def _press(self, letter: str) -> None:
        self._message = ""
        if self._entry is not None or self._filtering:
            self._write(letter)
        elif letter in self._actions:
            self._act(letter)
        elif letter == "/":
            self._filtering = True
        elif letter in ("j", "k"):
            self._move(1 if letter == "j" else -1)
        elif letter == "q":
            self.close()

    def _write(self, text: str) -> None:
        if self._entry is not None:
            self._entry = (self._entry[0], self._entry[1] + text)
        elif self._filtering:
            self._ask(self.query + text)

    def _move(self, by: int) -> None:
        self._message = ""
        self._chosen = max(min(self._chosen + by, len(self._found()) - 1), 0)

    def _act(self, action: str, text: str = "") -> None:
        found = self._found()
        key = found[min(self._chosen, len(found) - 1)].key if found else ""
        self._picked = Picked(action, key, text)
        self.close()

    def _ask(self, query: str) -> None:
        self.query, self._chosen, self._deep = query, 0, set()
        if self._task is not None:
            self._task.cancel()
        if self._search is not None and query.strip():
            self._task = asyncio.create_task(self._look(query.strip()))

    async def _look(self, query: str) -> None:
        await asyncio.sleep(_SEARCH_AFTER)
        if self._search is not None:
            self._deep = await self._search(query)
        if self._app is not None:
            self._app.invalidate()


def _widths(items: Sequence[ListItem]) -> list[int]:
    """The widths of all columns but the last."""
    count = max((len(item.cells) for item in items), default=0)
    return [
        max((cell_len(one_line(item.cells[at])) for item in items if at < len(item.cells) - 1),
            default=0)
        for at in range(max(count - 1, 0))
    ]  # fmt: skip


def _line(item: ListItem, widths: list[int]) -> str:
    cells = [one_line(cell) for cell in item.cells]
    padded = [
        set_cell_size(cell, width)
        if cell_len(cell) <= width
        else f"{set_cell_size(cell, width - 1)}…"
        for cell, width in zip(cells[:-1], widths, strict=False)
    ]
    return "  ".join([*padded, *cells[-1:]]).rstrip()
