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

from toolwire.agent.events import AgentEvent, TurnEnd, TurnEnded
from toolwire.agent.questions import Answer, Choice, Confirmation
from toolwire.app.options import HostOverrides, SessionOptions
from toolwire.app.session import AgentSession, open_session
from toolwire.config import Settings
from toolwire.errors import BadInput
from toolwire.library.result import Gathering, Result, TurnFailed
from toolwire.messages import Message

Approved: TypeAlias = bool | Choice | Answer
Approve: TypeAlias = Callable[[Confirmation], Approved | Awaitable[Approved]]
"""May this call run? A plain function is called in a thread of its own."""
Hear: TypeAlias = Callable[[AgentEvent], object]
"""Is told what happens; if it gives an awaitable, that is awaited before the work goes on."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent was made with."""

    wanted: SessionOptions
    settings: Settings
    own: HostOverrides
    environ: Mapping[str, str]
    cwd: Path
    approve: Approve | None = None
    hear: Hear | None = None

    def __repr__(self) -> str:
        # The environment holds secrets.
        return f"Plan({self.wanted!r})"


class Conversation:
    """Belongs to the event loop that first used it."""

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
        """Whether it belongs to an event loop already."""
        return self._loop is not None

    @property
    def session(self) -> str:
        """Its id; empty before the first prompt."""
        return "" if self._session is None else self._session.id

    @property
    def messages(self) -> tuple[Message, ...]:
        """All that was said."""
        return () if self._session is None else self._session.request.messages

    def check_open(self) -> None:
        """Refuse what can no longer be done."""
        if self._closed:
            raise BadInput("the agent is closed; make a new one, with its session if it was kept")

    async def run(self, message: Message, hear: Hear | None = None) -> Result:
        """Work on what the user says, after what was asked for before."""
        self._belong()
        async with self._turns:
            self.check_open()
            watched = _Watched(tuple(filter(None, (self._plan.hear, hear))))
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
        """End what is open; the agent can not be used any more."""
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
        if own.temp is None and not (plan.wanted.kept or plan.wanted.session):
            folder = mkdtemp(prefix="toolwire-")
            # Also where nobody closes: forgotten with its event loop, or at the program's end.
            self._stack.callback(weakref.finalize(self, rmtree, folder, ignore_errors=True))
            own = msgspec.structs.replace(own, temp=Path(folder))
        return await self._stack.enter_async_context(
            open_session(
                plan.wanted,
                settings=plan.settings,
                environ=plan.environ,
                cwd=plan.cwd,
                readers=(self._hear,),
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
                "the agent is in use in another event loop; make one agent for each, "
                "or use run_sync everywhere"
            )

    async def _hear(self, event: AgentEvent) -> None:
        if self._watched is not None:
            await self._watched.hear(event)

    async def _ask(self, question: Confirmation) -> Answer:
        try:
            return await answer(self._plan.approve, question)
        except Exception as error:
            if self._watched is None:
                raise
            self._watched.fail(error)
            return Answer(choice=Choice.CANCEL)


async def answer(approve: Approve | None, question: Confirmation) -> Answer:
    """The program's answer: a bool is a yes or no for this one call."""
    said: object = Choice.CANCEL
    if inspect.iscoroutinefunction(approve):
        said = await approve(question)
    elif approve is not None:
        said = await asyncio.to_thread(approve, question)
        said = await said if inspect.isawaitable(said) else said
    match said:
        case Answer():
            return said
        case Choice():
            return Answer(choice=said)
        case bool():
            return Answer(choice=Choice.ONCE if said else Choice.CANCEL)
        case _:
            raise TypeError(f"approve gave {said!r}; give True, False, a Choice or an Answer")


class _Watched:
    """A turn under way; if the program's own code fails, it is stopped and that is raised."""

    def __init__(self, listeners: tuple[Hear, ...]) -> None:
        self.gathered = Gathering()
        self._listeners = listeners
        self._turn: asyncio.Task[TurnEnded] | None = None
        self._failure: Exception | None = None

    async def over(self, turn: Awaitable[TurnEnded]) -> TurnEnded:
        """How it ended."""
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
        """Stop the turn as a person would; every open call is answered before it ends."""
        if self._failure is None and self._turn is not None:
            self._failure = error
            self._turn.cancel()

    async def hear(self, event: AgentEvent) -> None:
        """Tell the listeners."""
        self.gathered.add(event)
        if self._failure is not None:
            return
        try:
            for listen in self._listeners:
                heard = listen(event)
                if inspect.isawaitable(heard):
                    await heard
        except Exception as error:
            self.fail(error)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def streamed(
    conversation: Conversation, message: Message
) -> AsyncGenerator[AgentEvent, None]:
    """Every event; whoever leaves before the last one has the turn cancelled."""
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
            # Seen: a turn that was left early has nobody to tell its failure to.
            turn.exception()
