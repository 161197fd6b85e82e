"""Questions to the person: may this call run, and what they are asked by the model itself."""

from typing import TextIO

import click

from toolwire.agent.confirmations import (
    Answer,
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
)
from toolwire.cli.chatting.lines import Lines
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
    """Asks on a terminal; the answers are lines like any other."""

    def __init__(self, out: TextIO, lines: Lines) -> None:
        self._out = out
        self._lines = lines

    async def approve(self, question: Confirmation) -> Answer:
        """Shows what would happen, and waits for a clear answer; anything else is a no with
        these words for the model.
        """
        details = question.details
        editable = isinstance(details, EditDetails) and details.editable
        self._say(f"\n{shown(question)}\n")
        if question.reason:
            self._say(f"({question.reason})\n")
        ways = f"{_ANYWAY}{', [e]dit first' if editable else ''}, [n]o, or say what to do instead"
        self._say(f"{question.title}: run it? {ways}: ")
        line = await self._lines.next()
        word = (line or "").strip()
        choice = _CHOICES.get(word.lower())
        if choice is Choice.MODIFY and not editable:
            choice = None
        if choice is not None:
            return Answer(choice=choice)
        return Answer(choice=Choice.CANCEL, feedback=word)

    async def edit(self, proposal: Proposal) -> str:
        """The proposed text in the person's own editor; as it was if they do not save."""
        edited = click.edit(proposal.after, extension=proposal.path.suffix or ".txt")
        return proposal.after if edited is None else edited

    async def agrees(self, question: str) -> bool:
        """A question that only a clear yes answers."""
        self._say(f"{question} [y/N] ")
        return (await self._lines.next() or "").strip().lower() in ("y", "yes")

    async def ask(self, question: str, choices: tuple[str, ...]) -> str:
        """A question of the model's; a number stands for a choice."""
        self._say(f"\n{question}\n")
        for number, choice in enumerate(choices, 1):
            self._say(f"  {number}. {choice}\n")
        self._say("? ")
        line = (await self._lines.next() or "").strip()
        if line.isdigit() and 1 <= int(line) <= len(choices):
            return choices[int(line) - 1]
        return line

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def shown(question: Confirmation) -> str:
    """What a person has to see before they say yes."""
    match question.details:
        case EditDetails():
            return question.details.diff
        case ExecDetails():
            return f"$ {question.details.command}"
        case McpDetails():
            return f"{question.details.server}: {question.details.arguments}"
        case InfoDetails():
            return question.details.prompt
