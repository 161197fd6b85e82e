"""A standard stream as a run writes to it: the disk behind it may be full, its reader gone."""

import os
from collections.abc import Callable
from functools import partial
from typing import TextIO

from toolwire.cli.streams import write_control
from toolwire.errors import ToolwireError


class StreamWriter:
    """Writes at once; a stream that fails is an error once, or never, and silent from then on."""

    def __init__(self, name: str, stream: TextIO, *, needed: bool = True) -> None:
        self._name = name
        self._stream = stream
        self._needed = needed
        """Without it the run is pointless: progress is not needed, the answer is."""
        self.lost = ""
        """Why nothing can be written any more."""

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return self._stream.isatty()

    def flush(self) -> None:
        """Nothing to do: all is out."""

    def write(self, text: str) -> None:
        """Out, or thrown away behind a failure."""
        self._out(self._stream.write, text)

    def control(self, sequence: str) -> None:
        """A sequence of our own, for a terminal."""
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
        """What is still in the buffer would fail again when the interpreter ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
