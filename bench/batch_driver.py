"""`python -m bench.batch_driver OUT TASKS DONE`: a driver whose executor does nothing.

Prints one JSON object a line: memory after each tenth of the tasks; with DONE of them ended before,
the seconds from the start to the first attempt.
"""

import asyncio
import resource
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from toolwire.batch import batches
from toolwire.batch.driver import Driver
from toolwire.batch.executor import AttemptDone, ExecutorEvent, HostReady
from toolwire.batch.results import Result, State
from toolwire.batch.spec import BatchSpec, write_spec
from toolwire.batch.sqlite import SqliteBatch
from toolwire.batch.store import BatchStore, Claim
from toolwire.batch.tasks import Task


class DriverMark(msgspec.Struct, frozen=True):
    """The driver after so many tasks."""

    tasks: int
    rss_mb: float
    cpu: float
    first: float = 0.0
    """Seconds to the first attempt."""


def rss_mb() -> float:
    """Memory of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class NoOpExecutor:
    """Ends every attempt at once."""

    slots = 32

    def __init__(self, store: BatchStore, marks: int) -> None:
        self._store = store
        self._queue: asyncio.Queue[ExecutorEvent] = asyncio.Queue()
        self._marks = marks
        self._count = 0
        self.began = time.monotonic()

    async def open(self) -> None:
        """One host."""
        self._queue.put_nowait(HostReady("h"))

    async def submit(self, claim: Claim, avoid: str = "") -> None:
        """Ends the attempt."""
        del avoid
        self._count += 1
        if self._count == 1 or self._count % self._marks == 0:
            spent = resource.getrusage(resource.RUSAGE_SELF)
            cpu = spent.ru_utime + spent.ru_stime
            first = time.monotonic() - self.began if self._count == 1 else 0.0
            mark = DriverMark(self._count, rss_mb(), cpu, first)
            print(msgspec.json.encode(mark).decode(), flush=True)
        self._store.finish(claim, ended(claim.id))
        self._queue.put_nowait(AttemptDone(claim.n, "h"))

    async def events(self) -> AsyncIterator[ExecutorEvent]:
        """What was submitted."""
        while True:
            yield await self._queue.get()

    async def cancel(self, n: int) -> None:
        """Nothing runs."""

    async def take_out(self, host: str) -> None:
        """Nothing runs."""

    async def stop(self, *, hard: bool) -> None:
        """Nothing runs."""

    async def close(self, grace: float) -> None:
        """Nothing runs."""


def ended(id: str) -> Result:
    """A result of a usual size."""
    return Result(id=id, model="p/m", state=State.PASSED, score=1.0, response="done " * 100)


def main() -> None:
    """Makes the batch and drives it; with DONE, resumes it with so many results."""
    out, count, done = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = SqliteBatch.create(out)
    spec = BatchSpec(id="bench", tasks=str(out / "none.jsonl"), models=("p/m",))
    write_spec(out, spec)
    store.add((Task(id=f"t{n}", prompt="x" * 500) for n in range(count)), spec.models, 1)
    store.publish()
    if done:
        store.take()
        with (out / "results.jsonl").open("ab") as file:
            for trial in store.waiting(0, done):
                result = ended(trial.id)
                store.finish(store.claim(trial.n, ""), result)
                file.write(msgspec.json.encode(result) + b"\n")
    store.close()
    began = time.monotonic()
    spec, store = batches.resume(out)
    executor = NoOpExecutor(store, max(1, (count - done) // 10))
    executor.began = began
    driver = Driver(out, spec, store, executor, show=lambda _: None, notice=print)
    why = asyncio.run(driver.run())
    if why != "done":
        raise SystemExit(why)


if __name__ == "__main__":
    main()
