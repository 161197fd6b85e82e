"""One agent's session: opened by the first prompt, one turn at a time."""

import asyncio
import inspect
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, TypeAlias

import msgspec

from toolwire.agent.approval import OuterApproval
from toolwire.agent.events import AgentEvent, ModelAsked, Streaming, TurnEnd, TurnEnded, reader_of
from toolwire.agent.hook_chain import HookChain, called
from toolwire.agent.hooks import Hooks
from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.agent.structured import OutputSchema
from toolwire.agent.usage import Limits
from toolwire.app.builder import open_session
from toolwire.app.options import HostOverrides, SessionOptions, TurnOptions
from toolwire.app.session import AgentSession
from toolwire.config import Settings
from toolwire.errors import BadInput
from toolwire.events import TextDelta
from toolwire.library.result import Gathering, PartialOutput, Result, TurnFailed
from toolwire.messages import Media, Message, Text
from toolwire.request import ModelSettings
from toolwire.tools.files.contents import attachment
from toolwire.tools.registry import Registry

Approved: TypeAlias = bool | Choice | UserAnswer
Approve: TypeAlias = Callable[[Confirmation], Approved | Awaitable[Approved]]
"""Decides whether a call may run. A plain function is called in its own thread."""
Listener: TypeAlias = Callable[[AgentEvent], object]
"""Receives events; an awaitable it returns is awaited before the work continues."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a run does: the agent's own options, and what the run sets itself."""

    deps: Any = None
    model_settings: ModelSettings | None = None
    limits: Limits | None = None
    approve: Approve | None = None
    output: OutputSchema | None = None

    def over(self, other: "RunOptions") -> "RunOptions":
        """These options, and where they set nothing, the other ones."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        found = {name: value for name, value in given.items() if value is not None}
        if self.model_settings is not None and other.model_settings is not None:
            found["model_settings"] = self.model_settings.over(other.model_settings)
        return msgspec.structs.replace(other, **found)


NOTHING_SET = RunOptions()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the agent."""

    options: SessionOptions
    settings: Settings
    own: HostOverrides
    environ: Mapping[str, str]
    cwd: Path
    run: RunOptions = NOTHING_SET
    hooks: tuple[Hooks, ...] = ()
    listener: Listener | None = None

    def __repr__(self) -> str:
        # The environment contains secrets.
        return f"Plan({self.options!r})"


