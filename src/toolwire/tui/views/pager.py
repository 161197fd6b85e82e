"""Rows to scroll and search."""

from prompt_toolkit.input import Input
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output
from rich.text import Text

from toolwire.tui.render import Painter
from toolwire.tui.views.page import Page


class Pager(Page):
    """Rows to scroll and search."""

    def __init__(
        self, terminal: Input, output: Output, painter: Painter, title: str, rows: list[str]
    ) -> None:
        super().__init__(terminal, output, painter, title)
        self._rows = rows
        self._plain = [Text.from_ansi(row).plain.lower() for row in rows]
        self._at = max(len(rows) - self._height, 0)
        self._query = ""
        self._searching = False
        self._bind()

    async def run(self) -> None:
        """Shows the rows until the user closes the page."""
        await self._show(lambda: self._rows[self._at :], self._foot)

    def _foot(self) -> str:
        if self._searching:
            return f"/{self._query}▏"
        last = min(self._at + self._height, len(self._rows))
        return f"{last} of {len(self._rows)} lines · / search · n next · q close"

    def _bind(self) -> None:
        keys = self._keys
        moves = {
            "j": 1, "k": -1, Keys.Down: 1, Keys.Up: -1, " ": self._height, "b": -self._height,
            Keys.PageDown: self._height, Keys.PageUp: -self._height, "g": -len(self._rows),
            "G": len(self._rows), Keys.Home: -len(self._rows), Keys.End: len(self._rows),
        }  # fmt: skip

        @keys.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            self._press(event, event.data)

        @keys.add(Keys.ControlM)
        def _(event: KeyPressEvent) -> None:
            del event
            if self._searching:
                self._searching = False
                self._find(1)

        @keys.add(Keys.ControlH)
        def _(event: KeyPressEvent) -> None:
            del event
            self._query = self._query[:-1]

        for key, by in moves.items():

            def move(event: KeyPressEvent, by: int = by) -> None:
                if self._searching:
                    self._press(event, event.data)
                else:
                    self._move(by)

            keys.add(key)(move)

    def _press(self, event: KeyPressEvent, data: str) -> None:
        if self._searching:
            if len(data) == 1 and data.isprintable():
                self._query += data
        elif data == "q":
            event.app.exit()
        elif data == "/":
            self._searching, self._query = True, ""
        elif data in ("n", "N"):
            self._find(1 if data == "n" else -1)

    def _move(self, by: int) -> None:
        self._at = max(min(self._at + by, len(self._rows) - self._height), 0)

    def _find(self, step: int) -> None:
        wanted = self._query.lower()
        count = len(self._rows)
        for offset in range(1, count + 1):
            at = (self._at + step * offset) % count
            if wanted in self._plain[at]:
                self._at = at
                return
