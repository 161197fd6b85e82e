"""Commands that show what happened: changes, transcript, plan; and copies of it."""

from typing import TYPE_CHECKING

import msgspec

from toolwire.messages import Text
from toolwire.terminal_text import one_line
from toolwire.tui.clipboard import copied
from toolwire.tui.diffs import diff_lines, painted
from toolwire.tui.entries import ViewOptions
from toolwire.tui.transcript import CallEntry

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp


async def copy(app: "TerminalApp", argument: str) -> None:
    """Copies the last answer, or its last code."""
    text = _last_answer(app)
    if not text:
        app.say("there is no answer to copy", "dim")
        return
    if argument == "code":
        text = _last_code(text) or text
    app.write_out(copied(text))
    app.say(f"copied {len(text)} characters", "dim")


def _last_answer(app: "TerminalApp") -> str:
    """The source text of the model's last answer."""
    for message in reversed(app.session.request.messages):
        if message.role == "assistant":
            text = "".join(part.text for part in message.parts if isinstance(part, Text))
            if text:
                return text
    return ""


def _last_code(text: str) -> str:
    blocks = text.split("```")[1::2]
    return blocks[-1].partition("\n")[2] if blocks else ""


async def diff(app: "TerminalApp", argument: str) -> None:
    """Shows all changes of the session."""
    del argument
    rows: list[str] = []
    for entry in app.drawing.entries:
        if isinstance(entry, CallEntry) and entry.finished.diff and entry.finished.success:
            layout = app.drawing.options.diff
            rows += painted(diff_lines(entry.finished.diff), app.drawing.painter, layout=layout)
    if rows:
        await app.page("changes of this session", rows)
    else:
        app.say("no file was changed in this session", "dim")


async def transcript(app: "TerminalApp", argument: str) -> None:
    """Shows the whole session."""
    del argument
    await app.page("transcript", app.drawing.whole())


async def plan(app: "TerminalApp", argument: str) -> None:
    """Shows the model's list of steps."""
    del argument
    marks = {"done": "☑", "in_progress": "▸", "cancelled": "–"}
    for step in app.drawing.state.plan:
        app.say(f"{marks.get(step.status, '☐')} {one_line(step.text)}")
    if not app.drawing.state.plan:
        app.say("there is no plan", "dim")


async def verbose(app: "TerminalApp", argument: str) -> None:
    """Shows results whole, or shortened."""
    whole = argument != "off"
    ui = app.start.settings.ui
    now = ViewOptions(thinking=ui.thinking, diff=ui.diff, wrap=ui.wrap)
    if whole:
        now = msgspec.structs.replace(now, lines=0, thinking="shown")
    app.drawing.set_options(now)
    app.say("results are shown whole" if whole else "results are shortened", "dim")
