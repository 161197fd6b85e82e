"""What the user types in a chat: lines while a turn runs, and answers to questions."""

import asyncio
import codecs
import os
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TextIO

import click

from toolwire.agent.questions import (
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
    UserAnswer,
)
from toolwire.cli.terminal import YES, write_control
from toolwire.platform import discard_input, raw_echo, read_input, wait_for_input
from toolwire.terminal_text import one_line
from toolwire.tools.proposals import Proposal

_MARK_PASTES = "\x1b[?2004h"
_NO_MARKS = "\x1b[?2004l"
_PASTE = "\x1b[200~"
_PASTED = "\x1b[201~"
"""Around pasted text, where the terminal marks it."""


class LineInput:
    """Reads a terminal in a thread of its own. A line typed after a question answers it; any other
    goes to the prompt, or to `unasked` while a turn is under way. A command of the chat waits for
    the turn's end.
    """

    def __init__(self, source: TextIO, out: TextIO, unasked: Callable[[str], None]) -> None:
        self._descriptor = source.fileno()
        self._out = out
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
    def pasting(self) -> Generator[None]:
        """Makes the terminal mark pasted text inside the block, so that it is one message."""
        with raw_echo(self._descriptor):
            self._mark(_MARK_PASTES)
            try:
                yield
            finally:
                self._mark(_NO_MARKS)

    def _mark(self, sequence: str) -> None:
        if os.environ.get("TERM", "dumb") != "dumb":
            write_control(self._out, sequence)
            self._out.flush()

    @contextmanager
    def lent(self) -> Generator[None]:
        """Lends the terminal to another program inside the block."""
        with self._reading:
            self._mark(_NO_MARKS)
            try:
                yield
            finally:
                self._mark(_MARK_PASTES)
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
            discard_input(self._descriptor)
        self._decoder.reset()
        self._begun = ""

    def _read(self) -> None:
        descriptor = self._descriptor
        while True:
            # Waits without reading: unread input can still be discarded.
            wait_for_input(descriptor)
            with self._reading:
                if not wait_for_input(descriptor, 0):
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
            data = read_input(self._descriptor)
        except OSError:
            # The terminal is gone.
            data = b""
        if not data:
            return None
        self._begun += self._decoder.decode(data)
        return self._complete()

    def _complete(self) -> list[str]:
        """Returns the complete messages: lines, and pasted blocks to the end of their line."""
        lines: list[str] = []
        while True:
            start, pasted = self._begun.find(_PASTE), 0
            if start >= 0 and "\n" not in self._begun[:start]:
                pasted = self._begun.find(_PASTED, start)
                if pasted < 0:
                    return lines
            end = self._begun.find("\n", pasted)
            if end < 0:
                return lines
            text, self._begun = self._begun[:end], self._begun[end + 1 :]
            lines.append(text.replace(_PASTE, "").replace(_PASTED, "").rstrip("\r"))

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


_WORDS = {
    **dict.fromkeys(YES, "y"),
    "": "n",
    "always": "a",
    "no": "n",
}
"""Words that mean the same as a letter."""
_MOST_ABOUT = 300


