"""An agent as a tool of another: each call is a session of its own, held to the caller's policy."""

from typing import Annotated

import msgspec

from toolwire.agent.approval import OuterApproval
from toolwire.agent.events import AgentEvent
from toolwire.agent.hooks import Hooks
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.usage import tightest
from toolwire.app.subagents.child import NO_BUDGET, reporting
from toolwire.errors import ToolwireError
from toolwire.library.conversation import Conversation, Plan, RunOptions, user_message
from toolwire.request import ModelRequest
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import DONE, tool


class _Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompt: Annotated[
        str,
        msgspec.Meta(description="The task, with everything the agent needs to know."),
    ]


def as_tool(plan: Plan, name: str, description: str) -> Tool:
    """Returns a tool that gives each prompt to a new session of the agent."""
    reads = all(one.effect is Effect.READ for one in plan.own.tools)

    async def run(task: _Task, context: ToolContext) -> ToolOutput:
        return await _delegated(plan, name, task.prompt, context)

    effect = Effect.READ if reads else Effect.OTHER
    return tool(name, effect, description, delegates=True)(run)


class _Budget(Hooks):
    """Ends a child when the limits of the session that runs it are reached, by all its calls."""

    def __init__(self, outer: Scheduler) -> None:
        self._outer = outer

    async def before_request(self, request: ModelRequest) -> None:
        del request
        if self._outer.left() is None:
            raise ToolFailed(NO_BUDGET, type="no_budget")


async def _delegated(plan: Plan, name: str, prompt: str, context: ToolContext) -> ToolOutput:
    """The child's answer. The session that called it rules on its calls, counts what it uses and
    receives its events.
    """
    outer = context.session
    if not isinstance(outer, Scheduler):
        raise ToolFailed(f"{name} can only run in a session")
    plan = _no_wider(plan, context)
    child = Conversation(plan, OuterApproval(outer.approval), (_Budget(outer), *outer.hooks.hooks))

    async def report(event: AgentEvent) -> None:
        await reporting(outer, context.call_id, name, child.session)(event)

    left = outer.left()
    if left is None:
        raise ToolFailed(NO_BUDGET, type="no_budget")
    limits = tightest(plan.run.limits or plan.settings.limits, left)
    deps = context.deps if plan.run.deps is None else plan.run.deps
    try:
        result = await child.run(
            user_message(prompt, plan.cwd), RunOptions(limits=limits, deps=deps), report
        )
    except ToolwireError as error:
        raise ToolFailed(f"{name} failed: {error}", type="agent_failed") from error
    except Exception as error:
        # An approver, hook or listener of the program is broken: its caller gets the exception.
        await outer.hooks.fail(error)
        raise ToolFailed(f"{name} failed", type="agent_failed") from error
    finally:
        await child.close()
    stopped = "" if result.ok else f"\n\n[{name} stopped early ({result.stop}): {result.detail}]"
    return ToolOutput(text=f"{result.text}{stopped}".strip() or DONE)


_LEVELS = ("off", "none", "auto", "workspace-write", "read-only")


def _no_wider(plan: Plan, context: ToolContext) -> Plan:
    """The child's plan, confined at least as much as the session that runs it."""
    own, outer = plan.settings.tools, context.settings
    tools = msgspec.structs.replace(
        own,
        sandbox=max(own.sandbox, outer.sandbox, key=_LEVELS.index),
        sandbox_network=own.sandbox_network and outer.sandbox_network,
        sandbox_writable=tuple(
            path for path in own.sandbox_writable if path in outer.sandbox_writable
        ),
        allow_private_addresses=own.allow_private_addresses and outer.allow_private_addresses,
    )
    return msgspec.structs.replace(
        plan,
        settings=msgspec.structs.replace(plan.settings, tools=tools),
        own=msgspec.structs.replace(plan.own, restricts=context.restricts),
    )
