"""Questions to the user before a call runs, and the possible answers."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.messages import ToolCall
from toolwire.tools.proposals import DiffStat, Proposal


class EditDetails(msgspec.Struct, frozen=True, kw_only=True, tag="edit"):
    """An edit: the files, what would change, and how much."""

    paths: tuple[Path, ...]
    diff: str
    stat: DiffStat
    new_file: bool = False
    editable: bool = False
    """Whether the user may change the text before it is written."""


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
    description: str = ""
    """The server's own words."""
    hints: tuple[str, ...] = ()
    """What the server says of its effects."""


class InfoDetails(msgspec.Struct, frozen=True, kw_only=True, tag="info"):
    """Any other call: what it requests, and the addresses in it."""

    prompt: str
    urls: tuple[str, ...] = ()


Details: TypeAlias = EditDetails | ExecDetails | McpDetails | InfoDetails


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the user: may this call run?"""

    call: ToolCall
    title: str
    reason: str
    details: Details
    remembers: tuple[str, ...] = ()
    """What an answer for longer than this call would allow; empty if it can only be once."""
    proposals: tuple[Proposal, ...] = ()
    """The whole texts of an edit, for the approver; the event of the question has none."""


class Choice(StrEnum):
    """Possible answers of the user."""

    ONCE = "once"
    SESSION = "session"
    """Approve all such calls until the session ends."""
    ALWAYS = "always"
    """Approve all such calls in this project from now on."""
    EVERYWHERE = "everywhere"
    """Approve all such calls in every project from now on."""
    SERVER = "server"
    """Approve every tool of this MCP server."""
    MODIFY = "modify"
    """Open the text in an editor first, then ask again."""
    CANCEL = "cancel"


class UserAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The user's answer; `content` is text changed in place with an approval."""

    choice: Choice
    content: str | None = None
    feedback: str = ""
    """Message for the model with a denial."""


Approver: TypeAlias = Callable[[Confirmation], Awaitable[UserAnswer]]
Editor: TypeAlias = Callable[[Proposal], Awaitable[str]]
"""Opens a proposal in the user's editor and returns the edited text."""
