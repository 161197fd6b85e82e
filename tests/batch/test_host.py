"""A host reports the end of every attempt, whatever its store answers."""

import asyncio
import os
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path

from tests.batch.batches import answer, write_tasks
from tests.fakes.simulated import Place, Simulated
from toolwire.batch import batches
from toolwire.batch.host import open_host
from toolwire.batch.spec import BatchSpec
from toolwire.batch.store import Claim


def test_an_attempt_whose_result_cannot_be_stored_is_reported(tmp_path: Path):
    place, out = Place(tmp_path), tmp_path / "out"
    (place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    mark, go = tmp_path / "mark", tmp_path / "go"
    wait = f"RUN touch {mark}; while [ ! -e {go} ]; do sleep 0.02; done"
    file = write_tasks(place.work / "tasks.jsonl", [{"id": "t", "prompt": wait}])
    ended: list[Claim] = []

    async def run(upstream: str, claim: Claim) -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(60):
            environ = {**place.environ(), "PATH": os.environ["PATH"]}
            host = await open_host(
                stack, out, name="h", environ=environ, upstream=upstream, done=ended.append
            )
            host.start(claim)
            while not mark.exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.01)
            with sqlite3.connect(out / "batch.sqlite") as other:
                other.execute("ALTER TABLE runs RENAME TO elsewhere")
            go.touch()
            await host.drain()

    with Simulated(answer) as sim:
        spec = BatchSpec(
            id="b", tasks=str(file), folder=str(place.work), models=("simulated",), sandbox="copy"
        )
        batches.create(out, spec).close()
        _, store = batches.resume(out)
        claim = store.claim(1, "h")
        asyncio.run(run(sim.upstream(), claim))
    assert ended == [claim]
