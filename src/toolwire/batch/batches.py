"""A batch from its start to its report: created, resumed, run, with nothing left behind."""

import os
import platform
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from toolwire import __version__
from toolwire.batch import formats, reaper, report, report_pages
from toolwire.batch.driver import Driver
from toolwire.batch.executor import Executor
from toolwire.batch.patches import GitFailed, git
from toolwire.batch.plan import Trial
from toolwire.batch.progress import Snapshot
from toolwire.batch.report import Report
from toolwire.batch.results import LASTING_TYPES, State
from toolwire.batch.spec import BatchSpec, digest_of, read_spec, write_spec
from toolwire.batch.store import BatchLost, BatchStore
from toolwire.batch.stores import create_batch, open_batch
from toolwire.batch.tasks import Task, read_tasks
from toolwire.batch.workspaces import Workspaces
from toolwire.errors import BadInput, UnknownName

PER_CORE = 8
EXECUTORS = ("local", "ray")
Changed: TypeAlias = Literal["", "keep", "rerun"]
_VERSIONED = ("ray", "psycopg")


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


async def about(folder: Path) -> dict[str, str]:
    """Versions of everything that matters, and the commit of the folder."""
    found = {
        "toolwire": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    for name in _VERSIONED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if shutil.which("git"):
        try:
            head = (await git("-C", str(folder), "rev-parse", "HEAD")).decode().strip()
            status = await git("-C", str(folder), "status", "--porcelain", "--untracked-files=no")
            found["commit"] = f"{head}{' with changes' if status else ''}"
        except GitFailed:
            pass
    return found


def create(out: Path, spec: BatchSpec) -> BatchStore:
    """A new batch of the tasks that are selected, in this folder."""
    store = create_batch(out, spec)
    try:
        source = Path(spec.tasks)
        selected = spec.selection.of(_checked(task, spec) for task in read_tasks(source))
        if not store.add(selected, spec.models, spec.attempts):
            raise BadInput(f"no task of {source.name} matches --filter")
        write_spec(out, msgspec.structs.replace(spec, digest=digest_of(source)))
        store.publish()
    except BaseException:
        store.close()
        raise
    return store


def _checked(task: Task, spec: BatchSpec) -> Task:
    kind = task.workspace.kind
    if spec.sandbox == "none" and kind not in ("folder", ""):
        raise BadInput(f'task "{task.id}": --sandbox none works in folders, not with {kind}')
    if kind == "image" and shutil.which("docker") is None:
        raise BadInput(f'task "{task.id}" needs an image, and docker is not installed here')
    return task


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """How the file of the tasks differs from the batch."""

    added: tuple[Task, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[Task, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __str__(self) -> str:
        named = (
            ("added", [task.id for task in self.added]),
            ("removed", list(self.removed)),
            ("changed", [task.id for task in self.changed]),
        )
        return ", ".join(
            f"{len(ids)} {what} ({', '.join(ids[:3])}{', …' if len(ids) > 3 else ''})"
            for what, ids in named
            if ids
        )


def differences(store: BatchStore, spec: BatchSpec) -> Differences:
    """What changed in the file of the tasks since the batch was made; nothing if it is gone."""
    source = Path(spec.tasks)
    if not source.exists() or digest_of(source) == spec.digest:
        return Differences()
    known = store.digests()
    now = {task.id: task for task in spec.selection.of(read_tasks(source))}
    return Differences(
        added=tuple(task for id, task in now.items() if id not in known),
        removed=tuple(id for id in known if id not in now),
        changed=tuple(task for id, task in now.items() if id in known and known[id] != task.digest),
    )


def resume(out: Path, changed: Changed = "") -> tuple[BatchSpec, BatchStore]:
    """The batch of a folder, taken over; attempts that were in flight wait again."""
    spec = read_spec(out)
    store = open_batch(out)
    try:
        store.take()
        reaper.end_hosts(out, spec.id)
        reaper.stop_containers(spec.id)
        _apply(out, store, spec, changed)
        store.recover()
        for n, tries, result in store.errors():
            lasting = result.error is not None and result.error.type in LASTING_TYPES
            if tries <= spec.retries and not lasting:
                store.give_back(n)
    except BaseException:
        store.close()
        raise
    return read_spec(out), store


def _apply(out: Path, store: BatchStore, spec: BatchSpec, changed: Changed) -> None:
    found = differences(store, spec)
    if not found:
        return
    if not changed:
        raise BadInput(
            f"{spec.tasks} has changed since the batch was started: {found}; go on with the tasks "
            "as they were with --changed keep, or run what differs again with --changed rerun"
        )
    if changed == "rerun":
        gone = (*found.removed, *(task.id for task in found.changed))
        for id in gone:
            _forget(out, spec, [trial for trial, _, _ in store.of_task(id)])
        store.drop(gone)
        store.add((*found.added, *found.changed), spec.models, spec.attempts)
        write_spec(out, msgspec.structs.replace(spec, digest=digest_of(Path(spec.tasks))))


def again(
    out: Path, spec: BatchSpec, store: BatchStore, states: Sequence[str], ids: Sequence[str]
) -> int:
    """Makes ended attempts wait again, from the start; returns how many."""
    if unknown := [id for id in ids if not store.of_task(id)]:
        raise BadInput(f'no task "{unknown[0]}" in {out}')
    trials = store.again(() if ids else states, ids)
    _forget(out, spec, trials)
    return len(trials)


def _forget(out: Path, spec: BatchSpec, trials: Sequence[Trial]) -> None:
    """Moves the results of attempts aside, so that they begin from the start."""
    spaces = Workspaces(out, spec.id)
    for trial in trials:
        reaper.remove_tree(spaces.place(trial.n))
        folder = spec.folder_of(out, trial.id, trial.model, trial.attempt)
        if folder.exists():
            past = folder.with_name(f"{folder.name}.before")
            reaper.remove_tree(past)
            folder.rename(past)


def check_executor(name: str) -> None:
    """Raises for an executor that does not exist."""
    kind = name.partition("=")[0]
    if kind not in EXECUTORS:
        raise UnknownName("executor", name, EXECUTORS)
    if kind == "ray":
        from toolwire.batch.ray import load_ray  # noqa: PLC0415 - only when named

        load_ray()


def executor_of(
    out: Path, spec: BatchSpec, *, hosts: int, upstream: str, executor: str = ""
) -> Executor:
    """The executor that the options name."""
    name = executor or spec.executor
    check_executor(name)
    slots = spec.jobs or PER_CORE * hosts
    if name.startswith("ray"):
        from toolwire.batch.ray import RayExecutor  # noqa: PLC0415 - only when named

        address = name.partition("=")[2]
        return RayExecutor(
            out,
            slots=slots,
            batch=spec.id,
            address=address,
            upstream=upstream,
            shared=spec.shared,
        )
    from toolwire.batch.local import LocalExecutor  # noqa: PLC0415 - one of several

    return LocalExecutor(out, hosts=hosts, slots=slots, batch=spec.id, upstream=upstream)


async def run_batch(
    out: Path,
    spec: BatchSpec,
    store: BatchStore,
    executor: Executor,
    *,
    show: Callable[[Snapshot], None],
    notice: Callable[[str], None],
    started: Callable[[Driver], None],
) -> str:
    """Runs a batch that is taken; returns why it ended. Nothing of it is left running."""
    driver = Driver(out, spec, store, executor, show=show, notice=notice)
    started(driver)
    ours = True
    try:
        return await driver.run()
    except BatchLost:
        # What is there now belongs to the driver that took over.
        ours = False
        raise
    finally:
        await executor.close(15.0)
        if ours:
            _clean(out, spec, store)


def _clean(out: Path, spec: BatchSpec, store: BatchStore) -> None:
    """Ends and removes what a batch leaves, except workspaces of attempts that can be resumed."""
    reaper.end_hosts(out, spec.id)
    spaces = Workspaces(out, spec.id)
    unfinished = {n for n in store.unfinished() if not spaces.is_discarded(n)}
    reaper.remove_containers(spec.id, {spaces.token(n) for n in unfinished})
    if not spec.keep:
        waiting = {spaces.token(n) for n in store.unfinished()}
        reaper.remove_leftovers(out, waiting)


def report_of(out: Path, against: Path | None = None) -> Report:
    """The figures of a batch, compared with another if one is named."""
    spec, store = read_spec(out), open_batch(out)
    try:
        facts = {**spec.about, "tasks": Path(spec.tasks).name}
        facts |= {"models": ", ".join(filter(None, spec.models)) or "as configured"}
        if spec.selection.sample:
            facts["sample"] = f"{spec.selection.sample} with seed {spec.selection.seed}"
        found = report.report(store.results(), facts)
        waiting = {
            state: count
            for state, count in store.totals().states.items()
            if state in (State.WAITING, State.RUNNING, State.STOPPED)
        }
        found = msgspec.structs.replace(
            found,
            attempts=found.attempts + sum(waiting.values()),
            states={**found.states, **waiting},
        )
        if against is None:
            return found
        other = open_batch(against)
        try:
            compared = report.compared(store.results(), other.results(), str(against))
        finally:
            other.close()
        return msgspec.structs.replace(found, against=compared)
    finally:
        store.close()


def write_report(out: Path) -> Report:
    """Writes `report.json` and `report.md`; returns the figures."""
    found = report_of(out)
    (out / "report.json").write_bytes(report_pages.to_json(found))
    (out / "report.md").write_text(report_pages.to_markdown(found), encoding="utf-8")
    store = open_batch(out)
    try:
        lines = b"".join(line + b"\n" for line in formats.predictions(out, store.results()))
    finally:
        store.close()
    if lines:
        (out / formats.PREDICTIONS).write_bytes(lines)
    return found
