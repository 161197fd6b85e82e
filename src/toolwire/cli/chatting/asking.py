"""Questions to the person: may this call run, and what they are asked by the model itself."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TextIO

import click

from toolwire.agent.questions import (
    Answer,
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
)
from toolwire.cli.chatting.lines import Lines
from toolwire.terminal_text import one_line
from toolwire.tools.spec import Proposal

_CHOICES = {
    "y": Choice.ONCE,
    "yes": Choice.ONCE,
    "s": Choice.SESSION,
    "a": Choice.ALWAYS,
    "e": Choice.MODIFY,
    "n": Choice.CANCEL,
    "no": Choice.CANCEL,
}
_ANYWAY = "[y]es, for this [s]ession, [a]lways"


class Questions:
    """Asks on a terminal, one question at a time; only what is typed after it is an answer."""

    def __init__(
        self, out: TextIO, lines: Lines, paused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._out = out
        self._lines = lines
        self._paused = paused
        """Stops every other output for as long as a question is on the screen."""
        self._one = asyncio.Lock()

    async def approve(self, question: Confirmation) -> Answer:
        """Shows what would happen, and waits for a clear answer; anything else is a no with
        these words for the model.
        """
        details = question.details
        editable = isinstance(details, EditDetails) and details.editable
        reason = f"({one_line(question.reason)})\n" if question.reason else ""
        ways = f"{_ANYWAY}{', [e]dit first' if editable else ''}, [n]o, or say what to do instead"
        word = await self._answer(
            f"\n{shown(question)}\n{reason}", f"{one_line(question.title)}: run it? {ways}: "
        )
        choice = _CHOICES.get(word.lower())
        if choice is Choice.MODIFY and not editable:
            choice = None
        if choice is not None:
            return Answer(choice=choice)
        return Answer(choice=Choice.CANCEL, feedback=word)

    async def edit(self, proposal: Proposal) -> str:
        """The proposed text in the person's own editor; as it was if they do not save."""
        with self._paused(), self._lines.lent():
            edited = click.edit(proposal.after, extension=proposal.path.suffix or ".txt")
        return proposal.after if edited is None else edited

    async def agrees(self, question: str) -> bool:
        """A question that only a clear yes answers."""
        return (await self._answer("", f"{question} [y/N] ")).lower() in ("y", "yes")

    async def ask(self, question: str, choices: tuple[str, ...]) -> str:
        """A question of the model's; a number stands for a choice."""
        listed = "".join(f"  {number}. {one_line(one)}\n" for number, one in enumerate(choices, 1))
        line = await self._answer(f"\n{_quoted(question)}\n{listed}", "? ")
        if line.isdigit() and 1 <= int(line) <= len(choices):
            return choices[int(line) - 1]
        return line

    async def _answer(self, body: str, last: str) -> str:
        """What is typed after the last line has appeared."""
        async with self._one:
            with self._paused():
                self._say(body)
                return (await self._lines.answer(lambda: self._say(last)) or "").strip()

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def shown(question: Confirmation) -> str:
    """What a person has to see before they say yes."""
    match question.details:
        case EditDetails():
            return question.details.diff
        case ExecDetails():
            return f"$ {_quoted(question.details.command)}"
        case McpDetails():
            return f"{one_line(question.details.server)}: {_quoted(question.details.arguments)}"
        case InfoDetails():
            return _quoted(question.details.prompt)


def _quoted(text: str) -> str:
    """Text of the model's, its later lines set in: no line of it can pass for one of ours."""
    return text.replace("\n", "\n  ")
