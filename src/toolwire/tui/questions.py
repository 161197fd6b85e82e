"""Questions in the live area: what is asked, which keys answer, what never counts as a yes."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from toolwire.agent.events import AgentEvent, ModelAsked, ToolFinished, ToolRequested, TurnEnded
from toolwire.agent.questions import Choice, Confirmation, ExecDetails, UserAnswer
from toolwire.messages import ToolCall
from toolwire.tui.live import Size
from toolwire.tui.question_rows import (
    Asked,
    ReplyCalls,
    answers,
    approval_rows,
    key_rows,
    plain_rows,
)
from toolwire.tui.render import Painter

QUIET = 0.3
"""Seconds that a question is on the screen, and without a key, before a key answers it."""


class AnswerKey(StrEnum):
    """A key as a question reads it; any other is its letter."""

    ENTER = "enter"
    ESCAPE = "escape"
    TAB = "tab"
    BACKSPACE = "backspace"


Outcome: TypeAlias = UserAnswer | str | bool


class QuestionPanel:
    """Asks one question at a time; the keys come from the screen."""

    def __init__(
        self,
        changed: Callable[[], None],
        *,
        whole: Callable[[], None] = lambda: None,
        edit: Callable[[str], None] = lambda text: None,
        rules_file: str = "",
    ) -> None:
        """`whole` shows the question on a page, `edit` puts a command into the composer."""
        self._changed = changed
        self._whole = whole
        self._edit = edit
        self._rules_file = rules_file
        self.editing = False
        """Whether the user edits a command in the composer; keys go there."""
        self._reply: list[ToolCall] = []
        self._finished: set[str] = set()
        self._all = False
        """Whether the user allowed every call of the reply."""
        self._one = asyncio.Lock()
        self._asked: Asked | None = None
        self._answer: asyncio.Future[Outcome] | None = None
        self._armed = False
        """Whether keys count. A timer sets it: keys that waited while this process was busy are
        read before the timer runs, and start it again.
        """
        self._timer: asyncio.Handle | None = None
        self._typing: str | None = None
        """Words typed instead of an answer; None while keys answer."""
        self._later = 0

    @property
    def asking(self) -> bool:
        """Whether a question is open, and keys may answer it."""
        return self._asked is not None and not self.editing

    @property
    def open(self) -> bool:
        """Whether a question is on the screen."""
        return self._asked is not None

    @property
    def question(self) -> Confirmation | None:
        """The call that is asked about."""
        return self._asked.approval if self._asked is not None else None

    def note(self, event: AgentEvent) -> None:
        """Follows which calls belong to the present reply."""
        match event:
            case ModelAsked() | TurnEnded():
                self._reply, self._finished, self._all = [], set(), False
            case ToolRequested():
                self._reply.append(event.call)
            case ToolFinished():
                self._finished.add(event.call_id)
            case _:
                pass

    def _calls(self) -> ReplyCalls:
        """Where the call in question is among those of its reply."""
        question = self.question
        ids = [call.id for call in self._reply]
        if question is None or question.call.id not in ids:
            return ReplyCalls()
        waiting = tuple(
            call
            for call in self._reply
            if call.id not in self._finished and call.id != question.call.id
        )
        return ReplyCalls(ids.index(question.call.id) + 1, len(ids), waiting)

    async def approve(self, question: Confirmation) -> UserAnswer:
        """Asks whether a call may run."""
        if self._all and any(call.id == question.call.id for call in self._reply):
            return UserAnswer(choice=Choice.ONCE)
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
                self.editing = False
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

    def wait_again(self) -> None:
        """Lets keys count only some time after the next drawing: those that follow are older."""
        self._disarm()

    def _wait(self) -> None:
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(QUIET, self._arm)

    def _arm(self) -> None:
        self._armed = True

    def choose(self, key: str) -> None:
        """Takes a key that was pressed on the page of the question."""
        self._choose(key)
        self._changed()

    def edited(self, command: str) -> None:
        """Takes the command as the user wrote it; it is asked about again if it needs a yes."""
        self.editing = False
        if command.strip():
            self._settle(UserAnswer(choice=Choice.MODIFY, content=command))

    def leave_edit(self) -> None:
        """Goes back to the question with the command as it was."""
        self.editing = False
        self._disarm()
        self._changed()

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
        others = len(self._calls().waiting)
        key = "y" if key == AnswerKey.ENTER else key
        choice = answers(question, others).get(key)
        if key == AnswerKey.TAB:
            self._typing = ""
        elif key in (AnswerKey.ESCAPE, "n"):
            self._settle(UserAnswer(choice=Choice.CANCEL))
        elif key == "d":
            self._whole()
        elif key == "e" and isinstance(question.details, ExecDetails):
            self.editing = True
            self._edit(question.details.command)
        elif choice is not None:
            self._all = self._all or key == "Y"
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
            # After the frame with these rows is written, however long that takes.
            self._timer = asyncio.get_running_loop().call_soon(self._wait)
        if asked.approval is not None:
            calls = self._calls()
            body = approval_rows(asked.approval, painter, layout, calls=calls)
            keys = key_rows(asked.approval, painter, calls, self._rules_file)
        else:
            body, keys = plain_rows(asked, painter)
        if self._typing is not None:
            keys = [painter.line(("  › ", "key"), f"{self._typing}▏")]
            if asked.approval is not None:
                hint = "  Enter: no, with these words; Esc: back"
                keys.append(painter.line((hint, "dim")))
        elif self.editing:
            hint = "  Enter: this command instead, asked again if it needs a yes; Esc: back"
            keys = [painter.line((hint, "dim"))]
        room = max(size.rows - len(keys) - 5, 3)
        if len(body) > room:
            left = len(body) - room + 1
            body = [*body[: room - 1], painter.line((f"  … {left} more lines: d", "dim"))]
        waiting = [painter.line((f"  1 of {self._later + 1} questions", "dim"))] * bool(self._later)
        return [*body, *keys, *waiting]


def _no(asked: Asked) -> Outcome:
    return False if asked.yes_no else ""
