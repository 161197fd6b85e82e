"""Pages of their own in the alternate screen."""

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
