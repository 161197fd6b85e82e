"""The tool `run_agent`, and the subagents of an open session."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.agent.events import TurnEnd, TurnEnded
from toolwire.agent.scheduler import Scheduler
from toolwire.app.session import AgentSession
from toolwire.app.subagents.catalog import RUN_AGENT, find_agents, is_approved, untrusted
from toolwire.config import Settings
from toolwire.context.surroundings import surroundings
from toolwire.errors import UnknownName
from toolwire.extensions.agents.builtin import AgentDefinition
from toolwire.messages import Message
from toolwire.request import JsonObject
from toolwire.sessions.store import OpenJournal, SessionStore
from toolwire.tools.files.protection import Visibility
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput

if TYPE_CHECKING:
    from toolwire.app.subagents.child import Builds


class Subagents:
    """The subagents of an open session."""

    def __init__(
        self,
        known: Mapping[str, AgentDefinition],
        settings: Settings,
        *,
        cwd: Path,
        today: Callable[[], date],
    ) -> None:
        self.known = known
        self._settings = settings
        self._cwd = cwd
        self._today = today
        self._places = asyncio.Semaphore(settings.agents.max_parallel)
        self._running: dict[str, asyncio.Task[TurnEnded]] = {}
        self._stopped: set[str] = set()
        self._parent: AgentSession | None = None
        self._builder: Builds | None = None
        self._store: SessionStore | None = None

    def connect(self, parent: AgentSession, builder: "Builds", store: SessionStore | None) -> None:
        """Sets the session that runs them, and where theirs are stored; None stores none."""
        self._parent, self._builder, self._store = parent, builder, store

    def stop(self, session: str) -> bool:
        """Stops one that runs; False if it does not."""
        task = self._running.get(session)
        if task is None:
            return False
        self._stopped.add(session)
        task.cancel()
        return True

    @property
    def running(self) -> int:
        """How many run now."""
        return len(self._running)

    def tool(self) -> Tool:
        """The tool of the model."""
        listed = "\n".join(f"- {one.name}: {one.description}" for one in self.known.values())
        return Tool(
            name=RUN_AGENT,
            title="RunAgent",
            description=f"{_ABOUT}\n\n{listed}",
            parameters=_parameters(tuple(self.known)),
            effect=Effect.OTHER,
            run=self._run,
            delegates=True,
        )

    async def _run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        from toolwire.app.subagents.child import (  # noqa: PLC0415 - start-up time
            NO_BUDGET,
            Child,
            ChildTask,
        )

        task = msgspec.convert(arguments, ChildTask)
        outer, parent, builder = context.session, self._parent, self._builder
        if not isinstance(outer, Scheduler) or parent is None or builder is None:
            raise ToolFailed(f"{RUN_AGENT} can only run in a session")
        definition = self.known.get(task.agent)
        if definition is None:
            raise ToolFailed(
                str(UnknownName("agent", task.agent, tuple(self.known))), type="unknown_agent"
            )
        if not task.prompt.strip():
            raise ToolFailed("prompt is empty; write the task, with everything it needs to know")
        async with self._places:
            if outer.left() is None:
                raise ToolFailed(NO_BUDGET, type="no_budget")
            child = Child(definition, task, context, outer, parent, self._settings)
            return await child.run(
                builder, self._journal(), _surroundings(parent, self._settings, self._today()),
                self._watched,
            )  # fmt: skip

    def _journal(self) -> OpenJournal | None:
        return None if self._store is None else self._store.create(str(self._cwd))

    async def _watched(self, session: str, turn: Awaitable[TurnEnded]) -> TurnEnded:
        """How the turn ended; cancelled with the caller, or alone by `stop`."""
        task = asyncio.ensure_future(turn)
        self._running[session] = task
        try:
            return await task
        except asyncio.CancelledError:
            if session not in self._stopped:
                raise
            self._stopped.discard(session)
            return TurnEnded(reason=TurnEnd.CANCELLED, detail="stopped by the user")
        finally:
            self._running.pop(session, None)
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))


def _surroundings(parent: AgentSession, settings: Settings, today: date) -> tuple[Message, ...]:
    if parent.opened.provider.small:
        return ()
    context = parent.toolbox.context
    return surroundings(
        context.workspace,
        today=today,
        system=sys.platform,
        respect_git_ignore=settings.context.respect_git_ignore,
        hides=Visibility(context, "list_directory", names_only=True).hides,
    )


_ABOUT = (
    "Give a task to a subagent, which works in a conversation of its own and returns only its "
    "final message. It knows nothing of this conversation: write everything into the prompt that "
    "it needs, and what to report. Calls in one reply run at the same time. Its tools, permissions "
    "and limits are no wider than yours. Use it for searches over many files and for independent "
    "parts of a large task; do small things yourself.\n\nAgents:"
)


def _parameters(names: tuple[str, ...]) -> JsonObject:
    return {
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": list(names), "description": "Which one."},
            "prompt": {
                "type": "string",
                "minLength": 1,
                "description": "The task, with everything the agent needs to know.",
            },
            "files": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Optional: paths of files whose contents it gets with the task.",
            },
        },
        "required": ["agent", "prompt"],
        "additionalProperties": False,
    }


async def open_subagents(
    settings: Settings,
    environ: Mapping[str, str],
    cwd: Path,
    *,
    today: Callable[[], date],
    notice: Callable[[str], None],
) -> Subagents | None:
    """The subagents that a session offers; None if there are none."""
    core = settings.tools.core
    if not settings.agents.enabled or (core and RUN_AGENT not in core):
        return None
    known, problems = find_agents(settings, environ, cwd)
    for words in (*problems, *untrusted(settings, cwd)):
        notice(words)
    offered: dict[str, AgentDefinition] = {}
    waiting: list[str] = []
    for name, one in known.items():
        if name in settings.agents.exclude:
            continue
        if one.project and not is_approved(one, environ, cwd, _every_tool(settings)):
            waiting.append(name)
            continue
        offered[name] = one
    if waiting:
        names = ", ".join(waiting)
        notice(f'subagents of this project wait for your approval: {names}; run "toolwire approve"')
    return Subagents(offered, settings, cwd=cwd, today=today) if offered else None


def _every_tool(settings: Settings) -> Registry:
    """The built-in tools, by which it is known what a definition may do."""
    from toolwire.tools.registry import builtins  # noqa: PLC0415 - only with project definitions

    return builtins(settings.tools)
