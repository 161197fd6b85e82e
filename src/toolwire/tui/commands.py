"""Slash commands of the terminal app: one table for the menu, `/help` and the docs."""

from collections.abc import Awaitable, Callable
from pkgutil import get_data
from typing import TYPE_CHECKING

import msgspec

from toolwire.app.servers import server_command
from toolwire.app.session import stored_sessions
from toolwire.errors import ToolwireError, UnknownName
from toolwire.messages import Text
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers import catalogue
from toolwire.sessions.transcript import record_after
from toolwire.terminal_text import one_line, terminal_text
from toolwire.tui import pages
from toolwire.tui.clipboard import copied
from toolwire.tui.diffs import diff_lines, painted
from toolwire.tui.entries import ViewOptions
from toolwire.tui.transcript import CallEntry, Said
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_SESSIONS = 50


class SlashCommand(msgspec.Struct, frozen=True):
    """A command: its names, what it does, and what may follow it."""

    name: str
    words: str
    run: "Callable[[TerminalApp, str], Awaitable[None]]"
    aliases: tuple[str, ...] = ()
    choices: "Callable[[TerminalApp], tuple[str, ...]] | None" = None


async def _help(app: "TerminalApp", argument: str) -> None:
    del argument
    wide = max(len(_title(one)) for one in COMMANDS)
    for one in COMMANDS:
        app.say(f"{_title(one):<{wide}}  {one.words}")
    app.say("")
    for keys, words in KEYS:
        app.say(f"{keys:<{wide}}  {words}")


def _title(command: SlashCommand) -> str:
    return " ".join(f"/{name}" for name in (command.name, *command.aliases))


async def _model(app: "TerminalApp", argument: str) -> None:
    if not argument:
        argument = await app.pick(f"model (now {app.session.opened.name})", _models(app))
    if argument:
        await app.session.change_model(argument)
    app.say(f"model: {app.session.opened.name}", "dim")


def _models(app: "TerminalApp") -> list[tuple[str, str]]:
    known = catalogue.models(None, app.start.settings.models)
    own = app.session.opened.provider.name
    ranked = sorted(known, key=lambda info: info.provider != own)
    return [
        (f"{info.provider}/{info.id}", f"{info.context or 0:>9,} tokens of context")
        for info in ranked
    ]


async def _style(app: "TerminalApp", argument: str) -> None:
    before = app.session.opened.style
    if not argument:
        items = [(str(style), _STYLES.get(style, "")) for style in ToolStyle]
        now = f"tool style: {before.style} in use ({before.reason})"
        argument = await app.pick(now, items)
    if argument:
        await app.session.change_style(argument)
    style = app.session.opened.style
    app.say(f"tool style in use: {style.style}")
    app.say(f"why: {one_line(style.reason)}", "dim")
    if style.warning:
        app.say(f"warning: {one_line(style.warning)}", "warning")


_STYLES = {
    ToolStyle.AUTO: "let it decide: the best that is known for the model",
    ToolStyle.NATIVE: "the provider's own tool calls",
    ToolStyle.XML: "calls as XML in the text, for models without native calls",
    ToolStyle.JSON: "answers held to a JSON Schema by the server",
}


async def _mode(app: "TerminalApp", argument: str) -> None:
    if argument:
        if argument not in tuple(Mode):
            raise UnknownName("mode", argument, tuple(Mode))
        if argument == Mode.YOLO and app.session.mode is not Mode.YOLO:
            question = "run every call without asking, in this session?"
            if not await app.questions.agrees(question):
                return
        await app.session.set_mode(Mode(argument))
    else:
        app.say(f"approval mode: {app.session.mode}")


async def _tools(app: "TerminalApp", argument: str) -> None:
    del argument
    for tool in app.session.toolbox.registry:
        words = terminal_text(tool.description).strip().partition("\n")[0]
        app.say(f"{tool.name}  ({tool.effect})  {words}")


async def _usage(app: "TerminalApp", argument: str) -> None:
    del argument
    body = msgspec.json.format(dump(app.statistics()), indent=2)
    app.say(body)


async def _compact(app: "TerminalApp", argument: str) -> None:
    del argument
    if await app.session.compress() is None:
        app.say("nothing to shorten", "dim")


async def _copy(app: "TerminalApp", argument: str) -> None:
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


def stored(app: "TerminalApp") -> list[tuple[str, str]]:
    """The sessions of the folder, the newest first."""
    listed = stored_sessions(app.start.environ).list(str(app.start.cwd))[:_SESSIONS]
    return [(one.id, f"{one.turns:>4} turns  {one.model}  {one_line(one.title)}") for one in listed]


async def _sessions(app: "TerminalApp", argument: str) -> None:
    if not argument:
        items = [one for one in stored(app) if one[0] != app.session.id]
        if not items:
            app.say("no other session in this folder", "dim")
            return
        argument = await app.pick("sessions of this folder", items)
    if argument:
        store = stored_sessions(app.start.environ)
        app.leave(resume=store.find(argument))


async def _rewind(app: "TerminalApp", argument: str) -> None:
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


async def _fork(app: "TerminalApp", argument: str) -> None:
    del argument
    store = stored_sessions(app.start.environ)
    app.leave(resume=store.fork(app.session.id, None))


async def _diff(app: "TerminalApp", argument: str) -> None:
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


