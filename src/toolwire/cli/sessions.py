"""`toolwire sessions`: list, show, export, fork and delete sessions."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from toolwire.cli.terminal import agrees, can_ask, echo_table, fail
from toolwire.errors import SessionError, ToolwireError
from toolwire.request import JsonObject
from toolwire.storage.paths import state_paths
from toolwire.terminal_text import terminal_text
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.sessions.store import Contents, SessionStore, Summary
    from toolwire.sessions.transcript import TurnLine

_WORDS = 60


@click.group("sessions")
def sessions_command() -> None:
    """List, show, export, fork and delete sessions. ID is a session's id or a unique prefix."""


@sessions_command.command("list")
@click.option(
    "--all",
    "everywhere",
    is_flag=True,
    help="List the sessions of every folder, not only this one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sessions(everywhere: bool, as_json: bool) -> None:
    """List the sessions of this folder, most recent first."""
    try:
        found = _sessions().list(None if everywhere else str(Path.cwd()))
    except ToolwireError as error:
        fail(error)
        return
    if as_json:
        click.echo(dump([_described(one) for one in found]))
    elif found:
        head = ("ID", "LAST USED", "TURNS", "MODEL", "TITLE")
        rows = [_row(one) for one in found]
        if everywhere:
            head = (*head, "FOLDER")
            rows = [(*row, one.project) for row, one in zip(rows, found, strict=True)]
        echo_table(head, rows)
    else:
        where = "" if everywhere else " in this folder; --all looks everywhere"
        click.echo(f"no sessions{where}", err=True)


@sessions_command.command("show")
@click.argument("session", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(session: str, as_json: bool) -> None:
    """Summarise a session, one line per turn. `export` prints everything."""
    from toolwire.sessions.transcript import transcript, turns_of

    try:
        contents = _read(session)
    except ToolwireError as error:
        fail(error)
        return
    turns = turns_of(contents.records)
    if as_json:
        click.echo(dump(_shown(contents, turns)))
        return
    page = transcript(contents.id, contents.records)
    click.echo(page.title)
    width = max(len(name) for name, _ in page.facts)
    for name, value in page.facts:
        click.echo(f"{name.ljust(width)}  {value}")
    if turns:
        click.echo()
        rows = (
            (str(one.turn), _local(one.at), str(one.calls), one.end, _cut(one.prompt))
            for one in turns
        )
        echo_table(("TURN", "AT", "CALLS", "END", "PROMPT"), rows)


@sessions_command.command("export")
@click.argument("session", metavar="ID")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown", "html"]),
    default="markdown",
    show_default=True,
    help="Format of the output.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write to this file.")
def export(session: str, form: str, output: Path | None) -> None:
    """Print a whole session.

    JSON contains every record; Markdown and HTML are readable transcripts.
    """
    from toolwire.sessions.export import FORMATS

    try:
        _write(FORMATS[form](_read(session)), output)
    except ToolwireError as error:
        fail(error)


@sessions_command.command("fork")
@click.argument("session", metavar="ID")
@click.option("--at", "turn", type=click.IntRange(min=0), help="Keep only the first N turns.")
def fork(session: str, turn: int | None) -> None:
    """Copy a session, even one in use, and print the copy's id."""
    from toolwire.sessions.transcript import record_after

    try:
        sessions = _sessions()
        upto = None if turn is None else record_after(sessions.read(session).records, turn)
        click.echo(sessions.fork(session, upto))
    except ToolwireError as error:
        fail(error)


@sessions_command.command("delete")
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(names: tuple[str, ...], yes: bool) -> None:
    """Delete sessions permanently."""
    try:
        sessions = _sessions()
        found = sorted({sessions.find(name) for name in names})
        if not yes:
            if not can_ask():
                raise click.UsageError("no terminal to ask for confirmation; use --yes")
            if not agrees(f"delete {', '.join(found)}?"):
                raise click.Abort
        for one in found:
            sessions.delete(one)
            click.echo(f"deleted {one}", err=True)
    except ToolwireError as error:
        fail(error)


def _sessions() -> "SessionStore":
    from toolwire.sessions.sqlite import SqliteStore

    return SqliteStore(state_paths(os.environ).sessions)


def _read(session: str) -> "Contents":
    contents = _sessions().read(session)
    for notice in contents.notices:
        click.echo(f"toolwire: {notice}", err=True)
    return contents


def _write(text: str, output: Path | None) -> None:
    try:
        if output is not None:
            output.write_bytes(text.encode("utf-8", "replace"))
        else:
            sys.stdout.write(text)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; discard what is still buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        where = output or "standard output"
        raise SessionError(f"cannot write {where}: {error.strerror}") from error


def _shown(contents: "Contents", turns: "list[TurnLine]") -> JsonObject:
    from toolwire.sessions.replay import replay

    past = replay(contents.events)
    return {
        "id": contents.id,
        "project": contents.project,
        "title": past.title,
        "model": past.model,
        "cwd": past.cwd,
        "forked_from": past.forked_from,
        "messages": len(past.messages),
        "totals": msgspec.to_builtins(past.totals),
        "cost": past.cost,
        "open_calls": [{"name": one.call.name, "state": one.state} for one in past.open],
        "damage": contents.salvaged.message if contents.salvaged else None,
        "skipped": contents.skipped.message if contents.skipped else None,
        "turns": [{**msgspec.to_builtins(one), "at": _iso(one.at)} for one in turns],
    }


def _described(one: "Summary") -> JsonObject:
    fields = msgspec.to_builtins(one)
    return {**fields, "started": _iso(one.started), "updated": _iso(one.updated)}


def _row(one: "Summary") -> tuple[str, ...]:
    title = _cut(one.title) + (" (damaged)" if one.damaged else "")
    return one.id, _local(one.updated), str(one.turns), one.model or "-", title.strip() or "-"


def _cut(text: str) -> str:
    words = " ".join(terminal_text(text).split())
    return words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _local(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")
