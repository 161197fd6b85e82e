"""Commands about what runs beside the conversation: background commands and subagents."""

import asyncio
import time
from typing import TYPE_CHECKING

from toolwire.app.stored_sessions import stored_sessions
from toolwire.errors import ToolwireError
from toolwire.terminal_text import one_line, terminal_text
from toolwire.tools.shell.output import decoded_tail, plain_text
from toolwire.tools.shell.shells import Shells, shells_of
from toolwire.tui.entries import EntryLines, ViewOptions
from toolwire.tui.live import duration_whole
from toolwire.tui.state import Subagent
from toolwire.tui.transcript import TranscriptFold
from toolwire.tui.views.lists import ListItem, ListView, Picked

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_LINES = 2000


async def shells(app: "TerminalApp", argument: str) -> None:
    """Shows background commands: their output, and stops one."""
    del argument
    found = shells_of(app.session.toolbox.context.owner)
    key, message = "", ""
    while True:
        items = _commands(found)
        if not items:
            app.say("no command runs in the background; Ctrl-B moves a running one there", "dim")
            return
        view = ListView(
            app.surface, "background commands", items, actions={"x": "stops"}, chosen=key,
            enter="shows the output", message=message, live=lambda: _commands(found),
        )  # fmt: skip
        picked: Picked = await app.open(view)
        key, message = picked.key, ""
        if not picked.action or not key:
            return
        kept = found.get(int(key))
        if kept is None:
            continue
        if picked.action == "x":
            await kept[0].end()
            message = f"stopped: {one_line(kept[0].command)}"
            continue
        text = await asyncio.to_thread(_tail, found, int(key), _LINES)
        painter = app.drawing.painter
        await app.page(f"$ {kept[0].command}", [painter.line(row) for row in text.split("\n")])


def _commands(found: Shells) -> list[ListItem]:
    return [
        ListItem(
            key=str(pid),
            cells=(str(pid), "running" if shell.running else "ended", shell.command),
            about=_tail(found, pid, 3),
        )
        for pid, (shell, _) in found.all().items()
    ]


def _tail(found: Shells, pid: int, lines: int) -> str:
    kept = found.get(pid)
    if kept is None:
        return ""
    spool = kept[1]
    text = plain_text(decoded_tail(spool.head if spool.whole else spool.tail)).rstrip("\n")
    return terminal_text("\n".join(text.split("\n")[-lines:])) or "(no output since then)"


async def agents(app: "TerminalApp", argument: str) -> None:
    """Shows the subagents: state, cost, last line; stops one; and what one did."""
    del argument
    key, message = "", ""
    while True:
        found = _listed(app)
        if not found:
            app.say("no subagent has run in this session", "dim")
            return
        view = ListView(
            app.surface, "subagents", found, actions={"x": "stops it"}, chosen=key,
            enter="shows what it did", message=message, live=lambda: _listed(app),
        )  # fmt: skip
        picked: Picked = await app.open(view)
        key, message = picked.key, ""
        if not picked.action or not key:
            return
        if picked.action == "x":
            agents = app.session.subagents
            if agents is None or not agents.stop(key):
                message = "it does not run"
            continue
        await app.page(f"subagent {key}", _past(app, key))


def _listed(app: "TerminalApp") -> list[ListItem]:
    return [_agent(one) for one in app.drawing.state.agents]


def _agent(one: Subagent) -> ListItem:
    state = "done" if one.ended else f"working {duration_whole(time.monotonic() - one.since)}"
    cost = f"${one.cost:.4f}" if one.cost else "-"
    return ListItem(key=one.session, cells=(one.name, state, cost, one.last), about=one.session)


def _past(app: "TerminalApp", session: str) -> list[str]:
    """The rows of a subagent's own session."""
    try:
        events = stored_sessions(app.start.environ, app.start.settings).read(session).events
    except ToolwireError as error:
        return [app.drawing.painter.line((str(error), "warning"))]
    fold, lines = TranscriptFold(), EntryLines(app.drawing.painter, ViewOptions(lines=0))
    return [row for event in events for entry in fold.add(event) for row in lines.lines(entry)]
