"""`toolwire batch`: run many tasks, resume and stop them, show how far they are."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from toolwire.cli import output as exits
from toolwire.cli.batch_progress import Interrupts, ProgressLine
from toolwire.cli.batch_report import (
    again_command,
    import_tasks_command,
    prune_command,
    report_command,
    show_command,
)
from toolwire.cli.consent import consent
from toolwire.cli.session_options import FILE
from toolwire.cli.terminal import error_line
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.ids import new_id
from toolwire.policy import Mode
from toolwire.providers.custom import read_upstream
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.batch.spec import BatchSpec
    from toolwire.batch.store import BatchStore

BUDGET = 3
_OUT = click.Path(file_okay=False, path_type=Path)
_CODES = {"done": exits.DONE, "budget": BUDGET, "hosts": exits.FAILED, "stopped": exits.CANCELLED}
_SANDBOXES = ("worktree", "copy", "bwrap", "docker", "none")
_QUIET = click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
_UPSTREAM = click.option(
    "--upstream",
    default="",
    metavar="DIALECT=URL",
    help="Ad-hoc provider: DIALECT=URL[,key=K][,model=M][,style=S]; the key is not stored.",
)


@click.group("batch")
def batch_command() -> None:
    """Run many tasks, resume them after any interruption, and report the results.

    A task is one JSON object per line; everything of a batch is in its folder OUT.
    """


@batch_command.command("run")
@click.argument("tasks", type=FILE)
@click.option("-o", "--out", type=_OUT, help="Folder of the batch; without it, one beside TASKS.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Sessions at once; 8 a core.")
@click.option(
    "--executor",
    default="local",
    show_default=True,
    metavar="local|ray[=ADDRESS]",
    help="Where hosts run: processes of this machine, or a Ray cluster.",
)
@click.option("-m", "--model", "models", multiple=True, metavar="P/M", help="May be repeated.")
@_UPSTREAM
@click.option("--limit", type=click.IntRange(min=1), help="Run only the first N tasks.")
@click.option(
    "--filter", "patterns", multiple=True, metavar="GLOB", help="Only tasks with such an id or tag."
)
@click.option("--sample", type=click.IntRange(min=1), help="Run only N tasks, drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of --sample.")
@click.option("--attempts", type=click.IntRange(1, 1000), default=1, help="Attempts at each task.")
@click.option("--budget", type=click.FloatRange(min=0), metavar="USD", help="Stop at this cost.")
@click.option("--budget-tokens", type=click.IntRange(min=1), help="Stop at so many tokens.")
@click.option("--budget-hard", is_flag=True, help="At the budget, end running attempts too.")
@click.option("--max-turns", type=click.IntRange(min=1), help="Model requests of one attempt.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="S", help="Seconds of an attempt.")
@click.option(
    "--sandbox",
    default="",
    metavar="KIND",
    help="worktree, copy, bwrap, docker=IMAGE or none (with --yes: works in the folders "
    "themselves). Without it: a checkout or a copy, confined where the system supports it.",
)
@click.option(
    "--approval-mode",
    type=click.Choice(tuple(map(str, Mode))),
    help="Approval mode of attempts; yolo unless --sandbox none.",
)
@click.option("--check", default="", metavar="CMD", help="Check of tasks that have none.")
@click.option("--retries", type=click.IntRange(0, 100), default=3, show_default=True)
@click.option("--rpm", type=click.IntRange(min=1), help="Requests a minute, of all hosts together.")
@click.option("--tpm", type=click.IntRange(min=1), help="Tokens a minute, of all hosts together.")
@click.option("--keep", is_flag=True, help="Keep the workspaces.")
@click.option(
    "--yes", is_flag=True, help="Allow --sandbox none, and the embedded model's download."
)
@_QUIET
@_JSON
def run(tasks: Path, out: Path | None, **options: Any) -> None:
    """Run the tasks of a file and print a report.

    \b
    toolwire batch run tasks.jsonl -o out --model anthropic/sonnet --budget 20
    toolwire batch resume out
    """
    folder = (out or tasks.with_suffix(f".{time.strftime('%Y%m%d-%H%M%S')}")).resolve()
    _ending(lambda: asyncio.run(_run(_spec_of(tasks, options), folder, options)))


@batch_command.command("resume")
@click.argument("out", type=_OUT)
@click.option(
    "--changed",
    type=click.Choice(["keep", "rerun"]),
    default=None,
    help="If the file of the tasks has changed: keep them as they were, or rerun what differs.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Sessions at once.")
@click.option("--executor", default="", metavar="local|ray[=ADDRESS]", help="Where hosts run.")
@click.option("--budget", type=click.FloatRange(min=0), metavar="USD", help="Another budget.")
@_UPSTREAM
@_QUIET
@_JSON
def resume(out: Path, changed: str | None, **options: Any) -> None:
    """Go on with a batch that was stopped or killed."""

    def going_on() -> int:
        from toolwire.batch import batches

        spec, store = batches.resume(out.resolve(), changed or "")  # pyright: ignore[reportArgumentType]
        return asyncio.run(_going_on(out.resolve(), spec, store, options))

    _ending(going_on)


@batch_command.command("status")
@click.argument("out", type=_OUT)
@click.option("--follow", is_flag=True, help="Print again until the batch ends.")
@_JSON
def status(out: Path, follow: bool, as_json: bool) -> None:
    """Show how far a batch is."""

    def shown() -> int:
        from toolwire.batch.progress import Snapshot
        from toolwire.batch.spec import read_spec
        from toolwire.batch.stores import open_batch

        spec, store = read_spec(out), open_batch(out)
        bar = ProgressLine(quiet=False)
        while True:
            totals, taken = store.totals(), store.is_taken()
            states = totals.states
            snapshot = Snapshot(
                states=states,
                running=states.get("running", 0) if taken else 0,
                cost=totals.cost,
                budget=spec.budget,
            )
            if as_json:
                click.echo(dump({"running": taken, "states": states, "cost": totals.cost}))
            elif follow and taken:
                bar.show(snapshot)
            else:
                bar.end()
                click.echo(f"{snapshot.line()} · {'runs' if taken else 'does not run'}")
            if not follow or not taken:
                return exits.DONE
            time.sleep(1.0)

    _ending(shown)


@batch_command.command("stop")
@click.argument("out", type=_OUT)
@click.option("--now", is_flag=True, help="End attempts now, not at their next record.")
def stop(out: Path, now: bool) -> None:
    """Stop a batch that runs, here or in another terminal; it can be resumed."""

    def stopped() -> int:
        from toolwire.batch.stores import open_batch

        store = open_batch(out)
        if not store.is_taken():
            raise BadInput(f"{out} does not run")
        store.set_meta("stop", "hard" if now else "soft")
        click.echo(f"{out} stops; go on with toolwire batch resume {out}", err=True)
        return exits.DONE

    _ending(stopped)


for _command in (
    *(report_command, show_command, again_command, prune_command),
    import_tasks_command,
):
    batch_command.add_command(_command)


def _ending(work: Callable[[], int]) -> None:
    """Runs a command; exits with its code, or with one line about what is wrong."""
    try:
        code = work()
    except ToolwireError as error:
        click.echo(error_line(error), err=True, nl=False)
        code = exits.code_of_error(error)
    except KeyboardInterrupt:
        code = exits.CANCELLED
    raise SystemExit(code)


async def _run(spec: "BatchSpec", out: Path, options: Mapping[str, Any]) -> int:
    from toolwire.batch import batches

    spec = await _with_models(spec, options)
    spec = msgspec.structs.replace(spec, about=await batches.about(Path(spec.folder)))
    store = batches.create(out, spec)
    _retain(spec, out)
    if not options["quiet"]:
        click.echo(f"toolwire: {store.totals().all:,} attempts in {out}", err=True)
    store.close()
    spec, store = batches.resume(out, "keep")
    return await _going_on(out, spec, store, options)


def _retain(spec: "BatchSpec", out: Path) -> None:
    """Notes a batch, and removes those that batch.keep_days makes old."""
    from toolwire import config
    from toolwire.batch import retention

    retention.note_batch(os.environ, spec.id, out)
    if days := config.load(os.environ, Path(spec.folder)).batch.keep_days:
        for gone in retention.forget_batches(os.environ, days, time.time()):
            click.echo(f"toolwire: deleted {gone}: unused for {days} days", err=True)


def _spec_of(tasks: Path, options: Mapping[str, Any]) -> "BatchSpec":
    from toolwire import config
    from toolwire.batch import batches
    from toolwire.batch.spec import BatchSpec
    from toolwire.batch.tasks import Selection

    kind, _, image = options["sandbox"].partition("=")
    batches.check_executor(options["executor"])
    if kind and kind not in _SANDBOXES:
        raise UnknownName("sandbox", kind, _SANDBOXES)
    if kind == "docker" and not image:
        raise BadInput("--sandbox docker needs an image: --sandbox docker=IMAGE")
    if kind == "none" and not options["yes"]:
        raise BadInput("--sandbox none works in the folders of the tasks themselves; add --yes")
    if not tasks.exists():
        raise BadInput(f"no file {tasks}")
    upstream = read_upstream(options["upstream"]) if options["upstream"] else None
    cwd = Path.cwd()
    return BatchSpec(
        id=new_id(""),
        tasks=str(tasks.resolve()),
        folder=str(cwd),
        selection=Selection(
            filter=options["patterns"],
            sample=options["sample"] or 0,
            seed=options["seed"],
            limit=options["limit"] or 0,
        ),
        models=options["models"] or ("",),
        upstream=_without_key(options["upstream"]),
        keyed=bool(upstream is not None and upstream.key),
        attempts=options["attempts"],
        jobs=options["jobs"] or 0,
        executor=options["executor"],
        shared=bool(config.load(os.environ, cwd).sessions.store),
        budget=options["budget"] or 0.0,
        budget_tokens=options["budget_tokens"] or 0,
        budget_hard=options["budget_hard"],
        max_turns=options["max_turns"] or 0,
        timeout=options["timeout"] or 0.0,
        sandbox=kind,
        image=image,
        approval_mode=Mode(options["approval_mode"]) if options["approval_mode"] else None,
        check=options["check"],
        retries=options["retries"],
        requests_per_minute=options["rpm"] or 0,
        tokens_per_minute=options["tpm"] or 0,
        keep=options["keep"],
    )


def _without_key(upstream: str) -> str:
    import re

    return re.sub(r",key=[^,]*", "", upstream)


async def _with_models(spec: "BatchSpec", options: Mapping[str, Any]) -> "BatchSpec":
    """The options with the full names of the models, each of them ready for use."""
    from functools import partial

    from toolwire.app.model_choice import choose_here, choose_model
    from toolwire.app.model_stack import open_model
    from toolwire.batch.host import host_settings
    from toolwire.client.http.transport import HttpTransport

    if options["upstream"]:
        default = read_upstream(options["upstream"]).model
        return msgspec.structs.replace(spec, models=tuple(name or default for name in spec.models))
    settings = host_settings(spec, os.environ)
    names: list[str] = []
    async with AsyncExitStack() as stack:
        http = HttpTransport()
        stack.push_async_callback(http.aclose)
        for name in spec.models:
            choose = partial(choose_model, settings, os.environ, model=name)
            chosen = await choose_here(choose, settings, os.environ, http)
            opened = await open_model(
                chosen.name,
                settings=chosen.settings,
                environ=os.environ,
                transport=http,
                consent=consent(None, options["yes"]),
            )
            if (
                spec.budget
                and not opened.provider.local
                and not (opened.info and opened.info.prices)
            ):
                raise BadInput(
                    f"the price of {chosen.name} is not known, so --budget cannot hold; use "
                    "--budget-tokens"
                )
            names.append(chosen.name)
    return msgspec.structs.replace(spec, models=tuple(dict.fromkeys(names)))


async def _going_on(
    out: Path, spec: "BatchSpec", store: "BatchStore", options: Mapping[str, Any]
) -> int:
    from toolwire.batch import batches

    if spec.keyed and "key=" not in options["upstream"]:
        store.close()
        raise BadInput("the key of --upstream is not stored; give --upstream again")
    if options["budget"]:
        spec = msgspec.structs.replace(spec, budget=options["budget"])
    if options["jobs"]:
        spec = msgspec.structs.replace(spec, jobs=options["jobs"])
    # The embedded model is in the memory of its host.
    embedded = all(name.startswith("local/") for name in spec.models)
    waiting = store.totals().states.get("waiting", 0)
    hosts = 1 if embedded else max(1, min(batches.cores(), waiting))
    executor = batches.executor_of(
        out,
        spec if spec.jobs or not embedded else msgspec.structs.replace(spec, jobs=1),
        hosts=hosts,
        upstream=options["upstream"],
        executor=options["executor"],
    )
    bar = ProgressLine(quiet=options["quiet"] or options["as_json"])
    try:
        with Interrupts(bar) as interrupts:
            why = await batches.run_batch(
                out,
                spec,
                store,
                executor,
                show=bar.show,
                notice=bar.notice,
                started=interrupts.watch,
            )
    finally:
        bar.end()
        store.close()
    return _reported(out, why, as_json=options["as_json"], quiet=options["quiet"])


def _reported(out: Path, why: str, *, as_json: bool, quiet: bool) -> int:
    from toolwire.batch import batches, report_pages

    found = batches.write_report(out)
    if as_json:
        click.echo(report_pages.to_json(found).decode(), nl=False)
    else:
        click.echo(report_pages.headline(found))
        if not quiet:
            click.echo(f"details: toolwire batch report {out}", err=True)
    code = _CODES[why]
    if why == "stopped":
        click.echo(f"toolwire: stopped; go on with toolwire batch resume {out}", err=True)
    elif why == "budget":
        click.echo("toolwire: the budget is reached; resume with a higher --budget", err=True)
    elif why == "hosts":
        click.echo("toolwire: every host was taken out after errors; see the report", err=True)
    return exits.FAILED if code == exits.DONE and found.states.get("error") else code
