"""What a person is shown before a call runs, and what they may answer."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.messages import ToolCall
from toolwire.request import JsonObject
from toolwire.tools import edits
from toolwire.tools.edits import diff_of
from toolwire.tools.spec import DiffStat, Effect, Proposal, Tool


class EditDetails(msgspec.Struct, frozen=True, kw_only=True, tag="edit"):
    """An edit: the files, what would change, and how much."""

    paths: tuple[Path, ...]
    diff: str
    stat: DiffStat
    new_file: bool = False
    editable: bool = False
    """Whether the person may change the text before it is written."""


class ExecDetails(msgspec.Struct, frozen=True, kw_only=True, tag="exec"):
    """A command, and the programs it would start."""

    command: str
    roots: tuple[str, ...]
    directory: str = ""


class McpDetails(msgspec.Struct, frozen=True, kw_only=True, tag="mcp"):
    """A tool of an MCP server."""

    server: str
    tool: str
    arguments: str


class InfoDetails(msgspec.Struct, frozen=True, kw_only=True, tag="info"):
    """Anything else: what is asked for, and the addresses in it."""

    prompt: str
    urls: tuple[str, ...] = ()


Details: TypeAlias = EditDetails | ExecDetails | McpDetails | InfoDetails


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the person: may this call run?"""

    call: ToolCall
    title: str
    reason: str
    details: Details


class Choice(StrEnum):
    """What a person may answer."""

    ONCE = "once"
    SESSION = "session"
    """Yes, and for all such calls until the session ends."""
    ALWAYS = "always"
    """Yes, and for all such calls from now on."""
    SERVER = "server"
    """Yes, and for every tool of this MCP server."""
    MODIFY = "modify"
    """Let me change the text in an editor first; the question comes again."""
    CANCEL = "cancel"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The person's answer; `content` is text they changed in place while saying yes."""

    choice: Choice
    content: str | None = None
    feedback: str = ""
    """Words for the model that come with a no."""


Approver: TypeAlias = Callable[[Confirmation], Awaitable[Answer]]
Editor: TypeAlias = Callable[[Proposal], Awaitable[str]]
"""Opens a proposal for the person; gives the text they leave."""
Roots: TypeAlias = Callable[[str], tuple[str, ...]]
"""The programs a command would start."""


def first_word(command: str) -> tuple[str, ...]:
    """The program of a simple command; a parser of the shell's grammar knows better."""
    return tuple(command.split()[:1])


def details_of(
    tool: Tool,
    arguments: JsonObject,
    proposals: tuple[Proposal, ...],
    edited: str | None = None,
    roots: Roots = first_word,
) -> Details:
    """What a person needs to see of this call."""
    if proposals:
        return _edit(tool, proposals, edited)
    if tool.server:
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        return McpDetails(server=tool.server, tool=tool.name, arguments=shown)
    command = arguments.get("command")
    if tool.effect is Effect.EXECUTE and isinstance(command, str):
        directory = arguments.get("directory")
        return ExecDetails(
            command=command,
            roots=roots(command),
            directory=directory if isinstance(directory, str) else "",
        )
    prompt = next((str(value) for value in arguments.values() if isinstance(value, str)), "")
    urls = tuple(word for word in prompt.split() if word.startswith(("http://", "https://")))
    return InfoDetails(prompt=prompt, urls=urls)


def _edit(tool: Tool, proposals: tuple[Proposal, ...], edited: str | None) -> EditDetails:
    shown = [
        diff_of(one.before, one.after if edited is None else edited, one.path.name)
        for one in proposals
    ]
    return EditDetails(
        paths=tuple(one.path for one in proposals),
        diff="".join(shown),
        stat=stat_of(proposals, edited),
        new_file=all(one.new_file for one in proposals),
        editable=tool.adopt is not None and len(proposals) == 1,
    )


def stat_of(proposals: tuple[Proposal, ...], edited: str | None = None) -> DiffStat:
    """Lines the model adds and removes, and those the person changed in its text."""
    stats = [
        edits.stat_of(one.before, one.after)
        if edited is None
        else edits.stat_of(one.before, edited, one.after)
        for one in proposals
    ]
    return DiffStat(
        model_added=sum(one.model_added for one in stats),
        model_removed=sum(one.model_removed for one in stats),
        user_added=sum(one.user_added for one in stats),
        user_removed=sum(one.user_removed for one in stats),
    )
