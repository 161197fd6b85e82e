"""Two that have one attempt, or one batch: only one of them does anything."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest

from tests.batch.batches import Bench, answer, lines_of, until, write_tasks
from tests.fakes.postgres import postgres_url
from tests.fakes.simulated import Place, Simulated
from toolwire.batch import attempt_lock
from toolwire.batch.host import open_host
from toolwire.batch.postgres import PostgresBatch
from toolwire.batch.results import Result, State
from toolwire.batch.spec import BatchSpec, read_spec, write_spec
from toolwire.batch.store import Claim
from toolwire.batch.tasks import Task


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulated]:
    with Simulated(answer) as running:
        yield running


def sessions_on(url: str) -> list[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT id FROM sessions WHERE last_seq > 0 ORDER BY id")
        return [row[0] for row in found.fetchall()]


def waiting(root: Path) -> str:
    """A prompt: a call that waits for the file `go`, and one after it."""
    mark, go = root / "mark", root / "go"
    return f"RUN echo x >> {mark}; while [ ! -e {go} ]; do sleep 0.02; done\nRUN echo y >> {mark}"


def test_a_claim_that_is_over_begins_no_session():
    store = PostgresBatch.create(postgres_url(), "b")
    store.add([Task(id="t", prompt="x")], ["m"], 1)
    store.take()
    first = store.claim(1, "")
    store.give_back(1)
    second = store.claim(1, "")
    assert not store.begin(first, "one")
    assert store.begin(second, "two")
    assert store.begin(second, "two"), "the answer may have been lost"
    assert not store.begin(second, "three"), "the same claim on another host"
    store.give_back(1)
    third = store.claim(1, "")
    assert third.session == "two"
    assert store.begin(third, "two")
    store.give_back(1)
    store.fail(1, Result(id="t", state=State.ERROR))
    store.again((), ["t"])
    assert store.claim(1, "").session == "", "it begins from the start"
    store.close()


def test_a_session_goes_on_without_its_note(sim: Simulated, tmp_path: Path):
    url, bench = postgres_url(), Bench(tmp_path, sim)
    settings = f'[tools]\nsandbox = "off"\n[sessions]\nstore = "{url}"\n'
    (bench.place.home / "config.toml").write_text(settings)
    file = write_tasks(bench.place.work / "tasks.jsonl", [{"id": "t", "prompt": waiting(tmp_path)}])
    given = ("--upstream", sim.upstream(), "-q")
    driver = bench.place.start("batch", "run", str(file), "-o", str(bench.out), *given)
    until((tmp_path / "mark").exists)
    for pid in (driver.pid, *(int(note.name) for note in (bench.out / "hosts").iterdir())):
        os.kill(pid, signal.SIGKILL)
    driver.communicate()
    shutil.rmtree(bench.out / "tasks" / "t" / "session")
    (tmp_path / "go").touch()
    resumed = bench.batch("resume", str(bench.out), *given)
    assert resumed.code == 0, resumed.err
    line = lines_of(bench.out)["t"]
    assert (line["calls"], line["unknown"]) == (2, 1)
    assert sessions_on(url) == [line["session"]]
    assert (tmp_path / "mark").read_text() == "x\ny\n"
    shown = bench.batch("show", str(bench.out), "t", "--session")
    assert "echo y" in shown.out, shown.err


def test_a_host_that_waits_for_another_counts_what_that_one_did(sim: Simulated, tmp_path: Path):
    url, place, out = postgres_url(), Place(tmp_path), tmp_path / "out"
    settings = f'[tools]\nsandbox = "off"\n[sessions]\nstore = "{url}"\n'
    (place.home / "config.toml").write_text(settings)
    file = write_tasks(place.work / "tasks.jsonl", [{"id": "t", "prompt": waiting(tmp_path)}])
    spec = BatchSpec(
        id="b",
        tasks=str(file),
        folder=str(place.work),
        models=("simulated",),
        sandbox="copy",
        shared=True,
    )
    out.mkdir()
    store = PostgresBatch.create(url, "b")
    store.add([Task(id="t", prompt=waiting(tmp_path))], spec.models, 1)
    write_spec(out, spec)
    store.take()
    ended: list[Claim] = []
    lock = out / attempt_lock.FILE
    asked = len(sim.requests)

    async def run() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(60):
            environ = {**place.environ(), "PATH": os.environ["PATH"]}
            first, second = [
                await open_host(
                    stack,
                    out,
                    name=name,
                    environ=environ,
                    upstream=sim.upstream(),
                    done=ended.append,
                )
                for name in ("first", "second")
            ]
            first.start(store.claim(1, ""))
            await asyncio.to_thread(until, (tmp_path / "mark").exists)
            store.give_back(1)
            # Another machine, on which the lock of this one does not count.
            lock.unlink()
            second.start(store.claim(1, ""))
            await asyncio.sleep(1.5)
            (tmp_path / "go").touch()
            await first.drain()
            await second.drain()

    asyncio.run(run())
    result = store.ended(1)
    store.close()
    assert [claim.epoch for claim in ended] == [1, 3]
    assert result is not None
    assert (result.host, result.state, result.calls) == ("second", "finished", 2)
    assert result.requests == len(sim.requests) - asked == 3
    assert sessions_on(url) == [result.session]
    assert (tmp_path / "mark").read_text() == "x\ny\n"


def test_a_driver_that_was_given_up_ends_nothing_of_its_successor(sim: Simulated, tmp_path: Path):
    url, bench = postgres_url(), Bench(tmp_path, sim)
    settings = f'[tools]\nsandbox = "off"\n[sessions]\nstore = "{url}"\n'
    (bench.place.home / "config.toml").write_text(settings)
    task = {"id": "t", "prompt": waiting(tmp_path)}
    more = {"id": "u", "prompt": waiting(tmp_path)}
    file = write_tasks(bench.place.work / "tasks.jsonl", [task, more])
    given = ("--upstream", sim.upstream(), "-q", "-j", "1")
    driver = bench.place.start("batch", "run", str(file), "-o", str(bench.out), *given)
    until((tmp_path / "mark").exists)
    batch = read_spec(bench.out).id
    other = subprocess.Popen(["sleep", "600"], env={**os.environ, "TOOLWIRE_BATCH": batch})
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE batches SET epoch = epoch + 1, holder = NULL")
    (tmp_path / "go").touch()
    _, err = driver.communicate(timeout=60)
    try:
        assert driver.returncode == 1
        assert b"another driver has taken over" in err
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
