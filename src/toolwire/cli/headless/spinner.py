"""One line on a terminal that shows that something is going on, and for how long."""

import asyncio
import time

from toolwire.cli.headless.output import Writable
from toolwire.cli.streams import write_control
from toolwire.terminal_text import one_line

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_EVERY = 0.1
_WIDTH = 78
_CLEAR = "\r\x1b[2K"


class Spinner:
    """Drawn by a task of its own; `stop` wipes the line."""

    def __init__(self, err: Writable) -> None:
        self._err = err
        self._words = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def words(self) -> str:
        """What it shows; empty if it is not drawn."""
        return self._words if self._task is not None else ""

    def start(self, words: str) -> None:
        """Shows these words from now on."""
        self._words = one_line(words[:_WIDTH])[:_WIDTH]
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._draw())

    def stop(self) -> None:
        """Wipes the line, if there is one."""
        if self._task is None:
            return
        self._task.cancel()
        self._task = None
        write_control(self._err, _CLEAR)
        self._err.flush()

    async def _draw(self) -> None:
        began, count = time.monotonic(), 0
        while True:
            seconds = time.monotonic() - began
            frame = _FRAMES[count % len(_FRAMES)]
            write_control(self._err, _CLEAR)
            self._err.write(f"{frame} {self._words} ({seconds:.0f} s)")
            self._err.flush()
            count += 1
            await asyncio.sleep(_EVERY)
