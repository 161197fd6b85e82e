"""Open questions of sessions: asked once, answered once, wherever the answer comes from."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

import msgspec

from toolwire.agent.questions import (
    Choice,
    Confirmation,
    Details,
    EditDetails,
    ExecDetails,
    McpDetails,
    UserAnswer,
)
from toolwire.gateway.console.calls import ApiError, ApiRoute, Call
from toolwire.ids import new_id

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console

_REMEMBERED = 500
"""Answered questions whose ids are known, so that a second answer gets their state."""
State = Literal["answered", "withdrawn"]


class HeldBy(msgspec.Struct, frozen=True, kw_only=True):
    """The process that has a session open."""

    pid: int
    text: str


def held_by(pid: int) -> HeldBy:
    """The holder in words."""
    return HeldBy(pid=pid, text=f"answer in the terminal, process {pid}")


class ShownQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question as a page shows it."""

    id: str
    session: str
    session_title: str = ""
    project: str = ""
    asked: float = 0.0
    call_id: str
    tool: str
    title: str
    reason: str
    remembers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    details: Details
    content: str | None = None
    """The proposed text, which may be changed in place."""
    here: bool = True
    held_by: HeldBy | None = None
    again: bool = False
    """Whether it was asked before the gateway was restarted."""


def choices_of(question: Confirmation) -> tuple[str, ...]:
    """The answers that fit a question."""
    wide: tuple[Choice, ...] = ()
    if question.remembers:
        wide = (Choice.SESSION, Choice.ALWAYS, Choice.EVERYWHERE)
        if isinstance(question.details, McpDetails):
            wide = (*wide, Choice.SERVER)
    return tuple(map(str, (Choice.ONCE, *wide, Choice.CANCEL)))


def shown_question(
    question: Confirmation,
    *,
    id: str,
    session: str,
    title: str,
    project: str,
    asked: float,
    content: str | None = None,
    again: bool = False,
    holder: int | None = None,
) -> ShownQuestion:
    """The question for a page; of another process if it has a `holder`."""
    if content is None and isinstance(question.details, ExecDetails):
        content = question.details.command
    return ShownQuestion(
        id=id,
        session=session,
        session_title=title,
        project=project,
        asked=asked,
        call_id=question.call.id,
        tool=question.call.name,
        title=question.title,
        reason=question.reason,
        remembers=question.remembers,
        choices=() if holder is not None else choices_of(question),
        details=question.details,
        content=content,
        here=holder is None,
        held_by=None if holder is None else held_by(holder),
        again=again,
    )


class _Open(msgspec.Struct, frozen=True):
    shown: ShownQuestion
    answer: asyncio.Future[UserAnswer]


class OpenQuestions:
    """The questions of the sessions that this gateway runs."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._past: OrderedDict[str, tuple[State, str, str]] = OrderedDict()
        self.version = 0
        """Grows with each change."""

    @property
    def shown(self) -> list[ShownQuestion]:
        """All that wait for an answer, the oldest first."""
        return [one.shown for one in self._open.values()]

    def of_session(self, session: str) -> list[ShownQuestion]:
        """Those of one session."""
        return [one for one in self.shown if one.session == session]

    async def ask(
        self,
        question: Confirmation,
        *,
        session: str,
        title: str,
        project: str,
        content: str | None,
        again: bool,
    ) -> UserAnswer:
        """Waits for the answer; a question whose turn is stopped is withdrawn."""
        shown = shown_question(
            question,
            id=new_id("q_"),
            session=session,
            title=title,
            project=project,
            asked=time.time(),
            content=content,
            again=again,
        )
        waiting: asyncio.Future[UserAnswer] = asyncio.get_running_loop().create_future()
        self._open[shown.id] = _Open(shown, waiting)
        self.version += 1
        try:
            answer = await waiting
            self._remember(shown, "answered", str(answer.choice))
            return answer
        except asyncio.CancelledError:
            self._remember(shown, "withdrawn", "")
            raise
        finally:
            self._open.pop(shown.id, None)
            self.version += 1

    def _remember(self, shown: ShownQuestion, state: State, choice: str) -> None:
        self._past[shown.id] = (state, choice, shown.session)
        if len(self._past) > _REMEMBERED:
            self._past.popitem(last=False)

    def answer(self, question: str, answer: UserAnswer) -> None:
        """Gives the answer; ApiError if the question is not open any more."""
        found = self._open.get(question)
        if found is not None and not found.answer.done():
            if str(answer.choice) not in found.shown.choices:
                listed = ", ".join(found.shown.choices)
                raise ApiError(400, f'"{answer.choice}" is not possible here', f"use {listed}")
            if answer.content is not None and not _may_change(found.shown.details):
                raise ApiError(400, "the text of this question cannot be changed")
            found.answer.set_result(answer)
            return
        past = self._past.get(question)
        if found is None and past is None:
            raise ApiError(404, f'no question "{question[:100]}"')
        state, choice, session = past or ("answered", "", found.shown.session if found else "")
        # The same call may have been asked about again, with what has changed meanwhile.
        again = next(iter(self.of_session(session)), None) if found is None else None
        words = f"answered with {choice}" if choice else state
        more = {
            "state": "replaced" if again is not None else state,
            "question": msgspec.to_builtins(again, enc_hook=str),
        }
        raise ApiError(409, f"this question is no longer open: {words}", more=more)


def _may_change(details: Details) -> bool:
    return isinstance(details, ExecDetails) or (
        isinstance(details, EditDetails) and details.editable
    )


class GivenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The user's answer to a question."""

    choice: Literal["once", "session", "always", "everywhere", "server", "cancel"]
    content: str | None = None
    """Text changed in place, with an approval."""
    feedback: str = ""
    """Words for the model, with a denial."""


class QuestionList(msgspec.Struct, frozen=True):
    """Open questions, the oldest first."""

    questions: list[ShownQuestion]


class Answered(msgspec.Struct, frozen=True):
    """The answer was taken."""

    answered: bool
    choice: str


async def listed(console: Console, call: Call) -> None:
    """Answers with every open question."""
    await call.answer(QuestionList(await console.sessions.questions_everywhere()))


async def answer(console: Console, call: Call) -> None:
    """Answers a question, once."""
    given = call.body(GivenAnswer)
    chosen = UserAnswer(choice=Choice(given.choice), content=given.content, feedback=given.feedback)
    name = call.parts["id"]
    for one in await console.sessions.questions_everywhere():
        if one.id == name and one.held_by is not None:
            raise ApiError(409, "another process asks this question", one.held_by.text)
    console.sessions.questions.answer(name, chosen)
    await call.answer(Answered(True, given.choice))


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/questions",
        does=listed,
        about="Open questions of all sessions, the oldest first.",
        returns=QuestionList,
    ),
    ApiRoute(
        method="POST",
        path="/questions/{id}",
        does=answer,
        about="Answer a question; 409 if it was answered or withdrawn before.",
        takes=GivenAnswer,
        returns=Answered,
        session=True,
    ),
)
