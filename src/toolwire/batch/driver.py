"""The driver: feeds an executor from the store, and writes what came back."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from toolwire.batch import results
from toolwire.batch.executor import AttemptDone, Executor, ExecutorEvent, HostLost, HostReady
from toolwire.batch.plan import Disposition, Ending, Exhausted, Pause, Plan, Rules, Trial
from toolwire.batch.progress import Snapshot
from toolwire.batch.results import LASTING_TYPES, Failure, Result, State
from toolwire.batch.spec import RESULTS, BatchSpec
from toolwire.batch.store import BatchStore
from toolwire.errors import ToolwireError

_POLL = 0.5
"""Seconds between two looks for a command of another process."""


class _Key(msgspec.Struct, frozen=True):
    id: str
    model: str = ""
    attempt: int = 1


class ResultFile:
    """`results.jsonl`: a line for each attempt that ended, the last one counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        _repair(path)
        self._file = path.open("ab")

    def reconcile(self, store: BatchStore) -> int:
        """Adds lines that a driver stored and died before it wrote them; returns how many."""
        known: dict[_Key, int] = {}
        decoder = msgspec.json.Decoder(_Key)
        with self._path.open("rb") as file:
            for line in file:
                known[decoder.decode(line)] = hash(line.rstrip(b"\n"))
        added = 0
        for body in store.bodies():
            if known.get(decoder.decode(body)) != hash(body):
                self._file.write(body + b"\n")
                added += 1
        self._file.flush()
        return added

    def add(self, result: Result) -> None:
        """Appends a result."""
        self._file.write(results.encode(result) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _repair(path: Path) -> None:
    """Cuts off a last line that a crash left incomplete."""
    if not path.exists():
        return
    body_end = path.stat().st_size
    with path.open("r+b") as file:
        while body_end:
            step = min(body_end, 1 << 16)
            file.seek(body_end - step)
            found = file.read(step).rfind(b"\n")
            if found >= 0:
                file.truncate(body_end - step + found + 1)
                return
            body_end -= step
        file.truncate(0)


class Driver:
    """Runs a batch with an executor until it is done, stopped, or over its budget."""

    def __init__(
        self,
        out: Path,
        spec: BatchSpec,
        store: BatchStore,
        executor: Executor,
        *,
        show: Callable[[Snapshot], None],
        notice: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        first_wait: float = Rules().first_wait,
    ) -> None:
        self._spec = spec
        self._store = store
        self._executor = executor
        self._show = show
        self._notice = notice
        self._clock = clock
        totals = store.totals()
        rules = Rules(
            slots=executor.slots,
            retries=spec.retries,
            first_wait=first_wait,
            budget=spec.budget,
            budget_tokens=spec.budget_tokens,
        )
        ended = sum(totals.states.get(state, 0) for state in State if state.is_final)
        self._plan = Plan(rules, spent=totals.cost, tokens=totals.tokens, ended=ended)
        self._states = dict(totals.states)
        self._file = ResultFile(out / RESULTS)
        self._after = 0
        self._began = clock()
        self._ended_here = 0
        self._events: asyncio.Queue[ExecutorEvent | ToolwireError | None] = asyncio.Queue()
        self._stops = 0
        self._hardened = False

    def stop(self) -> None:
        """First: nothing more starts, attempts end at their next record. Then: they end now."""
        self._stops += 1
        self._events.put_nowait(None)

    async def run(self) -> str:
        """Runs it; returns why it ended: `done`, `budget`, `hosts` or `stopped`."""
        self._file.reconcile(self._store)
        listening = asyncio.create_task(self._listen())
        try:
            self._feed()
            if not self._plan.is_empty:
                await self._executor.open()
            return await self._loop()
        finally:
            listening.cancel()
            self._file.close()

    async def _listen(self) -> None:
        try:
            async for event in self._executor.events():
                self._events.put_nowait(event)
        except ToolwireError as error:
            self._events.put_nowait(error)

    async def _loop(self) -> str:
        polled, stopped = self._clock(), 0
        while True:
            self._feed()
            step = await self._start()
            self._show(self.snapshot())
            if isinstance(step, Exhausted) and not self._plan.running:
                return step.why
            now = self._clock()
            if now - polled >= _POLL:
                polled = now
                self._obey(self._store.meta("stop"))
            if self._stops > stopped:
                stopped = self._stops
                self._plan.stop()
                await self._executor.stop(hard=stopped > 1)
            await self._hardened_budget()
            until = step.until if isinstance(step, Pause) and step.until is not None else None
            wait = _POLL if until is None else max(0.0, min(_POLL, until - now))
            await self._handle_next(wait)

    def _feed(self) -> None:
        if wants := self._plan.wants:
            found = self._store.waiting(self._after, wants)
            self._plan.offer(found)
            self._plan.more = len(found) == wants
            if found:
                self._after = found[-1].n

    async def _start(self) -> Pause | Exhausted:
        while isinstance(step := self._plan.next(self._clock()), Trial):
            claim = self._store.claim(step.n, "")
            self._count(State.WAITING, State.RUNNING)
            await self._executor.submit(claim, step.avoid)
            self._feed()
        return step

    async def _handle_next(self, wait: float) -> None:
        try:
            async with asyncio.timeout(wait):
                event = await self._events.get()
        except TimeoutError:
            return
        while True:
            await self._handle(event)
            if self._events.empty():
                return
            event = self._events.get_nowait()

    async def _handle(self, event: ExecutorEvent | ToolwireError | None) -> None:
        match event:
            case ToolwireError():
                raise event
            case AttemptDone():
                if event.n in self._plan.running:
                    await self._ended(event.n, event.host)
            case HostLost():
                self._plan.leaves(event.host)
                if event.attempts:
                    self._notice(f"{event.host}: {event.why}; its attempts go on elsewhere")
                for n in event.attempts:
                    if n in self._plan.running:
                        await self._lost(n, event)
            case HostReady():
                self._plan.meets(event.host)
            case None:
                pass

    async def _ended(self, n: int, host: str) -> None:
        result = self._store.ended(n)
        if result is None:
            # The store knows nothing of an end: the host was given up meanwhile.
            await self._lost(n, HostLost(host, (n,), "the host reported an end it had not stored"))
            return
        error = result.error
        ending = Ending(
            state=result.state,
            host=host,
            cost=result.cost,
            tokens=result.usage.input + result.usage.output,
            where=error.where if error else "",
            type=error.type if error else "",
            lasting=error is not None and error.type in LASTING_TYPES,
        )
        verdict = self._plan.ended(n, ending, self._clock())
        await self._follow(n, verdict, result)

    async def _lost(self, n: int, event: HostLost) -> None:
        if self._store.ended(n) is not None:
            # It had stored the result and died before it reported it.
            await self._ended(n, event.host)
            return
        trial = self._plan.running[n]
        verdict = self._plan.lost(n, event.host, self._clock())
        result = Result(
            id=trial.id,
            model=trial.model,
            attempt=trial.attempt,
            state=State.ERROR,
            tries=trial.tries,
            host=event.host,
            error=Failure(type="host_lost", message=event.why, where="host"),
        )
        if verdict.final:
            self._store.fail(n, result)
        await self._follow(n, verdict, result)

    async def _follow(self, n: int, verdict: Disposition, result: Result) -> None:
        if verdict.final:
            self._count(State.RUNNING, result.state)
            self._ended_here += 1
            self._file.add(result)
        else:
            if result.state is not State.STOPPED:
                self._store.give_back(n)
            self._count(State.RUNNING, State.WAITING)
        if verdict.out:
            why = self._plan.hosts_out[verdict.out]
            self._notice(f"{verdict.out} is taken out after errors of one kind: {why}")
            await self._executor.take_out(verdict.out)

    def _count(self, before: State, after: State) -> None:
        self._states[before] = self._states.get(before, 0) - 1
        self._states[after] = self._states.get(after, 0) + 1

    def _obey(self, command: str) -> None:
        if command == "soft" and self._stops == 0:
            self._stops = 1
        elif command == "hard" and self._stops < 2:
            self._stops = 2

    async def _hardened_budget(self) -> None:
        over = self._spec.budget and self._plan.spent >= self._spec.budget
        over = over or (self._spec.budget_tokens and self._plan.tokens >= self._spec.budget_tokens)
        if over and self._spec.budget_hard and not self._hardened:
            self._hardened = True
            self._plan.stop("budget")
            await self._executor.stop(hard=True)

    def snapshot(self) -> Snapshot:
        """The batch now."""
        return Snapshot(
            states={state: count for state, count in self._states.items() if count > 0},
            running=len(self._plan.running),
            cost=self._plan.spent,
            budget=self._spec.budget,
            ended_here=self._ended_here,
            seconds=self._clock() - self._began,
        )
