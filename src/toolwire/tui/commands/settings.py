"""The commands about settings: values, origins, changes; and notes for the model."""

from pathlib import Path
from typing import TYPE_CHECKING

from toolwire import config
from toolwire.app.system_prompt import notes_in_use
from toolwire.config import edit
from toolwire.config.display import Row, rows
from toolwire.config.edit import key_of, split_path
from toolwire.config.layers import ConfigFiles, config_files
from toolwire.errors import ToolwireError, UnknownName
from toolwire.terminal_text import one_line
from toolwire.tui.own_words import edit_file
from toolwire.tui.views.lists import EDITED, ENTER, ListItem, ListView, Picked

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_ACTIONS = {"l": "other file", "u": "unsets"}
_LATER = "it applies from the next start"


async def settings(app: "TerminalApp", argument: str) -> None:
    """Shows every setting with value, origin and meaning; changes one in a file of a layer."""
    start = app.start
    files = config_files(start.environ, start.cwd)
    name, _, value = argument.partition(" ")
    if value.strip():
        edit.set_value(files, files.user, name, value.strip(), start.cwd)
        app.say(f"{one_line(name)} is set in {files.user}; {_LATER}", "dim")
        return
    await _list(app, files, name)


async def _list(app: "TerminalApp", files: ConfigFiles, name: str) -> None:
    start = app.start
    layer, key, message, query = "user", name, "", ""
    entry: tuple[str, str] | None = None
    while True:
        found = rows(config.resolve(start.environ, start.cwd))
        if name and name not in {row.key for row in found}:
            raise UnknownName("setting", name, tuple(row.key for row in found))
        name = ""
        file: Path = getattr(files, layer)
        view = ListView(
            app.surface,
            f"settings; changes go to {layer}: {file}",
            [_item(row) for row in found],
            actions=_ACTIONS,
            enter="changes",
            chosen=key,
            entry=entry,
            message=message,
            query=query,
        )
        picked: Picked = await app.open(view)
        key, message, query, entry = picked.key, "", view.query, None
        try:
            match picked.action:
                case "":
                    return
                case "l":
                    layer = "project" if layer == "user" else "user"
                case "u":
                    edit.unset_value(files, file, key)
                    message = f"{key} is no longer set in {file}; {_LATER}"
                case _ if picked.action == EDITED:
                    edit.set_value(files, file, key, picked.text, start.cwd)
                    message = f"{key} is set in {file}; {_LATER}"
                case _:
                    row = next(row for row in found if row.key == key)
                    text = row.value if isinstance(row.value, str) else row.text
                    entry = (key, "" if row.value is None else text)
        except ToolwireError as error:
            message = str(error)


def _item(row: Row) -> ListItem:
    return ListItem(key=row.key, cells=(row.key, row.text, row.origin), about=_meaning(row.key))


def _meaning(path: str) -> str:
    try:
        key = key_of(split_path(path))
    except ToolwireError:
        return ""
    variable = f" Variable: {key.variable}." if key.variable else ""
    who = "A project may set it." if key.project else "A project may not set it."
    return f"{key.doc} Values: {key.expected}.{variable} {who}"


async def memory(app: "TerminalApp", argument: str) -> None:
    """Shows the notes in use with their files; opens the chosen one in the editor."""
    del argument
    found = notes_in_use(app.start.settings, app.session.toolbox)
    items = [
        ListItem(
            key=file.path,
            cells=(file.shown, f"{file.size:,} bytes", "yours" if file.outer else "project"),
            about=f"imports {', '.join(file.imported)}" if file.imported else file.path,
        )
        for file in found.files
    ]
    if not items:
        app.say("no notes are in use; /init writes a first AGENTS.md, #words stores a note", "dim")
        return
    picked: Picked = await app.open(
        ListView(app.surface, "notes given to the model", items, enter="edits")
    )
    if picked.action == ENTER:
        with app.screen.suspended():
            await edit_file(Path(picked.key))
        app.say(f"{picked.key}: read again by the next session", "dim")