class Questions:
    """Asks on a terminal, one question at a time; only later input is an answer."""

    def __init__(
        self, out: TextIO, lines: LineInput, paused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._out = out
        self._lines = lines
        self._paused = paused
        """Pauses all other output while a question is on the screen."""
        self._one = asyncio.Lock()

    async def approve(self, question: Confirmation) -> UserAnswer:
        """Shows the call and waits for a choice; any other text denies it and is sent to the
        model.
        """
        ways = _ways(question)
        listed = "".join(
            f"  {number}. {words} ({key})\n"
            for number, (key, (_, words)) in enumerate(ways.items(), 1)
        )
        reason = f"({one_line(question.reason)})\n" if question.reason else ""
        word = await self._answer(
            f"\n{shown(question)}\n{reason}{remembered(question)}{listed}",
            f"{one_line(question.title)}: run it? A number or letter, Enter for no, "
            "or what to do instead: ",
        )
        key = _WORDS.get(word.lower(), word.lower())
        if key.isascii() and key.isdigit() and 1 <= int(key) <= len(ways):
            key = list(ways)[int(key) - 1]
        if key in ways:
            return UserAnswer(choice=ways[key][0])
        return UserAnswer(choice=Choice.CANCEL, feedback=word)

    async def edit(self, proposal: Proposal) -> str:
        """Opens the proposed text in the user's editor; unchanged if not saved."""
        with self._paused(), self._lines.lent():
            edited = click.edit(proposal.after, extension=proposal.path.suffix or ".txt")
        return proposal.after if edited is None else edited

    async def agrees(self, question: str) -> bool:
        """Asks; True only for an explicit yes."""
        return (await self._answer("", f"{question} [y/N] ")).lower() in YES

    async def number(self, question: str) -> int | None:
        """Asks for a number: Enter is 1, anything else 0; None at the end of the input."""
        typed = await self._lines.answer(lambda: self._say(question))
        if typed is None:
            return None
        text = typed.strip() or "1"
        return int(text) if text.isdigit() and text.isascii() else 0

    async def ask(self, question: str, choices: tuple[str, ...]) -> str:
        """Asks a question of the model; a number selects a choice."""
        listed = "".join(f"  {number}. {one_line(one)}\n" for number, one in enumerate(choices, 1))
        line = await self._answer(f"\n{_quoted(question)}\n{listed}", "? ")
        if line.isdigit() and 1 <= int(line) <= len(choices):
            return choices[int(line) - 1]
        return line

    async def _answer(self, body: str, last: str) -> str:
        """Returns what is typed after the last line appeared."""
        async with self._one:
            with self._paused():
                self._say(body)
                return (await self._lines.answer(lambda: self._say(last)) or "").strip()

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _ways(question: Confirmation) -> dict[str, tuple[Choice, str]]:
    """Returns the answers that a question has, by their letters."""
    details = question.details
    ways = {"y": (Choice.ONCE, "yes, once")}
    if question.remembers:
        ways["s"] = (Choice.SESSION, "yes, in this session")
        ways["a"] = (Choice.ALWAYS, "always in this project")
        ways["g"] = (Choice.EVERYWHERE, "always, everywhere")
        if isinstance(details, McpDetails):
            ways["m"] = (Choice.SERVER, f"every tool of the MCP server {one_line(details.server)}")
    if isinstance(details, EditDetails) and details.editable:
        ways["e"] = (Choice.MODIFY, "edit first")
    ways["n"] = (Choice.CANCEL, "no")
    return ways


def shown(question: Confirmation) -> str:
    """Returns what the user must see before approving."""
    match question.details:
        case EditDetails():
            return question.details.diff
        case ExecDetails():
            return f"$ {_quoted(question.details.command)}"
        case McpDetails():
            return _served(question.details)
        case InfoDetails():
            return _quoted(question.details.prompt)


def _served(details: McpDetails) -> str:
    """Returns the server, the tool, what the server says of it, and the arguments."""
    about = one_line(details.description)
    lines = (
        f"{one_line(details.server)}: {one_line(details.tool)} {_quoted(details.arguments)}",
        f"  {about[:_MOST_ABOUT]}" if about else "",
        f"  says of itself: {one_line(', '.join(details.hints))}" if details.hints else "",
    )
    return "\n".join(filter(None, lines))


def remembered(question: Confirmation) -> str:
    """Returns what an answer for longer than once would allow, a line each."""
    return "".join(f"session/always allows {one_line(each)}\n" for each in question.remembers)


def _quoted(text: str) -> str:
    """Returns the model's text with later lines indented: none can pass for our output."""
    return text.replace("\n", "\n  ")
