"""Pages of their own in the alternate screen: a pager, and a list to choose from."""

from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import ColorDepth, Output
from rich.text import Text

from toolwire.tui.finder import score
from toolwire.tui.render import Painter

_CLOSES = (Keys.Escape, Keys.ControlC, Keys.ControlD)


class Page:
    """A full screen of rows with a heading and a line of keys."""

    def __init__(self, terminal: Input, output: Output, painter: Painter, title: str) -> None:
        self._terminal = terminal
        self._output = output
        self._painter = painter
        self._title = title
        self._keys = KeyBindings()
        for key in _CLOSES:
            self._keys.add(key, eager=True)(self._close)

    @property
    def _height(self) -> int:
        return max(self._output.get_size().rows - 2, 1)

    def _close(self, event: KeyPressEvent) -> None:
        event.app.exit()

    async def _show(self, rows: Callable[[], list[str]], foot: Callable[[], str]) -> None:
        def fragments() -> StyleAndTextTuples:
            head = self._painter.line((self._title, "strong"))
            shown = rows()[: self._height]
            shown += [""] * (self._height - len(shown))
            last = self._painter.line((foot(), "dim"))
            return to_formatted_text(ANSI("\n".join([head, *shown, last])))

        app: Application[None] = Application(
            Layout(Window(FormattedTextControl(fragments), wrap_lines=False)),
            key_bindings=self._keys,
            input=self._terminal,
            output=self._output,
            full_screen=True,
            mouse_support=False,
            color_depth=ColorDepth.TRUE_COLOR,
        )
        app.ttimeoutlen = 0.05
        await app.run_async(handle_sigint=False)


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


class Picker(Page):
    """A list filtered by typing; Enter chooses."""

    def __init__(
        self,
        terminal: Input,
        output: Output,
        painter: Painter,
        title: str,
        items: list[tuple[str, str]],
    ) -> None:
        super().__init__(terminal, output, painter, title)
        self._items = items
        """What is returned, and its words."""
        self._query = ""
        self._chosen = 0
        self._result = ""
        self._bind()

    async def run(self) -> str:
        """Returns the chosen name; empty if none was chosen."""
        await self._show(self._listed, lambda: f"› {self._query}▏   Enter chooses · Esc closes")
        return self._result

    def _found(self) -> list[tuple[str, str]]:
        if not self._query:
            return self._items
        scored = [
            (score(self._query, f"{name} {words}"), name, words) for name, words in self._items
        ]
        return [(name, words) for points, name, words in scored if points]

    def _listed(self) -> list[str]:
        found = self._found()
        self._chosen = max(min(self._chosen, len(found) - 1), 0)
        first = max(self._chosen - self._height + 1, 0)
        wide = max((len(name) for name, _ in found), default=0)
        rows: list[str] = []
        for at, (name, words) in enumerate(found[first : first + self._height], first):
            mark = "› " if at == self._chosen else "  "
            text = f"{mark}{name:<{wide}}  {words}".rstrip()[: self._painter.width - 1]
            rows.append(self._painter.line((text, "key" if at == self._chosen else "")))
        return rows or [self._painter.line(("  nothing fits", "dim"))]

    def _bind(self) -> None:
        keys = self._keys

        @keys.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            if len(event.data) == 1 and event.data.isprintable():
                self._query, self._chosen = self._query + event.data, 0

        @keys.add(Keys.ControlH)
        def _(event: KeyPressEvent) -> None:
            del event
            self._query = self._query[:-1]

        @keys.add(Keys.Up)
        def _(event: KeyPressEvent) -> None:
            del event
            self._chosen -= 1

        @keys.add(Keys.Down)
        def _(event: KeyPressEvent) -> None:
            del event
            self._chosen += 1

        @keys.add(Keys.ControlM)
        def _(event: KeyPressEvent) -> None:
            found = self._found()
            if found:
                self._result = found[min(self._chosen, len(found) - 1)][0]
            event.app.exit()
