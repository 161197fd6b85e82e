"""A list to choose from."""

from prompt_toolkit.input import Input
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output

from toolwire.tui.finder import score
from toolwire.tui.render import Painter
from toolwire.tui.views.page import Page


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
