"""Commands for the looks of the app: theme, keys of the composer."""

from typing import TYPE_CHECKING

from toolwire.config import edit
from toolwire.config.layers import config_files
from toolwire.errors import UnknownName
from toolwire.tui.themes import THEMES, theme_for

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

THEME_NAMES = ("auto", *THEMES)


async def theme(app: "TerminalApp", argument: str) -> None:
    """Shows or changes the colours; the choice is saved."""
    if not argument:
        items = [(name, "") for name in THEME_NAMES]
        argument = await app.pick(f"theme (now {app.drawing.theme_name})", items)
    if argument:
        app.drawing.set_theme(*theme_for(argument, app.start.environ))
        save(app, "ui.theme", argument)
        app.say(f"theme: {argument}", "strong")


async def vim(app: "TerminalApp", argument: str) -> None:
    """Turns vi keys on or off; the choice is saved."""
    if argument not in ("", "on", "off"):
        raise UnknownName("value", argument, ("on", "off"))
    on = argument == "on" if argument else not app.screen.vi
    app.screen.vi = on
    save(app, "ui.keys", "vi" if on else "emacs")
    app.say(f"keys of the composer: {'vi' if on else 'emacs'}", "dim")


SCREENS = ("inline", "full")


async def screen(app: "TerminalApp", argument: str) -> None:
    """Changes between inline and full screen; the choice is saved."""
    if argument not in ("", *SCREENS):
        raise UnknownName("screen", argument, SCREENS)
    full = argument == "full" if argument else not app.screen.full
    app.screen.set_full(full, app.drawing.shown())
    save(app, "ui.screen", "full" if full else "inline")
    app.say(f"screen: {'full; PageUp and the wheel scroll' if full else 'inline'}", "dim")


def save(app: "TerminalApp", key: str, value: str) -> None:
    """Stores a setting for the user."""
    files = config_files(app.start.environ, app.start.cwd)
    edit.set_value(files, files.user, key, value, app.start.cwd)
