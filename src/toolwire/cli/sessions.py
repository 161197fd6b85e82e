"""`toolwire sessions`: list, show, export, fork, restore, copy and delete sessions."""

import asyncio
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from toolwire.cli.terminal import agrees, can_ask, echo_table, fail
from toolwire.client.redact import hide_in_url
from toolwire.errors import SessionError, ToolwireError
from toolwire.request import JsonObject
from toolwire.storage.paths import state_paths
from toolwire.terminal_text import terminal_text
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.app.checkpoints.stored import CheckpointLine
    from toolwire.config import Settings
    from toolwire.sessions.sqlite import SqliteStore
    from toolwire.sessions.store import Contents, SessionStore, Summary
    from toolwire.sessions.transcript import TurnLine

_WORDS = 60


@click.group("sessions")
def sessions_command() -> None:
    """List, show, export, fork, restore, copy and delete sessions.

    ID is a session's id or a unique prefix.
    """


@sessions_command.command("list")
@click.option(
    "--all",
    "everywhere",
    is_flag=True,
    help="List the sessions of every folder, not only this one.",
)
@click.option("--all-agents", is_flag=True, help="List the sessions of subagents too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sessions(everywhere: bool, all_agents: bool, as_json: bool) -> None:
    """List the sessions of this folder, most recent first."""
    try:
        project = None if everywhere else str(Path.cwd())
        found = _sessions().list(project, children=all_agents)
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
@click.option("--follow", is_flag=True, help="Print messages and calls as they are stored.")
def show(session: str, as_json: bool, follow: bool) -> None:
    """Summarise a session, one line per turn. `export` prints everything."""
    from toolwire.sessions.transcript import transcript, turns_of

    try:
        if follow:
            from toolwire.cli.session_follow import follow_session

            follow_session(_sessions(), session)
            return
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


@sessions_command.command("cancel")
@click.argument("session", metavar="ID")
def cancel(session: str) -> None:
    """End the running turn of a session on a server, whichever machine it runs on."""
    try:
        holder = _sessions().cancel(session)
        click.echo(f"asked {holder} to end the turn", err=True)
    except ToolwireError as error:
        fail(error)


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


@sessions_command.command("checkpoints")
@click.argument("session", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def checkpoints(session: str, as_json: bool) -> None:
    """List the checkpoints of a session: the files before each turn that changed them."""
    from toolwire.app.checkpoints.stored import checkpoint_lines, restorer_of
    from toolwire.extensions.checkpoints.folder import interrupted
    from toolwire.extensions.checkpoints.recorder import interrupted_text

    try:
        contents = _read(session)
        entries = restorer_of(_files().path(contents.id), os.environ).entries
    except ToolwireError as error:
        fail(error)
        return
    found = checkpoint_lines(entries, contents.records)
    if broken := interrupted(entries):
        words = interrupted_text(contents.id, broken.to, len(broken.steps))
        click.echo(f"toolwire: {words}", err=True)
    if as_json:
        click.echo(dump([{**msgspec.to_builtins(one), "at": _iso(one.at)} for one in found]))
    elif found:
        rows = (
            (str(one.n), str(one.turn), _local(one.at), one.kind, _cut(_changed_by(one)))
            for one in found
        )
        echo_table(("N", "TURN", "AT", "KIND", "CHANGED AFTER IT"), rows)
    else:
        click.echo("no checkpoints: the session has changed no file", err=True)


@sessions_command.command("restore")
@click.argument("session", metavar="ID")
@click.argument("n", metavar="N", type=click.IntRange(min=1))
@click.option("--files", "files", is_flag=True, help="Restore the files only.")
@click.option("--conversation", is_flag=True, help="Restore the conversation only, as a copy.")
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@click.option("--force", is_flag=True, help="Restore also files that the session did not change.")
def restore(
    session: str, n: int, files: bool, conversation: bool, dry_run: bool, force: bool
) -> None:
    """Restore checkpoint N: the files, and the conversation up to there as a new session.

    Files that were changed by others since are listed and left, unless --force is given; the exit
    code is then 1. Files made since are moved to the trash of the session. The state before the
    restore is a checkpoint too.
    """
    if files and conversation:
        raise click.UsageError("--files and --conversation exclude each other; omit both for both")
    from toolwire.app.checkpoints.stored import Restore, restore_stored

    wanted = Restore(n=n, files=not conversation, conversation=not files, force=force)
    try:
        done = asyncio.run(restore_stored(_files(), session, wanted, os.environ, dry=dry_run))
    except ToolwireError as error:
        fail(error)
        return
    for line in done.lines:
        click.echo(terminal_text(line))
    if done.left:
        raise SystemExit(1)


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


@sessions_command.command("copy")
@click.argument("names", metavar="[ID...]", nargs=-1)
@click.option("--to", "target", metavar="STORE", required=True, help="`postgresql://…` or `files`.")
@click.option(
    "--from", "source", metavar="STORE", help="The same; by default the store in use here."
)
@click.option("--all", "everything", is_flag=True, help="Copy every session.")
def copy(names: tuple[str, ...], target: str, source: str | None, everything: bool) -> None:
    """Copy sessions to another store, record by record; the source keeps them.

    Copying again adds what is new. A session in use is not copied.
    """
    if bool(names) == everything:
        raise click.UsageError("name the sessions to copy, or use --all")
    try:
        here = _sessions() if source is None else _store(source)
        there = _store(target)
        for id in [one.id for one in here.list()] if everything else map(here.find, names):
            copied = here.export_rows(id)
            added = there.import_rows(copied)
            if there.export_rows(id).rows != copied.rows:
                raise SessionError(f'session "{id}" reads differently in {target} than here')
            click.echo(f"copied {id}: {len(copied.rows)} records, {added} of them new", err=True)
    except ToolwireError as error:
        fail(error)


@sessions_command.command("prune")
@click.option(
    "--days", type=click.IntRange(min=1), help="Instead of the setting sessions.keep_days."
)
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
def prune(days: int | None, dry_run: bool) -> None:
    """Delete the sessions that have not been used for a while, except those in use."""
    try:
        keep = days or _settings().sessions.keep_days
        if not keep:
            raise click.UsageError("sessions.keep_days is 0: everything is kept; use --days N")
        before = time.time() - keep * 86_400
        store = _sessions()
        if dry_run:
            found = [one for one in store.list() if one.updated < before]
            for one in found:
                click.echo(f"{one.id}  {_local(one.updated)}  {_cut(one.title)}")
            click.echo(f"{len(found)} sessions would be deleted", err=True)
        else:
            for id in store.forget(before):
                click.echo(f"deleted {id}", err=True)
    except ToolwireError as error:
        fail(error)


def _changed_by(one: "CheckpointLine") -> str:
    files = ", ".join(Path(path).name for path in one.files)
    return "; ".join(filter(None, (files, ", ".join(one.calls))))


def _settings() -> "Settings":
    from toolwire import config

    return config.resolve(os.environ, config.current_folder()).settings


def _sessions() -> "SessionStore":
    from toolwire.app.stored_sessions import stored_sessions

    return stored_sessions(os.environ, _settings())


def _files() -> "SqliteStore":
    """Returns the sessions in files, which alone have checkpoints."""
    from toolwire.sessions.sqlite import SqliteStore

    return SqliteStore(state_paths(os.environ).sessions)


def _store(name: str) -> "SessionStore":
    """Returns the store with this address, or the files of this user."""
    if name == "files":
        return _files()
    if not name.startswith(("postgresql://", "postgres://")):
        raise SessionError(f'"{hide_in_url(name)}" is not a store; use postgresql://… or files')
    from toolwire.sessions.postgres.store import PostgresStore

    return PostgresStore(name)


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
        "parent": None if past.parent is None else msgspec.to_builtins(past.parent),
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
