"""Commands about this machine: state, doctor, log-in, and reports of bugs."""

import asyncio
import platform
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from toolwire import config
from toolwire.client.redact import SHORTEST, Secret, is_secret_name, without_secrets
from toolwire.config.display import rows
from toolwire.errors import BadInput, ToolwireError
from toolwire.providers import names
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import write_private
from toolwire.terminal_text import one_line, terminal_text
from toolwire.tui.state import MODE_WORDS
from toolwire.tui.transcript import NoteEntry

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LANG", "NO_COLOR")
_WITHIN = ("TMUX", "STY", "ZELLIJ", "SSH_TTY", "WT_SESSION")
_MOST_NOTES = 20


async def status(app: "TerminalApp", argument: str) -> None:
    """Shows what is in use: session, model, style, mode, folder, context, cost."""
    del argument
    for name, value in _facts(app):
        app.say(f"{name:<10} {one_line(value)}")


def _facts(app: "TerminalApp") -> list[tuple[str, str]]:
    session, start, state = app.session, app.start, app.drawing.state
    opened = session.opened
    window = (opened.info.context or 0) if opened.info is not None else 0
    share = f" of {window:,}" if window else ""
    trusted = {True: "trusted", False: "not trusted", None: "not trusted; not asked yet"}
    servers = session.toolbox.servers
    found = [
        ("toolwire", start.version),
        ("session", session.id),
        ("folder", f"{start.cwd} ({trusted[start.settings.trusted]})"),
        ("model", f"{opened.name}, credential: {opened.origin}"),
        ("style", f"{opened.style.style}: {opened.style.reason}"),
        ("mode", MODE_WORDS.get(session.mode, session.mode)),
        ("sandbox", session.toolbox.context.sandbox.level),
        ("context", f"{state.tokens:,}{share} tokens"),
        ("cost", f"${state.cost:.4f}{' and requests without a price' if state.unpriced else ''}"),
        ("settings", ", ".join(map(str, start.settings.files)) or "no file"),
    ]
    if opened.style.warning:
        found.insert(5, ("warning", opened.style.warning))
    if servers is not None:
        states = (f"{name} {state.replace('_', ' ')}" for name, state, _ in servers.states())
        found.append(("MCP", ", ".join(states)))
    return found


async def doctor(app: "TerminalApp", argument: str) -> None:
    """Shows what is configured and reachable, as `toolwire doctor` does."""
    options = ("--offline",) if argument == "offline" else ()
    app.say("looking at providers and settings …", "dim")
    text = await _output(app, "doctor", *options)
    painter = app.drawing.painter
    await app.page("toolwire doctor", [painter.line(row) for row in text.split("\n")])


async def _output(app: "TerminalApp", *words: str) -> str:
    """What a command of ours prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toolwire", *words,
        cwd=app.start.cwd, env=dict(app.start.environ), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return terminal_text(output.decode("utf-8", "replace")).rstrip("\n")


async def login(app: "TerminalApp", argument: str) -> None:
    """Stores a key, or logs in with the vendor, as `toolwire login` does."""
    name, *options = argument.split() or [""]
    if not name:
        own = [(one.name,) for one in app.start.settings.providers]
        name = await app.pick("log in to", [*((name,) for name in names()), *own])
    if not name:
        return
    app.start.settings.provider(name)
    command = [sys.executable, "-m", "toolwire", "login", name, *options]
    start = app.start

    def run() -> int:
        done = subprocess.run(command, cwd=start.cwd, env=dict(start.environ), check=False)  # noqa: S603 - our own program
        return done.returncode

    with app.screen.suspended():
        code = await asyncio.to_thread(run)
    if code:
        raise BadInput(f"the log-in to {name} did not succeed (exit {code})")
    app.say(f"logged in to {name}; /model {name}/… uses it", "dim")


async def bug(app: "TerminalApp", argument: str) -> None:
    """Writes a report without secrets and without the conversation."""
    for name, value in app.start.environ.items():
        if is_secret_name(name) and len(value) >= SHORTEST:
            Secret(value)
    text = without_secrets(_report(app, argument))
    file = state_paths(app.start.environ).state / f"bug-{time.strftime('%Y%m%d-%H%M%S')}.md"
    try:
        write_private(file, text.encode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from error
    app.say(f"report: {file}")
    app.say("it has no key and nothing of the conversation; read it before you send it", "dim")


def _report(app: "TerminalApp", words: str) -> str:
    start, size = app.start, app.screen.size
    environ = start.environ
    terminal = [f"{name}={environ[name]}" for name in _TERMINAL if environ.get(name)]
    within = [name for name in _WITHIN if environ.get(name)]
    try:
        resolved = config.resolve(environ, start.cwd)
        changed = [row for row in rows(resolved) if row.origin != "default"]
        settings = [f"- {row.key} = {row.text} ({row.origin})" for row in changed]
    except ToolwireError as error:
        settings = [f"- {error}"]
    notes = [entry.text for entry in app.drawing.entries if isinstance(entry, NoteEntry)]
    errors = [note for note in notes if note.startswith(("error:", "…", "stopped", "the "))]
    facts = [f"- {name}: {value}" for name, value in _facts(app) if name != "folder"]
    lines = [
        "# Report of a problem with toolwire", "", words or "(describe what happened)", "",
        "## What was in use", *facts,
        f"- python {platform.python_version()}, {platform.platform()}",
        f"- terminal {size.columns}x{size.rows}, {', '.join(terminal)}"
        + (f", within {', '.join(within)}" if within else ""),
        "", "## Settings that differ from their defaults", *(settings or ["- none"]),
        "", "## Last notices", *(f"- {note}" for note in errors[-_MOST_NOTES:] or ["none"]), "",
    ]  # fmt: skip
    return "\n".join(lines)
