"""Commands that show a page: settings, rules, and what fills the context."""

from typing import TYPE_CHECKING

from toolwire import config
from toolwire.compaction.tokens import of_part, of_tools
from toolwire.config import edit
from toolwire.config.display import rows
from toolwire.config.layers import config_files
from toolwire.messages import ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec
from toolwire.terminal_text import one_line

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_BAR = 40


async def settings(app: "TerminalApp", argument: str) -> None:
    """Shows every setting with its value and origin; the chosen one may be changed."""
    start = app.start
    found = rows(config.resolve(start.environ, start.cwd))
    key = argument
    if not key:
        items = [(row.key, f"{one_line(row.text)}   ({row.origin})") for row in found]
        key = await app.pick("settings: type to filter, Enter changes", items)
    if not key:
        return
    row = next((row for row in found if row.key == key), None)
    now = one_line(row.text) if row is not None else "-"
    value = await app.questions.ask(f"{key} is {now}; new value (empty: leave it)", ())
    if value:
        files = config_files(start.environ, start.cwd)
        edit.set_value(files, files.user, key, value, start.cwd)
        app.say(f"{key} is set in {files.user}; it applies from the next start", "dim")


async def permissions(app: "TerminalApp", argument: str) -> None:
    """Shows the rules in force, in the order in which they are read."""
    del argument
    rules = app.session.toolbox.policy.terms.rules
    app.say(f"approval mode: {app.session.mode}")
    for rule in rules:
        where = f"   ({rule.origin})" if rule.origin else ""
        app.say(f"{one_line(str(rule))}{one_line(where)}")
    if not rules:
        app.say("no rules; answers for longer than once are stored in policy.toml", "dim")


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
