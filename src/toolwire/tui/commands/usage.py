"""Commands about tokens: what was used, what fills the model's window, shortening it."""

from typing import TYPE_CHECKING

import msgspec

from toolwire.compaction.tokens import of_part, of_tools
from toolwire.messages import ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp


_BAR = 40


async def usage(app: "TerminalApp", argument: str) -> None:
    """Shows tokens, cost and time so far."""
    del argument
    body = msgspec.json.format(dump(app.statistics()), indent=2)
    app.say(body)


async def compact(app: "TerminalApp", argument: str) -> None:
    """Shortens the conversation now."""
    del argument
    if await app.session.compress() is None:
        app.say("nothing to shorten", "dim")


async def context(app: "TerminalApp", argument: str) -> None:
    """Shows what fills the model's window."""
    del argument
    session = app.session
    request = session.request
    tools = session.toolbox.registry.specs()
    info = session.opened.info
    window = (info.context or 0) if info is not None else 0
    parts = _parts(request, tools)
    total = sum(parts.values())
    for name, tokens in parts.items():
        bar = "█" * (tokens * _BAR // max(total, 1))
        app.say(f"{name:<22} {tokens:>9,}  {bar}")
    share = f", {total * 100 // window}% of {window:,}" if window else ""
    app.say(f"about {total:,} tokens{share}; the last request had {app.drawing.state.tokens:,}")


def _parts(request: ModelRequest, tools: tuple[ToolSpec, ...]) -> dict[str, int]:
    """Estimated tokens by what they are."""
    found = {
        "system prompt": sum(map(of_part, request.system)),
        "tools": of_tools(tools),
        "your messages": 0,
        "answers": 0,
        "calls": 0,
        "results": 0,
    }
    for message in request.messages:
        for part in message.parts:
            match part:
                case ToolCall():
                    name = "calls"
                case ToolResult():
                    name = "results"
                case _:
                    name = "your messages" if message.role == "user" else "answers"
            found[name] += of_part(part)
    return found
