"""Questions in the live area: what is asked, which keys answer, what never counts as a yes."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from toolwire.agent.questions import (
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
    UserAnswer,
)
from toolwire.terminal_text import one_line, terminal_text
from toolwire.tui.diffs import diff_lines, painted
from toolwire.tui.live import Size
from toolwire.tui.render import Painter

QUIET = 0.3
"""Seconds that a question is on the screen, and without a key, before a key answers it."""
_MOST_DIFF = 400


class AnswerKey(StrEnum):
    """A key as a question reads it; any other is its letter."""

    ENTER = "enter"
    ESCAPE = "escape"
    TAB = "tab"
    BACKSPACE = "backspace"


class Asked(msgspec.Struct, frozen=True):
    """A question with an answer of its own kind."""

    approval: Confirmation | None = None
    text: str = ""
    choices: tuple[str, ...] = ()
    yes_no: bool = False


Outcome: TypeAlias = UserAnswer | str | bool


class QuestionPanel:
    """Asks one question at a time; the keys come from the screen."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._one = asyncio.Lock()
        self._asked: Asked | None = None
        self._answer: asyncio.Future[Outcome] | None = None
        self._armed = False
        """Whether keys count. A timer sets it: keys that waited while this process was busy are
        read before the timer runs, and start it again.
        """
        self._timer: asyncio.TimerHandle | None = None
        self._typing: str | None = None
        """Words typed instead of an answer; None while keys answer."""
        self._later = 0

    @property
    def asking(self) -> bool:
        """Whether a question is open."""
        return self._asked is not None

    async def approve(self, question: Confirmation) -> UserAnswer:
        """Asks whether a call may run."""
        answer = await self._ask(Asked(approval=question))
        return answer if isinstance(answer, UserAnswer) else UserAnswer(choice=Choice.CANCEL)

    async def agrees(self, question: str) -> bool:
        """Asks for a yes; anything else is a no."""
        return await self._ask(Asked(text=question, yes_no=True)) is True

    async def ask(self, question: str, choices: tuple[str, ...]) -> str:
        """Asks a question of the model."""
        answer = await self._ask(Asked(text=question, choices=choices))
        return answer if isinstance(answer, str) else ""

    async def _ask(self, asked: Asked) -> Outcome:
        self._later += 1
        async with self._one:
            self._later -= 1
            self._asked, self._typing = asked, None
            self._disarm()
            if not asked.choices and not asked.approval and not asked.yes_no:
                self._typing = ""
            self._answer = asyncio.get_running_loop().create_future()
            self._changed()
            try:
                return await self._answer
            finally:
                self._asked = self._answer = None
                self._changed()

    def press(self, key: str) -> bool:
        """Takes a key; False if it belongs to the composer, because it came too early."""
        if self._typing is None and not self._armed:
            if self._timer is not None:
                self._wait()
            return False
        if self._typing is not None:
            self._type(key)
        else:
            self._choose(key)
        self._changed()
        return True

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed, self._timer = False, None

    def _wait(self) -> None:
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(QUIET, self._arm)

    def _arm(self) -> None:
        self._armed = True

    def cancel(self) -> None:
        """Answers no."""
        asked = self._asked
        if asked is not None:
            self._settle(UserAnswer(choice=Choice.CANCEL) if asked.approval else _no(asked))

    def paste(self, text: str) -> bool:
        """Takes pasted words where words are typed; a paste never answers."""
        if self._typing is None:
            return False
        self._typing += text.replace("\n", " ")
        self._changed()
        return True

    def _type(self, key: str) -> None:
        words = self._typing or ""
        match key:
            case AnswerKey.ENTER:
                asked = self._asked
                if asked is not None and asked.approval is not None:
                    self._settle(UserAnswer(choice=Choice.CANCEL, feedback=words.strip()))
                else:
                    self._settle(words.strip())
            case AnswerKey.ESCAPE:
                self._typing = None if self._asked and self._asked.approval else ""
            case AnswerKey.BACKSPACE:
                self._typing = words[:-1]
            case _ if len(key) == 1 and key.isprintable():
                self._typing = words + key
            case _:
                pass

    def _choose(self, key: str) -> None:
        asked = self._asked
        if asked is None:
            return
        if asked.approval is not None:
            self._approve_by(asked.approval, key)
        elif asked.yes_no:
            if key in ("y", "Y", "n", "N", AnswerKey.ESCAPE, AnswerKey.ENTER):
                self._settle(key in ("y", "Y"))
        elif key.isdigit() and 1 <= int(key) <= len(asked.choices):
            self._settle(asked.choices[int(key) - 1])
        elif key == AnswerKey.ESCAPE:
            self._settle("")
        elif key == AnswerKey.TAB or (len(key) == 1 and key.isprintable()):
            self._typing = "" if key == AnswerKey.TAB else key

    def _approve_by(self, question: Confirmation, key: str) -> None:
        if key == AnswerKey.TAB:
            self._typing = ""
            return
        if key in (AnswerKey.ESCAPE, "n"):
            self._settle(UserAnswer(choice=Choice.CANCEL))
            return
        choice = _answers(question).get("y" if key == AnswerKey.ENTER else key)
        if choice is not None:
            self._settle(UserAnswer(choice=choice[0]))

    def _settle(self, outcome: Outcome) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(outcome)

    def rows(self, painter: Painter, size: Size, layout: str = "auto") -> list[str]:
        """The question's rows; drawing them starts the time after which keys count."""
        asked = self._asked
        if asked is None:
            return []
        if not self._armed and self._timer is None:
            self._wait()
        room = max(size.rows - 8, 3)
        if asked.approval is not None:
            body, keys = _approval(asked.approval, painter, layout), _keys(asked.approval, painter)
        else:
            body, keys = _plain(asked, painter)
        if len(body) > room:
            left = len(body) - room + 1
            body = [*body[: room - 1], painter.line((f"  … {left} more lines", "dim"))]
        if self._typing is not None:
            keys = [painter.line(("  › ", "key"), f"{self._typing}▏")]
            if asked.approval is not None:
                hint = "  Enter: no, with these words; Esc: back"
                keys.append(painter.line((hint, "dim")))
        waiting = [painter.line((f"  1 of {self._later + 1} questions", "dim"))] * bool(self._later)
        return [*body, *keys, *waiting]


