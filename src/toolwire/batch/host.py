"""A host: one process that runs many attempts on one event loop, for every executor."""

import asyncio
import gc
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, suppress
from functools import partial
from pathlib import Path

import msgspec

from toolwire import config
from toolwire.batch import attempt_lock
from toolwire.batch.attempt import TaskAttempt
from toolwire.batch.attempt_lock import AttemptLock
from toolwire.batch.attempt_settings import AttemptSettings
from toolwire.batch.commands import Commands
from toolwire.batch.failures import failure_of
from toolwire.batch.limits import LimitedTransport, SharedLimits, SqliteLimits
from toolwire.batch.results import Result, State
from toolwire.batch.spec import BatchSpec, read_spec
from toolwire.batch.store import BatchStore, Claim, ClaimLost
from toolwire.batch.stores import open_batch
from toolwire.batch.workspaces import MIRRORS, STARTS, WORK, Workspaces
from toolwire.client.http.transport import HttpTransport
from toolwire.config import Settings
from toolwire.errors import SessionInUse
from toolwire.providers.custom import read_upstream

_LOCK_EVERY = 0.2
_COLLECT_AFTER = 20_000
"""Objects."""
_FOLDERS = ("tasks", MIRRORS, STARTS)
_FILES = (
    *("batch.sqlite", "batch.sqlite-wal", "batch.sqlite-shm", "batch.json", "results.jsonl"),
    attempt_lock.FILE,
)


class Host:
    """Runs attempts until it is stopped; reports each by its number."""

    def __init__(
        self, shared: AttemptSettings, store: BatchStore, done: Callable[[Claim], None]
    ) -> None:
        self._shared = shared
        self._store = store
        self._done = done
        self._tasks: dict[Claim, asyncio.Task[None]] = {}
        self._attempts: dict[Claim, TaskAttempt] = {}
        self._stopping = False

    def start(self, claim: Claim) -> None:
        """Starts an attempt; `done` is called when it has ended."""
        if claim in self._tasks:
            return
        task = asyncio.create_task(self._run(claim))
        self._tasks[claim] = task
        task.add_done_callback(lambda _: self._tasks.pop(claim, None))

    def cancel(self, n: int) -> None:
        """Ends an attempt now; it can be resumed."""
        for claim, task in tuple(self._tasks.items()):
            if claim.n == n:
                self._end(claim, task)

    def stop(self, *, hard: bool) -> None:
        """Ends the attempts at their next record, or now."""
        self._stopping = True
        for attempt in self._attempts.values():
            attempt.watch.stopping = True
        if hard:
            for claim, task in tuple(self._tasks.items()):
                self._end(claim, task)

    def _end(self, claim: Claim, task: "asyncio.Task[None]") -> None:
        if claim in self._attempts:
            self._attempts[claim].interrupt()
        task.cancel()

    async def drain(self, seconds: float | None = None) -> None:
        """Waits for the attempts that run."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)

    async def _run(self, claim: Claim) -> None:
        try:
            async with AsyncExitStack() as stack:
                lock = await self._locked(claim)
                if lock is not None:
                    stack.callback(lock.release)
                    await self._ended(claim)
        except asyncio.CancelledError:
            self._note(claim, Result(id=claim.id, state=State.STOPPED))
        except ClaimLost:
            pass
        except Exception as error:  # the outermost edge of an attempt: our bug is its error
            self._note(claim, self._broken(claim, error))
        self._done(claim)

    def _note(self, claim: Claim, result: Result) -> None:
        """Stores a result if the store can; without one the driver gives it to another host."""
        with suppress(Exception):  # the same edge: the end is reported whatever the store says
            self._store.finish(claim, result)

    async def _ended(self, claim: Claim) -> None:
        """Runs an attempt and stores its result; only then its workspace may go."""
        begin = partial(self._store.begin, claim)
        attempt = TaskAttempt(self._shared, claim, self._store.task(claim.id), begin)
        attempt.watch.stopping = self._stopping
        self._attempts[claim] = attempt
        try:
            result = await attempt.run()
        finally:
            del self._attempts[claim]
        if self._store.finish(claim, result):
            await attempt.remove(result)

    def _broken(self, claim: Claim, error: Exception) -> Result:
        return Result(
            id=claim.id,
            model=claim.model,
            attempt=claim.attempt,
            state=State.ERROR,
            tries=claim.tries,
            host=self._shared.host,
            error=failure_of(error),
        )

    async def _locked(self, claim: Claim) -> AttemptLock | None:
        """Holds the attempt on this machine: a host that was given up may still have it.

        None if the claim was over first: the same attempt may have been submitted twice.
        """
        while True:
            try:
                lock = AttemptLock(self._shared.workspaces, claim.n, claim.id)
            except SessionInUse:
                if not self._store.holds(claim):
                    return None
                await asyncio.sleep(_LOCK_EVERY)
                continue
            with ExitStack() as stack:
                # Also if the store does not answer: another host would wait for it without end.
                stack.callback(lock.release)
                if not self._store.holds(claim):
                    return None
                stack.pop_all()
                return lock


def host_settings(spec: BatchSpec, environ: Mapping[str, str]) -> Settings:
    """The settings of attempts: those of the folder in which the batch was started."""
    level = {"bwrap": "workspace-write", "none": "off", "docker": "off"}.get(spec.sandbox)
    settings = config.load(environ, Path(spec.folder), flags={"tools.sandbox": level})
    # The workspace has its own start, and is removed with the attempt: nothing to restore.
    return msgspec.structs.replace(
        settings,
        sessions=msgspec.structs.replace(settings.sessions, keep_days=0),
        checkpoints=msgspec.structs.replace(settings.checkpoints, enabled=False),
    )


def _limits(out: Path, spec: BatchSpec, url: str) -> SharedLimits:
    """Returns the limits that all hosts of the batch share."""
    if not spec.shared:
        return SqliteLimits(out, spec.requests_per_minute, spec.tokens_per_minute)
    from toolwire.batch.postgres_limits import PostgresLimits  # noqa: PLC0415 - optional

    return PostgresLimits(url, spec.requests_per_minute, spec.tokens_per_minute)


def _hidden(out: Path, spec: BatchSpec) -> tuple[Path, ...]:
    """Other attempts' results, checks and starts; they are made so that they can be hidden."""
    for name in _FOLDERS:
        (out / name).mkdir(exist_ok=True)
    (out / attempt_lock.FILE).touch(0o600)
    found = (*(out / name for name in (*_FILES, *_FOLDERS)), Path(spec.tasks))
    return tuple(path for path in found if path.exists())


