"""What a person is shown before a call runs, and what they may answer."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.messages import ToolCall
from toolwire.tools.spec import DiffStat, Proposal


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
