"""The command about MCP servers."""

from typing import TYPE_CHECKING

from toolwire.app.servers import server_command
from toolwire.terminal_text import one_line, terminal_text

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp


async def mcp(app: "TerminalApp", argument: str) -> None:
    """Shows the MCP servers, and restarts, approves, enables or logs in to one."""
    start = app.start

    def show(url: str) -> None:
        app.say(f"open this address to log in: {one_line(url)}")

    words = await server_command(app.session.toolbox, argument, start.settings, start.environ, show)
    app.say(terminal_text(words))
