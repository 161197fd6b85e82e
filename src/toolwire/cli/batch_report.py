"""`toolwire batch report`, `show`, `retry`, `prune` and `import`: what is around a batch."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolwire.cli import output as exits
from toolwire.cli.terminal import echo_table, error_line
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.terminal_text import terminal_text
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.batch.plan import Trial
    from toolwire.batch.results import Result, State

_OUT = click.Path(file_okay=False, path_type=Path)
_FORMATS = ("swebench", "harbor")


@click.command("report")
@click.argument("out", type=_OUT)
@click.option("--json", "form", flag_value="json", help="All figures as JSON.")
@click.option("--markdown", "form", flag_value="markdown", default=True, help="Tables.")
@click.option("--html", "form", flag_value="html", help="A page.")
@click.option("--inspect", "form", flag_value="inspect", help="A log for the viewer of inspect_ai.")
@click.option("--against", type=_OUT, help="Compare with this batch, on the tasks of both.")
def report_command(out: Path, form: str, against: Path | None) -> None:
    """Print the figures of a batch: shares with 95 % intervals, amounts, limits, errors."""
    try:
        from toolwire.batch import batches, formats, report_pages

        if form == "inspect":
            sys.stdout.write(formats.inspect_log(out))
            return
        found = batches.report_of(out, against)
        match form:
            case "json":
                text = report_pages.to_json(found).decode()
            case "html":
                text = report_pages.to_html(found)
            case _:
                text = report_pages.to_markdown(found)
        sys.stdout.write(text)
    except ToolwireError as error:
        _fail(error)


@click.command("show")
@click.argument("out", type=_OUT)
@click.argument("task")
@click.option("--json", "as_json", is_flag=True, help="Print the result lines.")
@click.option("--session", is_flag=True, help="Print the transcript of the last attempt.")
def show_command(out: Path, task: str, as_json: bool, session: bool) -> None:
    """Show the attempts at one task: state, answer, check, error."""
    try:
        from toolwire.batch.results import encode
        from toolwire.batch.stores import open_batch

        store = open_batch(out)
        found = store.of_task(task)
        if not found:
            raise UnknownName("task", task, store.ids()[:1000])
        if session:
            _show_session(out, found[-1][0])
            return
        for trial, state, result in found:
            if as_json:
                shown = encode(result).decode() if result else dump({"id": task, "state": state})
                click.echo(shown)
            else:
                _show(out, trial, state, result)
    except ToolwireError as error:
        _fail(error)


def _show(out: Path, trial: "Trial", state: "State", result: "Result | None") -> None:
    from toolwire.batch.spec import read_spec

    folder = read_spec(out).folder_of(out, trial.id, trial.model, trial.attempt)
    rows = [("state", str(state)), ("attempt", str(trial.attempt)), ("model", trial.model or "-")]
    if result is not None:
        rows += [("stop", result.stop or "-"), ("tries", str(result.tries))]
        if result.check is not None:
            rows.append(("check", f"code {result.check.code} in {result.check.seconds:.1f} s"))
        if result.score is not None:
            rows.append(("score", f"{result.score:g}"))
        if result.patch is not None:
            size = f"+{result.patch.added} -{result.patch.removed} in {result.patch.files} files"
            rows.append(("patch", f"{size}: {out / result.patch.path}"))
        tokens = f"{result.usage.input:,} in, {result.usage.output:,} out"
        rows += [("tokens", tokens), ("calls", str(result.calls))]
        if result.unknown:
            rows.append(("unknown outcome", f"{result.unknown} calls"))
        rows += [("cost", "-" if result.cost is None else f"${result.cost:.4f}")]
        rows += [("seconds", f"{result.seconds.total:.1f}"), ("session", result.session or "-")]
        if result.error is not None:
            rows.append(("error", f"{result.error.where}: {result.error.message}"))
    rows.append(("files", str(folder)))
    echo_table(("", trial.id), rows)
    if result is not None and result.response:
        click.echo(f"\n{terminal_text(result.response)}")
    click.echo()


def _show_session(out: Path, trial: "Trial") -> None:
    from toolwire.batch.spec import read_spec
    from toolwire.batch.stores import session_of
    from toolwire.sessions.export import FORMATS

    spec = read_spec(out)
    folder = spec.folder_of(out, trial.id, trial.model, trial.attempt)
    store, session = session_of(spec, folder / "session")
    if not session:
        raise BadInput(f'task "{trial.id}" has no session yet')
    sys.stdout.write(FORMATS["markdown"](store.read(session)))


@click.command("retry")
@click.argument("out", type=_OUT)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--failed", is_flag=True, help="Attempts whose check said no.")
@click.option("--errors", is_flag=True, help="Attempts that ended in an error.")
def again_command(out: Path, ids: tuple[str, ...], failed: bool, errors: bool) -> None:
    """Make ended attempts wait again, from their start; `resume` then runs them."""
    try:
        from toolwire.batch import batches
        from toolwire.batch.spec import read_spec
        from toolwire.batch.stores import open_batch

        states = (*(("failed", "limit") if failed else ()), *(("error",) if errors else ()))
        if not states and not ids:
            raise BadInput("name tasks, or use --failed or --errors")
        out = out.resolve()
        store = open_batch(out)
        store.take()
        count = batches.again(out, read_spec(out), store, states, ids)
        store.close()
        click.echo(
            f"{count:,} attempts wait again; run them: toolwire batch resume {out}", err=True
        )
    except ToolwireError as error:
        _fail(error)


@click.command("prune")
@click.option("--days", type=click.IntRange(min=1), help="Instead of the setting batch.keep_days.")
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
def prune_command(days: int | None, dry_run: bool) -> None:
    """Delete the batches that have not been used for a while, except those that run."""
    try:
        from toolwire import config
        from toolwire.batch.retention import forget_batches, old_batches

        keep = days or config.resolve(os.environ, config.current_folder()).settings.batch.keep_days
        if not keep:
            raise click.UsageError("batch.keep_days is 0: everything is kept; use --days N")
        found = (old_batches if dry_run else forget_batches)(os.environ, keep, time.time())
        for out in found:
            click.echo(str(out) if dry_run else f"deleted {out}", err=not dry_run)
    except ToolwireError as error:
        _fail(error)


@click.command("import")
@click.argument("form", metavar="FORMAT", type=click.Choice(_FORMATS))
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--repositories",
    default="https://github.com",
    show_default=True,
    metavar="URL",
    help="Where the repositories of swebench instances are; also a folder.",
)
def import_tasks_command(form: str, source: Path, repositories: str) -> None:
    """Print the tasks of another format as task lines.

    FORMAT is swebench (instances as JSONL, JSON or Parquet) or harbor (folders with a task.toml,
    also task.yaml of Terminal-Bench 1).
    """
    try:
        from toolwire.batch import formats

        for line in formats.imported(form, source, repositories):
            sys.stdout.write(f"{line}\n")
    except ToolwireError as error:
        _fail(error)


def _fail(error: ToolwireError) -> None:
    click.echo(error_line(error), err=True, nl=False)
    raise SystemExit(exits.code_of_error(error))
