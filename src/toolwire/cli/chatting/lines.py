"""Terminal input, line by line, while a turn runs."""

import asyncio
import codecs
import os
import select
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TextIO

from toolwire.cli.question import discard_typed


class LineInput:
    """Reads a terminal in a thread of its own. A line typed after a question answers it; any other
    goes to the prompt, or to `unasked` while a turn is under way. A command of the chat waits for
    the turn's end.
    """

    def __init__(self, source: TextIO, unasked: Callable[[str], None]) -> None:
        self._descriptor = source.fileno()
        self._unasked = unasked
        self._loop = asyncio.get_running_loop()
        self._reading = threading.Lock()
        """Held while input is read or discarded, so that each line is before or after a
        question.
        """
        self._questions = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""
        """An incomplete line."""
        self._waiting: asyncio.Future[str | None] | None = None
        self._answering = 0
        """The number of the question that waits for its answer; 0 for none."""
        self._early: list[str] = []
        self._left = False
        self._busy = False
        threading.Thread(target=self._read, daemon=True, name="typing").start()

    async def next(self) -> str | None:
        """Returns the next line without its newline; None at end of input (Ctrl-D)."""
        if self._early:
            return self._early.pop(0)
        return await self._typed()

    async def answer(self, show: Callable[[], None]) -> str | None:
        """Returns a line typed after `show` displayed the end of a question."""
        with self._reading:
            self._forget()
            self._questions += 1
            self._answering = self._questions
        try:
            show()
            return await self._typed()
        finally:
            self._answering = 0

    @contextmanager
    def lent(self) -> Generator[None]:
        """Lends the terminal to another program inside the block."""
        with self._reading:
            yield
            self._forget()

    def working(self, busy: bool) -> None:
        """Sets whether a turn is running: lines without a reader then go to the model."""
        self._busy = busy

    async def _typed(self) -> str | None:
        if self._left:
            return None
        self._waiting = self._loop.create_future()
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def _forget(self) -> None:
        with suppress(OSError):
            discard_typed(self._descriptor)
        self._decoder.reset()
        self._begun = ""

    def _read(self) -> None:
        descriptor = self._descriptor
        while True:
            # Waits without reading: unread input can still be discarded.
            select.select([descriptor], [], [])
            with self._reading:
                if not select.select([descriptor], [], [], 0)[0]:
                    continue
                lines = self._take()
                question = self._questions
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._give, lines, question)
            if lines is None:
                return

    def _take(self) -> list[str] | None:
        """Returns complete lines; None at the end of the input."""
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:
            # The terminal is gone.
            data = b""
        if not data:
            return None
        *lines, self._begun = (self._begun + self._decoder.decode(data)).split("\n")
        return [line.rstrip("\r") for line in lines]

    def _give(self, lines: list[str] | None, question: int) -> None:
        if lines is None:
            self._left = True
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_result(None)
            return
        for line in lines:
            self._give_line(line, question)

    def _give_line(self, line: str, question: int) -> None:
        waits = self._waiting is not None and not self._waiting.done()
        if waits and self._waiting is not None and self._answering in (0, question):
            self._waiting.set_result(line)
        elif self._busy and not line.startswith("/"):
            self._unasked(line)
        else:
            self._early.append(line)
