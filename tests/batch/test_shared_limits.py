"""Four hosts before a server that counts requests and refuses those over its limit."""

import asyncio
import time
from collections import deque
from pathlib import Path

import pytest

from tests.batch.batches import answer, write_tasks
from tests.fakes.postgres import postgres_url
from tests.fakes.simulated import Simulated
from toolwire.batch import batches
from toolwire.batch.local import LocalExecutor
from toolwire.batch.spec import BatchSpec
from toolwire.simulator import Question, Reply, refused, reply

pytestmark = pytest.mark.sweep

PER_MINUTE = 300
MEASURED = 90.0


class CountingServer:
    """Answers 429 to what is over its limit in any minute."""

    def __init__(self) -> None:
        self.taken: deque[float] = deque()
        self.all: list[float] = []
        self.refusals = 0

    def __call__(self, question: Question) -> Reply:
        now = time.monotonic()
        while self.taken and self.taken[0] <= now - 60.0:
            self.taken.popleft()
        if len(self.taken) >= PER_MINUTE:
            self.refusals += 1
            return reply(fault=refused(429, retry_after="1"))
        self.taken.append(now)
        self.all.append(now)
        return answer(question)


async def run(out: Path, spec: BatchSpec, upstream: str) -> None:
    """Runs the batch on four hosts until enough was measured, then stops it."""
    store = batches.create(out, spec)
    store.close()
    spec, store = batches.resume(out)
    executor = LocalExecutor(out, hosts=4, slots=16, batch=spec.id, upstream=upstream)

    def started(driver: batches.Driver) -> None:
        asyncio.get_running_loop().call_later(MEASURED, driver.stop)
        asyncio.get_running_loop().call_later(MEASURED + 5, driver.stop)

    try:
        why = await batches.run_batch(
            out, spec, store, executor, show=lambda _: None, notice=print, started=started
        )
    finally:
        store.close()
    assert why == "stopped"


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_four_hosts_use_a_limit_and_never_exceed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
):
    home = tmp_path / "home"
    home.mkdir()
    url = postgres_url() if store == "postgres" else ""
    settings = '[tools]\nsandbox = "off"\n' + (f'[sessions]\nstore = "{url}"\n' if url else "")
    (home / "config.toml").write_text(settings)
    monkeypatch.setenv("TOOLWIRE_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tasks = write_tasks(
        tmp_path / "t.jsonl", [{"id": f"t{n}", "prompt": "SAY"} for n in range(900)]
    )
    server = CountingServer()
    with Simulated(server) as sim:
        spec = BatchSpec(
            id="limits",
            tasks=str(tasks),
            folder=str(tmp_path),
            models=("simulated",),
            upstream=sim.upstream(),
            sandbox="copy",
            shared=bool(url),
            requests_per_minute=PER_MINUTE,
        )
        asyncio.run(run(tmp_path / "out", spec, sim.upstream()))
    assert server.refusals == 0
    # From the first request on, without the time in which hosts are loading.
    first = server.all[0]
    minute = [at for at in server.all if first + 10 <= at < first + 70]
    assert 0.9 * PER_MINUTE <= len(minute) <= PER_MINUTE
