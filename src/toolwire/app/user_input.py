"""The user's message of a line: prompts of servers, and what the line mentions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.app.toolbox import Toolbox
from toolwire.context.mentions import Mentioned, mentions, user_message
from toolwire.errors import ToolwireError
from toolwire.messages import Media, Text

if TYPE_CHECKING:
    from toolwire.mcp.session import SessionServers


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
