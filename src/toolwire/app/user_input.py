"""The user's message of a line: custom commands, prompts of servers, and mentions."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolwire.agent.events import AgentEvent, ToolFinished
from toolwire.agent.questions import Approver
from toolwire.app.options import TurnOptions
from toolwire.app.session import AgentSession
from toolwire.app.toolbox import Toolbox
from toolwire.config import Settings
from toolwire.context.mentions import Mentioned, mentions, user_message
from toolwire.errors import BadInput, ToolwireError
from toolwire.ids import new_id
from toolwire.messages import Media, Outcome, Text, ToolCall
from toolwire.tools.files.paths import locate
from toolwire.tools.files.protection import Visibility
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.extensions.commands import CustomCommand, Expanded
    from toolwire.mcp.session import SessionServers

_LARGEST = 1 << 20
_EXIT_CODE = re.compile(r"^Exit Code: ([1-9][0-9]*)$", re.MULTILINE)
EXPANDING = "TOOLWIRE_EXPANDING"
"""The command whose shell part a program runs in."""


async def read_input(
    toolbox: Toolbox,
    prompt: str,
    *,
    piped: str = "",
    attached: Iterable[Path] = (),
    respect_git_ignore: bool = True,
    own: str | None = None,
) -> Mentioned:
    """The user's message: a prompt of a server, or the text with what it mentions.

    A server's prompt is foreign text: nothing in it is a mention. `own` is the part of the prompt
    that the user wrote, where the rest was inserted from files and commands: it alone mentions.
    """
    resources: dict[str, tuple[Text | Media, ...]] = {}
    notices: list[str] = []
    if toolbox.servers is not None:
        typed = prompt or piped
        text = await _server_prompt(toolbox.servers, typed)
        if text is None:
            resources = await _mentioned(toolbox.servers, typed, notices)
        else:
            prompt, piped = text, piped if prompt else ""
            resources = dict.fromkeys(mentions(text), ())
    resources |= _agents(toolbox, prompt or piped)
    if own is not None:
        written = mentions(own)
        resources |= {name: () for name in mentions(prompt) if name not in written}
    found = await asyncio.to_thread(
        user_message,
        prompt,
        toolbox.context,
        piped=piped,
        attached=attached,
        respect_git_ignore=respect_git_ignore,
        resources=resources,
    )
    return msgspec.structs.replace(found, notices=(*notices, *found.notices))


def agent_names(toolbox: Toolbox) -> tuple[str, ...]:
    """The subagents that a line may mention: `@agent-explore`."""
    tool = toolbox.registry.get("run_agent")
    members: Any = tool.parameters.get("properties", {}) if tool is not None else {}
    return tuple(f"agent-{name}" for name in members.get("agent", {}).get("enum", ()))


def _agents(toolbox: Toolbox, text: str) -> dict[str, tuple[Text | Media, ...]]:
    """What a mention of a subagent asks of the model."""
    if "@agent-" not in text:
        return {}
    known = agent_names(toolbox)
    return {
        name: (Text(f"The user wants this done by the subagent {name[6:]}: call run_agent."),)
        for name in mentions(text)
        if name in known
    }


def names_prompt(toolbox: Toolbox, line: str) -> bool:
    """Whether the first word of a line is a prompt of a server."""
    if toolbox.servers is None:
        return False
    from toolwire.mcp import prompts  # noqa: PLC0415 - only with servers

    return prompts.find(toolbox.servers.servers, line) is not None


async def _server_prompt(servers: SessionServers, text: str) -> str | None:
    from toolwire.mcp import prompts  # noqa: PLC0415 - only with servers

    command = prompts.find(servers.servers, text)
    return None if command is None else await command.text()


async def _mentioned(
    servers: SessionServers, text: str, notices: list[str]
) -> dict[str, tuple[Text | Media, ...]]:
    """The resources that a text mentions, by their mention."""
    from toolwire.mcp import resources  # noqa: PLC0415 - only with servers

    found: dict[str, tuple[Text | Media, ...]] = {}
    for name in mentions(text):
        known = resources.find(servers.servers, name)
        if known is None:
            continue
        try:
            found[name] = resources.parts_of(await resources.read(*known))
        except ToolwireError as error:
            found[name] = ()
            notices.append(f"@{name} was left as text: {error}")
    return found


class CommandFiles:
    """The commands of files that a session knows, and its skills."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        cwd: Path,
        taken: Iterable[str] = (),
    ) -> None:
        from toolwire.extensions.commands import read_commands, sources  # noqa: PLC0415 - start-up

        listed = sources(environ, cwd, trusted=bool(settings.trusted))
        self.custom, self.problems = read_commands(listed, taken)

    def find(self, line: str, toolbox: Toolbox) -> tuple[CustomCommand, str] | None:
        """The command that a line begins with, and what follows it."""
        word, _, typed = line.strip().partition(" ")
        name = word.removeprefix("/").removeprefix("prompts:")
        if not word.startswith("/") or not name:
            return None
        command = self.named(name) or skill_command(name, toolbox)
        return None if command is None else (command, typed.strip())

    def named(self, name: str) -> CustomCommand | None:
        """The command of this name, also with its origin before it: `claude:review`."""
        found = self.custom.get(name)
        if found is not None:
            return found
        origin, _, own = name.partition(":")
        other = self.custom.get(own)
        return other if other is not None and other.origin == origin else None


