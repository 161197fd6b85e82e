"""Questions to the user: approvals, and questions that the model asks."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
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
from toolwire.cli.chatting.lines import LineInput
from toolwire.terminal_text import one_line
from toolwire.tools.proposals import Proposal

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
        details = question.details
        editable = isinstance(details, EditDetails) and details.editable
        reason = f"({one_line(question.reason)})\n" if question.reason else ""
        ways = f"{_ANYWAY}{', [e]dit first' if editable else ''}, [n]o, or type what to do instead"
        word = await self._answer(
            f"\n{shown(question)}\n{reason}", f"{one_line(question.title)}: run it? {ways}: "
        )
        choice = _CHOICES.get(word.lower())
        if choice is Choice.MODIFY and not editable:
            choice = None
        if choice is not None:
            return UserAnswer(choice=choice)
        return UserAnswer(choice=Choice.CANCEL, feedback=word)

    async def edit(self, proposal: Proposal) -> str:
        """Opens the proposed text in the user's editor; unchanged if not saved."""
        with self._paused(), self._lines.lent():
            edited = click.edit(proposal.after, extension=proposal.path.suffix or ".txt")
        return proposal.after if edited is None else edited

    async def agrees(self, question: str) -> bool:
        """Asks; True only for an explicit yes."""
        return (await self._answer("", f"{question} [y/N] ")).lower() in ("y", "yes")

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


def shown(question: Confirmation) -> str:
    """Returns what the user must see before approving."""
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
    """Returns the model's text with later lines indented: none can pass for our output."""
    return text.replace("\n", "\n  ")
