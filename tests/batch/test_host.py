"""A host reports the end of every attempt and keeps no lock, whatever its store answers."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from tests.batch.batches import answer, write_tasks
from tests.fakes.simulated import Place, Simulated
from toolwire.batch import batches
from toolwire.batch.attempt_lock import AttemptLock
from toolwire.batch.host import open_host
from toolwire.batch.spec import BatchSpec
from toolwire.batch.store import Claim
from toolwire.batch.workspaces import Workspaces


class OneTask(msgspec.Struct, frozen=True):
    """A batch of one task, whose call waits for the file `go`."""

    root: Path
    upstream: str

    @property
    def out(self) -> Path:
        return self.root / "out"

    def claimed(self) -> Claim:
        place = Place(self.root)
        (place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
        wait = f"RUN touch {self.root}/mark; while [ ! -e {self.root}/go ]; do sleep 0.02; done"
        file = write_tasks(place.work / "tasks.jsonl", [{"id": "t", "prompt": wait}])
        folder = str(place.work)
        spec = BatchSpec(id="b", tasks=str(file), folder=folder, models=("m",), sandbox="copy")
        batches.create(self.out, spec).close()
        _, store = batches.resume(self.out)
        return store.claim(1, "h")

    def run(self, claim: Claim, meanwhile: Callable[[], None]) -> list[Claim]:
        """Runs the attempt; returns the ends that the host reported."""
        ended: list[Claim] = []

        async def run() -> None:
            async with AsyncExitStack() as stack, asyncio.timeout(60):
                host = await open_host(
                    stack,
                    self.out,
                    name="h",
                    environ={**Place(self.root).environ(), "PATH": os.environ["PATH"]},
                    upstream=self.upstream,
                    done=ended.append,
                )
                host.start(claim)
                await asyncio.to_thread(meanwhile)
                await host.drain()

        asyncio.run(run())
        return ended

    def lose_attempts(self) -> None:
        """Makes every further question about an attempt fail."""
        with sqlite3.connect(self.out / "batch.sqlite") as other:
            other.execute("ALTER TABLE runs RENAME TO elsewhere")


@pytest.fixture
def one(tmp_path: Path) -> Iterator[OneTask]:
    with Simulated(answer) as sim:
        yield OneTask(tmp_path, sim.upstream())


def test_an_attempt_whose_result_cannot_be_stored_is_reported(one: OneTask):
    claim = one.claimed()

    def meanwhile() -> None:
        while not (one.root / "mark").exists():
            time.sleep(0.01)
        one.lose_attempts()
        (one.root / "go").touch()

    assert one.run(claim, meanwhile) == [claim]


def test_a_claim_that_cannot_be_looked_up_leaves_its_lock_to_others(one: OneTask):
    claim = one.claimed()
    one.lose_attempts()
    assert one.run(claim, lambda: None) == [claim]
    AttemptLock(Workspaces(one.out, "b"), 1, "t").release()
    assert not (one.root / "mark").exists()
