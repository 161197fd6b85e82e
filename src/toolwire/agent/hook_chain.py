"""The hooks of a session in order, and what they decide together.

The scheduler asks them in one place, after the policy has not denied a call and before it decides.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from toolwire.agent.admission import CallState, complaints, violations_text
from toolwire.agent.hooks import (
    Allow,
    Ask,
    Blocked,
    Change,
    Context,
    Deny,
    Halt,
    HookedCall,
    HookedResult,
    HookEvent,
    Hooks,
    Notification,
    Reaction,
)
from toolwire.collect import Collector
from toolwire.errors import BadInput
from toolwire.events import ModelEvent
from toolwire.model import Model, reading
from toolwire.request import JsonObject, ModelRequest
from toolwire.tools.spec import Tool, ToolContext, ToolFailed, ToolOutput


class Opinion(msgspec.Struct, frozen=True):
    """What all hooks together decided on a call."""

    decision: str = ""
    """`allow`, `ask`, `deny`, or empty without an opinion."""
    reason: str = ""
    text: str = ""
    """Of a denial, for the model."""


NO_REACTION = Reaction()
STOP_LIMIT = 8
NO_OPINION = Opinion()
_STRICTNESS = ("", "allow", "ask", "deny")
DENIED = "Tool execution denied by a hook:"
_INVALID = "it changed the arguments, and they are no longer valid: "


class HookChain:
    """The hooks of a session; each sees the call as those before it left it.

    `failed` receives what a hook raises; the call is then denied, or its result unchanged. The
    first `outer` hooks are those of a session that runs this one: they see its calls and requests,
    not its events.
    """

    def __init__(
        self,
        hooks: Sequence[Hooks] = (),
        session: str = "",
        failed: Callable[[Exception], None] | None = None,
        *,
        outer: int = 0,
        stop_limit: int = STOP_LIMIT,
        advice: str = "",
    ) -> None:
        self.hooks = tuple(hooks)
        self.session = session
        self._failed = failed
        self._outer = outer
        self.advice = advice
        """How a call could be allowed that no user can approve, for the text of its denial."""
        self.stop_limit = stop_limit
        """How often in a row the end of a turn may be refused."""
        self.halted: str | None = None
        """Why a hook ended the turn; None if none did."""
        self._before = self._overriding("before_call")
        self._after = self._overriding("after_call")
        self._answering = self._overriding("before_question")
        self._receiving = self._overriding("on_event", self.hooks[outer:])

    def __bool__(self) -> bool:
        return bool(self.hooks)

    def bound(self, session: str) -> "HookChain":
        """The same hooks for the calls of a session."""
        if session == self.session:
            return self
        return HookChain(
            self.hooks,
            session,
            self._failed,
            outer=self._outer,
            stop_limit=self.stop_limit,
            advice=self.advice,
        )

    def joined(self, hooks: Hooks, *, stop_limit: int, advice: str) -> "HookChain":
        """These hooks and more."""
        return HookChain(
            (*self.hooks, hooks),
            self.session,
            self._failed,
            outer=self._outer,
            stop_limit=stop_limit,
            advice=advice,
        )

    async def notify(self, work: CallState, tool: Tool, context: ToolContext) -> None:
        """Reports that a call waits for the user's answer."""
        if self._receiving:
            message = f"approval is needed for {tool.title or tool.name}"
            seen = self._seen(work, tool, context)
            await self.on(Notification(message, "permission_prompt", seen))

    async def on(self, event: HookEvent) -> Reaction:
        """The answers to an event of the session, all contexts in the order of the hooks."""
        found = NO_REACTION
        for receive in self._receiving:
            try:
                found = _with_answer(found, await called(receive, event))
            except Exception as error:
                await self.fail(error)
        if found.halted is not None:
            self.halted = found.halted
        return found

    async def question(
        self, work: CallState, tool: Tool, context: ToolContext, reason: str
    ) -> Opinion:
        """The strictest answer to a question about a call; an opinion without one."""
        return await self._asked(self._answering, work, tool, context, reason)

    async def before(self, work: CallState, tool: Tool, context: ToolContext) -> Opinion:
        """The strictest opinion; changed arguments are validated and adopted."""
        return await self._asked(self._before, work, tool, context)

    async def _asked(
        self,
        hooks: Sequence[Callable[..., Any]],
        work: CallState,
        tool: Tool,
        context: ToolContext,
        *more: object,
    ) -> Opinion:
        opinion = NO_OPINION
        for hook in hooks:
            try:
                decided = await called(hook, self._seen(work, tool, context), *more)
                if isinstance(decided, Halt):
                    self.halted = decided.reason
                    decided = Deny(decided.reason)
                found, arguments = _read(decided)
            except Exception as error:
                await self.fail(error)
                return _denied("it failed")
            if arguments is not None:
                problem = _invalid(tool, arguments, context)
                if problem:
                    return _denied(f"{_INVALID}{problem}")
                work.give(arguments)
            if _STRICTNESS.index(found.decision) > _STRICTNESS.index(opinion.decision):
                opinion = found
            if opinion.decision == "deny":
                break
        return opinion

    async def after(
        self, work: CallState, tool: Tool, context: ToolContext, output: ToolOutput, error: str = ""
    ) -> ToolOutput:
        """The output for the model."""
        for after_call in self._after:
            seen = HookedResult(
                call=self._seen(work, tool, context),
                output=output,
                error=error,
                seconds=work.ended - (work.started or work.ended),
            )
            try:
                change = await called(after_call, seen)
                if isinstance(change, Halt):
                    self.halted = change.reason
                    continue
                if isinstance(change, Deny):
                    raise ToolFailed(change.text or change.reason, type="denied_by_hook")
                output = _changed(output, change)
            except ToolFailed:
                raise
            except Exception as failure:
                await self.fail(failure)
        return output

    def observing(self, model: Model) -> Model:
        """The model, whose requests and complete replies the hooks receive."""
        before, after = self._overriding("before_request"), self._overriding("after_reply")
        if not before and not after:
            return model

        async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            await self._pass_on(before, request)
            collector = Collector()
            async with reading(model(request)) as events:
                async for event in events:
                    collector.add(event)
                    yield event
            if collector.finished is not None:
                await self._pass_on(after, request, collector.message(), collector.finished)

        return ask

    async def _pass_on(self, receivers: Sequence[Callable[..., Any]], *given: object) -> None:
        try:
            for receive in receivers:
                await called(receive, *given)
        except Exception as error:
            await self.fail(error)

    def _overriding(
        self, name: str, hooks: Sequence[Hooks] | None = None
    ) -> tuple[Callable[..., Any], ...]:
        """The methods of this name that a hook defines itself."""
        default = getattr(Hooks, name)
        among = self.hooks if hooks is None else hooks
        defining = (one for one in among if getattr(type(one), name, None) is not default)
        return tuple(getattr(one, name) for one in defining)

    async def fail(self, error: Exception) -> None:
        """Reports what a hook raised; raises it if no one receives it."""
        if self._failed is None:
            raise error
        self._failed(error)
        # A turn that was cancelled by it ends here, before its next step.
        await asyncio.sleep(0)

    def _seen(self, work: CallState, tool: Tool, context: ToolContext) -> HookedCall:
        return HookedCall(
            id=work.call.id,
            name=tool.name,
            # A copy: a hook changes a call only by what it returns.
            arguments=msgspec.json.decode(work.arguments_text),
            effect=tool.effect,
            paths=tool.touches(work.arguments, context),
            server=tool.server,
            session=self.session,
            delegates=tool.delegates,
        )


