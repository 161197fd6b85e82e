"""The command about settings: values, origins, changes."""

from typing import TYPE_CHECKING

from toolwire import config
from toolwire.config import edit
from toolwire.config.display import rows
from toolwire.config.layers import config_files
from toolwire.terminal_text import one_line

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp


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
