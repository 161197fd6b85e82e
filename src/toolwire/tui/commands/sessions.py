"""Commands about sessions: choose, copy, go back, begin."""

from typing import TYPE_CHECKING

from toolwire.app.session import stored_sessions
from toolwire.errors import UnknownName
from toolwire.sessions.transcript import record_after
from toolwire.terminal_text import one_line
from toolwire.tui.transcript import Said

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp


_SESSIONS = 50


def stored(app: "TerminalApp") -> list[tuple[str, str]]:
    """The sessions of the folder, the newest first."""
    listed = stored_sessions(app.start.environ).list(str(app.start.cwd))[:_SESSIONS]
    return [(one.id, f"{one.turns:>4} turns  {one.model}  {one_line(one.title)}") for one in listed]


async def sessions(app: "TerminalApp", argument: str) -> None:
    """Goes on with another session."""
    if not argument:
        items = [one for one in stored(app) if one[0] != app.session.id]
        if not items:
            app.say("no other session in this folder", "dim")
            return
        argument = await app.pick("sessions of this folder", items)
    if argument:
        store = stored_sessions(app.start.environ)
        app.leave(resume=store.find(argument))


async def rewind(app: "TerminalApp", argument: str) -> None:
    """Goes on from an earlier turn, in a copy of the session."""
    prompts = [entry.text for entry in app.drawing.entries if isinstance(entry, Said)]
    if not prompts:
        app.say("there is no turn to go back to", "dim")
        return
    if not argument:
        items = [(str(number), one_line(text)[:200]) for number, text in enumerate(prompts, 1)]
        argument = await app.pick("go back to before this turn (the session is kept)", items[::-1])
    if not argument:
        return
    if not argument.isdigit() or not 1 <= int(argument) <= len(prompts):
        raise UnknownName("turn", argument, tuple(map(str, range(1, len(prompts) + 1))))
    store = stored_sessions(app.start.environ)
    upto = record_after(store.read(app.session.id).records, int(argument) - 1)
    copy = store.fork(app.session.id, upto)
    app.composer.set(prompts[int(argument) - 1])
    app.leave(resume=copy)


async def fork(app: "TerminalApp", argument: str) -> None:
    """Goes on in a copy of the session."""
    del argument
    store = stored_sessions(app.start.environ)
    app.leave(resume=store.fork(app.session.id, None))


async def new(app: "TerminalApp", argument: str) -> None:
    """Begins a new session."""
    del argument
    app.leave(new=True)
