"""`toolwire_run`: the agent itself as one tool, a whole session turn in a call."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    Noticed,
    Retrying,
    Thought,
    ToolOutputText,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    reader_of,
)
from toolwire.agent.usage import Stats
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.config import Settings
from toolwire.context.mentions import user_message
from toolwire.errors import ToolwireError
from toolwire.mcp_server.catalogue import OfferedTool
from toolwire.mcp_server.exchange import ServedRequest
from toolwire.mcp_server.own_tools import approver
from toolwire.messages import Refusal, Text
from toolwire.policy import Mode
from toolwire.request import JsonObject
from toolwire.tools.spec import ToolFailed
from toolwire.wire.json_access import dump

NAME = "toolwire_run"
_LOOSENESS = (Mode.PLAN, Mode.DEFAULT, Mode.AUTO_EDIT, Mode.YOLO)
_MOST_PROGRESS = 500
_DESCRIPTION = (
    "Give a task to the toolwire coding agent, which works on the files of its folder with tools "
    "of its own, and get its final answer. To go on with a conversation, pass the session_id of "
    "an earlier result as session."
)


class AgentTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a call."""

    prompt: str
    model: str = ""
    session: str = ""
    approval_mode: Mode | None = None


_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "minLength": 1, "description": "The task."},
        "model": {"type": "string", "description": "Model as provider/model."},
        "session": {"type": "string", "description": "The id of a session to continue."},
        "approval_mode": {
            "type": "string",
            "enum": [str(mode) for mode in _LOOSENESS],
            "description": "Which calls run without asking; only stricter than the server's.",
        },
    },
    "required": ["prompt"],
    "additionalProperties": False,
}
_OUTPUT: JsonObject = {
    "type": "object",
    "properties": {
        "session_id": {"type": "string"},
        "response": {"type": "string"},
        "stop": {"type": "string"},
        "stats": {"type": "object"},
    },
    "required": ["session_id", "response", "stop", "stats"],
}


class AgentTool:
    """Runs sessions with the server's settings."""

    def __init__(
        self,
        settings: Settings,
        *,
        environ: Mapping[str, str],
        cwd: Path,
        model: str = "",
        mode: Mode | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._cwd = cwd
        self._model = model
        self._mode = mode or settings.approval_mode

    def offered(self) -> OfferedTool:
        """The tool."""
        return OfferedTool(
            name=NAME,
            title="Run the toolwire agent",
            description=_DESCRIPTION,
            parameters=_PARAMETERS,
            output=_OUTPUT,
            hints={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
            run=self._run,
        )

    async def _run(self, arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
        watched = _Watched(exchange)
        try:
            task = self._task(arguments)
            ended = await self._turn(task, watched, exchange)
        except ToolwireError as error:
            ended = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
        return watched.result(ended)

    def _task(self, arguments: JsonObject) -> AgentTask:
        try:
            task = msgspec.convert(arguments, AgentTask)
        except msgspec.ValidationError as error:
            raise ToolFailed(f"the arguments do not fit: {error}") from error
        if not task.prompt.strip():
            raise ToolFailed("prompt is empty")
        asked = task.approval_mode or self._mode
        if _LOOSENESS.index(asked) > _LOOSENESS.index(self._mode):
            raise ToolFailed(
                f"approval_mode {asked} is looser than the server's mode, {self._mode}; leave it "
                "out, or have the server started with another --approval-mode"
            )
        return task

    async def _turn(
        self, task: AgentTask, watched: "_Watched", exchange: ServedRequest
    ) -> TurnEnded:
        options = SessionOptions(
            model=task.model or self._model,
            session=task.session,
            mode=task.approval_mode or self._mode,
        )
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                open_session(
                    options,
                    settings=self._settings,
                    environ=self._environ,
                    cwd=self._cwd,
                    readers=(reader_of(watched.receive),),
                    approver=approver(exchange),
                )
            )
            watched.session = session.id
            prompt = user_message(
                task.prompt,
                session.toolbox.context,
                respect_git_ignore=self._settings.context.respect_git_ignore,
            )
            for words in prompt.notices:
                await session.note("mention", words)
            return await session.send(prompt.message)


class _Watched:
    """Reports a turn as progress, and gathers its result."""

    def __init__(self, exchange: ServedRequest) -> None:
        self.session = ""
        self._exchange = exchange
        self._stats = Stats()
        self._response = ""

    async def receive(self, event: AgentEvent) -> None:
        """Takes one event."""
        self._stats.add(event)
        words = ""
        match event:
            case MessageAdded(context=False) if event.message.role == "assistant":
                texts = (part for part in event.message.parts if isinstance(part, Text | Refusal))
                self._response = "".join(part.text for part in texts)
            case ToolStarted():
                words = f"{event.name} {event.arguments}"
            case ToolOutputText():
                words = event.text
            case Thought():
                words = event.subject
            case Noticed() | Retrying():
                words = event.message
            case _:
                pass
        if words:
            await self._exchange.progress(message=words[:_MOST_PROGRESS])

    def result(self, ended: TurnEnded) -> JsonObject:
        """The result of the call."""
        failed = ended.reason is not TurnEnd.DONE
        why = f"[{ended.reason}] {ended.detail}".strip() if failed else ""
        structured: JsonObject = {
            "session_id": self.session,
            "response": self._response,
            "stop": str(ended.reason),
            "stats": self._stats.body(),
        }
        texts = [each for each in (self._response, why) if each] or [dump(structured)]
        return {
            "content": [{"type": "text", "text": each} for each in texts],
            "structuredContent": structured,
            "isError": failed,
        }
