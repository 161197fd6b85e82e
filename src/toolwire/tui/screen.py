"""The inline screen: blocks printed once above, and a small area below that is drawn again."""

import asyncio
import atexit
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_bindings import merge_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl, UIContent, UIControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput, Processor
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.utils import get_cwidth

from toolwire.tui.live import Size
from toolwire.tui.output import FrameOutput

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_bindings import NotImplementedOrNone

FRAMES = 15
"""Frames a second, at most, while something changes."""
_COMPOSER_ROWS = 10

Rows = Callable[[], list[str]]


class Screen:
    """One prompt_toolkit application whose rows come from pure functions."""

    def __init__(
        self,
        terminal: Input,
        output: FrameOutput,
        *,
        composer: Buffer,
        keys: KeyBindings,
        live: Rows,
        below: Rows,
        colours: bool,
        processors: list[Processor] | None = None,
        vi: bool = False,
    ) -> None:
        self._output = output
        self._pending: list[str] = []
        self._shown: list[Rows] = []
        """Above and below the composer."""
        self._made: dict[Rows, list[str]] = {}
        """Rows of the present frame."""
        self._scheduled: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._away = False
        self._window = Window(
            BufferControl(
                composer,
                input_processors=[BeforeInput("› ", style="bold"), *(processors or [])],
                focusable=True,
            ),
            height=self._composer_height,
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=lambda line, wrap: [("", "  ")] if line or wrap else [],
        )
        self._composer = composer
        self.full = False
        """Whether the transcript is shown in the alternate screen, with the composer under it."""
        self._transcript = ScrolledRows()
        shown = ConditionalContainer(
            Window(self._transcript, height=Dimension(weight=1)), Condition(lambda: self.full)
        )
        layout = HSplit(
            [
                shown,
                self._rows(live),
                self._window,
                self._rows(below),
            ]
        )
        self.app: Application[None] = Application(
            Layout(layout, focused_element=self._window),
            key_bindings=merge_key_bindings([keys, self._scroll_keys()]),
            input=terminal,
            output=output,
            color_depth=None if colours else ColorDepth.MONOCHROME,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            mouse_support=Condition(lambda: self.full),
            full_screen=False,
            erase_when_done=True,
            terminal_size_polling_interval=None,
        )
        self.app.after_render += self._forget
        self.app.timeoutlen = 0.1
        self.app.ttimeoutlen = 0.05
        self.app._on_resize = self._resized  # pyright: ignore[reportPrivateUsage]

    @property
    def size(self) -> Size:
        """The terminal's size."""
        found = self._output.get_size()
        return Size(found.columns, found.rows)

    @property
    def vi(self) -> bool:
        """Whether the composer has vi's keys."""
        return self.app.editing_mode is EditingMode.VI

    @vi.setter
    def vi(self, on: bool) -> None:
        self.app.editing_mode = EditingMode.VI if on else EditingMode.EMACS

    async def run(self, begun: Callable[[], None]) -> None:
        """Runs until `stop`; the terminal is left as it was."""
        self._output.set_reports(on=True)
        atexit.register(self._output.restore)
        try:
            # The end of the input: the terminal was closed.
            with suppress(EOFError):
                await self.app.run_async(
                    pre_run=begun, handle_sigint=False, set_exception_handler=False
                )
        finally:
            self._output.set_reports(on=False)
            self._output.flush()
            if self.full:
                self._pending = [*self._transcript.added, *self._pending]
                self.full = False
            self._flush_pending()
            atexit.unregister(self._output.restore)

    def set_full(self, on: bool, past: list[str]) -> None:
        """Shows the transcript full screen, beginning with the past; or goes back inline.

        What was printed meanwhile is then printed to the main screen.
        """
        if on == self.full:
            return
        with self._output.frame():
            if self.app.is_running:
                self.app.renderer.erase()
            self.full = self.app.full_screen = self.app.renderer.full_screen = on
            if on:
                self._transcript.begin(past)
            else:
                self._pending = [*self._transcript.added, *self._pending]
                self._flush_pending()
            if self.app.is_running:
                self._redraw()

    def _scroll_keys(self) -> KeyBindings:
        keys = KeyBindings()
        full = Condition(lambda: self.full)
        for key, by in ((Keys.PageUp, 1), (Keys.PageDown, -1)):

            def scroll(event: KeyPressEvent, by: int = by) -> None:
                del event
                self._transcript.scroll(by * max(self._transcript.height - 1, 1))

            keys.add(key, filter=full)(scroll)
        return keys

    def stop(self) -> None:
        """Ends `run`."""
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def print(self, lines: list[str]) -> None:
        """Prints lines above the live area, with the next frame."""
        self._pending.extend(lines)
        self.change()

    def change(self) -> None:
        """Asks for a frame; many within one interval are one."""
        if self._scheduled is not None or self._away or not self.app.is_running:
            return
        wait = max(self._drawn + 1 / FRAMES - time.monotonic(), 0.0)
        self._scheduled = asyncio.get_running_loop().call_later(wait, self._frame)

    @contextmanager
    def suspended(self, *, cooked: bool = True) -> Generator[None]:
        """Leaves the terminal to another program, or a page of ours, inside the block."""
        with self._output.frame():
            self.app.renderer.erase(leave_alternate_screen=self.full)
            if cooked:
                self._output.set_reports(on=False)
        self._away = self.app._running_in_terminal = True  # pyright: ignore[reportPrivateUsage]
        terminal = self.app.input
        try:
            with terminal.cooked_mode() if cooked else nullcontext(), terminal.detach():
                yield
        finally:
            self._away = self.app._running_in_terminal = False  # pyright: ignore[reportPrivateUsage]
            self._output.set_reports(on=True)
            self._take_typed_ahead()
            self._redraw()
            self.change()

    def _take_typed_ahead(self) -> None:
        """Gives the composer what was typed as a page closed; the next page would get it else."""
        left = [key for key in get_typeahead(self.app.input) if key.key is not Keys.Escape]
        self.app.key_processor.feed_multiple(left)
        if left and self.app.is_running:
            self.app.key_processor.process_keys()

    def repaint(self, lines: list[str]) -> None:
        """Clears the terminal, and prints these lines again."""
        with self._output.frame():
            self.app.renderer.clear()
            if not self.full:
                self._pending = lines
                self._flush_pending()
            self._redraw()

    def stop_process(self) -> None:
        """Suspends the program as the shell expects it; returns when it goes on."""
        with self.suspended(), default_stop():
            os.kill(0, signal.SIGTSTP)

    def resumed(self) -> None:
        """Draws again after another program used the terminal."""
        if not self._away and self.app.is_running:
            self.app.renderer.reset()
            self._output.set_reports(on=False)
            self._output.set_reports(on=True)
            self._redraw()

    def _frame(self) -> None:
        self._scheduled = None
        if self._away or not self.app.is_running:
            return
        self._drawn = time.monotonic()
        self._forget()
        with self._output.frame():
            if self.full:
                self._flush_pending()
            elif self._pending or self._shrinks():
                self._erase()
                self._flush_pending()
            self._redraw()

    def _flush_pending(self) -> None:
        pending, self._pending = self._pending, []
        if self.full:
            self._transcript.add(pending)
            return
        for line in pending:
            self._output.write_raw(line)
            self._output.write_raw("\r\n")
        if not self.app.is_running:
            self._output.flush()

    def _shrinks(self) -> bool:
        """Whether the area needs fewer rows than it has."""
        last = self.app.renderer.last_rendered_screen
        if last is None:
            return False
        needed = sum(len(self._present(rows)) for rows in self._shown)
        return needed + self._composer_height().preferred < last.height

    def _erase(self) -> None:
        self.app.renderer.erase(leave_alternate_screen=False)

    def _redraw(self) -> None:
        self.app._redraw()  # pyright: ignore[reportPrivateUsage]

    def _forget(self, event: object = None) -> None:
        """Begins another frame; keys draw one without us."""
        del event
        self._made.clear()

    def _resized(self) -> None:
        """Draws again; the rows of the last frame may have been wrapped by the terminal."""
        renderer: Any = self.app.renderer
        if self._away:
            return
        last, cursor = renderer._last_screen, renderer._cursor_pos
        if last is not None and not self.full:
            columns = self._output.get_size().columns
            above = sum(
                max(-(-_used(last.data_buffer[row]) // columns), 1) for row in range(cursor.y)
            )
            above += cursor.x // columns
            renderer._cursor_pos = Point(x=cursor.x % columns, y=above)
        with self._output.frame():
            self._erase()
            self._redraw()

    def _rows(self, rows: Rows) -> Window:
        """A window of rows, which are made and parsed once a frame."""
        parsed: tuple[list[str], StyleAndTextTuples] = ([], [])
        self._shown.append(rows)

        def fragments() -> StyleAndTextTuples:
            nonlocal parsed
            found = self._present(rows)
            if found != parsed[0]:
                parsed = (found, to_formatted_text(ANSI("\n".join(found))))
            return parsed[1]

        return Window(
            FormattedTextControl(fragments),
            dont_extend_height=True,
            height=lambda: _height(len(self._present(rows))),
            wrap_lines=False,
        )

    def _present(self, rows: Rows) -> list[str]:
        if rows not in self._made:
            self._made[rows] = rows()
        return self._made[rows]

    def _composer_height(self) -> Dimension:
        width = max(self._output.get_size().columns - 3, 1)
        lines = self._composer.text.split("\n")
        rows = sum(max(-(-get_cwidth(line) // width), 1) for line in lines)
        most = min(_COMPOSER_ROWS, max(self._output.get_size().rows // 2, 1))
        rows = min(rows, most)
        return Dimension(min=1, preferred=rows, max=rows)


def _height(rows: int) -> Dimension:
    """So many rows, fewer where the terminal has no room."""
    return Dimension(min=0, preferred=rows, max=rows)


class ScrolledRows(UIControl):
    """Rows that end at the bottom, unless the user scrolls up."""

    def __init__(self) -> None:
        self._past: list[str] = []
        self.added: list[str] = []
        """What was added since it began."""
        self._back = 0
        """Rows below those that are shown."""
        self.height = 1

    def begin(self, past: list[str]) -> None:
        """Shows these lines and what is added to them."""
        self._past, self.added, self._back = past, [], 0

    def add(self, lines: list[str]) -> None:
        """Adds lines; what is shown stays where the user scrolled to."""
        self.added += lines
        if self._back:
            self._back += len(lines)

    def scroll(self, by: int) -> None:
        """Goes back by some rows, or forward."""
        most = max(len(self._past) + len(self.added) - self.height, 0)
        self._back = max(min(self._back + by, most), 0)

    def create_content(self, width: int, height: int) -> UIContent:
        """The rows that fit."""
        self.height = height
        rows: list[StyleAndTextTuples] = []
        needed = height + self._back
        for line in chain(reversed(self.added), reversed(self._past)):
            rows = [*fitted(to_formatted_text(ANSI(line)), width), *rows]
            if len(rows) >= needed:
                break
        end = max(len(rows) - self._back, min(height, len(rows)))
        shown = rows[max(end - height, 0) : end]
        return UIContent(lambda at: shown[at] if at < len(shown) else [], line_count=max(height, 1))

    def mouse_handler(self, mouse_event: MouseEvent) -> "NotImplementedOrNone":
        """Scrolls with the wheel."""
        wheel = {MouseEventType.SCROLL_UP: 3, MouseEventType.SCROLL_DOWN: -3}
        if mouse_event.event_type not in wheel:
            return NotImplemented
        self.scroll(wheel[mouse_event.event_type])
        return None


def fitted(line: StyleAndTextTuples, width: int) -> list[StyleAndTextTuples]:
    """A line on as many rows as it needs; none of it is cut off."""
    rows: list[StyleAndTextTuples] = [[]]
    used = 0
    for style, text, *_ in line:
        for letter in text:
            wide = get_cwidth(letter)
            if used + wide > width and used:
                rows.append([])
                used = 0
            rows[-1].append((style, letter))
            used += wide
    return rows


@contextmanager
def default_stop() -> Generator[None]:
    """Lets the stop signal stop this process inside the block."""
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def _used(row: Any) -> int:
    """Columns of a drawn row that hold something."""
    return max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