async def open_host(
    stack: AsyncExitStack,
    out: Path,
    *,
    name: str,
    environ: Mapping[str, str],
    upstream: str,
    done: Callable[[Claim], None],
) -> Host:
    """A host of the batch in this folder; everything it opens ends with the stack."""
    spec, environ = read_spec(out), dict(environ)
    settings = host_settings(spec, environ)
    store = open_batch(out, settings.sessions.store)
    stack.callback(store.close)
    http = HttpTransport()
    stack.push_async_callback(http.aclose)
    limits = _limits(out, spec, settings.sessions.store)
    stack.callback(limits.close)
    (out / WORK).mkdir(exist_ok=True)
    given = upstream or spec.upstream
    shared = AttemptSettings(
        out=out,
        spec=spec,
        settings=settings,
        environ=environ,
        transport=LimitedTransport(http, limits),
        upstream=read_upstream(given) if given else None,
        workspaces=Workspaces(out, spec.id, spec.sandbox, spec.image),
        commands=Commands(settings),
        host=name,
        hidden=_hidden(out, spec),
    )
    _calm_collector()
    return Host(shared, store, done)


def _calm_collector() -> None:
    """Collects less often, and never what was loaded: sessions leave few cycles."""
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    gc.collect()
    gc.freeze()


async def settled(host: Host, grace: float) -> None:
    """Ends a host: attempts get so many seconds, then they are cancelled."""
    host.stop(hard=grace <= 0)
    await host.drain(grace or None)
    host.stop(hard=True)
    with suppress(TimeoutError):
        await host.drain(10.0)