class Conversation:
    """A session, bound to the event loop that first used it.

    `outer` is the approval of the session that runs this one with a call: what it does not
    allow is not allowed here, whatever the agent's own options are.
    """

    def __init__(
        self, plan: Plan, outer: OuterApproval | None = None, outer_hooks: tuple[Hooks, ...] = ()
    ) -> None:
        self.plan = plan
        self._outer = outer
        self._outer_hooks = outer_hooks
        self._stack = AsyncExitStack()
        self._session: AgentSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._turns = asyncio.Lock()
        self._watched: _Watched | None = None
        self._approve: Approve | None = None

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
        if self._session is None:
            return self.plan.own.messages
        return self._session.request.messages

    def check_open(self) -> None:
        """Raises if the agent is closed."""
        if self._closed:
            raise BadInput(
                "the agent is closed; create a new one, with its session if it was stored"
            )

    async def run(
        self, message: Message, options: RunOptions = NOTHING_SET, listener: Listener | None = None
    ) -> Result[Any]:
        """Runs the user's message; waits for earlier ones."""
        self._belong()
        options = options.over(self.plan.run)
        check_deps(self.plan, options.deps)
        async with self._turns:
            self.check_open()
            watched = _Watched(tuple(filter(None, (self.plan.listener, listener))))
            self._watched, self._approve = watched, options.approve
            try:
                ended = await watched.over(self._turn(message, options))
            finally:
                self._watched = None
            result = watched.gathered.result(ended, self.messages, self.session, options.output)
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

    async def _turn(self, message: Message, options: RunOptions) -> TurnEnded:
        if self._session is None:
            self._session = await self._open(options)
        asked = options.approve is not None or (self._outer is not None and self._outer.answers)
        return await self._session.send(
            message,
            TurnOptions(
                limits=options.limits,
                model_settings=options.model_settings,
                approver=self._ask if asked else None,
                output=options.output,
                deps=options.deps,
            ),
        )

    async def _open(self, options: RunOptions) -> AgentSession:
        plan = self.plan
        # A registry of its own: a session takes tools out and adds those of its servers.
        tools = Registry(plan.own.tools)
        own = msgspec.structs.replace(plan.own, tools=tools, deps=options.deps)
        if own.temp is None and not (plan.options.kept or plan.options.session):
            folder = mkdtemp(prefix="toolwire-")
            # Also without a close: dropped with its event loop, or at exit.
            self._stack.callback(weakref.finalize(self, rmtree, folder, ignore_errors=True))
            own = msgspec.structs.replace(own, temp=Path(folder))
        outer = () if self._outer is None else (self._outer, *self._outer_hooks)
        return await self._stack.enter_async_context(
            open_session(
                plan.options,
                settings=plan.settings,
                environ=plan.environ,
                cwd=plan.cwd,
                readers=(reader_of(self._receive),),
                own=own,
                hooks=HookChain((*outer, *plan.hooks), failed=self._fail, outer=len(outer)),
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

    def _fail(self, error: Exception) -> None:
        if self._watched is None:
            raise error
        self._watched.fail(error)

    async def _ask(self, question: Confirmation) -> UserAnswer:
        approve, outer = self._approve, self._outer
        try:
            answered = None if approve is None else await answer(approve, question)
            if answered is not None and answered.choice is Choice.CANCEL:
                return answered
            if outer is not None and (answered is None or outer.asks(question.call)):
                answered = await outer.confirm(question)
            return answered or UserAnswer(choice=Choice.CANCEL)
        except Exception as error:
            self._fail(error)
            return UserAnswer(choice=Choice.CANCEL)


def check_deps(plan: Plan, deps: object) -> None:
    """Raises if a tool needs dependencies of another type."""
    for one in plan.own.tools:
        if one.deps is None:
            continue
        try:
            fits = isinstance(deps, one.deps)
        except TypeError:
            # A protocol that cannot be checked at run time.
            fits = True
        if not fits:
            given = "none are given" if deps is None else f"they are of type {type(deps).__name__}"
            raise BadInput(
                f"{one.name} needs deps of type {one.deps.__name__}, but {given}; "
                "pass deps=… to Agent or run"
            )


async def answer(approve: Approve | None, question: Confirmation) -> UserAnswer:
    """Returns the program's answer; a bool allows or denies this one call."""
    answer: object = Choice.CANCEL
    if approve is not None:
        answer = await called(approve, question)
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


def _unread(result: Result[Any]) -> None:
    del result


async def streamed(
    conversation: Conversation,
    message: Message,
    options: RunOptions = NOTHING_SET,
    ended: Callable[[Result[Any]], None] = _unread,
) -> AsyncGenerator[AgentEvent, None]:
    """Yields every event; leaving before the last one cancels the turn.

    `ended` receives the result.
    """
    pipe: asyncio.Queue[AgentEvent | None] = asyncio.Queue(1)
    left = False

    async def pass_on(event: AgentEvent | None) -> None:
        if not left:
            await pipe.put(event)

    async def work() -> None:
        try:
            ended(await conversation.run(message, options, pass_on))
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


async def output_stream(
    conversation: Conversation, message: Message, options: RunOptions
) -> AsyncGenerator[Any, None]:
    """Yields the output as it grows, and the whole one last."""
    partial = PartialOutput(options.over(conversation.plan.run).output)
    last: tuple[Any, ...] = ()
    results: list[Result[Any]] = []
    async with aclosing(streamed(conversation, message, options, results.append)) as events:
        async for event in events:
            match event:
                case ModelAsked():
                    partial.begin()
                case Streaming(event=TextDelta(text=text)):
                    shown = partial.add(text)
                    if shown and shown != last:
                        last = shown
                        yield shown[0]
                case _:
                    pass
    whole = results[0].output
    if (whole,) != last:
        yield whole


Piece: TypeAlias = str | Path | Media
Prompt: TypeAlias = Piece | Message | Sequence[Piece]
"""Text, and files by path or as `Media`."""


def user_message(prompt: Prompt, cwd: Path) -> Message:
    """Returns the message of a prompt; files are read, relative to `cwd`."""
    if isinstance(prompt, Message):
        if prompt.role != "user":
            raise BadInput(f"a prompt must be a user message, not one of the role {prompt.role}")
        return prompt
    pieces = (prompt,) if isinstance(prompt, str | Path | Media) else tuple(prompt)
    parts = tuple(_part(one, cwd) for one in pieces if one != "")
    if not any(not isinstance(one, Text) or one.text.strip() for one in parts):
        raise BadInput("the prompt is empty")
    return Message(role="user", parts=parts)


def _part(piece: Piece, cwd: Path) -> Text | Media:
    match piece:
        case str():
            return Text(piece)
        case Path():
            return attachment(cwd / piece.expanduser())
        case Media():
            return piece
        case _:
            raise BadInput(
                f"a prompt is made of texts, paths and media, not of {type(piece).__name__}"
            )