async def _transcript(app: "TerminalApp", argument: str) -> None:
    del argument
    await app.page("transcript", app.drawing.whole())


async def _init(app: "TerminalApp", argument: str) -> None:
    del argument
    text = (get_data("toolwire.tui", "init.md") or b"").decode("utf-8")
    app.send(text.strip())


async def _plan(app: "TerminalApp", argument: str) -> None:
    del argument
    marks = {"done": "☑", "in_progress": "▸", "cancelled": "–"}
    for step in app.drawing.state.plan:
        app.say(f"{marks.get(step.status, '☐')} {one_line(step.text)}")
    if not app.drawing.state.plan:
        app.say("there is no plan", "dim")


async def _verbose(app: "TerminalApp", argument: str) -> None:
    whole = argument != "off"
    ui = app.start.settings.ui
    now = ViewOptions(thinking=ui.thinking, diff=ui.diff, wrap=ui.wrap)
    if whole:
        now = msgspec.structs.replace(now, lines=0, thinking="shown")
    app.drawing.set_options(now)
    app.say("results are shown whole" if whole else "results are shortened", "dim")


async def _editor(app: "TerminalApp", argument: str) -> None:
    del argument
    await app.write_in_editor()


async def _new(app: "TerminalApp", argument: str) -> None:
    del argument
    app.leave(new=True)


async def _quit(app: "TerminalApp", argument: str) -> None:
    del argument
    app.quit()


async def _mcp(app: "TerminalApp", argument: str) -> None:
    start = app.start

    def show(url: str) -> None:
        app.say(f"open this address to log in: {one_line(url)}")

    words = await server_command(app.session.toolbox, argument, start.settings, start.environ, show)
    app.say(terminal_text(words))


COMMANDS = (
    SlashCommand("help", "keys and commands", _help, ("?",)),
    SlashCommand("model", "show or change the model", _model),
    SlashCommand(
        "style",
        "show or change how tools are described to the model",
        _style,
        choices=lambda app: tuple(map(str, ToolStyle)),
    ),
    SlashCommand(
        "mode",
        "show or change which calls need a yes",
        _mode,
        choices=lambda app: tuple(map(str, Mode)),
    ),
    SlashCommand("tools", "list the tools", _tools),
    SlashCommand("mcp", "MCP servers; /mcp restart NAME, login, approve, enable, disable", _mcp),
    SlashCommand("usage", "tokens, cost and time so far", _usage, ("cost", "stats")),
    SlashCommand("compact", "shorten the conversation now", _compact, ("compress",)),
    SlashCommand("copy", "copy the last answer; /copy code: its last code", _copy),
    SlashCommand("sessions", "go on with another session of this folder", _sessions, ("resume",)),
    SlashCommand("rewind", "go back to an earlier turn, in a copy", _rewind),
    SlashCommand("fork", "go on in a copy of this session", _fork),
    SlashCommand("diff", "all changes of this session", _diff),
    SlashCommand("transcript", "the whole session, to scroll and search", _transcript),
    SlashCommand("context", "what fills the model's window", pages.context),
    SlashCommand("permissions", "the rules in force, and where they come from", pages.permissions),
    SlashCommand("settings", "every setting with its origin; change one", pages.settings),
    SlashCommand("init", "let the model write a first AGENTS.md", _init),
    SlashCommand("plan", "the model's list of steps", _plan, ("todo",)),
    SlashCommand("verbose", "show results whole; /verbose off", _verbose),
    SlashCommand("editor", "write in your editor", _editor),
    SlashCommand("new", "start a new session", _new, ("clear",)),
    SlashCommand("quit", "leave", _quit, ("exit",)),
)
KEYS = (
    ("Enter", "send; while it works: heard at its next step"),
    ("Tab", "complete; while it works: queue for after the turn"),
    ("Esc", "stop the turn; close the menu"),
    ("Ctrl-C", "stop, clear; twice: leave"),
    ("Alt-Enter, Ctrl-J", "new line; also \\ at the end of a line"),
    ("Up, Down", "history; first the queued messages"),
    ("Shift-Tab", "next approval mode"),
    ("Ctrl-O", "transcript"),
    ("Ctrl-G", "write in your editor"),
    ("Ctrl-Y", "copy the last answer"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "suspend"),
    ("Ctrl-D", "leave"),
    ("@path", "attach a file"),
    ("!command", "run a command of your own; the model reads its output with your next message"),
    ("#words", "remember a note"),
)
_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def known(name: str) -> SlashCommand | None:
    """The command of a name or alias."""
    return _BY_NAME.get(name)


def listed() -> dict[str, str]:
    """Names and what they do, for the menu."""
    return {command.name: command.words for command in COMMANDS}


def is_command(line: str) -> bool:
    """Whether a line is a command, or looks like one that is misspelt; a path is neither."""
    if not line.startswith("/"):
        return False
    name, space, _ = line[1:].strip().partition(" ")
    return known(name) is not None or (not space and name.replace("-", "").isalpha())


async def run(app: "TerminalApp", line: str) -> None:
    """Runs a line that begins with `/`; an error is one line."""
    name, _, argument = line[1:].strip().partition(" ")
    command = known(name)
    try:
        if command is None:
            raise UnknownName("command", f"/{name}", tuple(f"/{one}" for one in _BY_NAME))
        await command.run(app, argument.strip())
    except ToolwireError as error:
        app.say(f"error: {error}", "failed")
