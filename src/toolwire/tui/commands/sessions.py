"""Commands about sessions: choose, copy, go back, export, begin."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolwire.app.stored_sessions import stored_sessions
from toolwire.context.mentions import BEGINS
from toolwire.errors import BadInput, SessionError, UnknownName
from toolwire.sessions.export import FORMATS
from toolwire.sessions.store import Contents, Summary
from toolwire.sessions.transcript import record_after, turns_of
from toolwire.terminal_text import one_line
from toolwire.tui.views.lists import ENTER, ListItem, ListView, Picked

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp
    from toolwire.tui.front import Front

_SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".json": "json"}
_ACTIONS = {"f": "forks", "x": "exports", "Del": "deletes", "Ctrl-A": "all folders"}


async def sessions(app: "TerminalApp", argument: str) -> None:
    """Goes on with another session."""
    store = stored_sessions(app.start.environ, app.start.settings)
    if argument:
        app.leave(resume=store.find(argument))
        return
    chosen = await choose_session(app, without=app.session.id)
    if chosen:
        app.leave(resume=chosen)


async def choose_session(app: "Front", without: str = "") -> str:
    """The session that the user goes on with, or a copy of one; empty for none."""
    store = stored_sessions(app.start.environ, app.start.settings)
    folder = str(app.start.cwd)
    everywhere, doomed, key, message, query = False, "", "", "", ""
    while True:
        project = None if everywhere else folder
        listed = await asyncio.to_thread(store.list, project)
        found = [one for one in listed if one.id != without and (one.turns or one.damaged)]
        where = "all folders" if everywhere else "this folder"

        async def search(words: str, project: str | None = project) -> set[str]:
            return await asyncio.to_thread(store.search, words, project)

        view = ListView(
            app.surface,
            f"sessions of {where} ({len(found)})",
            [_listed(one, everywhere=everywhere) for one in found],
            actions=_ACTIONS,
            enter="goes on",
            chosen=key,
            search=search,
            message=message,
            query=query,
        )
        picked: Picked = await app.open(view)
        key, message, query = picked.key, "", view.query
        if picked.action == "Ctrl-A":
            everywhere = not everywhere
            continue
        if not picked.action or not key:
            return ""
        try:
            match picked.action:
                case "f":
                    return store.fork(key, None)
                case "x":
                    file = export_file(store.read(key), "", app.start.cwd)
                    message = f"exported to {file}"
                case "Del" if doomed != key:
                    doomed, message = key, "Del again deletes it; there is no way back"
                    continue
                case "Del":
                    store.delete(key)
                    key, message = _beside(key, [one.id for one in found]), "deleted"
                case _:
                    return key
        except SessionError as error:
            message = str(error)
        doomed = ""


def _beside(key: str, ids: list[str]) -> str:
    """The entry after this one, or before the last one."""
    at = ids.index(key)
    return next(iter((*ids[at + 1 : at + 2], *ids[max(at - 1, 0) : at])), "")


def _listed(one: Summary, *, everywhere: bool) -> ListItem:
    turns = "1 turn" if one.turns == 1 else f"{one.turns} turns"
    title = one.title or "(no text)"
    if one.damaged:
        title = f"(damaged) {title}"
    cells = (age(time.time() - one.updated), one.model, turns, title)
    about = f"{one.id}   {one.project}" if everywhere else one.id
    return ListItem(key=one.id, cells=cells, about=about)


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


async def rewind(app: "TerminalApp", argument: str) -> None:
    """Goes on from before an earlier turn, in a copy of the session."""
    number = await _turn(app, argument, "go back to before this turn; the session itself stays")
    if number:
        prompts = _prompts(app)
        app.composer.set(prompts[number - 1])
        app.leave(resume=_copied(app, number - 1))


async def fork(app: "TerminalApp", argument: str) -> None:
    """Goes on in a copy of the session, whole or up to a turn."""
    if not argument:
        app.leave(
            resume=stored_sessions(app.start.environ, app.start.settings).fork(app.session.id, None)
        )
        return
    number = await _turn(app, argument, "copy up to this turn")
    if number:
        app.leave(resume=_copied(app, number))


def _prompts(app: "TerminalApp") -> list[str]:
    """What the user wrote at the beginning of each turn."""
    records = stored_sessions(app.start.environ, app.start.settings).read(app.session.id).records
    return [turn.prompt.partition(BEGINS)[0].strip() for turn in turns_of(records)]


async def _turn(app: "TerminalApp", argument: str, heading: str) -> int:
    """The number of a turn that the user names or chooses; 0 for none."""
    prompts = _prompts(app)
    if not prompts:
        app.say("there is no turn to go back to", "dim")
        return 0
    if not argument:
        items = [
            ListItem(key=str(number), cells=(str(number), text), about=text)
            for number, text in enumerate(prompts, 1)
        ]
        picked: Picked = await app.open(ListView(app.surface, heading, items[::-1]))
        argument = picked.key if picked.action == ENTER else ""
    if not argument:
        return 0
    if not argument.isdigit() or not 1 <= int(argument) <= len(prompts):
        raise UnknownName("turn", argument, tuple(map(str, range(1, len(prompts) + 1))))
    return int(argument)


def _copied(app: "TerminalApp", turns: int) -> str:
    store = stored_sessions(app.start.environ, app.start.settings)
    upto = record_after(store.read(app.session.id).records, turns)
    return store.fork(app.session.id, upto)


async def new(app: "TerminalApp", argument: str) -> None:
    """Begins a new session."""
    del argument
    app.leave(new=True)


async def export(app: "TerminalApp", argument: str) -> None:
    """Writes the session to a file: Markdown, HTML or JSON by its name."""
    contents = stored_sessions(app.start.environ, app.start.settings).read(app.session.id)
    file = export_file(contents, argument, app.start.cwd)
    app.say(f"exported to {file}", "dim")


def export_file(contents: Contents, name: str, folder: Path) -> Path:
    """Writes a session to a file of that name; never over one that exists."""
    file = folder / Path(name or f"session-{contents.id}.md").expanduser()
    form = _SUFFIXES.get(file.suffix.lower())
    if form is None:
        raise BadInput(f"{one_line(name)}: name a file that ends in {', '.join(_SUFFIXES)}")
    text = FORMATS[form](contents)
    try:
        with file.open("xb") as out:
            out.write(text.encode("utf-8", "replace"))
    except FileExistsError as error:
        raise SessionError(f"{file} exists already; name another file") from error
    except OSError as error:
        raise SessionError(f"cannot write {file}: {error.strerror}") from error
    return file
