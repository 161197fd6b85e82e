"""The first line: a short one at once, replaced by the whole one when the model is known."""

from collections.abc import Callable

from toolwire.tui.early_prompt import ERASE_LINE, MARK, UP, EarlyPrompt, heading
from toolwire.tui.output import FrameOutput

_ERASE_BELOW = "\x1b[J"


class Heading:
    """The row above the live area, which is ours to change until something is printed below it.

    The live area never begins at the top of the terminal: some move the whole screen into their
    history when they are cleared from there.
    """

    def __init__(self, output: FrameOutput, version: str, whole: Callable[[], str]) -> None:
        """`whole` returns the line with all that is known."""
        self._output = output
        self._short = heading(version)
        self._whole = whole
        self._line = ""
        """The whole line, once it is fixed."""
        self.open = True
        """Whether the whole line is still to come: nothing else is printed before it."""
        self._written = False

    def begin(self, early: EarlyPrompt | None) -> None:
        """Writes the short line, unless the early prompt did; its mark goes with the next frame."""
        if early is None:
            self._output.write_raw(f"{self._short}\r\n")
            return
        wrapped = len(MARK + early.shown) // self._output.get_size().columns
        self._output.write_raw(f"{ERASE_LINE}{f'{UP}{ERASE_LINE}' * wrapped}{_ERASE_BELOW}")

    def fix(self) -> None:
        """Makes the line as it is now the whole one; `settle` writes it, later if need be."""
        if self.open:
            self.open = False
            self._line = self._whole()

    def settle(self) -> None:
        """Replaces the short line; the cursor is at the row below it."""
        self._write(f"{UP}{ERASE_LINE}")

    def write_again(self) -> None:
        """Writes the line where the cursor is: the terminal was cleared."""
        self._write("")

    def _write(self, before: str) -> None:
        self.fix()
        if not self._written:
            self._written = True
            self._output.write_raw(f"{before}{self._line}\r\n")
