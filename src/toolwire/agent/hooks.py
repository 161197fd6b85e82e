"""Hooks: they see every call and every request, and may deny calls, change them and their results.

The scheduler asks them in one place, after the policy has not denied a call and before it decides.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from toolwire.agent.admission import CallState, complaints, violations_text
from toolwire.collect import Collector
from toolwire.errors import BadInput
from toolwire.events import Finished, ModelEvent
from toolwire.messages import Message
from toolwire.model import Model, reading
from toolwire.request import JsonObject, ModelRequest
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolOutput


class HookedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as hooks see it: admitted, valid, and not denied by the policy."""

    id: str
    name: str
    arguments: JsonObject
    effect: Effect
    paths: tuple[Path, ...] = ()
    """Files that it touches, as far as its arguments name them."""
    server: str = ""
    """The MCP server of its tool."""
    session: str = ""
    delegates: bool = False
    """Whether the tool is an agent, whose own calls are ruled on one by one."""


class HookedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ran, and its output."""

    call: HookedCall
    output: ToolOutput
    error: str = ""
    """A word for the failure, such as `file_not_found`; empty if the call succeeded."""
    seconds: float = 0.0


class Allow(msgspec.Struct, frozen=True):
    """Approves a call that the policy would ask about, except for protected files."""

    arguments: JsonObject | None = None
    """Run the call with these instead; the policy rules on them."""


class Ask(msgspec.Struct, frozen=True):
    """Requires approval of a call, even if the policy allows it."""

    reason: str = ""
    arguments: JsonObject | None = None


class Deny(msgspec.Struct, frozen=True):
    """Refuses a call; the model gets the reason."""

    reason: str = ""
    text: str = ""
    """What the model gets in place of the usual sentence with the reason."""


class Change(msgspec.Struct, frozen=True):
    """Changes the arguments of a call; they are validated, and the policy rules on them."""

    arguments: JsonObject


CallDecision: TypeAlias = Allow | Ask | Deny | Change
ResultChange: TypeAlias = ToolOutput | str


class Hooks:
    """Override what you need, as functions or coroutines; a function runs in its own thread."""

    def before_call(self, call: HookedCall) -> CallDecision | Awaitable[CallDecision | None] | None:
        """Returns a decision on a call; None leaves it to the policy."""
        del call

    def after_call(
        self, result: HookedResult
    ) -> ResultChange | Awaitable[ResultChange | None] | None:
        """Returns what the model gets in place of the result; None leaves it as it is."""
        del result

    def before_request(self, request: ModelRequest) -> Awaitable[None] | None:
        """Receives a request before it is sent."""
        del request

    def after_reply(
        self, request: ModelRequest, reply: Message, finished: Finished
    ) -> Awaitable[None] | None:
        """Receives a complete reply of the model."""
        del request, reply, finished


class Opinion(msgspec.Struct, frozen=True):
    """What all hooks together decided on a call."""

    decision: str = ""
    """`allow`, `ask`, `deny`, or empty without an opinion."""
    reason: str = ""
    text: str = ""
    """Of a denial, for the model."""


NO_OPINION = Opinion()
_STRICTNESS = ("", "allow", "ask", "deny")
DENIED = "Tool execution denied by a hook:"
_INVALID = "it changed the arguments, and they are no longer valid: "


class HookChain:
    """The hooks of a session; each sees the call as those before it left it.

    `failed` receives what a hook raises; the call is then denied, or its result unchanged.
    """

    def __init__(
        self,
        hooks: Sequence[Hooks] = (),
        session: str = "",
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        self.hooks = tuple(hooks)
        self._session = session
        self._failed = failed
        self._before = self._overriding("before_call")
        self._after = self._overriding("after_call")

    def __bool__(self) -> bool:
        return bool(self.hooks)

    def bound(self, session: str) -> "HookChain":
        """The same hooks for the calls of a session."""
        return HookChain(self.hooks, session, self._failed)

    async def before(self, work: CallState, tool: Tool, context: ToolContext) -> Opinion:
        """The strictest opinion; changed arguments are validated and adopted."""
        opinion = NO_OPINION
        for before_call in self._before:
            try:
                decided = await called(before_call, self._seen(work, tool, context))
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
                output = _changed(output, await called(after_call, seen))
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

    def _overriding(self, name: str) -> tuple[Callable[..., Any], ...]:
        """The methods of this name that a hook defines itself."""
        default = getattr(Hooks, name)
        defining = (one for one in self.hooks if getattr(type(one), name, None) is not default)
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
            session=self._session,
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
                f"before_call returned {decided!r}; return Allow, Ask, Deny, Change or None"
            )


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
