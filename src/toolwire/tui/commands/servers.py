"""The command about MCP servers."""

from typing import TYPE_CHECKING

from toolwire.app.servers import server_command, server_rows
from toolwire.errors import ToolwireError
from toolwire.terminal_text import one_line, terminal_text
from toolwire.tui.views.lists import ENTER, ListItem, ListView, Picked

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_ACTIONS = {"r": "restarts", "l": "logs in", "e": "enables", "d": "disables", "a": "approves"}
_VERBS = {"r": "restart", "l": "login", "e": "enable", "d": "disable", "a": "approve"}


async def mcp(app: "TerminalApp", argument: str) -> None:
    """Shows the MCP servers: state, tools, last error; restarts, approves or logs in to one."""
    if argument or app.session.toolbox.servers is None:
        app.say(terminal_text(await _command(app, argument)))
        return
    key, message = "", ""
    while True:
        rows = server_rows(app.session.toolbox, app.start.settings, app.start.environ)
        items = [
            ListItem(
                key=row.name, cells=(row.name, row.state, f"{row.tools} tools"), about=row.about
            )
            for row in rows
        ]
        view = ListView(
            app.surface, "MCP servers", items, actions=_ACTIONS, enter="shows its tools",
            chosen=key, message=message,
        )  # fmt: skip
        picked: Picked = await app.open(view)
        key = picked.key
        if not picked.action or not key:
            return
        try:
            if picked.action == ENTER:
                lines = terminal_text(await _command(app, key)).split("\n")
                await app.page(
                    f"MCP server {key}", [app.drawing.painter.line(row) for row in lines]
                )
                message = ""
            else:
                message = await _command(app, f"{_VERBS[picked.action]} {key}")
        except ToolwireError as error:
            message = one_line(str(error))


async def _command(app: "TerminalApp", words: str) -> str:
    start = app.start

    def show(url: str) -> None:
        app.say(f"open this address to log in: {one_line(url)}")

    return await server_command(app.session.toolbox, words, start.settings, start.environ, show)