async def called(function: Callable[..., Any], *given: object) -> Any:
    """Result of a function, in a thread, or of a coroutine."""
    if inspect.iscoroutinefunction(function):
        return await function(*given)
    returned = await asyncio.to_thread(function, *given)
    return await returned if inspect.isawaitable(returned) else returned


def _denied(reason: str, text: str = "") -> Opinion:
    return Opinion("deny", reason, text or f"{DENIED} {reason}")


def _read(decided: object) -> tuple[Opinion, JsonObject | None]:
    match decided:
        case None:
            return NO_OPINION, None
        case Allow():
            return Opinion("allow", "a hook allows it"), decided.arguments
        case Ask():
            return Opinion("ask", decided.reason or "a hook requires approval"), decided.arguments
        case Deny():
            return _denied(decided.reason or "no reason given", decided.text), None
        case Change():
            return NO_OPINION, decided.arguments
        case _:
            raise TypeError(
                f"before_call returned {decided!r}; return Allow, Ask, Deny, Change, Halt or None"
            )


def _with_answer(found: Reaction, answer: object) -> Reaction:
    match answer:
        case None:
            return found
        case Context():
            return msgspec.structs.replace(found, context=(*found.context, answer.text))
        case Blocked():
            reason = answer.reason if found.blocked is None else found.blocked
            return msgspec.structs.replace(found, blocked=reason)
        case Halt():
            return msgspec.structs.replace(found, halted=answer.reason)
        case Reaction():
            return Reaction(
                blocked=answer.blocked if found.blocked is None else found.blocked,
                context=(*found.context, *answer.context),
                halted=answer.halted if found.halted is None else found.halted,
            )
        case _:
            raise TypeError(f"on_event returned {answer!r}; return Blocked, Context, Halt or None")


def _invalid(tool: Tool, arguments: JsonObject, context: ToolContext) -> str:
    try:
        problems = complaints(tool.parameters, arguments)
    except BadInput as error:
        return str(error)
    return violations_text(problems) if problems else tool.check(arguments, context)


def _changed(output: ToolOutput, change: object) -> ToolOutput:
    match change:
        case None:
            return output
        case ToolOutput():
            return change
        case str():
            return ToolOutput(text=change)
        case _:
            raise TypeError(f"after_call returned {change!r}; return a text, a ToolOutput or None")


NO_HOOKS = HookChain()
