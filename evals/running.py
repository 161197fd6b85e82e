"""One task through the real agent: a fresh project, a session, and what came of it."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs

from evals.approving import approver
from evals.projects import build
from evals.task import Call, Outcome, Task
from toolwire.agent.events import AgentEvent, MessageAdded, ToolFinished, ToolStarted, reader_of
from toolwire.agent.usage import Limits
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.embedded.weights import DownloadConsent
from toolwire.errors import ToolwireError
from toolwire.messages import Message, Text
from toolwire.tools.registry import Registry

MOST_TURNS = 12
MOST_SECONDS = 900.0


class Listener:
    """Gathers the calls of one session."""

    def __init__(self) -> None:
        self.registry: Registry | None = None
        self.calls: list[Call] = []
        self.reply = ""
        self._started: set[str] = set()

    async def hear(self, event: AgentEvent) -> None:
        """Take in one event."""
        match event:
            case ToolStarted():
                self._started.add(event.call_id)
            case ToolFinished():
                self.calls.append(self._call(event))
            case MessageAdded() if event.message.role == "assistant":
                self.reply = event.message.text or self.reply
            case _:
                pass

    def _call(self, event: ToolFinished) -> Call:
        arguments = _object(event.arguments)
        return Call(
            name=event.name,
            arguments=arguments or {},
            started=event.call_id in self._started,
            success=event.success,
            result=event.result.text,
            valid=arguments is not None and self._fits(event.name, arguments),
        )

    def _fits(self, name: str, arguments: dict[str, Any]) -> bool:
        """Judged apart from the scheduler, by the schema that the tool itself declares."""
        tool = self.registry.get(name) if self.registry is not None else None
        return tool is not None and jsonschema_rs.is_valid(tool.parameters, arguments)


async def run(
    task: Task,
    folder: Path,
    *,
    model: str,
    environ: Mapping[str, str],
    transport: Transport | None = None,
    consent: DownloadConsent | None = None,
) -> Outcome:
    """Build the project in the folder, ask, and gather what happened."""
    build(task.project, folder)
    heard = Listener()
    began = time.monotonic()
    end = ""
    try:
        async with open_session(
            SessionOptions(
                model=model, kept=False, limits=Limits(turns=MOST_TURNS, seconds=MOST_SECONDS)
            ),
            settings=Settings(),
            environ=environ,
            cwd=folder,
            readers=(reader_of(heard.hear),),
            approver=approver(folder),
            transport=transport,
            consent=consent,
        ) as session:
            heard.registry = session.toolbox.registry
            ended = await session.send(Message(role="user", parts=(Text(task.prompt),)))
            end = f"{ended.reason} {ended.detail}".strip()
    except ToolwireError as error:
        end = f"error: {error}"
    return Outcome(
        folder=folder,
        calls=tuple(heard.calls),
        reply=heard.reply,
        end=end,
        seconds=time.monotonic() - began,
    )


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
