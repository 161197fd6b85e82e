"""Custom commands in the app: listed in the menu, expanded, and sent as a prompt."""

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from toolwire.agent.events import AgentEvent, ToolFinished
from toolwire.agent.questions import Approver
from toolwire.app.toolbox import Toolbox
from toolwire.errors import BadInput
from toolwire.extensions.commands import CustomCommand, Expanded, expand
from toolwire.messages import Outcome, ToolCall
from toolwire.tools.files.paths import locate
from toolwire.wire.json_access import dump

_LARGEST = 1 << 20


async def expanded(
    command: CustomCommand,
    typed: str,
    toolbox: Toolbox,
    approver: Approver,
    show: Callable[[AgentEvent], None],
) -> Expanded:
    """The prompt of a command; its shell parts are ruled on and asked as calls of the model are."""

    async def run(line: str) -> str:
        finished: list[ToolFinished] = []

        async def emit(event: AgentEvent) -> None:
            if isinstance(event, ToolFinished):
                finished.append(event)
            show(event)

        call = ToolCall(id=uuid4().hex, name="run_shell_command", arguments=dump({"command": line}))
        await toolbox.scheduler(approver, None, emit).run([call])
        if not finished or finished[-1].outcome not in (Outcome.DONE, Outcome.FAILED):
            raise BadInput(f"/{command.name} was not sent: {line} did not run")
        return _output(finished[-1])

    def read(path: str) -> str:
        root = toolbox.context.workspace.roots[0]
        found = locate(os.path.normpath(root / path), toolbox.context.workspace)
        if found is None or not found.is_file():
            raise BadInput(f"/{command.name} names {path}, which is not a file of this folder")
        return _text(found)

    return await expand(command, typed, run=run, read=read)


def _output(finished: ToolFinished) -> str:
    text = finished.display.rstrip("\n")
    if finished.success:
        return text
    return f"{text}\n[Shell command failed]".lstrip("\n")


def _text(file: Path) -> str:
    with file.open("rb") as data:
        return data.read(_LARGEST).decode("utf-8", "replace")