_MOST_ABOUT = 300


def _no(asked: Asked) -> Outcome:
    return False if asked.yes_no else ""


def _answers(question: Confirmation) -> dict[str, tuple[Choice, str]]:
    """The keys that allow the call, with what they mean."""
    found = {"y": (Choice.ONCE, "yes, once")}
    if question.remembers:
        found["s"] = (Choice.SESSION, "this session")
        found["a"] = (Choice.ALWAYS, "always in this project")
        found["g"] = (Choice.EVERYWHERE, "always, everywhere")
    if isinstance(question.details, McpDetails) and question.remembers:
        found["m"] = (Choice.SERVER, f"every tool of {one_line(question.details.server)}")
    if isinstance(question.details, EditDetails) and question.details.editable:
        found["e"] = (Choice.MODIFY, "edit first")
    return found


def _keys(question: Confirmation, painter: Painter) -> list[str]:
    pieces: list[tuple[str, str] | str] = ["  "]
    for key, (_, words) in _answers(question).items():
        pieces += [(key, "key"), f" {words}  "]
    pieces += [("n", "key"), " no  ", ("Tab", "key"), " no, with words"]
    rows = [
        painter.line((f"  session/always allows: {one_line(each)}", "dim"))
        for each in question.remembers
    ]
    return [*rows, *_folded(pieces, painter)]


def _folded(pieces: list[tuple[str, str] | str], painter: Painter) -> list[str]:
    """The pieces in rows that fit the terminal."""
    rows: list[list[tuple[str, str] | str]] = [[]]
    used = 0
    for piece in pieces:
        words = piece if isinstance(piece, str) else piece[0]
        if isinstance(piece, tuple) and used + 28 >= painter.width and used > 2:
            rows.append(["  "])
            used = 2
        rows[-1].append(piece)
        used += len(words)
    return [painter.line(*row) for row in rows]


def _approval(question: Confirmation, painter: Painter, layout: str) -> list[str]:
    title = painter.line(("? ", "question"), (question.title, "question"))
    reason = [painter.line((f"  {one_line(question.reason)}", "dim"))] if question.reason else []
    return [title, *_details(question, painter, layout), *reason]


def _details(question: Confirmation, painter: Painter, layout: str) -> list[str]:
    match question.details:
        case EditDetails() as details:
            lines = diff_lines(details.diff)
            return painted(lines, painter, indent=2, layout=layout, most=_MOST_DIFF)
        case ExecDetails() as details:
            lines = terminal_text(details.command).split("\n")
            where = [f"  in {one_line(details.directory)}"] if details.directory else []
            programs = ", ".join(one_line(root) for root in details.roots)
            starts = [f"  starts: {programs}"] if programs else []
            return [
                *_wrapped("  $ ", lines, painter),
                *(painter.line((words, "dim")) for words in (*where, *starts)),
            ]
        case McpDetails() as details:
            head = painter.line((f"  {one_line(details.server)}: {one_line(details.tool)}", "call"))
            about = [details.description[:_MOST_ABOUT], ", ".join(details.hints)]
            return [
                head,
                *_wrapped("  ", terminal_text(details.arguments).split("\n"), painter),
                *(painter.line((f"  {one_line(words)}", "dim")) for words in about if words),
            ]
        case InfoDetails() as details:
            return _wrapped("  ", terminal_text(details.prompt).split("\n"), painter)


def _wrapped(lead: str, lines: list[str], painter: Painter) -> list[str]:
    """Lines that the terminal need not wrap; nothing in the middle is left out."""
    width = max(painter.width - len(lead) - 1, 8)
    rows: list[str] = []
    for line in lines:
        pieces = [line[at : at + width] for at in range(0, len(line), width)] or [""]
        rows.extend(painter.line(f"{' ' * len(lead) if rows else lead}{piece}") for piece in pieces)
    return rows


def _plain(asked: Asked, painter: Painter) -> tuple[list[str], list[str]]:
    body = _wrapped("? ", terminal_text(asked.text).split("\n"), painter)
    listed = [
        painter.line((f"  {number} ", "key"), one_line(choice))
        for number, choice in enumerate(asked.choices, 1)
    ]
    if asked.yes_no:
        return body, [painter.line("  ", ("y", "key"), " yes  ", ("n", "key"), " no")]
    hint = "  a number, or other words" if listed else ""
    return [*body, *listed], [painter.line((hint, "dim"))] if hint else []