def skill_command(name: str, toolbox: Toolbox) -> CustomCommand | None:
    """The command that activates a skill by its name."""
    skill = toolbox.skills.skills.get(name) if toolbox.skills is not None else None
    if skill is None:
        return None
    from toolwire.extensions.commands import SKILL, CustomCommand  # noqa: PLC0415 - start-up

    return CustomCommand(
        name=name,
        prompt="",
        file=skill.file,
        form="markdown",
        origin=SKILL,
        description=skill.description,
    )


async def expand_command(
    command: CustomCommand,
    typed: str,
    session: AgentSession,
    approver: Approver | None,
    show: Callable[[AgentEvent], None],
) -> tuple[Expanded, TurnOptions]:
    """The prompt of a command, and what its turn does differently.

    Shell parts are ruled on, and asked, as calls of the model are.
    """
    from toolwire.extensions.commands import SKILL, Expanded, expand  # noqa: PLC0415 - start-up

    toolbox = session.toolbox
    if command.origin == SKILL and toolbox.skills is not None:
        text = await asyncio.to_thread(toolbox.skills.activate, command.name, toolbox.context)
        found = Expanded(f"{text}\n\n{typed}".rstrip(), typed)
        return found, TurnOptions()
    options = _turn_options(command)

    async def run(line: str) -> str:
        finished: list[ToolFinished] = []

        async def emit(event: AgentEvent) -> None:
            if isinstance(event, ToolFinished):
                finished.append(event)
            show(event)

        call = ToolCall(id=new_id(), name="run_shell_command", arguments=dump({"command": line}))
        scheduler = session.scheduler(approver, emit, options, {EXPANDING: command.name})
        await scheduler.run([call])
        if not finished or finished[-1].outcome not in (Outcome.DONE, Outcome.FAILED):
            why = f": {finished[-1].result.text}" if finished else ""
            raise BadInput(f"/{command.name} was not sent: {line} did not run{why}")
        return _output(finished[-1])

    found = await expand(command, typed, run=run, read=partial(_file_text, command, toolbox))
    return found, options


def check_recursion(command: CustomCommand, environ: Mapping[str, str]) -> None:
    """BadInput if a shell part of a command runs the same command again."""
    if environ.get(EXPANDING) == command.name:
        raise BadInput(f"/{command.name} runs itself; a command cannot be part of its own prompt")


def _turn_options(command: CustomCommand) -> TurnOptions:
    allowed = command.allowed_tools
    if allowed is None:
        return TurnOptions(model=command.model)
    from toolwire.extensions.tool_limits import OnlyTools, read_entries  # noqa: PLC0415 - start-up

    only = OnlyTools(read_entries(allowed), f"/{command.name}")
    return TurnOptions(model=command.model, only=only)


def _file_text(command: CustomCommand, toolbox: Toolbox, path: str) -> str:
    """The text of a file of the workspace that a command names."""
    workspace = toolbox.context.workspace
    found = locate(os.path.normpath(workspace.roots[0] / path), workspace)
    if found is not None and found.is_dir():
        return _folder_text(found, toolbox)
    if found is None or not found.is_file():
        raise BadInput(f"/{command.name} names {path}, which is not a file of this folder")
    if why := Visibility(toolbox.context, "read_file").hides(found):
        raise BadInput(f"/{command.name} names {path}, which is protected: {why}")
    with found.open("rb") as data:
        return data.read(_LARGEST).decode("utf-8", "replace")


def _folder_text(folder: Path, toolbox: Toolbox) -> str:
    """The texts of the files in a folder, as a mention of it inserts them."""
    path = os.path.relpath(folder, toolbox.context.workspace.roots[0])
    found = user_message("@" + path.replace("\\", "\\\\").replace(" ", "\\ "), toolbox.context)
    return "".join(part.text for part in found.message.parts[1:] if isinstance(part, Text))


def _output(finished: ToolFinished) -> str:
    text = finished.display.rstrip("\n")
    code = _EXIT_CODE.search(finished.result.text)
    if finished.success and code is None:
        return text
    words = f"exited with code {code[1]}" if code else "failed"
    return f"{text}\n[Shell command {words}]".lstrip("\n")


async def named_command(
    line: str,
    session: AgentSession,
    settings: Settings,
    environ: Mapping[str, str],
    approver: Approver | None = None,
    taken: Iterable[str] = (),
) -> tuple[tuple[str, str], TurnOptions] | None:
    """The prompt of the command that a line begins with, the user's part of it, and the options of
    its turn; None if it begins with none.
    """
    cwd = session.toolbox.context.workspace.roots[0]
    found = CommandFiles(settings, environ, cwd, taken).find(line, session.toolbox)
    if found is None:
        return None
    command, typed = found
    check_recursion(command, environ)
    expanded, options = await expand_command(command, typed, session, approver, _unseen)
    return (expanded.text, expanded.own), options


def _unseen(event: AgentEvent) -> None:
    del event
