"""Writes to a standard stream whose disk may be full or whose reader may be gone."""

import os
from collections.abc import Callable
from functools import partial
from typing import TextIO

from toolwire.cli.streams import write_control
from toolwire.errors import ToolwireError


class StreamWriter:
    """Writes unbuffered; a failure is reported once if `needed`, then output is discarded."""

    def __init__(self, name: str, stream: TextIO, *, needed: bool = True) -> None:
        self._name = name
        self._stream = stream
        self._needed = needed
        """Whether a failure ends the run: the answer is needed, progress is not."""
        self.lost = ""
        """Why writing failed; empty if it did not."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def flush(self) -> None:
        """Does nothing: writes are unbuffered."""

    def write(self, text: str) -> None:
        """Writes the text; discards it after a failure."""
        self._out(self._stream.write, text)

    def control(self, sequence: str) -> None:
        """Writes a control sequence to a terminal."""
        self._out(partial(write_control, self._stream), sequence)

    def _out(self, write: Callable[[str], object], text: str) -> None:
        if self.lost:
            return
        try:
            write(text)
            self._stream.flush()
        except OSError as error:
            self.lost = f"{self._name} cannot be written: {error.strerror}"
            self._lead_nowhere()
            if self._needed:
                raise ToolwireError(self.lost) from error

    def _lead_nowhere(self) -> None:
        """Redirects to /dev/null: buffered output would fail again at exit."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
