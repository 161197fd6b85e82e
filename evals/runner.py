"""One task through the real agent: a fresh project, a session, and its outcome."""

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs

from evals.approval import approver
from evals.task import Call, Outcome, Task, commit_files, snapshot, write_files
from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    reader_of,
)
from toolwire.agent.usage import Limits
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.embedded.weights import DownloadConsent
from toolwire.errors import ToolwireError
from toolwire.messages import Message, Text, ToolCall
from toolwire.tools.registry import Registry

MOST_TURNS = 12
HARD_STOP = 300.0
"""Seconds after which a task is cancelled."""
_GRACE = 10.0
"""Seconds beyond it in which the agent may stop by its own limit."""


class Listener:
    """Collects the calls and the last reply of one session."""

    def __init__(self) -> None:
        self.registry: Registry | None = None
        self.calls: list[Call] = []
        self.reply = ""
        self._started: set[str] = set()
        self._open: dict[str, ToolCall] = {}

    async def receive(self, event: AgentEvent) -> None:
        """Take in one event."""
        match event:
            case ToolRequested():
                self._open[event.call.id] = event.call
            case ToolStarted():
                self._started.add(event.call_id)
            case ToolFinished():
                self._open.pop(event.call_id, None)
                self.calls.append(self._call(event))
            case MessageAdded() if event.message.role == "assistant":
                self.reply = event.message.text or self.reply
            case _:
                pass

    def close(self) -> tuple[Call, ...]:
        """All calls, those that never finished at the end."""
        for call in self._open.values():
            arguments = _object(call.arguments) or {}
            self.calls.append(
                Call(
                    name=call.name,
                    arguments=arguments,
                    started=call.id in self._started,
                    success=False,
                    result="",
                    valid=self._fits(call.name, arguments),
                )
            )
        return tuple(self.calls)

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
    hard_stop: float = HARD_STOP,
) -> Outcome:
    """Build the project in the folder, send the request, and collect what happened."""
    write_files(task.files, folder)
    commit_files(folder)
    before = snapshot(folder)
    listener = Listener()
    began = time.monotonic()
    end = ""
    try:
        async with open_session(
            SessionOptions(
                model=model, kept=False, limits=Limits(turns=MOST_TURNS, seconds=hard_stop)
            ),
            settings=Settings(),
            environ=environ,
            cwd=folder,
            readers=(reader_of(listener.receive),),
            approver=approver(folder, denies=task.denied),
            transport=transport,
            consent=consent,
        ) as session:
            listener.registry = session.toolbox.registry
            async with asyncio.timeout(hard_stop + _GRACE):
                ended = await session.send(Message(role="user", parts=(Text(task.prompt),)))
            end = f"{ended.reason} {ended.detail}".strip()
    except TimeoutError:
        end = f"stopped after {hard_stop:.0f} s"
    except ToolwireError as error:
        end = f"error: {error}"
    return Outcome(
        folder=folder,
        before=before,
        calls=listener.close(),
        reply=listener.reply,
        end=end,
        seconds=time.monotonic() - began,
    )


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
