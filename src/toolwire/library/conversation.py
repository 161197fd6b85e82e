"""One agent's session: opened by the first prompt, one turn at a time."""

import asyncio
import inspect
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TypeAlias

import msgspec

from toolwire.agent.events import AgentEvent, TurnEnd, TurnEnded, reader_of
from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.app.builder import open_session
from toolwire.app.options import HostOverrides, SessionOptions
from toolwire.app.session import AgentSession
from toolwire.config import Settings
from toolwire.errors import BadInput
from toolwire.library.result import Gathering, Result, TurnFailed
from toolwire.messages import Message

Approved: TypeAlias = bool | Choice | UserAnswer
Approve: TypeAlias = Callable[[Confirmation], Approved | Awaitable[Approved]]
"""Decides whether a call may run. A plain function is called in its own thread."""
Listener: TypeAlias = Callable[[AgentEvent], object]
"""Receives events; an awaitable it returns is awaited before the work continues."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the agent."""

    options: SessionOptions
    settings: Settings
    own: HostOverrides
    environ: Mapping[str, str]
    cwd: Path
    approve: Approve | None = None
    listener: Listener | None = None

    def __repr__(self) -> str:
        # The environment contains secrets.
        return f"Plan({self.options!r})"


class Conversation:
    """A session, bound to the event loop that first used it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stack = AsyncExitStack()
        self._session: AgentSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._turns = asyncio.Lock()
        self._watched: _Watched | None = None

    @property
    def used(self) -> bool:
        """Whether it is bound to an event loop."""
        return self._loop is not None

    @property
    def session(self) -> str:
        """Its id; empty before the first prompt."""
        return "" if self._session is None else self._session.id

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return () if self._session is None else self._session.request.messages

    def check_open(self) -> None:
        """Raises if the agent is closed."""
        if self._closed:
            raise BadInput(
                "the agent is closed; create a new one, with its session if it was stored"
            )

    async def run(self, message: Message, listener: Listener | None = None) -> Result:
        """Runs the user's message; waits for earlier ones."""
        self._belong()
        async with self._turns:
            self.check_open()
            watched = _Watched(tuple(filter(None, (self._plan.listener, listener))))
            self._watched = watched
            try:
                ended = await watched.over(self._turn(message))
            finally:
                self._watched = None
            result = watched.gathered.result(ended, self.messages, self.session)
        if ended.reason is TurnEnd.FAILED:
            raise TurnFailed(ended, result)
        return result

    async def close(self) -> None:
        """Closes the session; the agent cannot be used any more."""
        if not self._closed and self._loop is not None:
            self._belong()
        async with self._turns:
            self._closed = True
            await self._stack.aclose()

    async def _turn(self, message: Message) -> TurnEnded:
        if self._session is None:
            self._session = await self._open()
        return await self._session.send(message)

    async def _open(self) -> AgentSession:
        plan = self._plan
        own = plan.own
        if own.temp is None and not (plan.options.kept or plan.options.session):
            folder = mkdtemp(prefix="toolwire-")
            # Also without a close: dropped with its event loop, or at exit.
            self._stack.callback(weakref.finalize(self, rmtree, folder, ignore_errors=True))
            own = msgspec.structs.replace(own, temp=Path(folder))
        return await self._stack.enter_async_context(
            open_session(
                plan.options,
                settings=plan.settings,
                environ=plan.environ,
                cwd=plan.cwd,
                readers=(reader_of(self._receive),),
                approver=self._ask if plan.approve is not None else None,
                own=own,
            )
        )

    def _belong(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise BadInput(
                "the agent is in use in another event loop; create one agent for each, "
                "or use run_sync everywhere"
            )

    async def _receive(self, event: AgentEvent) -> None:
        if self._watched is not None:
            await self._watched.receive(event)

    async def _ask(self, question: Confirmation) -> UserAnswer:
        try:
            return await answer(self._plan.approve, question)
        except Exception as error:
            if self._watched is None:
                raise
            self._watched.fail(error)
            return UserAnswer(choice=Choice.CANCEL)


async def answer(approve: Approve | None, question: Confirmation) -> UserAnswer:
    """Returns the program's answer; a bool allows or denies this one call."""
    answer: object = Choice.CANCEL
    if inspect.iscoroutinefunction(approve):
        answer = await approve(question)
    elif approve is not None:
        answer = await asyncio.to_thread(approve, question)
        answer = await answer if inspect.isawaitable(answer) else answer
    match answer:
        case UserAnswer():
            return answer
        case Choice():
            return UserAnswer(choice=answer)
        case bool():
            return UserAnswer(choice=Choice.ONCE if answer else Choice.CANCEL)
        case _:
            raise TypeError(
                f"approve returned {answer!r}; return True, False, a Choice or an Answer"
            )


class _Watched:
    """A running turn; if a listener fails, it is stopped and the error is raised."""

    def __init__(self, listeners: tuple[Listener, ...]) -> None:
        self.gathered = Gathering()
        self._listeners = listeners
        self._turn: asyncio.Task[TurnEnded] | None = None
        self._failure: Exception | None = None

    async def over(self, turn: Awaitable[TurnEnded]) -> TurnEnded:
        """Returns how it ended."""
        self._turn = asyncio.ensure_future(turn)
        try:
            ended = await self._turn
        except asyncio.CancelledError:
            if self._failure is None or _is_cancelled():
                raise
            raise self._failure from None
        if self._failure is not None:
            raise self._failure
        return ended

    def fail(self, error: Exception) -> None:
        """Cancels the turn; every open call is answered before it ends."""
        if self._failure is None and self._turn is not None:
            self._failure = error
            self._turn.cancel()

    async def receive(self, event: AgentEvent) -> None:
        """Passes an event to the listeners."""
        self.gathered.add(event)
        if self._failure is not None:
            return
        try:
            for listen in self._listeners:
                result = listen(event)
                if inspect.isawaitable(result):
                    await result
        except Exception as error:
            self.fail(error)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def streamed(
    conversation: Conversation, message: Message
) -> AsyncGenerator[AgentEvent, None]:
    """Yields every event; leaving before the last one cancels the turn."""
    pipe: asyncio.Queue[AgentEvent | None] = asyncio.Queue(1)
    left = False

    async def pass_on(event: AgentEvent | None) -> None:
        if not left:
            await pipe.put(event)

    async def work() -> None:
        try:
            await conversation.run(message, pass_on)
        finally:
            await pass_on(None)

    turn = asyncio.ensure_future(work())
    try:
        while (event := await pipe.get()) is not None:
            yield event
        await turn
    finally:
        left = True
        turn.cancel()
        await asyncio.wait((turn,))
        if not turn.cancelled():
            # Retrieved: a turn that was left early has no caller to report its failure to.
            turn.exception()
