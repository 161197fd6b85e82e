"""The terminal's output: everything of one frame in one write."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from prompt_toolkit.data_structures import Size as TerminalSize
from prompt_toolkit.output.vt100 import Vt100_Output

_BEGIN = "\x1b[?2026h"
_END = "\x1b[?2026l"
FOCUS_ON = "\x1b[?1004h"
FOCUS_OFF = "\x1b[?1004l"


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
        super().flush()


def _size(out: TextIO) -> TerminalSize:
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except OSError:
        columns, rows = 80, 24
    return TerminalSize(rows=rows or 24, columns=columns or 80)
