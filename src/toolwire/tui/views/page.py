"""Pages of their own in the alternate screen."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import msgspec
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import ColorDepth, Output
from rich.cells import cell_len, set_cell_size

from toolwire.terminal_text import one_line
from toolwire.tui.key_gate import ESCAPE_AFTER, flush_later
from toolwire.tui.render import Painter

_CLOSES = (Keys.Escape, Keys.ControlC, Keys.ControlD)
# The wheel as arrow keys in the alternate screen: selection and copy stay with the terminal.
_WHEEL = "\x1b[?1007h"


class Surface(msgspec.Struct, frozen=True):
    """Where pages are drawn, and where their keys come from."""

    terminal: Input
    output: Output
    painter: Painter


class PageApplication(Application[None]):
    """Leaves its rows on the screen as it ends; what comes next replaces them."""

    def _redraw(self, render_as_done: bool = False) -> None:
        if not render_as_done:
            super()._redraw()


class Page(ABC):
    """A full screen of rows with a heading and a line of keys."""

    def __init__(self, surface: Surface, title: str) -> None:
        self._surface = surface
        self._painter = surface.painter
        self._title = one_line(title)
        self._keys = KeyBindings()
        self._message = ""
        self._app: Application[None] | None = None
        self._closed = False
        for key in _CLOSES:
            self._keys.add(key, eager=True)(self._close)

    @property
    def columns(self) -> int:
        """Columns of the terminal now."""
        return self._surface.output.get_size().columns

    @property
    def height(self) -> int:
        """Rows between the heading and the line of keys."""
        return max(self._surface.output.get_size().rows - 2, 1)

    @abstractmethod
    async def run(self) -> Any:
        """Shows the page until the user closes it; returns what was chosen."""

    def notify(self, words: str) -> None:
        """Shows words in place of the keys."""
        self._message = words
        if self._app is not None:
            self._app.invalidate()

    def close(self) -> None:
        """Closes the page; one that is not open yet stays closed."""
        self._closed = True
        if self._app is not None and self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _close(self, event: KeyPressEvent) -> None:
        del event
        self.close()

    def _cut(self, text: str) -> str:
        """A text that does not fill the row."""
        room = max(self.columns - 1, 1)
        return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"

    async def _show(
        self,
        rows: Callable[[], list[str]],
        foot: Callable[[], str],
        refresh: float | None = None,
    ) -> None:
        """Draws the rows after each key, and every `refresh` seconds."""
        if self._closed:
            return

        def fragments() -> StyleAndTextTuples:
            head = self._painter.line((self._cut(self._title), "strong"))
            shown = rows()[: self.height]
            shown += [""] * (self.height - len(shown))
            role = "warning" if self._message else "dim"
            last = self._painter.line((self._cut(self._message or foot()), role))
            return to_formatted_text(ANSI("\n".join([head, *shown, last])))

        self._app = application = PageApplication(
            Layout(Window(FormattedTextControl(fragments), wrap_lines=False)),
            key_bindings=self._keys,
            input=self._surface.terminal,
            output=self._surface.output,
            full_screen=True,
            mouse_support=False,
            refresh_interval=refresh,
            color_depth=ColorDepth.TRUE_COLOR,
        )
        application.ttimeoutlen = ESCAPE_AFTER
        self._surface.output.write_raw(_WHEEL)

        def begun() -> None:
            flush_later(application, self._surface.terminal)

        await application.run_async(pre_run=begun, handle_sigint=False)
