"""The inline screen: blocks printed once above, and a small area below that is drawn again."""

import asyncio
import atexit
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_bindings import merge_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput, Processor
from prompt_toolkit.output import ColorDepth

from toolwire.tui.early_prompt import MARK, EarlyPrompt
from toolwire.tui.heading import Heading
from toolwire.tui.key_gate import ESCAPE_AFTER, KeyGate, flush_later
from toolwire.tui.live import Size
from toolwire.tui.output import FrameOutput
from toolwire.tui.rows import (
    FrameRows,
    Rows,
    ScrolledRows,
    UnstyledWindow,
    rows_of,
    wrapped_cursor,
)

FRAMES = 15
"""Frames a second, at most, while something changes."""
_COMPOSER_ROWS = 10
_BETWEEN = 2.0
"""Seconds that a closed page stays for the next page of its command."""


class Screen:
    """One prompt_toolkit application whose rows come from pure functions."""

    def __init__(
        self,
        terminal: Input,
        output: FrameOutput,
        *,
        heading: Heading,
        composer: Buffer,
        keys: KeyBindings,
        live: Rows,
        below: Rows,
        colours: bool,
        processors: list[Processor] | None = None,
        vi: bool = False,
        typed_ahead: Callable[[], None] = lambda: None,
    ) -> None:
        """`typed_ahead` is called before keys that waited are handled."""
        self._output = output
        self._heading = heading
        self._gate = KeyGate(terminal)
        self._typed_ahead = typed_ahead
        self._commands: set[asyncio.Task[Any] | None] = set()
        """The tasks of commands that run now."""
        self._page: ExitStack | None = None
        """What ends a page's turn on the screen; one may have ended, with another to follow."""
        self._leaving: asyncio.TimerHandle | None = None
        self._opened_by: asyncio.Task[Any] | None = None
        self._pending: list[str] = []
        self._rows = FrameRows()
        """Above and below the composer."""
        self._scheduled: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._away = False
        self._window = UnstyledWindow(
            BufferControl(
                composer,
                input_processors=[BeforeInput(MARK, style="bold"), *(processors or [])],
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
                self._rows.window(live),
                self._window,
                self._rows.window(below),
            ]
        )
        self.app: Application[None] = Application(
            Layout(layout, focused_element=self._window),
            key_bindings=merge_key_bindings([keys, self._scroll_keys()]),
            input=self._gate,
            output=output,
            color_depth=None if colours else ColorDepth.MONOCHROME,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            mouse_support=Condition(lambda: self.full),
            full_screen=False,
            erase_when_done=True,
            terminal_size_polling_interval=None,
        )
        self.app.after_render += self._rows.forget
        self.app.timeoutlen = 0.1
        self.app.ttimeoutlen = ESCAPE_AFTER
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

    async def run(self, begun: Callable[[], None], early: EarlyPrompt | None = None) -> None:
        """Runs until `stop`, in the place of the early prompt; the terminal is left as it was."""

        def begin() -> None:
            # All of this is written with the first frame.
            self._heading.begin(early)
            self._output.set_reports(on=True)
            begun()
            flush_later(self.app, self._gate)

        # What was typed so far: the composer has it in the first frame.
        store_typeahead(self._gate, self._gate.read_keys())
        atexit.register(self._output.restore)
        try:
            # The end of the input: the terminal was closed.
            with suppress(EOFError):
                await self.app.run_async(
                    pre_run=begin, handle_sigint=False, set_exception_handler=False
                )
        finally:
            self._output.end_page()
            self._output.set_reports(on=False)
            self._heading.settle()
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
                self._settle()
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

    def introduce(self) -> None:
        """Writes the whole first line, and what was printed before it was known.

        Full screen, it is written to the main screen at the end.
        """
        self._heading.fix()
        if self.app.is_running and not self.full and not self._away:
            with self._output.frame():
                self._erase()
                self._settle()
                self._redraw()

    def _settle(self) -> None:
        """Writes the whole first line; the live area is erased."""
        if not self.full:
            self._heading.settle()
            self._flush_pending()

    def print(self, lines: list[str]) -> None:
        """Prints lines above the live area, with the next frame."""
        self._pending.extend(lines)
        self.change()

    def change(self, *, at_once: bool = False) -> None:
        """Asks for a frame; many within one interval are one, unless it has to be at once."""
        if self._away or not self.app.is_running:
            return
        if self._scheduled is not None:
            if not at_once:
                return
            self._scheduled.cancel()
        wait = 0.0 if at_once else max(self._drawn + 1 / FRAMES - time.monotonic(), 0.0)
        self._scheduled = asyncio.get_running_loop().call_later(wait, self._frame)

    @contextmanager
    def suspended(self, *, cooked: bool = True) -> Generator[None]:
        """Leaves the terminal to another program, or a page of ours, inside the block."""
        self.leave_page()
        with self._output.frame():
            self.app.renderer.erase(leave_alternate_screen=self.full)
            self._settle()
            if cooked:
                self._output.set_reports(on=False)
        self._away = self._gate.lent = True
        self.app._running_in_terminal = True  # pyright: ignore[reportPrivateUsage]
        terminal = self.app.input
        try:
            with terminal.cooked_mode() if cooked else nullcontext(), terminal.detach():
                yield
        finally:
            self._away = self._gate.lent = False
            self.app._running_in_terminal = False  # pyright: ignore[reportPrivateUsage]
            with self._output.frame():
                self._output.end_page()
                if self.app.is_running:
                    self._output.set_reports(on=True)
                    self._redraw()
            self._deliver(without_escape=not cooked)

    @contextmanager
    def page(self) -> Generator[None]:
        """Leaves the screen to a page inside the block; to the next page of the command after it.

        The rows of a page stay until the next one is drawn, and get the keys of the time between
        them. `leave_page` ends that, as do the command's end and some seconds.
        """
        if self._page is None:
            self._page = ExitStack()
            self._page.enter_context(self.suspended(cooked=False))
            self._output.begin_page()
        self._stop_leaving()
        self._gate.free()
        try:
            yield
        finally:
            self._opened_by = asyncio.current_task()
            if self._opened_by in self._commands:
                loop = asyncio.get_running_loop()
                self._leaving = loop.call_later(_BETWEEN, self.leave_page)
            else:
                self._leave()

    def leave_page(self) -> None:
        """Shows what is below a page that was closed; a page that is open stays."""
        if self._leaving is not None:
            self._leave()

    def _leave(self) -> None:
        self._stop_leaving()
        page, self._page = self._page, None
        if page is not None:
            page.close()

    def _stop_leaving(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def hold_keys(self) -> None:
        """Keeps keys for the page that a command opens, if it does so soon."""
        if not self._away:
            self._gate.hold(self.app, self._deliver)

    @contextmanager
    def command(self) -> Generator[None]:
        """Runs a command inside the block: keys wait for its pages."""
        task = asyncio.current_task()
        self._commands.add(task)
        try:
            yield
        finally:
            self._commands.discard(task)
            if self._opened_by is task:
                self.leave_page()
            self._deliver()

    def _deliver(self, *, without_escape: bool = False) -> None:
        """Gives the composer the keys that waited."""
        self._gate.free()
        if not self._away:
            self._typed_ahead()
            self._gate.deliver(self.app, without_escape=without_escape)
            self.change()

    def repaint(self, lines: list[str]) -> None:
        """Clears the terminal, and prints these lines again."""
        with self._output.frame():
            self.app.renderer.clear()
            if not self.full:
                self._heading.write_again()
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
        self._rows.forget()
        with self._output.frame():
            if self.full:
                self._flush_pending()
            elif (self._pending and not self._heading.open) or self._shrinks():
                self._erase()
                if not self._heading.open:
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
        return self._rows.count() + self._composer_height().preferred < last.height

    def _erase(self) -> None:
        self.app.renderer.erase(leave_alternate_screen=False)

    def _redraw(self) -> None:
        self.app._redraw()  # pyright: ignore[reportPrivateUsage]

    def _resized(self) -> None:
        """Draws again; the rows of the last frame may have been wrapped by the terminal."""
        renderer: Any = self.app.renderer
        if self._away:
            return
        last, cursor = renderer._last_screen, renderer._cursor_pos
        if last is not None and not self.full:
            columns = self._output.get_size().columns
            renderer._cursor_pos = wrapped_cursor(last.data_buffer, cursor, columns)
        with self._output.frame():
            self._erase()
            self._redraw()

    def _composer_height(self) -> Dimension:
        size = self._output.get_size()
        most = min(_COMPOSER_ROWS, max(size.rows // 2, 1))
        rows = min(rows_of(self._composer.text, max(size.columns - 3, 1)), most)
        return Dimension(min=1, preferred=rows, max=rows)


@contextmanager
def default_stop() -> Generator[None]:
    """Lets the stop signal stop this process inside the block."""
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)
