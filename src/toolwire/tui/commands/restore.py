"""Commands that bring files back: to a checkpoint, or to before the last turn."""

import asyncio
import time
from typing import TYPE_CHECKING

from toolwire.app.checkpoints import Checkpoints
from toolwire.app.checkpoints.stored import (
    CheckpointLine,
    checkpoint_lines,
    copy_conversation,
    informed,
    restored_text,
)
from toolwire.app.stored_sessions import stored_sessions
from toolwire.errors import BadInput, SessionError
from toolwire.terminal_text import one_line
from toolwire.tui.commands.sessions import age
from toolwire.tui.views.lists import ENTER, ListItem, ListView, Picked

if TYPE_CHECKING:
    from toolwire.extensions.checkpoints.restore import Done
    from toolwire.tui.app import TerminalApp

_ACTIONS = {"f": "files only", "c": "conversation only", "o": "overwrites what others changed"}


async def undo(app: "TerminalApp", argument: str) -> None:
    """Restores the files to before the last turn that changed them."""
    del argument
    found = _checkpoints(app).undoable()
    await restore_files(app, found)


async def restore(app: "TerminalApp", argument: str) -> None:
    """Restores a checkpoint: files and conversation, or one of them."""
    checkpoints = _checkpoints(app)
    records = stored_sessions(app.start.environ, app.start.settings).read(app.session.id).records
    found = {str(one.n): one for one in checkpoint_lines(checkpoints.entries(), records)}
    if not found:
        raise SessionError("no checkpoint: this session has changed no file")
    action, key = ENTER, argument
    if not argument:
        items = [_listed(one) for one in reversed(found.values())]
        heading = "restore files and conversation to before a turn"
        view = ListView(app.surface, heading, items, actions=_ACTIONS, enter="restores both")
        picked: Picked = await app.open(view)
        action, key = picked.action, picked.key
        if not action or not key:
            return
    if key not in found:
        known = f"{min(map(int, found))} to {max(map(int, found))}"
        raise BadInput(f"/restore {one_line(key)}: write the number of a checkpoint, {known}")
    chosen = found[key]
    if action != "c":
        await restore_files(app, chosen.n, force=action == "o")
    if action in (ENTER, "c"):
        store = stored_sessions(app.start.environ, app.start.settings)
        copy = await asyncio.to_thread(copy_conversation, store, app.session.id, chosen.turn)
        app.leave(resume=copy)


async def restore_files(
    app: "TerminalApp", n: int, *, force: bool = False, only: frozenset[str] | None = None
) -> None:
    """Restores files, shows what was done, and lets the model know."""
    done: Done = await _checkpoints(app).restore(n, force=force, only=only)
    for line in restored_text(done, n, app.start.cwd):
        app.say(one_line(line), "warning" if line.startswith("left") else "dim")
    if text := informed(done):
        app.session.inform(text)


def checkpoint_of(app: "TerminalApp", turn: int) -> int:
    """The number of the first checkpoint of a turn or a later one."""
    checkpoints = app.session.checkpoints
    lines = checkpoint_lines(checkpoints.entries(), ()) if checkpoints is not None else []
    for one in lines:
        if one.kind != "restore" and one.turn >= turn:
            return one.n
    raise SessionError("there is no checkpoint of these changes")


def _checkpoints(app: "TerminalApp") -> Checkpoints:
    found = app.session.checkpoints
    if found is None:
        raise SessionError("nothing is recorded: the session is not stored, or checkpoints are off")
    return found


def _listed(one: CheckpointLine) -> ListItem:
    files = f"{len(one.files)} files" if one.files else ""
    what = "before a restore" if one.kind == "restore" else f"before turn {one.turn}"
    cells = (str(one.n), age(time.time() - one.at), what, files, ", ".join(one.calls))
    return ListItem(key=str(one.n), cells=cells, about="\n".join(one.files))
