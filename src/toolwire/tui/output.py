"""The terminal's output: everything of one frame in one write."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from prompt_toolkit.data_structures import Size as TerminalSize
from prompt_toolkit.output.vt100 import Vt100_Output

_BEGIN = "\x1b[?2026h"
_END = "\x1b[?2026l"
_FOCUS_ON = "\x1b[?1004h"
_FOCUS_OFF = "\x1b[?1004l"
_KITTY_ON = "\x1b[>1u"
_KITTY_OFF = "\x1b[<u"
_ASK_KITTY = "\x1b[?u"
_ASK_BACKGROUND = "\x1b]11;?\x1b\\"
_HOME = "\x1b[H"
_PLAIN = "\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[0m"


class FrameOutput(Vt100_Output):
    """Writes a frame at once, between the marks of a synchronised update.

    The position of the cursor is never asked for: some terminals do not answer, and each answer
    would be a round trip.
    """

    def __init__(self, out: TextIO, term: str) -> None:
        def size() -> TerminalSize:
            return _size(out)

        super().__init__(out, size, term=term, enable_cpr=False)
        self._depth = 0
        self._kitty = False
        """Whether the terminal has the kitty protocol for keys."""
        self._reports = False
        """Whether the terminal reports its focus, and keys by that protocol."""
        self.gone = False
        """Whether the terminal was closed."""
        self._page = False
        """Whether a page has the alternate screen, or had it and another may follow."""
        self._alternate = False

    def ask(self, *, background: bool) -> None:
        """Asks for the kitty protocol, and for the background; no answer is waited for."""
        self.write_raw(_ASK_KITTY + (_ASK_BACKGROUND if background else ""))

    def has_kitty(self) -> None:
        """Turns the kitty protocol on: the terminal answered that it has it."""
        if not self._kitty:
            self._kitty = True
            if self._reports:
                self.write_raw(_KITTY_ON)
                self.flush()

    def set_reports(self, *, on: bool) -> None:
        """Turns reports of focus and keys on or off."""
        if on != self._reports:
            self._reports = on
            kitty = (_KITTY_ON if on else _KITTY_OFF) if self._kitty else ""
            self.write_raw(kitty + (_FOCUS_ON if on else _FOCUS_OFF))

    def begin_page(self) -> None:
        """Keeps the alternate screen, pastes and the cursor as a page leaves them until `end_page`.

        One page may follow another: the rows of the first stay until the second is drawn.
        """
        self._page = True

    def end_page(self) -> None:
        """Goes back to the screen from before the page."""
        self._page = False
        if self._alternate:
            self.quit_alternate_screen()
            self.disable_bracketed_paste()

    def enter_alternate_screen(self) -> None:
        """Begins the alternate screen, or draws over the page that has it."""
        if self._alternate:
            self.write_raw(_HOME)
        else:
            super().enter_alternate_screen()
        self._alternate = True

    def quit_alternate_screen(self) -> None:
        """Ends the alternate screen, unless another page may follow."""
        if not self._page:
            self._alternate = False
            super().quit_alternate_screen()

    def disable_bracketed_paste(self) -> None:
        """Ends the marks around pasted text, unless another page may follow."""
        if not self._page:
            super().disable_bracketed_paste()

    def restore(self) -> None:
        """Leaves the terminal as it was, whatever happened; for the end of the process."""
        if self._reports:
            self._depth = 0
            self.end_page()
            self.set_reports(on=False)
            self.write_raw(_PLAIN)
            self.flush()

    @contextmanager
    def frame(self) -> Generator[None]:
        """Holds all output inside the block, then writes it at once."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.flush()

    def flush(self) -> None:
        """Writes what there is, unless a frame holds it."""
        if self._depth or not self._buffer:
            return
        self._buffer.insert(0, _BEGIN)
        self._buffer.append(_END)
        try:
            super().flush()
        except OSError:
            # The terminal was closed: SIGHUP ends the program.
            self.gone = True


def _size(out: TextIO) -> TerminalSize:
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except OSError:
        columns, rows = 80, 24
    return TerminalSize(rows=rows or 24, columns=columns or 80)
